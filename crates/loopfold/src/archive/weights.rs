//! Alternatives by index, each with a weight: a Fenwick tree. Everything costs a
//! logarithm of their number.

use super::coder::{Coder, Span};
use crate::{Error, Result};

#[derive(Default)]
pub(super) struct Weights {
    /// Node `n`, from 1, is the sum of the weights of as many alternatives up to the n-th
    /// as the lowest bit of n says.
    tree: Vec<u32>,
    total: u32,
}

impl Weights {
    pub(super) fn total(&self) -> u32 {
        self.total
    }

    /// Adds alternatives without weight until there are `length`.
    pub(super) fn grow_to(&mut self, length: usize) {
        while self.tree.len() < length {
            let number = self.tree.len() + 1;
            let mut weight = 0;
            let mut span = 1;
            while number & span == 0 {
                weight += self.tree[number - span - 1];
                span <<= 1;
            }
            self.tree.push(weight);
        }
    }

    /// Adds to the weight of an alternative.
    pub(super) fn add(&mut self, index: usize, weight: u32) -> Result<()> {
        let total = self.total.checked_add(weight);
        self.total = total.ok_or_else(|| Error::limit("there are too many items to be coded"))?;
        self.change(index, weight);
        Ok(())
    }

    /// Takes off from the weight of an alternative, which is at least that.
    pub(super) fn subtract(&mut self, index: usize, weight: u32) {
        self.total -= weight;
        self.change(index, weight.wrapping_neg());
    }

    fn change(&mut self, index: usize, difference: u32) {
        let mut number = index + 1;
        while let Some(node) = self.tree.get_mut(number - 1) {
            *node = node.wrapping_add(difference);
            number += number & number.wrapping_neg();
        }
    }

    /// Codes an alternative that has a weight.
    pub(super) fn code(&self, coder: &mut impl Coder, index: usize) -> Result<usize> {
        if self.total == 0 {
            return Err(Error::damaged("coded", "a choice without alternatives"));
        }
        coder.choose(self.total, || self.span(index), |place| self.find(place))
    }

    fn span(&self, index: usize) -> Span<usize> {
        let (mut start, mut number) = (0, index);
        while number > 0 {
            start += self.tree[number - 1];
            number &= number - 1;
        }
        Span { what: index, start, size: self.weight(index) }
    }

    /// The weight of one alternative: of the stretch that its node sums up, what the
    /// nodes below it do not account for.
    fn weight(&self, index: usize) -> u32 {
        let number = index + 1;
        let first = number & (number - 1);
        let (mut weight, mut below) = (self.tree[index], index);
        while below > first {
            weight -= self.tree[below - 1];
            below &= below - 1;
        }
        weight
    }

    fn find(&self, place: u32) -> Span<usize> {
        let (mut index, mut rest) = (0, place);
        let mut step = 1 << self.tree.len().ilog2();
        while step > 0 {
            if let Some(&node) = self.tree.get(index + step - 1)
                && node <= rest
            {
                index += step;
                rest -= node;
            }
            step >>= 1;
        }
        Span { what: index, start: place - rest, size: self.weight(index) }
    }
}
