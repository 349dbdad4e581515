//! Names for addresses, from the programs of `--symbols`.

use anyhow::{Context as _, Result, bail};
use loopfold::{Fold, Trace};
use loopfold_sources::{Addresses, SymbolNames};
use std::path::PathBuf;

/// The parts of events that may have addresses.
pub(super) const NEEDS: [&str; 6] = ["name", "function", "caller", "pc", "address", "symbol"];

/// Replaces the addresses of a trace and of folds by the functions of these programs.
pub(super) fn name_addresses(programs: &[PathBuf], trace: &mut Trace, folds: &mut [Fold]) -> Result<()> {
    let mut addresses = Addresses::default();
    addresses.add(&trace.alphabet);
    folds.iter().for_each(|fold| addresses.add(fold.alphabet()));
    if addresses.is_empty() {
        bail!("--symbols is for traces of addresses, and this one has none");
    }
    let mut names = SymbolNames::default();
    for program in programs {
        let option = || format!("--symbols {}", program.display());
        let bytes = super::files::read(program).with_context(option)?;
        names.add(&bytes, &addresses).with_context(option)?;
    }
    let (alphabet, renamed) = names.rename(&trace.alphabet)?;
    *trace = std::mem::take(trace).with_alphabet(alphabet, &renamed);
    for fold in folds {
        let (alphabet, renamed) = names.rename(fold.alphabet())?;
        *fold = fold.with_alphabet(alphabet, &renamed)?;
    }
    Ok(())
}
