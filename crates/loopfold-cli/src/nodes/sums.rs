//! Sums of times, computed where the times are: for `stats`, so that no column travels.
//!
//! A process answers with the fold of its streams in which every stream has sums in place of its
//! times, as `fold --times summary` writes it. Sums are added in the order of all streams, as one process
//! adds them, since sums of metrics depend on the order.

use super::Nodes;
use super::serve::sums_request;
use super::share::OwnTimes;
use super::wire::{Message, Received};
use anyhow::{Context as _, Result};
use loopfold::archive::{self, ReadConfig};
use loopfold::fold::{DurationSum, MetricSum, StreamSums};
use loopfold::questions::rule_sums::summarize;
use loopfold::questions::self_time::SelfSums;
use loopfold::questions::sums::EventSums;
use loopfold::{Error, Fold, Symbol};
use std::io::Cursor;
use std::sync::Arc;

/// Streams whose times are in several processes.
#[derive(Clone)]
pub(crate) struct SharedTimes {
    pub(super) nodes: &'static Nodes,
    /// For each stream the process that has its times.
    pub(super) owners: Vec<usize>,
    /// Their names.
    pub(super) names: Vec<String>,
    /// What this process has.
    pub(super) own: Arc<OwnTimes>,
    /// Whether streams and events are those that were read.
    pub(crate) is_as_read: bool,
}

/// What `stats` shows of times.
pub(crate) struct TimeSums {
    /// How long each stream took.
    pub(crate) spans: Vec<Option<i64>>,
    /// How long the execution took.
    pub(crate) time: Option<u64>,
    pub(crate) events: loopfold::Result<EventSums>,
    pub(crate) own: Option<SelfSums>,
}

/// The sums of the streams of a process, and whether events nest in one.
struct Summed {
    fold: Fold,
    nests: bool,
}

impl Summed {
    fn of(own: &OwnTimes) -> Result<Self> {
        let fold = own.fold_with_times()?;
        let nests = fold.self_sums()?.is_some_and(|sums| sums.nests);
        Ok(Self { fold: summarize(fold)?, nests })
    }

    fn decode(bytes: &[u8]) -> Result<Self> {
        let mut received = Received(bytes);
        let nests = received.number()? > 0;
        let (fold, _) = archive::read(Cursor::new(received.bytes()?), &ReadConfig::new())?;
        Ok(Self { fold, nests })
    }
}

/// The answer to a request.
pub(super) fn answer(own: &OwnTimes) -> Result<Vec<u8>> {
    let summed = Summed::of(own)?;
    let mut bytes = Vec::new();
    archive::write(&summed.fold, &mut bytes)?;
    Ok(Message::default().number(summed.nests.into()).bytes(&bytes).0)
}

impl SharedTimes {
    /// Whether a fold has these streams, in this order.
    pub(super) fn has_all_of(&self, fold: &Fold) -> bool {
        let names = fold.streams().iter().map(|stream| stream.name().raw());
        self.names.iter().map(String::as_str).eq(names)
    }

    /// The sums of all streams, by the symbols of this fold, which has these streams.
    pub(crate) fn sums(&self, fold: &Fold) -> Result<TimeSums> {
        for rank in 1..self.nodes.size() {
            self.nodes.send(rank, &sums_request().0)?;
        }
        let mut parts = vec![Summed::of(&self.own)?];
        for rank in 1..self.nodes.size() {
            parts.push(Summed::decode(&self.nodes.receive(rank)?)?);
        }
        let symbols: Vec<Vec<Symbol>> =
            parts.iter().map(|part| symbols_in(fold, &part.fold)).collect::<Result<_>>()?;
        let mut places = vec![0; parts.len()];
        let mut all = Vec::new();
        for &owner in &self.owners {
            let stream = parts[owner].fold.streams().get(places[owner]).context("a stream has no sums")?;
            places[owner] += 1;
            all.push((stream.sums(), &symbols[owner][..]));
        }
        let nests = parts.iter().any(|part| part.nests);
        let count = fold.alphabet().len();
        Ok(TimeSums {
            spans: all.iter().map(|(sums, _)| sums.and_then(StreamSums::span)).collect(),
            time: run_time(all.iter().filter_map(|(sums, _)| *sums))?,
            events: event_sums(&all, count),
            own: self_sums(&all, count, nests)?,
        })
    }
}

/// The symbols of a part in the whole.
fn symbols_in(whole: &Fold, part: &Fold) -> Result<Vec<Symbol>> {
    let symbol = |symbol| whole.alphabet().symbol(&part.alphabet().meaning(symbol).event());
    let all = part.alphabet().symbols().map(symbol).collect::<Option<_>>();
    all.context("an event of another process is not known here")
}

type Streams<'a> = [(Option<&'a StreamSums>, &'a [Symbol])];

fn too_large() -> Error {
    Error::limit("sums of times are too large")
}

fn add(to: &mut DurationSum, sum: &DurationSum) -> loopfold::Result<()> {
    to.known = to.known.checked_add(sum.known).ok_or_else(too_large)?;
    to.total = to.total.checked_add(sum.total).ok_or_else(too_large)?;
    Ok(())
}

fn event_sums(streams: &Streams<'_>, count: usize) -> loopfold::Result<EventSums> {
    let mut all = EventSums::default();
    for (sums, symbols) in streams {
        let Some(sums) = sums else { continue };
        if let Some(durations) = &sums.durations {
            let to = all.durations.get_or_insert_with(|| vec![DurationSum::default(); count]);
            for (symbol, sum) in durations {
                add(&mut to[symbols[symbol.index()].index()], sum)?;
            }
        }
        for (name, metrics) in &sums.metrics {
            let place = all.metrics.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
                all.metrics.push((name.clone(), vec![MetricSum::default(); count]));
                all.metrics.len() - 1
            });
            for (symbol, sum) in metrics {
                let to = &mut all.metrics[place].1[symbols[symbol.index()].index()];
                to.known = to.known.checked_add(sum.known).ok_or_else(too_large)?;
                to.total += sum.total;
            }
        }
    }
    Ok(all)
}

fn self_sums(streams: &Streams<'_>, count: usize, nests: bool) -> Result<Option<SelfSums>> {
    let mut all: Option<SelfSums> = None;
    for (sums, symbols) in streams {
        let Some(events) = sums.and_then(|sums| sums.self_times.as_ref()) else { continue };
        let all = all.get_or_insert_with(|| SelfSums { events: vec![DurationSum::default(); count], nests });
        for (symbol, sum) in events {
            add(&mut all.events[symbols[symbol.index()].index()], sum)?;
        }
    }
    Ok(all)
}

/// From the first start to the last end; streams without starts took the sum of their durations.
fn run_time<'a>(streams: impl Iterator<Item = &'a StreamSums>) -> Result<Option<u64>> {
    let (mut range, mut longest) = (None::<(i128, i128)>, None::<i128>);
    for sums in streams {
        match sums.began.zip(sums.ended) {
            Some((began, ended)) => {
                let (first, last) = range.unwrap_or((began.into(), ended.into()));
                range = Some((first.min(began.into()), last.max(ended.into())));
            }
            None => longest = longest.max(sums.total_duration()?),
        }
    }
    let time = range.map(|(first, last)| last - first).max(longest);
    Ok(time.and_then(|time| u64::try_from(time).ok()))
}
