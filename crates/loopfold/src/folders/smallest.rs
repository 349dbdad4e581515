//! `smallest`: the smallest archive, whatever it takes.
//!
//! Every folder that may give the smallest archive folds the stream, and the one whose
//! rules take the fewest bytes is kept: mostly `repair`, on loops often `outermost` or
//! `sequitur-runs`. That takes the sum of their times, and of the time to code the rules
//! of each; memory is that of one of them, and the rules of two.

use super::{Choice, Folded, Folder, Outermost, Repair, SequiturRuns};
use crate::archive;
use crate::fold::FoldBuilder;
use crate::{Fold, Result, RuleId, Symbol};

const WHY: &str = "the smallest";

/// The folder `smallest`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Smallest;

impl Folder for Smallest {
    fn name(&self) -> &'static str {
        "smallest"
    }

    fn fold(&self, stream: &[Symbol], builder: &mut FoldBuilder) -> Result<RuleId> {
        self.fold_and_tell(stream, builder).map(|folded| folded.root)
    }

    fn fold_and_tell(&self, stream: &[Symbol], builder: &mut FoldBuilder) -> Result<Folded> {
        let mut best = Candidate::by(&Repair, stream)?;
        for other in [&SequiturRuns as &dyn Folder, &Outermost::default()] {
            let candidate = Candidate::by(other, stream)?;
            if candidate.bytes < best.bytes {
                best = candidate;
            }
        }
        let root = builder.append_rules(&best.fold, Ok)?[best.root.index()];
        Ok(Folded { root, choice: Some(Choice { folder: best.folder, why: WHY }) })
    }
}

struct Candidate {
    folder: &'static str,
    fold: Fold,
    root: RuleId,
    bytes: usize,
}

impl Candidate {
    fn by(folder: &dyn Folder, stream: &[Symbol]) -> Result<Self> {
        let mut builder = FoldBuilder::default();
        let root = folder.fold(stream, &mut builder)?;
        let fold = builder.finish();
        let bytes = archive::coded_size(&fold, root)?;
        Ok(Self { folder: folder.name(), fold, root, bytes })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use loopfold_testing::{Rng, streams};

    #[test]
    fn no_candidate_is_smaller() {
        let mut rng = Rng::new(41);
        for _ in 0..500 {
            let stream = streams::small(&mut rng, 500);
            let symbols: Vec<Symbol> = stream.into_iter().map(Symbol::from_raw).collect();
            let mut builder = FoldBuilder::default();
            let folded = Smallest.fold_and_tell(&symbols, &mut builder).unwrap();
            let fold = builder.finish();
            assert!(fold.unfold(folded.root).eq(symbols.iter().copied()));
            let bytes = archive::coded_size(&fold, folded.root).unwrap();
            for folder in [&Repair as &dyn Folder, &SequiturRuns, &Outermost::default()] {
                assert!(bytes <= Candidate::by(folder, &symbols).unwrap().bytes, "{}", folder.name());
            }
        }
    }
}
