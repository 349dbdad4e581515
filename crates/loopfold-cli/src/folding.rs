//! The folder that the arguments choose, and how much it can hold in memory.

use crate::args::{FolderArgs, FolderName, TiesName};
use anyhow::{Result, bail};
use loopfold::archive;
use loopfold::fold::FoldBuilder;
use loopfold::folders::{
    self, Auto, AutoOnline, Folder, Guarded, Halving, Innermost, MinTimes, Minimum, Outermost, Repair,
    Sequitur, Sequitur1, SequiturRuns, Smallest, Ties,
};
use loopfold::questions::patterns::MemoryBudget;
use loopfold::trace::STREAM_LIMIT;
use loopfold::{Fold, RuleId, Symbol};

/// Folds a fold again with another folder. Returns `None` if it does not fit in memory.
pub(crate) fn refold(fold: &Fold, folder: &dyn Folder, threads: usize) -> Result<Option<Fold>> {
    if !fits(fold, threads) {
        return Ok(None);
    }
    Ok(Some(folders::refold(fold, folder, threads)?))
}

/// Whether the streams of a fold fit in memory while they are folded again.
pub(crate) fn fits(fold: &Fold, threads: usize) -> bool {
    let longest = fold.streams().iter().map(|stream| fold.length(stream.root())).max().unwrap_or(0);
    longest <= events_in(available_memory(), threads)
}

/// The folder passed to questions that find loops of their own.
pub(crate) fn outermost(stream: &[Symbol], builder: &mut FoldBuilder) -> loopfold::Result<RuleId> {
    Outermost::default().fold(stream, builder)
}

/// How many events and symbols of streams fit in memory.
pub(crate) fn memory_budget(chosen: &FolderArgs) -> MemoryBudget {
    let threads = threads(chosen);
    let events = events_in(available_memory(), threads);
    let symbols = usize::try_from(events).unwrap_or(usize::MAX).min(MOST_STORED);
    MemoryBudget { events, symbols, threads }
}

/// The longest stream that a folder can hold in this much memory, if each of the threads folds
/// one: it needs up to 30 bytes an event.
fn events_in(memory: u64, threads: usize) -> u64 {
    (memory / 30 / threads.max(1) as u64).min(STREAM_LIMIT as u64)
}

/// The most symbols of a stream whose loops are taken as an archive has them.
const MOST_STORED: usize = 1 << 26;

fn available_memory() -> u64 {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.map_or(4 << 30, |kilobytes| kilobytes * 1024)
}

/// The folder that users call `name`. Returns `None` if there is none.
pub fn folder_called(name: &str) -> Option<Box<dyn Folder>> {
    let name = <FolderName as clap::ValueEnum>::from_str(name, false).ok()?;
    folder(&FolderArgs::default().or(name)).ok()
}

/// The folder that the arguments ask for.
pub(crate) fn folder(arguments: &FolderArgs) -> Result<Box<dyn Folder>> {
    let min_times = arguments.min_times.map(MinTimes::new).transpose()?.unwrap_or_default();
    let ties = match arguments.ties {
        Some(TiesName::Left) => Ties::Left,
        _ => Ties::Iterations,
    };
    let name = arguments.folder.unwrap_or_default();
    let always_left = matches!(name, FolderName::Guarded | FolderName::Halving);
    if always_left && arguments.ties == Some(TiesName::Iterations) {
        bail!(
            "the folders guarded and halving take the leftmost loop first; --ties iterations has no meaning for them"
        );
    }
    if name == FolderName::Minimum && arguments.ties.is_some() {
        bail!("the folder minimum has no ties to break; leave --ties out");
    }
    let has_no_settings = matches!(
        name,
        FolderName::Repair
            | FolderName::Sequitur
            | FolderName::Sequitur1
            | FolderName::SequiturRuns
            | FolderName::Auto
            | FolderName::AutoOnline
            | FolderName::Smallest
    );
    if has_no_settings && (arguments.ties.is_some() || arguments.min_times.is_some()) {
        bail!(
            "--ties and --min-times are for folders that search for loops, such as outermost; this one has no such choice"
        );
    }
    Ok(match name {
        FolderName::Outermost => Box::new(Outermost::default().ties(ties).min_times(min_times)),
        FolderName::Innermost => Box::new(Innermost::default().ties(ties).min_times(min_times)),
        FolderName::Guarded => Box::new(Guarded::default().min_times(min_times)),
        FolderName::Halving => Box::new(Halving::default().min_times(min_times)),
        FolderName::Minimum => Box::new(Minimum::default().min_times(min_times)),
        FolderName::Repair => Box::new(Repair),
        FolderName::Sequitur => Box::new(Sequitur),
        FolderName::Sequitur1 => Box::new(Sequitur1),
        FolderName::SequiturRuns => Box::new(SequiturRuns),
        FolderName::Auto => Box::new(Auto),
        FolderName::AutoOnline => Box::new(AutoOnline),
        FolderName::Smallest => Box::new(Smallest::new(archive::coded_size)),
    })
}

pub(crate) fn threads(arguments: &FolderArgs) -> usize {
    arguments.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_stream_in_memory_is_the_library_s_limit() {
        assert_eq!(events_in(u64::MAX, 1), STREAM_LIMIT as u64);
        assert_eq!(events_in(30 << 20, 2), 1 << 19);
        assert_eq!(events_in(0, 0), 0);
    }
}
