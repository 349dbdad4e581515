//! The model of the rules' items: the contexts that writer and reader learn during the walk
//! over the rules, and how they code an item.
//!
//! A fold has no exact repeats left: no pair of items occurs twice. The remaining redundancy is
//! in the text that it unfolds to. An item is coded in four parts, each given the parts before
//! it:
//!
//! 1. whether it is a new rule, whose body then follows, or a new symbol;
//! 2. else the symbol it begins with ([`first`]), from the symbols that followed before:
//!    the item before it, that item's last part, and the last three symbols;
//! 3. which of the *members* of that symbol it is ([`member`]): the symbol itself, or one
//!    of the rules that begin with it;
//! 4. how often it repeats ([`repeat`]).
//!
//! Memory is 64 bytes a rule, about 150 a symbol, and tables of up to 320 kB that grow
//! with the number of items. An item costs five to fifteen decisions of 10 to 15 ns.

mod first;
mod member;
mod number;
mod repeat;

use self::first::{Firsts, Followers};
use self::member::{Latest, Members};
use self::number::Number;
use self::repeat::{Repeats, Times};
use super::bit_model::{BitModel, BitModels, Flag};
use super::coder::{CERTAIN, Coder};
use crate::fold::Target;
use crate::{Error, Result, RuleId, Symbol};

/// The settings of the coding of a section of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    /// Whether the symbol that an item begins with depends on nothing but how often each
    /// symbol occurs: for data without structure.
    pub(super) plain: bool,
    /// How likely a rule that was used once is used again, against one used more often.
    pub(super) eagerness: u8,
}

/// Where in the rules an item stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    FirstOfRule = 0,
    LaterInRule = 1,
    Root = 2,
}

/// A decoded item.
pub(super) enum Step {
    /// Something known, a new symbol included.
    Known(Target),
    /// A rule whose length and body are coded next.
    NewRule,
}

/// A target as one number: a symbol, or a rule with its high bit set.
type Code = u32;
const RULE: Code = 1 << 31;
/// The code of no target, and of no symbol.
const NOTHING: Code = u32::MAX;

fn code_of(target: Target) -> Code {
    match target {
        Target::Symbol(symbol) => symbol.raw(),
        Target::Rule(rule) => rule.raw() | RULE,
    }
}

fn target_of(code: Code) -> Target {
    match code & RULE {
        0 => Target::Symbol(Symbol::from_raw(code)),
        _ => Target::Rule(RuleId::from_raw(code & !RULE)),
    }
}

/// The keys of the kinds of contexts whose models lie in the common table.
mod keys {
    pub(super) const GUESS_AFTER_SYMBOL: u64 = 0x9e37_79b9_7f4a_7c15;
    pub(super) const REST_AFTER_SYMBOL: u64 = 0xd6e8_feb8_6659_fd93;
    pub(super) const COUNT_OF_TARGET: u64 = 0xbf58_476d_1ce4_e5b9;
    pub(super) const THREE_SYMBOLS: u64 = 0x94d0_49bb_1331_11eb;
}

/// The state of a symbol.
struct KnownSymbol {
    followers: Followers,
    members: Members,
    repeats: Repeats,
    /// Whether a new symbol follows it.
    before_new: BitModel,
}

/// The state of a rule that was used. Rules are many and accessed in any order: two share a
/// cache line.
#[repr(align(32))]
struct KnownRule {
    followers: Followers,
    /// The last item of its body.
    part: Code,
    end: End,
    repeats: Repeats,
}

/// The beginning of a rule: a symbol, and which of its members it is.
struct Beginning {
    first: Code,
    index: u32,
}

/// The end of the text: its last symbol, and a number for the last three.
#[derive(Clone, Copy, PartialEq, Eq)]
struct End {
    symbol: Code,
    three: u32,
}

impl End {
    /// What it is at the start of a stream.
    const NOTHING: Self = Self { symbol: NOTHING, three: 0 };

    /// What it is after one more symbol. A symbol is shifted out by the third after it.
    fn then(self, symbol: Code) -> Self {
        Self { symbol, three: (self.three << 11).wrapping_add(symbol.wrapping_mul(0x9e37_79b1)) }
    }
}

/// The context before the current item; empty at the start of a stream.
struct Text {
    /// The item before it, and the last part of that if it is a rule.
    item: Code,
    part: Code,
    /// What followed them so far.
    after_item: Followers,
    after_part: Followers,
    end: End,
}

impl Default for Text {
    fn default() -> Self {
        Self {
            item: NOTHING,
            part: NOTHING,
            after_item: Followers::default(),
            after_part: Followers::default(),
            end: End::NOTHING,
        }
    }
}

/// All that encoder and decoder learn while they walk.
pub(super) struct Model {
    settings: Settings,
    /// How many symbols the alphabet has.
    alphabet: usize,
    symbols: Vec<KnownSymbol>,
    rules: Vec<KnownRule>,
    /// How the rules begin, which is asked less often.
    beginnings: Vec<Beginning>,
    models: BitModels,
    text: Text,
    /// How many items were coded, and how many when the newest symbol came up.
    clock: u32,
    newest_clock: u32,
    new_rule: [Flag; 3],
    firsts: Firsts,
    latest: Latest,
    times: Times,
    length: Number,
}

/// That something is a new rule or not is never surer than this, so that each item costs
/// at least 0.011 bits.
const SUREST_OF_NEW_RULES: u32 = CERTAIN - CERTAIN / 128;

impl Model {
    /// A model for this many items over this many symbols.
    pub(super) fn new(items: u64, alphabet: usize, settings: Settings) -> Self {
        let bits = u64::BITS - items.leading_zeros();
        Self {
            settings,
            alphabet,
            symbols: Vec::new(),
            rules: Vec::new(),
            beginnings: Vec::new(),
            models: BitModels::new((bits + 2).clamp(10, 17)),
            text: Text::default(),
            clock: 0,
            newest_clock: 0,
            new_rule: [Flag::default(); 3],
            firsts: Firsts::new(bits.clamp(6, 12)),
            latest: Latest::default(),
            times: Times::default(),
            length: Number::default(),
        }
    }

    pub(super) fn known_symbols(&self) -> usize {
        self.symbols.len()
    }

    pub(super) fn known_rules(&self) -> usize {
        self.rules.len()
    }

    /// The text starts again.
    pub(super) fn begin_stream(&mut self) {
        self.text = Text::default();
    }

    /// Codes what an item stands for. The length and the body of a new rule are coded
    /// next, then [`Model::end_rule`] makes it known.
    pub(super) fn code_item(&mut self, coder: &mut impl Coder, place: Place, wanted: Target) -> Result<Step> {
        self.clock = self.clock.wrapping_add(1);
        let wanted = code_of(wanted);
        let is_new = wanted & RULE != 0 && self.rules.len() <= (wanted & !RULE) as usize;
        if self.new_rule[place as usize].code_unsurely(coder, SUREST_OF_NEW_RULES, is_new) {
            return Ok(Step::NewRule);
        }
        let known = self.symbols.len() as Code;
        let first = self.code_first(coder, self.first_of(wanted))?;
        self.learn_first(first);
        let code = if first == known { first } else { self.code_member(coder, first, wanted)? };
        self.pass(code);
        Ok(Step::Known(target_of(code)))
    }

    /// The symbol that a target begins with; any for a rule that is not known.
    fn first_of(&self, code: Code) -> Code {
        if code & RULE == 0 {
            code
        } else {
            self.beginnings.get((code & !RULE) as usize).map_or(0, |rule| rule.first)
        }
    }

    fn add_symbol(&mut self) -> Result<Code> {
        if self.symbols.len() == self.alphabet {
            return Err(Error::damaged("rules", "a symbol that the alphabet does not have"));
        }
        let symbol = Symbol::new(self.symbols.len())?.raw();
        self.symbols.push(KnownSymbol {
            followers: Followers::default(),
            members: Members::new(symbol, self.clock),
            repeats: Repeats::default(),
            before_new: BitModel::default(),
        });
        self.firsts.add_symbol(self.symbols.len(), self.settings.plain)?;
        self.newest_clock = self.clock;
        Ok(symbol)
    }

    /// The text continues behind this target.
    fn pass(&mut self, code: Code) {
        let (part, end) = match code & RULE {
            0 => (NOTHING, self.text.end.then(code)),
            _ => {
                let rule = &self.rules[(code & !RULE) as usize];
                (rule.part, rule.end)
            }
        };
        // The followers are looked up long before they are needed: they are in no cache.
        let (after_item, after_part) = (self.followers(code), self.followers(part));
        self.text = Text { item: code, part, after_item, after_part, end };
    }

    /// Codes the length of a new rule, which is not 0.
    pub(super) fn code_length(&mut self, coder: &mut impl Coder, length: u64) -> u64 {
        self.length.code(coder, length.wrapping_sub(1)).saturating_add(1)
    }

    /// Makes the rule known whose items have all been coded, given the first and the last
    /// of them. The rule of an empty stream has none; it begins with nothing and is no
    /// item.
    pub(super) fn end_rule(&mut self, ends: Option<(Target, Target)>) -> Result<RuleId> {
        let id = RuleId::new(self.rules.len())?;
        let code = id.raw() | RULE;
        let mut beginning = Beginning { first: NOTHING, index: 0 };
        let mut part = NOTHING;
        if let Some((first, last)) = ends {
            let first = self.first_of(code_of(first));
            beginning = Beginning { first, index: self.add_member(first, code)? };
            part = code_of(last);
            let after_part = self.followers(part);
            self.text = Text { item: code, part, after_item: Followers::default(), after_part, ..self.text };
        }
        self.beginnings.push(beginning);
        self.rules.push(KnownRule {
            followers: Followers::default(),
            part,
            end: self.text.end,
            repeats: Repeats::default(),
        });
        Ok(id)
    }
}
