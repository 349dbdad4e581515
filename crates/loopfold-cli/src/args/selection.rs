//! The options that select what is asked about: some of the events, or a part of the streams.

use anyhow::{Context as _, Result, bail};
use clap::Args;
use loopfold::questions::selection::Bound;
use std::ops::Range;

const SELECTING: &str = "Selecting";

/// What is asked about.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct SelectArgs {
    /// Keep only these events: a name or pattern as for `find`; can be given several times
    ///
    /// Other events are dropped, as if they had not happened: positions count the events that are
    /// kept, whose times stay as they are.
    #[arg(long, value_name = "EVENT", help_heading = SELECTING)]
    pub(crate) only: Vec<String>,
    /// Drop these events: a name or pattern as for `find`; can be given several times
    #[arg(long, value_name = "EVENT", help_heading = SELECTING)]
    pub(crate) drop: Vec<String>,
    /// Select the streams of this class; can be given several times
    ///
    /// Classes are numbered from 1 in the order in which `loops` shows them, with their numbers.
    #[arg(long, value_name = "N", help_heading = SELECTING)]
    pub(crate) class: Vec<usize>,
    /// Start at this event, counted from 0, or at this time since the first event: 1000, 1.5s, 20ms
    #[arg(long, value_name = "POSITION|TIME", help_heading = SELECTING)]
    pub(crate) from: Option<String>,
    /// Stop before this event, or at this time
    #[arg(long, value_name = "POSITION|TIME", help_heading = SELECTING)]
    pub(crate) to: Option<String>,
    /// Select the iterations of a loop: its number in `iterations --list`, or an event in it
    ///
    /// Loops are those that `loops` shows. Each occurrence of the loop becomes a stream of its own;
    /// streams without the loop are left out.
    #[arg(long, value_name = "LOOP", help_heading = SELECTING)]
    pub(crate) within: Option<String>,
    /// Select these iterations, counted from 0, of each occurrence of the loop: 10..20 (without 20),
    /// 10.., ..20 or 10
    ///
    /// Without --within, the loop is the one that covers most.
    #[arg(long, value_name = "A..B", help_heading = SELECTING)]
    pub(crate) iterations: Option<String>,
}

impl SelectArgs {
    /// True if nothing is left out.
    pub(crate) fn is_empty(&self) -> bool {
        self.only.is_empty() && self.drop.is_empty() && self.class.is_empty() && !self.is_part()
    }

    /// True if a part of streams is selected.
    pub(crate) fn is_part(&self) -> bool {
        self.from.is_some() || self.to.is_some() || self.is_loop()
    }

    /// True if iterations of a loop are selected.
    pub(crate) fn is_loop(&self) -> bool {
        self.within.is_some() || self.iterations.is_some()
    }

    /// The bounds of `--from` and `--to`.
    pub(crate) fn bounds(&self) -> Result<(Option<Bound>, Option<Bound>)> {
        let bound = |option: &str, text: &Option<String>| -> Result<Option<Bound>> {
            text.as_deref().map(Bound::parse).transpose().with_context(|| option.to_string())
        };
        let (from, to) = (bound("--from", &self.from)?, bound("--to", &self.to)?);
        let ends_first = match (from, to) {
            (Some(Bound::Position(from)), Some(Bound::Position(to))) => to < from,
            (Some(Bound::Time(from)), Some(Bound::Time(to))) => to < from,
            _ => false,
        };
        if ends_first {
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            bail!(
                "--from {} --to {}: the window ends before it begins; --to is the event to stop before",
                text(&self.from),
                text(&self.to)
            );
        }
        Ok((from, to))
    }

    /// The iterations of `--iterations`, all if it is not given.
    pub(crate) fn wanted_iterations(&self) -> Result<Range<u64>> {
        let Some(text) = &self.iterations else { return Ok(0..u64::MAX) };
        let wrong = || format!("--iterations {text}: expected numbers such as 10..20, 10.., ..20 or 10");
        let number = |text: &str| text.trim().replace(',', "").parse::<u64>().ok();
        let range = match text.split_once("..") {
            None => number(text).map(|only| only..only.saturating_add(1)),
            Some((first, end)) => {
                let first = if first.trim().is_empty() { Some(0) } else { number(first) };
                let end = if end.trim().is_empty() { Some(u64::MAX) } else { number(end) };
                first.zip(end).map(|(first, end)| first..end)
            }
        };
        let range = range.with_context(wrong)?;
        if range.is_empty() {
            bail!("--iterations {text}: there is none; the second number is the iteration to stop before");
        }
        Ok(range)
    }
}
