//! Keeps the call stack of each thread, and emits the events of calls.
//!
//! Every event has its function, because blocks and exits of different functions look the
//! same in a trace and are not: an entry is an enter with the function's
//! name; a block has the field `function`; an exit is a leave with the function's name and
//! the field `function`. What happens outside of any call that the trace shows being
//! entered belongs to the function `?`, one for all frames that are not known. Where a
//! trace shows calls and nothing else, the calls that a function makes are its blocks: an
//! entry then has the field `caller`, unless that is not known.
//!
//! A trace may end inside calls and may return from calls it has not shown; both are
//! counted in notes of the stream, `open-calls` and `unmatched-returns`.
//!
//! O(1) an event; memory is four bytes an open call, every name once and about 30 bytes for
//! each kind of event.

use crate::interner::Interner;
use crate::{Context, Result};
use hashbrown::HashMap;
use loopfold::trace::{Event, Field, Name, Role, Timing, Value};
use loopfold::{StreamId, Symbol};

/// The function of frames whose entry the trace does not show.
pub(crate) const UNKNOWN: &[u8] = b"?";

/// The functions and threads of one input.
pub(crate) struct Frames {
    functions: Interner,
    /// The symbols of the kinds that occurred.
    symbols: HashMap<Kind, Symbol, foldhash::fast::RandomState>,
    unknown: u32,
    with_callers: bool,
    threads: Vec<Thread>,
    by_id: HashMap<Vec<u8>, usize, foldhash::fast::RandomState>,
    /// The thread that events belong to; none before the first event.
    current: Option<usize>,
}

/// A kind of event, with functions by number. Blocks that have names are not among them:
/// to find such a kind costs as much as to intern the event.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Enter { function: u32, caller: Option<u32> },
    Block { function: u32, number: u64 },
    Leave { function: u32 },
}

/// One thread and the calls that are open in it.
struct Thread {
    stream: StreamId,
    /// Functions by number, the outermost first.
    open: Vec<u32>,
    unmatched_returns: u64,
    abandoned: u64,
}

impl Frames {
    /// For a trace that has blocks.
    pub(crate) fn new() -> Result<Self> {
        let mut functions = Interner::default();
        let unknown = functions.intern(UNKNOWN)?;
        Ok(Self {
            functions,
            symbols: HashMap::default(),
            unknown,
            with_callers: false,
            threads: Vec::new(),
            by_id: HashMap::default(),
            current: None,
        })
    }

    /// For a trace of calls alone, which are the blocks of their callers.
    pub(crate) fn with_callers() -> Result<Self> {
        Ok(Self { with_callers: true, ..Self::new()? })
    }

    /// The number of a function.
    pub(crate) fn function(&mut self, name: &[u8]) -> Result<u32> {
        self.functions.intern(name)
    }

    /// What follows happens in this thread.
    pub(crate) fn switch(&mut self, id: &[u8], context: &mut Context<'_>) -> Result<()> {
        if let Some(&known) = self.by_id.get(id) {
            self.current = Some(known);
            return Ok(());
        }
        let stream = context.stream(&format!("thread {}", String::from_utf8_lossy(id)))?;
        // Identifiers that are not text may be the same stream once they are read as text.
        let same = self.threads.iter().position(|thread| thread.stream == stream);
        let index = same.unwrap_or_else(|| self.add(stream));
        self.by_id.insert(id.to_vec(), index);
        self.current = Some(index);
        Ok(())
    }

    fn add(&mut self, stream: StreamId) -> usize {
        self.threads.push(Thread { stream, open: Vec::new(), unmatched_returns: 0, abandoned: 0 });
        self.threads.len() - 1
    }

    /// The thread that events belong to: that of the input, unless the trace names one.
    #[inline]
    fn thread(&mut self, context: &mut Context<'_>) -> Result<usize> {
        match self.current {
            Some(current) => Ok(current),
            None => self.first_thread(context),
        }
    }

    #[cold]
    fn first_thread(&mut self, context: &mut Context<'_>) -> Result<usize> {
        let stream = context.only_stream()?;
        let index = self.add(stream);
        self.current = Some(index);
        Ok(index)
    }

    /// A function is entered.
    pub(crate) fn enter(&mut self, function: u32, context: &mut Context<'_>) -> Result<()> {
        let index = self.thread(context)?;
        let Thread { stream, open, .. } = &mut self.threads[index];
        let (stream, caller) = (*stream, open.last().copied().filter(|_| self.with_callers));
        open.push(function);
        self.push(stream, Kind::Enter { function, caller }, context)
    }

    /// The current function comes to a block.
    #[inline]
    pub(crate) fn block(&mut self, block: Name<'_>, context: &mut Context<'_>) -> Result<()> {
        let index = self.thread(context)?;
        let Thread { stream, open, .. } = &self.threads[index];
        let (stream, function) = (*stream, open.last().copied().unwrap_or(self.unknown));
        match block {
            Name::Integer(number) => self.push(stream, Kind::Block { function, number }, context),
            Name::Text(_) => {
                let fields = [text_field("function", self.functions.get(function))];
                context.push_event(stream, &Event { name: block, role: Role::Block, fields: &fields })
            }
        }
    }

    /// The current function is left.
    pub(crate) fn leave(&mut self, context: &mut Context<'_>) -> Result<()> {
        let index = self.thread(context)?;
        let thread = &mut self.threads[index];
        let function = thread.open.pop().unwrap_or_else(|| {
            thread.unmatched_returns += 1;
            self.unknown
        });
        let stream = thread.stream;
        self.push(stream, Kind::Leave { function }, context)
    }

    /// This function is left, and with it the calls inside it that never returned: a jump
    /// or an exception abandoned them. If it was never entered, nothing else is left.
    pub(crate) fn leave_to(&mut self, function: u32, context: &mut Context<'_>) -> Result<()> {
        let index = self.thread(context)?;
        let thread = &mut self.threads[index];
        let stream = thread.stream;
        let inner = thread.open.iter().rev().take(DEEPEST_JUMP).position(|&open| open == function);
        match inner {
            None => {
                thread.unmatched_returns += 1;
                return self.push(stream, Kind::Leave { function }, context);
            }
            Some(inner) => thread.abandoned += inner as u64,
        }
        while let Some(open) = self.threads[index].open.pop() {
            self.push(stream, Kind::Leave { function: open }, context)?;
            if open == function {
                break;
            }
        }
        Ok(())
    }

    #[inline]
    fn push(&mut self, stream: StreamId, kind: Kind, context: &mut Context<'_>) -> Result<()> {
        let symbol = match self.symbols.get(&kind) {
            Some(&known) => known,
            None => self.intern(kind, context)?,
        };
        context.push(stream, symbol, Timing::UNKNOWN)
    }

    #[cold]
    fn intern(&mut self, kind: Kind, context: &mut Context<'_>) -> Result<Symbol> {
        let text = |function: u32| self.functions.get(function);
        let (role, name, field) = match kind {
            Kind::Enter { function, caller } => {
                let caller = caller.map(|caller| text_field("caller", text(caller)));
                (Role::Enter, Name::Text(text(function)), caller)
            }
            Kind::Block { function, number } => {
                (Role::Block, Name::Integer(number), Some(text_field("function", text(function))))
            }
            Kind::Leave { function } => {
                let function = text(function);
                (Role::Leave, Name::Text(function), Some(text_field("function", function)))
            }
        };
        let symbol = context.intern(&Event { name, role, fields: field.as_slice() })?;
        self.symbols.insert(kind, symbol);
        Ok(symbol)
    }

    /// Notes what was odd. An input without events also has its stream.
    pub(crate) fn finish(mut self, context: &mut Context<'_>) -> Result<()> {
        if self.threads.is_empty() {
            self.first_thread(context)?;
        }
        for thread in &self.threads {
            for (key, count) in [
                ("open-calls", thread.open.len() as u64),
                ("unmatched-returns", thread.unmatched_returns),
                ("abandoned-calls", thread.abandoned),
            ] {
                if count > 0 {
                    context.describe(thread.stream, key, &count.to_string())?;
                }
            }
        }
        Ok(())
    }
}

/// How many calls a jump can abandon: a bound for the search, which a damaged trace would
/// make for every exit.
const DEEPEST_JUMP: usize = 4096;

pub(crate) fn text_field<'a>(key: &'a str, text: &'a [u8]) -> Field<'a> {
    Field { key, value: Value::Text(text) }
}
