//! The times of loops, each read by the process that has them: samples travel instead of columns.
//!
//! Process 0 sends nests and which streams have them, several at once so that all processes compute at the same
//! time, and adds up what they answer; see [`ClassSamples`].

use super::serve::{here, loops_request};
use super::share::OwnTimes;
use super::sums::SharedTimes;
use super::wire::{Message, Received};
use anyhow::{Context as _, Result};
use loopfold::questions::iterations::{ClassSamples, ClassTimes, loop_times};
use loopfold::questions::nest::Nest;
use loopfold::trace::Times;
use loopfold::{Fold, StreamId};
use std::collections::HashMap;

/// A stream of a nest, as the process that has its times knows it.
#[derive(Clone, Copy)]
struct Place {
    stream: StreamId,
    /// Its place among the streams of the nest that have times.
    among: u64,
    owner: usize,
    /// Its place among the streams of that process.
    own: usize,
}

/// The streams of a nest that have times.
struct Asked<'a> {
    nest: &'a Nest,
    streams: &'a [StreamId],
    places: Vec<Place>,
}

impl SharedTimes {
    /// The times of the loops of nests in these streams of a fold, whose events are those that were read.
    pub(crate) fn loop_times(
        &self,
        fold: &Fold,
        nests: &[(&Nest, &[StreamId])],
    ) -> Result<Vec<Option<ClassTimes>>> {
        let known = self.by_name();
        let asked = nests.iter().map(|&(nest, streams)| asked(fold, &known, nest, streams));
        let asked = asked.collect::<Result<Vec<_>>>()?;
        let mut waiting = Vec::new();
        for rank in 1..self.nodes.size() {
            let of_rank: Vec<&Asked<'_>> = asked.iter().filter(|asked| asked.has(rank)).collect();
            if !of_rank.is_empty() {
                let request = loops_request().list(&of_rank, |to, asked| asked.put(to, rank));
                self.nodes.send(rank, &request.0)?;
                waiting.push(rank);
            }
        }
        let own = self.own.times()?;
        let mut samples = Vec::new();
        for Asked { nest, places, .. } in &asked {
            samples.push(samples_of(nest, places.len() as u64, &of_process(places, 0), &own)?);
        }
        for rank in waiting {
            let answer = self.nodes.receive(rank)?;
            let mut received = Received(&answer);
            for (asked, samples) in asked.iter().zip(&mut samples).filter(|(asked, _)| asked.has(rank)) {
                samples.add(asked.nest, received.bytes()?)?;
            }
        }
        let times = |(asked, samples): (&Asked<'_>, ClassSamples)| match samples.is_exact() {
            true => samples.finish(),
            // Every so many iterations are one sample, and some lack times: their order is that of the streams.
            false => loop_times(asked.nest, asked.streams.iter().map(|&id| (id, fold.stream(id).times()))),
        };
        Ok(asked.iter().zip(samples).map(times).collect::<loopfold::Result<_>>()?)
    }

    /// The owner of each stream, and its place there.
    fn by_name<'a>(&'a self) -> HashMap<&'a str, (usize, usize)> {
        let mut counts = vec![0; self.nodes.size()];
        let place = |(name, &owner): (&'a String, &usize)| {
            counts[owner] += 1;
            (name.as_str(), (owner, counts[owner] - 1))
        };
        self.names.iter().zip(&self.owners).map(place).collect()
    }
}

fn asked<'a>(
    fold: &Fold,
    known: &HashMap<&str, (usize, usize)>,
    nest: &'a Nest,
    streams: &'a [StreamId],
) -> Result<Asked<'a>> {
    let has_times = |id: &&StreamId| {
        let times = fold.stream(**id).times();
        times.starts.is_some() || times.durations.is_some()
    };
    let place = |(among, &stream): (u64, &StreamId)| {
        let &(owner, own) =
            known.get(fold.stream(stream).name().raw()).context("a stream that nobody has read")?;
        Ok(Place { stream, among, owner, own })
    };
    let places = (0..).zip(streams.iter().filter(has_times)).map(place).collect::<Result<_>>()?;
    Ok(Asked { nest, streams, places })
}

impl Asked<'_> {
    fn has(&self, rank: usize) -> bool {
        self.places.iter().any(|place| place.owner == rank)
    }

    /// The question to one process.
    fn put(&self, to: Message, rank: usize) -> Message {
        let message = to.bytes(&self.nest.loops_to_bytes()).number(self.places.len() as u64);
        message.list(&of_process(&self.places, rank), |to, place| {
            to.number(place.stream.index() as u64).number(place.among).number(place.own as u64)
        })
    }
}

fn of_process(places: &[Place], rank: usize) -> Vec<Place> {
    places.iter().copied().filter(|place| place.owner == rank).collect()
}

fn samples_of(nest: &Nest, all: u64, places: &[Place], own: &[Times]) -> Result<ClassSamples> {
    let with_times = |place: &Place| {
        let times = own.get(place.own).context("a stream that this process has not read")?;
        Ok((place.stream, place.among, times))
    };
    let streams = places.iter().map(with_times).collect::<Result<Vec<_>>>()?;
    Ok(ClassSamples::of(nest, all, streams)?)
}

/// The answer to such a question.
pub(super) fn answer(request: &mut Received<'_>, own: &OwnTimes) -> Result<Vec<u8>> {
    let own = own.times()?;
    let samples = request.list(|from| {
        let nest = Nest::from_loops(from.bytes()?)?;
        let all = from.number()?;
        let places = from.list(|from| {
            let stream = StreamId::new(from.number()? as usize)?;
            Ok(Place { stream, among: from.number()?, owner: 0, own: from.number()? as usize })
        })?;
        samples_of(&nest, all, &places, &own)
    })?;
    Ok(samples.iter().fold(Message::default(), |to, samples| to.bytes(&samples.to_bytes())).0)
}

impl OwnTimes {
    /// The times of the streams of this process.
    fn times(&self) -> Result<Vec<Times>> {
        let here = here(&self.chunks);
        let times = |outline: &Vec<u8>| Times::from_outline(outline, &here);
        Ok(self.outlines.iter().map(times).collect::<loopfold::Result<_>>()?)
    }
}
