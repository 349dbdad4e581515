//! Ends the folding of a trace whose streams were folded in parts: by several processes, or one
//! after the other.
//!
//! A stream is folded by itself while it arrives, so a part is what [`Folding`](super::Folding) has
//! before [`Folder::refine`]. Parts are joined in any order (equal rules become one), streams are
//! put in their order, and then the folder refines all of them together, as it would have done in
//! one process: the result is the same, in canonical form.
//!
//! Cost: O(items of the joined fold), and what the folder takes to refine it.

use super::{FoldedRoot, Folder};
use crate::fold::{FoldBuilder, FoldedStream};
use crate::{Error, Fold, Result, StreamId};

/// The fold of a whole trace, in [canonical form](Fold::canonical), from the joined folds of its
/// parts ([`Folding::finish_part`](super::Folding::finish_part)), all made by this folder.
///
/// ```
/// use loopfold::fold::FoldBuilder;
/// use loopfold::folders::{Auto, Folding, finish_parts};
/// use loopfold::trace::{Event, Sink};
///
/// let fold_of = |streams: &[&str]| {
///     let mut folding = Folding::new(Auto)?;
///     for name in streams {
///         let stream = folding.stream(name)?;
///         for event in ["read", "write", "read", "write", *name] {
///             folding.push_event(stream, &Event::named(event))?;
///         }
///     }
///     Ok::<_, loopfold::Error>(folding)
/// };
/// let mut joined = FoldBuilder::default();
/// joined.join(&fold_of(&["main"])?.finish_part()?)?;
/// joined.join(&fold_of(&["worker"])?.finish_part()?)?;
/// let whole = fold_of(&["main", "worker"])?.finish()?.canonical();
/// assert_eq!(finish_parts(joined.finish(), &Auto)?, whole);
/// # Ok::<(), loopfold::Error>(())
/// ```
pub fn finish_parts(mut fold: Fold, folder: &dyn Folder) -> Result<Fold> {
    let roots: Vec<FoldedRoot> = fold.streams().iter().map(FoldedRoot::of_stream).collect();
    let Some((rules, roots)) = folder.refine(&fold, &roots)? else { return Ok(fold.into_canonical()) };
    let times: Vec<_> = fold.stream_ids().map(|stream| fold.take_times(stream)).collect();
    let mut builder = FoldBuilder::new(fold.alphabet().clone());
    let renamed = builder.append_rules(&rules, Ok)?;
    for ((stream, folded), times) in fold.streams().iter().zip(roots).zip(times) {
        let folded = folded.renamed(&renamed).stream(stream.name().raw(), folder, stream.notes());
        builder.stream(folded.with_times(times));
    }
    Ok(builder.finish().into_canonical())
}

/// The same fold with its streams in another order: each by its number, those of equal numbers as
/// they are.
pub fn with_streams_by<K: Ord>(mut fold: Fold, mut number: impl FnMut(&FoldedStream) -> K) -> Result<Fold> {
    let mut order: Vec<StreamId> = fold.stream_ids().collect();
    order.sort_by_cached_key(|&stream| number(fold.stream(stream)));
    if fold.rule_sums().is_some() {
        return Err(Error::invalid("streams with sums of times are not put in another order"));
    }
    let times: Vec<_> = order.iter().map(|&stream| fold.take_times(stream)).collect();
    let mut builder = FoldBuilder::new(fold.alphabet().clone());
    let renamed = builder.append_rules(&fold, Ok)?;
    for (stream, times) in order.into_iter().zip(times) {
        let stream = fold.stream(stream);
        let moved =
            FoldedStream::new(stream.name().raw(), stream.folder().raw(), renamed[stream.root().index()]);
        builder.stream(moved.with_notes(stream.notes().to_vec()).with_times(times));
    }
    Ok(builder.finish())
}
