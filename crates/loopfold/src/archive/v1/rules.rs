//! The rules section of version 1.
//!
//! An item is coded by its *class* (a new rule, a new symbol, or the symbol it begins
//! with) given the symbol that was last seen before it; then which of the rules that
//! begin with that symbol it is; then how often it repeats.

use super::coder::Decoder;
use super::models::{Choice, Flag, Number, Recent, decode_uniform};
use crate::archive::items::{Place, Step};
use crate::archive::rules::{Parts, claimed_items, read_parts};
use crate::bytes::Bytes;
use crate::fold::{FoldBuilder, Item, Target};
use crate::{Error, Result, RuleId, Symbol};

/// Whether the class of an item depends on the symbol before it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Context {
    Previous,
    None,
}

/// Reads the section into `builder`, whose alphabet is complete, and returns the root
/// of each of the streams.
pub(in crate::archive) fn read(
    section: &[u8],
    streams: usize,
    builder: &mut FoldBuilder,
) -> Result<Vec<RuleId>> {
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
    let (items, coded) = claimed_items(bytes)?;
    let model = Model::new(Decoder::new(coded), context, symbols);
    read_parts(model, streams, items, symbols, builder)
}

fn damaged(reason: &str) -> Error {
    Error::damaged("rules", reason)
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

struct KnownRule {
    first: Symbol,
    last: Symbol,
    repeats: Repeats,
}

/// All that is learnt while the rules are read.
struct Model<'a> {
    coder: Decoder<'a>,
    context: Context,
    /// How many symbols the alphabet has.
    alphabet: usize,
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

impl<'a> Model<'a> {
    fn new(coder: Decoder<'a>, context: Context, alphabet: usize) -> Self {
        Self {
            coder,
            context,
            alphabet,
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

    fn class(&mut self) -> Result<u32> {
        let followers = match self.previous {
            _ if self.context == Context::None => return Ok(self.classes.decode(&mut self.coder)? as u32),
            None => &mut self.beginnings,
            Some(previous) => &mut self.symbols[previous.index()].followers,
        };
        if let Some(class) = followers.decode(&mut self.coder)? {
            return Ok(class);
        }
        let class = self.classes.decode(&mut self.coder)? as u32;
        followers.learn(class);
        Ok(class)
    }

    fn add_symbol(&mut self) -> Result<Symbol> {
        if self.symbols.len() == self.alphabet {
            return Err(damaged("a symbol that the alphabet does not have"));
        }
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

    /// Which of the targets that begin with `first` it is.
    fn member(&mut self, first: Symbol) -> Result<Target> {
        let known = &mut self.symbols[first.index()];
        let index = if known.choice.len() == 0 { 0 } else { known.choice.decode(&mut self.coder)? };
        if index == 0 {
            self.previous = Some(first);
            return Ok(Target::Symbol(first));
        }
        let rule = known.rules[index - 1];
        self.previous = Some(self.rules[rule.index()].last);
        Ok(Target::Rule(rule))
    }
}

impl Parts for Model<'_> {
    fn root(&mut self) -> Result<Option<RuleId>> {
        self.previous = None;
        if let Some(root) = self.roots.decode(&mut self.coder)? {
            return Ok(Some(root));
        }
        if self.rules.is_empty() || self.root_is_new.decode(&mut self.coder)? {
            return Ok(None);
        }
        let root = RuleId::new(decode_uniform(&mut self.coder, self.rules.len())?)?;
        self.roots.learn(root);
        Ok(Some(root))
    }

    fn root_length(&mut self, _: u64) -> Result<u64> {
        self.root_length.decode(&mut self.coder)
    }

    fn item(&mut self, _: Place) -> Result<Step> {
        match self.class()? {
            NEW_RULE => Ok(Step::NewRule),
            NEW_SYMBOL => Ok(Step::Known(Target::Symbol(self.add_symbol()?))),
            class => self.member(Symbol::from_raw(class - FIRST_SYMBOL)).map(Step::Known),
        }
    }

    fn length(&mut self) -> Result<u64> {
        decode_seen_or_new(&mut self.coder, &mut self.lengths, &mut self.length)
    }

    fn times(&mut self, target: Target) -> Result<u64> {
        let (repeats, first_time) = match target {
            Target::Symbol(symbol) => {
                (&mut self.symbols[symbol.index()].repeats, &mut self.new_symbol_repeats)
            }
            Target::Rule(rule) => (&mut self.rules[rule.index()].repeats, &mut self.new_rule_repeats),
        };
        let repeated = match &mut repeats.flag {
            Some(flag) => flag.decode(&mut self.coder)?,
            none => {
                let repeated = first_time.decode(&mut self.coder)?;
                *none = Some(Flag::expecting(repeated));
                repeated
            }
        };
        if !repeated {
            return Ok(1);
        }
        if let Some(times) = repeats.counts.decode(&mut self.coder)? {
            return Ok(times);
        }
        let less_two = decode_seen_or_new(&mut self.coder, &mut self.counts, &mut self.count)?;
        let times = less_two.checked_add(2).ok_or_else(|| damaged("a count is too large"))?;
        repeats.counts.learn(times);
        Ok(times)
    }

    /// The rule of an empty stream begins with nothing and is no item.
    fn end_rule(&mut self, body: &[Item]) -> Result<RuleId> {
        let rule = RuleId::new(self.rules.len())?;
        let nothing = Symbol::from_raw(0);
        let first = body.first().map(|item| match item.target() {
            Target::Symbol(symbol) => symbol,
            Target::Rule(rule) => self.rules[rule.index()].first,
        });
        if let Some(first) = first {
            let known = &mut self.symbols[first.index()];
            if known.rules.is_empty() {
                known.choice.grow();
            }
            known.choice.grow();
            known.rules.push(rule);
        }
        self.rules.push(KnownRule {
            first: first.unwrap_or(nothing),
            last: self.previous.unwrap_or(nothing),
            repeats: Repeats::default(),
        });
        Ok(rule)
    }

    fn end_root(&mut self, root: RuleId) -> Result<()> {
        self.roots.learn(root);
        Ok(())
    }

    fn symbols(&self) -> usize {
        self.symbols.len()
    }
}

/// A number that is one of those seen, or else in full.
fn decode_seen_or_new(coder: &mut Decoder<'_>, seen: &mut Recent<u64>, new: &mut Number) -> Result<u64> {
    if let Some(number) = seen.decode(coder)? {
        return Ok(number);
    }
    let number = new.decode(coder)?;
    seen.learn(number);
    Ok(number)
}
