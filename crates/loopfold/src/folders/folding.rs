//! The sink that folds what is pushed into it, so that a trace longer than memory takes
//! the same road as a short one.
//!
//! Each stream has an [`Online`] of its own. Symbols are handed over in batches, to
//! worker threads when there are several, so that reading and folding, and streams among
//! themselves, run side by side. Which thread does what changes nothing in the result.
//!
//! Memory: the grammars; up to a million symbols that wait to be handed over and a few
//! batches on their way; the alphabet; and times, if they are kept, as a trace keeps them.

use super::{Folded, Folder, Online};
use crate::fold::{FoldBuilder, FoldedStream};
use crate::trace::{Event, Intake, Projection, Sink, TimesKept, Timing};
use crate::{Error, Fold, Result, StreamId, Symbol};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

/// How many symbols of a stream are handed over at once.
const BATCH: usize = 1 << 14;
/// How many symbols of all streams may wait.
const WAITING: usize = 1 << 20;
/// How many messages a worker may lag behind.
const LAG: usize = 4;

/// Folds events while they are pushed.
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
    hands: Hands,
    /// For each stream the symbols that were not handed over yet.
    waiting: Vec<Vec<Symbol>>,
    waiting_in_all: usize,
}

impl Folding {
    /// Folds with an online folder, in the thread that pushes. Fails for a folder that
    /// must see a whole stream first.
    pub fn new(folder: impl Folder + 'static) -> Result<Self> {
        Self::with(Box::new(folder), Projection::default(), TimesKept::All, 1)
    }

    /// Takes events as `projection` sees them and folds on `threads` threads: 1 is the
    /// thread that pushes, more are besides it.
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
        let hands = match threads {
            0 | 1 => Hands::Own(Vec::new()),
            _ => Hands::Workers((0..threads).map(|_| Worker::start()).collect()),
        };
        Ok(Self {
            intake: Intake::new(projection, times),
            folder,
            hands,
            waiting: Vec::new(),
            waiting_in_all: 0,
        })
    }

    /// The fold of what came so far. Pushing can go on.
    pub fn so_far(&mut self) -> Result<Fold> {
        self.hand_over_all()?;
        let folds = match &mut self.hands {
            Hands::Own(streams) => streams.iter().map(|stream| rules_of(&**stream)).collect::<Result<_>>()?,
            Hands::Workers(workers) => ask_all(workers, self.waiting.len())?,
        };
        self.join(folds)
    }

    /// The fold of everything.
    pub fn finish(mut self) -> Result<Fold> {
        self.hand_over_all()?;
        let folds = match std::mem::replace(&mut self.hands, Hands::Own(Vec::new())) {
            Hands::Own(streams) => streams.into_iter().map(finished).collect::<Result<_>>()?,
            Hands::Workers(workers) => finish_all(workers, self.waiting.len())?,
        };
        self.join(folds)
    }

    /// One fold of the folds of all streams, in their order; equal rules become one.
    fn join(&self, folds: Vec<(Fold, Folded)>) -> Result<Fold> {
        let mut builder = FoldBuilder::new(self.intake.alphabet.clone());
        for (head, (fold, folded)) in self.intake.streams.iter().zip(folds) {
            let root = builder.append_rules(&fold, Ok)?[folded.root.index()];
            let stream = folded.stream(&head.name, &*self.folder, &head.notes);
            builder.stream(FoldedStream { root, ..stream }.with_times(head.times.clone()));
        }
        Ok(builder.finish())
    }

    fn hand_over_all(&mut self) -> Result<()> {
        (0..self.waiting.len()).try_for_each(|stream| self.hand_over(stream))
    }

    fn hand_over(&mut self, stream: usize) -> Result<()> {
        let symbols = &mut self.waiting[stream];
        self.waiting_in_all -= symbols.len();
        match &mut self.hands {
            Hands::Own(streams) => {
                streams[stream].extend(symbols)?;
                symbols.clear();
                Ok(())
            }
            Hands::Workers(_) if symbols.is_empty() => Ok(()),
            Hands::Workers(workers) => {
                let worker = &workers[stream % workers.len()];
                worker.send(Message::Extend(stream, std::mem::take(symbols)))
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
            match &mut self.hands {
                Hands::Own(streams) => streams.push(online),
                Hands::Workers(workers) => {
                    let worker = &workers[stream.index() % workers.len()];
                    worker.send(Message::Open(stream.index(), online))?;
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
        self.intake.take(stream, symbol, timing)?;
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

/// Who folds: the pushing thread, or workers that each have the streams with their
/// number, modulo how many they are.
enum Hands {
    Own(Vec<Box<dyn Online>>),
    Workers(Vec<Worker>),
}

enum Message {
    Open(usize, Box<dyn Online>),
    Extend(usize, Vec<Symbol>),
    /// Asks for the rules so far of every stream.
    Ask(Sender<(usize, Result<(Fold, Folded)>)>),
}

type Finished = Result<Vec<(usize, (Fold, Folded))>>;

struct Worker {
    messages: SyncSender<Message>,
    thread: JoinHandle<Finished>,
}

impl Worker {
    fn start() -> Self {
        let (messages, inbox) = sync_channel(LAG);
        Self { messages, thread: std::thread::spawn(move || work(inbox)) }
    }

    fn send(&self, message: Message) -> Result<()> {
        self.messages.send(message).map_err(|_| stopped())
    }
}

fn stopped() -> Error {
    Error::invalid("a thread that folds has stopped")
}

/// What a worker does until there is nothing more to come. After a failure it takes
/// messages without heeding them: the failure is told at the end.
fn work(inbox: Receiver<Message>) -> Finished {
    let mut streams: Vec<(usize, Box<dyn Online>)> = Vec::new();
    let mut places: hashbrown::HashMap<usize, usize> = hashbrown::HashMap::new();
    let mut outcome = Ok(());
    for message in inbox {
        match message {
            Message::Open(stream, online) => {
                places.insert(stream, streams.len());
                streams.push((stream, online));
            }
            Message::Extend(stream, symbols) if outcome.is_ok() => {
                outcome = streams[places[&stream]].1.extend(&symbols);
            }
            Message::Extend(..) => {}
            Message::Ask(answer) => {
                for (stream, online) in &streams {
                    // Whoever asked may have gone.
                    let _ = answer.send((*stream, rules_of(&**online)));
                }
            }
        }
    }
    outcome?;
    streams.into_iter().map(|(stream, online)| Ok((stream, finished(online)?))).collect()
}

fn ask_all(workers: &[Worker], streams: usize) -> Result<Vec<(Fold, Folded)>> {
    let (answer, answers) = channel();
    for worker in workers {
        worker.send(Message::Ask(answer.clone()))?;
    }
    drop(answer);
    let parts: Vec<_> = answers.iter().collect();
    in_order(parts.into_iter().map(|(stream, fold)| Ok((stream, fold?))), streams)
}

fn finish_all(workers: Vec<Worker>, streams: usize) -> Result<Vec<(Fold, Folded)>> {
    let (messages, threads): (Vec<_>, Vec<_>) =
        workers.into_iter().map(|worker| (worker.messages, worker.thread)).unzip();
    drop(messages);
    let join =
        |thread: JoinHandle<Finished>| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let parts: Vec<_> = threads.into_iter().map(join).collect::<Result<_>>()?;
    in_order(parts.into_iter().flatten().map(Ok), streams)
}

fn in_order<T>(parts: impl Iterator<Item = Result<(usize, T)>>, streams: usize) -> Result<Vec<T>> {
    let mut slots: Vec<Option<T>> = (0..streams).map(|_| None).collect();
    for part in parts {
        let (stream, value) = part?;
        slots[stream] = Some(value);
    }
    slots.into_iter().map(|slot| slot.ok_or_else(stopped)).collect()
}

fn rules_of(stream: &dyn Online) -> Result<(Fold, Folded)> {
    let mut builder = FoldBuilder::default();
    let root = stream.rules(&mut builder)?;
    Ok((builder.finish(), root.into()))
}

fn finished(stream: Box<dyn Online>) -> Result<(Fold, Folded)> {
    let mut builder = FoldBuilder::default();
    let folded = stream.finish(&mut builder)?;
    Ok((builder.finish(), folded))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::folders::{Outermost, SequiturRuns, fold_trace};
    use crate::trace::Collector;
    use loopfold_testing::{Rng, streams};

    fn sinks(threads: usize) -> (Collector, Folding) {
        let folding =
            Folding::with(Box::new(SequiturRuns), Projection::default(), TimesKept::All, threads).unwrap();
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

    #[test]
    fn a_folder_that_needs_the_whole_stream_is_refused() {
        assert!(Folding::new(Outermost::default()).is_err());
    }
}
