//! Innermost first: Xu's greedy order (figure 1), and the guarded order of section VII.
//!
//! Takes the shortest loop body first: all loops with bodies of one length are replaced by one
//! symbol per body and count, then it starts again from length 1, until no loop is left.
//!
//! Literally, every round reads the whole stream once per body length. Here
//! * a body length is tested at every `length`-th position only, since a loop covers at
//!   least two of them;
//! * lengths known to be done are tested again only around symbols that are new, since a
//!   new loop must contain one;
//! * when that has cost as much as finding all runs would, the runs give the next length.
//!
//! The invariant: a loop whose body is no longer than `done` symbols contains a fresh
//! symbol, and its body is longer than what that symbol was checked for.
//!
//! Cost: near-linear plus one pass over the rest of the stream per round. Traces take a
//! few rounds; a stream made to have loops of √n different lengths takes √n rounds, and
//! n^1.5 in all. The working copy takes 4 bytes an event, a loop the length of its body.

use super::rotations::KnownBodies;
use super::select::{Selection, Stretch};
use super::{Folder, MinTimes, Settings, Ties};
use crate::fold::{FoldBuilder, Item};
use crate::interrupt;
use crate::repeats::{Runs, common_prefix, common_suffix};
use crate::{Error, Result, RuleId, Symbol};
use hashbrown::HashTable;
use std::borrow::Cow;
use std::hash::BuildHasher;

/// Takes the shortest loop body first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Innermost {
    settings: Settings,
}

impl Innermost {
    super::loop_setters!();
}

impl Folder for Innermost {
    fn name(&self) -> &'static str {
        "innermost"
    }

    fn describe(&self) -> String {
        self.settings.describe(self.name())
    }

    fn fold(&self, stream: &[Symbol], builder: &mut FoldBuilder) -> Result<RuleId> {
        super::check_length(stream)?;
        Reduction::new(stream, self.settings, None).run()?.rules(builder)
    }
}

/// Takes the shortest loop body first, the leftmost of equally long ones, and rotates a body
/// that is a rotation of an earlier one to match it, so that an outer loop is not lost because
/// its iterations were divided differently.
#[derive(Clone, Copy, Debug, Default)]
pub struct Guarded {
    min_times: MinTimes,
}

impl Guarded {
    setters! {
        /// How many iterations a loop must have; the paper suggests 4.
        min_times: MinTimes,
    }
}

impl Folder for Guarded {
    fn name(&self) -> &'static str {
        "guarded"
    }

    fn describe(&self) -> String {
        Settings::from(self.min_times).describe(self.name())
    }

    fn fold(&self, stream: &[Symbol], builder: &mut FoldBuilder) -> Result<RuleId> {
        super::check_length(stream)?;
        let settings = Settings { ties: Ties::Left, min_times: self.min_times };
        Reduction::new(stream, settings, Some(KnownBodies::default())).run()?.rules(builder)
    }
}

/// A symbol that stands for a loop since a recent round.
#[derive(Clone, Copy)]
struct Fresh {
    position: u32,
    /// The body lengths up to this one were tested around it.
    checked: u32,
}

struct Reduction<'a> {
    /// The stream, borrowed until the first loops are replaced.
    current: Cow<'a, [u32]>,
    loops: LoopTable,
    settings: Settings,
    known: Option<KnownBodies>,
    /// In order of their positions.
    fresh: Vec<Fresh>,
    done: usize,
    /// Tests made since the runs were last found.
    tests: usize,
}

impl<'a> Reduction<'a> {
    fn new(stream: &'a [Symbol], settings: Settings, known: Option<KnownBodies>) -> Self {
        let current: &[u32] = bytemuck::TransparentWrapper::peel_slice(stream);
        let first = current.iter().max().map_or(0, |&symbol| symbol + 1);
        let (current, loops) = (Cow::Borrowed(current), LoopTable::new(first));
        Self { current, loops, settings, known, fresh: Vec::new(), done: 0, tests: 0 }
    }

    fn run(mut self) -> Result<Self> {
        while let Some((body, found)) = self.next_length() {
            interrupt::poll();
            if !found.is_empty() {
                self.reduce(body, found)?;
            }
        }
        Ok(self)
    }

    /// The next body length to look at, and the stretches with that period that can be loops.
    /// Returns `None` when no length is left.
    fn next_length(&mut self) -> Option<(usize, Vec<Stretch>)> {
        if self.tests > 64 + 3 * self.current.len() {
            return self.shortest_of_runs();
        }
        let checked = self.fresh.iter().map(|fresh| fresh.checked as usize).min();
        match checked {
            Some(checked) if checked < self.done => Some((checked + 1, self.around_fresh(checked + 1))),
            _ => {
                self.fresh.clear();
                self.done += 1;
                (self.done <= self.current.len() / 2).then(|| (self.done, self.everywhere(self.done)))
            }
        }
    }

    fn shortest_of_runs(&mut self) -> Option<(usize, Vec<Stretch>)> {
        self.tests = 0;
        self.fresh.clear();
        let (period, runs) = Runs::of(&self.current).shortest_period(1, self.settings.min_times.get())?;
        self.done = period as usize;
        let stretches = runs.into_iter().map(|run| Stretch { start: run.start, end: run.end });
        Some((self.done, stretches.collect()))
    }

    fn everywhere(&mut self, body: usize) -> Vec<Stretch> {
        let mut found = Vec::new();
        let current = &self.current[..];
        let mut position = 0;
        while position + body < current.len() {
            let mut next = position + body;
            if current[position] == current[next]
                && let Some(stretch) = self.stretch_at(position, body)
            {
                // The tests inside the stretch would only find it again.
                let end = stretch.end as usize;
                next = position + ((end - body - position) / body).max(1) * body;
                self.keep(stretch, body, &mut found);
            }
            position = next;
        }
        self.tests += current.len() / body + 16;
        found.dedup();
        found
    }

    fn around_fresh(&mut self, body: usize) -> Vec<Stretch> {
        let mut found = Vec::new();
        let mut fresh = std::mem::take(&mut self.fresh);
        let mut searched = 0;
        for fresh in fresh.iter_mut().filter(|fresh| (fresh.checked as usize) < body) {
            fresh.checked = body as u32;
            self.tests += 1;
            let position = fresh.position as usize;
            if position + body <= searched {
                continue;
            }
            for position in [Some(position), position.checked_sub(body)].into_iter().flatten() {
                let matches = self.current.get(position + body) == Some(&self.current[position]);
                if matches && let Some(stretch) = self.stretch_at(position, body) {
                    searched = searched.max(stretch.end as usize);
                    self.keep(stretch, body, &mut found);
                }
            }
        }
        self.fresh = fresh;
        found.sort_unstable();
        found.dedup();
        found
    }

    fn keep(&self, stretch: Stretch, body: usize, found: &mut Vec<Stretch>) {
        if (stretch.end - stretch.start) as usize / body >= self.settings.min_times.get() as usize {
            found.push(stretch);
        }
    }

    /// The longest stretch with this period around two positions that hold the same
    /// symbol, if it is at least two periods long.
    fn stretch_at(&self, position: usize, body: usize) -> Option<Stretch> {
        let current = &self.current[..];
        let right = common_prefix(&current[position..], &current[position + body..]);
        if body.saturating_sub(right) > position {
            return None;
        }
        let left = common_suffix(&current[..position], &current[..position + body]);
        (left + right >= body)
            .then(|| Stretch { start: (position - left) as u32, end: (position + body + right) as u32 })
    }

    /// Replaces the loops chosen among `found`.
    fn reduce(&mut self, body: usize, mut found: Vec<Stretch>) -> Result<()> {
        let selection = Selection {
            period: body as u32,
            ties: self.settings.ties,
            min_times: self.settings.min_times.get(),
        };
        let mut chosen: Vec<Stretch> = Vec::new();
        let Self { current, known, .. } = self;
        selection.choose(&mut found, |stretch| {
            let taken = match known {
                None => stretch,
                Some(known) => rotate(
                    stretch,
                    known.shift(&current[stretch.start as usize..][..body]),
                    selection,
                    current,
                ),
            };
            chosen.push(taken);
            taken
        });
        chosen.sort_unstable();
        self.replace(body, &chosen)
    }

    /// Moves everything together in one pass, with a new symbol for each loop.
    fn replace(&mut self, body: usize, chosen: &[Stretch]) -> Result<()> {
        let mut old_fresh = std::mem::take(&mut self.fresh).into_iter().peekable();
        let mut fresh: Vec<Fresh> = Vec::with_capacity(chosen.len() + old_fresh.len());
        let mut rewriting = Rewriting::new(std::mem::take(&mut self.current));
        let mut read = 0;
        for stretch in chosen {
            let (start, end) = (stretch.start as usize, stretch.end as usize);
            let moved = (read - rewriting.written) as u32;
            while let Some(old) = old_fresh.next_if(|old| old.position < stretch.start) {
                fresh.push(Fresh { position: old.position - moved, ..old });
            }
            while old_fresh.next_if(|old| old.position < stretch.end).is_some() {}
            let times = ((end - start) / body) as u32;
            let symbol = self.loops.symbol(&rewriting.old[start..start + body], times)?;
            rewriting.copy(read..start);
            fresh.push(Fresh { position: rewriting.written as u32, checked: 0 });
            rewriting.push(symbol);
            read = end;
        }
        let moved = (read - rewriting.written) as u32;
        fresh.extend(old_fresh.map(|old| Fresh { position: old.position - moved, ..old }));
        rewriting.copy(read..rewriting.old.len());
        self.current = Cow::Owned(rewriting.finish());
        self.fresh = fresh;
        Ok(())
    }

    fn rules(self, builder: &mut FoldBuilder) -> Result<RuleId> {
        let Self { current, loops, .. } = self;
        let first = loops.first;
        let mut items: Vec<Item> = Vec::with_capacity(loops.entries.len());
        let item_of = |items: &[Item], symbol: u32| match symbol.checked_sub(first) {
            None => Item::once(Symbol::from_raw(symbol)),
            Some(index) => items[index as usize],
        };
        let mut body = Vec::new();
        for index in 0..loops.entries.len() {
            body.clear();
            body.extend(loops.body(index).iter().map(|&symbol| item_of(&items, symbol)));
            let item = builder.repeat(&body, loops.entries[index].times.into())?;
            items.push(item);
        }
        let root: Vec<Item> = current.iter().map(|&symbol| item_of(&items, symbol)).collect();
        drop((current, loops));
        builder.root_rule(root)
    }
}

/// A stream being rewritten to a shorter one: in place, or, as long as it is borrowed,
/// beside it, since what is left of a stream of loops is short.
struct Rewriting<'a> {
    old: Cow<'a, [u32]>,
    new: Vec<u32>,
    written: usize,
}

impl<'a> Rewriting<'a> {
    fn new(old: Cow<'a, [u32]>) -> Self {
        Self { old, new: Vec::new(), written: 0 }
    }

    fn copy(&mut self, range: std::ops::Range<usize>) {
        let length = range.len();
        match &mut self.old {
            Cow::Borrowed(old) => self.new.extend_from_slice(&old[range]),
            Cow::Owned(old) => old.copy_within(range, self.written),
        }
        self.written += length;
    }

    fn push(&mut self, symbol: u32) {
        match &mut self.old {
            Cow::Borrowed(_) => self.new.push(symbol),
            Cow::Owned(old) => old[self.written] = symbol,
        }
        self.written += 1;
    }

    fn finish(self) -> Vec<u32> {
        match self.old {
            Cow::Borrowed(_) => self.new,
            Cow::Owned(mut old) => {
                old.truncate(self.written);
                old
            }
        }
    }
}

/// The stretch, beginning `shift` later, if enough iterations remain.
fn rotate(stretch: Stretch, shift: usize, selection: Selection, current: &[u32]) -> Stretch {
    let body = selection.period as usize;
    let start = stretch.start as usize + shift;
    // The part iteration behind the whole ones may complete another one when rotated.
    let word = &current[start..start + body];
    let times = current[start..].chunks_exact(body).take_while(|chunk| *chunk == word).count();
    if times < selection.min_times as usize {
        return stretch;
    }
    Stretch { start: start as u32, end: (start + times * body) as u32 }
}

/// The loops found so far: one symbol per body and count, starting after the symbols
/// of the stream.
struct LoopTable {
    first: u32,
    /// The bodies end to end.
    bodies: Vec<u32>,
    entries: Vec<LoopEntry>,
    index: HashTable<u32>,
    hasher: foldhash::fast::RandomState,
}

#[derive(Clone, Copy)]
struct LoopEntry {
    end: usize,
    times: u32,
}

impl LoopTable {
    fn new(first: u32) -> Self {
        Self {
            first,
            bodies: Vec::new(),
            entries: Vec::new(),
            index: HashTable::new(),
            hasher: Default::default(),
        }
    }

    fn body(&self, index: usize) -> &[u32] {
        body_of(&self.bodies, &self.entries, index)
    }

    fn symbol(&mut self, body: &[u32], times: u32) -> Result<u32> {
        let hash = self.hasher.hash_one((body, times));
        let same =
            |&index: &u32| self.entries[index as usize].times == times && self.body(index as usize) == body;
        if let Some(&index) = self.index.find(hash, same) {
            return Ok(self.first + index);
        }
        let index = self.entries.len() as u32;
        let symbol = self.first.checked_add(index).ok_or_else(|| Error::limit("too many different loops"))?;
        self.bodies.extend_from_slice(body);
        self.entries.push(LoopEntry { end: self.bodies.len(), times });
        let (bodies, entries, hasher) = (&self.bodies, &self.entries, &self.hasher);
        self.index.insert_unique(hash, index, |&index| {
            let index = index as usize;
            hasher.hash_one((body_of(bodies, entries, index), entries[index].times))
        });
        Ok(symbol)
    }
}

fn body_of<'a>(bodies: &'a [u32], entries: &[LoopEntry], index: usize) -> &'a [u32] {
    let start = if index == 0 { 0 } else { entries[index - 1].end };
    &bodies[start..entries[index].end]
}
