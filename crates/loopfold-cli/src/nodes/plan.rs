//! Which process reads what: the same decision in every process, from what all of them see.
//!
//! A file of a trace is read by one process. An OTF2 archive is opened by all, and each reads some of
//! its locations. Archives and grammars, which are folds already, are read by process 0.
//!
//! Neighbours stay together where that costs little: their messages need not travel then. So each
//! process gets a range, unless the largest share would be more than an eighth larger than if the
//! largest goes first, to the process that has least so far (longest processing time first), which is
//! never more than a third worse than the best distribution.

use crate::args::ReadArgs;
use crate::formats;
use crate::input::Intake;
use anyhow::{Context as _, Result, bail};
use loopfold::export::grammar;
use loopfold::trace::{Event, Projection, Sink, Timing};
use loopfold::{StreamId, Symbol, archive};
use loopfold_sources::Input;
use std::cmp::Reverse;
use std::fs::File;
use std::path::Path;

/// What an input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A fold already: an archive, a recording or a grammar.
    Folded,
    /// An OTF2 archive, of many locations.
    Locations,
    /// A trace in a file of this many bytes.
    File(u64),
}

/// Who reads which input.
#[derive(Debug)]
pub(crate) struct Plan {
    kinds: Vec<Kind>,
    /// For each input the process that reads it, where one does.
    owners: Vec<usize>,
    /// How much each process has so far.
    loads: Vec<u64>,
    rank: usize,
}

impl Plan {
    /// What process `rank` of `size` reads.
    pub(crate) fn of((rank, size): (usize, usize), arguments: &ReadArgs) -> Result<Self> {
        let kinds = arguments.inputs.iter().map(|input| {
            kind_of(input, arguments.format.as_deref()).with_context(|| input.display().to_string())
        });
        let kinds = kinds.collect::<Result<Vec<Kind>>>()?;
        let sizes: Vec<u64> = kinds.iter().map(|kind| kind.bytes()).collect();
        let mut loads = vec![0; size];
        let owners = assign(&sizes, &mut loads);
        let of_kind = |(kind, owner)| if matches!(kind, &Kind::File(_)) { owner } else { 0 };
        let owners = kinds.iter().zip(owners).map(of_kind).collect();
        Ok(Self { kinds, owners, loads, rank })
    }

    /// Whether all inputs are folds already.
    pub(crate) fn is_folded(&self) -> bool {
        self.kinds.iter().all(|&kind| kind == Kind::Folded)
    }

    /// Whether some input is a fold already.
    pub(crate) fn has_folded(&self) -> bool {
        self.kinds.contains(&Kind::Folded)
    }

    /// Whether one process reads all there is: there is one file, or none.
    pub(crate) fn is_alone(&self) -> bool {
        let files = self.kinds.iter().filter(|kind| matches!(kind, Kind::File(_))).count();
        files < 2 && !self.kinds.contains(&Kind::Locations)
    }

    /// Whether this process opens an input.
    pub(crate) fn reads(&self, input: usize) -> bool {
        match self.kinds[input] {
            Kind::Folded => self.rank == 0 || self.is_folded(),
            Kind::Locations => true,
            Kind::File(_) => self.owners[input] == self.rank,
        }
    }
}

impl Kind {
    fn bytes(self) -> u64 {
        match self {
            Kind::File(bytes) => bytes,
            Kind::Folded | Kind::Locations => 0,
        }
    }
}

fn kind_of(input: &Path, format: Option<&str>) -> Result<Kind> {
    if input.as_os_str() == "-" {
        bail!("standard input cannot be read by several processes; name a file that all of them see");
    }
    if input.is_dir() {
        let is_otf2 = formats::file_of_folder(input).is_some();
        return Ok(if is_otf2 { Kind::Locations } else { Kind::Folded });
    }
    let file = File::open(input)?;
    let bytes = file.metadata()?.len();
    if let Some(format) = format {
        return Ok(if format == "otf2" { Kind::Locations } else { Kind::File(bytes) });
    }
    let mut input_bytes = Input::open(file, true)?;
    let head = input_bytes.head()?;
    if archive::looks_like(head) || grammar::looks_like(head) || loopfold_record::is_spool(head) {
        return Ok(Kind::Folded);
    }
    let name = input.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let source = formats::guess(head, &name);
    let is_otf2 = source.is_some_and(|source| source.name() == "otf2");
    Ok(if is_otf2 { Kind::Locations } else { Kind::File(bytes) })
}

/// The owner of each of these, and what all have then.
pub(super) fn assign(sizes: &[u64], loads: &mut [u64]) -> Vec<usize> {
    let mut shared = loads.to_vec();
    let owners = largest_first(sizes, &mut shared);
    let mut of_ranges = loads.to_vec();
    let ranges = in_ranges(sizes, &mut of_ranges);
    let most = |loads: &[u64]| loads.iter().copied().max().unwrap_or(0);
    let are_ranges = most(&of_ranges) <= most(&shared).saturating_add(most(&shared) / 8);
    loads.copy_from_slice(if are_ranges { &of_ranges } else { &shared });
    if are_ranges { ranges } else { owners }
}

fn largest_first(sizes: &[u64], loads: &mut [u64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|&index| (Reverse(sizes[index]), index));
    let mut owners = vec![0; sizes.len()];
    for index in order {
        let least = (0..loads.len()).min_by_key(|&owner| (loads[owner], owner)).unwrap_or(0);
        loads[least] = loads[least].saturating_add(work(sizes[index]));
        owners[index] = least;
    }
    owners
}

/// To the process whose part of the whole the middle of each is in.
fn in_ranges(sizes: &[u64], loads: &mut [u64]) -> Vec<usize> {
    let total: u128 = sizes.iter().map(|&size| u128::from(work(size))).sum();
    let mut before = 0u128;
    let owner = |&size: &u64| {
        let work = work(size);
        let middle = 2 * before + u128::from(work);
        before += u128::from(work);
        // Below the number of processes, as the middle is below twice the total.
        let owner = (middle * loads.len() as u128 / (2 * total)) as usize;
        loads[owner] = loads[owner].saturating_add(work);
        owner
    };
    sizes.iter().map(owner).collect()
}

/// What has no size is still something to do.
fn work(size: u64) -> u64 {
    size.max(1)
}

/// A sink for the streams of one process.
pub(crate) struct OwnStreams {
    inner: Intake,
    plan: Plan,
    /// The input that is read.
    input: usize,
    /// For each stream its input, and whether it is ours.
    streams: Vec<(usize, bool)>,
}

impl OwnStreams {
    pub(crate) fn new(inner: Intake, plan: Plan) -> Self {
        Self { inner, plan, input: 0, streams: Vec::new() }
    }

    /// What comes from now on is of this input.
    pub(crate) fn begin(&mut self, input: usize) {
        self.input = input;
    }

    /// The sink, and for each stream its input if it is ours.
    pub(crate) fn into_parts(self) -> (Intake, Vec<Option<usize>>) {
        let own = self.streams.into_iter().map(|(input, own)| own.then_some(input)).collect();
        (self.inner, own)
    }
}

impl Sink for OwnStreams {
    fn stream(&mut self, name: &str) -> loopfold::Result<StreamId> {
        let id = self.inner.sink().stream(name)?;
        if id.index() == self.streams.len() {
            self.streams.push((self.input, true));
        }
        Ok(id)
    }

    fn describe(&mut self, stream: StreamId, key: &str, value: &str) -> loopfold::Result<()> {
        self.inner.sink().describe(stream, key, value)
    }

    fn intern(&mut self, event: &Event<'_>) -> loopfold::Result<Symbol> {
        self.inner.sink().intern(event)
    }

    fn push(&mut self, stream: StreamId, symbol: Symbol, timing: Timing<'_>) -> loopfold::Result<()> {
        self.inner.sink().push(stream, symbol, timing)
    }

    fn projection(&self) -> &Projection {
        self.inner.sink_ref().projection()
    }

    fn wants_times(&self) -> bool {
        self.inner.sink_ref().wants_times()
    }

    fn stream_count(&self) -> usize {
        self.inner.sink_ref().stream_count()
    }

    fn events(&self) -> u64 {
        self.inner.sink_ref().events()
    }

    fn unseen_fields(&self) -> &[String] {
        self.inner.sink_ref().unseen_fields()
    }

    fn weigh(&mut self, sizes: &[(StreamId, u64)]) {
        let weights: Vec<u64> = sizes.iter().map(|&(_, size)| size).collect();
        for ((stream, _), owner) in sizes.iter().zip(assign(&weights, &mut self.plan.loads)) {
            if let Some((_, own)) = self.streams.get_mut(stream.index()) {
                *own = owner == self.plan.rank;
            }
        }
    }

    fn wants_stream(&self, stream: StreamId) -> bool {
        self.streams.get(stream.index()).is_none_or(|&(_, own)| own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_stay_together_where_they_are_equal() {
        let mut loads = vec![0; 3];
        assert_eq!(assign(&[7; 8], &mut loads), [0, 0, 0, 1, 1, 2, 2, 2]);
        assert_eq!(loads, [21, 14, 21]);
        let mut loads = vec![0; 4];
        assert_eq!(assign(&[0, 0], &mut loads), [1, 3]);
    }

    #[test]
    fn the_largest_goes_to_the_one_that_has_least() {
        let mut loads = vec![0; 3];
        assert_eq!(assign(&[5, 9, 4, 4, 3, 0], &mut loads), [1, 0, 2, 2, 1, 1]);
        assert_eq!(loads, [9, 9, 8]);
        assert_eq!(assign(&[1, 1], &mut loads), [0, 2]);
        assert_eq!(assign(&[], &mut loads), [0usize; 0]);
    }

    #[test]
    fn no_size_is_too_large() {
        let mut loads = vec![0; 2];
        assert_eq!(assign(&[u64::MAX, u64::MAX, 1], &mut loads), [0, 1, 1]);
    }
}
