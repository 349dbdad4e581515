//! A file that takes the full chunks of columns, so that times of any number of events need no
//! memory of their own. Recording uses one: what it holds must stay small whatever the program
//! does.
//!
//! Bytes are appended and read back by position. A chunk that cannot be appended, because the disk
//! is full, stays in memory.

use crate::Result;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A file for the chunks of columns. It belongs to them alone, and is best one without a name.
#[derive(Debug)]
pub struct Spill {
    file: Mutex<File>,
}

impl Spill {
    /// Chunks go to the end of this file, which is open for reading and writing.
    pub fn new(file: File) -> Arc<Self> {
        Arc::new(Self { file: Mutex::new(file) })
    }

    fn file(&self) -> MutexGuard<'_, File> {
        // Every use seeks first, so one that panicked leaves nothing half done.
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append(&self, bytes: &[u8]) -> std::io::Result<u64> {
        let mut file = self.file();
        let offset = file.seek(SeekFrom::End(0))?;
        file.write_all(bytes)?;
        Ok(offset)
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> std::io::Result<()> {
        let mut file = self.file();
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(bytes)
    }
}

/// The bytes of a chunk, wherever they are. Copies share them.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    Memory(Arc<[u8]>),
    Spilled { spill: Arc<Spill>, offset: u64, length: usize },
}

impl Content {
    /// Keeps bytes in the spill, if there is one that takes them.
    pub(crate) fn new(bytes: Vec<u8>, spill: Option<&Arc<Spill>>) -> Self {
        if let Some(spill) = spill
            && let Ok(offset) = spill.append(&bytes)
        {
            return Self::Spilled { spill: Arc::clone(spill), offset, length: bytes.len() };
        }
        Self::Memory(bytes.into())
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Memory(bytes) => bytes.len(),
            Self::Spilled { length, .. } => *length,
        }
    }

    /// Gives the bytes to `use_them`.
    pub(crate) fn with<T>(&self, use_them: impl FnOnce(&[u8]) -> T) -> Result<T> {
        match self {
            Self::Memory(bytes) => Ok(use_them(bytes)),
            Self::Spilled { spill, offset, length } => {
                let mut bytes = vec![0; *length];
                spill.read(*offset, &mut bytes)?;
                Ok(use_them(&bytes))
            }
        }
    }
}
