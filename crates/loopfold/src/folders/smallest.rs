//! `smallest`: folds with several folders and keeps the smallest result.
//!
//! Every folder that may give the smallest archive folds the stream, and the one whose rules
//! take the fewest bytes is kept: mostly `repair`, on loops often `outermost` or
//! `sequitur-runs`. Several streams are also folded by `repair` with rules that they share, and
//! the smaller result is kept.
//!
//! Only the archive knows how many bytes rules take, and a folder does not know the archive, so
//! the function that measures them is a parameter.
//!
//! Time: the sum of the times of these folders, and of measuring the rules of each. Memory: that
//! of one of them, and the rules of two.

use super::{Choice, FoldedRoot, Folder, Outermost, Repair, SequiturRuns};
use crate::fold::FoldBuilder;
use crate::{Fold, Result, RuleId, Symbol};

const WHY: &str = "the smallest";

/// Says how many bytes the rules below some roots take where they are stored, as
/// [`archive::coded_size`](crate::archive::coded_size) does.
pub type CodedSize = fn(&Fold, &[RuleId]) -> Result<usize>;

/// The folder `smallest`.
///
/// ```
/// use loopfold::archive;
/// use loopfold::fold::FoldBuilder;
/// use loopfold::folders::{Folder, Smallest};
/// use loopfold::Symbol;
///
/// let events: Vec<Symbol> = "abababab".bytes().map(|name| Symbol::new(name.into()).unwrap()).collect();
/// let mut builder = FoldBuilder::default();
/// let root = Smallest::new(archive::coded_size).fold(&events, &mut builder)?;
/// assert!(builder.finish().unfold(root).eq(events));
/// # Ok::<(), loopfold::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Smallest {
    coded_size: CodedSize,
}

impl Smallest {
    /// Compares folds by what this says their size is.
    pub const fn new(coded_size: CodedSize) -> Self {
        Self { coded_size }
    }
}

impl Folder for Smallest {
    fn name(&self) -> &'static str {
        "smallest"
    }

    fn fold(&self, stream: &[Symbol], builder: &mut FoldBuilder) -> Result<RuleId> {
        self.fold_with_choice(stream, builder).map(|folded| folded.root)
    }

    fn fold_with_choice(&self, stream: &[Symbol], builder: &mut FoldBuilder) -> Result<FoldedRoot> {
        let mut best = self.candidate(&Repair, stream)?;
        for other in [&SequiturRuns as &dyn Folder, &Outermost::default()] {
            let candidate = self.candidate(other, stream)?;
            if candidate.bytes < best.bytes {
                best = candidate;
            }
        }
        let root = builder.append_rules(&best.fold, Ok)?[best.root.index()];
        Ok(FoldedRoot { root, choice: Some(Choice { folder: best.folder, why: WHY }) })
    }

    fn fold_together(
        &self,
        streams: &[&[Symbol]],
        builder: &mut FoldBuilder,
    ) -> Option<Result<Vec<FoldedRoot>>> {
        let mut together = FoldBuilder::default();
        let shared = Repair.fold_together(streams, &mut together)?;
        let choose = |shared: Vec<FoldedRoot>| {
            let mut apart = FoldBuilder::default();
            let alone: Vec<FoldedRoot> = streams
                .iter()
                .map(|stream| self.fold_with_choice(stream, &mut apart))
                .collect::<Result<_>>()?;
            let (together, apart) = (together.finish(), apart.finish());
            if self.size(&together, &shared)? < self.size(&apart, &alone)? {
                let choice = Choice { folder: Repair.name(), why: WHY };
                let chosen = |folded: FoldedRoot| FoldedRoot { choice: Some(choice.clone()), ..folded };
                append(&together, shared.into_iter().map(chosen), builder)
            } else {
                append(&apart, alone.into_iter(), builder)
            }
        };
        Some(shared.and_then(choose))
    }
}

impl Smallest {
    fn size(&self, fold: &Fold, folded: &[FoldedRoot]) -> Result<usize> {
        let roots: Vec<RuleId> = folded.iter().map(|folded| folded.root).collect();
        (self.coded_size)(fold, &roots)
    }

    fn candidate(&self, folder: &dyn Folder, stream: &[Symbol]) -> Result<Candidate> {
        let mut builder = FoldBuilder::default();
        let root = folder.fold(stream, &mut builder)?;
        let fold = builder.finish();
        let bytes = (self.coded_size)(&fold, &[root])?;
        Ok(Candidate { folder: folder.name(), fold, root, bytes })
    }
}

fn append(
    fold: &Fold,
    folded: impl Iterator<Item = FoldedRoot>,
    builder: &mut FoldBuilder,
) -> Result<Vec<FoldedRoot>> {
    let renamed = builder.append_rules(fold, Ok)?;
    Ok(folded.map(|folded| FoldedRoot { root: renamed[folded.root.index()], ..folded }).collect())
}

struct Candidate {
    folder: &'static str,
    fold: Fold,
    root: RuleId,
    bytes: usize,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::archive;
    use loopfold_testing::{Rng, streams};

    const SMALLEST: Smallest = Smallest::new(archive::coded_size);

    #[test]
    fn streams_that_are_alike_share_rules() {
        let part = |seed| streams::random(200, 40, seed);
        let similar: Vec<Vec<Symbol>> = (0..6)
            .map(|stream| [part(1), part(10 + stream), part(2), part(20 + stream), part(1)].concat())
            .map(|stream| stream.into_iter().map(Symbol::from_raw).collect())
            .collect();
        let slices: Vec<&[Symbol]> = similar.iter().map(Vec::as_slice).collect();
        let mut builder = FoldBuilder::default();
        let folded = SMALLEST.fold_together(&slices, &mut builder).unwrap().unwrap();
        let fold = builder.finish();
        for (folded, stream) in folded.iter().zip(&similar) {
            assert!(fold.unfold(folded.root).eq(stream.iter().copied()));
            assert_eq!(folded.choice.as_ref().unwrap().folder, "repair");
        }
        let mut apart = FoldBuilder::default();
        let alone: Vec<FoldedRoot> =
            slices.iter().map(|stream| SMALLEST.fold_with_choice(stream, &mut apart).unwrap()).collect();
        assert!(SMALLEST.size(&fold, &folded).unwrap() < SMALLEST.size(&apart.finish(), &alone).unwrap());
    }

    #[test]
    fn no_candidate_is_smaller() {
        let mut rng = Rng::new(41);
        for _ in 0..500 {
            let stream = streams::small(&mut rng, 500);
            let symbols: Vec<Symbol> = stream.into_iter().map(Symbol::from_raw).collect();
            let mut builder = FoldBuilder::default();
            let folded = SMALLEST.fold_with_choice(&symbols, &mut builder).unwrap();
            let fold = builder.finish();
            assert!(fold.unfold(folded.root).eq(symbols.iter().copied()));
            let bytes = archive::coded_size(&fold, &[folded.root]).unwrap();
            for folder in [&Repair as &dyn Folder, &SequiturRuns, &Outermost::default()] {
                assert!(bytes <= SMALLEST.candidate(folder, &symbols).unwrap().bytes, "{}", folder.name());
            }
        }
    }
}
