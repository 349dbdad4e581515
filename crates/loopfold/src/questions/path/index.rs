//! The index of the paper's section 4.4: which parts of a trace hold which functions.
//!
//! The top of the fold is divided into *segments*: stretches of the streams, streams with
//! the same root taken once. They are cut between items of the roots; where these have too
//! few, also between the items of the largest rules below and between iterations. For each
//! function the index has the set of segments with an enter, a block or an exit of it, and
//! for each segment how calls are nested in it. A search goes only into the segments of its
//! function, and from there into every rule that they are made of.
//!
//! There is an index only where symbols say whose they are: otherwise every exit matters to
//! every function.
//!
//! Making it is one pass down the rules with a bit a segment, some ten nanoseconds an item
//! for each 64 segments, and one pass for the levels. Memory while it is made: a bit for each
//! rule and segment, and 32 bytes a rule.

use super::functions::{Function, Functions, Step};
use super::levels::{Levels, NestingLevels};
use super::projection::{Alike, Projection, Scratch};
use super::schemes::Share;
use super::{Effort, PathFound, PathQuery};
use crate::fold::{Fold, Item, Measure, Target, measure_rules};
use crate::{Error, Result, RuleId, Symbol};
use hashbrown::HashMap;
use roaring::RoaringBitmap;
use std::ops::Range;
use std::sync::Arc;

/// Where more than one in so many segments hold a function, going through all rules is
/// faster than finding those that the segments are made of.
const COMMON: u64 = 8;

/// Which segments of a fold hold which functions.
///
/// ```
/// use loopfold::folders::{Outermost, fold_trace};
/// use loopfold::questions::{Functions, PathIndex, PathQuery, find_path_indexed};
/// use loopfold::trace::{Collector, Event, Field, Role, Sink, Value};
///
/// let mut collector = Collector::default();
/// let stream = collector.stream("main")?;
/// for name in ["f", "g"] {
///     let function = [Field { key: "function", value: Value::Text(name.as_bytes()) }];
///     collector.push(stream, &Event { role: Role::Enter, ..Event::named(name) })?;
///     collector.push(stream, &Event { role: Role::Block, fields: &function, ..Event::named("B1") })?;
///     collector.push(stream, &Event { role: Role::Leave, fields: &function, ..Event::named(name) })?;
/// }
/// let fold = fold_trace(collector.finish()?, &Outermost::default(), 1)?;
/// let index = PathIndex::of(&fold, 2)?.expect("the symbols say whose they are");
/// let functions = Functions::of(fold.alphabet())?;
/// let g = functions.named(b"g").unwrap();
/// let query = PathQuery::new(&functions, g, vec![g.blocks().to_vec()])?;
/// let (found, effort) = find_path_indexed(&fold, &index, &query)?;
/// assert_eq!(found.count()?, 1);
/// assert_eq!(effort.segments.map(|segments| (segments.touched, segments.all)), Some((1, 2)));
/// # Ok::<(), loopfold::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct PathIndex {
    /// Which fold it belongs to.
    pub(crate) fingerprint: u64,
    /// How many segments were asked for.
    pub(crate) asked: usize,
    /// Where each segment ends: in events, of all different roots one after the other.
    pub(crate) ends: Vec<u64>,
    /// How calls are nested in each segment.
    pub(crate) levels: Vec<NestingLevels>,
    /// The segments of each function, in the order of [`Functions::all`].
    pub(crate) functions: Vec<RoaringBitmap>,
    /// The place of each function by its name.
    places: HashMap<Vec<u8>, usize>,
}

impl PathIndex {
    /// How many segments there are unless something else is asked for.
    pub const SEGMENTS: usize = 128;
    /// More segments than that there never are.
    pub const MOST_SEGMENTS: usize = 1 << 16;

    /// True if there can be an index: there are functions, and symbols say whose they are.
    pub fn is_possible(fold: &Fold) -> Result<bool> {
        let functions = Functions::of(fold.alphabet())?;
        Ok(!functions.all().is_empty() && functions.is_qualified())
    }

    /// The index of a fold with about so many segments; nothing where it would be of no use:
    /// there are no functions, or symbols do not say whose they are.
    pub fn of(fold: &Fold, segments: usize) -> Result<Option<Self>> {
        let functions = Functions::of(fold.alphabet())?;
        let roots = Roots::of(fold);
        if functions.all().is_empty() || !functions.is_qualified() || roots.events() == 0 {
            return Ok(None);
        }
        let asked = segments.clamp(1, Self::MOST_SEGMENTS);
        let ends = cuts(fold, &roots, asked);
        let sets = segments_of_symbols(fold, &roots, &ends);
        let of_function = |function: &Function| -> RoaringBitmap {
            let mut bits = vec![0u64; sets.words];
            for (symbol, _) in functions.steps_of(function) {
                bits.iter_mut().zip(sets.of(symbol.index())).for_each(|(bits, more)| *bits |= more);
            }
            let segments = (0..ends.len() as u32).filter(|&segment| has(&bits, segment as usize));
            let mut set: RoaringBitmap = segments.collect();
            set.optimize();
            set
        };
        let sets = functions.all().iter().map(of_function).collect();
        let levels = levels_of(fold, &roots, &ends)?;
        let fingerprint = fingerprint(fold, &functions);
        Ok(Some(Self::from_parts(fingerprint, asked, ends, levels, sets, &functions)))
    }

    /// The index that was stored as this.
    pub(crate) fn from_parts(
        fingerprint: u64,
        asked: usize,
        ends: Vec<u64>,
        levels: Vec<NestingLevels>,
        sets: Vec<RoaringBitmap>,
        functions: &Functions,
    ) -> Self {
        let names = functions.all().iter().enumerate();
        let places = names.map(|(place, function)| (function.name().to_vec(), place)).collect();
        Self { fingerprint, asked, ends, levels, functions: sets, places }
    }

    /// True if it was made for this fold, as far as can be told at a nanosecond an item.
    pub fn fits(&self, fold: &Fold) -> Result<bool> {
        let functions = Functions::of(fold.alphabet())?;
        Ok(self.is_of_size(fold) && self.fingerprint == fingerprint(fold, &functions))
    }

    /// True if its segments end where the fold does.
    fn is_of_size(&self, fold: &Fold) -> bool {
        self.ends.last() == Some(&Roots::of(fold).events())
    }

    /// True if it is what making it anew gives.
    pub fn is_right(&self, fold: &Fold) -> Result<bool> {
        Ok(Self::of(fold, self.asked)?.as_ref() == Some(self))
    }

    /// How many segments there are.
    pub fn segments(&self) -> usize {
        self.ends.len()
    }

    /// How many segments hold something of a function.
    pub fn segments_with(&self, function: &[u8]) -> u64 {
        self.place(function).map_or(0, |place| self.share(place).touched)
    }

    pub(super) fn place(&self, function: &[u8]) -> Option<usize> {
        self.places.get(function).copied()
    }

    /// True if a segment holds something of a function.
    pub fn holds(&self, function: &[u8], segment: usize) -> bool {
        let set = self.place(function).and_then(|place| self.functions.get(place));
        u32::try_from(segment).is_ok_and(|segment| set.is_some_and(|set| set.contains(segment)))
    }

    /// The events of a segment, counted over the different roots of the streams, one after
    /// the other in the order of their numbers.
    pub fn events(&self, segment: usize) -> Option<Range<u64>> {
        self.stretch(segment).map(|(start, end)| start..end)
    }

    /// How calls are nested in a segment.
    pub fn levels(&self, segment: usize) -> Option<NestingLevels> {
        self.levels.get(segment).copied()
    }

    /// The segments of a function, as a share of all.
    pub(super) fn share(&self, function: usize) -> Share {
        let touched = self.functions.get(function).map_or(0, RoaringBitmap::len);
        Share { touched, all: self.segments() as u64 }
    }

    /// What the fold holds of a function, found in its segments.
    pub(super) fn projection(
        &self,
        fold: &Fold,
        function: usize,
        steps: &[(Symbol, Step)],
        scratch: &mut Scratch,
    ) -> Result<Projection> {
        let Share { touched, all } = self.share(function);
        if touched.saturating_mul(COMMON) > all {
            return Projection::of(fold, steps, Alike::Apart);
        }
        let none = RoaringBitmap::new();
        let segments = self.functions.get(function).unwrap_or(&none);
        let stretches = joined(segments.iter().filter_map(|segment| self.stretch(segment as usize)));
        let mut found = Candidates { fold, rules: Vec::new(), parts: Vec::new() };
        found.find(&Roots::of(fold), &stretches, scratch);
        scratch.clear();
        let visited = found.rules.len() as u64;
        Projection::of_places(fold, steps, found.places(), scratch, Alike::Apart, visited)
    }

    /// Where a segment begins and ends.
    fn stretch(&self, segment: usize) -> Option<(u64, u64)> {
        let end = *self.ends.get(segment)?;
        Some((segment.checked_sub(1).map_or(0, |before| self.ends[before]), end))
    }
}

/// Looks for a path only in those segments of a fold that hold something of its function,
/// by an index that [fits](PathIndex::fits) the fold, and says what it did. Where the
/// function is in many of them, all rules are gone through, which is faster then.
///
/// To look for many paths, [`PathSearcher`](super::PathSearcher) is faster.
pub fn find_path_indexed<'a>(
    fold: &'a Fold,
    index: &PathIndex,
    query: &PathQuery,
) -> Result<(PathFound<'a>, Effort)> {
    if !index.is_of_size(fold) {
        return Err(Error::invalid("the index is of another fold"));
    }
    let function = index.place(query.function());
    let function = function.ok_or_else(|| Error::invalid("the index does not have the function"))?;
    let mut scratch = Scratch::new(fold);
    let projection = Arc::new(index.projection(fold, function, query.steps(), &mut scratch)?);
    let effort = Effort {
        segments: Some(index.share(function)),
        rules: Some(Share { touched: projection.visited(), all: fold.rules().len() as u64 }),
        ..Effort::default()
    };
    Ok((PathFound::new(fold, &projection, query)?, effort))
}

/// The different roots of the streams, each once, and where each begins if they stand one
/// after the other.
struct Roots {
    /// With where it ends. As many as fit 64 bits.
    roots: Vec<(RuleId, u64)>,
}

impl Roots {
    fn of(fold: &Fold) -> Self {
        let mut rules: Vec<RuleId> = fold.streams().iter().map(|stream| stream.root()).collect();
        rules.sort_unstable();
        rules.dedup();
        let mut events = 0u64;
        let mut roots = Vec::with_capacity(rules.len());
        for rule in rules {
            let Some(end) = events.checked_add(fold.length(rule)) else {
                // Too much to number: then there is no index.
                return Self { roots: Vec::new() };
            };
            events = end;
            roots.push((rule, end));
        }
        Self { roots }
    }

    /// All events.
    fn events(&self) -> u64 {
        self.roots.last().map_or(0, |&(_, end)| end)
    }

    /// The roots, with where each begins.
    fn iter<'a>(&'a self, fold: &'a Fold) -> impl Iterator<Item = (RuleId, u64)> + 'a {
        self.roots.iter().map(|&(rule, end)| (rule, end - fold.length(rule)))
    }
}

/// Something that no segment need be cut in: iterations of an item.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Piece {
    item: Item,
    length: u64,
}

/// Where about so many segments end.
fn cuts(fold: &Fold, roots: &Roots, segments: usize) -> Vec<u64> {
    let piece = |&item: &Item| Piece { item, length: fold.item_length(item) };
    let mut pieces: Vec<Piece> = roots.iter(fold).flat_map(|(root, _)| fold.body(root)).map(piece).collect();
    // Whatever is largest is divided, until there is enough. Each time all that are longer
    // than half of the longest are, so it is done at the latest after 64 rounds for each
    // level of rules.
    while pieces.len() < segments
        && let Some(longest) =
            pieces.iter().filter(|piece| can_divide(**piece)).map(|piece| piece.length).max()
    {
        let mut room = segments.saturating_sub(pieces.len());
        let mut divided = Vec::with_capacity(2 * pieces.len());
        for piece in pieces {
            if room == 0 || piece.length <= longest / 2 || !can_divide(piece) {
                divided.push(piece);
                continue;
            }
            let before = divided.len();
            divide(fold, piece, &mut divided);
            room = room.saturating_sub(divided.len() - before - 1);
        }
        pieces = divided;
    }
    // As many pieces for each segment.
    let mut ends = Vec::with_capacity(segments);
    let (mut end, count) = (0u64, pieces.len());
    for (index, piece) in pieces.iter().enumerate() {
        end += piece.length;
        let segment = |index: usize| index as u128 * segments as u128 / count as u128;
        if index + 1 == count || segment(index) != segment(index + 1) {
            ends.push(end);
        }
    }
    ends
}

fn can_divide(piece: Piece) -> bool {
    piece.item.times() > 1 || matches!(piece.item.target(), Target::Rule(_))
}

/// Half of the iterations and the rest, or the items of a rule.
fn divide(fold: &Fold, piece: Piece, divided: &mut Vec<Piece>) {
    let of = |item: Item| Piece { item, length: fold.item_length(item) };
    match (piece.item.target(), piece.item.times()) {
        (Target::Rule(rule), 1) => divided.extend(fold.body(rule).iter().map(|&item| of(item))),
        (target, times) => {
            divided.push(of(Item::new(target, times / 2)));
            divided.push(of(Item::new(target, times - times / 2)));
        }
    }
}

/// Sets of segments, one for each symbol.
struct Sets {
    words: usize,
    bits: Vec<u64>,
}

impl Sets {
    fn of(&self, slot: usize) -> &[u64] {
        &self.bits[slot * self.words..(slot + 1) * self.words]
    }
}

fn has(bits: &[u64], segment: usize) -> bool {
    bits[segment / 64] >> (segment % 64) & 1 == 1
}

/// The segments that each symbol occurs in: from the roots down. A rule that lies within
/// segments gives them to what it is made of; one that is cut is looked at item by item,
/// once for each time that it is cut.
fn segments_of_symbols(fold: &Fold, roots: &Roots, ends: &[u64]) -> Sets {
    let (words, symbols) = (ends.len().div_ceil(64), fold.alphabet().len());
    let mut bits = vec![0u64; words * (symbols + fold.rules().len())];
    let slot = |target: Target| match target {
        Target::Symbol(symbol) => symbol.index(),
        Target::Rule(rule) => symbols + rule.index(),
    };
    each_piece(fold, roots, ends, |segment, item| {
        bits[slot(item.target()) * words + segment / 64] |= 1 << (segment % 64);
    });
    for rule in fold.rules().rev() {
        let (below, own) = bits.split_at_mut((symbols + rule.index()) * words);
        let own = &own[..words];
        if own.iter().all(|&word| word == 0) {
            continue;
        }
        for item in fold.body(rule) {
            let place = slot(item.target()) * words;
            below[place..place + words].iter_mut().zip(own).for_each(|(bits, more)| *bits |= more);
        }
    }
    Sets { words, bits }
}

/// What comes next in a stream: some iterations, or the rest of a body.
enum Coming<'a> {
    Item(Item),
    Items(std::slice::Iter<'a, Item>),
}

/// Tells of each segment what it is made of, in order. What is cut is gone into.
fn each_piece(fold: &Fold, roots: &Roots, ends: &[u64], mut tell: impl FnMut(usize, Item)) {
    // The nearest last.
    let mut ahead: Vec<Coming<'_>> =
        roots.iter(fold).map(|(root, _)| Coming::Items(fold.body(root).iter())).collect();
    ahead.reverse();
    let (mut segment, mut position) = (0, 0u64);
    while let Some(next) = ahead.last_mut() {
        let item = match next {
            Coming::Item(item) => Some(*item),
            Coming::Items(items) => items.next().copied(),
        };
        if item.is_none() || matches!(next, Coming::Item(_)) {
            ahead.pop();
        }
        let Some(item) = item else { continue };
        while ends.get(segment).is_some_and(|&end| end <= position) {
            segment += 1;
        }
        let Some(&end) = ends.get(segment) else { return };
        let (target, length) = (item.target(), fold.target_length(item.target()));
        let whole = (end - position).checked_div(length).unwrap_or(u64::MAX).min(item.times());
        if whole > 0 {
            tell(segment, Item::new(target, whole));
            position += whole * length;
        }
        let cut = u64::from(whole == 0);
        if item.times() > whole + cut {
            ahead.push(Coming::Item(Item::new(target, item.times() - whole - cut)));
        }
        if let (1, Target::Rule(rule)) = (cut, target) {
            ahead.push(Coming::Items(fold.body(rule).iter()));
        }
    }
}

/// How calls are nested in each segment.
fn levels_of(fold: &Fold, roots: &Roots, ends: &[u64]) -> Result<Vec<NestingLevels>> {
    let measure = Levels::new(fold.alphabet());
    let rules = measure_rules(fold, &measure)?;
    let mut levels = vec![measure.empty(); ends.len()];
    each_piece(fold, roots, ends, |segment, item| {
        let once = match item.target() {
            Target::Symbol(symbol) => measure.of_symbol(symbol),
            Target::Rule(rule) => rules[rule.index()],
        };
        levels[segment] = measure.joined(levels[segment], measure.repeated(once, item.times()));
    });
    Ok(levels)
}

/// A number that another fold is unlikely to have: of all items, of the roots and of whose
/// symbols are whose.
fn fingerprint(fold: &Fold, functions: &Functions) -> u64 {
    let mut hash = 0u64;
    let mut add = |number: u64| hash = (hash.rotate_left(23) ^ number).wrapping_mul(MIX);
    for rule in fold.rules() {
        for item in fold.body(rule) {
            let target = match item.target() {
                Target::Symbol(symbol) => u64::from(symbol.raw()),
                Target::Rule(rule) => u64::from(rule.raw()) | 1 << 32,
            };
            add(target ^ item.times().rotate_left(33));
        }
        add(u64::MAX);
    }
    fold.streams().iter().for_each(|stream| add(stream.root().raw().into()));
    for function in functions.all() {
        add(crc32fast::hash(function.name()).into());
        functions.steps_of(function).iter().for_each(|(symbol, step)| {
            add(u64::from(symbol.raw()) | (*step as u64) << 32);
        });
    }
    hash
}

/// An odd number without a pattern, for hashing.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

/// Stretches in order, neighbours as one.
fn joined(stretches: impl Iterator<Item = (u64, u64)>) -> Vec<(u64, u64)> {
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (start, end) in stretches {
        match joined.last_mut() {
            Some(last) if last.1 == start => last.1 = end,
            _ => joined.push((start, end)),
        }
    }
    joined
}

/// The rules that some stretches are made of. Of a rule that is not wholly in them, only
/// those items are looked at that are: the others hold nothing of the function, wherever
/// else the rule occurs.
struct Candidates<'a> {
    fold: &'a Fold,
    rules: Vec<RuleId>,
    /// Which items, for rules that are in the stretches only in part, in any order.
    parts: Vec<(RuleId, Range<usize>)>,
}

impl Candidates<'_> {
    fn find(&mut self, roots: &Roots, stretches: &[(u64, u64)], scratch: &mut Scratch) {
        // Rules to look at, with where they begin if they are cut.
        let mut todo: Vec<(RuleId, Option<u64>)> =
            roots.iter(self.fold).map(|(root, start)| (root, Some(start))).collect();
        while let Some((rule, cut)) = todo.pop() {
            let Some(start) = cut else {
                self.add(rule, self.fold.body(rule), &mut todo, scratch);
                continue;
            };
            let end = start + self.fold.length(rule);
            let first = stretches.partition_point(|stretch| stretch.1 <= start);
            let those = stretches[first..].iter().take_while(|stretch| stretch.0 < end);
            let mut those = those.peekable();
            match those.peek() {
                None => {}
                Some(only) if only.0 <= start && end <= only.1 => {
                    self.add(rule, self.fold.body(rule), &mut todo, scratch);
                }
                Some(_) if scratch.mark(rule) => {
                    self.rules.push(rule);
                    self.add_part(rule, start, those, &mut todo);
                }
                Some(_) => {}
            }
        }
    }

    /// A rule that lies within a stretch.
    fn add(
        &mut self,
        rule: RuleId,
        body: &[Item],
        todo: &mut Vec<(RuleId, Option<u64>)>,
        scratch: &mut Scratch,
    ) {
        if scratch.mark(rule) {
            self.rules.push(rule);
            todo.extend(body.iter().filter_map(|item| match item.target() {
                Target::Rule(inner) => Some((inner, None)),
                Target::Symbol(_) => None,
            }));
        }
    }

    /// A rule that begins at `start`, of which only some stretches matter.
    fn add_part<'s>(
        &mut self,
        rule: RuleId,
        start: u64,
        stretches: impl Iterator<Item = &'s (u64, u64)>,
        todo: &mut Vec<(RuleId, Option<u64>)>,
    ) {
        let (body, ends, places) =
            (self.fold.body(rule), self.fold.item_ends(rule), self.fold.item_range(rule));
        let mut next = 0;
        for &(from, to) in stretches {
            let (from, to) = (from.saturating_sub(start), to.saturating_sub(start));
            let first = ends.partition_point(|&end| end <= from).max(next);
            next = ends.partition_point(|&end| end < to).saturating_add(1).min(body.len());
            if first >= next {
                continue;
            }
            self.parts.push((rule, places.start + first..places.start + next));
            for index in first..next {
                let Target::Rule(inner) = body[index].target() else { continue };
                let begin = ends[index] - self.fold.item_length(body[index]);
                let is_cut = body[index].times() == 1 && (begin < from || ends[index] > to);
                todo.push((inner, is_cut.then_some(start + begin)));
            }
        }
    }

    /// The items to look at, in order, each with its rule.
    fn places(&mut self) -> impl Iterator<Item = (u32, RuleId)> + '_ {
        self.rules.sort_unstable();
        self.parts.sort_unstable_by_key(|(rule, range)| (*rule, range.start));
        self.rules.iter().flat_map(|&rule| {
            let first = self.parts.partition_point(|&(before, _)| before < rule);
            let parts = self.parts[first..].iter().take_while(move |(part, _)| *part == rule);
            let whole = self.parts.get(first).is_none_or(|&(part, _)| part != rule);
            let all = whole.then(|| self.fold.item_range(rule));
            let places = all.into_iter().chain(parts.map(|(_, range)| range.clone())).flatten();
            places.map(move |place| (place as u32, rule))
        })
    }
}
