//! A performance skeleton: a short C program that communicates as the recorded one does, to
//! predict how long that would take elsewhere (section II of the paper on loop nests).
//!
//! It is written from the [logical trace](crate::questions::logical): loops are loops, peers and
//! sizes are expressions of the rank, what only some processes do is a branch. Computation between
//! calls becomes calibrated busy work of the mean recorded length. A scale below 1 leaves
//! iterations out, of loops that communicate with each other together, such that all that is sent
//! is received (`scale`), and shortens the computation by what remains. Where a process receives
//! from anyone, in an order that does not repeat, that can be left open (`farm`). The result is executed by
//! the rules of MPI before it is written (`simulate`): a skeleton that would wait for ever is not
//! written.
//!
//! Cost: O(events) for the times and for executing the whole program once, O(nodes × processes)
//! else.

mod c;
mod farm;
mod operations;
mod program;
mod ranks;
mod scale;
mod simulate;
mod timing;

pub use farm::{OpenReceives, with_open_receives};

use crate::questions::logical::LogicalTrace;
use crate::questions::patterns::FoldStream;
use crate::{Error, Fold, Result};
use operations::{Members, Operations};
use program::Program;
use scale::Scaled;
use timing::Timing;

/// How messages that were received from anyone are replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wildcards {
    /// From the process that was recorded.
    Recorded,
    /// From anyone again; replies go to whoever sent, see [`with_open_receives`].
    Open,
}

/// A part of the whole: how much shorter the skeleton is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// So many
    pub above: u64,
    /// of so many.
    pub below: u64,
}

impl Scale {
    /// The whole.
    pub const ONE: Self = Self { above: 1, below: 1 };

    /// As a number.
    pub fn value(self) -> f64 {
        self.above as f64 / self.below as f64
    }
}

impl std::str::FromStr for Scale {
    type Err = Error;

    /// Reads `1/50` or `1`.
    fn from_str(text: &str) -> Result<Self> {
        let (above, below) = text.split_once('/').unwrap_or((text, "1"));
        let number = |text: &str| text.trim().parse::<u64>().ok().filter(|&number| number > 0);
        match (number(above), number(below)) {
            (Some(above), Some(below)) if above <= below => Ok(Self { above, below }),
            _ => Err(Error::invalid("a scale is a fraction such as 1/50, or 1")),
        }
    }
}

impl std::fmt::Display for Scale {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.below {
            1 => write!(f, "{}", self.above),
            below => write!(f, "{}/{below}", self.above),
        }
    }
}

/// What skeleton is wanted.
#[derive(Clone, Debug)]
pub struct Config {
    scale: Scale,
    noise: bool,
    touched: u64,
    wildcards: Option<Wildcards>,
    ranks: Option<usize>,
    title: String,
    /// The name of a call of MPI that is known.
    call_names: fn(&str) -> Option<&'static str>,
}

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}

impl Config {
    /// A skeleton as long as the program.
    pub fn new() -> Self {
        Self {
            scale: Scale::ONE,
            noise: false,
            touched: 0,
            wildcards: None,
            ranks: None,
            title: String::new(),
            call_names: |_| None,
        }
    }

    /// How much shorter it is.
    #[must_use]
    pub fn scale(self, scale: Scale) -> Self {
        Self { scale, ..self }
    }

    /// Whether the lengths of computation vary as recorded, instead of being their mean.
    #[must_use]
    pub fn noise(self, noise: bool) -> Self {
        Self { noise, ..self }
    }

    /// How many bytes of memory computation touches; 0 for none.
    #[must_use]
    pub fn touched(self, touched: u64) -> Self {
        Self { touched, ..self }
    }

    /// How messages that were received from anyone are replayed. Without this: as recorded, unless
    /// the order in which they came does not repeat, so that only open ones can be shortened.
    #[must_use]
    pub fn wildcards(self, wildcards: Option<Wildcards>) -> Self {
        Self { wildcards, ..self }
    }

    /// For another number of processes than was recorded.
    #[must_use]
    pub fn ranks(self, ranks: Option<usize>) -> Self {
        Self { ranks, ..self }
    }

    /// What the first comment says that it is made of.
    #[must_use]
    pub fn title(self, title: impl Into<String>) -> Self {
        Self { title: title.into(), ..self }
    }

    /// The names of calls of MPI that comments may show: a comment has no text of the trace.
    #[must_use]
    pub fn call_names(self, known: fn(&str) -> Option<&'static str>) -> Self {
        Self { call_names: known, ..self }
    }
}

/// A loop that is shorter than it was recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct ShortenedLoop {
    /// Iterations of the recording, at most.
    pub recorded: u64,
    /// Iterations that are left, at most.
    pub left: u64,
    /// The number of the group of loops that are shortened together, from 0.
    pub group: usize,
    /// The share of the time.
    pub share: f64,
}

/// A call of the simulated skeleton, for those who check it themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayedCall {
    /// Its name.
    pub name: String,
    /// Its fields for the process.
    pub fields: Vec<(String, Vec<crate::questions::logical::Token>)>,
}

/// A skeleton.
#[derive(Debug)]
pub struct Skeleton {
    /// The C program.
    pub text: String,
    /// For how many processes it is.
    pub ranks: usize,
    /// What is not as it was recorded.
    pub notes: Vec<String>,
    /// Loops that are shorter.
    pub loops: Vec<ShortenedLoop>,
    /// Calls of all processes in the recording, and in the skeleton.
    pub calls: (u64, u64),
    /// How long the recorded program took between `MPI_Init` and `MPI_Finalize`, in seconds.
    pub recorded_seconds: f64,
    program: Program,
}

/// What is known of the recording.
struct Shared {
    timing: Timing,
    members: Members,
}

/// Why receives are open where nobody asked for that.
const OPENED: &str =
    "what was received from anyone is received from anyone again, since its order does not repeat";

impl Skeleton {
    /// The skeleton of a recording. Streams that have to be are folded anew by `fold_stream`.
    pub fn of(fold: &Fold, fold_stream: FoldStream<'_>, config: &Config) -> Result<Self> {
        let of_with = |fold: &Fold, wildcards: Wildcards, notes: Vec<String>| {
            let logical = LogicalTrace::of(fold, fold_stream)?;
            // What is written is what was recorded.
            logical.verify(fold)?;
            Self::of_logical(fold, &logical, &config.clone().wildcards(Some(wildcards)), notes)
        };
        let of = |fold: &Fold, wildcards: Wildcards| of_with(fold, wildcards, Vec::new());
        let is_open = match config.wildcards {
            // How often each of other processes would ask is not known.
            _ if config.ranks.is_some() => false,
            Some(wildcards) => wildcards == Wildcards::Open,
            None => config.scale != Scale::ONE,
        };
        let open = if is_open { with_open_receives(fold, fold_stream)? } else { None };
        match (config.wildcards, open) {
            (Some(Wildcards::Open), Some(open)) => {
                of(&open.fold, Wildcards::Open).or_else(|_| of(fold, Wildcards::Open))
            }
            (None, Some(open)) => {
                let opened = || of_with(&open.fold, Wildcards::Open, vec![OPENED.to_string()]);
                let recorded = || of(fold, Wildcards::Recorded);
                // Every message of an order that does not repeat would be written.
                if open.is_simpler {
                    return opened().or_else(|_| recorded());
                }
                let recorded = recorded()?;
                if !recorded.is_too_long(config.scale) {
                    return Ok(recorded);
                }
                Ok(opened().ok().filter(|open| open.calls.1 < recorded.calls.1 / 2).unwrap_or(recorded))
            }
            (wildcards, _) => of(fold, wildcards.unwrap_or(Wildcards::Recorded)),
        }
    }

    /// Whether it has many more calls than the scale asks for.
    fn is_too_long(&self, scale: Scale) -> bool {
        let (whole, here) = self.calls;
        here as f64 > 2.0 * scale.value() * whole as f64
    }

    /// The skeleton of a recording, from its logical trace.
    fn of_logical(
        fold: &Fold,
        logical: &LogicalTrace,
        config: &Config,
        mut notes: Vec<String>,
    ) -> Result<Self> {
        let part = logical.parts.iter().find(|part| part.name.is_empty());
        let part = part.ok_or_else(|| Error::invalid("there are no processes"))?;
        let streams: Vec<usize> = part.streams.iter().map(|id| id.index()).collect();
        let ranks: Vec<i64> = streams.iter().map(|&stream| logical.places.world(stream).rank).collect();
        if !ranks.iter().copied().eq(0..streams.len() as i64) {
            return Err(Error::invalid("ranks are missing: a skeleton needs the calls of all processes"));
        }
        let whole = Program::of(part, &logical.places, &streams);
        let timing = Timing::of(fold, &part.streams, &whole)?;
        notes.extend(threads(logical));
        let members = Members::of(fold, &part.streams);
        let is_other = config.ranks.filter(|&ranks| ranks != streams.len());
        let (program, members) = match is_other {
            None => (whole.clone(), members),
            Some(ranks) => {
                let world = logical.places.world(streams[0]);
                let other = ranks::extrapolate(part, world, ranks)?;
                notes.extend(other.notes);
                let all: Vec<usize> = (0..ranks).collect();
                (Program::of(&other.part, &other.places, &all), other.members)
            }
        };
        let shared = Shared { timing, members };
        let operations = Operations::of(&program, &shared.members)?;
        let scaled = Scaled::of(&program, &operations, &shared.timing, config.scale.value())?;
        if is_other.is_some() && scaled.ended.unmatched > 0 {
            return Err(Error::invalid(
                "another number of ranks cannot be known: not every message would be received",
            ));
        }
        if scaled.left_whole > 0 {
            notes.push(format!(
                "{} of loops stay as they are: shortened, processes would wait for ever",
                count(scaled.left_whole)
            ));
        }
        if scaled.needs_buffers {
            notes.push(
                "the program needs messages to be buffered: sends that wait for their receives would not end"
                    .to_string(),
            );
        }
        let writer = c::Writer::new(config, &whole, &scaled, &shared);
        let written = writer.write(&heading(config, &shared.timing, program.processes, &notes))?;
        notes.extend(written.notes);
        Ok(Self {
            text: written.text,
            ranks: program.processes,
            notes,
            loops: shortened(&program, &scaled, &shared.timing),
            calls: (program.calls(), scaled.program.calls()),
            recorded_seconds: shared.timing.total / 1e9,
            program: scaled.program,
        })
    }

    /// The calls of a process, in order: what the text executes. Where wildcards are open, the rank
    /// of a sender may be `anyone`, and that of a receiver `sender`: of the last message from anyone.
    pub fn calls_of(&self, process: usize) -> impl Iterator<Item = ReplayedCall> {
        self.program.walk(process).map(move |(_, event)| {
            let at = self.program.places.at(process, event.comm.as_deref());
            let field = |field: &crate::questions::logical::LogicalField| {
                (field.key.clone(), field.values.iter().map(|value| value.value(at)).collect())
            };
            ReplayedCall {
                name: event.text().unwrap_or_default().to_string(),
                fields: event.fields.iter().map(field).collect(),
            }
        })
    }
}

fn count(groups: usize) -> String {
    if groups == 1 { "1 group".to_string() } else { format!("{groups} groups") }
}

/// A note on threads, which are not replayed.
fn threads(logical: &LogicalTrace) -> Vec<String> {
    let others: usize =
        logical.parts.iter().filter(|part| !part.name.is_empty()).map(|part| part.streams.len()).sum();
    match others {
        0 => Vec::new(),
        _ => vec![format!("{others} streams of further threads are left out")],
    }
}

fn shortened(program: &Program, scaled: &Scaled, timing: &Timing) -> Vec<ShortenedLoop> {
    let most = |counts: &[u64]| counts.iter().max().copied().unwrap_or(0);
    let mut all = Vec::new();
    for (group, loops) in scaled.groups.iter().enumerate() {
        for one in loops {
            all.push(ShortenedLoop {
                recorded: most(&program.counts[one.node]),
                left: most(&scaled.program.counts[one.node]),
                group,
                share: timing.share(one.node),
            });
        }
    }
    all
}

/// The first comment of the text.
fn heading(config: &Config, timing: &Timing, ranks: usize, notes: &[String]) -> String {
    let of = if config.title.is_empty() { String::new() } else { format!(" of {}", config.title) };
    let mut text = format!(
        "Performance skeleton{of}, at scale {}, for {ranks} processes. Written by loopfold.\n",
        config.scale
    );
    if timing.is_known {
        text.push_str(&format!(
            "The recorded program took {:.6} s between MPI_Init and MPI_Finalize. To predict it elsewhere, run this\nand divide its time by the scale, which it prints.\n",
            timing.total / 1e9
        ));
    }
    text.push_str(&notes.join("\n"));
    text
}
