//! Extracts the communication of each stream as a loop nest: its sends, receives and collective
//! operations without their envelope, in the loops that they form. This is the one model of
//! what processes do, which patterns, channels and partners use.
//!
//! The search for loops treats events in different functions as different, so that a
//! repetition lies in one function, and events whose tags decide which message is meant (see
//! [`Tags`]). Tags that decide nothing are left out if that makes the nest shorter.
//!
//! Equal streams are processed once. Time: that of unfolding and of folding. Memory: 4 bytes
//! for each event of the current stream, and that of the folder; the result is O(written
//! events).

use super::chosen::ChosenEvents;
use super::tags::{TagUse, Tags};
use crate::fold::Fold;
use crate::mpi::{Calls, Communicators, MessageEnds};
use crate::parallel::parallel_map;
use crate::questions::patterns::{EventChoice, FoldStream, KeptPositions, LoopCollapsed, MemoryBudget};
use crate::trace::{Alphabet, Name, Projection, Role};
use crate::{Result, RuleId, StreamId, Symbol};
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use std::sync::Arc;

/// The communication of one stream.
#[derive(Clone, Debug, Default)]
pub struct ProcessTrace {
    shown: Arc<LoopCollapsed>,
    /// The same, with other loops where tags matter.
    nest: Arc<LoopCollapsed>,
    /// For each symbol of the nest its number among the kinds of events.
    kinds: Vec<u32>,
    kind_of: Vec<EventKind>,
    /// Functions that are entered, in order, and how often.
    entered: Vec<(u32, u64)>,
}

/// What events that are equal in the search for loops have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct EventKind {
    /// One of the symbols of the fold that it stands for: its partners are those of all.
    pub(super) symbol: Symbol,
    /// The function that it happens in.
    function: u32,
}

impl ProcessTrace {
    /// From a nest of numbers, and the shown form if it is another one.
    fn new(
        annotated: Annotated<'_>,
        numbers: LoopCollapsed,
        shown: Option<LoopCollapsed>,
        entered: Vec<(u32, u64)>,
    ) -> Self {
        let kinds = numbers.symbols().iter().map(|symbol| symbol.index() as u32).collect();
        let nest = Arc::new(annotated.shown(numbers));
        let shown = shown.map_or_else(|| Arc::clone(&nest), Arc::new);
        Self { shown, nest, kinds, kind_of: annotated.kind_of, entered }
    }

    /// The stream as it is shown.
    pub fn shown(&self) -> &LoopCollapsed {
        &self.shown
    }

    /// The stream in loops that are equal in every iteration for messages as well: where tags
    /// decide which message is meant, they are compared. Positions are those of what is shown.
    pub(super) fn nest(&self) -> &LoopCollapsed {
        &self.nest
    }

    /// Whether the nest has the loops of what is shown.
    pub(super) fn nest_is_shown(&self) -> bool {
        Arc::ptr_eq(&self.shown, &self.nest)
    }

    /// The kind of an event of the nest, by its number.
    pub(super) fn kind(&self, index: usize) -> usize {
        self.kinds[index] as usize
    }

    /// All kinds of events.
    pub(super) fn event_kinds(&self) -> &[EventKind] {
        &self.kind_of
    }
}

/// The communication of all streams of a trace.
#[derive(Clone, Debug)]
pub struct Processes<'a> {
    pub(super) fold: &'a Fold,
    pub(super) calls: Calls,
    pub(super) communicators: Communicators,
    pub(super) tags: Tags,
    /// The meanings of shown symbols.
    alphabet: Alphabet,
    traces: Vec<Arc<ProcessTrace>>,
    /// Functions, by the numbers that [`EventKind`] has, and the numbers.
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
    /// `outermost`. Communicators are distinguished by their numbers: see
    /// [`with_unique_communicators`](crate::mpi::with_unique_communicators).
    pub fn of(
        fold: &'a Fold,
        choice: &EventChoice,
        budget: MemoryBudget,
        fold_stream: FoldStream<'_>,
    ) -> Result<Self> {
        let calls = Calls::of(fold.alphabet());
        let communicators = Communicators::of(fold);
        let ChosenEvents { alphabet, forms: shown, taken } =
            ChosenEvents::of(fold.alphabet(), &calls, choice)?;
        let tags = Tags::of(fold, &calls, &communicators, budget)?;
        let kinds = Kinds::of(fold.alphabet(), &calls, &taken);
        let mut distinct: Vec<(RuleId, Vec<(Symbol, TagUse)>)> = Vec::new();
        let mut numbers_of: HashMap<(RuleId, Vec<(Symbol, TagUse)>), usize> = HashMap::new();
        let mut trace_of = Vec::with_capacity(fold.streams().len());
        let mut symbols_of: HashMap<RuleId, Vec<Symbol>> = HashMap::new();
        for (stream, folded) in fold.streams().iter().enumerate() {
            let symbols = match symbols_of.entry(folded.root()) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(tags.symbols_of(fold, folded.root())?),
            };
            let key = (folded.root(), tags.of_stream((stream, symbols), &calls, &communicators));
            let next = distinct.len();
            trace_of.push(*numbers_of.entry(key).or_insert_with_key(|key| {
                distinct.push(key.clone());
                next
            }));
        }
        // Where tags matter, they make another form of an event.
        let with_tags = match distinct.iter().all(|(_, tags)| tags.is_empty()) {
            true => Vec::new(),
            false => {
                let with_tags = Projection { ignore: without_tags(choice), ..Projection::default() };
                with_tags.of_alphabet(fold.alphabet())?.1
            }
        };
        let is_long = |root: RuleId| fold.length(root) > budget.events;
        let found = parallel_map(&distinct, budget.threads, |(root, tags)| {
            let forms = Forms { shown: &shown, with_tags: &with_tags, tags, compared: TagUse::Idle };
            let trace = match is_long(*root) {
                true => trace_as_stored(fold, *root, &kinds, forms, budget.symbols),
                false => process_trace(fold, *root, &kinds, forms, fold_stream),
            };
            trace.map(Arc::new)
        });
        let found: Vec<Arc<ProcessTrace>> = found.into_iter().collect::<Result<_>>()?;
        let streams = fold.streams();
        Ok(Self {
            fold,
            calls,
            communicators,
            tags,
            alphabet,
            traces: trace_of.into_iter().map(|number| Arc::clone(&found[number])).collect(),
            stored: (0..streams.len()).filter(|&at| is_long(streams[at].root())).collect(),
            taken,
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

    /// The nest of a stream, by its index.
    pub(super) fn nest(&self, stream: u32) -> &LoopCollapsed {
        self.traces[stream as usize].nest()
    }

    /// Whether events of this symbol of the fold are examined.
    pub(super) fn is_taken(&self, symbol: Symbol) -> bool {
        self.taken.get(symbol.index()).copied().unwrap_or(false)
    }

    /// From positions among the events that are examined to those of the streams.
    pub fn positions(&self) -> KeptPositions<'a> {
        KeptPositions::new(self.fold, &self.taken)
    }

    /// The meanings of shown symbols.
    pub fn alphabet(&self) -> &Alphabet {
        &self.alphabet
    }

    /// The ends of the messages of every event.
    pub(super) fn message_ends(&self) -> MessageEnds<'_> {
        MessageEnds { calls: &self.calls, communicators: &self.communicators }
    }

    /// Which process each stream is.
    pub fn communicators(&self) -> &Communicators {
        &self.communicators
    }

    /// The communication of each stream.
    pub fn traces(&self) -> &[Arc<ProcessTrace>] {
        &self.traces
    }

    /// The function that an event of a stream happens in, by its position among those that are
    /// examined.
    pub fn function(&self, stream: StreamId, position: u64) -> Option<&str> {
        let trace = &self.traces[stream.index()];
        let kind = *trace.kinds.get(trace.nest.index_at(position)?)?;
        self.functions.get(trace.kind_of[kind as usize].function as usize).map(String::as_str)
    }

    /// Whether the event at a position of a stream both sends and receives.
    pub(super) fn is_exchange(&self, stream: StreamId, position: u64) -> bool {
        let trace = &self.traces[stream.index()];
        let kind = trace.nest.index_at(position).map(|index| trace.kind_of[trace.kind(index)]);
        let call = kind.and_then(|kind| self.calls.get(kind.symbol));
        call.is_some_and(|call| !call.sends.is_empty() && !call.receives.is_empty())
    }

    /// How often a function is entered in a stream. It was counted while the stream was
    /// examined; not where all events are, as in a trace without communication.
    pub fn calls(&self, stream: StreamId, function: &str) -> u64 {
        let Some(&number) = self.numbers.get(function) else { return 0 };
        let entered = &self.traces[stream.index()].entered;
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
    fn of(alphabet: &Alphabet, calls: &Calls, taken: &[bool]) -> Self {
        let mut functions: Vec<String> = Vec::new();
        let mut numbers: HashMap<String, u32> = HashMap::new();
        let mut kind = |symbol: Symbol| {
            let meaning = alphabet.meaning(symbol);
            match meaning.role {
                _ if taken[symbol.index()] => Kind::Taken,
                _ if calls.get(symbol).is_some() => Kind::LeftOut,
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

/// Fields that do not matter where tags do.
fn without_tags(choice: &EventChoice) -> Vec<String> {
    choice.left_out.iter().filter(|field| !field.ends_with("tag")).cloned().collect()
}

/// The forms in which the symbols of a stream are compared.
#[derive(Clone, Copy)]
struct Forms<'a> {
    shown: &'a [Symbol],
    with_tags: &'a [Symbol],
    /// How much the tags of symbols matter, by symbol: only those where they do.
    tags: &'a [(Symbol, TagUse)],
    /// The least that tags must matter to be compared.
    compared: TagUse,
}

impl Forms<'_> {
    /// A number for what is compared.
    fn of(&self, symbol: Symbol) -> u32 {
        let known = self.tags.binary_search_by_key(&symbol, |&(known, _)| known);
        let tag = known.map_or(TagUse::None, |at| self.tags[at].1);
        // Each form has its own numbers.
        match tag >= self.compared {
            true => 2 * self.with_tags[symbol.index()].index() as u32 + 1,
            false => 2 * self.shown[symbol.index()].index() as u32,
        }
    }
}

/// How many numbers of symbols in functions are at hand.
const RECENT: usize = 1 << 7;

fn recent_place(symbol: Symbol, function: u32) -> usize {
    (symbol.index() ^ (function as usize) << 4) % RECENT
}

/// Numbers the kinds of events in the order in which they are met.
struct Annotated<'a> {
    forms: Forms<'a>,
    kind_of: Vec<EventKind>,
    /// For each symbol its number outside of all functions, or [`NOWHERE`].
    outside: Vec<u32>,
    /// The numbers of symbols in functions, and of their forms.
    inside: HashMap<(Symbol, u32), u32, foldhash::fast::RandomState>,
    /// Some that were looked up last.
    recent: [(Symbol, u32, u32); RECENT],
    by_form: HashMap<(u32, u32), u32, foldhash::fast::RandomState>,
}

impl<'a> Annotated<'a> {
    fn new(symbols: usize, forms: Forms<'a>) -> Result<Self> {
        Ok(Self {
            forms,
            kind_of: Vec::new(),
            outside: vec![NOWHERE; symbols],
            inside: HashMap::default(),
            recent: [(Symbol::new(0)?, NOWHERE, NOWHERE); RECENT],
            by_form: HashMap::default(),
        })
    }

    /// The number of a symbol in a function.
    #[inline]
    fn number(&mut self, symbol: Symbol, function: u32) -> Result<Symbol> {
        let known = match function {
            NOWHERE => self.outside[symbol.index()],
            _ => match self.recent[recent_place(symbol, function)] {
                (known, there, number) if (known, there) == (symbol, function) => number,
                _ => NOWHERE,
            },
        };
        Symbol::new(if known == NOWHERE { self.look_up(symbol, function) } else { known } as usize)
    }

    fn look_up(&mut self, symbol: Symbol, function: u32) -> u32 {
        let known = match function {
            NOWHERE => &mut self.outside[symbol.index()],
            _ => self.inside.entry((symbol, function)).or_insert(NOWHERE),
        };
        if *known == NOWHERE {
            let next = self.kind_of.len() as u32;
            *known = *self.by_form.entry((self.forms.of(symbol), function)).or_insert(next);
            if *known == next {
                self.kind_of.push(EventKind { symbol, function });
            }
        }
        self.recent[recent_place(symbol, function)] = (symbol, function, *known);
        *known
    }

    /// The same with only those tags that matter so much, and for each number the one there.
    fn with_fewer_tags(&self, compared: TagUse) -> Result<(Self, Vec<Symbol>)> {
        let mut fewer = Self::new(self.outside.len(), Forms { compared, ..self.forms })?;
        let mut numbers = Vec::with_capacity(self.kind_of.len());
        for kind in &self.kind_of {
            numbers.push(fewer.number(kind.symbol, kind.function)?);
        }
        Ok((fewer, numbers))
    }

    /// The nest of a stream whose symbols are these numbers, as events of the shown alphabet.
    fn shown(&self, numbers: LoopCollapsed) -> LoopCollapsed {
        numbers.renamed(|number| self.forms.shown[self.kind_of[number.index()].symbol.index()])
    }
}

fn process_trace(
    fold: &Fold,
    root: RuleId,
    kinds: &Kinds,
    forms: Forms<'_>,
    fold_stream: FoldStream<'_>,
) -> Result<ProcessTrace> {
    let mut annotated = Annotated::new(fold.alphabet().len(), forms)?;
    // Memory that is not used costs nothing, growing would copy.
    let mut numbers: Vec<Symbol> = Vec::with_capacity(usize::try_from(fold.length(root)).unwrap_or(0));
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
                    numbers.push(annotated.number(symbol, open.last().copied().unwrap_or(NOWHERE))?);
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
    let mut nest = LoopCollapsed::of(&numbers, fold_stream)?;
    let mut longer = None;
    // Tags that need not matter do where the nest is shorter with them.
    if forms.tags.iter().any(|&(_, tag)| tag == TagUse::Idle) {
        let (without, fewer) = annotated.with_fewer_tags(TagUse::Matters)?;
        if without.kind_of.len() < annotated.kind_of.len() {
            let shorter = numbers.iter().map(|number| fewer[number.index()]).collect::<Vec<_>>();
            let shorter_nest = LoopCollapsed::of(&shorter, fold_stream)?;
            if shorter_nest.symbols().len() < nest.symbols().len() {
                (annotated, nest, numbers) = (without, shorter_nest, shorter);
            } else {
                longer = Some((without.kind_of.len(), shorter_nest));
            }
        }
    }
    let (plain, fewer) = annotated.with_fewer_tags(TagUse::Never)?;
    let shown = match longer {
        _ if plain.kind_of.len() == annotated.kind_of.len() => None,
        // Without tags that matter it is what was tried before.
        Some((kinds, nest)) if kinds == plain.kind_of.len() => Some(plain.shown(nest)),
        _ => {
            numbers.iter_mut().for_each(|number| *number = fewer[number.index()]);
            Some(plain.shown(LoopCollapsed::of(&numbers, fold_stream)?))
        }
    };
    Ok(ProcessTrace::new(annotated, nest, shown, Kinds::entered(&entered)))
}

/// How many events are unfolded at once.
const PAGE: usize = 1 << 12;

/// With the loops that the fold has.
fn trace_as_stored(
    fold: &Fold,
    root: RuleId,
    kinds: &Kinds,
    forms: Forms<'_>,
    limit: usize,
) -> Result<ProcessTrace> {
    let stored = LoopCollapsed::of_rule(fold, root, limit)?;
    let mut entered = vec![0u64; kinds.functions.len()];
    for (index, symbol) in stored.symbols().iter().enumerate() {
        if let Kind::Enter(function) = kinds.of[symbol.index()] {
            // No more than the stream has events, all together.
            entered[function as usize] += stored.times(index, index + 1);
        }
    }
    let stored = stored.filtered(|symbol| kinds.of[symbol.index()] == Kind::Taken)?;
    let mut annotated = Annotated::new(fold.alphabet().len(), forms)?;
    for &symbol in stored.symbols() {
        annotated.number(symbol, NOWHERE)?;
    }
    let numbers = stored.renamed(|symbol| annotated.number(symbol, NOWHERE).unwrap_or(symbol));
    Ok(ProcessTrace::new(annotated, numbers, None, Kinds::entered(&entered)))
}
