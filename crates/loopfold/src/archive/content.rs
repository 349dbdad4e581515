//! The content of a section that is to be written: bytes, and chunks of columns that stay where
//! they are, in memory or in a [`Spill`](crate::trace::Spill), until they are copied to the file.

use crate::Result;
use crate::trace::Content as ChunkContent;
use std::io::Write;

/// A section in pieces.
#[derive(Default)]
pub(super) struct Content<'a> {
    pieces: Vec<Piece<'a>>,
}

enum Piece<'a> {
    Bytes(Vec<u8>),
    Chunk(&'a ChunkContent),
}

impl From<Vec<u8>> for Content<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Self { pieces: vec![Piece::Bytes(bytes)] }
    }
}

impl<'a> Content<'a> {
    /// The bytes to append to.
    pub(super) fn bytes(&mut self) -> &mut Vec<u8> {
        if !matches!(self.pieces.last(), Some(Piece::Bytes(_))) {
            self.pieces.push(Piece::Bytes(Vec::new()));
        }
        match self.pieces.last_mut() {
            Some(Piece::Bytes(bytes)) => bytes,
            _ => unreachable!("the last piece is bytes"),
        }
    }

    pub(super) fn chunk(&mut self, chunk: &'a ChunkContent) {
        self.pieces.push(Piece::Chunk(chunk));
    }

    pub(super) fn len(&self) -> u64 {
        let length = |piece: &Piece<'_>| match piece {
            Piece::Bytes(bytes) => bytes.len(),
            Piece::Chunk(chunk) => chunk.len(),
        };
        self.pieces.iter().map(|piece| length(piece) as u64).sum()
    }

    pub(super) fn checksum(&self) -> Result<u32> {
        let mut hasher = crc32fast::Hasher::new();
        for piece in &self.pieces {
            match piece {
                Piece::Bytes(bytes) => hasher.update(bytes),
                Piece::Chunk(chunk) => chunk.with(|bytes| hasher.update(bytes))?,
            }
        }
        Ok(hasher.finalize())
    }

    pub(super) fn write(&self, output: &mut impl Write) -> Result<()> {
        for piece in &self.pieces {
            match piece {
                Piece::Bytes(bytes) => output.write_all(bytes)?,
                Piece::Chunk(chunk) => chunk.with(|bytes| output.write_all(bytes))??,
            }
        }
        Ok(())
    }
}
