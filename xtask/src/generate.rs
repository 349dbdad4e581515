//! The files in the repository that a program makes: the traces that ship, and the header for C.

use crate::{Arguments, bench};
use anyhow::{Context, Result};
use loopfold::Fold;
use loopfold_testing::{mpi, streams};
use std::path::Path;

/// The trace of the README's first command, seen from the top of the repository.
pub(crate) const EXAMPLE: &str = "examples/lu.txt.zst";

/// The archive of a program of 16 processes, for what there is to ask about communication.
const PROCESSES: &str = "examples/lu-4x4.fold";

/// What programs in C include, and the crate that it declares.
const HEADER: &str = "crates/loopfold-capi/include/libloopfold.h";
const HEADER_OF: &str = "crates/loopfold-capi";

/// Writes the files.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    arguments.finish()?;
    let mut archive = Vec::new();
    loopfold::archive::write(&processes()?, &mut archive)?;
    for (name, content) in [(EXAMPLE, example()?), (PROCESSES, archive), (HEADER, header()?)] {
        let path = crate::root().join(name);
        let folder = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).with_context(|| format!("{}", folder.display()))?;
        std::fs::write(&path, &content).with_context(|| format!("{}", path.display()))?;
        println!("{name}: {} bytes", content.len());
    }
    Ok(())
}

/// The header, from the functions that the crate exports.
fn header() -> Result<Vec<u8>> {
    let folder = crate::root().join(HEADER_OF);
    let config = cbindgen::Config::from_root_or_default(&folder);
    // It follows the modules.
    let builder = cbindgen::Builder::new().with_config(config).with_src(folder.join("src/lib.rs"));
    let mut text = Vec::new();
    builder.generate().context("the header")?.write(&mut text);
    // What is safe in Rust is how to call it in C.
    Ok(String::from_utf8(text)?.replace(" # Safety\n\n", "").into_bytes())
}

/// LU again, as its 16 processes do it on a grid of 4 by 4: 300 time steps, two sweeps over
/// 31 planes in each.
fn processes() -> Result<Fold> {
    bench::mpi::fold(&mpi::lu(4, 4, 31, 300))
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

    #[test]
    fn the_header_is_what_the_generator_makes() {
        let stored = std::fs::read_to_string(crate::root().join(HEADER)).unwrap();
        assert_eq!(stored, String::from_utf8(header().unwrap()).unwrap());
    }

    #[test]
    fn the_archive_of_processes_is_what_the_generator_makes() {
        let file = std::fs::File::open(crate::root().join(PROCESSES)).unwrap();
        let mut archive = loopfold::archive::Archive::open(std::io::BufReader::new(file)).unwrap();
        let (stored, _) = archive.read(&loopfold::archive::ReadConfig::new()).unwrap();
        let made = processes().unwrap();
        assert_eq!(stored.streams().len(), 16);
        for (stored_stream, made_stream) in stored.streams().iter().zip(made.streams()) {
            assert_eq!(stored_stream.name(), made_stream.name());
            let stored = stored.unfold(stored_stream.root()).map(|symbol| stored.alphabet().label(symbol));
            assert!(stored.eq(made.unfold(made_stream.root()).map(|symbol| made.alphabet().label(symbol))));
        }
    }
}
