//! The procedures that make grammars, literally: everything is found by scanning all rules
//! again.

use crate::nest::{Nest, Node};
use std::fmt;

/// What a rule is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// A symbol.
    Symbol(u32),
    /// The rule with this number.
    Rule(usize),
}

/// Rules; the first is the start rule. A rule that was deleted is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grammar(pub Vec<Vec<Part>>);

/// Where a digram is: a rule, and how far in it.
type Place = (usize, usize);

impl Default for Grammar {
    /// A grammar of nothing.
    fn default() -> Self {
        Self(vec![Vec::new()])
    }
}

impl Grammar {
    /// Figure 3 of *Whole Program Paths*, for one symbol. Where the symbol after it is
    /// given, with the look-ahead of section 3.2.
    pub fn push(&mut self, symbol: u32, next: Option<u32>) {
        self.0[0].push(Part::Symbol(symbol));
        self.restore(next);
    }

    fn restore(&mut self, next: Option<u32>) {
        loop {
            let fixed_digram = self.fix_digram(next);
            let fixed_rule = self.fix_rule();
            if !fixed_digram && !fixed_rule {
                break;
            }
        }
    }

    /// Makes a digram unique that occurs twice: by a rule that is there, or else by a new
    /// one.
    fn fix_digram(&mut self, next: Option<u32>) -> bool {
        let duplicates = self.duplicates();
        let is_body = |&(rule, _): &Place| rule > 0 && self.0[rule].len() == 2;
        if let Some(&(one, other)) = duplicates.iter().find(|(one, other)| is_body(one) || is_body(other)) {
            let (body, elsewhere) = if is_body(&one) { (one, other) } else { (other, one) };
            self.replace(elsewhere, body.0);
            return true;
        }
        let waits = |place| self.is_left_for_next(place, next);
        let Some(&(one, other)) = duplicates.iter().find(|&&(one, other)| !waits(one) && !waits(other))
        else {
            return false;
        };
        let rule = self.0.len();
        self.0.push(self.0[one.0][one.1..one.1 + 2].to_vec());
        // The later one first, so that the place of the earlier one stays what it is.
        self.replace(one.max(other), rule);
        self.replace(one.min(other), rule);
        true
    }

    /// Whether a digram is the last of the start rule, and its second part and the next
    /// symbol are a rule.
    fn is_left_for_next(&self, place: Place, next: Option<u32>) -> bool {
        let start = &self.0[0];
        let (Some(next), true) = (next, place.0 == 0 && place.1 + 2 == start.len()) else { return false };
        let better = [start[place.1 + 1], Part::Symbol(next)];
        self.0[1..].iter().any(|body| body[..] == better)
    }

    /// Writes out a rule that is used once.
    fn fix_rule(&mut self) -> bool {
        for rule in 1..self.0.len() {
            let uses: Vec<Place> =
                self.places().filter(|&(of, at)| self.0[of][at] == Part::Rule(rule)).collect();
            if let [(of, at)] = uses[..] {
                let body = std::mem::take(&mut self.0[rule]);
                self.0[of].splice(at..at + 1, body);
                return true;
            }
        }
        false
    }

    fn replace(&mut self, (of, at): Place, rule: usize) {
        self.0[of].splice(at..at + 2, [Part::Rule(rule)]);
    }

    fn places(&self) -> impl Iterator<Item = Place> {
        self.0.iter().enumerate().flat_map(|(rule, body)| (0..body.len()).map(move |at| (rule, at)))
    }

    /// How many symbols and uses of rules are written in it.
    pub fn parts(&self) -> usize {
        self.0.iter().map(Vec::len).sum()
    }

    /// All pairs of places with the same digram that do not overlap.
    pub fn duplicates(&self) -> Vec<(Place, Place)> {
        let digrams: Vec<Place> = self.places().filter(|&(rule, at)| at + 1 < self.0[rule].len()).collect();
        let mut found = Vec::new();
        for (index, &one) in digrams.iter().enumerate() {
            for &other in &digrams[index + 1..] {
                let overlap = one.0 == other.0 && one.1 + 1 == other.1;
                if !overlap && self.0[one.0][one.1..one.1 + 2] == self.0[other.0][other.1..other.1 + 2] {
                    found.push((one, other));
                }
            }
        }
        found
    }

    /// The rules, apart from the start rule, that are not used twice.
    pub fn useless_rules(&self) -> Vec<usize> {
        let uses = |rule| self.0.iter().flatten().filter(|&&part| part == Part::Rule(rule)).count();
        (1..self.0.len()).filter(|&rule| !self.0[rule].is_empty() && uses(rule) < 2).collect()
    }
}

impl fmt::Display for Grammar {
    /// Such as `S → AA1, A → 23`: rules get letters in the order in which
    /// reading the start rule, then those that have letters, meets them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut named = vec![0];
        let mut next = 0;
        while next < named.len() {
            for part in &self.0[named[next]] {
                if let Part::Rule(rule) = part
                    && !named.contains(rule)
                {
                    named.push(*rule);
                }
            }
            next += 1;
        }
        let name = |rule: usize| match named.iter().position(|&known| known == rule) {
            Some(0) => "S".to_string(),
            Some(index @ 1..=18) => char::from(b'A' + index as u8 - 1).to_string(),
            index => format!("<{}>", index.unwrap_or_default()),
        };
        for (index, &rule) in named.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{} → ", name(rule))?;
            for part in &self.0[rule] {
                match *part {
                    Part::Symbol(symbol) => match u8::try_from(symbol) {
                        Ok(byte) if byte.is_ascii_alphanumeric() => write!(f, "{}", char::from(byte))?,
                        _ => write!(f, "[{symbol}]")?,
                    },
                    Part::Rule(rule) => f.write_str(&name(rule))?,
                }
            }
        }
        Ok(())
    }
}

/// Re-Pair on counted items: runs of a symbol become one item; then the most frequent pair
/// of neighbours becomes a rule, the one that was found last if several are as frequent, and
/// the rule beside itself becomes one item; until no pair occurs twice. Pairs that
/// begin with the new rule count as found after those that end with it.
pub fn repair(stream: &[u32]) -> Nest {
    type Item = (Part, u64);
    let mut rules: Vec<[Item; 2]> = Vec::new();
    let mut items = joined(stream.iter().map(|&symbol| (Part::Symbol(symbol), 1)));
    let mut pairs: Vec<[Item; 2]> = Vec::new();
    // In the beginning, by the first of the two.
    let mut kinds: Vec<Item> = Vec::new();
    for &item in &items {
        if !kinds.contains(&item) {
            kinds.push(item);
        }
    }
    for kind in kinds {
        note_pairs(&items, &mut pairs, |pair| pair[0] == kind);
    }
    let count = |items: &[Item], pair: &[Item]| items.windows(2).filter(|&window| window == pair).count();
    while let Some(&pair) = pairs.iter().max_by_key(|pair| count(&items, &pair[..])) {
        if count(&items, &pair) < 2 {
            break;
        }
        let rule = (Part::Rule(rules.len()), 1);
        rules.push(pair);
        let mut reduced = Vec::new();
        let mut rest = &items[..];
        while let Some(&first) = rest.first() {
            let found = rest.starts_with(&pair);
            reduced.push(if found { rule } else { first });
            rest = &rest[if found { 2 } else { 1 }..];
        }
        items = joined(reduced.into_iter());
        note_pairs(&items, &mut pairs, |pair| pair[1].0 == rule.0);
        note_pairs(&items, &mut pairs, |_| true);
    }
    Nest(nodes(&items, &rules))
}

fn joined(items: impl Iterator<Item = (Part, u64)>) -> Vec<(Part, u64)> {
    let mut joined: Vec<(Part, u64)> = Vec::new();
    for (part, times) in items {
        match joined.last_mut() {
            // Only what is new stands beside itself.
            Some((last, count)) if *last == part => *count += times,
            _ => joined.push((part, times)),
        }
    }
    joined
}

fn note_pairs(
    items: &[(Part, u64)],
    pairs: &mut Vec<[(Part, u64); 2]>,
    wanted: impl Fn(&[(Part, u64); 2]) -> bool,
) {
    for window in items.windows(2) {
        let pair = [window[0], window[1]];
        if wanted(&pair) && !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
}

fn nodes(items: &[(Part, u64)], rules: &[[(Part, u64); 2]]) -> Vec<Node> {
    let mut out = Vec::new();
    for &(part, times) in items {
        let body = match part {
            Part::Symbol(symbol) => vec![Node::Event(symbol)],
            Part::Rule(rule) => nodes(&rules[rule], rules),
        };
        if times == 1 { out.extend(body) } else { out.push(Nest::looped(body, times)) }
    }
    out
}
