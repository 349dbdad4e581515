//! Finds all runs (maximal repetitions) of a stream by Lyndon words.
//!
//! Every run has, in one of the two orders of the alphabet (`<` or `>`), a *root*: a
//! position where the longest Lyndon word is as long as the run's period (Bannai et
//! al., "The runs theorem"). So one scan per order suffices. It goes from right to
//! left and keeps the chain of positions whose suffixes get smaller and smaller; the
//! next smaller suffix after `i` is where the longest Lyndon word at `i` ends. Each
//! position of the chain knows how many symbols its suffix shares with the next one,
//! so most comparisons are answered by a minimum, and only ties are extended by
//! comparing symbols. It also knows the first four symbols, packed into one number, if they
//! fit, and whatever differs there is decided without a look at the stream. The end of the
//! stream counts as smaller than any symbol in both orders, so runs that reach it appear in both
//! scans; the second leaves them out.
//!
//! **Jumps.** Inside a long run of period `q` ending at `e`, let `i` be a root: the smallest
//! rotation of the period starts there. For `x` within the period to its left, `i - q < x < i`,
//! the suffix at `x` is larger than that at `i`, and that is decided within `q` symbols, since
//! rotations of a primitive word differ within its length. So the scan over that period depends
//! only on the period itself: it will find the same runs in each period further left, shifted,
//! as long as those and one period beyond lie in the run. At `i - q` two things can happen.
//! * `e` is the end, or its symbol is smaller than that one period before: the suffix at
//!   `i` is smaller than that at `i - q`, and the chain gets `i - q` in front of `i`.
//!   Every further period adds one more link like it.
//! * Otherwise `i` leaves the chain, and `i - q` meets the position `j` that followed
//!   `i`. It shares `e - i` symbols with `i`, so if `i` shares fewer than that with `j`,
//!   so does `i - q`, and `j` follows it: every further period just replaces the front
//!   of the chain. The Lyndon word from `i - kq` to `j` could only be the root of a run if what
//!   lies left of `i` and of `j` matched for the rest of its length; it is checked
//!   once that fewer than `q` symbols match there, and that they do not suffice.
//!
//! So after one period is done, all but the leftmost two are done: their runs are
//! noted as one [`Entry::Copies`], and the chain is adjusted. This makes loops cost one
//! comparison per symbol.
//!
//! Cost: about linear in practice; extensions are not bounded by theory, but the last known
//! periodic stretch of every period is remembered, so that no stretch is compared again
//! and again. Memory: 12 bytes an entry, 16 bytes a link of the chain, and 8 for
//! each period that was ever extended far.

use super::{common_prefix, common_suffix};
use crate::interrupt::{self, blocks};
use crate::parallel::side_by_side;

/// A maximal repetition: `start..end` has the shortest period `period`, is at least two
/// periods long, and cannot be extended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Run {
    /// Where it begins.
    pub start: u32,
    /// Where it ends (not included).
    pub end: u32,
    /// Its shortest period.
    pub period: u32,
}

impl Run {
    /// The run that lies `distance` further left.
    pub(crate) fn moved(self, distance: u32) -> Self {
        Self { start: self.start - distance, end: self.end - distance, ..self }
    }
}

/// The runs of a stream, copies inside longer runs written down once.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// What each of the two scans found.
    scans: [Vec<Stored>; 2],
}

/// A run, or copies of what was found before.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Entry {
    Run(Run),
    /// The entries from `from` up to this one occur `times` times more, each time
    /// `step` further left. All their periods are smaller than `step`.
    Copies {
        from: u32,
        step: u32,
        times: u32,
    },
}

/// An entry in three words. A period is at most half of 2^32, so its highest bit is free.
#[derive(Clone, Copy, Debug)]
struct Stored([u32; 3]);

const COPIES: u32 = 1 << 31;

impl From<Entry> for Stored {
    fn from(entry: Entry) -> Self {
        match entry {
            Entry::Run(run) => Stored([run.start, run.end, run.period]),
            Entry::Copies { from, step, times } => Stored([from, times, step | COPIES]),
        }
    }
}

impl From<Stored> for Entry {
    fn from(Stored([first, second, third]): Stored) -> Self {
        if third & COPIES == 0 {
            Entry::Run(Run { start: first, end: second, period: third })
        } else {
            Entry::Copies { from: first, step: third & !COPIES, times: second }
        }
    }
}

impl Runs {
    /// All runs of a stream of fewer than 2^32 - 1 symbols.
    ///
    /// ```
    /// use loopfold::repeats::{Run, Runs};
    /// let runs = Runs::of(&[1, 2, 3, 2, 3, 2, 4, 4]).expand();
    /// assert_eq!(runs, [Run { start: 1, end: 6, period: 2 }, Run { start: 6, end: 8, period: 1 }]);
    /// ```
    ///
    /// # Panics
    /// If the stream is longer than that.
    pub fn of(stream: &[u32]) -> Self {
        Self::with_tuning::<48, 8>(stream)
    }

    /// The same, the two scans side by side if there are two threads and enough to do for them.
    pub(crate) fn on_threads(stream: &[u32], threads: usize) -> Self {
        if threads < 2 || stream.len() < SHORTEST_SHARED {
            Self::of(stream)
        } else {
            Self::by_scans::<48, 8>(stream, both_at_once)
        }
    }

    /// `SHORT` symbols are compared before the memory of periodic stretches is asked;
    /// a jump is tried where at least `WORTHWHILE` symbols repeat.
    pub(crate) fn with_tuning<const SHORT: usize, const WORTHWHILE: usize>(stream: &[u32]) -> Self {
        Self::by_scans::<SHORT, WORTHWHILE>(stream, |scan| [scan(false), scan(true)])
    }

    fn by_scans<const SHORT: usize, const WORTHWHILE: usize>(
        stream: &[u32],
        both: impl Fn(&(dyn Fn(bool) -> Vec<Stored> + Sync)) -> [Vec<Stored>; 2],
    ) -> Self {
        assert!(stream.len() < u32::MAX as usize, "streams are limited to 2^32 - 2 symbols");
        Self { scans: both(&|reversed| entries_of::<SHORT, WORTHWHILE>(stream, reversed)) }
    }

    /// The runs one by one, in order.
    pub fn expand(&self) -> Vec<Run> {
        let mut runs = Vec::new();
        for scan in 0..2 {
            self.expand_into(scan, 0..self.scans[scan].len(), 0, &mut |run| runs.push(run));
        }
        runs.sort_unstable();
        runs
    }

    /// The runs of one period, in order; `None` when there are no runs at all of a
    /// period of at least `least` that repeat at least `times` times.
    pub(crate) fn shortest_period(&self, least: u32, times: u32) -> Option<(u32, Vec<Run>)> {
        let good = |run: &Run| run.period >= least && (run.end - run.start) / run.period >= times;
        let entries = || self.scans.iter().flatten().map(|&stored| Entry::from(stored));
        let runs = entries().filter_map(|entry| if let Entry::Run(run) = entry { Some(run) } else { None });
        let period = runs.filter(good).map(|run| run.period).min()?;
        let mut found = Vec::new();
        for scan in 0..2 {
            self.expand_into(scan, 0..self.scans[scan].len(), 0, &mut |run| {
                if run.period == period && good(&run) {
                    found.push(run);
                }
            });
        }
        found.sort_unstable();
        Some((period, found))
    }

    fn expand_into(
        &self,
        scan: usize,
        range: std::ops::Range<usize>,
        distance: u32,
        emit: &mut impl FnMut(Run),
    ) {
        for index in range {
            match self.entry(scan, index) {
                Entry::Run(run) => emit(run.moved(distance)),
                Entry::Copies { from, step, times } => {
                    for copy in 1..=times {
                        self.expand_into(scan, from as usize..index, distance + copy * step, emit);
                    }
                }
            }
        }
    }

    /// Positions that no run reaches across, at most one near each end of `parts` equal parts of a
    /// stream of this length, but for the last. Copies lie within a run,
    /// so looking at the runs that are written down suffices.
    pub(crate) fn cuts(&self, length: usize, parts: usize) -> Vec<usize> {
        let reach = (length / (4 * parts)).min(MOST_REACH);
        let ends = (1..parts).map(|part| length * part / parts);
        let mut windows: Vec<Window> = ends.map(|end| Window::new(end - reach, end + reach)).collect();
        for scan in self.scans.iter().flat_map(|scan| blocks(scan)).flatten() {
            if let Entry::Run(run) = Entry::from(*scan) {
                windows.iter_mut().for_each(|window| window.cover(run));
            }
        }
        windows.iter().filter_map(Window::cut).collect()
    }

    /// Where what is found with an entry lies, or begins.
    pub(crate) fn place(&self, scan: usize, index: usize) -> usize {
        match self.entry(scan, index) {
            Entry::Run(run) => run.start as usize,
            // What is copied first is always a run.
            Entry::Copies { from, .. } => self.scans[scan][from as usize].0[0] as usize,
        }
    }

    pub(crate) fn entries(&self, scan: usize) -> usize {
        self.scans[scan].len()
    }

    pub(crate) fn entry(&self, scan: usize, index: usize) -> Entry {
        self.scans[scan][index].into()
    }

    /// Lets go of the memory of one scan.
    pub(crate) fn forget(&mut self, scan: usize) {
        self.scans[scan] = Vec::new();
    }
}

/// How far from where it should be a position is looked for that no run reaches across.
const MOST_REACH: usize = 1 << 16;

/// Positions, and how many runs reach across each.
struct Window {
    from: usize,
    to: usize,
    /// How many begin to reach across, less those that end to.
    changes: Vec<i32>,
}

impl Window {
    fn new(from: usize, to: usize) -> Self {
        Self { from, to, changes: vec![0; to - from + 1] }
    }

    #[inline(always)]
    fn cover(&mut self, run: Run) {
        let (first, behind) = (run.start as usize + 1, run.end as usize);
        if first < self.to && behind > self.from {
            self.changes[first.max(self.from) - self.from] += 1;
            self.changes[behind.min(self.to) - self.from] -= 1;
        }
    }

    /// The position in the middle, or the nearest one further right or left, that none reaches across.
    fn cut(&self) -> Option<usize> {
        let mut across = 0;
        let free = (self.from..self.to).zip(&self.changes).filter(|&(_, change)| {
            across += change;
            across == 0
        });
        let middle = usize::midpoint(self.from, self.to);
        free.map(|(position, _)| position).min_by_key(|position| position.abs_diff(middle))
    }
}

/// Shorter streams are done before a second thread has begun to work.
pub(crate) const SHORTEST_SHARED: usize = 1 << 17;

/// Both scans at once: neither needs anything of the other.
fn both_at_once(scan: &(dyn Fn(bool) -> Vec<Stored> + Sync)) -> [Vec<Stored>; 2] {
    let mut found = side_by_side([false, true], scan).into_iter();
    [(); 2].map(|()| found.next().unwrap_or_default())
}

/// A link of the chain: a position whose suffix is larger than those of all links
/// after it, and how many symbols its suffix shares with the next link's.
#[derive(Clone, Copy)]
struct Link {
    position: u32,
    shared: u32,
    /// The first symbols of the suffix, if they are packed.
    first: u64,
}

/// What one scan finds.
fn entries_of<const SHORT: usize, const WORTHWHILE: usize>(stream: &[u32], reversed: bool) -> Vec<Stored> {
    // What is decided by packed symbols is not seen as a repetition, so it must be too short.
    let may_be_packed = WORTHWHILE >= PACKED && some_of(stream).all(|&symbol| symbol < MOST_PACKED);
    let packed =
        if may_be_packed { Scan::<SHORT, WORTHWHILE>::new(stream).run(reversed, true) } else { None };
    let found = packed.or_else(|| Scan::<SHORT, WORTHWHILE>::new(stream).run(reversed, false));
    found.unwrap_or_default()
}

/// Some symbols from all over the stream: if one does not fit, all need not be tried. Whether all do is
/// found out by scanning, since looking at all of them takes as long as a scan that jumps.
fn some_of(stream: &[u32]) -> impl Iterator<Item = &u32> {
    stream.iter().step_by(stream.len() / 1024 + 1)
}

/// How many symbols are packed into a number, and the bits of each.
const PACKED: usize = 4;
const PACKED_BITS: usize = 64 / PACKED;
/// Symbols between two polls.
const BLOCK: usize = 1 << 14;
/// Symbols from here on do not fit.
const MOST_PACKED: u32 = (1 << PACKED_BITS) - 1;

/// The first symbols of a suffix from its first one and those of the suffix behind. Numbers are
/// in the order of the scan; the end, 0, is smaller than all.
#[inline(always)]
fn packed<const REVERSED: bool>(symbol: u32, behind: u64) -> u64 {
    let number = if REVERSED { MOST_PACKED - symbol } else { symbol + 1 };
    u64::from(number) << (64 - PACKED_BITS) | behind >> PACKED_BITS
}

/// A link that stands for several: `more` further ones, each `step` positions to the
/// right and sharing `step` fewer symbols.
struct Series {
    /// Where in the chain.
    at: usize,
    step: u32,
    more: u32,
}

/// A jump that is to happen when the scan has gone over one period.
struct Jump {
    /// The position one period left of the root.
    target: usize,
    period: usize,
    /// Where the run begins and ends.
    start: usize,
    end: usize,
    /// The entries before those of the period.
    mark: usize,
    /// Whether each period adds a link to the chain.
    links: bool,
}

struct Scan<'a, const SHORT: usize, const WORTHWHILE: usize> {
    stream: &'a [u32],
    entries: Vec<Stored>,
    chain: Vec<Link>,
    series: Vec<Series>,
    jumps: Vec<Jump>,
    /// For each period the stretch that was last found to have it.
    stretches: Vec<(u32, u32)>,
    /// How many symbols the suffixes at the current position and the next share.
    same_as_next: usize,
}

/// The repetition that the scan is in, at the position where it was noticed.
struct Square {
    period: usize,
    end: usize,
    links: bool,
}

impl<'a, const SHORT: usize, const WORTHWHILE: usize> Scan<'a, SHORT, WORTHWHILE> {
    fn new(stream: &'a [u32]) -> Self {
        Self {
            stream,
            entries: Vec::new(),
            chain: Vec::new(),
            series: Vec::new(),
            jumps: Vec::new(),
            stretches: vec![(0, 0); stream.len() + 1],
            same_as_next: 0,
        }
    }

    /// Returns `None` if a symbol is too large to be packed.
    fn run(mut self, reversed: bool, is_packed: bool) -> Option<Vec<Stored>> {
        let fits = match (reversed, is_packed) {
            (false, false) => self.scan::<false, false>(),
            (false, true) => self.scan::<false, true>(),
            (true, false) => self.scan::<true, false>(),
            (true, true) => self.scan::<true, true>(),
        };
        self.entries.shrink_to_fit();
        fits.then_some(self.entries)
    }

    /// Scans up to the first symbol that is too large to be packed; returns whether there is none.
    fn scan<const REVERSED: bool, const IS_PACKED: bool>(&mut self) -> bool {
        let mut position = self.stream.len();
        let mut first = 0;
        while position > 0 {
            interrupt::poll();
            let block_end = position.saturating_sub(BLOCK);
            while position > block_end {
                position -= 1;
                if IS_PACKED {
                    // What is jumped over repeats what was not.
                    if self.stream[position] >= MOST_PACKED {
                        return false;
                    }
                    first = packed::<REVERSED>(self.stream[position], first);
                }
                let square = self.step::<REVERSED, IS_PACKED>(position, first);
                if self.jumps.last().is_some_and(|jump| position <= jump.target)
                    && let Some(landed) = self.jump(position)
                {
                    position = landed;
                    if IS_PACKED {
                        first = self.first::<REVERSED>(position);
                        let front = self.chain.len() - 1;
                        self.chain[front].first = first;
                    }
                    continue;
                }
                if let Some(square) = square {
                    self.plan_jump(position, square);
                }
            }
        }
        true
    }

    /// Puts a position in front of the chain, and reports a run if its root is here.
    #[inline(always)]
    fn step<const REVERSED: bool, const IS_PACKED: bool>(
        &mut self,
        position: usize,
        first: u64,
    ) -> Option<Square> {
        let stream = self.stream;
        let length = stream.len();
        if self.chain.is_empty() {
            self.same_as_next = 0;
            self.chain.push(Link { position: position as u32, shared: 0, first });
            return None;
        }
        let mut next = position + 1;
        self.same_as_next = if stream[position] == stream[next] { self.same_as_next + 1 } else { 0 };
        let mut shared = self.same_as_next;
        let mut square = None;
        if shared >= WORTHWHILE {
            square = Some(Square { period: 1, end: next + shared, links: false });
        }
        let is_larger = |next: usize, shared: usize| {
            next + shared == length
                || if REVERSED {
                    stream[position + shared] < stream[next + shared]
                } else {
                    stream[position + shared] > stream[next + shared]
                }
        };
        let mut larger = false;
        if IS_PACKED {
            while self.chain.last().is_some_and(|link| first < link.first) {
                self.pop::<REVERSED, true>();
            }
            let behind = next;
            next = self.chain.last().map_or(length, |link| link.position as usize);
            match self.chain.last() {
                None => {}
                Some(link) if link.first < first => {
                    shared = (first ^ link.first).leading_zeros() as usize / PACKED_BITS;
                    larger = true;
                }
                Some(_) => {
                    if next != behind {
                        shared = self.extend(position, next, PACKED);
                        if shared >= next - position && shared >= WORTHWHILE {
                            square =
                                Some(Square { period: next - position, end: next + shared, links: false });
                        }
                    }
                    larger = is_larger(next, shared);
                }
            }
        } else {
            larger = is_larger(next, shared);
        }
        while !larger && next != length {
            let popped = self.pop::<REVERSED, IS_PACKED>();
            let Some(link) = self.chain.last() else {
                next = length;
                break;
            };
            next = link.position as usize;
            let shared_by_popped = popped.shared as usize;
            if shared < shared_by_popped {
                continue;
            }
            if shared > shared_by_popped {
                shared = shared_by_popped;
                break;
            }
            shared = self.extend(position, next, shared);
            if shared >= next - position && shared >= WORTHWHILE {
                square = Some(Square { period: next - position, end: next + shared, links: false });
            }
            larger = is_larger(next, shared);
        }
        if next == length {
            self.chain.push(Link { position: position as u32, shared: 0, first });
            return square;
        }
        self.chain.push(Link { position: position as u32, shared: shared as u32, first });
        if let Some(run) = self.run_with_root(position, next, shared) {
            // A run that reaches the end has a root in both orders.
            if !REVERSED || run.end as usize != length {
                self.entries.push(Entry::Run(run).into());
            }
        }
        if shared >= next - position && shared >= WORTHWHILE {
            square = Some(Square { period: next - position, end: next + shared, links: true });
        }
        square
    }

    /// The first symbols of a suffix, packed.
    fn first<const REVERSED: bool>(&self, position: usize) -> u64 {
        let end = self.stream.len().min(position + PACKED);
        let symbols = self.stream[position..end].iter().rev();
        symbols.fold(0, |behind, &symbol| packed::<REVERSED>(symbol, behind))
    }

    /// Takes the front link off the chain.
    #[inline(always)]
    fn pop<const REVERSED: bool, const IS_PACKED: bool>(&mut self) -> Link {
        let front = self.chain.len() - 1;
        let link = self.chain[front];
        match self.series.last_mut() {
            Some(series) if series.at == front => {
                let (position, shared) = (link.position + series.step, link.shared - series.step);
                series.more -= 1;
                if series.more == 0 {
                    self.series.pop();
                }
                let first = match IS_PACKED && (link.shared as usize) < PACKED {
                    true => self.first::<REVERSED>(position as usize),
                    false => link.first,
                };
                self.chain[front] = Link { position, shared, first };
            }
            _ => {
                self.chain.pop();
            }
        }
        link
    }

    /// How many symbols the suffixes at `left` and `right` share, `known` of them
    /// being known.
    #[inline(always)]
    fn extend(&mut self, left: usize, right: usize, known: usize) -> usize {
        let stream = self.stream;
        let length = stream.len();
        let end = length.min(right + known + SHORT);
        let close = common_prefix(&stream[left + known..], &stream[right + known..end]);
        let shared = known + close;
        if close < SHORT || right + shared == length { shared } else { self.extend_far(left, right, shared) }
    }

    /// The same for a long extension: where the stretch that was last found to have this period
    /// lies ahead, only the symbols before it are compared.
    fn extend_far(&mut self, left: usize, right: usize, mut shared: usize) -> usize {
        let stream = self.stream;
        let period = right - left;
        let from = left + shared;
        let (start, end) = (self.stretches[period].0 as usize, self.stretches[period].1 as usize);
        if end >= from + period {
            let gap = start.saturating_sub(from);
            let common = common_prefix(&stream[from..from + gap], &stream[from + period..]);
            shared = if common == gap { end - period - left } else { shared + common };
        } else {
            shared += common_prefix(&stream[from..], &stream[from + period..]);
        }
        self.stretches[period] = (left as u32, (right + shared) as u32);
        shared
    }

    /// The run whose leftmost root is the Lyndon word from `root` to `next`, if there
    /// is one. `shared` is how many symbols the suffixes at both share.
    #[inline(always)]
    fn run_with_root(&self, root: usize, next: usize, shared: usize) -> Option<Run> {
        let stream = self.stream;
        let period = next - root;
        let missing = period.saturating_sub(shared);
        if missing > root {
            return None;
        }
        if missing > 0 {
            if stream[root - 1] != stream[next - 1] || stream[root - missing] != stream[next - missing] {
                return None;
            }
            if common_suffix(&stream[root - missing..root], &stream[next - missing..next]) < missing {
                return None;
            }
        }
        let (root_left, next_left) = (root - missing, next - missing);
        let most = (period - missing).min(root_left);
        let left = missing
            + common_suffix(&stream[root_left - most..root_left], &stream[next_left - most..next_left]);
        if left >= period {
            return None;
        }
        Some(Run { start: (root - left) as u32, end: (next + shared) as u32, period: period as u32 })
    }

    /// Decides whether the scan may jump once it has gone over one period of the
    /// run that it is in.
    fn plan_jump(&mut self, root: usize, square: Square) {
        let Square { period, end, links } = square;
        let stream = self.stream;
        if root < 4 * period || self.jumps.last().is_some_and(|jump| jump.target >= root - period) {
            return;
        }
        let front = self.chain.len() - 1;
        let shared = self.chain[front].shared as usize;
        if !links && shared >= end - root {
            return;
        }
        let near = root - 4 * period;
        if common_suffix(&stream[near..root], &stream[near + period..root + period]) < 4 * period {
            return;
        }
        if !links && front > 0 {
            let next = self.chain[front - 1].position as usize;
            let left = common_suffix(&stream[root - period..root], &stream[..next]);
            if left >= period || left + shared >= next - root + period {
                return;
            }
        }
        let start = near - common_suffix(&stream[..near], &stream[period..near + period]);
        let mark = self.entries.len();
        self.jumps.push(Jump { target: root - period, period, start, end, mark, links });
    }

    /// Jumps over all periods that repeat the one just done, and returns the position where the
    /// scan continues as if it had arrived there by steps.
    fn jump(&mut self, position: usize) -> Option<usize> {
        let jump = self.jumps.pop()?;
        debug_assert_eq!(jump.target, position, "an inner jump went past the target of an outer one");
        let front = self.chain.len() - 1;
        let times = ((position - jump.start) / jump.period).saturating_sub(1);
        if jump.target != position || times == 0 {
            return None;
        }
        let distance = times * jump.period;
        let landed = position - distance;
        if jump.links {
            let shared = jump.end - jump.period - landed;
            // The caller sets its first symbols.
            let link = Link { position: landed as u32, shared: shared as u32, first: 0 };
            self.chain.push(link);
            if times > 1 {
                self.series.push(Series { at: front + 1, step: jump.period as u32, more: times as u32 - 1 });
            }
        } else {
            self.chain[front].position = landed as u32;
        }
        if self.entries.len() > jump.mark {
            let copies =
                Entry::Copies { from: jump.mark as u32, step: jump.period as u32, times: times as u32 };
            self.entries.push(copies.into());
        }
        if jump.period == 1 {
            self.same_as_next += distance;
        }
        self.stretches[jump.period] = (landed as u32, jump.end as u32);
        Some(landed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loopfold_testing::{Rng, oracles, streams};

    fn check(stream: &[u32]) {
        let mut expected: Vec<Run> = oracles::runs(stream)
            .into_iter()
            .map(|run| Run { start: run.start as u32, end: run.end as u32, period: run.period as u32 })
            .collect();
        expected.sort_unstable();
        assert_eq!(Runs::of(stream).expand(), expected, "{stream:?}");
        // Small thresholds, so that short streams jump and remember as well.
        assert_eq!(Runs::with_tuning::<1, 1>(stream).expand(), expected, "tuned, {stream:?}");
        assert_eq!(Runs::with_tuning::<2, 4>(stream).expand(), expected, "tuned, {stream:?}");
    }

    #[test]
    fn scans_side_by_side_find_the_same_entries() {
        let mut rng = Rng::new(13);
        for _ in 0..200 {
            let stream = streams::small(&mut rng, 600);
            let (one, two) = (Runs::of(&stream), Runs::by_scans::<48, 8>(&stream, both_at_once));
            assert_eq!(format!("{one:?}"), format!("{two:?}"), "{stream:?}");
        }
    }

    #[test]
    fn runs_equal_their_definition_on_small_streams() {
        let mut rng = Rng::new(11);
        for _ in 0..20_000 {
            check(&streams::small(&mut rng, 60));
        }
    }

    #[test]
    fn runs_equal_their_definition_on_longer_streams() {
        let mut rng = Rng::new(12);
        for _ in 0..400 {
            check(&streams::small(&mut rng, 600));
        }
    }

    #[test]
    fn all_streams_of_two_symbols_up_to_length_14() {
        for length in 0..=14 {
            for bits in 0..1u32 << length {
                let stream: Vec<u32> = (0..length).map(|at| bits >> at & 1).collect();
                check(&stream);
            }
        }
    }

    #[test]
    fn copies_are_noted_once() {
        let stream = streams::lu(160, 249);
        let runs = Runs::of(&stream);
        assert!(runs.scans.iter().map(Vec::len).sum::<usize>() < 100);
        assert!(runs.expand().len() > 500);
    }

    /// A symbol that is too large to be packed, met late or never by the first look at some.
    #[test]
    fn large_symbols_are_like_others() {
        let mut rng = Rng::new(14);
        for round in 0..300 {
            let small = streams::small(&mut rng, if round % 3 == 0 { 6_000 } else { 60 });
            let most = small.iter().copied().max().unwrap_or(0);
            let large: Vec<u32> =
                small.iter().map(|&symbol| if symbol == most { 1 << 20 } else { symbol }).collect();
            assert_eq!(Runs::of(&large).expand(), Runs::of(&small).expand(), "{small:?}");
        }
        let mut rare: Vec<u32> = (0..100_000).map(|_| rng.below(50) as u32).collect();
        let (mut once, at) = (rare.clone(), 50_001);
        (rare[at], once[at]) = (1 << 20, 50);
        assert!(some_of(&rare).all(|&symbol| symbol < MOST_PACKED));
        assert_eq!(Runs::of(&rare).expand(), Runs::of(&once).expand());
    }
}
