//! A fingerprint of the inputs of `fold --part`, so that parts of different traces are not merged.
//!
//! It has two XXH64 values with the seed 0, which are the same on all machines and in all versions: one
//! of the content of the inputs, and one of the options that change what is folded. Paths are not in it,
//! since nodes may see the same files in different places. Of the content it has
//!
//! - the number of inputs, their order, and the length of each;
//! - samples of at most 64 evenly chosen files, the first and the last among them: 256 samples of
//!   4 KiB in all, divided equally, at evenly chosen places from the beginning to the end of each file;
//!   smaller files whole. Files are sampled as they are stored, so compressed. The file with the names of
//!   functions beside a trace of `calls-binary` is sampled with it;
//! - of an OTF2 archive the anchor file and the definitions, whole, and the lengths of the files of its
//!   locations.
//!
//! Of the options it has the formats of the sampled files, whether guessed or named, and what `--times`
//! and the options for reading say; the files that they name by their content.
//!
//! So two inputs of equal lengths that differ only between the samples have equal fingerprints.
//!
//! Cost: at most 256 reads, 1 MiB, besides the length of each file, which the plan needs anyway; for an
//! OTF2 archive its definitions once more, which every part reads, and the length of every file. That
//! is constant, or O(files), where folding is O(events). 1 MiB and its hash take 0.5 ms from the cache.
//! Memory: 64 KiB.

use crate::args::ReadArgs;
use crate::input::files;
use crate::nodes::Kind;
use crate::{formats, names};
use anyhow::{Context as _, Result};
use loopfold::trace::TimesKept;
use loopfold_sources::{Input, Options};
use std::fs::File;
use std::hash::Hasher as _;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use twox_hash::XxHash64;

/// How many files are sampled at most.
const FILES: usize = 64;
/// How many samples are read of all files together.
const SAMPLES: u64 = 256;
/// The bytes of a sample.
const SAMPLE: u64 = 4096;

/// What parts of one trace have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint {
    /// Of the content of the inputs.
    pub(super) input: u64,
    /// Of the options that change what is folded.
    pub(super) options: u64,
}

impl Fingerprint {
    /// That of the inputs and the options of a command.
    pub(super) fn of(arguments: &ReadArgs, kinds: &[Kind], times: TimesKept) -> Result<Self> {
        let (mut input, mut options) = (Hash::default(), Hash::default());
        let files = add_lengths(&mut input, &arguments.inputs, kinds)?;
        let chosen = evenly(files.len(), FILES);
        let samples = SAMPLES / chosen.len().max(1) as u64;
        for file in chosen.into_iter().map(|index| files[index]) {
            let in_file = || file.display().to_string();
            input.samples(file, samples).with_context(in_file)?;
            let format = format_of(file, arguments).with_context(in_file)?;
            options.text(format.unwrap_or_default());
            let has_names = format == Some("calls-binary") && arguments.formats.options.names.is_none();
            let beside = names::beside(file).filter(|_| has_names);
            input.number(u64::from(beside.is_some()));
            if let Some(beside) = beside {
                input.samples(&beside, samples).with_context(|| beside.display().to_string())?;
            }
        }
        add_options(&mut options, arguments, times)?;
        Ok(Self { input: input.finish(), options: options.finish() })
    }
}

/// The number and the lengths of the inputs, with the OTF2 archives among them; the others are
/// returned.
fn add_lengths<'a>(hash: &mut Hash, inputs: &'a [PathBuf], kinds: &[Kind]) -> Result<Vec<&'a Path>> {
    hash.number(inputs.len() as u64);
    let mut files = Vec::new();
    for (input, kind) in inputs.iter().zip(kinds) {
        match *kind {
            Kind::File(length) => {
                hash.number(length);
                files.push(input.as_path());
            }
            Kind::Locations => {
                let anchor = if input.is_dir() { formats::file_of_folder(input) } else { None };
                let anchor = anchor.as_deref().unwrap_or(input);
                hash.archive(anchor).with_context(|| anchor.display().to_string())?;
            }
            // These are not divided into parts.
            Kind::Folded => {}
        }
    }
    Ok(files)
}

/// The format that an input is read as.
fn format_of(input: &Path, arguments: &ReadArgs) -> Result<Option<&'static str>> {
    let given = arguments.format.as_deref().or_else(|| arguments.formats.implied_format());
    let source = match given {
        Some(name) => formats::by_name(name),
        None => {
            let mut bytes = Input::open(files::open(input)?, true)?;
            let name = input.file_name().map(|name| name.to_string_lossy().into_owned());
            formats::guess(bytes.head()?, &name.unwrap_or_default())
        }
    };
    Ok(source.map(|source| source.name()))
}

/// Options that only stop or continue at damage are not among them, nor are those that `--part` refuses.
fn add_options(hash: &mut Hash, arguments: &ReadArgs, times: TimesKept) -> Result<()> {
    // All of them are named, so that nobody forgets a new one.
    let Options {
        select,
        stream_by,
        mask,
        event,
        start,
        duration,
        metric,
        time_unit,
        calls,
        category,
        names,
        functions: _,
        mpi_only,
        regions,
        rank: _,
        lenient: _,
        whole_lines: _,
    } = &arguments.formats.options;
    hash.number(u64::from(times == TimesKept::All));
    hash.number(u64::from(arguments.key.is_some()));
    hash.list(arguments.key.iter().flatten());
    hash.set(&arguments.ignore);
    hash.number(u64::from(arguments.map.is_some()));
    if let Some(map) = &arguments.map {
        hash.whole(map).with_context(|| map.display().to_string())?;
    }
    for text in [select, stream_by, start, duration, time_unit] {
        hash.list(text.iter());
    }
    for flag in [mask, calls, mpi_only] {
        hash.number(u64::from(*flag));
    }
    for list in [event, metric] {
        hash.list(list.iter());
    }
    for set in [category, regions] {
        hash.set(set);
    }
    hash.number(u64::from(names.is_some()));
    if let Some(names) = names {
        hash.samples(names, SAMPLES).with_context(|| names.display().to_string())?;
    }
    Ok(())
}

/// At most `most` of the numbers below `count`, evenly spread, with the first and the last.
fn evenly(count: usize, most: usize) -> Vec<usize> {
    if count <= most {
        return (0..count).collect();
    }
    (0..most).map(|index| (index as u128 * (count - 1) as u128 / (most - 1) as u128) as usize).collect()
}

/// A hash in which every value has its length, so that values next to each other are not mistaken for
/// others.
struct Hash(XxHash64);

impl Default for Hash {
    fn default() -> Self {
        Self(XxHash64::with_seed(0))
    }
}

impl Hash {
    fn number(&mut self, number: u64) {
        self.0.write(&number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.write(text.as_bytes());
    }

    fn list<'a>(&mut self, list: impl Iterator<Item = &'a String>) {
        let list: Vec<&String> = list.collect();
        self.number(list.len() as u64);
        list.into_iter().for_each(|text| self.text(text));
    }

    /// Texts whose order does not matter.
    fn set(&mut self, texts: &[String]) {
        let mut sorted: Vec<&String> = texts.iter().collect();
        sorted.sort_unstable();
        sorted.dedup();
        self.list(sorted.into_iter());
    }

    fn bytes(&mut self, file: &mut File, length: u64) -> Result<()> {
        let mut buffer = vec![0; length.min(1 << 16) as usize];
        let mut from = file.take(length);
        loop {
            match from.read(&mut buffer)? {
                0 => return Ok(()),
                read => self.0.write(&buffer[..read]),
            }
        }
    }

    /// A file, from its beginning to its end.
    fn whole(&mut self, path: &Path) -> Result<()> {
        let mut file = files::open(path)?;
        let length = file.metadata()?.len();
        self.number(length);
        self.bytes(&mut file, length)
    }

    /// A file by some of its places. What is no regular file has no places.
    fn samples(&mut self, path: &Path, count: u64) -> Result<()> {
        let about = std::fs::metadata(path)?;
        let length = about.len();
        self.number(length);
        if !about.is_file() || count == 0 {
            return Ok(());
        }
        let mut file = files::open(path)?;
        if length <= count * SAMPLE {
            return self.bytes(&mut file, length);
        }
        for index in 0..count {
            let last = u128::from(length - SAMPLE);
            let place = u128::from(index) * last / u128::from((count - 1).max(1));
            file.seek(SeekFrom::Start(place as u64))?;
            self.bytes(&mut file, SAMPLE)?;
        }
        Ok(())
    }

    /// An OTF2 archive, by its anchor file.
    fn archive(&mut self, anchor: &Path) -> Result<()> {
        self.whole(anchor)?;
        let (definitions, locations) = loopfold_otf2::files_of(anchor);
        // What is missing is an error when the archive is read, or is left out.
        self.number(u64::from(definitions.is_file()));
        if definitions.is_file() {
            self.whole(&definitions).with_context(|| definitions.display().to_string())?;
        }
        self.number(locations.len() as u64);
        for location in locations {
            self.text(&location.file_name().unwrap_or_default().to_string_lossy());
            self.number(location.metadata().map_or(0, |about| about.len()));
        }
        Ok(())
    }

    fn finish(self) -> u64 {
        self.0.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_every_machine() {
        // The values that the definition of XXH64 gives.
        assert_eq!(Hash::default().finish(), 0xef46_db37_51d8_e999);
        let mut hash = Hash::default();
        hash.0.write(b"abc");
        assert_eq!(hash.finish(), 0x44bc_2cf5_ad77_0999);
    }

    #[test]
    fn chosen_files_are_spread_evenly() {
        assert_eq!(evenly(0, 4), [0usize; 0]);
        assert_eq!(evenly(3, 4), [0, 1, 2]);
        assert_eq!(evenly(10, 4), [0, 3, 6, 9]);
        assert_eq!(evenly(100_000, 64).last(), Some(&99_999));
    }

    #[test]
    fn samples_are_at_the_beginning_in_between_and_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let of = |place: Option<usize>| {
            let path = folder.path().join("trace");
            let mut bytes = vec![0u8; 4 << 20];
            if let Some(place) = place {
                bytes[place] = 1;
            }
            std::fs::write(&path, bytes).unwrap();
            let mut hash = Hash::default();
            hash.samples(&path, SAMPLES).unwrap();
            hash.finish()
        };
        let same = of(None);
        for place in [0, 4095, (4 << 20) - 4096, (4 << 20) - 1, ((4 << 20) - 4096) / 255] {
            assert_ne!(of(Some(place)), same, "{place}");
        }
        // Between the first and the second sample.
        assert_eq!(of(Some(8192)), same);
    }
}
