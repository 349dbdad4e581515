//! Equal patterns on disjoint processes as one entry: "ring of 4, in each of 4 rows".
//!
//! Two patterns are equal if they occur equally often, have as many events, and the processes
//! of one, in the order of their ranks, do what those of the other do: events of the same names
//! with the same partners, by their places among the processes of the pattern. The first one
//! gets all that are equal and have no process in common with it or with each other, in the order
//! of their weights. Time and memory are O(written events of first occurrences).

use super::channels::Side;
use super::partners::Partners;
use super::pattern::{CommunicationPattern, Part};
use super::processes::Processes;
use crate::trace::Name;
use hashbrown::{HashMap, HashSet};
use std::cmp::Reverse;

/// An event of a pattern: its name, and its partners by their places in the pattern.
type Step<'a> = (Name<'a>, Vec<(Side, Option<usize>)>);

/// What the processes of a pattern do, by numbers of steps.
type Form = (u64, u64, Vec<Vec<u32>>);

/// Joins equal patterns; the heaviest come first, with all that is joined.
pub(super) fn grouped(
    processes: &Processes<'_>,
    partners: &Partners,
    patterns: Vec<CommunicationPattern>,
) -> Vec<CommunicationPattern> {
    let mut forms = Forms { processes, partners, steps: HashMap::new() };
    let mut by_form: HashMap<Form, Vec<usize>> = HashMap::new();
    let mut grouped: Vec<CommunicationPattern> = Vec::new();
    let mut members: Vec<HashSet<usize>> = Vec::new();
    for pattern in patterns {
        let own: Vec<usize> = pattern.parts().iter().map(|part| part.stream.index()).collect();
        let entries = by_form.entry(forms.of(&pattern)).or_default();
        let free =
            entries.iter().copied().find(|&entry| own.iter().all(|stream| !members[entry].contains(stream)));
        match free {
            Some(entry) => {
                members[entry].extend(own);
                grouped[entry].join(pattern);
            }
            None => {
                entries.push(grouped.len());
                members.push(own.into_iter().collect());
                grouped.push(pattern);
            }
        }
    }
    grouped.sort_by_key(|pattern| Reverse(pattern.weight));
    grouped
}

struct Forms<'p, 'a> {
    processes: &'p Processes<'a>,
    partners: &'p Partners,
    steps: HashMap<Step<'a>, u32>,
}

impl<'a> Forms<'_, 'a> {
    fn of(&mut self, pattern: &CommunicationPattern) -> Form {
        let parts = pattern.parts();
        let places: HashMap<u32, usize> =
            parts.iter().enumerate().map(|(place, part)| (part.stream.index() as u32, place)).collect();
        let steps = parts.iter().map(|part| self.steps_of(part, &places)).collect();
        (pattern.count, pattern.events, steps)
    }

    fn steps_of(&mut self, part: &Part, places: &HashMap<u32, usize>) -> Vec<u32> {
        let (processes, table) = (self.processes, &self.partners.table);
        let stream = part.stream.index();
        let trace = &processes.traces()[stream];
        let nest = trace.nest();
        let pieces = nest.pieces(part.start, part.end);
        let step = |index: usize| {
            let kind = trace.kind(index);
            let ends = table.streams[stream].of_kind(kind).iter();
            let partner = |&end: &u32| {
                let end = table.end(stream as u32, end);
                let other = table.channel(end).other(end.side);
                (end.side, other.and_then(|(other, _)| places.get(&other).copied()))
            };
            let fold: &'a crate::Fold = processes.fold;
            let name = fold.alphabet().meaning(trace.event_kinds()[kind].symbol).name;
            (name, ends.map(partner).collect())
        };
        let mut numbers = Vec::new();
        for index in nest.indices(&pieces) {
            let next = self.steps.len() as u32;
            numbers.push(*self.steps.entry(step(index)).or_insert(next));
        }
        numbers
    }
}
