//! The files in the repository that a program makes: the trace that ships.

use crate::Arguments;
use anyhow::{Context, Result};
use loopfold_testing::streams;
use std::path::Path;

/// The trace of the README's first command, seen from the top of the repository.
pub(crate) const EXAMPLE: &str = "examples/lu.txt.zst";

/// Writes the files.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    arguments.finish()?;
    let path = crate::root().join(EXAMPLE);
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).with_context(|| format!("{}", folder.display()))?;
    let content = example()?;
    std::fs::write(&path, &content).with_context(|| format!("{}", path.display()))?;
    println!("{EXAMPLE}: {} bytes", content.len());
    Ok(())
}

/// The content of [`EXAMPLE`], compressed: always the same bytes.
fn example() -> Result<Vec<u8>> {
    const BEST_LEVEL: i32 = 19;
    Ok(zstd::encode_all(example_text().as_slice(), BEST_LEVEL)?)
}

/// The trace of LU, class C, as table I of Xu's paper prints it: a letter a line.
fn example_text() -> Vec<u8> {
    let (sweeps, steps) = (160, 249);
    streams::lu(sweeps, steps).into_iter().flat_map(|letter| [letter as u8, b'\n']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_what_the_generator_makes() {
        let stored = std::fs::read(crate::root().join(EXAMPLE)).unwrap();
        assert!(zstd::decode_all(stored.as_slice()).unwrap() == example_text());
        assert_eq!(example_text().iter().filter(|&&byte| byte == b'\n').count(), 323_048);
    }
}
