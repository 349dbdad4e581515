//! Rewrites peers relative to the process: the other end of a message is given by its distance
//! from the own rank, `dest=+1`, or by its offset in a grid of processes, `dest=(0,+1)`,
//! instead of its rank. So processes that do the same become equal streams.
//!
//! This is a projection that depends on the stream: ranks are those of the communicator of the
//! event, and [`Communicators`] has the own rank in it. Only the ends of messages are
//! rewritten; the root of a collective operation is the same process for all. As `-1` is now
//! the previous process, the wildcard becomes `any`, and no process `none`.
//!
//! For a trace, the cost is O(events). In a fold, each stream gets its own copy of its rules
//! that contain a message, and equal rules become one again: time and memory are O(items that
//! each stream reaches), independent of the number of events.

mod grids;
pub(super) mod rules;
pub(super) mod survey;
pub(super) mod symbols;

use super::{Communicators, Grid};
use crate::emit::Terminal;
use crate::trace::Trace;
use crate::{Error, Fold, Result};
pub(crate) use grids::Grids;
use hashbrown::HashSet;
use symbols::Symbols;

/// How the other ends of messages are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Peers {
    /// By rank, as in the trace.
    #[default]
    Absolute,
    /// By the distance from the own rank.
    Relative,
    /// By the offset in the grid of the communicator. The grid is the one that its notes state,
    /// or that it was created with, or that the channels of its messages form. In a periodic
    /// dimension the shorter offset counts. Without a grid, relative.
    Cartesian,
}

/// The note of streams whose peers are rewritten.
const NOTE: &str = "peers";

impl Peers {
    /// What events must still have: see [`Projection::keeping`](crate::trace::Projection::keeping).
    pub const NEEDS: [&'static str; 10] =
        ["name", "dest", "src", "from", "comm", "newcomm", "color", "key", "dims", "periods"];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Peers::Absolute => "absolute",
            Peers::Relative => "relative",
            Peers::Cartesian => "cartesian",
        }
    }

    /// How the peers of a stream are already written, according to its notes.
    pub fn noted(notes: &[(String, String)]) -> Self {
        let value = notes.iter().find(|(key, _)| key == NOTE).map(|(_, value)| value.as_str());
        match value {
            Some("relative") => Peers::Relative,
            Some("cartesian") => Peers::Cartesian,
            _ => Peers::Absolute,
        }
    }

    /// Rewrites the peers in a trace and in folds, which together have all processes. Streams
    /// that already have this form do not change. Fails if cartesian peers are wanted and there
    /// is no grid at all, or if the peers already have another relative form.
    ///
    /// ```
    /// use loopfold::mpi::Peers;
    /// use loopfold::trace::{Collector, Event, Field, Role, Sink, Value};
    ///
    /// let mut collector = Collector::default();
    /// for rank in 0..4 {
    ///     let stream = collector.stream(&format!("rank {rank}"))?;
    ///     let fields = [Field { key: "dest", value: Value::Integer((rank + 1) % 4) }];
    ///     collector.push_event(stream, &Event { role: Role::Send, fields: &fields, ..Event::named("send") })?;
    /// }
    /// let mut trace = collector.finish()?;
    /// let rewrite = Peers::Cartesian.apply(&mut trace, &mut [])?;
    /// assert_eq!(rewrite.grids[0].to_string(), "4p, as its messages show");
    /// assert_eq!(trace.alphabet.label(trace.streams[3].symbols[0]), "send dest=(+1)");
    /// assert_eq!(trace.alphabet.len(), 1);
    /// # Ok::<(), loopfold::Error>(())
    /// ```
    pub fn apply(self, trace: &mut Trace, folds: &mut [Fold]) -> Result<PeerRewrite> {
        if self == Peers::Absolute {
            return Ok(PeerRewrite::default());
        }
        let (places, mut rewrite) = Places::find(self, trace, folds)?;
        // Nothing is changed before all is known to be possible.
        let mut related = Vec::new();
        let mut first = trace.streams.len();
        for fold in &*folds {
            let (fold, unplaced) = rules::relate(fold, &places, first)?;
            first += fold.streams().len();
            rewrite.unplaced.extend(unplaced);
            related.push(fold);
        }
        let (changed, unplaced) = relate_trace(std::mem::take(trace), &places)?;
        *trace = changed;
        folds.iter_mut().zip(related).for_each(|(fold, related)| *fold = related);
        rewrite.unplaced.extend(unplaced);
        rewrite.unplaced.sort();
        rewrite.unplaced.dedup();
        Ok(rewrite)
    }

    fn note(self, notes: &mut Vec<(String, String)>) {
        match notes.iter_mut().find(|(key, _)| key == NOTE) {
            Some((_, value)) => *value = self.name().to_string(),
            None => notes.push((NOTE.to_string(), self.name().to_string())),
        }
    }
}

/// The result of rewriting peers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerRewrite {
    /// True if there are any: an event with the field `dest` or `src`.
    pub has_messages: bool,
    /// The grids in which peers are written.
    pub grids: Vec<PeerGrid>,
    /// Communicators without a grid, whose peers are written by their distance instead.
    pub without_grid: Vec<String>,
    /// Communicators that were used by processes which are not known to be members; the peers
    /// there are written by rank.
    pub unplaced: Vec<String>,
    /// Communicators that were created by a call that does not state the members. They are
    /// treated as that of all processes.
    pub unclear: Vec<String>,
    /// Communicators whose number is used again for other members; the peers there are written
    /// by rank.
    pub reused: Vec<String>,
}

/// A grid in which peers are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerGrid {
    /// The communicator.
    pub comm: String,
    /// Its grid.
    pub grid: Grid,
    /// True if the trace does not state it, but the messages show it.
    pub is_inferred: bool,
}

impl std::fmt::Display for PeerGrid {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.grid.fmt(out)?;
        out.write_str(if self.is_inferred { ", as its messages show" } else { "" })
    }
}

/// Where every stream is among its peers. Streams are numbered through all parts.
struct Places {
    peers: Peers,
    comms: Communicators,
    grids: Grids,
    /// Streams that already have the wanted form.
    is_done: Vec<bool>,
    /// Communicators whose number does not say which one it is.
    reused: HashSet<String>,
}

/// Where a process is in a communicator.
struct Place<'a> {
    own: u32,
    grid: Option<&'a Grid>,
}

impl Places {
    fn find(peers: Peers, trace: &Trace, folds: &[Fold]) -> Result<(Self, PeerRewrite)> {
        let in_trace = trace.streams.iter().map(|stream| (stream.name.as_str(), &stream.notes[..]));
        let in_folds =
            folds.iter().flat_map(Fold::streams).map(|stream| (stream.name().raw(), stream.notes()));
        let streams: Vec<(&str, &[(String, String)])> = in_trace.chain(in_folds).collect();
        let is_done =
            streams.iter().map(|(name, notes)| is_done(peers, name, notes)).collect::<Result<_>>()?;
        let mut comms = Communicators::new(streams.iter().copied());
        let creations = survey::creations(trace, folds);
        let reused = comms.learn(&creations.by_stream).reused;
        let used = survey::used_comms(trace, folds);
        let known = comms.with_members();
        let is_unclear = |comm: &&String| used.contains(*comm) && !known.contains(comm.as_str());
        let mut rewrite = PeerRewrite {
            has_messages: !used.is_empty(),
            unclear: creations.unclear.iter().filter(is_unclear).cloned().collect(),
            reused: reused.iter().filter(|&comm| used.contains(comm)).cloned().collect(),
            ..PeerRewrite::default()
        };
        rewrite.reused.sort();
        drop(known);
        let mut grids = Grids::default();
        if peers == Peers::Cartesian {
            grids = Grids::find(&comms, trace, folds)?;
            (rewrite.grids, rewrite.without_grid) = grids.known();
            if rewrite.grids.is_empty() && !rewrite.without_grid.is_empty() {
                return Err(Error::invalid(
                    "no communicator is known to be a grid of processes, and no messages stay between neighbours \
                     of one: those that go to every process fit any grid, also where `patterns` finds rows and \
                     columns; relative peers need none",
                ));
            }
        }
        Ok((Self { peers, comms, grids, is_done, reused }, rewrite))
    }

    /// Where the process of a stream is in a communicator. Returns `None` if it is not a
    /// member, or if the communicator may be another one of the same number.
    fn place(&self, stream: usize, comm: &str) -> Option<Place<'_>> {
        if self.reused.contains(comm) {
            return None;
        }
        let own = self.comms.own_rank(stream, comm)?;
        let size = self.comms.comm_size(stream, comm);
        Some(Place { own, grid: self.grids.get(comm, size) })
    }
}

/// Whether the peers of a stream already have this form. Fails if they have another relative
/// form, which cannot be reversed.
fn is_done(peers: Peers, name: &str, notes: &[(String, String)]) -> Result<bool> {
    match Peers::noted(notes) {
        Peers::Absolute => Ok(false),
        noted if noted == peers => Ok(true),
        noted => Err(Error::invalid(format_args!(
            "the peers of {} are {} already; only the trace that it was made of can be rewritten otherwise",
            Terminal::of(name),
            noted.name()
        ))),
    }
}

/// Rewrites the peers in a trace; also returns the communicators that streams use and are not
/// in.
fn relate_trace(mut trace: Trace, places: &Places) -> Result<(Trace, Vec<String>)> {
    let mut symbols = Symbols::new(&trace.alphabet);
    for (index, stream) in trace.streams.iter_mut().enumerate() {
        for symbol in &mut stream.symbols {
            *symbol = symbols.renamed(*symbol, index, places)?;
        }
        places.peers.note(&mut stream.notes);
    }
    let (alphabet, unplaced) = symbols.finish();
    Ok((Trace { alphabet, streams: trace.streams }, unplaced))
}
