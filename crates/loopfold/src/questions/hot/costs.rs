//! The costs of events, and the limit from which a subpath is hot.
//!
//! All costs are whole numbers of one small unit, so that whether a subpath is hot does not
//! depend on the order in which anything is added. Whole costs are kept as they are; if some
//! cost is not whole, the unit is the power of ten that keeps fifteen digits of the most
//! expensive event, so decimals as users write them are exact too.

use crate::fold::{Fold, symbol_counts};
use crate::{Error, Result, Symbol};

/// The cost of every event of a fold, by its symbol.
#[derive(Clone, Debug, PartialEq)]
pub struct EventCosts {
    units: Vec<u64>,
    /// How many units a cost of 1 is.
    scale: f64,
}

/// Whole costs up to here are taken as they are.
const LARGEST_WHOLE: f64 = (1u64 << 60) as f64;
/// The digits of the most expensive event that are kept where costs are not whole.
const DIGITS: i32 = 15;
/// Powers of ten beyond this one leave the range of floating-point numbers.
const LARGEST_POWER: i32 = 300;

impl EventCosts {
    /// Every event costs 1.
    pub fn one_each(fold: &Fold) -> Self {
        Self { units: vec![1; fold.alphabet().len()], scale: 1.0 }
    }

    /// The cost of each symbol, in order. No cost may be negative.
    ///
    /// ```
    /// use loopfold::questions::hot::EventCosts;
    /// assert!(EventCosts::new(&[1.0, 0.0, 2.5]).is_ok());
    /// assert!(EventCosts::new(&[1.0, -2.0]).is_err());
    /// assert!(EventCosts::new(&[f64::NAN]).is_err());
    /// ```
    pub fn new(costs: &[f64]) -> Result<Self> {
        if let Some(bad) = costs.iter().find(|cost| !cost.is_finite() || **cost < 0.0) {
            return Err(Error::invalid(format_args!("an event cannot cost {bad}")));
        }
        let max_event_cost = costs.iter().copied().fold(0.0, f64::max);
        let whole = max_event_cost <= LARGEST_WHOLE && costs.iter().all(|cost| cost.fract() == 0.0);
        let power = if whole { 0 } else { DIGITS - max_event_cost.log10().ceil() as i32 };
        let scale = 10f64.powi(power.min(LARGEST_POWER));
        Ok(Self { units: costs.iter().map(|cost| (cost * scale).round() as u64).collect(), scale })
    }

    /// The cost of an event.
    pub fn of(&self, symbol: Symbol) -> f64 {
        self.units[symbol.index()] as f64 / self.scale
    }

    /// The cost of all events of all streams.
    pub fn total(&self, fold: &Fold) -> Result<f64> {
        self.units(fold)?;
        Ok(self.amount(self.total_units(&symbol_counts(fold)?)?))
    }

    /// The costs in units; an error when they are not those of this fold.
    pub(super) fn units(&self, fold: &Fold) -> Result<&[u64]> {
        if self.units.len() == fold.alphabet().len() {
            return Ok(&self.units);
        }
        Err(Error::invalid("the costs are those of another alphabet"))
    }

    pub(super) fn total_units(&self, counts: &[u64]) -> Result<u128> {
        let costs = self.units.iter().zip(counts);
        // Both factors have 64 bits; the sum is checked all the same.
        let mut each = costs.map(|(&cost, &count)| u128::from(cost) * u128::from(count));
        each.try_fold(0u128, u128::checked_add).ok_or_else(|| Error::limit("the costs cannot be added up"))
    }

    /// Units as the cost they are.
    pub(super) fn amount(&self, units: u128) -> f64 {
        units as f64 / self.scale
    }
}

/// The limit from which a subpath is hot; its cost is its count times the cost of its events.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// This much.
    Cost(f64),
    /// This share of the cost of all events, from 0 to 1.
    Share(f64),
}

/// Shares are whole numbers of this part, so that decimals are exact.
const PARTS: u128 = 1_000_000_000_000_000;

impl Limit {
    /// The least number of units that is hot: one at least, since nothing is not hot.
    pub(super) fn units(self, costs: &EventCosts, total: u128) -> Result<u128> {
        let units = match self {
            Limit::Cost(cost) if cost.is_finite() && cost > 0.0 => rounded_up(cost * costs.scale),
            Limit::Share(share) if share > 0.0 && share <= 1.0 => share_of(total, share),
            Limit::Cost(cost) => {
                return Err(Error::invalid(format_args!(
                    "a subpath is hot from some cost on, which cannot be {cost}"
                )));
            }
            Limit::Share(share) => {
                return Err(Error::invalid(format_args!(
                    "a subpath is hot from some share of the whole cost on, which cannot be {} %",
                    share * 100.0
                )));
            }
        };
        Ok(units.max(1))
    }
}

/// Rounds up to a whole number, except for numbers that are whole up to rounding errors.
fn rounded_up(number: f64) -> u128 {
    let nearest = number.round();
    if (number - nearest).abs() <= number * 4.0 * f64::EPSILON {
        nearest as u128
    } else {
        number.ceil() as u128
    }
}

fn share_of(total: u128, share: f64) -> u128 {
    let parts = (share * PARTS as f64).round() as u128;
    match total.checked_mul(parts) {
        Some(product) => product.div_ceil(PARTS),
        None => (total / PARTS).saturating_mul(parts),
    }
}

/// Whether `count` times `cost` reaches the limit; exact, whatever the numbers are.
pub(super) fn reaches(count: u64, cost: u128, limit: u128) -> bool {
    match u64::try_from(cost) {
        Ok(cost) => u128::from(count) * u128::from(cost) >= limit,
        Err(_) => u128::from(count).checked_mul(cost).is_none_or(|product| product >= limit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_costs_and_decimals_are_exact() {
        let whole = EventCosts::new(&[0.0, 3.0, 1e15]).unwrap();
        assert_eq!(whole.units, [0, 3, 1_000_000_000_000_000]);
        let decimals = EventCosts::new(&[0.1, 0.3, 12.75]).unwrap();
        assert_eq!(decimals.units[1], 3 * decimals.units[0]);
        assert_eq!(decimals.amount(u128::from(decimals.units[2])), 12.75);
        assert_eq!(Limit::Cost(0.3).units(&decimals, 0).unwrap(), u128::from(decimals.units[1]));
        let tiny = EventCosts::new(&[1e-250, 2e-250]).unwrap();
        assert!(tiny.units[0] > 0 && tiny.units[1] == 2 * tiny.units[0]);
        let huge = EventCosts::new(&[1e300, 1.5]).unwrap();
        assert!(huge.units[0] <= 1_000_000_000_000_000 && huge.units[1] == 0);
        assert_eq!(EventCosts::new(&[0.0]).unwrap().units, [0]);
    }

    #[test]
    fn limits_are_rounded_up_once() {
        let ones = EventCosts { units: vec![1], scale: 1.0 };
        for (limit, total, units) in [
            (Limit::Cost(6.0), 0, 6),
            (Limit::Cost(5.5), 0, 6),
            (Limit::Share(0.001), 1000, 1),
            (Limit::Share(0.001), 3000, 3),
            (Limit::Share(0.001), 3001, 4),
            (Limit::Share(1.0), 17, 17),
            (Limit::Share(0.5), 0, 1),
            (Limit::Share(0.5), u128::MAX, (u128::MAX / PARTS) * (PARTS / 2)),
        ] {
            assert_eq!(limit.units(&ones, total).unwrap(), units, "{limit:?} of {total}");
        }
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Limit::Cost(bad).units(&ones, 10).is_err());
            assert!(Limit::Share(bad).units(&ones, 10).is_err());
        }
        assert!(Limit::Share(1.01).units(&ones, 10).is_err());
    }

    #[test]
    fn products_beyond_128_bits_reach_every_limit() {
        assert!(reaches(u64::MAX, u128::MAX, u128::MAX));
        assert!(!reaches(u64::MAX, 1, u128::MAX));
        assert!(reaches(3, 2, 6) && !reaches(3, 2, 7));
    }
}
