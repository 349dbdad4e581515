//! Groups occurrences in which every process does the same into one pattern.

use super::{CommunicationPattern, Occurrence, Part};
use crate::Symbol;
use crate::questions::communication::Processes;
use hashbrown::HashMap;

/// The patterns so far.
#[derive(Default)]
pub(super) struct Distinct {
    occurrences: Vec<Vec<Occurrence>>,
    by_content: HashMap<Vec<(u32, u32)>, usize, foldhash::fast::RandomState>,
    /// Sequences of events, numbered.
    sequences: HashMap<Vec<Symbol>, u32, foldhash::fast::RandomState>,
}

impl Distinct {
    pub(super) fn add(&mut self, processes: &Processes<'_>, occurrence: Occurrence) {
        let mut content = Vec::with_capacity(occurrence.parts.len());
        for part in &occurrence.parts {
            let shown = processes.traces()[part.stream as usize].shown();
            let symbols = &shown.symbols()[part.start as usize..part.end as usize];
            let next = self.sequences.len() as u32;
            content.push((part.stream, *self.sequences.entry_ref(symbols).or_insert(next)));
        }
        let next = self.occurrences.len();
        let pattern = *self.by_content.entry(content).or_insert(next);
        if pattern == next {
            self.occurrences.push(Vec::new());
        }
        self.occurrences[pattern].push(occurrence);
    }

    /// The heaviest first.
    pub(super) fn patterns(self, processes: &Processes<'_>) -> Vec<CommunicationPattern> {
        let mut patterns: Vec<CommunicationPattern> =
            self.occurrences.into_iter().map(|all| pattern(processes, all)).collect();
        let by_rank = |pattern: &CommunicationPattern| {
            let rank = |part: &Part| (processes.communicators().rank(part.stream as usize), *part);
            pattern.parts().iter().map(rank).collect::<Vec<_>>()
        };
        patterns.sort_by(|a, b| {
            b.weight
                .cmp(&a.weight)
                .then(b.count.cmp(&a.count))
                .then(b.parts().len().cmp(&a.parts().len()))
                .then_with(|| by_rank(a).cmp(&by_rank(b)))
        });
        patterns
    }
}

fn pattern(processes: &Processes<'_>, mut occurrences: Vec<Occurrence>) -> CommunicationPattern {
    occurrences.sort_by(|a, b| a.parts.cmp(&b.parts));
    let (mut fewest, mut most, mut count, mut explains) = (u64::MAX, 0, 0u64, 0u64);
    for occurrence in &occurrences {
        let events = events_of(processes, occurrence);
        (fewest, most) = (fewest.min(events), most.max(events));
        count = count.saturating_add(occurrence.times);
        explains = explains.saturating_add(events.saturating_mul(occurrence.times));
    }
    let events = events_of(processes, &occurrences[0]);
    let written: u64 = occurrences[0].parts.iter().map(|part| u64::from(part.end - part.start)).sum();
    let weight = if fewest == most { explains } else { count.saturating_mul(written) };
    CommunicationPattern { events, occurrences, count, explains, weight }
}

/// How many events an occurrence has, of all processes.
fn events_of(processes: &Processes<'_>, occurrence: &Occurrence) -> u64 {
    let of_part = |part: &Part| {
        let shown = processes.traces()[part.stream as usize].shown();
        shown.events(part.start as usize, part.end as usize)
    };
    occurrence.parts.iter().map(of_part).fold(0, u64::saturating_add)
}
