//! Where the n-th of certain events is in a stream: a measure of the rules that it is made of,
//! and a descent by [`select`]. O(items of these rules), however large the fold is.

use crate::fold::measure::{Measure, Weight, measure_below};
use crate::fold::rank::select;
use crate::fold::{Fold, Item, Target};
use crate::{RuleId, Symbol};

/// The position of the n-th (from 0) of what `weight` counts, where an event can count several
/// times; if there are not so many, how many there are.
pub(super) fn position_of_nth(
    fold: &Fold,
    root: RuleId,
    nth: u64,
    weight: impl Fn(Symbol) -> u64,
) -> std::result::Result<u64, u64> {
    let measure = Weight(weight);
    // The measure has no errors.
    let weights = measure_below(fold, &measure, root).unwrap_or_default();
    let of_rule = |rule: RuleId| weights.get(&rule).copied().unwrap_or(0);
    let of_item = |item: Item| match item.target() {
        Target::Symbol(symbol) => measure.symbol(symbol),
        Target::Rule(rule) => of_rule(rule),
    };
    select(fold, root, nth, of_item).ok_or_else(|| of_rule(root))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::fold::FoldBuilder;
    use crate::folders::{Folder as _, SequiturRuns};
    use loopfold_testing::Rng;

    #[test]
    fn it_is_where_counting_finds_it() {
        let mut rng = Rng::new(9);
        for _ in 0..300 {
            let stream: Vec<Symbol> =
                (0..rng.below(200)).map(|_| Symbol::new(rng.below(3)).unwrap()).collect();
            let mut builder = FoldBuilder::default();
            let root = SequiturRuns.fold(&stream, &mut builder).unwrap();
            let fold = builder.finish();
            let weight = |symbol: Symbol| symbol.index() as u64;
            let mut expected = Vec::new();
            for (position, &symbol) in stream.iter().enumerate() {
                (0..weight(symbol)).for_each(|_| expected.push(position as u64));
            }
            for (nth, &position) in expected.iter().enumerate() {
                assert_eq!(position_of_nth(&fold, root, nth as u64, weight), Ok(position));
            }
            assert_eq!(
                position_of_nth(&fold, root, expected.len() as u64, weight),
                Err(expected.len() as u64)
            );
        }
    }
}
