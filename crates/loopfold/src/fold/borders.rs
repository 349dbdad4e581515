//! Borders: the first and the last w symbols of every rule.
//!
//! A sequence of at most w + 1 symbols that crosses a seam (between two items, or between two
//! iterations of one) lies in the borders of both sides. An occurrence crosses a seam in
//! exactly one rule, the lowest one that contains it. So a question that examines the seams of
//! each rule once, weighted by the uses of the rule, counts each occurrence once.
//!
//! One pass over the rules, O(items + w × rules); memory 8 bytes × w × rules.

use super::measure::bottom_up;
use super::{Grammar, Node};
use crate::{Error, Result};

/// Stands for symbols that are left out. Symbols are smaller.
pub const GAP: u32 = u32::MAX;

/// The first and the last symbols of every rule; all of a rule that is no longer.
#[derive(Clone, Debug)]
pub struct Borders<'a, G> {
    grammar: &'a G,
    width: usize,
    /// How many symbols each node is.
    lengths: Vec<u64>,
    /// Each symbol as a text of its own.
    symbols: Vec<u32>,
    /// The first symbols of each rule, `width` places for each.
    first: Vec<u32>,
    /// The last ones, the very last one first.
    last: Vec<u32>,
}

impl<'a, G: Grammar> Borders<'a, G> {
    /// One pass over the rules. Fails if all borders together are more than `most` symbols.
    pub fn new(grammar: &'a G, width: usize, most: usize) -> Result<Self> {
        let rules = grammar.rule_bodies().len();
        let places = rules.checked_mul(width).filter(|&places| places <= most / 2);
        let Some(places) = places else {
            return Err(Error::limit("the fold has too many rules to look that far around their seams"));
        };
        let mut borders = Self {
            grammar,
            width,
            lengths: vec![1; grammar.symbol_count()],
            symbols: (0..grammar.symbol_count() as u32).collect(),
            first: Vec::with_capacity(places),
            last: Vec::with_capacity(places),
        };
        borders.lengths = bottom_up(grammar, std::mem::take(&mut borders.lengths), |_, body, lengths| {
            let of_item = |&item: &G::Item| {
                lengths[grammar.item_node(item).index()].saturating_mul(grammar.item_times(item))
            };
            Ok(body.iter().map(of_item).fold(0, u64::saturating_add))
        })?;
        let mut text = Vec::with_capacity(2 * width);
        for body in grammar.rule_bodies() {
            text.clear();
            for &item in body {
                if text.len() >= width {
                    break;
                }
                borders.push_first(item, &mut text);
            }
            text.resize(width, GAP);
            borders.first.extend_from_slice(&text);
            text.clear();
            for &item in body.iter().rev() {
                if text.len() >= width {
                    break;
                }
                borders.push_last_reversed(item, &mut text);
            }
            text.resize(width, GAP);
            borders.last.extend_from_slice(&text);
        }
        Ok(borders)
    }

    /// How many symbols are kept of either end.
    pub fn width(&self) -> usize {
        self.width
    }

    /// How many symbols a node is; cut off at 64 bits.
    pub fn length(&self, node: Node) -> u64 {
        self.lengths[node.index()]
    }

    /// How many symbols an item is; cut off at 64 bits.
    pub fn item_length(&self, item: G::Item) -> u64 {
        self.length(self.grammar.item_node(item)).saturating_mul(self.grammar.item_times(item))
    }

    fn border<'b>(&'b self, of_rules: &'b [u32], node: Node) -> &'b [u32] {
        match node.index().checked_sub(self.symbols.len()) {
            None => &std::slice::from_ref(&self.symbols[node.index()])[..self.width.min(1)],
            Some(rule) => {
                let kept = self.length(node).min(self.width as u64) as usize;
                &of_rules[rule * self.width..][..kept]
            }
        }
    }

    /// The first symbols of a node.
    pub fn first(&self, node: Node) -> &[u32] {
        self.border(&self.first, node)
    }

    /// The last symbols of a node, the very last one first.
    pub fn last_reversed(&self, node: Node) -> &[u32] {
        self.border(&self.last, node)
    }

    /// Appends the first symbols of an item, up to as many as are kept.
    pub fn push_first(&self, item: G::Item, text: &mut Vec<u32>) {
        let node = self.grammar.item_node(item);
        repeat(self.first(node), self.grammar.item_times(item), self.width, text);
    }

    /// Appends the last symbols of an item, the very last one first, up to as many as are
    /// kept.
    pub fn push_last_reversed(&self, item: G::Item, text: &mut Vec<u32>) {
        let node = self.grammar.item_node(item);
        repeat(self.last_reversed(node), self.grammar.item_times(item), self.width, text);
    }

    /// Appends an item: all of it if it has no more symbols than are kept of both ends
    /// together; else both ends with a [`GAP`] between them.
    pub fn push_item(&self, item: G::Item, text: &mut Vec<u32>) {
        let begin = text.len();
        self.push_first(item, text);
        let known = (text.len() - begin) as u64;
        let length = self.item_length(item);
        if length <= known {
            return;
        }
        let rest = (length - known).min(self.width as u64) as usize;
        if length - known > rest as u64 {
            text.push(GAP);
        }
        let behind = text.len();
        self.push_last_reversed(item, text);
        text.truncate(behind + rest);
        text[behind..].reverse();
    }
}

/// Appends a part repeatedly, but no more than `most` symbols. A part that is cut short has
/// that many already, so it is never repeated.
fn repeat(part: &[u32], times: u64, most: usize, text: &mut Vec<u32>) {
    let end = text.len() + most;
    for _ in 0..times {
        if part.is_empty() || text.len() >= end {
            return;
        }
        text.extend_from_slice(&part[..part.len().min(end - text.len())]);
    }
}
