//! All formats of traces: those that are read from bytes alone, and those that need more.

use loopfold_otf2::Otf2;
use loopfold_sources::Source;
use std::path::{Path, PathBuf};

/// All of them, for a list.
pub(crate) fn all() -> impl Iterator<Item = &'static dyn Source> {
    std::iter::once(&Otf2 as &'static dyn Source).chain(loopfold_sources::ALL.iter().copied())
}

/// The format that users call `name`.
pub(crate) fn by_name(name: &str) -> Option<&'static dyn Source> {
    all().find(|source| source.name() == name)
}

/// The format that fits the beginning and the name of an input best.
pub(crate) fn guess(head: &[u8], file_name: &str) -> Option<&'static dyn Source> {
    // A file named .fold that is no archive gets an error, and is not read as another format.
    let is_archive = file_name.ends_with(".otf2") || Otf2.fits(head) > loopfold_sources::Fit::No;
    if is_archive {
        Some(&Otf2)
    } else if is_table(file_name) {
        by_name("csv")
    } else {
        loopfold_sources::guess(head, Some(file_name))
    }
}

/// A table needs the user's columns, so it is guessed from its name, not from its content.
fn is_table(file_name: &str) -> bool {
    let packed = [".gz", ".zst", ".xz"].iter().find_map(|extension| file_name.strip_suffix(extension));
    let name = packed.unwrap_or(file_name);
    name.ends_with(".csv") || name.ends_with(".tsv")
}

/// The file to open, if a directory is a trace.
pub(crate) fn file_of_folder(folder: &Path) -> Option<PathBuf> {
    loopfold_otf2::anchor_in(folder)
}

/// The rank of each input: the last number in its name if these are distinct, its position
/// otherwise.
pub(crate) fn ranks(inputs: &[PathBuf]) -> Vec<u64> {
    let numbers: Option<Vec<u64>> = inputs.iter().map(|input| last_number(input)).collect();
    let distinct = |numbers: &Vec<u64>| {
        let mut sorted = numbers.clone();
        sorted.sort_unstable();
        sorted.windows(2).all(|pair| pair[0] != pair[1])
    };
    numbers.filter(distinct).unwrap_or_else(|| (0..inputs.len() as u64).collect())
}

fn last_number(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    let mut numbers = name.split(|letter: char| !letter.is_ascii_digit()).filter(|digits| !digits.is_empty());
    numbers.next_back()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_the_last_numbers_of_names() {
        let ranks = |names: &[&str]| ranks(&names.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(ranks(&["a/lu.B.16.rank-5.txt"]), [5]);
        assert_eq!(ranks(&["sp.4.rank-1.txt.zst", "sp.4.rank-0.txt.zst"]), [1, 0]);
        assert_eq!(ranks(&["r07", "r3"]), [7, 3]);
        assert_eq!(ranks(&["a.txt", "b7.txt"]), [0, 1]);
        assert_eq!(ranks(&["x/rank-1", "y/rank-1"]), [0, 1]);
        assert_eq!(ranks(&["-"]), [0]);
        assert_eq!(ranks(&["rank-99999999999999999999"]), [0]);
    }
}
