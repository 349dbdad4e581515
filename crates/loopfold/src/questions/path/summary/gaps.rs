//! The automaton of a path with gaps, `B1 .. B3`, where any blocks of the frame may come
//! between.
//!
//! Distinct ends are counted: the last blocks with which the path can end within one frame. A
//! gap can be of any length, so only the parts between gaps matter: the first match of the
//! first part, then the first match of the second part behind it, and so on; all matches of the
//! last part count. This is a small automaton. A state is a part and the suffix overlaps of
//! what happened since, and the reachable states are built by the subset construction: as many
//! as the path has blocks, unless `*` makes more of them, up to [`MOST_STATES`].
//!
//! The summary of a stretch is then a table: for each state the one behind it, and the number
//! of ends. Tables are joined state by state and repeated by squaring. Cost: 16 bytes a state
//! for each table, and one look-up for each state in a join.

use super::super::PathQuery;
use super::frame::{FrameMonoid, FrameState, FrameSummary};
use crate::fold::measure::power;
use crate::questions::query::Query;
use crate::{Error, Result, Symbol};
use hashbrown::HashMap;
use std::convert::Infallible;
use std::ops::Range;
use std::sync::Arc;

/// The most states that the automaton of a path can have.
const MOST_STATES: usize = 4096;

/// The most steps that all its states together can have: 64 MB.
const MOST_STEPS: usize = 1 << 22;

/// The automaton of a path with gaps. State 0 is the initial state of a frame.
#[derive(Debug, Default, PartialEq)]
pub(in super::super) struct Automaton {
    states: usize,
    /// The class of each block of the path; all others are of class 0.
    classes: HashMap<Symbol, u32>,
    /// For each class and in it for each state where it leads.
    steps: Vec<Step>,
    /// For each state how many blocks of the path are matched at most.
    matched: Vec<usize>,
}

/// The next state, and how many ends the transition has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Step {
    pub(in super::super) state: GapState,
    pub(in super::super) ends: u64,
}

/// A state of the automaton.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct GapState(u32);

impl Automaton {
    /// The automaton of a path that has gaps before these of its blocks.
    pub(in super::super) fn new(pattern: &Query, gaps: &[usize]) -> Result<Self> {
        let (classes, places) = classes_of(pattern);
        let parts = parts_of(pattern.len(), gaps);
        let mut known: HashMap<Subset, u32> = HashMap::new();
        let mut subsets = vec![Subset { part: 0, suffixes: Vec::new() }];
        known.insert(subsets[0].clone(), 0);
        // For each state and in it for each class; transposed in the end.
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
                    "this path with gaps needs too many states; use fewer * or fewer blocks",
                ));
            }
            at += 1;
        }
        let states = subsets.len();
        let step = |index: usize| by_state[index % states * places.len() + index / states];
        let steps = (0..by_state.len()).map(step).collect();
        let longest =
            |subset: &Subset| parts[subset.part].start + subset.suffixes.last().copied().unwrap_or(0);
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
pub(in super::super) fn parts_of(length: usize, gaps: &[usize]) -> Vec<Range<usize>> {
    let starts = std::iter::once(0).chain(gaps.iter().copied());
    let ends = gaps.iter().copied().chain([length]);
    starts.zip(ends).map(|(start, end)| start..end).collect()
}

/// A state during construction: the part that is searched for, and how many of its first blocks
/// end what has happened, in order; not none and not all.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Subset {
    part: usize,
    suffixes: Vec<usize>,
}

impl Subset {
    /// What it becomes with a block that stands for these places of the path, and how many
    /// ends that makes.
    fn after(&self, places: &[usize], parts: &[Range<usize>]) -> (Self, u64) {
        let part = &parts[self.part];
        let stands_for = |suffix: usize| places.binary_search(&(part.start + suffix)).is_ok();
        let suffixes = std::iter::once(0).chain(self.suffixes.iter().copied());
        let mut suffixes: Vec<usize> =
            suffixes.filter(|&suffix| stands_for(suffix)).map(|suffix| suffix + 1).collect();
        if suffixes.last() != Some(&part.len()) {
            return (Self { part: self.part, suffixes }, 0);
        }
        if self.part + 1 < parts.len() {
            return (Self { part: self.part + 1, suffixes: Vec::new() }, 0);
        }
        suffixes.pop();
        (Self { part: self.part, suffixes }, 1)
    }
}

impl FrameState for GapState {
    type Summary = Table;
    type Monoid = Tables;

    fn heap_words(&self) -> usize {
        0
    }
}

/// The transition of each state.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) struct Table(Box<[Step]>);

impl FrameSummary<GapState> for Table {
    #[inline]
    fn count_after(&self, state: &GapState) -> u64 {
        self.0[state.0 as usize].ends
    }

    fn heap_words(&self) -> usize {
        2 * self.0.len()
    }
}

/// The measure of [`Table`]s.
#[derive(Clone, Debug)]
pub(in super::super) struct Tables {
    automaton: Arc<Automaton>,
    reset: Table,
}

impl FrameMonoid<GapState> for Tables {
    fn new(query: &PathQuery) -> Self {
        let automaton = query.automaton();
        let reset = Table(vec![Step::default(); automaton.states].into());
        Self { automaton, reset }
    }

    fn empty(&self) -> Table {
        let stay = |state| Step { state: GapState(state), ends: 0 };
        Table((0..self.automaton.states as u32).map(stay).collect())
    }

    fn symbol(&self, symbol: Symbol) -> Table {
        let class = self.automaton.classes.get(&symbol).copied().unwrap_or(0);
        Table(self.automaton.steps_of(class).into())
    }

    fn reset(&self) -> &Table {
        &self.reset
    }

    fn append(&self, table: &mut Table, next: &Table) {
        for step in &mut table.0 {
            let after = next.0[step.state.0 as usize];
            *step = Step { state: after.state, ends: step.ends.saturating_add(after.ends) };
        }
    }

    #[inline]
    fn follow(&self, state: &mut GapState, table: &Table) {
        *state = table.0[state.0 as usize].state;
    }

    fn repeated(&self, table: &Table, times: u64) -> Table {
        let append = |table: &mut Table, next: &Table| {
            self.append(table, next);
            Ok(())
        };
        let Ok::<_, Infallible>(power) = power(self.empty(), table.clone(), times, append);
        power
    }

    fn matched(&self, state: &GapState) -> usize {
        self.automaton.matched[state.0 as usize]
    }

    fn most_heap_words(&self) -> usize {
        2 * self.automaton.states
    }
}
