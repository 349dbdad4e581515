//! Paths with gaps: `B1 .. B3`, where any blocks of the frame may come between.
//!
//! What is counted is distinct ends: the last blocks with which some way through the path
//! ends, within one frame. A way that has come past a gap can wait there for as long as
//! it likes, so only the parts between gaps matter: the first part is looked for until it
//! is found once, then the second one behind it, and so on; of the last part all
//! occurrences count. That is a small automaton. Its states are a part and the endings of
//! what happened since, made by subsets as far as they can be reached: as many as the path
//! has blocks, unless `*` makes more of them, up to [`MOST_STATES`].
//!
//! What a stretch does to a path is then a table: for each state the one behind it, and
//! how many ends there were. Tables are joined state by state and repeated by squaring.
//! Cost: 16 bytes a state for each table, and a look at each of them for a join.

use super::PathQuery;
use super::frame::{FrameState, FrameWord, FrameWords};
use crate::questions::Query;
use crate::{Error, Result, Symbol};
use hashbrown::HashMap;
use std::sync::Arc;

/// The most states that the automaton of a path can have.
const MOST_STATES: usize = 4096;

/// The most steps that all its states together can have: 64 MB.
const MOST_STEPS: usize = 1 << 22;

/// The automaton of a path with gaps. State 0 is that of a frame just entered.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Automaton {
    states: usize,
    /// The class of each block of the path; all others are of class 0.
    classes: HashMap<Symbol, u32>,
    /// For each class and in it for each state where it leads.
    steps: Vec<Step>,
    /// For each state how many blocks of the path are matched at the most.
    matched: Vec<usize>,
}

/// Where a state leads, and how many ends there are on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) state: GapState,
    pub(super) ends: u64,
}

/// A state of the automaton.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct GapState(u32);

impl Automaton {
    /// The automaton of a path that has gaps before these of its blocks.
    pub(super) fn new(pattern: &Query, gaps: &[usize]) -> Result<Self> {
        let (classes, places) = classes_of(pattern);
        let parts = parts_of(pattern.len(), gaps);
        let mut known: HashMap<Subset, u32> = HashMap::new();
        let mut subsets = vec![Subset { part: 0, endings: Vec::new() }];
        known.insert(subsets[0].clone(), 0);
        // For each state and in it for each class; turned around in the end.
        let mut by_state: Vec<Step> = Vec::new();
        let mut at = 0;
        while let Some(subset) = subsets.get(at).cloned() {
            for places in &places {
                let (next, ends) = subset.after(places, &parts);
                let state = match known.get(&next) {
                    Some(&state) => state,
                    None => {
                        let state = subsets.len() as u32;
                        known.insert(next.clone(), state);
                        subsets.push(next);
                        state
                    }
                };
                by_state.push(Step { state: GapState(state), ends });
            }
            if subsets.len() > MOST_STATES || by_state.len() > MOST_STEPS {
                return Err(Error::limit(
                    "this path with gaps can go on in too many ways at once; use fewer * or fewer blocks",
                ));
            }
            at += 1;
        }
        let states = subsets.len();
        let step = |index: usize| by_state[index % states * places.len() + index / states];
        let steps = (0..by_state.len()).map(step).collect();
        let longest =
            |subset: &Subset| parts[subset.part].start + subset.endings.last().copied().unwrap_or(0);
        let matched = subsets.iter().map(longest).collect();
        Ok(Self { states, classes, steps, matched })
    }

    fn steps_of(&self, class: u32) -> &[Step] {
        &self.steps[class as usize * self.states..][..self.states]
    }
}

/// The blocks of the path by class, and the places of the path that each class stands for,
/// in order. Class 0 stands for none.
fn classes_of(pattern: &Query) -> (HashMap<Symbol, u32>, Vec<Vec<usize>>) {
    let mut of_symbol: HashMap<Symbol, Vec<usize>> = HashMap::new();
    for (place, block) in pattern.events().iter().enumerate() {
        block.iter().for_each(|&symbol| of_symbol.entry(symbol).or_default().push(place));
    }
    let mut places = vec![Vec::new()];
    let mut known: HashMap<Vec<usize>, u32> = HashMap::new();
    let mut classes = HashMap::new();
    let mut sorted: Vec<(Symbol, Vec<usize>)> = of_symbol.into_iter().collect();
    sorted.sort_unstable();
    for (symbol, of) in sorted {
        let class = *known.entry(of).or_insert_with_key(|of| {
            places.push(of.clone());
            (places.len() - 1) as u32
        });
        classes.insert(symbol, class);
    }
    (classes, places)
}

/// The parts of a path between its gaps.
fn parts_of(length: usize, gaps: &[usize]) -> Vec<std::ops::Range<usize>> {
    let starts = std::iter::once(0).chain(gaps.iter().copied());
    let ends = gaps.iter().copied().chain([length]);
    starts.zip(ends).map(|(start, end)| start..end).collect()
}

/// A state while it is made: the part that is looked for, and how many of its first blocks
/// end what has happened, in order; not none and not all.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Subset {
    part: usize,
    endings: Vec<usize>,
}

impl Subset {
    /// What it becomes with a block that stands for these places of the path, and how many
    /// ends that makes.
    fn after(&self, places: &[usize], parts: &[std::ops::Range<usize>]) -> (Self, u64) {
        let part = &parts[self.part];
        let stands_for = |ending: usize| places.binary_search(&(part.start + ending)).is_ok();
        let endings = std::iter::once(0).chain(self.endings.iter().copied());
        let mut endings: Vec<usize> =
            endings.filter(|&ending| stands_for(ending)).map(|ending| ending + 1).collect();
        if endings.last() != Some(&part.len()) {
            return (Self { part: self.part, endings }, 0);
        }
        if self.part + 1 < parts.len() {
            return (Self { part: self.part + 1, endings: Vec::new() }, 0);
        }
        endings.pop();
        (Self { part: self.part, endings }, 1)
    }
}

impl FrameState for GapState {
    type Word = Table;
    type Words = Tables;

    fn words(&self) -> usize {
        0
    }
}

/// What blocks do to each state.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Table(Box<[Step]>);

impl FrameWord<GapState> for Table {
    #[inline]
    fn count_after(&self, state: &GapState) -> u64 {
        self.0[state.0 as usize].ends
    }

    fn words(&self) -> usize {
        2 * self.0.len()
    }
}

/// The measure of [`Table`]s.
#[derive(Clone, Debug)]
pub(super) struct Tables {
    automaton: Arc<Automaton>,
    seam: Table,
}

impl FrameWords<GapState> for Tables {
    fn new(query: &PathQuery) -> Self {
        let automaton = query.automaton();
        let seam = Table(vec![Step::default(); automaton.states].into());
        Self { automaton, seam }
    }

    fn empty(&self) -> Table {
        let stay = |state| Step { state: GapState(state), ends: 0 };
        Table((0..self.automaton.states as u32).map(stay).collect())
    }

    fn symbol(&self, symbol: Symbol) -> Table {
        let class = self.automaton.classes.get(&symbol).copied().unwrap_or(0);
        Table(self.automaton.steps_of(class).into())
    }

    fn seam(&self) -> &Table {
        &self.seam
    }

    fn append(&self, word: &mut Table, next: &Table) {
        for step in &mut word.0 {
            let after = next.0[step.state.0 as usize];
            *step = Step { state: after.state, ends: step.ends.saturating_add(after.ends) };
        }
    }

    #[inline]
    fn follow(&self, state: &mut GapState, word: &Table) {
        *state = word.0[state.0 as usize].state;
    }

    fn repeated(&self, word: &Table, times: u64) -> Table {
        let (mut square, mut rest) = (word.clone(), times);
        let mut result = self.empty();
        while rest > 0 {
            if rest & 1 == 1 {
                self.append(&mut result, &square);
            }
            rest >>= 1;
            if rest > 0 {
                let once = square.clone();
                self.append(&mut square, &once);
            }
        }
        result
    }

    fn matched(&self, state: &GapState) -> usize {
        self.automaton.matched[state.0 as usize]
    }

    fn memory(&self) -> usize {
        2 * self.automaton.states
    }
}

/// The latest beginning of a path with gaps, seen from its end: told the blocks of its
/// frame one after the other, from the last to the first.
pub(super) struct Beginning<'q> {
    blocks: &'q [Vec<Symbol>],
    parts: Vec<std::ops::Range<usize>>,
    /// The part that is looked for, and how many blocks of it are still missing, for each
    /// way that is open: those that have just come past a gap are not among them.
    missing: Vec<usize>,
    part: usize,
}

impl<'q> Beginning<'q> {
    pub(super) fn new(blocks: &'q [Vec<Symbol>], gaps: &[usize]) -> Self {
        let parts = parts_of(blocks.len(), gaps);
        let part = parts.len() - 1;
        // The last part ends here and nowhere else.
        let missing = vec![parts[part].len()];
        Self { blocks, parts, missing, part }
    }

    /// The part that is looked for, if nothing of it has been seen.
    pub(super) fn waiting(&self) -> Option<usize> {
        (self.missing.is_empty() && self.part + 1 < self.parts.len()).then_some(self.part)
    }

    /// True if no block can make it a path any more.
    pub(super) fn is_lost(&self) -> bool {
        self.missing.is_empty() && self.part + 1 == self.parts.len()
    }

    /// Passes a block; true if the path begins with it.
    pub(super) fn pass(&mut self, block: Symbol) -> bool {
        let part = self.parts[self.part].clone();
        let fits = |missing: &usize| self.blocks[part.start + missing - 1].binary_search(&block).is_ok();
        let waiting = (self.part + 1 < self.parts.len()).then_some(part.len());
        let mut missing: Vec<usize> = self.missing.drain(..).chain(waiting).collect();
        missing.retain(fits);
        missing.iter_mut().for_each(|missing| *missing -= 1);
        if missing.first() == Some(&0) {
            let Some(before) = self.part.checked_sub(1) else { return true };
            self.part = before;
            missing.clear();
        }
        self.missing = missing;
        false
    }
}
