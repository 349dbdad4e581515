//! Joins windows of several processes to occurrences of a communication pattern.
//!
//! Two windows belong together if one has a send and the other the receive of its message.
//! Those with the most messages between them are joined first, as long as an occurrence has no
//! more than one window of each process. A process without a window counts all its events as
//! edits; an occurrence whose edits are too large a share of the pattern's events is none.
//! Time: one look-up of a partner for each event of the windows, and sorting the pairs of
//! windows; memory is O(windows + pairs).

use super::blocks::SimilarPlace;
use hashbrown::HashMap;
use std::collections::BTreeMap;

/// Finds the other end of a message.
pub trait SimilarPartners {
    /// The process and position of the event at the other end of the message that an event of
    /// this process at this position sends or receives. Returns `None` if it does neither.
    fn partner(&self, process: usize, position: u64) -> Option<(usize, u64)>;
}

impl<F: Fn(usize, u64) -> Option<(usize, u64)>> SimilarPartners for F {
    fn partner(&self, process: usize, position: u64) -> Option<(usize, u64)> {
        self(process, position)
    }
}

/// An approximate occurrence of a communication pattern.
#[derive(Clone, Debug, PartialEq)]
pub struct SimilarOccurrence {
    /// The windows of its processes, in the order of these.
    pub windows: Vec<(usize, SimilarPlace)>,
    /// How many edits make it the pattern.
    pub distance: u64,
    /// These as a share of the events of the pattern.
    pub error: f64,
}

impl SimilarOccurrence {
    /// How many events of it were compared.
    pub fn events(&self) -> u64 {
        self.windows.iter().map(|(_, place)| place.length as u64).sum()
    }
}

/// The occurrences of a pattern whose processes have this many events each, from the similar
/// windows in each process, in their order and without overlaps.
pub fn join_similar(
    windows: &[Vec<SimilarPlace>],
    lengths: &[usize],
    partners: &dyn SimilarPartners,
    max_error: f64,
) -> Vec<SimilarOccurrence> {
    let mut groups = Groups::of(windows);
    for (one, other) in together(windows, partners) {
        groups.join(one, other);
    }
    let total: u64 = lengths.iter().map(|&length| length as u64).sum();
    let mut occurrences = Vec::new();
    for members in groups.members.into_iter().filter(|members| !members.is_empty()) {
        let windows: Vec<(usize, SimilarPlace)> =
            members.iter().map(|(&process, &window)| (process, windows[process][window])).collect();
        let edits: u64 = windows.iter().map(|(_, place)| place.distance as u64).sum();
        let present: u64 = members.keys().map(|&process| lengths[process] as u64).sum();
        let distance = edits + (total - present);
        let error = distance as f64 / total as f64;
        if error <= max_error {
            occurrences.push(SimilarOccurrence { windows, distance, error });
        }
    }
    // As the processes come to them: in the order of the first window of each.
    occurrences
        .sort_by_key(|occurrence| occurrence.windows.first().map(|&(process, place)| (place.start, process)));
    occurrences
}

/// A window: its process, and which of its windows it is.
type Window = (usize, usize);

/// The pairs of windows with messages between them, those with the most first.
fn together(windows: &[Vec<SimilarPlace>], partners: &dyn SimilarPartners) -> Vec<(Window, Window)> {
    let mut messages: HashMap<(Window, Window), u64> = HashMap::new();
    for (process, places) in windows.iter().enumerate() {
        for (index, place) in places.iter().enumerate() {
            for position in place.start..=place.end {
                let Some((peer, at)) = partners.partner(process, position) else { continue };
                let Some(window) = windows.get(peer).and_then(|places| window_at(places, at)) else {
                    continue;
                };
                let (one, other) = ((process, index), (peer, window));
                *messages.entry((one.min(other), one.max(other))).or_default() += 1;
            }
        }
    }
    let mut pairs: Vec<((Window, Window), u64)> = messages.into_iter().collect();
    pairs.sort_unstable_by_key(|&(pair, count)| (std::cmp::Reverse(count), pair));
    pairs.into_iter().map(|(pair, _)| pair).collect()
}

/// The window that a position is in.
fn window_at(places: &[SimilarPlace], position: u64) -> Option<usize> {
    let before = places.partition_point(|place| place.start <= position).checked_sub(1)?;
    (position <= places[before].end).then_some(before)
}

/// Windows that belong together, at most one of each process.
struct Groups {
    /// Where the windows of each process begin among all.
    begins: Vec<usize>,
    /// For each window another of its group, or itself.
    leads_to: Vec<usize>,
    /// For the last of these the windows of the group by their processes.
    members: Vec<BTreeMap<usize, usize>>,
}

impl Groups {
    fn of(windows: &[Vec<SimilarPlace>]) -> Self {
        let (mut begins, mut members) = (Vec::new(), Vec::new());
        for (process, places) in windows.iter().enumerate() {
            begins.push(members.len());
            members.extend((0..places.len()).map(|window| BTreeMap::from([(process, window)])));
        }
        Self { begins, leads_to: (0..members.len()).collect(), members }
    }

    fn group(&mut self, (process, window): Window) -> usize {
        let mut at = self.begins[process] + window;
        while self.leads_to[at] != at {
            self.leads_to[at] = self.leads_to[self.leads_to[at]];
            at = self.leads_to[at];
        }
        at
    }

    /// Joins the groups of two windows, unless a process has a window in both.
    fn join(&mut self, one: Window, other: Window) {
        let (one, other) = (self.group(one), self.group(other));
        if one == other {
            return;
        }
        let (small, large) =
            if self.members[one].len() < self.members[other].len() { (one, other) } else { (other, one) };
        if self.members[small].keys().any(|process| self.members[large].contains_key(process)) {
            return;
        }
        let moved = std::mem::take(&mut self.members[small]);
        self.members[large].extend(moved);
        self.leads_to[small] = large;
    }
}
