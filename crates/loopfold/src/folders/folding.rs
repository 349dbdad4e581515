//! The sink that folds events as they are pushed, so that a trace longer than memory is folded
//! like a short one.
//!
//! Each stream has an [`Online`] of its own. Symbols are handed over in batches, to worker
//! threads when there are several, so that reading and folding run in parallel, and so do
//! streams. The result does not depend on the threads. Symbols are lost when a stream fails, so
//! after a failure there is no fold: every call that would return one, or hand over more
//! symbols, reports that failure again. The threads end with the sink, and at an
//! [interrupt](crate::interrupt) of the thread that made it or ends it.
//!
//! Memory: the grammars; up to a million symbols that wait to be handed over, and a few batches
//! in flight; the alphabet; and times, if they are kept, as a trace keeps them.

use super::{FoldedRoot, Folder, Online};
use crate::fold::FoldBuilder;
use crate::interrupt::{self, Interrupt};
use crate::trace::{Event, Intake, Projection, Sink, TimesKept, Timing};
use crate::{Error, Fold, Result, StreamId, Symbol};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

/// How many symbols of a stream are handed over at once.
const BATCH: usize = 1 << 14;
/// How many symbols of all streams may wait.
const WAITING: usize = 1 << 20;
/// How many messages a worker may lag behind.
const LAG: usize = 4;

/// Folds events while they are pushed, with all their times.
///
/// Threads share it behind a lock: each has a stream of its own, gathers symbols, and holds
/// the lock while it pushes a batch.
///
/// ```
/// use loopfold::folders::{Auto, Folding};
/// use loopfold::trace::{Event, Sink};
/// use std::sync::Mutex;
///
/// let folding = Mutex::new(Folding::new(Auto)?);
/// std::thread::scope(|scope| {
///     for worker in ["worker 0", "worker 1"] {
///         let folding = &folding;
///         scope.spawn(move || -> loopfold::Result<()> {
///             let (stream, read, write) = {
///                 let mut folding = folding.lock().unwrap();
///                 let symbols = ["read", "write"].map(|name| folding.intern(&name.into()));
///                 let [read, write] = symbols;
///                 (folding.stream(worker)?, read?, write?)
///             };
///             for _ in 0..100 {
///                 folding.lock().unwrap().push_symbols(stream, &[read, write, write])?;
///             }
///             Ok(())
///         });
///     }
/// });
/// let fold = folding.into_inner().unwrap().finish()?;
/// assert!(fold.streams().iter().all(|stream| fold.nest_text(stream.root()) == "(read (write)^2)^100"));
/// # Ok::<(), loopfold::Error>(())
/// ```
///
/// With times:
///
/// ```
/// use loopfold::folders::{Folding, SequiturRuns};
/// use loopfold::trace::{Event, Sink, Timing};
///
/// let mut folding = Folding::new(SequiturRuns)?;
/// let main = folding.stream("main")?;
/// let compute = folding.intern(&Event::named("compute"))?;
/// let exchange = folding.intern(&Event::named("exchange"))?;
/// for step in 0..1000 {
///     folding.push(main, compute, Timing::UNKNOWN)?;
///     if step % 10 == 9 {
///         folding.push(main, exchange, Timing::UNKNOWN)?;
///     }
/// }
/// let fold = folding.finish()?;
/// assert_eq!(fold.nest_text(fold.streams()[0].root()), "((compute)^10 exchange)^100");
/// # Ok::<(), loopfold::Error>(())
/// ```
pub struct Folding {
    intake: Intake,
    folder: Box<dyn Folder>,
    executor: Executor,
    /// For each stream the symbols that were not handed over yet.
    waiting: Vec<Vec<Symbol>>,
    waiting_in_all: usize,
}

opaque_debug!(Folding);

impl Folding {
    /// Folds with an online folder, in the thread that pushes; events are taken as they are, with
    /// all their times. Fails for a folder that must see a whole stream first: those that need
    /// not are [`Auto`](super::Auto), [`SequiturRuns`](super::SequiturRuns),
    /// [`Sequitur`](super::Sequitur) and [`Sequitur1`](super::Sequitur1).
    pub fn new(folder: impl Folder + 'static) -> Result<Self> {
        Self::with(Box::new(folder), Projection::default(), TimesKept::All, 1)
    }

    /// Takes events as `projection` sees them and folds on `threads` threads: 1 is the thread
    /// that pushes, more are additional threads.
    pub fn with(
        folder: Box<dyn Folder>,
        projection: Projection,
        times: TimesKept,
        threads: usize,
    ) -> Result<Self> {
        if folder.online().is_none() {
            return Err(Error::invalid(format_args!(
                "the folder {} must see a stream as a whole",
                folder.name()
            )));
        }
        let executor = match threads {
            0 | 1 => Executor::Inline(Grammars::default()),
            _ => Executor::Pool((0..threads).map(|_| Worker::start()).collect()),
        };
        Ok(Self {
            intake: Intake::new(projection, times),
            folder,
            executor,
            waiting: Vec::new(),
            waiting_in_all: 0,
        })
    }

    /// The fold of what came so far. Pushing can continue.
    ///
    /// Costs O(rules so far), and waits until threads have folded what was pushed.
    /// [`Auto`](super::Auto) chooses only at the end, so that
    /// [`finish`](Self::finish) may give other rules.
    pub fn so_far(&mut self) -> Result<Fold> {
        self.hand_over_all()?;
        let folds = match &self.executor {
            Executor::Inline(grammars) => grammars.so_far()?,
            Executor::Pool(workers) => ask_all(workers)?,
        };
        let (fold, roots) = joined(folds)?;
        self.with_streams(&fold, &roots)
    }

    /// The fold of everything.
    pub fn finish(mut self) -> Result<Fold> {
        self.hand_over_all()?;
        let folds = match std::mem::replace(&mut self.executor, Executor::Pool(Vec::new())) {
            Executor::Inline(grammars) => grammars.finish()?,
            Executor::Pool(workers) => finish_all(workers)?,
        };
        let (fold, roots) = joined(folds)?;
        let (fold, roots) = match self.folder.refine(&fold, &roots)? {
            Some(refined) => refined,
            None => (fold, roots),
        };
        self.with_streams(&fold, &roots)
    }

    /// The fold of everything as a part of a trace whose other parts are folded elsewhere: the
    /// parts, joined, become the whole by [`finish_parts`](super::finish_parts).
    pub fn finish_part(mut self) -> Result<Fold> {
        self.hand_over_all()?;
        let folds = match std::mem::replace(&mut self.executor, Executor::Pool(Vec::new())) {
            Executor::Inline(grammars) => grammars.finish()?,
            Executor::Pool(workers) => finish_all(workers)?,
        };
        let (fold, roots) = joined(folds)?;
        self.with_streams(&fold, &roots)
    }

    /// The fold with alphabet and streams.
    fn with_streams(&self, fold: &Fold, roots: &[FoldedRoot]) -> Result<Fold> {
        let mut builder = FoldBuilder::new(self.intake.alphabet.clone());
        let renamed = builder.append_rules(fold, Ok)?;
        for (head, folded) in self.intake.streams.iter().zip(roots) {
            let stream = folded.clone().renamed(&renamed).stream(&head.name, &*self.folder, &head.notes);
            builder.stream(stream.with_times(head.times.clone()));
        }
        Ok(builder.finish())
    }

    fn hand_over_all(&mut self) -> Result<()> {
        (0..self.waiting.len()).try_for_each(|stream| self.hand_over(stream))
    }

    fn hand_over(&mut self, stream: usize) -> Result<()> {
        interrupt::poll();
        let symbols = &mut self.waiting[stream];
        self.waiting_in_all -= symbols.len();
        match &mut self.executor {
            Executor::Inline(grammars) => {
                let outcome = grammars.extend(stream, symbols);
                symbols.clear();
                outcome
            }
            Executor::Pool(_) if symbols.is_empty() => Ok(()),
            Executor::Pool(workers) => {
                let (worker, place) = (stream % workers.len(), stream / workers.len());
                workers[worker].send(Message::Extend(place, std::mem::take(symbols)))
            }
        }
    }
}

impl Sink for Folding {
    fn stream(&mut self, name: &str) -> Result<StreamId> {
        let (stream, is_new) = self.intake.stream(name)?;
        if is_new {
            let online = self.folder.online().ok_or_else(|| Error::invalid("not an online folder"))?;
            self.waiting.push(Vec::new());
            match &mut self.executor {
                Executor::Inline(grammars) => grammars.streams.push(online),
                Executor::Pool(workers) => {
                    workers[stream.index() % workers.len()].send(Message::Open(online))?;
                }
            }
        }
        Ok(stream)
    }

    fn describe(&mut self, stream: StreamId, key: &str, value: &str) -> Result<()> {
        self.intake.describe(stream, key, value)
    }

    #[inline]
    fn intern(&mut self, event: &Event<'_>) -> Result<Symbol> {
        self.intake.intern(event)
    }

    #[inline]
    fn push(&mut self, stream: StreamId, symbol: Symbol, timing: Timing<'_>) -> Result<()> {
        if !self.intake.take(stream, symbol, timing)? {
            return Ok(());
        }
        let waiting = &mut self.waiting[stream.index()];
        waiting.push(symbol);
        self.waiting_in_all += 1;
        if waiting.len() >= BATCH {
            self.hand_over(stream.index())?;
        } else if self.waiting_in_all >= WAITING {
            self.hand_over_all()?;
        }
        Ok(())
    }

    fn projection(&self) -> &Projection {
        &self.intake.projection
    }

    fn wants_times(&self) -> bool {
        self.intake.wants_times()
    }

    fn stream_count(&self) -> usize {
        self.intake.streams.len()
    }

    fn events(&self) -> u64 {
        self.intake.events()
    }

    fn unseen_fields(&self) -> &[String] {
        self.intake.unseen_fields()
    }
}

/// The threads that fold: the pushing one, or workers. Of n workers, number w has the streams
/// w, w + n, w + 2n and so on, at the places 0, 1, 2.
enum Executor {
    Inline(Grammars),
    Pool(Vec<Worker>),
}

/// The streams that one thread folds, and the first failure among them.
#[derive(Default)]
struct Grammars {
    streams: Vec<Box<dyn Online>>,
    failure: Arc<OnceLock<Error>>,
}

impl Grammars {
    fn check(&self) -> Result<()> {
        self.failure.get().map_or(Ok(()), |failure| Err(failure.clone()))
    }

    fn extend(&mut self, place: usize, symbols: &[Symbol]) -> Result<()> {
        self.check()?;
        let outcome = self.streams[place].extend(symbols);
        outcome.map_err(|error| self.failure.get_or_init(|| error).clone())
    }

    fn so_far(&self) -> Result<Vec<(Fold, FoldedRoot)>> {
        self.check()?;
        self.streams.iter().map(|stream| stream.so_far()).collect()
    }

    fn finish(self) -> Result<Vec<(Fold, FoldedRoot)>> {
        self.check()?;
        self.streams.into_iter().map(Online::finish).collect()
    }
}

/// One fold of the folds of all streams, in their order; equal rules become one.
fn joined(folds: Vec<(Fold, FoldedRoot)>) -> Result<(Fold, Vec<FoldedRoot>)> {
    let mut builder = FoldBuilder::default();
    let roots = folds.into_iter().map(|folded| super::append(&mut builder, folded)).collect::<Result<_>>()?;
    Ok((builder.finish(), roots))
}

enum Message {
    Open(Box<dyn Online>),
    Extend(usize, Vec<Symbol>),
    /// Asks for the rules so far of every stream.
    Ask(Sender<Folds>),
    /// Asks for the rules of every stream, which ends here, and for the end of the thread.
    Finish(Interrupt),
}

/// The rules of the streams of a thread.
type Folds = Result<Vec<(Fold, FoldedRoot)>>;

/// A thread that folds. It ends at the first failure, so that the sender learns of it at once
/// and not when everything was read; and with the value.
struct Worker {
    /// Both are there until the thread is joined.
    messages: Option<SyncSender<Message>>,
    thread: Option<JoinHandle<Folds>>,
    failure: Arc<OnceLock<Error>>,
}

impl Drop for Worker {
    /// Nobody wants the rules any more: the thread ends with the messages that it has.
    fn drop(&mut self) {
        self.messages = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Worker {
    fn start() -> Self {
        let (messages, inbox) = sync_channel(LAG);
        let grammars = Grammars::default();
        let failure = Arc::clone(&grammars.failure);
        let interrupt = interrupt::current();
        let thread = std::thread::spawn(move || interrupt.enter(|| work(inbox, grammars)));
        Self { messages: Some(messages), thread: Some(thread), failure }
    }

    fn send(&self, message: Message) -> Result<()> {
        let sent = self.messages.as_ref().is_some_and(|messages| messages.send(message).is_ok());
        if sent { Ok(()) } else { Err(self.stopped()) }
    }

    /// What the thread returns, once it has ended.
    fn joined(mut self) -> Folds {
        self.messages = None;
        match self.thread.take() {
            Some(thread) => interrupt::joined(thread.join()),
            None => Err(self.stopped()),
        }
    }

    /// Why the thread has ended.
    fn stopped(&self) -> Error {
        self.failure.get().cloned().unwrap_or_else(|| Error::invalid("a thread that folds has stopped"))
    }
}

/// The loop of a worker thread.
fn work(inbox: Receiver<Message>, mut grammars: Grammars) -> Folds {
    for message in inbox {
        match message {
            Message::Open(online) => grammars.streams.push(online),
            Message::Extend(place, symbols) => grammars.extend(place, &symbols)?,
            Message::Ask(answer) => {
                // The receiver may have been dropped.
                let _ = answer.send(grammars.so_far());
            }
            Message::Finish(interrupt) => return interrupt.enter(|| grammars.finish()),
        }
    }
    Ok(Vec::new())
}

fn ask_all(workers: &[Worker]) -> Result<Vec<(Fold, FoldedRoot)>> {
    let mut answers = Vec::new();
    for worker in workers {
        let (answer, inbox) = channel();
        worker.send(Message::Ask(answer))?;
        answers.push(inbox);
    }
    let answer = |(worker, inbox): (&Worker, Receiver<Result<_>>)| {
        // A worker that ended did not answer.
        inbox.recv().unwrap_or_else(|_| Err(worker.stopped()))
    };
    let parts = workers.iter().zip(answers).map(answer).collect::<Result<Vec<_>>>()?;
    Ok(in_order(parts))
}

fn finish_all(workers: Vec<Worker>) -> Result<Vec<(Fold, FoldedRoot)>> {
    for worker in &workers {
        // One that has stopped says why when it is joined.
        let _ = worker.send(Message::Finish(interrupt::current()));
    }
    let parts = workers.into_iter().map(Worker::joined).collect::<Result<Vec<_>>>()?;
    Ok(in_order(parts))
}

/// The folds of all streams in their order, from those that each worker has.
fn in_order<T>(parts: Vec<Vec<T>>) -> Vec<T> {
    let mut parts: Vec<_> = parts.into_iter().map(Vec::into_iter).collect();
    let mut folds = Vec::new();
    loop {
        let before = folds.len();
        folds.extend(parts.iter_mut().filter_map(Iterator::next));
        if folds.len() == before {
            return folds;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::folders::{Auto, Outermost, SequiturRuns, fold_trace};
    use crate::trace::Collector;
    use loopfold_testing::{Rng, streams};

    fn sinks(threads: usize) -> (Collector, Folding) {
        sinks_of(Box::new(SequiturRuns), threads)
    }

    fn sinks_of(folder: Box<dyn Folder>, threads: usize) -> (Collector, Folding) {
        let folding = Folding::with(folder, Projection::default(), TimesKept::All, threads).unwrap();
        (Collector::default(), folding)
    }

    fn fill(sink: &mut dyn Sink, seed: u64) {
        let mut rng = Rng::new(seed);
        for stream in 0..rng.below(6) {
            let id = sink.stream(&format!("stream {}", stream % 4)).unwrap();
            sink.describe(id, "title", "a title").unwrap();
            for (index, symbol) in streams::small(&mut rng, 50_000).into_iter().enumerate() {
                let start = seed.is_multiple_of(2).then_some(index as i64);
                let symbol = sink.intern(&Event::integer(symbol.into())).unwrap();
                sink.push(id, symbol, Timing { start, ..Timing::UNKNOWN }).unwrap();
            }
        }
    }

    #[test]
    fn folding_on_the_way_equals_folding_a_collected_trace() {
        for seed in 0..200 {
            let (mut collector, mut folding) = sinks(1 + seed as usize % 4);
            fill(&mut collector, seed);
            fill(&mut folding, seed);
            assert_eq!(collector.events(), folding.events());
            let expected = fold_trace(collector.finish().unwrap(), &SequiturRuns, 1).unwrap();
            let so_far = folding.so_far().unwrap();
            for (stream, other) in expected.streams().iter().zip(so_far.streams()) {
                assert!(expected.unfold(stream.root()).eq(so_far.unfold(other.root())));
            }
            assert_eq!(expected.canonical(), folding.finish().unwrap().canonical(), "seed {seed}");
        }
    }

    /// Streams are also folded together in the end, the same way.
    #[test]
    fn auto_gives_the_same_on_the_way() {
        for seed in 0..200 {
            let (mut collector, mut folding) = sinks_of(Box::new(Auto), 1 + seed as usize % 4);
            fill(&mut collector, seed);
            fill(&mut folding, seed);
            let expected = fold_trace(collector.finish().unwrap(), &Auto, 1).unwrap();
            assert_eq!(expected.canonical(), folding.finish().unwrap().canonical(), "seed {seed}");
        }
    }

    #[test]
    fn several_threads_push_into_one_sink() {
        let (_, mut folding) = sinks(2);
        let symbols = ["a", "b", "c"].map(|name| folding.intern(&Event::named(name)).unwrap());
        let ids = ["s", "t", "u"].map(|name| folding.stream(name).unwrap());
        let shared = std::sync::Mutex::new(folding);
        std::thread::scope(|scope| {
            for (thread, id) in ids.into_iter().enumerate() {
                let shared = &shared;
                scope.spawn(move || {
                    for start in 0..1000 {
                        let timing = Timing { start: Some(start), ..Timing::UNKNOWN };
                        let symbol = symbols[start as usize % (thread + 1)];
                        shared.lock().unwrap().push(id, symbol, timing).unwrap();
                    }
                });
            }
        });
        let fold = shared.into_inner().unwrap().finish().unwrap();
        let nests = fold.streams().iter().map(|stream| fold.nest_text(stream.root()));
        assert_eq!(nests.collect::<Vec<_>>(), ["(a)^1000", "(a b)^500", "(a b c)^333 a"]);
    }

    #[test]
    fn a_folder_that_needs_the_whole_stream_is_refused() {
        assert!(Folding::new(Outermost::default()).is_err());
    }
}
