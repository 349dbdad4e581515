//! Summarizes the matches of a path of one function in a stretch of a trace: the measure that
//! finds paths.
//!
//! Calls interrupt a path and frames are distinguished by nesting, so there is a summary for
//! each level. A stretch is described by
//! * its [`Brackets`]: how many frames it leaves that it did not enter, and how many it enters
//!   and does not leave;
//! * what happens *below*: in the frames that it leaves and in the one below them, by level;
//!   level 0 is the frame in which it begins. What function these belong to is not known;
//! * the *states* of the path in those frames of the function that it enters and does not
//!   leave;
//! * how often the path occurs in frames that it enters itself, left or not.
//!
//! `u` and `v` concatenated: what `v` does below lands in the open frames of `u`, the innermost
//! first, and where such a frame is of the function, occurrences may end there. The rest goes
//! to the levels below `u`. Blocks without a known frame never count: a path occurs only where
//! the function was seen to be entered.
//!
//! Levels are run-length: neighbours with the same value are one. So n nested calls are one run
//! for any n, and only levels that differ take memory. This is limited for each summary, so a
//! loop that enters more than it leaves cannot exhaust memory.
//!
//! A join costs a dozen instructions for each run of the stretch on the right and for each
//! one that it closes on the left.

pub(super) mod frame;
pub(super) mod gaps;
mod runs;
mod store;

use super::PathQuery;
use super::brackets::{Brackets, HasBlock};
use super::functions::Step;
use crate::emit::Terminal;
use crate::fold::Measure;
use crate::fold::measure::power;
use crate::{Error, Result, Symbol};
use frame::{FrameMonoid as _, FrameState, FrameSummary as _, MonoidOf, SummaryOf};
use hashbrown::HashMap;
use runs::{Run, Runs, pop, push};
pub(super) use store::{StoreIndex, SummaryStore};

/// The frames that a stretch enters and does not leave, from the outermost.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Frames<S> {
    brackets: Brackets,
    /// Those of the function, with the state of the path in them.
    states: Vec<Run<S>>,
}

/// The matches of a path of a function in a stretch.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct NestedSummary<S: FrameState> {
    /// Occurrences in frames that are entered.
    count: u64,
    frames: Frames<S>,
    /// What happens in frames that are not entered.
    below: Vec<Run<SummaryOf<S>>>,
}

/// A summary whose lists are kept elsewhere.
#[derive(Debug)]
pub(super) struct SummaryView<'a, S: FrameState> {
    brackets: Brackets,
    pub(super) count: u64,
    below: Runs<'a, SummaryOf<S>>,
    states: Runs<'a, S>,
}

impl<S: FrameState> Clone for SummaryView<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: FrameState> Copy for SummaryView<'_, S> {}

impl<S: FrameState> SummaryView<'_, S> {
    /// The summary of no events.
    const NOTHING: Self = Self {
        brackets: Brackets { leaves: 0, enters: 0, fact: () },
        count: 0,
        below: Runs::NONE,
        states: Runs::NONE,
    };

    /// True if it changes no frame and nothing happens in the one it begins in.
    fn is_closed(&self) -> bool {
        self.brackets == Brackets::default() && self.below.is_empty()
    }

    /// How its calls nest, and whether something happens in the lowest frame it reaches.
    pub(super) fn brackets(&self) -> Brackets<HasBlock> {
        let Brackets { leaves, enters, .. } = self.brackets;
        Brackets::new(leaves, enters, HasBlock(self.in_lowest().is_some()))
    }

    /// What happens in the lowest frame it reaches, after all that it leaves.
    #[inline]
    fn in_lowest(&self) -> Option<&SummaryOf<S>> {
        self.below.last().filter(|run| run.end() == self.brackets.leaves + 1).map(|run| run.value)
    }
}

impl<S: FrameState> Frames<S> {
    /// How many frames are open.
    #[inline]
    fn open(&self) -> u64 {
        self.brackets.enters
    }

    /// How many frames of the function are open.
    pub(super) fn depth(&self) -> u64 {
        self.states.iter().map(|run| run.levels).fold(0, u64::saturating_add)
    }

    /// How many occurrences end in a stretch that follows.
    #[inline]
    pub(super) fn count_in(&self, next: SummaryView<'_, S>) -> u64 {
        next.count.saturating_add(self.count_below(next.below))
    }

    /// How many occurrences end in blocks that land in these frames.
    #[inline]
    fn count_below(&self, below: Runs<'_, SummaryOf<S>>) -> u64 {
        let mut count = 0u64;
        // The states that are not yet passed, from the innermost.
        let mut states = &self.states[..];
        for blocks in below.iter() {
            let Some(above) = self.open().checked_sub(blocks.first).filter(|&above| above > 0) else {
                break;
            };
            let lowest = self.open().saturating_sub(blocks.end());
            while let Some((state, others)) = states.split_last() {
                let levels = state.end().min(above).saturating_sub(state.first.max(lowest));
                if levels > 0 {
                    let each = blocks.value.count_after(&state.value);
                    count = count.saturating_add(each.saturating_mul(levels));
                }
                if state.first < lowest {
                    break;
                }
                states = others;
            }
        }
        count
    }

    /// Advances the state past a stretch.
    #[inline]
    pub(super) fn follow(&mut self, next: SummaryView<'_, S>, monoid: &MonoidOf<S>) {
        self.leave(next.brackets.leaves);
        if let Some(blocks) = next.in_lowest()
            && self.innermost().is_some()
        {
            self.step(blocks, monoid);
        }
        self.enter(next);
    }

    /// The state of the innermost frame, if that is of the function.
    #[inline]
    fn innermost(&self) -> Option<&S> {
        self.states.last().filter(|state| state.end() == self.open()).map(|state| &state.value)
    }

    /// Leaves the innermost frames.
    #[inline]
    fn leave(&mut self, frames: u64) {
        if frames == 0 {
            return;
        }
        self.brackets.leave(frames);
        let open = self.open();
        while self.states.last().is_some_and(|state| state.first >= open) {
            self.states.pop();
        }
        if let Some(last) = self.states.last_mut() {
            last.levels = last.levels.min(open - last.first);
        }
    }

    /// Something happens in the innermost frame, which is of the function.
    #[inline]
    fn step(&mut self, blocks: &SummaryOf<S>, monoid: &MonoidOf<S>) {
        match &mut self.states[..] {
            [.., below, last] if last.levels == 1 => {
                monoid.follow(&mut last.value, blocks);
                if below.end() == last.first && below.value == last.value {
                    below.levels += 1;
                    self.states.pop();
                }
            }
            [only] if only.levels == 1 => monoid.follow(&mut only.value, blocks),
            _ => {
                if let Some(mut state) = pop(&mut self.states) {
                    monoid.follow(&mut state, blocks);
                    let innermost = self.open() - 1;
                    push(&mut self.states, Run::one(innermost, state));
                }
            }
        }
    }

    /// Opens the frames that a stretch leaves open.
    #[inline]
    fn enter(&mut self, next: SummaryView<'_, S>) {
        for state in next.states.iter() {
            let (first, levels) = (self.open() + state.first, state.levels);
            push(&mut self.states, Run { first, levels, value: state.value.clone() });
        }
        self.brackets.enter(next.brackets.enters);
    }
}

impl<S: FrameState> NestedSummary<S> {
    pub(super) fn view(&self) -> SummaryView<'_, S> {
        SummaryView {
            brackets: self.frames.brackets,
            count: self.count,
            below: Runs::of(&self.below),
            states: Runs::of(&self.frames.states),
        }
    }

    /// Makes it that of no events, and keeps the memory.
    pub(super) fn clear(&mut self) {
        (self.count, self.frames.brackets) = (0, Brackets::default());
        self.frames.states.clear();
        self.below.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0 && self.view().is_closed()
    }

    /// How many runs of levels it has.
    fn runs(&self) -> usize {
        self.below.len() + self.frames.states.len()
    }

    /// Adds blocks of the frame that is innermost at the end.
    #[inline]
    pub(super) fn append_blocks(&mut self, blocks: &SummaryOf<S>, monoid: &MonoidOf<S>) {
        if self.frames.open() == 0 {
            self.append_below(self.frames.brackets.leaves, blocks, monoid);
        } else if let Some(state) = self.frames.innermost() {
            self.count = self.count.saturating_add(blocks.count_after(state));
            self.frames.step(blocks, monoid);
        }
    }

    /// Joins a stretch to the end.
    #[inline]
    fn append(&mut self, next: SummaryView<'_, S>, monoid: &MonoidOf<S>) {
        self.count = self.count.saturating_add(next.count);
        if let Some(blocks) = next.below.one {
            self.frames.leave(blocks.first);
            self.append_blocks(blocks.value, monoid);
            self.frames.leave(next.brackets.leaves - blocks.first);
        } else if next.below.is_empty() {
            self.frames.leave(next.brackets.leaves);
        } else {
            return self.append_levels(next, monoid);
        }
        self.frames.enter(next);
    }

    /// As [`append`](Self::append), with blocks at any number of levels, without what
    /// occurs in the stretch itself.
    fn append_levels(&mut self, next: SummaryView<'_, S>, monoid: &MonoidOf<S>) {
        self.count = self.count.saturating_add(self.frames.count_below(next.below));
        let (open, lowest) = (self.frames.open(), self.frames.brackets.leaves);
        for run in next.below.iter().filter(|run| run.end() > open) {
            let landed = open.saturating_sub(run.first);
            let first = lowest + (run.first + landed - open);
            self.append_below(first, run.value, monoid);
            let more = run.levels - landed - 1;
            if more > 0 {
                push(&mut self.below, Run { first: first + 1, levels: more, value: run.value.clone() });
            }
        }
        self.frames.follow(next, monoid);
    }

    /// Adds what happens at a level below all that is entered: the lowest so far, or
    /// further down.
    #[inline]
    fn append_below(&mut self, level: u64, blocks: &SummaryOf<S>, monoid: &MonoidOf<S>) {
        match &mut self.below[..] {
            [only] if only.first == level && only.levels == 1 => monoid.append(&mut only.value, blocks),
            [.., last] if last.end() > level => {
                if let Some(mut known) = pop(&mut self.below) {
                    monoid.append(&mut known, blocks);
                    push(&mut self.below, Run::one(level, known));
                }
            }
            _ => push(&mut self.below, Run::one(level, blocks.clone())),
        }
    }
}

/// The measure of [`NestedSummary`]s of one path.
#[derive(Debug)]
pub(super) struct PathMonoid<S: FrameState> {
    pub(super) blocks: MonoidOf<S>,
    symbols: HashMap<Symbol, NestedSummary<S>>,
    /// The most runs of levels that a summary may have.
    most_runs: usize,
    function: String,
}

/// Machine words that the levels of one stretch may take: 256 MB.
const MOST_WORDS: usize = 1 << 25;

impl<S: FrameState> PathMonoid<S> {
    /// For a path that is no longer than its states can represent.
    pub(super) fn new(query: &PathQuery) -> Self {
        let blocks = MonoidOf::<S>::new(query);
        let empty = blocks.empty();
        let mut symbols = HashMap::new();
        for &(symbol, step) in query.steps() {
            let mut summary = NestedSummary::default();
            let own = step.is_block().then(|| blocks.symbol(symbol));
            // Other blocks do nothing to a path of a single block.
            summary.below.extend(own.filter(|own| *own != empty).map(|own| Run::one(0, own)));
            summary.frames.brackets.leave(u64::from(step == Step::Leave));
            summary.frames.brackets.enter(u64::from(step.is_enter()));
            if step.is_own_enter() {
                summary.frames.states.push(Run::one(0, S::default()));
            }
            symbols.insert(symbol, summary);
        }
        let run = size_of::<Run<SummaryOf<S>>>() / size_of::<u64>() + blocks.most_heap_words();
        let function = Terminal::of(query.function()).to_string();
        Self { blocks, symbols, most_runs: MOST_WORDS / run, function }
    }

    /// Joins a stretch that repeats to the end of another.
    #[inline]
    pub(super) fn append(
        &self,
        summary: &mut NestedSummary<S>,
        next: SummaryView<'_, S>,
        times: u64,
    ) -> Result<()> {
        if times == 1 {
            summary.append(next, &self.blocks);
        } else if next.is_closed() {
            summary.count = summary.count.saturating_add(next.count.saturating_mul(times));
        } else {
            summary.append(self.repeated(next, times)?.view(), &self.blocks);
        }
        self.check(summary)
    }

    #[inline]
    fn check(&self, summary: &NestedSummary<S>) -> Result<()> {
        if summary.runs() > self.most_runs { Err(self.too_deep()) } else { Ok(()) }
    }

    #[cold]
    fn too_deep(&self) -> Error {
        Error::limit(format_args!(
            "calls of {} are nested too deep to look for this path: more than {} levels differ",
            self.function, self.most_runs
        ))
    }

    /// The summary of a stretch repeated `times` times.
    pub(super) fn repeated(&self, once: SummaryView<'_, S>, times: u64) -> Result<NestedSummary<S>> {
        let mut first = NestedSummary::default();
        if once.brackets == Brackets::default() {
            first.count = once.count.saturating_mul(times);
            if let Some(blocks) = once.below.last()
                && times > 0
            {
                first.below.push(Run::one(0, self.blocks.repeated(blocks.value, times)));
            }
            return Ok(first);
        }
        first.append(once, &self.blocks);
        power(NestedSummary::default(), first, times, |all, next| self.append(all, next.view(), 1))
    }
}

impl<S: FrameState> Measure for PathMonoid<S> {
    type Value = NestedSummary<S>;

    fn empty(&self) -> NestedSummary<S> {
        NestedSummary::default()
    }

    fn symbol(&self, symbol: Symbol) -> NestedSummary<S> {
        self.symbols.get(&symbol).cloned().unwrap_or_default()
    }

    fn join(&self, left: &NestedSummary<S>, right: &NestedSummary<S>) -> Result<NestedSummary<S>> {
        let mut joined = left.clone();
        self.append(&mut joined, right.view(), 1)?;
        Ok(joined)
    }

    fn repeat(&self, value: &NestedSummary<S>, times: u64) -> Result<NestedSummary<S>> {
        self.repeated(value.view(), times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::questions::find::bits::Wide;
    use crate::questions::path::Functions;
    use crate::questions::path::summary::gaps::GapState;
    use crate::trace::{Alphabet, Event, Field, Role, Value as FieldValue};
    use loopfold_testing::Rng;

    /// Symbols 0 enter f, 1 leave, 2 to 4 blocks; 5 enters g where frames are distinguished by
    /// order; 6 and 7 enter f and g, called by f.
    fn alphabet(qualified: bool) -> Alphabet {
        let mut alphabet = Alphabet::default();
        let owner = [Field { key: "function", value: FieldValue::Text(b"f") }];
        let fields = if qualified { &owner[..] } else { &[] };
        let enter = |name| Event { role: Role::Enter, ..Event::named(name) };
        let block = |name| Event { role: Role::Block, fields, ..Event::named(name) };
        let leave = Event { role: Role::Leave, fields, ..Event::named("return") };
        let caller = [Field { key: "caller", ..owner[0] }];
        let call = |name| Event { fields: &caller, ..enter(name) };
        let blocks = ["B0", "B1", "B2"].map(block);
        let events = [&[enter("f"), leave][..], &blocks, &[enter("g"), call("f"), call("g")]].concat();
        for event in events {
            alphabet.intern(&event, None).unwrap();
        }
        alphabet
    }

    fn paths<S: FrameState>(rng: &mut Rng, longest: usize, gaps: bool) -> PathMonoid<S> {
        let functions = Functions::of(&alphabet(rng.one_in(2))).unwrap();
        let function = functions.named(b"f").unwrap();
        let random = rng.one_in(2);
        let block = |place: usize, rng: &mut Rng| {
            let block = if random { [2, 3, 4, 6, 7][rng.below(5)] } else { 2 + place as u32 % 2 };
            vec![Symbol::from_raw(block)]
        };
        let shortest = if gaps { 2 } else { 1 };
        let blocks = (0..rng.between(shortest, longest)).map(|place| block(place, rng)).collect();
        let query = PathQuery::new(&functions, function, blocks).unwrap();
        let before: Vec<usize> = (1..query.len()).filter(|&place| place == 1 || rng.one_in(3)).collect();
        PathMonoid::new(&query.with_gaps(if gaps { &before } else { &[] }).unwrap())
    }

    fn stretch(rng: &mut Rng) -> Vec<Symbol> {
        let calls = rng.between(2, 6);
        (0..rng.below(12))
            .map(|place| match rng.below(calls) {
                0 => rng.below(8) as u32,
                1 => rng.below(2) as u32,
                _ => 2 + (place % 2) as u32,
            })
            .map(Symbol::from_raw)
            .collect()
    }

    fn value_of<S: FrameState>(paths: &PathMonoid<S>, stretch: &[Symbol]) -> NestedSummary<S> {
        stretch.iter().fold(paths.empty(), |all, &symbol| paths.join(&all, &paths.symbol(symbol)).unwrap())
    }

    fn check<S: FrameState>(rng: &mut Rng, longest: usize, gaps: bool) {
        let paths: PathMonoid<S> = paths(rng, longest, gaps);
        let [u, v, w] = std::array::from_fn(|_| stretch(rng));
        let [a, b, c] = [&u, &v, &w].map(|stretch| value_of(&paths, stretch));
        let join = |left: &NestedSummary<S>, right: &NestedSummary<S>| paths.join(left, right).unwrap();
        assert_eq!(join(&join(&a, &b), &c), join(&a, &join(&b, &c)), "{u:?} {v:?} {w:?}");
        assert_eq!(join(&a, &b), value_of(&paths, &[&u[..], &v].concat()), "{u:?} {v:?}");
        assert_eq!(join(&paths.empty(), &a), a);
        assert_eq!(join(&a, &paths.empty()), a);
        let times = rng.between(0, 20);
        let repeated = paths.repeat(&a, times as u64).unwrap();
        assert_eq!(repeated, value_of(&paths, &u.repeat(times)), "{u:?} {times} times");
        // What follows is counted before it is passed.
        let mut both = a.clone();
        both.append(b.view(), &paths.blocks);
        let mut frames = a.frames.clone();
        assert_eq!(both.count, a.count + frames.count_in(b.view()));
        frames.follow(b.view(), &paths.blocks);
        assert_eq!(frames, both.frames);
        // Kept elsewhere, it is the same.
        let mut store = SummaryStore::default();
        let indices = [&a, &b, &c].map(|value| store.add(value, &paths.blocks).unwrap());
        for (index, value) in indices.into_iter().zip([a, b, c]) {
            let mut again = paths.empty();
            again.append(store.get(index), &paths.blocks);
            assert_eq!(again, value);
        }
    }

    #[test]
    fn summaries_are_the_same_however_they_are_joined() {
        let mut rng = Rng::new(86);
        for _ in 0..20_000 {
            check::<u64>(&mut rng, 4, false);
            check::<u64>(&mut rng, 64, false);
            check::<u32>(&mut rng, 32, false);
            check::<Wide>(&mut rng, 4, false);
            check::<GapState>(&mut rng, 6, true);
        }
        for _ in 0..2_000 {
            check::<Wide>(&mut rng, 150, false);
        }
    }

    #[test]
    fn equal_levels_are_one_run() {
        let mut rng = Rng::new(87);
        let paths: PathMonoid<u64> = paths(&mut rng, 3, false);
        let [enter, leave] = [0, 1].map(|raw| paths.symbol(Symbol::from_raw(raw)));
        let many = paths.repeat(&enter, 1 << 60).unwrap();
        assert_eq!((many.frames.open(), many.runs()), (1 << 60, 1));
        assert_eq!(paths.join(&many, &paths.repeat(&leave, 1 << 60).unwrap()).unwrap(), paths.empty());
    }
}
