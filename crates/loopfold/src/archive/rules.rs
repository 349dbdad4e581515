//! The rules section: what the streams' roots are, and all rules below them.
//!
//! The streams are walked in order, and a rule's body is written where the rule is
//! first used, so neither rules nor symbols need numbers at first use. An item is
//! coded by its *class* (a new rule, a new symbol, or the symbol it begins with) given
//! the symbol that was last seen before it; then which of the rules that begin with
//! that symbol it is; then how often it repeats. Everything is adaptive.
//!
//! Data without structure gains nothing from the context and pays for learning it, so
//! the writer also tries to do without and keeps the shorter.
//!
//! Both directions keep their own stack and take about 70 bytes a rule and 150 a symbol
//! while they run. An item costs four or five decisions, and as many cache misses when
//! the models do not fit the cache. A flag per item costs at least 0.011 bits, so a
//! section cannot hold more items than [`most_items`] says; a section that claims more
//! is refused before anything is read.

use super::coder::{Coder, Decoder, Encoder};
use super::models::{Choice, Flag, Number, Recent, code_uniform};
use crate::bytes::{Bytes, put_number};
use crate::fold::{Canonical, FoldBuilder, Item, Target};
use crate::{Error, Result, RuleId, Symbol};

/// No section of `bytes` bytes holds more items than this.
fn most_items(bytes: usize) -> u64 {
    (bytes as u64).saturating_add(8).saturating_mul(1024)
}

/// Whether the class of an item depends on the symbol before it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Context {
    Previous = 0,
    None = 1,
}

/// Writes the section.
pub(super) fn write(fold: &Canonical) -> Result<Vec<u8>> {
    if fold.roots.is_empty() {
        return Ok(Vec::new());
    }
    check_items(fold)?;
    let with = encode(fold, Context::Previous)?;
    let without = encode(fold, Context::None)?;
    let (context, coded) =
        if without.len() < with.len() { (Context::None, without) } else { (Context::Previous, with) };
    let mut section = vec![context as u8];
    put_number(&mut section, fold.items() as u64);
    section.extend_from_slice(&coded);
    Ok(section)
}

/// Reads the section into `builder`, whose alphabet is complete, and returns the root
/// of each of the streams.
pub(super) fn read(section: &[u8], streams: usize, builder: &mut FoldBuilder) -> Result<Vec<RuleId>> {
    let symbols = builder.alphabet_mut().len();
    if streams == 0 && section.is_empty() && symbols == 0 {
        return Ok(Vec::new());
    }
    let mut bytes = Bytes::new(section, "rules");
    let context = match bytes.byte()? {
        0 => Context::Previous,
        1 => Context::None,
        _ => return Err(damaged("an unknown way of coding")),
    };
    let items = bytes.number()?;
    let coded = bytes.rest();
    if items > most_items(coded.len()) {
        return Err(damaged("more items are claimed than these bytes can hold"));
    }
    let coder = Decoder::new(coded);
    let mut decoding = Decoding {
        coder,
        model: Model::new(context),
        builder,
        symbols,
        items_left: items,
        bodies: Vec::new(),
    };
    let roots: Result<Vec<RuleId>> = (0..streams).map(|_| decoding.root()).collect();
    decoding.check_complete()?;
    roots
}

fn damaged(reason: &str) -> Error {
    Error::damaged("rules", reason)
}

fn encode(fold: &Canonical, context: Context) -> Result<Vec<u8>> {
    let mut coder = Encoder::default();
    let mut model = Model::new(context);
    for &root in &fold.roots {
        let is_new = root.index() >= model.rules.len();
        if model.code_root(&mut coder, (!is_new).then_some(root))?.is_none() {
            encode_root(fold, root, &mut coder, &mut model)?;
        }
    }
    debug_assert_eq!(model.rules.len(), fold.rules());
    Ok(coder.finish())
}

/// Walks a root rule; its parts are written where they are first used.
fn encode_root(fold: &Canonical, root: RuleId, coder: &mut Encoder, model: &mut Model) -> Result<()> {
    model.code_root_length(coder, fold.body(root).len())?;
    let mut open = vec![(fold.body(root), 0)];
    while let Some((body, next)) = open.last_mut() {
        let body: &[Item] = body;
        let Some(item) = body.get(*next) else {
            open.pop();
            let rule = model.end_rule(body.first().map(|item| item.target()));
            if let Some((outer, next)) = open.last_mut() {
                model.code_times(coder, Target::Rule(rule), outer[*next].times())?;
                *next += 1;
            }
            continue;
        };
        match model.code_item(coder, item.target())? {
            Step::Known(target) => {
                model.code_times(coder, target, item.times())?;
                *next += 1;
            }
            Step::NewRule => {
                let inner = item_body(fold, item);
                model.code_length(coder, inner.len())?;
                open.push((inner, 0));
            }
        }
    }
    model.remember_root(root);
    Ok(())
}

/// The body of the rule that an item repeats.
fn item_body<'a>(fold: &'a Canonical, item: &'a Item) -> &'a [Item] {
    match item.target() {
        Target::Rule(rule) => fold.body(rule),
        Target::Symbol(_) => std::slice::from_ref(item),
    }
}

/// Fails if an item repeats a rule without events, for which there is no class. Rules
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

/// The state of reading.
struct Decoding<'a> {
    coder: Decoder,
    model: Model,
    builder: &'a mut FoldBuilder,
    /// How many symbols the alphabet has.
    symbols: usize,
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

impl Decoding<'_> {
    fn root(&mut self) -> Result<RuleId> {
        if let Some(root) = self.model.code_root(&mut self.coder, None)? {
            return Ok(root);
        }
        let length = self.model.code_root_length(&mut self.coder, 0)?;
        let mut open = vec![self.open(length)?];
        loop {
            let Some(rule) = open.last_mut() else { return Err(damaged("a rule without an end")) };
            if rule.left == 0 {
                let start = rule.start;
                open.pop();
                let rule = self.close(start)?;
                if open.is_empty() {
                    self.model.remember_root(rule);
                    return Ok(rule);
                }
                self.item(Target::Rule(rule))?;
                continue;
            }
            rule.left -= 1;
            match self.model.code_item(&mut self.coder, ANY)? {
                Step::Known(target) => self.item(target)?,
                Step::NewRule => {
                    let length = self.model.code_length(&mut self.coder, 0)?;
                    if length == 0 {
                        return Err(damaged("an item that repeats a rule without events"));
                    }
                    let inner = self.open(length)?;
                    open.push(inner);
                }
            }
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
        if matches!(target, Target::Symbol(symbol) if symbol.index() >= self.symbols) {
            return Err(damaged("a symbol that the alphabet does not have"));
        }
        let times = self.model.code_times(&mut self.coder, target, 1)?;
        self.bodies.push(Item::new(target, times));
        Ok(())
    }

    fn close(&mut self, start: usize) -> Result<RuleId> {
        let body = &self.bodies[start..];
        let rule = self.builder.rule(body)?;
        if rule != self.model.end_rule(body.first().map(|item| item.target())) {
            return Err(damaged("two rules are equal"));
        }
        self.bodies.truncate(start);
        Ok(rule)
    }

    fn check_complete(&self) -> Result<()> {
        if self.items_left > 0 {
            return Err(damaged("the rules have fewer items than are claimed"));
        }
        if self.model.symbols.len() != self.symbols {
            return Err(damaged("no rule uses some of the symbols"));
        }
        Ok(())
    }
}

/// What the decoder passes where the encoder says what it writes.
const ANY: Target = Target::Symbol(Symbol::from_raw(0));

/// What an item turned out to be.
enum Step {
    Known(Target),
    NewRule,
}

/// Classes of items: two that are always there, then one for each symbol.
const NEW_RULE: u32 = 0;
const NEW_SYMBOL: u32 = 1;
const FIRST_SYMBOL: u32 = 2;

/// What is known of a symbol or a rule as something that repeats.
#[derive(Default)]
struct Repeats {
    /// Whether it repeats; nothing before its first use.
    flag: Option<Flag>,
    /// How often.
    counts: Recent<u64>,
}

struct KnownSymbol {
    /// The classes that followed this symbol.
    followers: Recent<u32>,
    /// Which of the targets that begin with this symbol: the symbol itself, then
    /// `rules`. Empty as long as there is only the symbol.
    choice: Choice,
    rules: Vec<RuleId>,
    repeats: Repeats,
}

/// Rules are many and met in any order: each should cost one cache line.
#[repr(align(64))]
struct KnownRule {
    first: Symbol,
    last: Symbol,
    /// Its index among the targets that begin with the same symbol.
    index: u32,
    repeats: Repeats,
}

/// All that encoder and decoder learn while they walk.
struct Model {
    context: Context,
    classes: Choice,
    symbols: Vec<KnownSymbol>,
    rules: Vec<KnownRule>,
    /// The last symbol before the item at hand; nothing at the start of a stream.
    previous: Option<Symbol>,
    /// The classes that streams begin with.
    beginnings: Recent<u32>,
    new_symbol_repeats: Flag,
    new_rule_repeats: Flag,
    counts: Recent<u64>,
    count: Number,
    lengths: Recent<u64>,
    length: Number,
    root_length: Number,
    roots: Recent<RuleId>,
    root_is_new: Flag,
}

impl Model {
    fn new(context: Context) -> Self {
        Self {
            context,
            classes: Choice::with(FIRST_SYMBOL as usize),
            symbols: Vec::new(),
            rules: Vec::new(),
            previous: None,
            beginnings: Recent::default(),
            new_symbol_repeats: Flag::default(),
            new_rule_repeats: Flag::default(),
            counts: Recent::default(),
            count: Number::default(),
            lengths: Recent::default(),
            length: Number::default(),
            root_length: Number::default(),
            roots: Recent::default(),
            root_is_new: Flag::default(),
        }
    }

    /// Codes the root of the next stream: a known rule, or nothing for a new one.
    fn code_root(&mut self, coder: &mut impl Coder, root: Option<RuleId>) -> Result<Option<RuleId>> {
        self.previous = None;
        // A new rule is none of those seen, and any rule that does not exist says so.
        let wanted = root.unwrap_or(RuleId::from_raw(RuleId::LIMIT - 1));
        if let Some(root) = self.roots.code(coder, wanted)? {
            return Ok(Some(root));
        }
        if self.rules.is_empty() || self.root_is_new.code(coder, root.is_none())? {
            return Ok(None);
        }
        let index = code_uniform(coder, wanted.index(), self.rules.len())?;
        let root = RuleId::new(index)?;
        self.remember_root(root);
        Ok(Some(root))
    }

    fn remember_root(&mut self, root: RuleId) {
        self.roots.learn(root);
    }

    fn code_root_length(&mut self, coder: &mut impl Coder, length: usize) -> Result<u64> {
        self.root_length.code(coder, length as u64)
    }

    fn code_length(&mut self, coder: &mut impl Coder, length: usize) -> Result<u64> {
        code_seen_or_new(coder, &mut self.lengths, &mut self.length, length as u64)
    }

    /// Codes what an item stands for. A new rule's body is coded next, then
    /// [`Model::end_rule`] makes it known.
    fn code_item(&mut self, coder: &mut impl Coder, target: Target) -> Result<Step> {
        let class = self.class_of(target);
        match self.code_class(coder, class)? {
            NEW_RULE => Ok(Step::NewRule),
            NEW_SYMBOL => Ok(Step::Known(Target::Symbol(self.add_symbol()?))),
            class => {
                let first = Symbol::from_raw(class - FIRST_SYMBOL);
                self.code_member(coder, first, target).map(Step::Known)
            }
        }
    }

    fn class_of(&self, target: Target) -> u32 {
        match target {
            Target::Symbol(symbol) if symbol.index() >= self.symbols.len() => NEW_SYMBOL,
            Target::Symbol(symbol) => FIRST_SYMBOL + symbol.raw(),
            Target::Rule(rule) => {
                self.rules.get(rule.index()).map_or(NEW_RULE, |rule| FIRST_SYMBOL + rule.first.raw())
            }
        }
    }

    fn code_class(&mut self, coder: &mut impl Coder, class: u32) -> Result<u32> {
        let followers = match self.previous {
            _ if self.context == Context::None => {
                return Ok(self.classes.code(coder, class as usize)? as u32);
            }
            None => &mut self.beginnings,
            Some(previous) => &mut self.symbols[previous.index()].followers,
        };
        if let Some(class) = followers.code(coder, class)? {
            return Ok(class);
        }
        let class = self.classes.code(coder, class as usize)? as u32;
        followers.learn(class);
        Ok(class)
    }

    fn add_symbol(&mut self) -> Result<Symbol> {
        let symbol = Symbol::new(self.symbols.len())?;
        self.symbols.push(KnownSymbol {
            followers: Recent::default(),
            choice: Choice::default(),
            rules: Vec::new(),
            repeats: Repeats::default(),
        });
        self.classes.grow();
        self.previous = Some(symbol);
        Ok(symbol)
    }

    /// Codes which of the targets that begin with `first` it is.
    fn code_member(&mut self, coder: &mut impl Coder, first: Symbol, target: Target) -> Result<Target> {
        let index = match target {
            Target::Rule(rule) => self.rules.get(rule.index()).map_or(0, |rule| rule.index as usize),
            Target::Symbol(_) => 0,
        };
        let known = &mut self.symbols[first.index()];
        let index = if known.choice.len() == 0 { 0 } else { known.choice.code(coder, index)? };
        if index == 0 {
            self.previous = Some(first);
            return Ok(Target::Symbol(first));
        }
        let rule = known.rules[index - 1];
        self.previous = Some(self.rules[rule.index()].last);
        Ok(Target::Rule(rule))
    }

    /// Makes the rule known whose items have all been coded, the first of them with
    /// this target. The rule of an empty stream begins with nothing and is no item.
    fn end_rule(&mut self, first: Option<Target>) -> RuleId {
        let rule = RuleId::from_raw(self.rules.len() as u32);
        let nothing = Symbol::from_raw(0);
        let first = first.map(|target| match target {
            Target::Symbol(symbol) => symbol,
            Target::Rule(rule) => self.rules[rule.index()].first,
        });
        let index = first.map_or(0, |first| {
            let known = &mut self.symbols[first.index()];
            if known.rules.is_empty() {
                known.choice.grow();
            }
            known.choice.grow();
            known.rules.push(rule);
            known.rules.len() as u32
        });
        self.rules.push(KnownRule {
            first: first.unwrap_or(nothing),
            last: self.previous.unwrap_or(nothing),
            index,
            repeats: Repeats::default(),
        });
        rule
    }

    /// Codes how often a target repeats.
    fn code_times(&mut self, coder: &mut impl Coder, target: Target, times: u64) -> Result<u64> {
        let (repeats, first_time) = match target {
            Target::Symbol(symbol) => {
                (&mut self.symbols[symbol.index()].repeats, &mut self.new_symbol_repeats)
            }
            Target::Rule(rule) => (&mut self.rules[rule.index()].repeats, &mut self.new_rule_repeats),
        };
        let repeated = match &mut repeats.flag {
            Some(flag) => flag.code(coder, times > 1)?,
            none => {
                let repeated = first_time.code(coder, times > 1)?;
                *none = Some(Flag::expecting(repeated));
                repeated
            }
        };
        if !repeated {
            return Ok(1);
        }
        if let Some(times) = repeats.counts.code(coder, times)? {
            return Ok(times);
        }
        let less_two = code_seen_or_new(coder, &mut self.counts, &mut self.count, times.wrapping_sub(2))?;
        let times = less_two.checked_add(2).ok_or_else(|| damaged("a count is too large"))?;
        repeats.counts.learn(times);
        Ok(times)
    }
}

/// Codes a number as one of those seen, or else in full.
fn code_seen_or_new(
    coder: &mut impl Coder,
    seen: &mut Recent<u64>,
    new: &mut Number,
    number: u64,
) -> Result<u64> {
    if let Some(number) = seen.code(coder, number)? {
        return Ok(number);
    }
    let number = new.code(coder, number)?;
    seen.learn(number);
    Ok(number)
}
