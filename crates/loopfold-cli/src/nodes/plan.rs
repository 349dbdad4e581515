//! Which process reads what: the same decision in every process, from what all of them see.
//!
//! A file of a trace is read by one process. An OTF2 archive is opened by all, and each reads some of
//! its locations. Archives and grammars, which are folds already, are read by process 0.
//!
//! Neighbours stay together where that costs little: their messages need not travel then. So each
//! process gets a range, unless the largest share would be more than an eighth larger than if the
//! largest goes first, to the process that has least so far (longest processing time first), which is
//! never more than a third worse than the best distribution.
//!
//! Cost: O(items · log items) time and O(items) memory for each input, whatever the number of processes:
//! only those that have something are stored. So a trace can be divided into any number of parts.

use crate::args::ReadArgs;
use crate::formats;
use crate::input::{Intake, files};
use anyhow::{Context as _, Result, bail};
use loopfold::export::grammar;
use loopfold::trace::{Event, Projection, Sink, Timing};
use loopfold::{StreamId, Symbol, archive};
use loopfold_sources::Input;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
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
    loads: Loads,
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
        let mut loads = Loads::of(size);
        let owners = assign(&sizes, &mut loads);
        let of_kind = |(kind, owner)| if matches!(kind, &Kind::File(_)) { owner } else { 0 };
        let owners = kinds.iter().zip(owners).map(of_kind).collect();
        Ok(Self { kinds, owners, loads, rank })
    }

    /// What each input is.
    pub(crate) fn kinds(&self) -> &[Kind] {
        &self.kinds
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
    let about = std::fs::metadata(input)?;
    if !about.is_file() {
        bail!("a pipe or device cannot be read by several processes, nor twice; name a file");
    }
    let (file, bytes) = (files::open(input)?, about.len());
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

/// How much each process has so far. Those that have nothing take no memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Loads {
    processes: usize,
    /// For each process that has something, how much; never 0.
    busy: BTreeMap<usize, u64>,
}

impl Loads {
    /// Those of processes that have nothing yet.
    pub(super) fn of(processes: usize) -> Self {
        Self { processes, busy: BTreeMap::new() }
    }

    fn add(&mut self, process: usize, work: u64) -> u64 {
        let load = self.busy.entry(process).or_insert(0);
        *load = load.saturating_add(work);
        *load
    }

    fn most(&self) -> u64 {
        self.busy.values().copied().max().unwrap_or(0)
    }
}

/// The owner of each of these, and what all have then.
pub(super) fn assign(sizes: &[u64], loads: &mut Loads) -> Vec<usize> {
    let mut shared = loads.clone();
    let owners = largest_first(sizes, &mut shared);
    let mut of_ranges = loads.clone();
    let ranges = in_ranges(sizes, &mut of_ranges);
    let are_ranges = of_ranges.most() <= shared.most().saturating_add(shared.most() / 8);
    *loads = if are_ranges { of_ranges } else { shared };
    if are_ranges { ranges } else { owners }
}

fn largest_first(sizes: &[u64], loads: &mut Loads) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|&index| (Reverse(sizes[index]), index));
    let mut owners = vec![0; sizes.len()];
    let busy: Vec<usize> = loads.busy.keys().copied().collect();
    let mut idle = (0..loads.processes).filter(|process| busy.binary_search(process).is_err());
    let mut least: BinaryHeap<_> = loads.busy.iter().map(|(&owner, &load)| Reverse((load, owner))).collect();
    for index in order {
        // One that has nothing comes before all that have something.
        let owner = idle.next().or_else(|| least.pop().map(|Reverse((_, owner))| owner)).unwrap_or(0);
        least.push(Reverse((loads.add(owner, work(sizes[index])), owner)));
        owners[index] = owner;
    }
    owners
}

/// To the process whose part of the whole the middle of each is in.
fn in_ranges(sizes: &[u64], loads: &mut Loads) -> Vec<usize> {
    let total: u128 = sizes.iter().map(|&size| u128::from(work(size))).sum();
    let mut before = 0u128;
    let owner = |&size: &u64| {
        let work = work(size);
        let middle = 2 * before + u128::from(work);
        before += u128::from(work);
        // Below the number of processes, as the middle is below twice the total.
        let owner = scaled(loads.processes, middle, 2 * total);
        loads.add(owner, work);
        owner
    };
    sizes.iter().map(owner).collect()
}

/// `number * part / whole`, rounded down, for a part that is less than the whole.
fn scaled(number: usize, part: u128, whole: u128) -> usize {
    if let Some(product) = part.checked_mul(number as u128) {
        return (product / whole) as usize;
    }
    // Long multiplication and division, a bit of the number after the other.
    let (mut quotient, mut rest) = (0usize, 0u128);
    for bit in (0..usize::BITS).rev() {
        rest = 2 * rest + if number >> bit & 1 == 1 { part } else { 0 };
        quotient = 2 * quotient + (rest / whole) as usize;
        rest %= whole;
    }
    quotient
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
    use loopfold_testing::Rng;

    fn having(loads: &[u64]) -> Loads {
        let busy = loads.iter().copied().enumerate().filter(|&(_, load)| load > 0).collect();
        Loads { processes: loads.len(), busy }
    }

    #[test]
    fn neighbours_stay_together_where_they_are_equal() {
        let mut loads = Loads::of(3);
        assert_eq!(assign(&[7; 8], &mut loads), [0, 0, 0, 1, 1, 2, 2, 2]);
        assert_eq!(loads, having(&[21, 14, 21]));
        assert_eq!(assign(&[0, 0], &mut Loads::of(4)), [1, 3]);
    }

    #[test]
    fn the_largest_goes_to_the_one_that_has_least() {
        let mut loads = Loads::of(3);
        assert_eq!(assign(&[5, 9, 4, 4, 3, 0], &mut loads), [1, 0, 2, 2, 1, 1]);
        assert_eq!(loads, having(&[9, 9, 8]));
        assert_eq!(assign(&[1, 1], &mut loads), [0, 2]);
        assert_eq!(assign(&[], &mut loads), [0usize; 0]);
    }

    #[test]
    fn no_size_is_too_large() {
        assert_eq!(assign(&[u64::MAX, u64::MAX, 1], &mut Loads::of(2)), [0, 1, 1]);
    }

    #[test]
    fn any_number_of_processes_takes_the_memory_of_those_that_have_something() {
        for processes in [99_999_999_999, usize::MAX] {
            let mut loads = Loads::of(processes);
            let quarter = processes as u128 / 4;
            let expected = [quarter, processes as u128 * 3 / 4].map(|owner| owner as usize);
            assert_eq!(assign(&[u64::MAX / 4; 2], &mut loads), expected);
            assert_eq!(assign(&[u64::MAX / 4; 2], &mut loads), [0, 1]);
            assert_eq!(loads.busy.len(), 4);
        }
    }

    #[test]
    fn parts_are_scaled_exactly() {
        let mut rng = Rng::new(1);
        for _ in 0..1000 {
            let (number, whole) = (rng.below(1000), 1 + rng.below(1000));
            let (part, whole) = (rng.below(whole) as u128, whole as u128);
            // What does not fit in 128 bits as a product.
            assert_eq!(scaled(number, part, whole) as u128, number as u128 * part / whole);
            // A product that does not fit in 128 bits.
            let expected = ((number as u128) << 50) * part / whole;
            assert_eq!(scaled(number << 50, part << 80, whole << 80) as u128, expected);
        }
    }

    /// The same by the definition, with an entry for each process.
    fn by_definition(sizes: &[u64], loads: &mut [u64]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..sizes.len()).collect();
        order.sort_by_key(|&index| (Reverse(sizes[index]), index));
        let (mut shared, mut owners) = (loads.to_vec(), vec![0; sizes.len()]);
        for index in order {
            let least = (0..shared.len()).min_by_key(|&owner| (shared[owner], owner)).unwrap();
            shared[least] += work(sizes[index]);
            owners[index] = least;
        }
        let total: u64 = sizes.iter().map(|&size| work(size)).sum();
        let (mut of_ranges, mut ranges, mut before) = (loads.to_vec(), Vec::new(), 0);
        for &size in sizes {
            let middle = 2 * before + work(size);
            before += work(size);
            let owner = middle as usize * loads.len() / (2 * total as usize);
            of_ranges[owner] += work(size);
            ranges.push(owner);
        }
        let most = |loads: &[u64]| loads.iter().copied().max().unwrap();
        let are_ranges = most(&of_ranges) <= most(&shared) + most(&shared) / 8;
        loads.copy_from_slice(if are_ranges { &of_ranges } else { &shared });
        if are_ranges { ranges } else { owners }
    }

    #[test]
    fn plans_are_those_of_the_definition() {
        let mut rng = Rng::new(2);
        for _ in 0..2000 {
            let processes = 1 + rng.below(12);
            let (mut loads, mut expected) = (Loads::of(processes), vec![0; processes]);
            for _ in 0..3 {
                let most = 1 + rng.below(50);
                let sizes: Vec<u64> = (0..rng.below(20)).map(|_| rng.below(most) as u64).collect();
                assert_eq!(assign(&sizes, &mut loads), by_definition(&sizes, &mut expected));
                assert_eq!(loads, having(&expected));
            }
        }
    }
}
