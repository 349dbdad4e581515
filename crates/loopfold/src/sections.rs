//! The sections that questions store in an archive beside the fold: the index of functions, the
//! events in chunks, and the blocks of recorded paths.
//!
//! The archive stores the bytes of a section without knowing their meaning; the path question
//! writes and reads them without knowing where they are stored. Only this module knows both.
//!
//! ```
//! use loopfold::archive::{self, Archive, ReadConfig};
//! use loopfold::folders::{Outermost, fold_trace};
//! use loopfold::questions::path::ChunkSize;
//! use loopfold::sections;
//! use loopfold::trace::{Collector, Event, Sink};
//!
//! let mut collector = Collector::default();
//! let stream = collector.stream("main")?;
//! (0..5).try_for_each(|_| collector.push_event(stream, &Event::named("a")))?;
//! let fold = fold_trace(collector.finish()?, &Outermost::default(), 1)?;
//! let config = sections::write_config(None, Some(ChunkSize::of_symbols(2)?));
//! let mut file = Vec::new();
//! archive::write_with(&fold, &mut file, &config)?;
//! let mut archive = Archive::open(std::io::Cursor::new(file))?;
//! let (fold, _) = archive.read(&ReadConfig::new())?;
//! assert!(sections::index(&mut archive, &fold)?.is_none());
//! assert_eq!(sections::chunks(archive)?.unwrap().all().len(), 3);
//! # Ok::<(), loopfold::Error>(())
//! ```

use crate::archive::{Archive, SectionCheck, SectionKind, SectionReader, WriteConfig};
use crate::questions::path::{ChunkSize, Chunks, PathBlocks, PathIndex};
use crate::{Fold, Result};
use std::io::{Read, Seek};

/// A configuration that writes an index of about this many ranges, where there can be one, and
/// chunks of this size.
pub fn write_config(index: Option<usize>, chunks: Option<ChunkSize>) -> WriteConfig<'static> {
    let mut config = WriteConfig::new();
    if let Some(ranges) = index {
        config = config.with_section(SectionKind::Index, move |fold| {
            PathIndex::of(fold, ranges)?.map(|index| index.encode()).transpose()
        });
    }
    if let Some(size) = chunks {
        config = config.with_section(SectionKind::Chunks, move |fold| size.encode(fold).map(Some));
    }
    config
}

/// The configuration with the blocks of paths, if there are any.
pub fn with_blocks<'a>(config: WriteConfig<'a>, blocks: &'a PathBlocks) -> WriteConfig<'a> {
    if blocks.is_empty() {
        return config;
    }
    config.with_section(SectionKind::Paths, move |_| blocks.encode().map(Some))
}

/// The blocks of paths that the sections [`Paths`](SectionKind::Paths) of archives hold.
pub fn blocks<'a>(sections: impl IntoIterator<Item = &'a Vec<u8>>) -> Result<PathBlocks> {
    let mut all = PathBlocks::default();
    for section in sections {
        all.join(&PathBlocks::decode(section)?);
    }
    Ok(all)
}

/// Checks for [`archive::verify_with`](crate::archive::verify_with): that the index and the
/// chunks say what the fold does, and the blocks of paths can be read. They count ranges of the
/// index, chunks, and paths.
pub const CHECKS: [SectionCheck<'static>; 3] = [
    (SectionKind::Chunks, &|fold, section| Chunks::open(section)?.verify(fold)),
    (SectionKind::Index, &|fold, section| PathIndex::verify(&section.content()?, fold)),
    (SectionKind::Paths, &|_, section| Ok(PathBlocks::decode(&section.content()?)?.len() as u64)),
];

/// The index of the fold that was read from an archive. Returns `None` if none is stored for
/// the whole of it. Fails if the index is damaged or belongs to another fold; the fold is still
/// complete without it.
pub fn index<R: Read + Seek>(archive: &mut Archive<R>, fold: &Fold) -> Result<Option<PathIndex>> {
    let Some(section) = archive.section(SectionKind::Index)? else { return Ok(None) };
    PathIndex::decode(&section.content()?, fold).map(Some)
}

/// The chunks of an archive; reads their directory alone. Returns `None` if none are stored for
/// the whole of it.
pub fn chunks<R: Read + Seek>(archive: Archive<R>) -> Result<Option<Chunks<SectionReader<R>>>> {
    archive.into_section(SectionKind::Chunks)?.map(Chunks::open).transpose()
}
