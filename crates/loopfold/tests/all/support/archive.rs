//! Folds as files in memory.

use loopfold::Fold;
use loopfold::archive::{self, ReadOptions};
use std::io::Cursor;

/// The archive of a fold.
pub fn written(fold: &Fold) -> Vec<u8> {
    let mut file = Vec::new();
    archive::write(fold, &mut file).unwrap();
    file
}

/// The fold of an archive, with its times.
pub fn read_back(file: &[u8]) -> loopfold::Result<Fold> {
    let options = ReadOptions { times: true, lenient: false };
    archive::read(Cursor::new(file), &options).map(|(fold, _)| fold)
}
