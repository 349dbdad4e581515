//! The section of sums of times, for streams that do not keep every event's times.
//!
//! Sums by event for each stream, then those of the rules and of the loops. Derivable values
//! are not stored: in place of the number of measurements the number of missing ones, and of a
//! spread only what the numbers before it do not determine. A rule takes some 10 bytes, an
//! event of a stream 5.
//!
//! A list grows as it is read, by at least a byte an entry, whatever length a section claims.

use crate::bytes::{Bytes, put_number, put_text, put_wide};
use crate::fold::{
    Canonical, DurationSum, Fold, FoldedStream, Item, IterationSpread, MetricSpread, MetricSum, RuleSums,
    Spread, StreamSums, rule_uses, symbol_counts,
};
use crate::{Error, Result, RuleId, Symbol};
use hashbrown::HashMap;

const PLACE: &str = "summary";

/// Flags of a stream: what is known of it besides metrics.
const BEGAN: u8 = 1;
const ENDED: u8 = 2;
const DURATIONS: u8 = 4;
/// Self times are the durations.
const SAME_SELF_TIMES: u8 = 8;
const SELF_TIMES: u8 = 16;

/// Flags of the rules: what is known of them besides metrics.
const RULE_DURATIONS: u8 = 1;
/// Last iterations have spreads of their own; earlier programs did not set this.
const LAST_ITERATIONS: u8 = 2;

/// Writes the sums of a fold, whose rules are stored in canonical form.
pub(super) fn write(fold: &Fold, canonical: &Canonical) -> Vec<u8> {
    let summed = |(index, stream): (usize, &FoldedStream)| Some((index, canonical.sums(stream.sums()?)?));
    let streams: Vec<(usize, StreamSums)> = fold.streams().iter().enumerate().filter_map(summed).collect();
    let mut out = Vec::new();
    if streams.is_empty() {
        return out;
    }
    let rule_sums = fold.rule_sums().map(RuleSums::without_wider);
    let names = Names::of(&streams, rule_sums.as_deref());
    names.put(&mut out);
    put_number(&mut out, streams.len() as u64);
    let (mut next, mut clock) = (0, 0);
    for (index, sums) in &streams {
        put_number(&mut out, (index - next) as u64);
        next = index + 1;
        put_stream(&mut out, sums, &names, &mut clock);
    }
    // Where 64 bits do not count how often rules are used, their sums are not stored.
    if let (Some(sums), Ok(uses)) = (rule_sums.as_deref(), rule_uses(fold)) {
        put_rules(&mut out, fold, canonical, sums, &uses, &names);
    }
    out
}

/// The names of all metrics, each once, by their numbers.
struct Names<'a> {
    names: Vec<&'a str>,
    numbers: HashMap<&'a str, u64>,
}

impl<'a> Names<'a> {
    fn of(streams: &'a [(usize, StreamSums)], rules: Option<&'a RuleSums>) -> Self {
        let of_streams = streams.iter().flat_map(|(_, sums)| &sums.metrics).map(|(name, _)| name.as_str());
        let of_rules = rules.into_iter().flat_map(|sums| &sums.metrics).map(|(name, _)| name.as_str());
        let mut all = Self { names: Vec::new(), numbers: HashMap::new() };
        for name in of_streams.chain(of_rules) {
            all.numbers.entry(name).or_insert_with(|| {
                all.names.push(name);
                all.names.len() as u64 - 1
            });
        }
        all
    }

    fn put(&self, out: &mut Vec<u8>) {
        put_number(out, self.names.len() as u64);
        self.names.iter().for_each(|name| put_text(out, name.as_bytes()));
    }

    fn put_number_of(&self, out: &mut Vec<u8>, name: &str) {
        put_number(out, self.numbers.get(name).copied().unwrap_or_default());
    }
}

/// Writes the sums of a stream; times as differences to `clock`, when the stream before
/// began.
fn put_stream(out: &mut Vec<u8>, sums: &StreamSums, names: &Names<'_>, clock: &mut i64) {
    let flag = |known: bool, flag: u8| if known { flag } else { 0 };
    let are_durations = sums.self_times.is_some() && sums.self_times == sums.durations;
    out.push(
        flag(sums.began.is_some(), BEGAN)
            | flag(sums.ended.is_some(), ENDED)
            | flag(sums.durations.is_some(), DURATIONS)
            | flag(are_durations, SAME_SELF_TIMES)
            | flag(sums.self_times.is_some() && !are_durations, SELF_TIMES),
    );
    if let Some(began) = sums.began {
        put_signed(out, i128::from(began) - i128::from(*clock));
        *clock = began;
    }
    if let Some(ended) = sums.ended {
        put_signed(out, i128::from(ended) - i128::from(*clock));
    }
    for list in sums.durations.iter().chain(sums.self_times.iter().filter(|_| !are_durations)) {
        put_list(out, list, |out, sum| {
            put_number(out, sum.known);
            put_wide(out, sum.total.unsigned_abs());
        });
    }
    put_number(out, sums.metrics.len() as u64);
    for (name, list) in &sums.metrics {
        names.put_number_of(out, name);
        put_list(out, list, |out, sum| {
            put_number(out, sum.known);
            put_real(out, sum.total);
        });
    }
}

fn put_list<S>(out: &mut Vec<u8>, list: &[(Symbol, S)], put: impl Fn(&mut Vec<u8>, &S)) {
    put_number(out, list.len() as u64);
    let mut next = 0;
    for (symbol, sum) in list {
        put_number(out, u64::from(symbol.raw() - next));
        next = symbol.raw() + 1;
        put(out, sum);
    }
}

/// Writes the sums of the rules and loops; `uses` and `sums` go by the rules of the fold.
fn put_rules(
    out: &mut Vec<u8>,
    fold: &Fold,
    canonical: &Canonical,
    sums: &RuleSums,
    uses: &[u64],
    names: &Names<'_>,
) {
    let mut rules: Vec<(RuleId, RuleId)> =
        fold.rules().filter_map(|rule| Some((canonical.new_rule(rule)?, rule))).collect();
    rules.sort_unstable();
    let rules = || rules.iter().map(|&(_, rule)| (rule, uses[rule.index()]));
    out.push(LAST_ITERATIONS | if sums.durations.is_some() { RULE_DURATIONS } else { 0 });
    if let Some(spreads) = &sums.durations {
        for (rule, uses) in rules() {
            put_spread(out, &spreads[rule.index()], uses);
        }
    }
    put_number(out, sums.metrics.len() as u64);
    for (name, spreads) in &sums.metrics {
        names.put_number_of(out, name);
        rules().for_each(|(rule, uses)| put_metric_spread(out, &spreads[rule.index()], uses));
    }
    for (rule, uses) in rules() {
        for (index, item) in loops_of(fold.body(rule)) {
            let spread = sums.loops.get(&(rule, index)).copied().unwrap_or_default();
            put_iterations(out, &spread, uses.saturating_mul(item.times()));
        }
    }
}

/// The items of a body that repeat, and where they are.
fn loops_of(body: &[Item]) -> impl Iterator<Item = (usize, Item)> {
    body.iter().copied().enumerate().filter(|(_, item)| item.times() > 1)
}

/// What is stored of a spread: the total as how much it is above so many of the
/// smallest number, the largest as its distance from that.
struct Stored {
    above: u128,
    range: u128,
    /// Squares of the distances from the mean, and 1; or 0 when they are not known.
    distances: u128,
}

impl Stored {
    /// Returns `None` for values that no spread can have.
    fn of(spread: &Spread) -> Option<Self> {
        let least = spread.minimum.checked_mul(spread.count.into())?;
        Some(Self {
            above: spread.total.checked_sub(least)?.try_into().ok()?,
            range: spread.maximum.checked_sub(spread.minimum)?.try_into().ok()?,
            distances: spread.squared_distances().and_then(|sum| sum.checked_add(1)).unwrap_or(0),
        })
    }

    fn spread(&self, count: u64, minimum: i128) -> Option<Spread> {
        let maximum = minimum.checked_add_unsigned(self.range)?;
        let total = minimum.checked_mul(count.into())?.checked_add_unsigned(self.above)?;
        let spread = Spread { count, total, minimum, maximum, squares: None };
        // One number is the smallest and one the largest, and all lie between.
        let most = self.range.saturating_mul(u128::from(count - 1));
        let squares = match self.distances.checked_sub(1) {
            None => None,
            Some(distances) => Some(spread.squares_from(distances)?),
        };
        (self.range..=most).contains(&self.above).then_some(Spread { squares, ..spread })
    }
}

/// Writes the spread of something that there is `uses` times; returns how many of them it is of,
/// as a reader will see it.
fn put_spread(out: &mut Vec<u8>, spread: &Spread, uses: u64) -> u64 {
    let stored = Stored::of(spread).filter(|_| (1..=uses).contains(&spread.count));
    let Some(stored) = stored else {
        put_number(out, uses);
        return 0;
    };
    put_number(out, uses - spread.count);
    put_signed(out, spread.minimum);
    if spread.count >= 2 {
        put_wide(out, stored.range);
    }
    if spread.count >= 3 {
        put_wide(out, stored.above);
    }
    if spread.count >= 4 {
        put_wide(out, stored.distances);
    }
    spread.count
}

/// Writes the times of a loop that has so many iterations: first those of all but the last ones
/// of its occurrences. The last ones can only be among the rest, and mostly are the rest.
fn put_iterations(out: &mut Vec<u8>, IterationSpread { others, lasts }: &IterationSpread, iterations: u64) {
    let rest = iterations - put_spread(out, others, iterations);
    put_spread(out, lasts, rest);
}

fn take_iterations(bytes: &mut Bytes<'_>, flags: u8, iterations: u64) -> Result<IterationSpread> {
    let others = take_spread(bytes, iterations)?;
    let lasts = match flags & LAST_ITERATIONS {
        0 => Spread::default(),
        _ => take_spread(bytes, iterations - others.count)?,
    };
    Ok(IterationSpread { others, lasts })
}

fn take_spread(bytes: &mut Bytes<'_>, uses: u64) -> Result<Spread> {
    let count = take_count(bytes, uses)?;
    if count == 0 {
        return Ok(Spread::default());
    }
    let minimum = take_signed(bytes)?;
    let range = if count >= 2 { bytes.wide()? } else { 0 };
    let above = if count >= 3 { bytes.wide()? } else { range };
    let spread = match count {
        1..=3 => few(minimum, &[0, range, above.wrapping_sub(range)][..count as usize]),
        _ => Stored { above, range, distances: bytes.wide()? }.spread(count, minimum),
    };
    spread.ok_or_else(|| bytes.damaged("a sum does not fit its parts"))
}

/// The spread of numbers that are so much above the smallest, the second one being the
/// largest.
fn few(minimum: i128, above: &[u128]) -> Option<Spread> {
    let mut spread = Spread::default();
    for &above in above {
        spread.add(minimum.checked_add_unsigned(above)?).ok()?;
    }
    (above.iter().max() == above.get(1).or(above.first())).then_some(spread)
}

fn put_metric_spread(out: &mut Vec<u8>, spread: &MetricSpread, uses: u64) {
    if spread.count == 0 || spread.count > uses {
        return put_number(out, uses);
    }
    put_number(out, uses - spread.count);
    put_real(out, spread.total);
    if spread.count >= 2 {
        put_real(out, spread.minimum);
        put_real(out, spread.maximum);
    }
}

fn take_metric_spread(bytes: &mut Bytes<'_>, uses: u64) -> Result<MetricSpread> {
    let count = take_count(bytes, uses)?;
    Ok(match count {
        0 => MetricSpread::default(),
        1 => MetricSpread::of(take_real(bytes)?),
        _ => {
            let (total, minimum, maximum) = (take_real(bytes)?, take_real(bytes)?, take_real(bytes)?);
            MetricSpread { count, total, minimum, maximum }
        }
    })
}

/// How many of the `uses` were measured.
fn take_count(bytes: &mut Bytes<'_>, uses: u64) -> Result<u64> {
    let left_out = bytes.number()?;
    uses.checked_sub(left_out).ok_or_else(|| bytes.damaged("more was measured than there is"))
}

/// A number that may be negative: 0, -1, 1, -2, 2 as 0, 1, 2, 3, 4.
fn put_signed(out: &mut Vec<u8>, number: i128) {
    put_wide(out, ((number << 1) ^ (number >> 127)) as u128);
}

fn take_signed(bytes: &mut Bytes<'_>) -> Result<i128> {
    let number = bytes.wide()?;
    Ok((number >> 1) as i128 ^ -((number & 1) as i128))
}

/// Whole numbers below this are floats exactly.
const WHOLE: f64 = (1u64 << 53) as f64;

/// A float: most are whole, and those are stored as numbers, less 1; 0 comes before eight
/// bytes.
fn put_real(out: &mut Vec<u8>, real: f64) {
    let is_whole = real.abs() <= WHOLE && real.fract() == 0.0 && (real != 0.0 || real.is_sign_positive());
    if is_whole {
        let whole = i128::from(real as i64);
        put_wide(out, ((whole << 1) ^ (whole >> 127)) as u128 + 1);
    } else {
        out.push(0);
        out.extend_from_slice(&real.to_bits().to_le_bytes());
    }
}

fn take_real(bytes: &mut Bytes<'_>) -> Result<f64> {
    match bytes.number()?.checked_sub(1) {
        None => Ok(f64::from_bits(u64::from_le_bytes(bytes.array()?))),
        Some(number) => Ok(((number >> 1) as i64 ^ -((number & 1) as i64)) as f64),
    }
}

/// Reads the sums of a fold that has its rules and streams already.
pub(super) fn read(section: &[u8], fold: &mut Fold) -> Result<()> {
    if section.is_empty() {
        return Ok(());
    }
    let mut bytes = Bytes::new(section, PLACE);
    let mut names = KnownNames::take(&mut bytes, section.len())?;
    let symbols = fold.alphabet().len();
    let (mut next, mut clock) = (0u64, 0);
    for _ in 0..bytes.number()? {
        let index = next.checked_add(bytes.number()?);
        let index = index.filter(|&index| index < fold.streams().len() as u64);
        let index = index.ok_or_else(|| bytes.damaged("sums of a stream that is not there"))?;
        next = index + 1;
        let sums = take_stream(&mut bytes, &mut names, symbols, &mut clock)?;
        fold.streams_mut()[index as usize].sums = Some(sums);
    }
    if !bytes.rest().is_empty() {
        let sums = take_rules(&mut bytes, fold, &mut names)?;
        fold.set_rule_sums(sums);
    }
    bytes.finish()
}

/// The names of metrics that a section has.
struct KnownNames {
    names: Vec<String>,
    /// How many bytes of names may still be handed out: a number of few bytes stands for a name
    /// of any length, any number of times.
    room: usize,
}

/// The most bytes of names for each byte of a section.
const NAMES_PER_BYTE: usize = 1024;

impl KnownNames {
    fn take(bytes: &mut Bytes<'_>, section: usize) -> Result<Self> {
        let mut names = Vec::new();
        for _ in 0..bytes.number()? {
            names.push(bytes.string()?);
        }
        Ok(Self { names, room: section.saturating_mul(NAMES_PER_BYTE) })
    }

    /// The name whose number comes next.
    fn next(&mut self, bytes: &mut Bytes<'_>) -> Result<String> {
        let number = bytes.number()?;
        let name = usize::try_from(number).ok().and_then(|number| self.names.get(number));
        let name = name.ok_or_else(|| bytes.damaged("a metric that has no name"))?;
        let room = self.room.checked_sub(name.len());
        self.room = room.ok_or_else(|| bytes.damaged("names are repeated too often"))?;
        Ok(name.clone())
    }
}

fn take_stream(
    bytes: &mut Bytes<'_>,
    names: &mut KnownNames,
    symbols: usize,
    clock: &mut i64,
) -> Result<StreamSums> {
    let flags = bytes.byte()?;
    let is_unknown = flags & !(BEGAN | ENDED | DURATIONS | SAME_SELF_TIMES | SELF_TIMES) != 0;
    let is_same = flags & SAME_SELF_TIMES != 0;
    if is_unknown || is_same && flags & (DURATIONS | SELF_TIMES) != DURATIONS {
        return Err(bytes.damaged("something is known of a stream that this program does not know"));
    }
    let mut sums = StreamSums::default();
    if flags & BEGAN != 0 {
        *clock = take_time(bytes, *clock)?;
        sums.began = Some(*clock);
    }
    if flags & ENDED != 0 {
        sums.ended = Some(take_time(bytes, *clock)?);
    }
    if flags & DURATIONS != 0 {
        sums.durations = Some(take_list(bytes, symbols, take_duration_sum)?);
    }
    if is_same {
        sums.self_times.clone_from(&sums.durations);
    }
    if flags & SELF_TIMES != 0 {
        sums.self_times = Some(take_list(bytes, symbols, take_duration_sum)?);
    }
    for _ in 0..bytes.number()? {
        let name = names.next(bytes)?;
        let list = take_list(bytes, symbols, |bytes| {
            Ok(MetricSum { known: take_known(bytes)?, total: take_real(bytes)? })
        })?;
        sums.metrics.push((name, list));
    }
    Ok(sums)
}

fn take_time(bytes: &mut Bytes<'_>, clock: i64) -> Result<i64> {
    let time = take_signed(bytes)?.checked_add(clock.into());
    let time = time.and_then(|time| i64::try_from(time).ok());
    time.ok_or_else(|| bytes.damaged("a time is too large"))
}

/// How many values a sum is of: a sum of none is not stored.
fn take_known(bytes: &mut Bytes<'_>) -> Result<u64> {
    match bytes.number()? {
        0 => Err(bytes.damaged("a sum of nothing")),
        known => Ok(known),
    }
}

fn take_duration_sum(bytes: &mut Bytes<'_>) -> Result<DurationSum> {
    let known = take_known(bytes)?;
    let total = i128::try_from(bytes.wide()?).ok();
    let total = total.filter(|&total| total <= i128::from(i64::MAX) * i128::from(known));
    let total = total.ok_or_else(|| bytes.damaged("a sum is too large"))?;
    Ok(DurationSum { known, total })
}

fn take_list<'a, S>(
    bytes: &mut Bytes<'a>,
    symbols: usize,
    mut take: impl FnMut(&mut Bytes<'a>) -> Result<S>,
) -> Result<Vec<(Symbol, S)>> {
    let mut list = Vec::new();
    let mut next = 0u64;
    for _ in 0..bytes.number()? {
        let symbol = next.checked_add(bytes.number()?).filter(|&symbol| symbol < symbols as u64);
        let symbol = symbol.ok_or_else(|| bytes.damaged("a sum of an event that is not there"))?;
        next = symbol + 1;
        list.push((Symbol::new(symbol as usize)?, take(bytes)?));
    }
    Ok(list)
}

fn take_rules(bytes: &mut Bytes<'_>, fold: &Fold, names: &mut KnownNames) -> Result<RuleSums> {
    let uses = rule_uses(fold).map_err(|_| bytes.damaged("sums of rules that cannot be counted"))?;
    let mut sums = RuleSums::default();
    let flags = bytes.byte()?;
    if flags > RULE_DURATIONS | LAST_ITERATIONS {
        return Err(bytes.damaged("something is known of rules that this program does not know"));
    }
    if flags & RULE_DURATIONS != 0 {
        let spreads = uses.iter().map(|&uses| take_spread(bytes, uses));
        sums.durations = Some(collect(spreads)?);
    }
    for _ in 0..bytes.number()? {
        let name = names.next(bytes)?;
        let spreads = uses.iter().map(|&uses| take_metric_spread(bytes, uses));
        sums.metrics.push((name, collect(spreads)?));
    }
    for rule in fold.rules() {
        for (index, item) in loops_of(fold.body(rule)) {
            let iterations = uses[rule.index()].saturating_mul(item.times());
            let spread = take_iterations(bytes, flags, iterations)?;
            if spread != IterationSpread::default() {
                sums.loops.insert((rule, index), spread);
            }
        }
    }
    Ok(sums)
}

/// A list that grows as it is read: its length is only claimed.
fn collect<T>(values: impl Iterator<Item = Result<T>>) -> Result<Vec<T>> {
    let mut list = Vec::new();
    for value in values {
        list.push(value?);
    }
    Ok(list)
}

/// Fails if more events have sums than there are; returns how many sums there are.
pub(super) fn check(fold: &Fold) -> Result<u64> {
    let mut count = 0;
    let counts = symbol_counts(fold).ok();
    let mut known = vec![0u64; fold.alphabet().len()];
    for sums in fold.streams().iter().filter_map(FoldedStream::sums) {
        for &(symbol, sum) in sums.durations.iter().flatten() {
            known[symbol.index()] = known[symbol.index()].saturating_add(sum.known);
            count += 1;
        }
        count += sums.metrics.iter().map(|(_, list)| list.len() as u64).sum::<u64>();
    }
    if counts.is_some_and(|counts| counts.iter().zip(&known).any(|(count, known)| known > count)) {
        return Err(Error::damaged(PLACE, "more events were measured than there are"));
    }
    if let Some(sums) = fold.rule_sums() {
        let lists = usize::from(sums.durations.is_some()) + sums.metrics.len();
        count += (lists * fold.rules().len() + sums.loops.len()) as u64;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::{FoldBuilder, Target};
    use crate::trace::{Alphabet, Event};

    /// `(a b)^3 (a)^2`: a rule that is used three times, and the root with two loops.
    fn small() -> Fold {
        let mut alphabet = Alphabet::default();
        let [a, b] = ["a", "b"].map(|name| alphabet.intern(&Event::named(name), None).unwrap());
        let mut builder = FoldBuilder::new(alphabet);
        let rule = builder.rule(&[Item::once(a), Item::once(b)]).unwrap();
        let loops = [Item::new(Target::Rule(rule), 3), Item::new(Target::Symbol(a), 2)];
        let root = builder.rule(&loops).unwrap();
        builder.stream(FoldedStream::new("main", "by hand", root));
        builder.finish()
    }

    fn check(section: &[u8], expected: &str) {
        let read = read(section, &mut small());
        let reason = read.map_or_else(|error| error.to_string(), |()| "good".to_string());
        assert!(reason.contains(expected), "{section:?}: {reason}");
    }

    /// The sums of one stream: a lasted 7 once.
    const STREAM: [u8; 9] = [0, 1, 0, DURATIONS, 1, 0, 1, 7, 0];

    fn with_rules(rules: &[u8]) -> Vec<u8> {
        [&STREAM[..], rules].concat()
    }

    #[test]
    fn sums_are_read() {
        let mut fold = small();
        // The rule took 5, 6 and 8, and so did the iterations of its loop, of which 6 is the last
        // one; the root 20; a 1 and 3, of which 3 is the last.
        let rules = [3, 0, 10, 3, 4, 0, 40, 0, 1, 10, 3, 0, 12, 1, 2, 0, 6];
        read(&with_rules(&rules), &mut fold).unwrap();
        let a = Symbol::from_raw(0);
        let sums = fold.streams()[0].sums().unwrap();
        assert_eq!(sums.durations.as_deref(), Some(&[(a, DurationSum { known: 1, total: 7 })][..]));
        let sums = fold.rule_sums().unwrap();
        let mut rule = Spread::default();
        [5, 6, 8].into_iter().for_each(|time| rule.add(time).unwrap());
        assert_eq!(sums.durations.as_deref(), Some(&[rule, Spread::of(20)][..]));
        let times = |index| sums.loops[&(RuleId::from_raw(1), index)];
        assert_eq!(times(0).lasts, Spread::of(6));
        assert_eq!(times(0).summary().unwrap(), rule);
        assert_eq!((times(1).others, times(1).lasts), (Spread::of(1), Spread::of(3)));
        let again = write(&fold, &Canonical::of(&fold));
        assert_eq!(again, with_rules(&rules));
        assert_eq!(super::check(&fold).unwrap(), 5);
    }

    #[test]
    fn iterations_that_were_not_kept_apart_are_read() {
        let mut fold = small();
        read(&with_rules(&[0, 0, 0, 10, 3, 4, 0, 2, 2]), &mut fold).unwrap();
        let times = fold.rule_sums().unwrap().loops[&(RuleId::from_raw(1), 0)];
        assert_eq!((times.others.count, times.others.total, times.lasts.count), (3, 19, 0));
    }

    #[test]
    fn bad_sums_of_streams_are_refused() {
        check(&STREAM, "good");
        check(&STREAM[..8], "ends too early");
        check(&[0, 1, 1, 0, 0], "a stream that is not there");
        check(&[0, 2, 0, 0, 0, 0, 0, 0], "a stream that is not there");
        check(&[0, 1, 0, 32, 0], "does not know");
        // Self times are the durations, though there are none, or are also listed.
        check(&[0, 1, 0, SAME_SELF_TIMES, 0], "does not know");
        check(&[0, 1, 0, DURATIONS | SAME_SELF_TIMES | SELF_TIMES, 0, 0, 0], "does not know");
        check(&[0, 1, 0, DURATIONS | SAME_SELF_TIMES, 1, 0, 1, 7, 0], "good");
        check(&[0, 1, 0, DURATIONS | SELF_TIMES, 1, 0, 1, 7, 1, 0, 1, 3, 0], "good");
        check(&[0, 1, 0, DURATIONS, 1, 2, 1, 7, 0], "an event that is not there");
        check(&[0, 1, 0, DURATIONS, 3, 0, 1, 7, 0, 1, 7, 0, 1, 7, 0], "an event that is not there");
        check(&[0, 1, 0, DURATIONS, 1, 0, 0, 7, 0], "a sum of nothing");
        check(&[0, 1, 0, 0, 1, 0, 0], "no name");
        check(&[1, 1, 0xff, 1, 0, 0, 0], "UTF-8");
        let mut claims = vec![0];
        put_number(&mut claims, u64::MAX);
        check(&claims, "ends too early");
        let time = |flags: u8, time: i128| {
            let mut section = vec![0, 1, 0, flags];
            put_signed(&mut section, time);
            section.push(0);
            section
        };
        check(&time(BEGAN, i64::MIN.into()), "good");
        check(&time(BEGAN, i128::from(i64::MIN) - 1), "too large");
        check(&time(ENDED, i128::MAX), "too large");
        let total = |total: u128| {
            let mut section = vec![0, 1, 0, DURATIONS, 1, 0, 1];
            put_wide(&mut section, total);
            section.push(0);
            section
        };
        check(&total(i64::MAX as u128), "good");
        check(&total(1 << 63), "too large");
        check(&total(u128::MAX), "too large");
    }

    #[test]
    fn bad_sums_of_rules_are_refused() {
        check(&with_rules(&[0, 0, 3, 2]), "good");
        check(&with_rules(&[0, 0, 3, 2, 0]), "more than belongs");
        check(&with_rules(&[0, 0, 3]), "ends too early");
        check(&with_rules(&[4, 0, 3, 2]), "does not know");
        check(&with_rules(&[2, 0, 3, 3, 2, 2]), "good");
        check(&with_rules(&[2, 0, 1, 10, 0, 1, 2, 2]), "good");
        // Two other iterations leave one that can be the last.
        check(&with_rules(&[2, 0, 1, 10, 0, 2, 2, 2]), "more was measured than there is");
        // More rules than there are would be bytes left over; fewer, too few.
        check(&with_rules(&[1, 3, 1, 0, 3, 2]), "good");
        check(&with_rules(&[1, 3, 1, 1, 0, 3, 2]), "no name");
        check(&with_rules(&[1, 3]), "ends too early");
        check(&with_rules(&[1, 4, 1, 0, 3, 2]), "more was measured than there is");
        check(&with_rules(&[1, 3, 2, 0, 3, 2]), "more was measured than there is");
        check(&with_rules(&[0, 1, 0, 3, 1, 3, 2]), "no name");
        // Three numbers of which one is 3 above the smallest are 3 to 6 above together.
        check(&with_rules(&[1, 0, 10, 3, 2, 1, 0, 3, 2]), "does not fit");
        check(&with_rules(&[1, 0, 10, 3, 3, 1, 0, 3, 2]), "good");
        check(&with_rules(&[1, 0, 10, 3, 6, 1, 0, 3, 2]), "good");
        check(&with_rules(&[1, 0, 10, 3, 7, 1, 0, 3, 2]), "does not fit");
        for minimum in [i128::MAX, i128::MIN] {
            let mut rules = vec![1, 0];
            put_signed(&mut rules, minimum);
            rules.extend_from_slice(&[3, 3, 1, 0, 3, 2]);
            check(&with_rules(&rules), "does not fit");
        }
    }

    #[test]
    fn more_events_measured_than_there_are_is_found() {
        let mut fold = small();
        read(&[0, 1, 0, DURATIONS, 1, 0, 5, 7, 0], &mut fold).unwrap();
        assert_eq!(super::check(&fold).unwrap(), 1);
        read(&[0, 1, 0, DURATIONS, 1, 0, 6, 7, 0], &mut fold).unwrap();
        assert!(super::check(&fold).unwrap_err().kind() == crate::ErrorKind::Damaged);
    }

    #[test]
    fn a_long_name_cannot_be_repeated_for_ever() {
        let section = |uses: u64| {
            let mut section = vec![1];
            put_text(&mut section, &[b'n'; 100_000]);
            section.extend_from_slice(&[1, 0, 0]);
            put_number(&mut section, uses);
            (0..uses).for_each(|_| section.extend_from_slice(&[0, 0]));
            section
        };
        check(&section(900), "good");
        check(&section(2000), "repeated too often");
    }

    #[test]
    fn floats_come_back_bit_by_bit() {
        let reals = [0.0, -0.0, 1.0, -1.0, 0.5, WHOLE, -WHOLE, WHOLE + 2.0, 1e300, f64::INFINITY, f64::NAN];
        for real in reals {
            let mut out = Vec::new();
            put_real(&mut out, real);
            let mut bytes = Bytes::new(&out, PLACE);
            assert_eq!(take_real(&mut bytes).unwrap().to_bits(), real.to_bits());
            bytes.finish().unwrap();
        }
    }
}
