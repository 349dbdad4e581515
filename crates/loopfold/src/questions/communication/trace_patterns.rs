//! Lists all patterns of a trace: those of several processes first, then those of single
//! processes; each in the requested order, numbered from 1.
//!
//! Time and memory are those of [`Patterns::of`], [`Partners::of`] and
//! [`communication_patterns`]. A trace without communication costs the first alone.

use super::join::{CommunicationPattern, Part, communication_patterns};
use super::partners::Partners;
use super::processes::Processes;
use crate::Result;
use crate::questions::patterns::{Config, Patterns, RankBy};
use std::cmp::Reverse;

/// The patterns of a trace.
#[derive(Clone, Debug)]
pub struct TracePatterns {
    /// Those of several processes, in the order that was requested.
    pub communication: Vec<CommunicationPattern>,
    /// Those of single processes.
    pub process: Patterns,
    /// Which events of different processes belong together.
    pub partners: Partners,
}

/// Where a pattern of the list first is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FirstPlace {
    /// Of a single process.
    Process(Part),
    /// Of several processes, by rank.
    Communication(Vec<Part>),
}

/// The first patterns that others may be a part of, and the occurrences of each that are
/// examined.
const SURVEYED: usize = 100;
const SURVEYED_OCCURRENCES: usize = 1000;

impl TracePatterns {
    /// The patterns of what processes do. Those of several processes only where there is
    /// communication.
    pub fn of(processes: &Processes<'_>, config: &Config) -> Result<Self> {
        let shown = processes.shown();
        let process = Patterns::of(&shown, config)?;
        if !processes.communicate() {
            return Ok(Self { communication: Vec::new(), process, partners: Partners::default() });
        }
        let partners = Partners::of(processes)?;
        let mut communication = communication_patterns(processes, &partners, &process.places(shown.len()));
        communication.retain(|pattern| pattern.count >= config.min_count);
        // They come by the events they explain, which is what decides among equals.
        communication.sort_by_key(|pattern| {
            Reverse(match config.rank_by {
                RankBy::Events => 0,
                RankBy::Count => pattern.count,
                RankBy::Length => pattern.events,
                RankBy::Processes => pattern.parts().len() as u64,
            })
        });
        Ok(Self { communication, process, partners })
    }

    /// How many patterns are in the list.
    pub fn count(&self) -> usize {
        self.communication.len() + self.process.patterns.len()
    }

    /// Where the pattern of a number, from 1, first is. Returns `None` if there is no such number.
    pub fn first_place(&self, number: usize) -> Option<FirstPlace> {
        let index = number.checked_sub(1)?;
        if let Some(pattern) = self.communication.get(index) {
            return Some(FirstPlace::Communication(pattern.parts().to_vec()));
        }
        let pattern = self.process.patterns.get(index - self.communication.len())?;
        let (stream, places) = self.process.streams_of(pattern).next()?;
        let start = places.first()?.start;
        let end = start + pattern.symbols.len() as u32;
        Some(FirstPlace::Process(Part { stream: stream as u32, start, end }))
    }

    /// The number of the smallest pattern of several processes that such a pattern is a part
    /// of, judged by its first place. The first 100 are examined.
    pub fn within(&self, pattern: &CommunicationPattern) -> Option<usize> {
        let first = pattern.parts()[0];
        let mut smallest: Option<(u32, usize)> = None;
        for (other, number) in self.communication.iter().take(SURVEYED).zip(1..) {
            let holds = |part: &&Part| {
                part.stream == first.stream
                    && part.start <= first.start
                    && first.end <= part.end
                    && part.end - part.start > first.end - first.start
            };
            let occurrences = other.occurrences.iter().take(SURVEYED_OCCURRENCES);
            for part in occurrences.flat_map(|occurrence| &occurrence.parts).filter(holds) {
                let length = part.end - part.start;
                if smallest.is_none_or(|(known, _)| length < known) {
                    smallest = Some((length, number));
                }
            }
        }
        smallest.map(|(_, number)| number)
    }

    /// For each of this many streams the stretches of what is shown in which patterns are, with
    /// the numbers of the patterns: the shortest first.
    pub fn stretches(&self, streams: usize) -> Vec<Vec<(u32, u32, usize)>> {
        let mut stretches = vec![Vec::new(); streams];
        for (pattern, number) in self.communication.iter().zip(1..) {
            for part in pattern.occurrences.iter().flat_map(|occurrence| &occurrence.parts) {
                stretches[part.stream as usize].push((part.start, part.end, number));
            }
        }
        for (pattern, number) in self.process.patterns.iter().zip(self.communication.len() + 1..) {
            let length = pattern.symbols.len() as u32;
            for (stream, places) in self.process.streams_of(pattern) {
                stretches[stream]
                    .extend(places.iter().map(|place| (place.start, place.start + length, number)));
            }
        }
        for of_stream in &mut stretches {
            of_stream.sort_by_key(|&(start, end, number)| (end - start, number));
        }
        stretches
    }
}
