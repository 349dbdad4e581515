//! One measurement in a process of its own, so that its peak memory is that of the work
//! measured and of nothing that came before.
//!
//! The parent makes the stream and sends it through a pipe; the child holds it only as
//! what the work takes, 4 bytes a symbol. Memory is counted above what the process had
//! before it read the stream.

use crate::{Arguments, clock};
use anyhow::{Context, Result, bail, ensure};
use libsais::SuffixArrayConstruction;
use loopfold::Symbol;
use loopfold::fold::FoldBuilder;
use loopfold::folders::{Folder, Innermost, Outermost};
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The hidden chore that a child runs.
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
}

impl Job {
    const ALL: [Job; 3] = [Job::Outermost, Job::Innermost, Job::SuffixArray];

    fn name(self) -> &'static str {
        match self {
            Job::Outermost => "outermost",
            Job::Innermost => "innermost",
            Job::SuffixArray => "suffix-array",
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
}

impl Cost {
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

/// Measures a job on a stream: the best of three attempts, or one where that is long.
pub(crate) fn measure(job: Job, stream: &[u32]) -> Result<Cost> {
    let attempts = if stream.len() >= 5_000_000 { 1 } else { 3 };
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
        [nanoseconds, peak_bytes] => {
            Ok(Cost { symbols: stream.len(), time: Duration::from_nanos(nanoseconds), peak_bytes })
        }
        _ => bail!("measuring {} gave no result", job.name()),
    }
}

/// Symbols sent at a time.
const CHUNK: usize = 16 * 1024;

/// The child's side: reads a stream, does the job, prints nanoseconds and bytes.
pub(crate) fn child(mut arguments: Arguments) -> Result<()> {
    let name = arguments.word().unwrap_or_default();
    let job = Job::named(&name).with_context(|| format!("there is no job `{name}`"))?;
    let symbols: usize = arguments.parsed("length")?;
    let attempts: usize = arguments.parsed("number of attempts")?;
    arguments.finish()?;
    let base = memory("VmRSS")?;
    let (time, peak) = match job {
        Job::Outermost => fold(&Outermost::default(), &received(symbols, symbol)?, attempts)?,
        Job::Innermost => fold(&Innermost::default(), &received(symbols, symbol)?, attempts)?,
        Job::SuffixArray => suffix_array(&mut received(symbols, |raw| Ok(i32::try_from(raw)?))?, attempts)?,
    };
    println!("{} {}", time.as_nanos(), peak.saturating_sub(base));
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

fn fold(folder: &dyn Folder, stream: &[Symbol], attempts: usize) -> Result<(Duration, u64)> {
    best_of(attempts, || {
        let mut builder = FoldBuilder::default();
        folder.fold(stream, &mut builder)?;
        Ok(builder)
    })
}

fn suffix_array(text: &mut [i32], attempts: usize) -> Result<(Duration, u64)> {
    best_of(attempts, || {
        let failed = |error| anyhow::anyhow!("libsais: {error:?}");
        let suffixes = SuffixArrayConstruction::for_text_mut(text).in_owned_buffer32().single_threaded();
        let permuted = suffixes.run().map_err(failed)?.plcp_construction().single_threaded();
        let prefixes = permuted.run().map_err(failed)?.lcp_construction().single_threaded();
        Ok(prefixes.run().map_err(failed)?.into_parts().1)
    })
}

/// The least CPU time, and the peak memory of the first attempt: later ones find the
/// heap as the first left it.
fn best_of<T>(attempts: usize, mut work: impl FnMut() -> Result<T>) -> Result<(Duration, u64)> {
    let (mut least, mut peak) = (Duration::MAX, None);
    for _ in 0..attempts {
        let (result, time) = clock::timed(&mut work);
        let result = result?;
        if peak.is_none() {
            peak = Some(memory("VmHWM")?);
        }
        drop(result);
        least = least.min(time);
    }
    Ok((least, peak.unwrap_or_default()))
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
