//! Looking for the pattern in all streams that it concerns.

use super::pattern::{Asked, Patterns, Sequence, Variant};
use crate::args::SimilarArgs;
use crate::show;
use anyhow::{Result, bail};
use loopfold::questions::{
    Filtered, LikePattern, Likeness, MessagesInOrder, SimilarOccurrence, SimilarPlace, find_similar,
    join_similar,
};
use loopfold::{Fold, RuleId};
use std::collections::HashMap;

/// What was found.
#[derive(Default)]
pub(super) struct Found {
    /// Streams and windows, as many as are shown.
    pub(super) matches: Vec<(usize, SimilarPlace)>,
    /// How many there are, and how many of them are the pattern itself.
    pub(super) count: u64,
    pub(super) exact: u64,
    /// How many streams have some.
    pub(super) streams: u64,
    pub(super) filtered: Filtered,
    /// For patterns of several processes.
    pub(super) joined: Option<Joined>,
    pub(super) notes: Vec<String>,
}

/// The occurrences of a pattern of several processes.
pub(super) struct Joined {
    pub(super) order: Option<String>,
    /// How many events the pattern has, in all processes.
    pub(super) pattern_events: u64,
    /// Windows belong to processes of the pattern; these are their streams.
    pub(super) streams: Vec<usize>,
    pub(super) occurrences: Vec<SimilarOccurrence>,
}

/// More windows do not fit in memory together.
const MOST_WINDOWS: usize = 1 << 24;

/// More events cannot be looked at in anyone's time.
const MOST_EVENTS: u64 = 1 << 40;

pub(super) fn search(
    arguments: &SimilarArgs,
    fold: &Fold,
    asked: &Asked<'_>,
    max_error: f64,
) -> Result<Found> {
    let longest = fold.streams().iter().map(|stream| fold.length(stream.root())).max().unwrap_or(0);
    if longest > MOST_EVENTS {
        bail!("a stream of {} is too long to look at all of it", show::plural(longest, "event"));
    }
    match &asked.patterns {
        Patterns::Everywhere(sequence) => everywhere(arguments, fold, asked, sequence),
        Patterns::Processes(variants) => in_processes(arguments, fold, asked, variants, max_error),
    }
}

fn everywhere(arguments: &SimilarArgs, fold: &Fold, asked: &Asked<'_>, sequence: &Sequence) -> Result<Found> {
    let likeness = Likeness { edits: arguments.edits, ngram: arguments.ngram };
    let pattern = LikePattern::of_events(sequence, likeness)?;
    let mut found = Found::default();
    // Equal streams are looked at once.
    let mut known: HashMap<RuleId, Found> = HashMap::new();
    for (stream, folded) in fold.streams().iter().enumerate() {
        let one = match known.remove(&folded.root()) {
            Some(one) => one,
            None => {
                let compared = asked.events.in_stream(&asked.processes, stream)?;
                let mut one = Found::default();
                one.filtered = find_similar(fold, folded.root(), &compared, &pattern, &mut |place| {
                    if arguments.shows(one.count) {
                        one.matches.push((stream, place));
                    }
                    one.count += 1;
                    one.exact += u64::from(place.distance == 0);
                    true
                });
                one
            }
        };
        found.add(arguments, stream, &one);
        known.insert(folded.root(), one);
    }
    Ok(found)
}

impl Found {
    /// Adds what was found in a stream.
    fn add(&mut self, arguments: &SimilarArgs, stream: usize, one: &Found) {
        for &(_, place) in &one.matches {
            if !arguments.shows(self.matches.len() as u64) {
                break;
            }
            self.matches.push((stream, place));
        }
        self.count = self.count.saturating_add(one.count);
        self.exact = self.exact.saturating_add(one.exact);
        self.streams += u64::from(one.count > 0);
        self.filtered.places = self.filtered.places.saturating_add(one.filtered.places);
        self.filtered.verified = self.filtered.verified.saturating_add(one.filtered.verified);
    }
}

fn in_processes(
    arguments: &SimilarArgs,
    fold: &Fold,
    asked: &Asked<'_>,
    variants: &[Variant],
    max_error: f64,
) -> Result<Found> {
    let mut search = InProcesses { arguments, fold, asked, max_error, messages: None };
    let mut best: Option<(Found, Rank)> = None;
    let mut orders: Vec<(&str, usize)> = Vec::new();
    for variant in variants {
        let (found, rank) = search.variant(variant)?;
        orders.extend(variant.order.as_deref().map(|order| (order, rank.0)).filter(|&(_, count)| count > 0));
        // Of equals the most usual one, which comes first.
        if best.as_ref().is_none_or(|(_, known)| rank > *known) {
            best = Some((found, rank));
        }
    }
    let Some((mut found, _)) = best else { bail!("the pattern has no processes") };
    // A program may do the same in one direction and then in the other.
    let chosen = found.joined.as_ref().and_then(|joined| joined.order.clone());
    for (order, count) in orders.into_iter().filter(|&(order, _)| Some(order) != chosen.as_deref()) {
        let count = show::plural(count as u64, "occurrence");
        found.notes.push(format!("{count} more in another order: {order}"));
    }
    let all = variants
        .iter()
        .flat_map(|variant| variant.sequences.keys().copied())
        .max()
        .map_or(0, |last| last + 1);
    let absent = (0..all).filter(|&process| asked.processes.stream(process).is_none()).count();
    if absent > 0 {
        found.notes.push(format!(
            "the trace does not have {} of the pattern",
            show::plural(absent as u64, "process")
        ));
    }
    Ok(found)
}

/// How well a variant fits: its occurrences, how few edits they have, and the events of
/// windows that are like it.
type Rank = (usize, std::cmp::Reverse<u64>, u64);

struct InProcesses<'a> {
    arguments: &'a SimilarArgs,
    fold: &'a Fold,
    asked: &'a Asked<'a>,
    max_error: f64,
    /// Matched when the first windows are to be joined.
    messages: Option<MessagesInOrder>,
}

impl InProcesses<'_> {
    fn variant(&mut self, variant: &Variant) -> Result<(Found, Rank)> {
        let processes = variant.sequences.keys().last().map_or(0, |last| last + 1);
        let mut windows = vec![Vec::new(); processes];
        let mut lengths = vec![0; processes];
        let mut streams = vec![usize::MAX; processes];
        let mut found = Found::default();
        for (&process, sequence) in &variant.sequences {
            lengths[process] = sequence.len();
            let Some(stream) = self.asked.processes.stream(process) else { continue };
            streams[process] = stream;
            let filtered = self.windows(stream, sequence, &mut windows[process])?;
            found.filtered.places += filtered.places;
            found.filtered.verified += filtered.verified;
            found.streams += u64::from(!windows[process].is_empty());
        }
        let mut events = 0;
        for (process, places) in windows.iter().enumerate() {
            for &place in places {
                if self.arguments.shows(found.count) {
                    found.matches.push((streams[process], place));
                }
                found.count += 1;
                found.exact += u64::from(place.distance == 0);
                events += (place.length - place.distance.min(place.length)) as u64;
            }
        }
        found.matches.sort_by_key(|&(stream, place)| (stream, place.start));
        if found.count > 0 && self.messages.is_none() {
            self.messages = Some(MessagesInOrder::of(self.fold, &self.asked.processes)?);
        }
        let occurrences = match &self.messages {
            Some(messages) => join_similar(&windows, &lengths, messages, self.max_error),
            None => Vec::new(),
        };
        let edits = occurrences.iter().map(|occurrence| occurrence.distance).sum();
        let rank = (occurrences.len(), std::cmp::Reverse(edits), events);
        let pattern_events = lengths.iter().map(|&length| length as u64).sum();
        found.joined = Some(Joined { order: variant.order.clone(), pattern_events, streams, occurrences });
        Ok((found, rank))
    }

    /// The windows of one process. A pattern of few events has fewer edits.
    fn windows(
        &self,
        stream: usize,
        sequence: &Sequence,
        windows: &mut Vec<SimilarPlace>,
    ) -> Result<Filtered> {
        let edits = self.arguments.edits.min(sequence.len() - 1);
        let pattern = LikePattern::of_events(sequence, Likeness { edits, ngram: self.arguments.ngram })?;
        let compared = self.asked.events.in_stream(&self.asked.processes, stream)?;
        let root = self.fold.streams()[stream].root();
        let filtered = find_similar(self.fold, root, &compared, &pattern, &mut |place| {
            windows.push(place);
            windows.len() <= MOST_WINDOWS
        });
        if windows.len() > MOST_WINDOWS {
            bail!("more than {} windows of a process are like the pattern", show::count(MOST_WINDOWS as u64));
        }
        Ok(filtered)
    }
}
