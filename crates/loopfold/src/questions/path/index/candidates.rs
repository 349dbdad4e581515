//! From segments to the rules that they are made of: every rule below them once, found by a
//! walk down with a mark for each.

use super::Roots;
use crate::RuleId;
use crate::fold::{Fold, Item, Target};
use crate::questions::path::slice::Scratch;
use std::ops::Range;

/// Stretches in order, neighbours as one.
pub(super) fn joined(stretches: impl Iterator<Item = (u64, u64)>) -> Vec<(u64, u64)> {
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (start, end) in stretches {
        match joined.last_mut() {
            Some(last) if last.1 == start => last.1 = end,
            _ => joined.push((start, end)),
        }
    }
    joined
}

/// The rules that some stretches are made of. Of a rule that is not wholly in them, only
/// those items are looked at that are: the others hold nothing of the function, wherever
/// else the rule occurs.
pub(super) struct Candidates<'a> {
    fold: &'a Fold,
    pub(super) rules: Vec<RuleId>,
    /// Which items, for rules that are in the stretches only in part, in any order.
    parts: Vec<(RuleId, Range<usize>)>,
}

impl<'a> Candidates<'a> {
    pub(super) fn new(fold: &'a Fold) -> Self {
        Self { fold, rules: Vec::new(), parts: Vec::new() }
    }

    pub(super) fn find(&mut self, roots: &Roots, stretches: &[(u64, u64)], scratch: &mut Scratch) {
        // Rules to look at, with where they begin if they are cut.
        let mut todo: Vec<(RuleId, Option<u64>)> =
            roots.iter(self.fold).map(|(root, start)| (root, Some(start))).collect();
        while let Some((rule, cut)) = todo.pop() {
            let Some(start) = cut else {
                self.add(rule, self.fold.body(rule), &mut todo, scratch);
                continue;
            };
            let end = start + self.fold.length(rule);
            let first = stretches.partition_point(|stretch| stretch.1 <= start);
            let those = stretches[first..].iter().take_while(|stretch| stretch.0 < end);
            let mut those = those.peekable();
            match those.peek() {
                None => {}
                Some(only) if only.0 <= start && end <= only.1 => {
                    self.add(rule, self.fold.body(rule), &mut todo, scratch);
                }
                Some(_) if scratch.mark(self.fold.rule_node(rule)) => {
                    self.rules.push(rule);
                    self.add_part(rule, start, those, &mut todo);
                }
                Some(_) => {}
            }
        }
    }

    /// A rule that lies within a stretch.
    fn add(
        &mut self,
        rule: RuleId,
        body: &[Item],
        todo: &mut Vec<(RuleId, Option<u64>)>,
        scratch: &mut Scratch,
    ) {
        if scratch.mark(self.fold.rule_node(rule)) {
            self.rules.push(rule);
            todo.extend(body.iter().filter_map(|item| match item.target() {
                Target::Rule(inner) => Some((inner, None)),
                Target::Symbol(_) => None,
            }));
        }
    }

    /// A rule that begins at `start`, of which only some stretches matter.
    fn add_part<'s>(
        &mut self,
        rule: RuleId,
        start: u64,
        stretches: impl Iterator<Item = &'s (u64, u64)>,
        todo: &mut Vec<(RuleId, Option<u64>)>,
    ) {
        let (body, ends, places) =
            (self.fold.body(rule), self.fold.item_ends(rule), self.fold.item_range(rule));
        let mut next = 0;
        for &(from, to) in stretches {
            let (from, to) = (from.saturating_sub(start), to.saturating_sub(start));
            let first = ends.partition_point(|&end| end <= from).max(next);
            next = ends.partition_point(|&end| end < to).saturating_add(1).min(body.len());
            if first >= next {
                continue;
            }
            self.parts.push((rule, places.start + first..places.start + next));
            for index in first..next {
                let Target::Rule(inner) = body[index].target() else { continue };
                let begin = ends[index] - self.fold.item_length(body[index]);
                let is_cut = body[index].times() == 1 && (begin < from || ends[index] > to);
                todo.push((inner, is_cut.then_some(start + begin)));
            }
        }
    }

    /// The items to look at, in order, each with its rule.
    pub(super) fn places(&mut self) -> impl Iterator<Item = (u32, RuleId)> + '_ {
        self.rules.sort_unstable();
        self.parts.sort_unstable_by_key(|(rule, range)| (*rule, range.start));
        self.rules.iter().flat_map(|&rule| {
            let first = self.parts.partition_point(|&(before, _)| before < rule);
            let parts = self.parts[first..].iter().take_while(move |(part, _)| *part == rule);
            let whole = self.parts.get(first).is_none_or(|&(part, _)| part != rule);
            let all = whole.then(|| self.fold.item_range(rule));
            let places = all.into_iter().chain(parts.map(|(_, range)| range.clone())).flatten();
            places.map(move |place| (place as u32, rule))
        })
    }
}
