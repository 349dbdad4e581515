//! The rules section: the streams' roots, and all rules below them.
//!
//! The streams are walked in order, and a rule's body is written where the rule is first
//! used, so neither rules nor symbols need numbers at first use ([`walk`](super::walk));
//! what remains is coded by a [model](super::items) under a range coder. Data without
//! structure gains nothing from the model and pays for learning it, so it is coded
//! without context when that is hardly longer.
//!
//! Reading takes memory for the rules and what the model takes. A flag per item costs at
//! least 0.011 bits, so a section cannot hold more items than [`most_items`] says; one
//! that claims more is refused before anything is read.

use super::coder::{Decoder, Encoder};
use super::estimate::Estimate;
use super::items::{Model, Place, Settings, Step};
use super::roots::Roots;
use super::walk::{Event, walk};
use crate::bytes::{Bytes, put_number};
use crate::fold::{Canonical, FoldBuilder, Item, Target};
use crate::{Error, Result, RuleId, Symbol};

/// No section of `bytes` bytes holds more items than this.
pub(super) fn most_items(bytes: usize) -> u64 {
    (bytes as u64).saturating_add(8).saturating_mul(1024)
}

/// The bit of the first byte that says that there is no context; the others are the
/// eagerness.
const PLAIN: u8 = 0x80;

impl Settings {
    fn byte(self) -> u8 {
        self.eagerness | if self.plain { PLAIN } else { 0 }
    }

    fn from_byte(byte: u8) -> Result<Self> {
        match byte & !PLAIN {
            0 => Err(damaged("an unknown coding")),
            eagerness => Ok(Self { plain: byte & PLAIN != 0, eagerness }),
        }
    }
}

/// Writes the section.
pub(super) fn write(fold: &Canonical) -> Result<Vec<u8>> {
    if fold.roots.is_empty() {
        return Ok(Vec::new());
    }
    check_items(fold)?;
    let estimate = Estimate::of(fold)?;
    let mut settings = estimate.settings(false);
    let mut coded = encode(fold, settings)?;
    let hardly_longer = coded.len() + coded.len() / 64;
    if estimate.plain_bytes <= hardly_longer as u64 {
        let plain = encode(fold, estimate.settings(true))?;
        if plain.len() <= hardly_longer {
            (settings, coded) = (estimate.settings(true), plain);
        }
    }
    let mut section = vec![settings.byte()];
    put_number(&mut section, fold.items() as u64);
    section.extend_from_slice(&coded);
    Ok(section)
}

/// Fails if an item repeats a rule without events, which begins with no symbol. Rules
/// are distinct, so no more than one is empty.
fn check_items(fold: &Canonical) -> Result<()> {
    let mut rules = (0..fold.rules() as u32).map(RuleId::from_raw);
    let empty = rules.find(|&rule| fold.body(rule).is_empty()).map(Target::Rule);
    let mut items = (0..fold.rules() as u32).flat_map(|rule| fold.body(RuleId::from_raw(rule)));
    if empty.is_some() && items.any(|item| Some(item.target()) == empty) {
        return Err(Error::invalid("an item that repeats a rule without events"));
    }
    Ok(())
}

fn encode(fold: &Canonical, settings: Settings) -> Result<Vec<u8>> {
    let mut coder = Encoder::default();
    let mut roots = Roots::default();
    let mut model = Model::new(fold.items() as u64, fold.symbols.len(), settings);
    let mut items_left = fold.items() as u64;
    walk(fold, |event| {
        match event {
            Event::KnownRoot(root) => {
                roots.code(&mut coder, model.known_rules(), Some(root))?;
            }
            Event::NewRoot(body) => {
                roots.code(&mut coder, model.known_rules(), None)?;
                model.begin_stream();
                code_root_length(&mut coder, items_left, body.len() as u64)?;
                items_left -= body.len() as u64;
            }
            Event::Item(place, item) => {
                model.code_item(&mut coder, place, item.target())?;
                model.code_times(&mut coder, item.target(), item.times())?;
            }
            Event::NewRule(place, target, body) => {
                model.code_item(&mut coder, place, target)?;
                model.code_length(&mut coder, body.len() as u64);
                items_left -= body.len() as u64;
            }
            Event::End(body, outer) => {
                let rule = model.end_rule(ends(body))?;
                match outer {
                    None => roots.learn(rule)?,
                    Some(item) => {
                        model.code_times(&mut coder, item.target(), item.times())?;
                    }
                }
            }
        }
        Ok(())
    })?;
    Ok(coder.finish())
}

/// The first and the last of some items.
fn ends(body: &[Item]) -> Option<(Target, Target)> {
    Some((body.first()?.target(), body.last()?.target()))
}

/// Codes the length of a root, which is at most the number of items left: how many bits it has,
/// then the bits below the highest.
fn code_root_length(coder: &mut impl super::coder::Coder, items_left: u64, length: u64) -> Result<u64> {
    let width = |number: u64| u64::BITS - number.leading_zeros();
    let bits = coder.flat(width(items_left) + 1, width(length))?;
    let mut coded = u64::from(bits > 0);
    for bit in (0..bits.saturating_sub(1)).rev() {
        coded = coded << 1 | u64::from(coder.even(length >> bit & 1 == 1));
    }
    Ok(coded)
}

/// Reads the section into `builder`, whose alphabet is complete, and returns the root
/// of each of the streams.
pub(super) fn read(section: &[u8], streams: usize, builder: &mut FoldBuilder) -> Result<Vec<RuleId>> {
    let symbols = builder.alphabet_mut().len();
    if streams == 0 && section.is_empty() && symbols == 0 {
        return Ok(Vec::new());
    }
    let mut bytes = Bytes::new(section, "rules");
    let settings = Settings::from_byte(bytes.byte()?)?;
    let (items, coded) = claimed_items(bytes)?;
    let parts = Coded {
        coder: Decoder::new(coded),
        roots: Roots::default(),
        model: Model::new(items, symbols, settings),
    };
    read_parts(parts, streams, items, symbols, builder)
}

/// The number of items that a section says it has, and what follows.
pub(super) fn claimed_items(mut bytes: Bytes<'_>) -> Result<(u64, &[u8])> {
    let items = bytes.number()?;
    let coded = bytes.rest();
    if items > most_items(coded.len()) {
        return Err(damaged("more items are claimed than these bytes can hold"));
    }
    Ok((items, coded))
}

fn damaged(reason: &str) -> Error {
    Error::damaged("rules", reason)
}

/// Decodes the parts of the rules.
pub(super) trait Parts {
    /// The root of the next stream. Returns `None` for a new one, whose length and body follow.
    fn root(&mut self) -> Result<Option<RuleId>>;
    /// The length of a root, when this many items are still to come.
    fn root_length(&mut self, items_left: u64) -> Result<u64>;
    /// What an item stands for.
    fn item(&mut self, place: Place) -> Result<Step>;
    /// The length of a new rule.
    fn length(&mut self) -> Result<u64>;
    /// How often a target repeats.
    fn times(&mut self, target: Target) -> Result<u64>;
    /// The rule whose items have all been read.
    fn end_rule(&mut self, body: &[Item]) -> Result<RuleId>;
    /// The rule that was read last is a root.
    fn end_root(&mut self, root: RuleId) -> Result<()>;
    /// How many symbols there were.
    fn symbols(&self) -> usize;
}

/// The parts as this version codes them.
struct Coded<'a> {
    coder: Decoder<'a>,
    roots: Roots,
    model: Model,
}

/// What the decoder passes where the encoder says what it writes.
const ANY: Target = Target::Symbol(Symbol::from_raw(0));

impl Parts for Coded<'_> {
    fn root(&mut self) -> Result<Option<RuleId>> {
        self.roots.code(&mut self.coder, self.model.known_rules(), None)
    }

    fn root_length(&mut self, items_left: u64) -> Result<u64> {
        self.model.begin_stream();
        code_root_length(&mut self.coder, items_left, 0)
    }

    fn item(&mut self, place: Place) -> Result<Step> {
        self.model.code_item(&mut self.coder, place, ANY)
    }

    fn length(&mut self) -> Result<u64> {
        Ok(self.model.code_length(&mut self.coder, 1))
    }

    fn times(&mut self, target: Target) -> Result<u64> {
        self.model.code_times(&mut self.coder, target, 1)
    }

    fn end_rule(&mut self, body: &[Item]) -> Result<RuleId> {
        self.model.end_rule(ends(body))
    }

    fn end_root(&mut self, root: RuleId) -> Result<()> {
        self.roots.learn(root)
    }

    fn symbols(&self) -> usize {
        self.model.known_symbols()
    }
}

/// Reads the rules from their parts.
pub(super) fn read_parts(
    parts: impl Parts,
    streams: usize,
    items: u64,
    symbols: usize,
    builder: &mut FoldBuilder,
) -> Result<Vec<RuleId>> {
    let mut reading = Reading { parts, builder, items_left: items, bodies: Vec::new() };
    let roots: Vec<RuleId> = (0..streams).map(|_| reading.root()).collect::<Result<_>>()?;
    if reading.items_left > 0 {
        return Err(damaged("the rules have fewer items than are claimed"));
    }
    if reading.parts.symbols() != symbols {
        return Err(damaged("no rule uses some of the symbols"));
    }
    Ok(roots)
}

/// The state of reading.
struct Reading<'a, P> {
    parts: P,
    builder: &'a mut FoldBuilder,
    /// How many items are still to come.
    items_left: u64,
    /// The items read so far of all rules that are open, outermost first.
    bodies: Vec<Item>,
}

/// A rule that is being read.
struct Open {
    /// Where its items begin among those of all open rules.
    start: usize,
    /// How many of its items are still to come.
    left: u64,
}

impl<P: Parts> Reading<'_, P> {
    fn root(&mut self) -> Result<RuleId> {
        if let Some(root) = self.parts.root()? {
            return Ok(root);
        }
        let length = self.parts.root_length(self.items_left)?;
        let mut outer: Vec<Open> = Vec::new();
        let mut rule = self.open(length)?;
        loop {
            while rule.left > 0 {
                rule.left -= 1;
                let place = match (outer.is_empty(), self.bodies.len() == rule.start) {
                    (true, _) => Place::Root,
                    (_, true) => Place::FirstOfRule,
                    _ => Place::LaterInRule,
                };
                match self.parts.item(place)? {
                    Step::Known(target) => self.item(target)?,
                    Step::NewRule => {
                        let length = self.parts.length()?;
                        if length == 0 {
                            return Err(damaged("an item that repeats a rule without events"));
                        }
                        let inner = self.open(length)?;
                        outer.push(std::mem::replace(&mut rule, inner));
                    }
                }
            }
            let ended = self.close(rule.start)?;
            match outer.pop() {
                None => {
                    self.parts.end_root(ended)?;
                    return Ok(ended);
                }
                Some(open) => rule = open,
            }
            self.item(Target::Rule(ended))?;
        }
    }

    fn open(&mut self, length: u64) -> Result<Open> {
        // Counted when a rule is opened, so that no more rules can be open than there
        // are items.
        self.items_left = self
            .items_left
            .checked_sub(length)
            .ok_or_else(|| damaged("the rules have more items than are claimed"))?;
        Ok(Open { start: self.bodies.len(), left: length })
    }

    fn item(&mut self, target: Target) -> Result<()> {
        let times = self.parts.times(target)?;
        self.bodies.push(Item::new(target, times));
        Ok(())
    }

    fn close(&mut self, start: usize) -> Result<RuleId> {
        let body = &self.bodies[start..];
        let rule = self.builder.rule(body)?;
        if rule != self.parts.end_rule(body)? {
            return Err(damaged("two rules are equal"));
        }
        self.bodies.truncate(start);
        Ok(rule)
    }
}
