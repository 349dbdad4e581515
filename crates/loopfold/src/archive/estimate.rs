//! Estimates which settings code the rules of a fold best.

use super::items::Settings;
use super::walk::{Event, walk};
use crate::Result;
use crate::fold::{Canonical, Item, Target};

/// What a rule that was used once may weigh (see `items/member.rs`).
const EAGERNESS: [u8; 8] = [1, 2, 3, 4, 6, 8, 12, 16];

/// The result of the walk over the rules.
pub(super) struct Estimate {
    pub(super) eagerness: u8,
    /// About how many bytes the items take without context, counts left out.
    pub(super) plain_bytes: u64,
}

impl Estimate {
    pub(super) fn of(fold: &Canonical) -> Result<Self> {
        let mut counts = Counts {
            symbols: Vec::new(),
            rules: Vec::new(),
            items: 0,
            firsts: 0,
            members: [0; EAGERNESS.len()],
        };
        walk(fold, |event| {
            match event {
                Event::Item(_, item) => counts.item(item),
                Event::End(body, _) => counts.end_rule(body),
                Event::KnownRoot(_) | Event::NewRoot(_) | Event::NewRule(..) => {}
            }
            Ok(())
        })?;
        let best = (0..EAGERNESS.len()).min_by_key(|&index| counts.members[index]).unwrap_or(0);
        let bits = (counts.firsts + counts.members[best]) >> FRACTION;
        Ok(Self { eagerness: EAGERNESS[best], plain_bytes: bits / 8 })
    }

    pub(super) fn settings(&self, plain: bool) -> Settings {
        Settings { plain, eagerness: self.eagerness }
    }
}

#[derive(Clone, Copy, Default)]
struct KnownSymbol {
    /// How often something that begins with it was used.
    firsts: u64,
    /// How many rules that begin with it were used once, and what its other members weigh.
    once: u64,
    weight: u64,
    uses: u64,
}

struct KnownRule {
    first: usize,
    uses: u64,
}

struct Counts {
    symbols: Vec<KnownSymbol>,
    rules: Vec<KnownRule>,
    items: u64,
    /// Bits for the symbols that items begin with.
    firsts: u64,
    /// Bits for which member of them they are, by eagerness.
    members: [u64; EAGERNESS.len()],
}

impl Counts {
    fn first_of(&self, target: Target) -> usize {
        match target {
            Target::Symbol(symbol) => symbol.index(),
            Target::Rule(rule) => self.rules[rule.index()].first,
        }
    }

    fn item(&mut self, item: Item) {
        let first = self.first_of(item.target());
        if first >= self.symbols.len() {
            self.symbols.push(KnownSymbol { firsts: 1, once: 0, weight: 2, uses: 1 });
            self.items += 1;
            return;
        }
        let symbol = &mut self.symbols[first];
        self.firsts += log2(self.items) - log2(symbol.firsts);
        symbol.firsts += 1;
        self.items += 1;
        let (uses, is_rule) = match item.target() {
            Target::Symbol(_) => (&mut symbol.uses, false),
            Target::Rule(rule) => (&mut self.rules[rule.index()].uses, true),
        };
        let is_once = is_rule && *uses == 1;
        let weight = 2 * (*uses - 1).max(1);
        for (bits, &eagerness) in self.members.iter_mut().zip(&EAGERNESS) {
            let total = symbol.weight + symbol.once * u64::from(eagerness);
            *bits += log2(total) - log2(if is_once { eagerness.into() } else { weight }).min(log2(total));
        }
        *uses += 1;
        match (is_once, *uses) {
            (true, _) => {
                symbol.once -= 1;
                symbol.weight += 2;
            }
            (false, 2) => {}
            (false, _) => symbol.weight += 2,
        }
    }

    fn end_rule(&mut self, body: &[Item]) {
        let first = body.first().map_or(0, |item| self.first_of(item.target()));
        self.rules.push(KnownRule { first, uses: 1 });
        if let Some(symbol) = self.symbols.get_mut(first) {
            symbol.once += 1;
        }
    }
}

/// Bits behind the point of a [`log2`].
const FRACTION: u32 = 8;

/// The logarithm of a number, straight between powers of two.
fn log2(number: u64) -> u64 {
    let whole = number.max(1).ilog2();
    let part = (u128::from(number) << FRACTION >> whole) as u64 & ((1 << FRACTION) - 1);
    u64::from(whole) << FRACTION | part
}
