//! Opens an input: compressed data is recognised by its first bytes and decompressed while it is
//! read.
//!
//! Users keep traces as `.gz`, `.zst` and `.xz`, and traces get cut off: a full disk,
//! a killed job. So an input knows the difference between its end and being cut off,
//! and read leniently it ends cleanly where the readable part does.
//!
//! Invariant: only what a decoder says of its data counts as damage. An error of the reader
//! below it (a failing disk, an interrupt) and a failed allocation are errors however the
//! input is read, for the data may well be good. Errors of the reader pass through the decoder
//! in a wrapper that shows where they come from.
//!
//! Memory: two buffers of 256 kB and what the decoder needs, which is the window that the
//! compressor chose (at most 2 GB for zstd, 4 GB for xz). Time: that of the decoder; bytes
//! that are not compressed are copied once.

use crate::{Error, Result};
use flate2::bufread::MultiGzDecoder;
use liblzma::bufread::XzDecoder;
use liblzma::stream::{CONCATENATED, Error as XzError, Stream as XzStream};
use std::fmt;
use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};
use zstd::zstd_safe::{get_error_name, zstd_sys::ZSTD_ErrorCode};

/// Large enough that the cost of a read does not matter, small enough for the cache.
const BUFFER: usize = 256 * 1024;

/// How much of an input [`Input::head`] shows.
const HEAD: usize = 64 * 1024;
/// The same, where waiting for more would keep events back.
const SHORT_HEAD: usize = 256;

/// `zstd --long=31` is the longest window there is; the default refuses it.
const LONGEST_ZSTD_WINDOW: u32 = 31;

/// How an input is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// `gzip`, of one or more members.
    Gzip,
    /// `zstd`, of one or more frames.
    Zstd,
    /// `xz`, of one or more streams.
    Xz,
}

impl Compression {
    /// As many bytes as are needed to recognise any of them.
    const MAGIC: usize = 6;

    fn of(magic: &[u8]) -> Option<Self> {
        match magic {
            [0x1f, 0x8b, 0x08, ..] => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstd),
            // A frame to skip, with which parallel compressors begin.
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Self::Zstd),
            [0xfd, b'7', b'z', b'X', b'Z', 0x00, ..] => Some(Self::Xz),
            _ => None,
        }
    }
}

/// The decompressed bytes of an input, in a large buffer.
///
/// ```
/// use loopfold_sources::Input;
/// use std::io::Read;
///
/// let mut input = Input::open(&b"send\nreceive\n"[..], false)?;
/// assert_eq!(input.head()?, b"send\nreceive\n");
/// let mut text = String::new();
/// input.read_to_string(&mut text)?;
/// assert_eq!(text, "send\nreceive\n");
/// # Ok::<(), loopfold_sources::Error>(())
/// ```
pub struct Input<'a> {
    bytes: Box<dyn Read + Send + 'a>,
    /// Fails when the user wants reading to end.
    interrupt: fn() -> io::Result<()>,
    compression: Option<Compression>,
    lenient: bool,
    /// Bytes read and not yet consumed are `buffer[start..end]`.
    buffer: Box<[u8]>,
    /// How many of them the head has.
    head: usize,
    start: usize,
    end: usize,
    /// How many bytes came out so far, for the place of damage.
    read: u64,
    ended: bool,
    damage: Option<String>,
}

impl std::fmt::Debug for Input<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut input = f.debug_struct("Input");
        input.field("compression", &self.compression).field("read", &self.read).finish_non_exhaustive()
    }
}

impl<'a> Input<'a> {
    /// Looks at the first bytes and prepares to decompress if they are those of a compressor.
    /// When `lenient`, data that is cut off or damaged ends where it stops being
    /// readable, and [`Input::damage`] says so.
    pub fn open(mut bytes: impl Read + Send + 'a, lenient: bool) -> Result<Self> {
        let mut magic = Vec::with_capacity(Compression::MAGIC);
        bytes.by_ref().take(Compression::MAGIC as u64).read_to_end(&mut magic)?;
        let compression = Compression::of(&magic);
        let bytes = Undecoded(Cursor::new(magic).chain(bytes));
        Ok(Self {
            bytes: decoder(compression, bytes)?,
            interrupt: || Ok(()),
            compression,
            lenient,
            buffer: vec![0; BUFFER].into_boxed_slice(),
            head: HEAD,
            start: 0,
            end: 0,
            read: 0,
            ended: false,
            damage: None,
        })
    }

    /// The same, ended by an error of `interrupt`, which is called at least once in 256 kB: a
    /// small part of a compressed input may decompress to gigabytes.
    pub fn interrupted_by(self, interrupt: fn() -> io::Result<()>) -> Self {
        Self { interrupt, ..self }
    }

    /// How the input is compressed, if it is.
    pub fn compression(&self) -> Option<Compression> {
        self.compression
    }

    /// The same, for an input that is still being written: its beginning is 256 bytes, so that
    /// its first events can be read before many more have come.
    pub fn still_written(self) -> Self {
        Self { head: SHORT_HEAD, ..self }
    }

    /// The beginning of the input, for [`guess`](crate::guess): 64 kB, or all of a
    /// shorter input. It stays to be read. To be called before anything is read.
    pub fn head(&mut self) -> Result<&[u8]> {
        while self.end - self.start < self.head && self.end < BUFFER && self.read_more()? {}
        Ok(&self.buffer[self.start..self.end])
    }

    /// How many bytes were read so far, after decompression; of an input that was read to
    /// its end that is its size.
    pub fn bytes_read(&self) -> u64 {
        self.read
    }

    /// Why the input, read leniently, ended early. Returns `None` if it did not.
    pub fn damage(&self) -> Option<&str> {
        self.damage.as_deref()
    }

    /// Reads once, behind what is in the buffer. False at the end.
    fn read_more(&mut self) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        (self.interrupt)()?;
        match self.bytes.read(&mut self.buffer[self.end..]) {
            Ok(count) => {
                self.end += count;
                self.read += count as u64;
                self.ended = count == 0;
                Ok(count > 0)
            }
            Err(error) => self.stopped(error).map(|()| false),
        }
    }

    /// Ends the input if its data is damaged and it is read leniently; fails otherwise.
    fn stopped(&mut self, error: io::Error) -> io::Result<()> {
        let error = match error.downcast::<NotRead>() {
            Ok(NotRead(error)) => return Err(error),
            Err(error) if is_out_of_memory(&error) => {
                let reason = "not enough memory for the window with which the data was compressed";
                return Err(io::Error::new(ErrorKind::OutOfMemory, reason));
            }
            Err(error) => error,
        };
        self.ended = true;
        let place = format!("byte {} after decompression", self.read);
        let reason = match error.kind() {
            ErrorKind::UnexpectedEof => "compressed data ends early".to_string(),
            _ => format!("compressed data is damaged ({error})"),
        };
        if self.lenient {
            self.damage = Some(format!("{place}: {reason}; the rest is missing"));
            return Ok(());
        }
        let help = "was the file cut off? --lenient reads what comes before";
        Err(io::Error::new(ErrorKind::InvalidData, Error::damaged(place, format_args!("{reason}; {help}"))))
    }
}

impl BufRead for Input<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            self.read_more()?;
        }
        Ok(&self.buffer[self.start..self.end])
    }

    fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
    }
}

impl Read for Input<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let count = available.len().min(out.len());
        out[..count].copy_from_slice(&available[..count]);
        self.consume(count);
        Ok(count)
    }
}

fn decoder<'a>(
    compression: Option<Compression>,
    bytes: impl Read + Send + 'a,
) -> Result<Box<dyn Read + Send + 'a>> {
    let Some(compression) = compression else { return Ok(Box::new(bytes)) };
    let bytes = BufReader::with_capacity(BUFFER, bytes);
    Ok(match compression {
        Compression::Gzip => Box::new(MultiGzDecoder::new(bytes)),
        Compression::Zstd => {
            let mut decoder = zstd::Decoder::with_buffer(bytes)?;
            decoder.window_log_max(LONGEST_ZSTD_WINDOW)?;
            Box::new(decoder)
        }
        Compression::Xz => {
            let stream = XzStream::new_stream_decoder(u64::MAX, CONCATENATED).map_err(io::Error::from)?;
            Box::new(XzDecoder::new_stream(bytes, stream))
        }
    })
}

/// True if a decoder could not allocate what it needs. Each has its own error for that.
fn is_out_of_memory(error: &io::Error) -> bool {
    let Some(inner) = error.get_ref() else { return error.kind() == ErrorKind::OutOfMemory };
    // Codes of errors are negative numbers in unsigned ones.
    let of_zstd = (ZSTD_ErrorCode::ZSTD_error_memory_allocation as usize).wrapping_neg();
    matches!(inner.downcast_ref(), Some(XzError::Mem | XzError::MemLimit))
        || inner.to_string() == get_error_name(of_zstd)
}

/// The input before it is decoded. Tries again when a signal interrupts a read, which
/// decoders take for a failure, and wraps errors in [`NotRead`].
struct Undecoded<R>(R);

impl<R: Read> Read for Undecoded<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(out) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => return result.map_err(|error| io::Error::new(error.kind(), NotRead(error))),
            }
        }
    }
}

/// An error of the reader below a decoder.
#[derive(Debug)]
struct NotRead(io::Error);

impl fmt::Display for NotRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for NotRead {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn xz(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 6);
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        zstd::encode_all(bytes, 3).unwrap()
    }

    fn read_all(bytes: &[u8], lenient: bool) -> Result<(Vec<u8>, Option<String>)> {
        let mut input = Input::open(bytes, lenient)?;
        let mut out = Vec::new();
        input.read_to_end(&mut out)?;
        Ok((out, input.damage().map(str::to_string)))
    }

    #[test]
    fn what_was_compressed_in_pieces_comes_out_whole() {
        let long = vec![b'x'; 3 * BUFFER + 1];
        for compress in [gzip, zstd, xz, <[u8]>::to_vec] {
            let pieces = [compress(b"one\n"), compress(&long), compress(b""), compress(b"two")].concat();
            let expected = [b"one\n", &long[..], b"two"].concat();
            assert_eq!(read_all(&pieces, false).unwrap(), (expected, None));
        }
    }

    #[test]
    fn a_long_window_is_accepted() {
        let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(30).unwrap();
        encoder.write_all(b"far away").unwrap();
        assert_eq!(read_all(&encoder.finish().unwrap(), false).unwrap().0, b"far away");
    }

    #[test]
    fn cut_off_data_is_an_error_or_a_prefix() {
        let text: Vec<u8> = (0..2000u32).flat_map(|i| format!("{}\n", i * i % 977).into_bytes()).collect();
        for compress in [gzip, zstd, xz] {
            let whole = compress(&text);
            for length in Compression::MAGIC..whole.len() {
                let cut = &whole[..length];
                let error = read_all(cut, false).unwrap_err();
                assert!(error.kind() == loopfold::ErrorKind::Damaged, "{error}");
                assert!(error.to_string().contains("compressed data ends early"), "{error}");
                let (prefix, damage) = read_all(cut, true).unwrap();
                assert!(text.starts_with(&prefix) && damage.is_some(), "cut at {length}");
            }
        }
    }

    #[test]
    fn flipped_bits_are_an_error_or_a_diagnosis() {
        for compress in [gzip, zstd, xz] {
            let whole = compress(&b"the same again and again\n".repeat(50));
            for at in Compression::MAGIC..whole.len() {
                let mut damaged = whole.clone();
                damaged[at] ^= 0x10;
                if let Err(error) = read_all(&damaged, false) {
                    assert!(error.kind() == loopfold::ErrorKind::Damaged, "{error}");
                    assert!(read_all(&damaged, true).unwrap().1.is_some());
                }
            }
        }
    }

    #[test]
    fn the_head_stays_to_be_read() {
        let text = vec![b'y'; 3 * HEAD];
        let packed = zstd(&text);
        let mut input = Input::open(&packed[..], false).unwrap();
        assert_eq!(input.compression(), Some(Compression::Zstd));
        assert!(input.head().unwrap().len() >= HEAD);
        let mut out = Vec::new();
        input.read_to_end(&mut out).unwrap();
        assert_eq!((&out, input.bytes_read()), (&text, text.len() as u64));
        assert_eq!(Input::open(&b""[..], false).unwrap().head().unwrap(), b"");
    }

    struct Failing(fn() -> io::Error);

    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err((self.0)())
        }
    }

    #[test]
    fn a_failing_disk_is_no_damage() {
        for compress in [gzip, zstd, xz, <[u8]>::to_vec] {
            let start = &compress(b"good data")[..8];
            let mut input =
                Input::open(start.chain(Failing(|| io::Error::from_raw_os_error(5))), true).unwrap();
            assert_eq!(input.read_to_end(&mut Vec::new()).unwrap_err().raw_os_error(), Some(5));
        }
    }

    /// Errors without a code of the operating system, of every kind that data has as well.
    #[test]
    fn an_error_of_the_reader_is_no_damage() {
        let errors: [fn() -> io::Error; 3] = [
            || io::Error::other("stop"),
            || io::Error::new(ErrorKind::UnexpectedEof, "stop"),
            || io::Error::new(ErrorKind::InvalidData, "stop"),
        ];
        for (compress, error) in
            [gzip, zstd, xz, <[u8]>::to_vec].into_iter().flat_map(|c| errors.map(|e| (c, e)))
        {
            let start = &compress(b"good data")[..8];
            let mut input = Input::open(start.chain(Failing(error)), true).unwrap();
            let failure = input.read_to_end(&mut Vec::new()).unwrap_err();
            assert_eq!((failure.kind(), failure.to_string()), (error().kind(), "stop".to_string()));
            assert_eq!(input.damage(), None);
        }
    }

    #[test]
    fn a_failed_allocation_is_no_damage() {
        for error in [io::Error::from(XzError::Mem), io::Error::other("Allocation error : not enough memory")]
        {
            let mut input = Input::open(&b""[..], true).unwrap();
            assert_eq!(input.stopped(error).unwrap_err().kind(), ErrorKind::OutOfMemory);
            assert_eq!(input.damage(), None);
        }
    }

    #[test]
    fn an_interrupt_ends_reading_between_reads_of_compressed_data() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        static CALLS: AtomicUsize = AtomicUsize::new(0);
        fn after_three() -> io::Result<()> {
            if CALLS.fetch_add(1, Ordering::Relaxed) < 3 {
                Ok(())
            } else {
                Err(io::Error::other("interrupted"))
            }
        }
        // All of it is read at once, before any of it is decompressed.
        let packed = zstd(&vec![b'z'; 64 * BUFFER]);
        assert!(packed.len() < BUFFER);
        let mut input = Input::open(&packed[..], true).unwrap().interrupted_by(after_three);
        let mut out = Vec::new();
        assert_eq!(input.read_to_end(&mut out).unwrap_err().to_string(), "interrupted");
        assert!(out.len() <= 3 * BUFFER && input.damage().is_none(), "{} bytes", out.len());
    }
}
