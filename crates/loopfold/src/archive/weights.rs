//! A Fenwick tree over the weights of alternatives, which the owner knows. Every operation
//! costs O(log n), and the search has no unpredictable branch.

use super::coder::{Coder, Span};
use crate::{Error, Result};

#[derive(Default)]
pub(super) struct Weights {
    /// Node `n`, from 1, is the sum of the weights of as many alternatives up to the n-th
    /// as the lowest bit of n says. There is a power of two of nodes.
    tree: Vec<u32>,
    total: u32,
}

impl Weights {
    pub(super) fn total(&self) -> u32 {
        self.total
    }

    /// Makes room for alternatives up to this one, without weight.
    fn reach(&mut self, index: usize) {
        let nodes = (index + 1).next_power_of_two();
        let mut node = self.tree.len().max(1);
        self.tree.resize(nodes, 0);
        // Of the new nodes those that sum up everything are not empty.
        while node < nodes {
            node *= 2;
            self.tree[node - 1] = self.total;
        }
    }

    /// Adds to the weight of an alternative.
    pub(super) fn add(&mut self, index: usize, weight: u32) -> Result<()> {
        if index >= self.tree.len() {
            self.reach(index);
        }
        let total = self.total.checked_add(weight);
        self.total = total.ok_or_else(|| Error::limit("there are too many items to be coded"))?;
        self.change(index, weight);
        Ok(())
    }

    /// Takes from the weight of an alternative.
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

    /// Codes an alternative, given the weight of each.
    pub(super) fn code(
        &self,
        coder: &mut impl Coder,
        index: usize,
        weight: impl Fn(usize) -> u32,
    ) -> Result<usize> {
        if self.total == 0 {
            return Err(Error::damaged("coded", "a choice without alternatives"));
        }
        let known = || Span { what: index, start: self.before(index), size: weight(index) };
        let find = |place| {
            let (index, start) = self.find(place);
            Span { what: index, start, size: weight(index) }
        };
        coder.choose(self.total, known, find)
    }

    /// What all alternatives before this one weigh.
    fn before(&self, index: usize) -> u32 {
        let (mut sum, mut number) = (0, index);
        while number > 0 {
            sum += self.tree[number - 1];
            number &= number - 1;
        }
        sum
    }

    /// The alternative that a place falls into, and where it starts.
    fn find(&self, place: u32) -> (usize, u32) {
        let (mut index, mut rest) = (0, place);
        let mut step = self.tree.len() / 2;
        while step > 0 {
            let node = self.tree[index + step - 1];
            let passes = node <= rest;
            index += if passes { step } else { 0 };
            rest -= if passes { node } else { 0 };
            step /= 2;
        }
        (index, place - rest)
    }
}
