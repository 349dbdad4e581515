//! One measurement in a process of its own, so that its peak memory is that of the work
//! measured and of nothing that came before.
//!
//! The parent makes the stream and sends it through a pipe; the child holds it only as
//! what the work takes, 4 bytes a symbol. Memory is counted above what the process had
//! before it read the stream.

use crate::{Arguments, clock};
use anyhow::{Context, Result, bail, ensure};
use libsais::SuffixArrayConstruction;
use loopfold::fold::{FoldBuilder, FoldedStream};
use loopfold::folders::{Auto, Folder, Innermost, Outermost, Repair, Sequitur, Sequitur1, SequiturRuns};
use loopfold::trace::{Alphabet, Event};
use loopfold::{Fold, Symbol};
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The hidden chore of a child process.
pub(crate) const CHILD: &str = "bench-one";

/// The work that can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Job {
    /// Folding, outermost loops first.
    Outermost,
    /// Folding, innermost loops first.
    Innermost,
    /// What other tools start from: the suffix array and its longest common prefixes.
    SuffixArray,
    /// The paper's online grammar.
    Sequitur,
    /// The same, with one symbol of look-ahead.
    Sequitur1,
    /// The online grammar of counted items.
    SequiturRuns,
    /// The folder that chooses.
    Auto,
    /// The most frequent pair first.
    Repair,
    /// A general compressor on the symbols as 32-bit integers: `zstd -19 --long=27`.
    Zstd,
}

impl Job {
    const ALL: [Job; 9] = [
        Job::Outermost,
        Job::Innermost,
        Job::SuffixArray,
        Job::Sequitur,
        Job::Sequitur1,
        Job::SequiturRuns,
        Job::Auto,
        Job::Repair,
        Job::Zstd,
    ];

    /// What it is called.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Job::Outermost => "outermost",
            Job::Innermost => "innermost",
            Job::SuffixArray => "suffix-array",
            Job::Sequitur => "sequitur",
            Job::Sequitur1 => "sequitur1",
            Job::SequiturRuns => "sequitur-runs",
            Job::Auto => "auto",
            Job::Repair => "repair",
            Job::Zstd => "zstd",
        }
    }

    /// From this length on, one attempt is enough.
    fn longest_thrice(self) -> usize {
        match self {
            Job::Sequitur | Job::Sequitur1 | Job::SequiturRuns | Job::Auto | Job::Repair => 50_000_000,
            Job::Zstd => 500_000,
            _ => 5_000_000,
        }
    }

    fn named(name: &str) -> Option<Job> {
        Self::ALL.into_iter().find(|job| job.name() == name)
    }
}

/// What a measurement found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    symbols: usize,
    time: Duration,
    peak_bytes: u64,
    size: Size,
}

/// What became of the stream.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    /// The items of the fold.
    items: u64,
    /// The bytes of the archive, with integers as names; or of what the compressor wrote.
    bytes: u64,
}

impl Cost {
    /// The items of the fold, if one was made.
    pub(crate) fn items(&self) -> Option<u64> {
        (self.size.items > 0).then_some(self.size.items)
    }

    /// The bytes of the archive or of the compressed symbols.
    pub(crate) fn stored_bytes(&self) -> u64 {
        self.size.bytes
    }

    /// Peak memory, the input included.
    pub(crate) fn peak_bytes(&self) -> u64 {
        self.peak_bytes
    }

    /// The one of two measurements of the same that took less time.
    pub(crate) fn better(self, other: Self) -> Self {
        if other.time < self.time { other } else { self }
    }

    /// CPU time in all.
    pub(crate) fn time(&self) -> Duration {
        self.time
    }

    /// CPU time a symbol, in nanoseconds.
    pub(crate) fn nanoseconds(&self) -> f64 {
        self.time.as_secs_f64() * 1e9 / self.symbols as f64
    }

    /// Peak memory a symbol, in bytes, the input included.
    pub(crate) fn bytes(&self) -> f64 {
        self.peak_bytes as f64 / self.symbols as f64
    }
}

/// Measures a job on a stream: the best of three attempts, or one where that takes long.
pub(crate) fn measure(job: Job, stream: &[u32]) -> Result<Cost> {
    let attempts = if stream.len() >= job.longest_thrice() { 1 } else { 3 };
    let mut command = Command::new(std::env::current_exe()?);
    command.args([CHILD, job.name(), &stream.len().to_string(), &attempts.to_string()]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut pipe = child.stdin.take().context("the child has no input")?;
    for part in stream.chunks(CHUNK) {
        let bytes: Vec<u8> = part.iter().flat_map(|symbol| symbol.to_le_bytes()).collect();
        pipe.write_all(&bytes)?;
    }
    drop(pipe);
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "measuring {} failed", job.name());
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<u64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    match numbers[..] {
        [nanoseconds, peak_bytes, items, bytes] => {
            let (time, size) = (Duration::from_nanos(nanoseconds), Size { items, bytes });
            Ok(Cost { symbols: stream.len(), time, peak_bytes, size })
        }
        _ => bail!("measuring {} gave no result", job.name()),
    }
}

/// Symbols sent at a time.
const CHUNK: usize = 16 * 1024;

/// The child's side: reads a stream, does the job, prints nanoseconds, bytes of memory,
/// items and bytes of what was made.
pub(crate) fn child(mut arguments: Arguments) -> Result<()> {
    let name = arguments.word().unwrap_or_default();
    let job = Job::named(&name).with_context(|| format!("there is no job `{name}`"))?;
    let symbols: usize = arguments.parsed("length")?;
    let attempts: usize = arguments.parsed("number of attempts")?;
    arguments.finish()?;
    let base = memory("VmRSS")?;
    let fold = |folder: &dyn Folder| fold(folder, &received(symbols, symbol)?, attempts);
    let (time, peak, size) = match job {
        Job::Outermost => fold(&Outermost::default())?,
        Job::Innermost => fold(&Innermost::default())?,
        Job::SuffixArray => suffix_array(&mut received(symbols, |raw| Ok(i32::try_from(raw)?))?, attempts)?,
        Job::Sequitur => fold(&Sequitur)?,
        Job::Sequitur1 => fold(&Sequitur1)?,
        Job::SequiturRuns => fold(&SequiturRuns)?,
        Job::Auto => fold(&Auto)?,
        Job::Repair => fold(&Repair)?,
        Job::Zstd => zstd(&received(symbols, |raw| Ok(raw.to_le_bytes()))?, attempts)?,
    };
    println!("{} {} {} {}", time.as_nanos(), peak.saturating_sub(base), size.items, size.bytes);
    Ok(())
}

fn symbol(raw: u32) -> Result<Symbol> {
    Ok(Symbol::new(raw as usize)?)
}

fn received<T>(symbols: usize, convert: impl Fn(u32) -> Result<T>) -> Result<Vec<T>> {
    let mut input = std::io::stdin().lock();
    let mut stream = Vec::with_capacity(symbols);
    let mut bytes = vec![0; CHUNK * 4];
    while stream.len() < symbols {
        let part = &mut bytes[..4 * CHUNK.min(symbols - stream.len())];
        input.read_exact(part)?;
        for raw in part.as_chunks::<4>().0 {
            stream.push(convert(u32::from_le_bytes(*raw))?);
        }
    }
    Ok(stream)
}

/// CPU time, peak memory, and the size of what was made.
type Outcome = (Duration, u64, Size);

fn fold(folder: &dyn Folder, stream: &[Symbol], attempts: usize) -> Result<Outcome> {
    let ((builder, root), time, peak) = best_of(attempts, || {
        let mut builder = FoldBuilder::default();
        let root = folder.fold(stream, &mut builder)?;
        Ok((builder, root))
    })?;
    let mut builder = builder;
    builder.stream(FoldedStream::new("", folder.name(), root));
    let fold = builder.finish();
    let size = Size { items: fold.items() as u64, bytes: archive_bytes(&fold, stream)? };
    Ok((time, peak, size))
}

/// The bytes of an archive in which symbols are called by their numbers.
fn archive_bytes(fold: &Fold, stream: &[Symbol]) -> Result<u64> {
    let symbols = stream.iter().map(|symbol| symbol.raw() + 1).max().unwrap_or(0);
    let mut alphabet = Alphabet::default();
    let names: Vec<Symbol> = (0..symbols)
        .map(|number| alphabet.intern(&Event::integer(number.into()), None))
        .collect::<loopfold::Result<_>>()?;
    let mut archive = Vec::new();
    loopfold::archive::write(&fold.with_alphabet(alphabet, &names)?, &mut archive)?;
    Ok(archive.len() as u64)
}

fn suffix_array(text: &mut [i32], attempts: usize) -> Result<Outcome> {
    let (_, time, peak) = best_of(attempts, || {
        let failed = |error| anyhow::anyhow!("libsais: {error:?}");
        let suffixes = SuffixArrayConstruction::for_text_mut(text).in_owned_buffer32().single_threaded();
        let permuted = suffixes.run().map_err(failed)?.plcp_construction().single_threaded();
        let prefixes = permuted.run().map_err(failed)?.lcp_construction().single_threaded();
        Ok(prefixes.run().map_err(failed)?.into_parts().1)
    })?;
    Ok((time, peak, Size::default()))
}

fn zstd(integers: &[[u8; 4]], attempts: usize) -> Result<Outcome> {
    let (compressed, time, peak) =
        best_of(attempts, || super::archive_sizes::zstd_of(integers.as_flattened()))?;
    Ok((time, peak, Size { items: 0, bytes: compressed.len() as u64 }))
}

/// What the work gives, the least CPU time, and the peak memory of the first attempt:
/// later ones find the heap as the first left it.
fn best_of<T>(attempts: usize, mut work: impl FnMut() -> Result<T>) -> Result<(T, Duration, u64)> {
    let (first, mut least) = clock::timed(&mut work);
    let first = first?;
    let peak = memory("VmHWM")?;
    for _ in 1..attempts {
        let (again, time) = clock::timed(&mut work);
        drop(again?);
        least = least.min(time);
    }
    Ok((first, least, peak))
}

/// A line of the kernel's account of this process's memory, in bytes.
pub(super) fn memory(line: &str) -> Result<u64> {
    memory_of(std::process::id(), line)
}

/// The same of any process.
pub(super) fn memory_of(process: u32, line: &str) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))
        .context("peak memory can be measured on Linux")?;
    let found = status.lines().find_map(|text| text.strip_prefix(line)?.strip_prefix(':'));
    let kilobytes = found.and_then(|text| text.split_whitespace().next());
    Ok(1024 * kilobytes.with_context(|| format!("no {line} is known"))?.parse::<u64>()?)
}
