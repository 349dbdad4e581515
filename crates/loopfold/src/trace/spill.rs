//! A file that takes the full chunks of columns, so that times of any number of events need no
//! memory of their own. Recording uses one: what it holds must stay small whatever the program
//! does.
//!
//! Bytes are appended and read back by position. A chunk that cannot be appended, because the disk
//! is full, stays in memory. Anything else that keeps bytes can take the place of the file, such as
//! another process ([`ChunkStore`]).

use crate::Result;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What keeps the chunks of columns outside of memory.
pub trait ChunkStore: std::fmt::Debug + Send {
    /// Keeps bytes and returns where they are.
    fn append(&mut self, bytes: &[u8]) -> std::io::Result<u64>;

    /// Reads as many bytes as fit, from there.
    fn read(&mut self, offset: u64, bytes: &mut [u8]) -> std::io::Result<()>;
}

impl ChunkStore for File {
    fn append(&mut self, bytes: &[u8]) -> std::io::Result<u64> {
        let offset = self.seek(SeekFrom::End(0))?;
        self.write_all(bytes)?;
        Ok(offset)
    }

    fn read(&mut self, offset: u64, bytes: &mut [u8]) -> std::io::Result<()> {
        self.seek(SeekFrom::Start(offset))?;
        self.read_exact(bytes)
    }
}

/// A file for the chunks of columns. It belongs to them alone, and is best one without a name.
#[derive(Debug)]
pub struct Spill {
    store: Mutex<Box<dyn ChunkStore>>,
}

impl Spill {
    /// Chunks go to the end of this file, which is open for reading and writing.
    pub fn new(file: File) -> Arc<Self> {
        Self::to(file)
    }

    /// Chunks go to this store.
    pub fn to(store: impl ChunkStore + 'static) -> Arc<Self> {
        Arc::new(Self { store: Mutex::new(Box::new(store)) })
    }

    fn store(&self) -> MutexGuard<'_, Box<dyn ChunkStore>> {
        // Every use seeks first, so one that panicked leaves nothing half done.
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append(&self, bytes: &[u8]) -> std::io::Result<u64> {
        self.store().append(bytes)
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> std::io::Result<()> {
        self.store().read(offset, bytes)
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
