//! Folds an array of `uint32` as it lies in memory, its numbers as symbols, and gives the symbols of the
//! rules their meaning afterwards.
//!
//! For a folder that only compares symbols, so that their size does not matter. Interning ten million
//! numbers would take twice as long as folding them where there are loops; this costs O(items of the
//! rules) and a look at each number.

use crate::events::DTYPE_NOTE;
use loopfold::fold::{FoldBuilder, FoldedStream};
use loopfold::folders::Folder;
use loopfold::trace::Event;
use loopfold::{Fold, Result, Symbol};

/// The folder that only compares symbols.
pub(crate) const FOLDER: &str = "outermost";

/// Folds the numbers. Returns `None` if some are too large to be symbols.
pub(crate) fn fold(numbers: &[u32], name: &str, folder: &dyn Folder, threads: usize) -> Option<Result<Fold>> {
    const { assert!(Symbol::LIMIT.is_power_of_two()) };
    // Some number is too large if all their bits together are, which are found faster than the largest.
    let bits = numbers.iter().fold(0, |bits, &number| bits | number);
    (bits < Symbol::LIMIT).then(|| folded(numbers, name, folder, threads))
}

fn folded(numbers: &[u32], name: &str, folder: &dyn Folder, threads: usize) -> Result<Fold> {
    let symbols: &[Symbol] = bytemuck::TransparentWrapper::wrap_slice(numbers);
    let mut builder = FoldBuilder::default();
    let root = folder.fold_on(symbols, threads, &mut builder)?.root;
    let notes = vec![(DTYPE_NOTE.to_string(), "uint32".to_string())];
    builder.stream(FoldedStream::new(name, folder.describe(), root).with_notes(notes));
    builder.finish().with_meanings(|symbol| Event::integer(symbol.raw().into()))
}
