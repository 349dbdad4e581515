//! The patterns that `patterns` finds, by their numbers, and which of them a window lies in.

use crate::args::SimilarArgs;
use crate::commands::patterns::Found;
use crate::input;
use anyhow::Result;
use loopfold::Fold;
use loopfold::questions::communication::{CommunicationPattern, Part, Processes};
use loopfold::questions::{ENVELOPE, EventChoice, KeptPositions, PatternSettings, SimilarPlace};

/// Patterns that are looked at.
const MOST: usize = 100_000;

/// All patterns of a trace, in the order of `patterns`.
pub(super) struct Larger<'a> {
    processes: Processes<'a>,
    found: Found,
    positions: KeptPositions<'a>,
    /// For each stream the stretches of patterns, the shortest first, and their numbers.
    stretches: Vec<Vec<(u32, u32, usize)>>,
}

/// A pattern of that list: where it first is.
pub(super) enum Numbered {
    Process(Part),
    Communication(Vec<Part>),
}

impl<'a> Larger<'a> {
    pub(super) fn of(arguments: &SimilarArgs, fold: &'a Fold) -> Result<Self> {
        let left_out = if arguments.envelope { Vec::new() } else { ENVELOPE.map(String::from).to_vec() };
        let choice = EventChoice { all_events: arguments.all_events, left_out, ..EventChoice::default() };
        let processes = Processes::of(fold, &choice, input::room(&arguments.folder), &input::outermost)?;
        let settings = PatternSettings { keep: MOST, look_inside: 0, ..PatternSettings::default() };
        let mut found = Found::of(&processes, &settings)?;
        found.communication.retain(|pattern| pattern.count >= settings.min_count);
        let positions = processes.positions();
        let mut larger = Self { processes, found, positions, stretches: Vec::new() };
        larger.stretches = larger.all_stretches(fold.streams().len());
        Ok(larger)
    }

    fn all_stretches(&self, streams: usize) -> Vec<Vec<(u32, u32, usize)>> {
        let mut stretches = vec![Vec::new(); streams];
        for (pattern, number) in self.found.communication.iter().zip(1..) {
            for part in pattern.occurrences.iter().flat_map(|occurrence| &occurrence.parts) {
                stretches[part.stream as usize].push((part.start, part.end, number));
            }
        }
        let before = self.found.communication.len();
        for (pattern, number) in self.found.process.patterns.iter().zip(before + 1..) {
            let length = pattern.symbols.len() as u32;
            for (stream, places) in self.found.process.streams_of(pattern) {
                stretches[stream]
                    .extend(places.iter().map(|place| (place.start, place.start + length, number)));
            }
        }
        for of_stream in &mut stretches {
            of_stream.sort_by_key(|&(start, end, number)| (end - start, number));
        }
        stretches
    }

    pub(super) fn processes(&self) -> &Processes<'a> {
        &self.processes
    }

    /// How many patterns there are.
    pub(super) fn count(&self) -> usize {
        self.found.communication.len() + self.found.process.patterns.len()
    }

    pub(super) fn get(&self, index: usize) -> Option<Numbered> {
        if let Some(pattern) = self.found.communication.get(index) {
            return Some(Numbered::Communication(CommunicationPattern::parts(pattern).to_vec()));
        }
        let pattern = self.found.process.patterns.get(index - self.found.communication.len())?;
        let (stream, places) = self.found.process.streams_of(pattern).next()?;
        let start = places.first()?.start;
        let end = start + pattern.symbols.len() as u32;
        Some(Numbered::Process(Part { stream: stream as u32, start, end }))
    }

    /// The number of the smallest pattern that a window lies in and that has more events.
    pub(super) fn around(&self, stream: usize, place: SimilarPlace) -> Option<usize> {
        let shown = self.processes.doings()[stream].shown();
        let index = |position| shown.index_at(self.positions.before(stream, position)?);
        let (first, last) = (index(place.start)? as u32, index(place.end)? as u32);
        let is_larger = |&&(start, end, _): &&(u32, u32, usize)| {
            start <= first && first <= last && last < end && {
                shown.events(start as usize, end as usize) > place.length as u64
            }
        };
        self.stretches[stream].iter().find(is_larger).map(|&(.., number)| number)
    }
}
