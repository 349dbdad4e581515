//! The folder of a recording: a file for each rank, beside the archive that is to be written.
//!
//! Each is an archive of segments that its helper appends while the program runs. When all ranks
//! were merged, the folder is removed. Until then, and if the program never gets there, it can be
//! read: every event up to the last segment of each rank.
//!
//! The folder belongs to one execution, on whose number all ranks agree: what an earlier one has left
//! is never written to.

use crate::{Error, Result};
use loopfold::Fold;
use loopfold::archive::{Archive, ReadConfig, SectionKind, SegmentWriter, WriteConfig};
use loopfold::fold::FoldBuilder;
use loopfold::mpi::RelativePeers;
use loopfold::questions::path::PathBlocks;
use loopfold::sections;
use loopfold::trace::Spill;
use loopfold_output::{DataFolder, Folder};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufReader, Read, Seek, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The bytes before the first segment of an archive.
const HEAD: usize = 8;

/// The folder of the recording that is to become this archive.
pub fn folder_of(output: &Path) -> PathBuf {
    DataFolder::path_for(output)
}

fn file_of(rank: u32) -> OsString {
    format!("rank-{rank}.fold").into()
}

/// The file of a rank, which grows segment by segment.
#[derive(Debug)]
pub(crate) struct PartFile {
    folder: DataFolder,
    name: OsString,
    file: File,
    /// Up to here all segments are complete.
    length: u64,
}

impl PartFile {
    /// Begins the file of a rank.
    pub(crate) fn create(folder: DataFolder, rank: u32) -> Result<Self> {
        let name = file_of(rank);
        let file = folder.folder().create(&name)?;
        Ok(Self { folder, name, file, length: 0 })
    }

    fn path(&self) -> PathBuf {
        self.folder.folder().path_of(&self.name)
    }

    /// The folder that it is in.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.folder().path()
    }

    /// Appends a segment, with the blocks of its paths if there are new ones. If that fails, the file
    /// ends with the segment before. `written` is called when it lies there, before it is on the disk.
    pub(crate) fn append(
        &mut self,
        fold: &Fold,
        peers: &RelativePeers,
        blocks: Option<&PathBlocks>,
        written: &dyn Fn(),
    ) -> Result<()> {
        let mut writer = SegmentWriter::new(Vec::new())?;
        let config = WriteConfig::new();
        let config = blocks.into_iter().fold(config, |config, blocks| sections::with_blocks(config, blocks));
        writer.relative_segment(fold, peers, &config)?;
        // The end is not a part of it yet.
        let mut bytes = writer.finish()?;
        bytes.truncate(bytes.len() - end_mark()?.len());
        self.write(&bytes, written)
    }

    /// Marks the file as complete.
    pub(crate) fn finish(&mut self) -> Result<()> {
        let mark = end_mark()?;
        let bytes = SegmentWriter::new(Vec::new())?.finish()?;
        self.write(if self.length == 0 { &bytes } else { &mark }, &|| ())
    }

    /// Writes bytes that begin with the head of an archive, or an end.
    fn write(&mut self, bytes: &[u8], written: &dyn Fn()) -> Result<()> {
        let has_head = bytes.starts_with(&archive_head()?);
        let bytes = if has_head && self.length > 0 { &bytes[HEAD..] } else { bytes };
        let outcome = self.file.write_all(bytes).inspect(|()| written()).and_then(|()| self.file.sync_data());
        if let Err(error) = outcome {
            // What was written of it must not hide segments that follow later.
            let _ = self.file.set_len(self.length);
            let _ = std::io::Seek::seek(&mut self.file, std::io::SeekFrom::Start(self.length));
            return Err(Error::at(&self.path(), error));
        }
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// All segments as a fold with the streams of this rank; its times are in the spill.
    pub(crate) fn read(&self, spill: Option<&Arc<Spill>>) -> Result<Fold> {
        let file = self.folder.folder().read(&self.name)?;
        let mut archive = spilling(Archive::open(BufReader::new(file))?, spill);
        let (fold, _) = archive.read(&ReadConfig::new().lenient(true))?;
        Ok(fold)
    }

    /// A file without a name in the same folder.
    pub(crate) fn scratch(&self) -> Result<File> {
        Ok(self.folder.folder().scratch()?)
    }

    /// Removes the file, and the folder if it was the last one.
    pub(crate) fn remove(&self) {
        let _ = self.folder.folder().remove(&self.name);
        self.folder.remove_if_empty();
    }
}

/// The archive with its times going to a spill, if there is one.
pub(crate) fn spilling<R: Read + Seek>(archive: Archive<R>, spill: Option<&Arc<Spill>>) -> Archive<R> {
    match spill {
        Some(spill) => archive.spilling(spill),
        None => archive,
    }
}

fn archive_head() -> Result<Vec<u8>> {
    let mut bytes = SegmentWriter::new(Vec::new())?.finish()?;
    bytes.truncate(HEAD);
    Ok(bytes)
}

fn end_mark() -> Result<Vec<u8>> {
    Ok(SegmentWriter::new(Vec::new())?.finish()?.split_off(HEAD))
}

/// The names of the files of a recording, by rank.
fn files(folder: &Path) -> Vec<(u32, OsString)> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let rank = |name: &str| name.strip_prefix("rank-")?.strip_suffix(".fold")?.parse().ok();
    let mut files: Vec<(u32, OsString)> = entries
        .flatten()
        .filter_map(|entry| Some((rank(entry.file_name().to_str()?)?, entry.file_name())))
        .collect();
    files.sort();
    files
}

/// True if a folder has parts of a recording.
pub fn is_recording(folder: &Path) -> bool {
    !files(folder).is_empty()
}

/// What can be read of a recording.
#[derive(Debug)]
#[non_exhaustive]
pub struct Parts {
    /// The events of all ranks.
    pub fold: Fold,
    /// The blocks of the paths that occur.
    pub blocks: PathBlocks,
    /// How many ranks there are.
    pub ranks: usize,
    /// How many of them have ended regularly; the others are still written, or were killed.
    pub complete: usize,
    /// Files that cannot be read, and why.
    pub unreadable: Vec<(PathBuf, String)>,
    /// The size of the files.
    pub bytes: u64,
}

/// Opens the file of a rank. Fails for a link, which nobody who records makes, and for what is no regular
/// file: a pipe would be waited for.
fn opened(folder: &Path, name: &OsStr) -> Result<File> {
    let file = Folder::open(folder)?.read(name)?;
    let path = folder.join(name);
    match file.metadata().map_err(|error| Error::at(&path, error))?.is_file() {
        true => Ok(file),
        false => Err(Error::at(&path, "is no regular file")),
    }
}

/// Reads the folder of a recording, whether it was stopped or is still being written: every
/// segment that is complete.
pub fn read(folder: &Path, times: bool) -> Result<Parts> {
    let mut builder = FoldBuilder::default();
    let (mut ranks, mut complete, mut unreadable, mut bytes) = (0, 0, Vec::new(), 0);
    let (mut streams, mut blocks) = (0, PathBlocks::default());
    for (_, name) in files(folder) {
        let path = folder.join(&name);
        let file = opened(folder, &name)?;
        let length = file.metadata().map_or(0, |about| about.len());
        ranks += 1;
        bytes += length;
        // A rank that has not written a segment yet.
        if length == 0 {
            continue;
        }
        let read = Archive::open(BufReader::new(file)).and_then(|mut archive| {
            let read = archive.read(&ReadConfig::new().times(times).lenient(true))?;
            // What cannot be read of them is missed only where blocks are printed.
            let stored =
                archive.all_sections(SectionKind::Paths).and_then(|stored| sections::blocks(&stored));
            blocks.join(&stored.unwrap_or_default());
            Ok(read)
        });
        match read {
            Ok((fold, report)) => {
                let is_complete = report.damage.is_none();
                complete += usize::from(is_complete);
                streams += fold.streams().len();
                builder.join(&if is_complete { fold } else { fold.with_unfinished_streams() })?;
            }
            Err(error) => unreadable.push((path, error.to_string())),
        }
    }
    if streams == 0 && !unreadable.is_empty() {
        let (path, why) = &unreadable[0];
        return Err(Error::at(path, why));
    }
    Ok(Parts { fold: builder.finish(), blocks, ranks, complete, unreadable, bytes })
}
