//! A section whose content the archive does not know: it is stored and returned as bytes, and
//! checked by a function of the caller.

use super::layout::{Section, SectionKind, read_section};
use crate::{Fold, Result};
use std::io::{self, Read, Seek, SeekFrom};

/// A section of an archive as an input of its own, which begins at 0 and ends with the section.
/// It is read from the file as it is requested.
#[derive(Debug)]
pub struct SectionReader<R> {
    input: R,
    section: Section,
    position: u64,
}

impl<R: Read + Seek> SectionReader<R> {
    pub(super) fn new(mut input: R, section: Section) -> Result<Self> {
        input.seek(SeekFrom::Start(section.offset()))?;
        Ok(Self { input, section, position: 0 })
    }

    /// The whole section. Fails if its checksum does not fit.
    pub fn content(mut self) -> Result<Vec<u8>> {
        read_section(&mut self.input, &self.section)
    }
}

impl<R: Read + Seek> Read for SectionReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.section.length().saturating_sub(self.position);
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let count = self.input.read(&mut buffer[..most])?;
        self.position += count as u64;
        Ok(count)
    }
}

impl<R: Read + Seek> Seek for SectionReader<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(from_end) => self.section.length().checked_add_signed(from_end),
            SeekFrom::Current(from_here) => self.position.checked_add_signed(from_here),
        };
        let in_file = position.and_then(|position| position.checked_add(self.section.offset()));
        let (Some(position), Some(in_file)) = (position, in_file) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        self.input.seek(SeekFrom::Start(in_file))?;
        self.position = position;
        Ok(position)
    }
}

/// Any input of an archive.
pub trait ReadSeek: Read + Seek {}

impl<T: Read + Seek + ?Sized> ReadSeek for T {}

/// Checks all sections of a kind: compares each with the fold of its segment, and returns how
/// many parts were compared.
pub type SectionCheck<'a> = (SectionKind, &'a dyn Fn(&Fold, SectionReader<&mut dyn ReadSeek>) -> Result<u64>);
