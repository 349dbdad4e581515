//! Folds as files in memory.

use loopfold::Fold;
use loopfold::archive::{self, ReadConfig, SegmentWriter};
use loopfold::trace::Column;
use std::borrow::Borrow;
use std::io::Cursor;

/// The archive of a fold.
pub fn written(fold: &Fold) -> Vec<u8> {
    let mut file = Vec::new();
    archive::write(fold, &mut file).unwrap();
    file
}

/// The fold of an archive, with its times.
pub fn read_back(file: &[u8]) -> loopfold::Result<Fold> {
    let options = ReadConfig::new().times(true).lenient(false);
    archive::read(Cursor::new(file), &options).map(|(fold, _)| fold)
}

/// An archive with a segment for each fold.
pub fn segments(folds: &[impl Borrow<Fold>]) -> Vec<u8> {
    let mut writer = SegmentWriter::new(Vec::new()).unwrap();
    folds.iter().for_each(|fold| writer.segment(fold.borrow()).unwrap());
    writer.finish().unwrap()
}

/// A column of whole numbers.
pub fn whole(events: u64, value: impl Fn(i64) -> i64) -> Column<i64> {
    let mut column = Column::default();
    (0..events as i64).for_each(|index| column.push(value(index)));
    column
}

/// A column of numbers.
pub fn real(events: u64, value: impl Fn(f64) -> f64) -> Column<f64> {
    let mut column = Column::default();
    (0..events).for_each(|index| column.push(value(index as f64)));
    column
}
