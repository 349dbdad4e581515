//! The calls that are open in each thread, and the events that calls are told as.
//!
//! Every event is told with its function, because blocks and exits of different functions
//! look alike in a trace and are not the same: an entry is an enter with the function's
//! name; a block has the field `function`; an exit is a leave with the function's name and
//! the field `function`. What happens outside of any call that the trace shows being
//! entered belongs to the function `?`, one for all frames that are not known. Where a
//! trace shows calls and nothing else, the calls that a function makes are its blocks: an
//! entry then has the field `caller`, unless that is not known.
//!
//! A trace may end inside calls and may return from calls it has not shown; both are
//! counted in notes of the stream, `open-calls` and `unmatched-returns`.
//!
//! Constant time an event; four bytes an open call and every name once.

use crate::interner::Interner;
use crate::{Context, Result};
use hashbrown::HashMap;
use loopfold::StreamId;
use loopfold::trace::{Event, Field, Name, Role, Value};

/// The function of frames whose entry the trace does not show.
pub(crate) const UNKNOWN: &[u8] = b"?";

/// The functions and threads of one input.
pub(crate) struct Frames {
    functions: Interner,
    unknown: u32,
    with_callers: bool,
    threads: Vec<Thread>,
    by_id: HashMap<Vec<u8>, usize, foldhash::fast::RandomState>,
    /// The thread that events belong to; none before the first event.
    current: Option<usize>,
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
        let (threads, by_id) = (Vec::new(), HashMap::default());
        Ok(Self { functions, unknown, with_callers: false, threads, by_id, current: None })
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
        let thread = self.thread(context)?;
        let Thread { stream, open, .. } = &mut self.threads[thread];
        let caller = open.last().copied().filter(|_| self.with_callers);
        let caller = caller.map(|caller| text_field("caller", self.functions.get(caller)));
        push_call(*stream, Role::Enter, self.functions.get(function), caller.as_slice(), context)?;
        open.push(function);
        Ok(())
    }

    /// The current function comes to a block.
    #[inline]
    pub(crate) fn block(&mut self, block: Name<'_>, context: &mut Context<'_>) -> Result<()> {
        let thread = self.thread(context)?;
        let Thread { stream, open, .. } = &self.threads[thread];
        let function = self.functions.get(open.last().copied().unwrap_or(self.unknown));
        let fields = [text_field("function", function)];
        context.push_event(*stream, &Event { name: block, role: Role::Block, fields: &fields })
    }

    /// The current function is left.
    pub(crate) fn leave(&mut self, context: &mut Context<'_>) -> Result<()> {
        let index = self.thread(context)?;
        let thread = &mut self.threads[index];
        let function = thread.open.pop().unwrap_or_else(|| {
            thread.unmatched_returns += 1;
            self.unknown
        });
        push_leave(thread.stream, self.functions.get(function), context)
    }

    /// This function is left, and with it the calls inside it that never returned: a jump
    /// or an exception abandoned them. If it was never entered, nothing else is left.
    pub(crate) fn leave_to(&mut self, function: u32, context: &mut Context<'_>) -> Result<()> {
        let index = self.thread(context)?;
        let thread = &mut self.threads[index];
        let inner = thread.open.iter().rev().take(DEEPEST_JUMP).position(|&open| open == function);
        match inner {
            None => {
                thread.unmatched_returns += 1;
                return push_leave(thread.stream, self.functions.get(function), context);
            }
            Some(inner) => thread.abandoned += inner as u64,
        }
        while let Some(open) = thread.open.pop() {
            push_leave(thread.stream, self.functions.get(open), context)?;
            if open == function {
                break;
            }
        }
        Ok(())
    }

    /// Notes what was odd. An input without events has its stream all the same.
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

fn push_leave(stream: StreamId, function: &[u8], context: &mut Context<'_>) -> Result<()> {
    push_call(stream, Role::Leave, function, &[text_field("function", function)], context)
}

fn push_call(
    stream: StreamId,
    role: Role,
    function: &[u8],
    fields: &[Field<'_>],
    context: &mut Context<'_>,
) -> Result<()> {
    context.push_event(stream, &Event { role, fields, ..Event::named(function) })
}
