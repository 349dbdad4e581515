//! What a stretch of a trace does to a path of one function: the measure behind finding
//! paths.
//!
//! Calls interrupt a path and frames are told apart by nesting, so there is a
//! [`Word`](crate::questions::find) for each level of it. A stretch is known by
//! * how many frames it *leaves* that it did not enter;
//! * the *words* of what happens in those, and in the frame below them, by level: level 0
//!   is the frame in which it begins. What function they belong to is not known;
//! * the *frames* it enters and does not leave: those of the function with the state of
//!   the path in them, which is the endings of what happened there;
//! * how often the path occurs in frames that it enters itself, left or not.
//!
//! `u` and `v` side by side: the words of `v` land in the open frames of `u`, the innermost
//! first, and where such a frame is of the function, occurrences may end there. What is
//! left of the words goes to the levels below `u`. Words that never meet their frame never
//! count: a path is of a function only where the function was seen to be entered.
//!
//! Levels are run-length: neighbours with the same value are one. So n calls in a row are
//! one run however large n is, and only nesting whose levels really differ takes memory;
//! a value has a limit on that, so a loop that enters more than it leaves cannot ask for
//! any amount.
//!
//! A join costs a dozen instructions for each run of the stretch on the right and for each
//! one that it closes on the left.

use super::PathQuery;
use super::frame::{FrameState, FrameWord as _, FrameWords as _, Word, Words};
use super::functions::Step;
use super::runs::{Run, Runs, pop, push};
use crate::fold::Measure;
use crate::{Error, Result, Symbol};
use hashbrown::HashMap;

/// Frames that are open, from the outermost.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Frames<B> {
    pub(super) open: u64,
    /// Those of the function, with the state of the path in them.
    pub(super) states: Vec<Run<B>>,
}

/// What a stretch does to a path of a function.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Value<B: FrameState> {
    pub(super) leaves: u64,
    pub(super) count: u64,
    pub(super) frames: Frames<B>,
    pub(super) words: Vec<Run<Word<B>>>,
}

/// A value whose lists are kept elsewhere.
#[derive(Debug)]
pub(super) struct View<'a, B: FrameState> {
    /// Frames that are left but not entered.
    pub(super) leaves: u64,
    /// Frames that are entered but not left.
    pub(super) enters: u64,
    /// Occurrences in frames that are entered.
    pub(super) count: u64,
    pub(super) words: Runs<'a, Word<B>>,
    pub(super) states: Runs<'a, B>,
}

impl<B: FrameState> Clone for View<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: FrameState> Copy for View<'_, B> {}

impl<B: FrameState> View<'_, B> {
    /// True if it changes no frame and nothing happens in the one it begins in.
    fn is_closed(&self) -> bool {
        self.leaves == 0 && self.enters == 0 && self.words.is_empty()
    }

    /// True if something happens in the lowest frame it reaches, after all that it leaves.
    pub(super) fn reaches_lowest(&self) -> bool {
        self.words.last().is_some_and(|run| run.end() == self.leaves + 1)
    }
}

impl<B: FrameState> Frames<B> {
    /// How many frames of the function are open.
    pub(super) fn depth(&self) -> u64 {
        self.states.iter().map(|run| run.levels).fold(0, u64::saturating_add)
    }

    /// How many occurrences end in a stretch that follows.
    #[inline]
    pub(super) fn count_in(&self, next: View<'_, B>) -> u64 {
        next.count.saturating_add(self.met_by(next.words))
    }

    /// How many occurrences end in the words that land in these frames.
    #[inline]
    fn met_by(&self, words: Runs<'_, Word<B>>) -> u64 {
        let mut hits = 0u64;
        // The states that are not yet passed, from the innermost.
        let mut states = &self.states[..];
        for word in words.iter() {
            let Some(above) = self.open.checked_sub(word.first).filter(|&above| above > 0) else { break };
            let lowest = self.open.saturating_sub(word.end());
            while let Some((state, below)) = states.split_last() {
                let levels = state.end().min(above).saturating_sub(state.first.max(lowest));
                if levels > 0 {
                    let each = word.value.count_after(&state.value);
                    hits = hits.saturating_add(each.saturating_mul(levels));
                }
                if state.first < lowest {
                    break;
                }
                states = below;
            }
        }
        hits
    }

    /// Passes over a stretch.
    #[inline]
    pub(super) fn follow(&mut self, next: View<'_, B>, words: &Words<B>) {
        if next.leaves > 0 {
            self.close(next.leaves);
        }
        if self.open > 0
            && let Some(word) = next.words.last().filter(|run| run.end() == next.leaves + 1)
            && self.states.last().is_some_and(|state| state.end() == self.open)
        {
            self.step(word.value, words);
        }
        self.enter(next);
    }

    /// Closes the innermost frames.
    #[inline]
    fn close(&mut self, leaves: u64) {
        self.open = self.open.saturating_sub(leaves);
        while self.states.last().is_some_and(|state| state.first >= self.open) {
            self.states.pop();
        }
        if let Some(last) = self.states.last_mut() {
            last.levels = last.levels.min(self.open - last.first);
        }
    }

    /// Something happens in the innermost frame, which is of the function.
    #[inline]
    fn step(&mut self, word: &Word<B>, words: &Words<B>) {
        match &mut self.states[..] {
            [.., below, last] if last.levels == 1 => {
                words.follow(&mut last.value, word);
                if below.end() == last.first && below.value == last.value {
                    below.levels += 1;
                    self.states.pop();
                }
            }
            [only] if only.levels == 1 => words.follow(&mut only.value, word),
            _ => {
                if let Some(mut state) = pop(&mut self.states) {
                    words.follow(&mut state, word);
                    push(&mut self.states, Run::one(self.open - 1, state));
                }
            }
        }
    }

    /// Opens the frames that a stretch leaves open.
    #[inline]
    fn enter(&mut self, next: View<'_, B>) {
        for state in next.states.iter() {
            let (first, levels) = (self.open + state.first, state.levels);
            push(&mut self.states, Run { first, levels, value: state.value.clone() });
        }
        self.open = self.open.saturating_add(next.enters);
    }
}

impl<B: FrameState> Value<B> {
    pub(super) fn view(&self) -> View<'_, B> {
        View {
            leaves: self.leaves,
            enters: self.frames.open,
            count: self.count,
            words: Runs::of(&self.words),
            states: Runs::of(&self.frames.states),
        }
    }

    /// Makes it that of no events, and keeps the memory.
    pub(super) fn clear(&mut self) {
        (self.leaves, self.count, self.frames.open) = (0, 0, 0);
        self.frames.states.clear();
        self.words.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0 && self.view().is_closed()
    }

    /// How many runs of levels it has.
    pub(super) fn runs(&self) -> usize {
        self.words.len() + self.frames.states.len()
    }

    /// Adds what happens in the frame that is current at the end.
    #[inline]
    pub(super) fn append_word(&mut self, word: &Word<B>, words: &Words<B>) {
        if self.frames.open == 0 {
            self.append_below(self.leaves, word, words);
        } else if let Some(state) = self.frames.states.last().filter(|state| state.end() == self.frames.open)
        {
            self.count = self.count.saturating_add(word.count_after(&state.value));
            self.frames.step(word, words);
        }
    }

    /// Joins a stretch to the end.
    #[inline]
    pub(super) fn append(&mut self, next: View<'_, B>, words: &Words<B>) {
        self.count = self.count.saturating_add(next.count);
        if let Some(word) = next.words.one {
            self.leave(word.first);
            self.append_word(word.value, words);
            self.leave(next.leaves - word.first);
        } else if next.words.is_empty() {
            self.leave(next.leaves);
        } else {
            return self.append_levels(next, words);
        }
        self.frames.enter(next);
    }

    /// Leaves frames, its own first.
    #[inline]
    fn leave(&mut self, frames: u64) {
        if frames > 0 {
            self.leaves = self.leaves.saturating_add(frames.saturating_sub(self.frames.open));
            self.frames.close(frames);
        }
    }

    /// As [`append`](Self::append), with words at any number of levels, without what
    /// occurs in the stretch itself.
    fn append_levels(&mut self, next: View<'_, B>, words: &Words<B>) {
        self.count = self.count.saturating_add(self.frames.met_by(next.words));
        let open = self.frames.open;
        let lowest = self.leaves;
        for run in next.words.iter().filter(|run| run.end() > open) {
            let landed = open.saturating_sub(run.first);
            let first = lowest + (run.first + landed - open);
            self.append_below(first, run.value, words);
            let more = run.levels - landed - 1;
            if more > 0 {
                push(&mut self.words, Run { first: first + 1, levels: more, value: run.value.clone() });
            }
        }
        self.leaves = lowest.saturating_add(next.leaves.saturating_sub(open));
        self.frames.follow(next, words);
    }

    /// Adds what happens at a level below all that is entered: the lowest so far, or
    /// further down.
    #[inline]
    fn append_below(&mut self, level: u64, word: &Word<B>, words: &Words<B>) {
        match &mut self.words[..] {
            [only] if only.first == level && only.levels == 1 => words.append(&mut only.value, word),
            [.., last] if last.end() > level => {
                if let Some(mut known) = pop(&mut self.words) {
                    words.append(&mut known, word);
                    push(&mut self.words, Run::one(level, known));
                }
            }
            _ => push(&mut self.words, Run::one(level, word.clone())),
        }
    }
}

/// The measure of [`Value`]s of one path.
#[derive(Debug)]
pub(super) struct Paths<B: FrameState> {
    pub(super) words: Words<B>,
    symbols: HashMap<Symbol, Value<B>>,
    /// The most runs of levels that a value may have.
    most_runs: usize,
    function: String,
}

/// Machine words that the levels of one stretch may take: 256 MB.
const MOST_WORDS: usize = 1 << 25;

impl<B: FrameState> Paths<B> {
    /// The values of a path that is no longer than its bits can tell.
    pub(super) fn new(query: &PathQuery) -> Self {
        let words = Words::<B>::new(query);
        let empty = words.empty();
        let mut symbols = HashMap::new();
        for &(symbol, step) in query.steps() {
            let mut value = Value { leaves: u64::from(step == Step::Leave), ..Value::default() };
            let word = step.is_block().then(|| words.symbol(symbol));
            // Other blocks do nothing to a path of a single block.
            value.words.extend(word.filter(|word| *word != empty).map(|word| Run::one(0, word)));
            value.frames.open = u64::from(step.is_enter());
            if step.is_own_enter() {
                value.frames.states.push(Run::one(0, B::default()));
            }
            symbols.insert(symbol, value);
        }
        let run = size_of::<Run<Word<B>>>() / size_of::<u64>() + words.memory();
        let function = String::from_utf8_lossy(query.function()).escape_debug().to_string();
        Self { words, symbols, most_runs: MOST_WORDS / run, function }
    }

    /// Joins a stretch that repeats to the end of another.
    #[inline]
    pub(super) fn append(&self, value: &mut Value<B>, next: View<'_, B>, times: u64) -> Result<()> {
        if times == 1 {
            value.append(next, &self.words);
        } else if next.is_closed() {
            value.count = value.count.saturating_add(next.count.saturating_mul(times));
        } else {
            value.append(self.repeated(next, times)?.view(), &self.words);
        }
        self.check(value)
    }

    #[inline]
    fn check(&self, value: &Value<B>) -> Result<()> {
        if value.runs() > self.most_runs { Err(self.too_deep()) } else { Ok(()) }
    }

    #[cold]
    fn too_deep(&self) -> Error {
        Error::limit(format_args!(
            "calls of {} are nested too deep to look for this path: more than {} levels differ",
            self.function, self.most_runs
        ))
    }

    /// The value of a stretch repeated `times` times.
    pub(super) fn repeated(&self, once: View<'_, B>, times: u64) -> Result<Value<B>> {
        let mut result = Value::default();
        if once.leaves == 0 && once.enters == 0 {
            result.count = once.count.saturating_mul(times);
            if let Some(word) = once.words.last()
                && times > 0
            {
                result.words.push(Run::one(0, self.words.repeated(word.value, times)));
            }
            return Ok(result);
        }
        let mut square = Value::default();
        square.append(once, &self.words);
        let mut rest = times;
        while rest > 0 {
            if rest & 1 == 1 {
                result.append(square.view(), &self.words);
                self.check(&result)?;
            }
            rest >>= 1;
            if rest > 0 {
                square = self.squared(&square)?;
            }
        }
        Ok(result)
    }

    /// The value of a stretch twice.
    pub(super) fn squared(&self, value: &Value<B>) -> Result<Value<B>> {
        let mut square = value.clone();
        square.append(value.view(), &self.words);
        self.check(&square)?;
        Ok(square)
    }
}

impl<B: FrameState> Measure for Paths<B> {
    type Value = Value<B>;

    fn empty(&self) -> Value<B> {
        Value::default()
    }

    fn symbol(&self, symbol: Symbol) -> Value<B> {
        self.symbols.get(&symbol).cloned().unwrap_or_default()
    }

    fn join(&self, left: &Value<B>, right: &Value<B>) -> Result<Value<B>> {
        let mut joined = left.clone();
        self.append(&mut joined, right.view(), 1)?;
        Ok(joined)
    }

    fn repeat(&self, value: &Value<B>, times: u64) -> Result<Value<B>> {
        self.repeated(value.view(), times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::questions::find::bits::Wide;
    use crate::questions::path::Functions;
    use crate::questions::path::gaps::GapState;
    use crate::questions::path::values::Values;
    use crate::trace::{Alphabet, Event, Field, Role, Value as FieldValue};
    use loopfold_testing::Rng;

    /// Symbols 0 enter f, 1 leave, 2 to 4 blocks; 5 enters g where frames are told apart
    /// by order; 6 and 7 enter f and g, called by f.
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

    fn paths<B: FrameState>(rng: &mut Rng, longest: usize, gaps: bool) -> Paths<B> {
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
        Paths::new(&query.with_gaps(if gaps { &before } else { &[] }).unwrap())
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

    fn value_of<B: FrameState>(paths: &Paths<B>, stretch: &[Symbol]) -> Value<B> {
        stretch.iter().fold(paths.empty(), |all, &symbol| paths.join(&all, &paths.symbol(symbol)).unwrap())
    }

    fn check<B: FrameState>(rng: &mut Rng, longest: usize, gaps: bool) {
        let paths: Paths<B> = paths(rng, longest, gaps);
        let [u, v, w] = std::array::from_fn(|_| stretch(rng));
        let [a, b, c] = [&u, &v, &w].map(|stretch| value_of(&paths, stretch));
        let join = |left: &Value<B>, right: &Value<B>| paths.join(left, right).unwrap();
        assert_eq!(join(&join(&a, &b), &c), join(&a, &join(&b, &c)), "{u:?} {v:?} {w:?}");
        assert_eq!(join(&a, &b), value_of(&paths, &[&u[..], &v].concat()), "{u:?} {v:?}");
        assert_eq!(join(&paths.empty(), &a), a);
        assert_eq!(join(&a, &paths.empty()), a);
        let times = rng.between(0, 20);
        let repeated = paths.repeat(&a, times as u64).unwrap();
        assert_eq!(repeated, value_of(&paths, &u.repeat(times)), "{u:?} {times} times");
        // What follows is counted before it is passed.
        let mut both = a.clone();
        both.append(b.view(), &paths.words);
        let mut frames = a.frames.clone();
        assert_eq!(both.count, a.count + frames.count_in(b.view()));
        frames.follow(b.view(), &paths.words);
        assert_eq!(frames, both.frames);
        // Kept elsewhere, it is the same.
        let mut values = Values::default();
        let indices = [&a, &b, &c].map(|value| values.add(value, &paths.words).unwrap());
        for (index, value) in indices.into_iter().zip([a, b, c]) {
            let mut again = paths.empty();
            again.append(values.get(index), &paths.words);
            assert_eq!(again, value);
        }
    }

    #[test]
    fn values_are_the_same_however_they_are_joined() {
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
    fn levels_alike_are_one_run() {
        let mut rng = Rng::new(87);
        let paths: Paths<u64> = paths(&mut rng, 3, false);
        let [enter, leave] = [0, 1].map(|raw| paths.symbol(Symbol::from_raw(raw)));
        let many = paths.repeat(&enter, 1 << 60).unwrap();
        assert_eq!((many.frames.open, many.runs()), (1 << 60, 1));
        assert_eq!(paths.join(&many, &paths.repeat(&leave, 1 << 60).unwrap()).unwrap(), paths.empty());
    }
}
