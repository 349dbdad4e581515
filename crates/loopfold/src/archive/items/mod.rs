//! The model of the rules' items: everything that writer and reader learn while they
//! walk the rules, and how an item is told by it.
//!
//! A fold has squeezed out what repeats word for word: no pair of items occurs twice. What
//! is left to learn is what its text tells. An item is coded in four parts, each given
//! what lies before it:
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
use self::member::{Members, Picks};
use self::number::Number;
use self::repeat::{Repeats, Times};
use super::chance::{Chance, Chances, Flag, Mixer};
use super::coder::{CERTAIN, Coder};
use crate::fold::Target;
use crate::{Error, Result, RuleId, Symbol};

/// What a section of rules says about the way it is coded.
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

/// What an item turned out to be.
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

/// The kinds of contexts whose chances lie in the common table.
#[derive(Clone, Copy)]
enum Kind {
    GuessAfterSymbol,
    GuessAfterPart,
    GuessAfterItem,
    RestAfterSymbol,
    MemberAfterSymbol,
    Count,
    CountOfTarget,
    CountAfterSymbol,
}

/// The context of a kind with a code and a number in it.
#[inline]
fn context(kind: Kind, code: Code, number: u64) -> u64 {
    super::chance::context(u64::from(code) | (kind as u64) << 32, number)
}

/// What is known of a symbol.
struct KnownSymbol {
    followers: Followers,
    members: Members,
    repeats: Repeats,
    /// Whether a new symbol follows it.
    before_new: Chance,
}

/// What is known of a rule. Rules are many and met in any order: each is one cache line.
#[repr(align(64))]
struct KnownRule {
    followers: Followers,
    /// The symbol it begins with, and its index among the members of that.
    first: Code,
    index: u32,
    uses: u32,
    /// The last item of its body.
    part: Code,
    /// The last three symbols when it ends, the last one first.
    last: [Code; 3],
    repeats: Repeats,
}

/// All that encoder and decoder learn while they walk.
pub(super) struct Model {
    settings: Settings,
    /// How many symbols the alphabet has.
    alphabet: usize,
    symbols: Vec<KnownSymbol>,
    rules: Vec<KnownRule>,
    chances: Chances,
    /// The item before the one at hand, and the last three symbols, the last one first.
    item: Code,
    last: [Code; 3],
    /// The last symbol before the item that was coded last.
    before_item: Code,
    /// How many items were coded, and how many since the last new symbol.
    clock: u32,
    since_new: u32,
    new_rule: [Flag; 3],
    new_symbol: Mixer<3>,
    new_symbol_after_newest: [Chance; 2],
    new_symbol_since: [Chance; 32],
    firsts: Firsts,
    picks: Picks,
    times: Times,
    length: Number,
}

/// That something is a new rule or not is never surer than this, so that each item costs
/// at least 0.011 bits.
const SUREST_OF_NEW_RULES: u32 = CERTAIN - CERTAIN / 128;

impl Model {
    /// A model for so many items over so many symbols.
    pub(super) fn new(items: u64, alphabet: usize, settings: Settings) -> Self {
        let bits = u64::BITS - items.leading_zeros();
        Self {
            settings,
            alphabet,
            symbols: Vec::new(),
            rules: Vec::new(),
            chances: Chances::new((bits + 2).clamp(10, 17)),
            item: NOTHING,
            last: [NOTHING; 3],
            before_item: NOTHING,
            clock: 0,
            since_new: 0,
            new_rule: [Flag::default(); 3],
            new_symbol: Mixer::new(1, [35; 3]),
            new_symbol_after_newest: Default::default(),
            new_symbol_since: Default::default(),
            firsts: Firsts::new(bits.clamp(6, 12)),
            picks: Picks::default(),
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

    /// The text begins anew.
    pub(super) fn begin_stream(&mut self) {
        self.item = NOTHING;
        self.last = [NOTHING; 3];
        self.before_item = NOTHING;
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
        let is_new = wanted & RULE == 0 && self.symbols.len() <= wanted as usize;
        let code = if self.code_new_symbol(coder, is_new) {
            let symbol = self.add_symbol()?;
            self.learn_first(symbol);
            symbol
        } else {
            let first = self.code_first(coder, self.first_of(wanted))?;
            self.learn_first(first);
            self.code_member(coder, first, wanted)?
        };
        self.pass(code);
        Ok(Step::Known(target_of(code)))
    }

    /// The symbol that a target begins with; any for one that is not known.
    fn first_of(&self, code: Code) -> Code {
        if code & RULE == 0 {
            code
        } else {
            self.rules.get((code & !RULE) as usize).map_or(0, |rule| rule.first)
        }
    }

    fn code_new_symbol(&mut self, coder: &mut impl Coder, value: bool) -> bool {
        if self.symbols.is_empty() || self.symbols.len() == self.alphabet {
            return self.symbols.is_empty();
        }
        let last = self.last[0] as usize;
        let mut unknown = Chance::default();
        let after_newest = &mut self.new_symbol_after_newest[usize::from(last + 1 == self.symbols.len())];
        let since = &mut self.new_symbol_since[self.since_new.min(31) as usize];
        let after_last = self.symbols.get_mut(last).map_or(&mut unknown, |symbol| &mut symbol.before_new);
        let opinions = [after_newest.opinion(), since.opinion(), after_last.opinion()];
        let value = self.new_symbol.code(coder, 0, opinions, value);
        after_newest.learn(value);
        since.learn(value);
        after_last.learn(value);
        self.since_new = if value { 0 } else { self.since_new.saturating_add(1) };
        value
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
            before_new: Chance::default(),
        });
        self.firsts.add_symbol(self.symbols.len(), self.settings.plain)?;
        Ok(symbol)
    }

    /// The text goes on behind this target.
    fn pass(&mut self, code: Code) {
        self.before_item = self.last[0];
        self.item = code;
        self.last = match code & RULE {
            0 => [code, self.last[0], self.last[1]],
            _ => self.rules[(code & !RULE) as usize].last,
        };
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
        let mut rule = KnownRule {
            followers: Followers::default(),
            first: NOTHING,
            index: 0,
            uses: 1,
            part: NOTHING,
            last: self.last,
            repeats: Repeats::default(),
        };
        if let Some((first, last)) = ends {
            rule.first = self.first_of(code_of(first));
            rule.part = code_of(last);
            rule.index = self.add_member(rule.first, code)?;
            self.item = code;
        }
        self.rules.push(rule);
        Ok(id)
    }
}
