//! The times of loops where an archive has sums in place of the times of every event.

use super::{ClassTimes, LoopTimes, Scope};
use crate::Result;
use crate::fold::{Fold, rule_uses};
use crate::questions::classes::Class;
use crate::questions::nest::{Nest, OpenedLoop};

/// The times of the loops of the nest of a class, which is cut at `limit` nodes, from the sums
/// of the fold. Returns `None` when no stream of the class has any.
pub fn summed_times(fold: &Fold, class: &Class, limit: usize) -> Result<Option<ClassTimes>> {
    let mut summed = ClassTimes::default();
    for &index in &class.streams {
        let Some(sums) = fold.stream(index).sums() else { continue };
        let time = sums.span().map(i128::from).or(sums.total_duration()?);
        summed.streams.extend(time.map(|time| (index, time)));
    }
    if summed.streams.is_empty() {
        return Ok(None);
    }
    let (Some(sums), Ok(uses)) = (fold.rule_sums(), rule_uses(fold)) else { return Ok(Some(summed)) };
    let mut places = Vec::new();
    let nest = Nest::with_loops(fold, class.root, limit, |opened| places.push(opened));
    let repeated = nest.repetitions();
    for OpenedLoop { node, rule, item } in places {
        let Some(times) = sums.loops.get(&(rule, item)) else { continue };
        let iterations_here = repeated[node].and_then(|here| here.checked_mul(class.streams.len() as u64));
        let iterations = uses[rule.index()].checked_mul(fold.body(rule)[item].times());
        let scope = if sums.wider.contains(&rule) {
            Scope::OtherStreams
        } else if iterations.is_none() || iterations != iterations_here {
            Scope::OtherPlaces
        } else {
            Scope::Own
        };
        let times = times.summary()?;
        summed.loops.push(LoopTimes { node, times, scope, ..LoopTimes::default() });
    }
    Ok(Some(summed))
}
