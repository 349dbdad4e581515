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
use roaring::RoaringBitmap;
use std::sync::Arc;

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
    /// Where each segment ends: in events, of all different roots one after the other.
    pub(crate) ends: Vec<u64>,
    /// How calls are nested in each segment.
    pub(crate) levels: Vec<NestingLevels>,
    /// The segments of each function, in the order of [`Functions::all`].
    pub(crate) functions: Vec<RoaringBitmap>,
}

impl PathIndex {
    /// How many segments there are unless something else is asked for.
    pub const SEGMENTS: usize = 128;
    /// More segments than that there never are.
    pub const MOST_SEGMENTS: usize = 1 << 16;

    /// The index of a fold with about so many segments; nothing where it would be of no use:
    /// there are no functions, or symbols do not say whose they are.
    pub fn of(fold: &Fold, segments: usize) -> Result<Option<Self>> {
        let functions = Functions::of(fold.alphabet())?;
        let roots = Roots::of(fold);
        if functions.all().is_empty() || !functions.is_qualified() || roots.events() == 0 {
            return Ok(None);
        }
        let ends = cuts(fold, &roots, segments.clamp(1, Self::MOST_SEGMENTS));
        Self::with_ends(fold, &functions, &roots, ends).map(Some)
    }

    /// The index of a fold with segments that end here.
    fn with_ends(fold: &Fold, functions: &Functions, roots: &Roots, ends: Vec<u64>) -> Result<Self> {
        let sets = segments_of_symbols(fold, roots, &ends);
        let of_function = |function: &Function| -> RoaringBitmap {
            let symbols = functions.steps_of(function);
            let mut bits = vec![0u64; sets.words];
            for (symbol, _) in symbols {
                bits.iter_mut().zip(sets.of(symbol.index())).for_each(|(bits, more)| *bits |= more);
            }
            (0..ends.len() as u32).filter(|&segment| has(&bits, segment as usize)).collect()
        };
        Ok(Self {
            fingerprint: fingerprint(fold, functions),
            functions: functions.all().iter().map(of_function).collect(),
            levels: levels_of(fold, roots, &ends)?,
            ends,
        })
    }

    /// True if it was made for this fold, as far as can be told at a nanosecond an item.
    pub fn fits(&self, fold: &Fold) -> Result<bool> {
        let functions = Functions::of(fold.alphabet())?;
        Ok(functions.all().len() == self.functions.len()
            && self.ends.last() == Some(&Roots::of(fold).events())
            && self.fingerprint == fingerprint(fold, &functions))
    }

    /// True if it is what making it for this fold gives, segments aside.
    pub fn is_right(&self, fold: &Fold) -> Result<bool> {
        if !self.fits(fold)? {
            return Ok(false);
        }
        let functions = Functions::of(fold.alphabet())?;
        Ok(*self == Self::with_ends(fold, &functions, &Roots::of(fold), self.ends.clone())?)
    }

    /// How many segments there are.
    pub fn segments(&self) -> usize {
        self.ends.len()
    }

    /// How many segments hold a function, by its place in [`Functions::all`].
    pub fn segments_with(&self, function: usize) -> u64 {
        self.functions.get(function).map_or(0, RoaringBitmap::len)
    }

    /// How calls are nested in a segment.
    pub fn levels(&self, segment: usize) -> Option<NestingLevels> {
        self.levels.get(segment).copied()
    }

    /// The segments of a function, as a share of all.
    pub(super) fn share(&self, function: usize) -> Share {
        Share { touched: self.segments_with(function), all: self.segments() as u64 }
    }

    /// What the fold holds of a function, found in its segments.
    pub(super) fn projection(
        &self,
        fold: &Fold,
        function: usize,
        steps: &[(Symbol, Step)],
        scratch: &mut Scratch,
    ) -> Result<Projection> {
        let none = RoaringBitmap::new();
        let segments = self.functions.get(function).unwrap_or(&none);
        let mut found = Candidates { fold, rules: Vec::new(), parts: Vec::new() };
        let roots = Roots::of(fold);
        let stretches = segments.iter().map(|segment| self.stretch(segment as usize));
        found.find(&roots, &joined(stretches), scratch);
        scratch.clear();
        found.rules.sort_unstable();
        let visited = found.rules.len() as u64;
        let places = found.places();
        Projection::of_places(fold, steps, places, scratch, Alike::Apart, visited)
    }

    /// Where a segment begins and ends.
    fn stretch(&self, segment: usize) -> (u64, u64) {
        (segment.checked_sub(1).map_or(0, |before| self.ends[before]), self.ends[segment])
    }
}

/// Looks for a path only in those segments of a fold that hold something of its function,
/// by an index that [fits](PathIndex::fits) the fold, and says what it did.
///
/// To look for many paths, [`PathSearcher`](super::PathSearcher) is faster.
pub fn find_path_indexed<'a>(
    fold: &'a Fold,
    index: &PathIndex,
    query: &PathQuery,
) -> Result<(PathFound<'a>, Effort)> {
    let functions = Functions::of(fold.alphabet())?;
    let function = functions.place(query.function());
    let function = function.ok_or_else(|| Error::invalid("the path is of a function that is not there"))?;
    if functions.all().len() != index.functions.len()
        || index.ends.last() != Some(&Roots::of(fold).events())
    {
        return Err(Error::invalid("the index is of another fold"));
    }
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
    let mut pieces: Vec<Piece> =
        roots.iter(fold).flat_map(|(root, _)| fold.body(root)).map(piece).collect();
    // Whatever is largest is divided, until there is enough. Each time all that are longer
    // than half of the longest are, so it is done at the latest after 64 rounds for each
    // level of rules.
    while pieces.len() < segments
        && let Some(longest) = pieces.iter().filter(|piece| can_divide(**piece)).map(|piece| piece.length).max()
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
    for_each_piece(fold, roots, ends, |segment, target| {
        bits[slot(target) * words + segment / 64] |= 1 << (segment % 64);
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

/// Tells of each segment what it is made of, repeats once.
fn for_each_piece(fold: &Fold, roots: &Roots, ends: &[u64], mut tell: impl FnMut(usize, Target)) {
    each_piece(fold, roots, ends, &mut |segment, item| {
        tell(segment, item.target());
        Ok(())
    })
    .unwrap_or(());
}

/// Tells of each segment what it is made of, in order. What is cut is gone into.
fn each_piece(
    fold: &Fold,
    roots: &Roots,
    ends: &[u64],
    tell: &mut dyn FnMut(usize, Item) -> Result<()>,
) -> Result<()> {
    // Items that are still to come, the nearest last.
    let mut ahead: Vec<std::slice::Iter<'_, Item>> = Vec::new();
    let mut single: Vec<Item> = Vec::new();
    let (mut segment, mut position) = (0, 0u64);
    for (root, _) in roots.iter(fold) {
        ahead.push(fold.body(root).iter());
        loop {
            let item = match single.pop() {
                Some(item) => item,
                None => match ahead.last_mut().map(Iterator::next) {
                    None => break,
                    Some(Some(&item)) => item,
                    Some(None) => {
                        ahead.pop();
                        continue;
                    }
                },
            };
            while ends.get(segment).is_some_and(|&end| end <= position) {
                segment += 1;
            }
            let Some(&end) = ends.get(segment) else { return Ok(()) };
            let (room, length) = (end - position, fold.target_length(item.target()));
            let iterations = room.checked_div(length).unwrap_or(u64::MAX).min(item.times());
            if iterations > 0 {
                tell(segment, Item::new(item.target(), iterations))?;
                position += iterations * length;
                if iterations < item.times() {
                    single.push(Item::new(item.target(), item.times() - iterations));
                }
            } else if let Target::Rule(rule) = item.target() {
                // The next iteration is cut; what comes after it waits below its items.
                if item.times() > 1 {
                    return Err(Error::invalid("a segment ends within one of several iterations"));
                }
                ahead.push(fold.body(rule).iter());
            }
        }
    }
    Ok(())
}
