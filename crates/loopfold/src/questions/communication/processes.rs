//! Extracts the communication of each stream as a loop nest, in two forms. The *exact* form
//! keeps all fields, so that messages can be matched by their tags; the *shown* form omits the
//! envelope of messages, and patterns are searched in it. The two have different loops;
//! together they are a nest of pairs ([`Joint`]).
//!
//! In both, the search for loops treats events in different functions as different, so that a
//! repetition lies in one function.
//!
//! Equal streams are processed once. Time: that of unfolding and of folding twice. Memory: 8
//! bytes for each event of the current stream, and that of the folder; the result is O(written
//! events).

use super::zip::{Joint, Node, Sequence};
use crate::fold::{Fold, FoldedStream};
use crate::mpi::{Call, Calls, Communicators};
use crate::parallel::parallel_map;
use crate::questions::patterns::{EventChoice, FoldStream, KeptPositions, LoopCollapsed, MemoryBudget, Only};
use crate::trace::{Alphabet, Name, Projection, Role};
use crate::{Result, RuleId, Symbol};
use hashbrown::HashMap;
use std::sync::Arc;

/// The communication of one stream.
#[derive(Clone, Debug, Default)]
pub struct ProcessTrace {
    shown: LoopCollapsed,
    /// What both forms have in common: indices into the events.
    pub(super) nest: Vec<Node>,
    pub(super) events: Vec<DoneEvent>,
    /// For each symbol of the shown form, the function that it happens in.
    contexts: Vec<u32>,
    /// Functions that are entered, in order, and how often.
    entered: Vec<(u32, u64)>,
}

/// An event as it is, and where it is in the shown form.
#[derive(Clone, Copy, Debug)]
pub(super) struct DoneEvent {
    pub(super) symbol: Symbol,
    pub(super) shown: u32,
}

impl ProcessTrace {
    /// Where both forms have the same loops.
    fn of_one_form(
        exact: LoopCollapsed,
        contexts: Vec<u32>,
        entered: Vec<(u32, u64)>,
        shown: &[Symbol],
    ) -> Self {
        let event = |(shown, &symbol): (usize, &Symbol)| DoneEvent { symbol, shown: shown as u32 };
        let events = exact.symbols().iter().enumerate().map(event).collect();
        let nest = sequence(&exact);
        let shown = exact.renamed(|symbol| shown[symbol.index()]);
        Self { events, nest, shown, contexts, entered }
    }

    /// The stream as it is shown.
    pub fn shown(&self) -> &LoopCollapsed {
        &self.shown
    }
}

/// The communication of all streams of a trace.
#[derive(Clone, Debug)]
pub struct Processes<'a> {
    pub(super) fold: &'a Fold,
    pub(super) calls: Calls,
    pub(super) communicators: Communicators,
    /// The meanings of shown symbols, and their communication.
    alphabet: Alphabet,
    pub(super) shown_calls: Calls,
    traces: Vec<Arc<ProcessTrace>>,
    /// Functions, by the numbers that [`ProcessTrace::contexts`] has, and the numbers.
    functions: Vec<String>,
    numbers: HashMap<String, u32>,
    /// The streams whose stored loops were taken.
    stored: Vec<usize>,
    /// Which symbols of the fold are examined.
    taken: Vec<bool>,
    all_events: bool,
}

/// No function.
const NOWHERE: u32 = u32::MAX;

impl<'a> Processes<'a> {
    /// Looks at all streams, with the loops that `fold_stream` finds, such as those of the folder
    /// `outermost`.
    pub fn of(
        fold: &'a Fold,
        choice: &EventChoice,
        budget: MemoryBudget,
        fold_stream: FoldStream<'_>,
    ) -> Result<Self> {
        let calls = Calls::of(fold.alphabet());
        let communicators = Communicators::of(fold);
        let ignore = if calls.is_empty() { Vec::new() } else { choice.left_out.clone() };
        let (alphabet, shown) =
            Projection { ignore, ..Projection::default() }.of_alphabet(fold.alphabet())?;
        let kinds = Kinds::of(fold.alphabet(), &calls, choice);
        let mut roots: Vec<RuleId> = fold.streams().iter().map(FoldedStream::root).collect();
        roots.sort_unstable();
        roots.dedup();
        let is_long = |root: RuleId| fold.length(root) > budget.events;
        let distinct = parallel_map(&roots, budget.threads, |&root| {
            let trace = match is_long(root) {
                true => doing_as_stored(fold, root, &kinds, &shown, budget.symbols),
                false => process_trace(fold, root, &kinds, &shown, fold_stream),
            };
            trace.map(Arc::new)
        });
        let distinct: Vec<Arc<ProcessTrace>> = distinct.into_iter().collect::<Result<_>>()?;
        let trace_of = |stream: &FoldedStream| {
            Arc::clone(&distinct[roots.binary_search(&stream.root()).unwrap_or_default()])
        };
        let streams = fold.streams();
        Ok(Self {
            fold,
            calls,
            communicators,
            shown_calls: Calls::of(&alphabet),
            alphabet,
            traces: streams.iter().map(trace_of).collect(),
            stored: (0..streams.len()).filter(|&at| is_long(streams[at].root())).collect(),
            taken: kinds.of.iter().map(|&kind| kind == Kind::Taken).collect(),
            functions: kinds.functions,
            numbers: kinds.numbers,
            all_events: choice.all_events,
        })
    }

    /// The streams as they are shown.
    pub fn shown(&self) -> Vec<&LoopCollapsed> {
        self.traces.iter().map(|trace| trace.shown()).collect()
    }

    /// The streams that are too long to be unfolded: the loops of the fold were taken as they
    /// are.
    pub fn stored(&self) -> &[usize] {
        &self.stored
    }

    /// Whether patterns are made of sends, receives and collective operations.
    pub fn communicate(&self) -> bool {
        !self.calls.is_empty() && !self.all_events
    }

    /// From positions among the events that are examined to those of the streams.
    pub fn positions(&self) -> KeptPositions<'a> {
        KeptPositions::new(self.fold, &self.taken)
    }

    /// The meanings of shown symbols.
    pub fn alphabet(&self) -> &Alphabet {
        &self.alphabet
    }

    /// Which process each stream is.
    pub fn communicators(&self) -> &Communicators {
        &self.communicators
    }

    /// The communication of each stream.
    pub fn traces(&self) -> &[Arc<ProcessTrace>] {
        &self.traces
    }

    /// The function that a shown event of a stream happens in.
    pub fn function(&self, stream: usize, index: usize) -> Option<&str> {
        let function = *self.traces[stream].contexts.get(index)?;
        self.functions.get(function as usize).map(String::as_str)
    }

    /// How often a function is entered in a stream. It was counted while the stream was
    /// examined; not where all events are, as in a trace without communication.
    pub fn calls(&self, stream: usize, function: &str) -> u64 {
        let Some(&number) = self.numbers.get(function) else { return 0 };
        let entered = &self.traces[stream].entered;
        entered.binary_search_by_key(&number, |&(known, _)| known).map_or(0, |at| entered[at].1)
    }
}

/// The treatment of each symbol.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    LeftOut,
    Taken,
    Enter(u32),
    Leave,
}

struct Kinds {
    of: Vec<Kind>,
    functions: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Kinds {
    fn of(alphabet: &Alphabet, calls: &Calls, choice: &EventChoice) -> Self {
        let mut functions: Vec<String> = Vec::new();
        let mut numbers: HashMap<String, u32> = HashMap::new();
        // A trace of something else than communication.
        let all_events = choice.all_events || calls.is_empty();
        let is_chosen = |call: &Call| match choice.only {
            None => true,
            Some(Only::Messages) => call.collective.is_none(),
            Some(Only::Collectives) => call.collective.is_some(),
        };
        let mut kind = |symbol| {
            match calls.get(symbol) {
                _ if all_events => return Kind::Taken,
                Some(call) => return if is_chosen(call) { Kind::Taken } else { Kind::LeftOut },
                None => {}
            }
            let meaning = alphabet.meaning(symbol);
            match meaning.role {
                Role::Enter => {
                    let name = match meaning.name {
                        Name::Text(text) => String::from_utf8_lossy(text).into_owned(),
                        Name::Integer(number) => number.to_string(),
                    };
                    let next = functions.len() as u32;
                    Kind::Enter(*numbers.entry(name).or_insert_with_key(|name| {
                        functions.push(name.clone());
                        next
                    }))
                }
                Role::Leave => Kind::Leave,
                _ => Kind::LeftOut,
            }
        };
        let of = alphabet.symbols().map(&mut kind).collect();
        Self { of, functions, numbers }
    }

    /// Functions that are entered, from how often each is.
    fn entered(counts: &[u64]) -> Vec<(u32, u64)> {
        (0..)
            .zip(counts)
            .filter(|&(_, &count)| count > 0)
            .map(|(function, &count)| (function, count))
            .collect()
    }
}

/// Numbers for symbols in functions, in the order in which they are met.
struct Annotated {
    meanings: Vec<(Symbol, u32)>,
    /// For each symbol its number outside of all functions, or [`NOWHERE`].
    outside: Vec<u32>,
    inside: HashMap<(Symbol, u32), u32, foldhash::fast::RandomState>,
}

impl Annotated {
    fn new(symbols: usize) -> Self {
        Self { meanings: Vec::new(), outside: vec![NOWHERE; symbols], inside: HashMap::default() }
    }

    #[inline]
    fn number(&mut self, symbol: Symbol, function: u32) -> Result<Symbol> {
        let next = self.meanings.len();
        let number = if function == NOWHERE {
            &mut self.outside[symbol.index()]
        } else {
            self.inside.entry((symbol, function)).or_insert(NOWHERE)
        };
        if *number == NOWHERE {
            *number = next as u32;
            self.meanings.push((symbol, function));
        }
        Symbol::new(*number as usize)
    }
}

fn process_trace(
    fold: &Fold,
    root: RuleId,
    kinds: &Kinds,
    shown: &[Symbol],
    fold_stream: FoldStream<'_>,
) -> Result<ProcessTrace> {
    let mut annotated = Annotated::new(fold.alphabet().len());
    let mut exact: Vec<Symbol> = Vec::new();
    let mut open: Vec<u32> = Vec::new();
    let mut entered = vec![0u64; kinds.functions.len()];
    let mut page = vec![Symbol::new(0)?; PAGE];
    let mut unfold = fold.unfold(root);
    loop {
        let filled = unfold.fill(&mut page);
        for &symbol in &page[..filled] {
            match kinds.of[symbol.index()] {
                Kind::LeftOut => {}
                Kind::Taken => {
                    exact.push(annotated.number(symbol, open.last().copied().unwrap_or(NOWHERE))?);
                }
                Kind::Enter(function) => {
                    entered[function as usize] += 1;
                    open.push(function);
                }
                Kind::Leave => {
                    open.pop();
                }
            }
        }
        if filled < page.len() {
            break;
        }
    }
    let entered = Kinds::entered(&entered);
    // What is left of each annotated symbol when the envelope is taken away.
    let mut plain = Annotated::new(fold.alphabet().len());
    let mut shorter = Vec::with_capacity(annotated.meanings.len());
    for &(symbol, function) in &annotated.meanings {
        shorter.push(plain.number(shown[symbol.index()], function)?);
    }
    let exact_form = LoopCollapsed::of(&exact, fold_stream)?;
    // If nothing became the same, the numbers are the same as well, and so are both forms.
    if plain.meanings.len() == annotated.meanings.len() {
        drop(exact);
        let contexts = exact_form.symbols().iter().map(|&symbol| plain.meanings[symbol.index()].1).collect();
        let exact_form = exact_form.renamed(|symbol| annotated.meanings[symbol.index()].0);
        return Ok(ProcessTrace::of_one_form(exact_form, contexts, entered, shown));
    }
    exact.iter_mut().for_each(|symbol| *symbol = shorter[symbol.index()]);
    let shown_form = LoopCollapsed::of(&exact, fold_stream)?;
    drop(exact);
    let contexts = shown_form.symbols().iter().map(|&symbol| plain.meanings[symbol.index()].1).collect();
    let (pairs, nest) = Joint::of(&sequence(&exact_form), &sequence(&shown_form));
    let exact_symbol = |index: u32| annotated.meanings[exact_form.symbols()[index as usize].index()].0;
    let event = |(exact, shown): (u32, u32)| DoneEvent { symbol: exact_symbol(exact), shown };
    let events = pairs.into_iter().map(event).collect();
    let shown = shown_form.renamed(|symbol| plain.meanings[symbol.index()].0);
    Ok(ProcessTrace { shown, nest, events, contexts, entered })
}

/// How many events are unfolded at once.
const PAGE: usize = 1 << 16;

/// With the loops that the fold has.
fn doing_as_stored(
    fold: &Fold,
    root: RuleId,
    kinds: &Kinds,
    shown: &[Symbol],
    limit: usize,
) -> Result<ProcessTrace> {
    let exact = LoopCollapsed::of_rule(fold, root, limit)?;
    let mut entered = vec![0u64; kinds.functions.len()];
    for (index, symbol) in exact.symbols().iter().enumerate() {
        if let Kind::Enter(function) = kinds.of[symbol.index()] {
            // No more than the stream has events, all together.
            entered[function as usize] += exact.times(index, index + 1);
        }
    }
    let exact = exact.filtered(|symbol| kinds.of[symbol.index()] == Kind::Taken)?;
    let contexts = vec![NOWHERE; exact.symbols().len()];
    Ok(ProcessTrace::of_one_form(exact, contexts, Kinds::entered(&entered), shown))
}

/// A loop-collapsed stream as a nest of its indices.
fn sequence(collapsed: &LoopCollapsed) -> Vec<Node> {
    let loops = collapsed.loops();
    let mut sequence = Sequence::default();
    let mut around: Vec<(u32, u64)> = Vec::new();
    let mut next = 0;
    for index in 0..collapsed.symbols().len() as u32 {
        while around.last().is_some_and(|&(found, _)| loops[found as usize].end <= index) {
            around.pop();
        }
        while let Some(found) = loops.get(next).filter(|found| found.start == index) {
            around.push((next as u32, found.times));
            next += 1;
        }
        sequence.push(index, &around);
    }
    sequence.finish()
}
