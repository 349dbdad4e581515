//! Searches for long, rare queries: first for a part of the query, then compares the events
//! around it one by one.
//!
//! A part of 64 events needs one machine word where the whole query needs many. It is
//! taken from around the query's rarest event, so mostly little is left to compare. The
//! occurrences are kept as a list, which is bounded together with the comparing: all of
//! it costs at most a few times as much as the pass over the rules.

use super::matcher::{OccurrenceIndex, OccurrenceSearch, SummaryIndex};
use crate::fold::measure::rule_depths;
use crate::fold::{Fold, symbol_counts};
use crate::questions::query::Query;
use crate::{Result, RuleId};
use hashbrown::HashMap;

/// Where a query ends in each stream, by the stream's root.
pub(super) struct Listed(HashMap<RuleId, Vec<u64>>);

/// Events of a part.
const PART: usize = 64;

/// Items of the fold for each place that may be compared.
const ITEMS_A_PLACE: u64 = 16;

/// Deeper rules make the descent to a place too long. No folder makes such rules, but an
/// archive can contain them.
const DEEPEST: u32 = 1000;

impl Listed {
    /// All occurrences of a query of more events than a part. Returns `None` if there is too
    /// much to compare.
    pub(super) fn of(fold: &Fold, query: &Query) -> Result<Option<Self>> {
        let Some(start) = start_of_part(fold, query) else { return Ok(None) };
        let part = query.part(start..start + PART)?;
        let parts = SummaryIndex::<u64>::new(fold, &part)?;
        let mut listed: HashMap<RuleId, Vec<u64>> =
            fold.streams().iter().map(|stream| (stream.root(), Vec::new())).collect();
        let places = listed.keys().map(|&root| parts.count(root)).fold(0, u64::saturating_add);
        let items = fold.items() as u64;
        let mut comparing = Comparing { fold, query, start: start as u64, room: items };
        if places > items / ITEMS_A_PLACE || rule_depths(fold).into_iter().max() > Some(DEEPEST) {
            return Ok(None);
        }
        for (&root, ends) in &mut listed {
            let Some(found) = comparing.ends_in(root, &parts) else { return Ok(None) };
            *ends = found;
        }
        Ok(Some(Self(listed)))
    }
}

/// Where in the query the part around its rarest event begins.
fn start_of_part(fold: &Fold, query: &Query) -> Option<usize> {
    let counts = symbol_counts(fold).ok()?;
    let count_of = |event: &Vec<crate::Symbol>| {
        event
            .iter()
            .fold(0u64, |sum, symbol| sum.saturating_add(counts.get(symbol.index()).copied().unwrap_or(0)))
    };
    let (rarest, _) = query.events().iter().enumerate().min_by_key(|(_, event)| count_of(event))?;
    Some(rarest.saturating_sub(PART / 2).min(query.len() - PART))
}

struct Comparing<'a> {
    fold: &'a Fold,
    query: &'a Query,
    /// The event of the query at which the part begins.
    start: u64,
    /// How many events may still be compared: one for each item of the fold.
    room: u64,
}

impl Comparing<'_> {
    /// Where the query ends in a rule. Returns `None` if that is too much to compare.
    fn ends_in(&mut self, rule: RuleId, parts: &impl OccurrenceIndex) -> Option<Vec<u64>> {
        let mut search = parts.search(rule);
        let mut ends = Vec::new();
        while let Some(part_end) = search.next_end(&mut 0) {
            let Some(first) = (part_end + 1).checked_sub(PART as u64 + self.start) else { continue };
            let end = first + self.query.len() as u64;
            let events = self.fold.window(rule, first, end).zip(self.query.events());
            let equal = events.take_while(|(event, any)| any.contains(event)).count() as u64;
            self.room = self.room.checked_sub(equal)?;
            if equal == self.query.len() as u64 {
                ends.push(end - 1);
            }
        }
        Some(ends)
    }
}

impl OccurrenceIndex for Listed {
    fn count(&self, rule: RuleId) -> u64 {
        self.0.get(&rule).map_or(0, |ends| ends.len() as u64)
    }

    fn search(&self, rule: RuleId) -> Box<dyn OccurrenceSearch + '_> {
        Box::new(self.0.get(&rule).map_or(&[][..], Vec::as_slice))
    }
}

/// The ends that are still to come.
impl OccurrenceSearch for &[u64] {
    fn next_end(&mut self, skip: &mut u64) -> Option<u64> {
        let passed = (*skip).min(self.len() as u64);
        *skip -= passed;
        let (&end, rest) = self[passed as usize..].split_first()?;
        *self = rest;
        Some(end)
    }

    fn advance_to(&mut self, position: u64) -> u64 {
        let passed = self.partition_point(|&end| end < position);
        *self = &self[passed..];
        passed as u64
    }
}
