//! Selects streams and parts of them: `--stream`, `--class`, `--from`, `--to`, `--within` and
//! `--iterations`, in this order.

use crate::args::{FolderArgs, SelectArgs};
use crate::commands::shown_nest;
use crate::folding::{folder, refold, threads};
use crate::input::BYTES_NOTE;
use crate::{show, streams};
use anyhow::{Context as _, Result, bail};
use loopfold::Fold;
use loopfold::fold::StreamPart;
use loopfold::questions::classes::by_weight;
use loopfold::questions::clock::EventClock;
use loopfold::questions::iterations::WantedLoop;
use loopfold::questions::query::no_such_event;
use loopfold::questions::selection::{between, iterations_of};
use loopfold::questions::waits::{Focus, IterationNumbers};
use std::ops::Range;
use std::rc::Rc;

/// What is selected.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    /// The values of `--stream`; all streams are selected if there is none.
    pub(crate) streams: Vec<String>,
    pub(crate) select: SelectArgs,
}

impl Selection {
    /// The selected streams and parts of a fold, with notes.
    pub(crate) fn of(&self, fold: Fold, notes: &mut Vec<String>) -> Result<Fold> {
        let mut fold = streams::choose(fold, &self.streams)?;
        if !self.select.class.is_empty() {
            fold = self.classes(&fold)?;
        }
        if !self.select.is_part() {
            return Ok(fold);
        }
        let has_sums = fold.streams().iter().any(|stream| stream.sums().is_some());
        let (from, to) = self.select.bounds()?;
        if from.is_some() || to.is_some() {
            let (parts, zero) = between(&fold, from, to).with_context(|| self.bounds_text())?;
            fold = fold.parts(&parts, zero)?;
        }
        if self.select.is_loop() {
            fold = self.iterations(&fold, notes)?;
        }
        if has_sums {
            notes.push(
                "the archive has sums instead of the times of every event, so the times of a part are not known"
                    .to_string(),
            );
        }
        Ok(fold.without_notes(BYTES_NOTE))
    }

    fn bounds_text(&self) -> String {
        let option = |name: &str, value: &Option<String>| Some(format!("{name} {}", value.as_ref()?));
        let (from, to) = (option("--from", &self.select.from), option("--to", &self.select.to));
        from.into_iter().chain(to).collect::<Vec<_>>().join(" ")
    }

    /// What is selected of a fold that is kept whole: the streams, and the positions of each, if
    /// not all are selected. Iterations have the numbers of the whole streams.
    pub(crate) fn focus(&self, fold: &Fold, notes: &mut Vec<String>) -> Result<Focus> {
        let mut focus = Focus::default();
        if !self.streams.is_empty() || !self.select.class.is_empty() {
            let mut chosen = streams::chosen(fold, &self.streams)?;
            if !self.select.class.is_empty() {
                let of_classes = self.of_classes(fold)?;
                chosen.iter_mut().zip(of_classes).for_each(|(chosen, of_class)| *chosen &= of_class);
            }
            focus.streams = Some(chosen);
        }
        let (from, to) = self.select.bounds()?;
        if from.is_some() || to.is_some() {
            let (parts, _) = between(fold, from, to).with_context(|| self.bounds_text())?;
            focus.parts = Some(ranges_by_stream(fold, &parts));
        }
        if self.select.is_loop() {
            let iterations = ranges_by_stream(fold, &self.loop_parts(fold, notes)?);
            focus.parts = Some(match focus.parts {
                Some(window) => {
                    window.iter().zip(&iterations).map(|(one, other)| common(one, other)).collect()
                }
                None => iterations,
            });
        }
        Ok(focus)
    }

    /// The streams of some classes.
    fn classes(&self, fold: &Fold) -> Result<Fold> {
        let chosen = self.of_classes(fold)?;
        let some = fold.with_streams(|stream| chosen[stream.index()]).canonical();
        Ok(if chosen.contains(&false) { some.without_notes(BYTES_NOTE) } else { some })
    }

    /// For each stream whether it is of one of the classes.
    fn of_classes(&self, fold: &Fold) -> Result<Vec<bool>> {
        let folded = with_loops(fold)?;
        let classes = by_weight(folded.as_ref().unwrap_or(fold).classes()?);
        let mut chosen = vec![false; fold.streams().len()];
        for &number in &self.select.class {
            let class = number.checked_sub(1).and_then(|index| classes.get(index));
            let class = class.with_context(|| {
                let all = show::plural(classes.len() as u64, "class");
                format!("--class {number}: `loops` shows {all}, numbered from 1")
            })?;
            class.streams.iter().for_each(|stream| chosen[stream.index()] = true);
        }
        Ok(chosen)
    }

    fn iterations(&self, fold: &Fold, notes: &mut Vec<String>) -> Result<Fold> {
        let parts = self.loop_parts(fold, notes)?;
        let zero = EventClock::new(fold).origin()?;
        Ok(fold.parts(&parts, zero)?)
    }

    /// The iterations of a loop, in each stream that has it.
    fn loop_parts(&self, fold: &Fold, notes: &mut Vec<String>) -> Result<Vec<StreamPart>> {
        let wanted = match &self.select.within {
            Some(text) => WantedLoop::parse(text, fold.alphabet())?,
            None => WantedLoop::Main,
        };
        let numbers = self.select.wanted_iterations()?;
        let folded = with_loops(fold)?;
        let nests = folded.as_ref().unwrap_or(fold);
        let mut parts: Vec<StreamPart> = Vec::new();
        let (mut streams, mut has_loop) = (0, false);
        for class in nests.classes()? {
            let nest = shown_nest(nests, &class, false)?;
            let Some(place) = wanted.find(&nest) else { continue };
            has_loop = true;
            let ranges = iterations_of(&nest, place, &numbers)?;
            for &stream in class.streams.iter().filter(|_| !ranges.is_empty()) {
                let number = |index: usize| (ranges.len() > 1).then_some(index + 1);
                let part = |(index, range): (usize, &std::ops::Range<u64>)| StreamPart {
                    stream,
                    range: range.clone(),
                    number: number(index),
                };
                parts.extend(ranges.iter().enumerate().map(part));
                streams += 1;
            }
        }
        if parts.is_empty() {
            bail!("{}", self.no_iterations(fold, &wanted, has_loop));
        }
        parts.sort_by_key(|part| (part.stream, part.range.start));
        let without = fold.streams().len() - streams;
        if without > 0 {
            let of = show::plural(fold.streams().len() as u64, "stream");
            notes.push(format!("{without} of {of} do not have these iterations, and are left out"));
        }
        Ok(parts)
    }

    fn no_iterations(&self, fold: &Fold, wanted: &WantedLoop, has_loop: bool) -> String {
        let within = self.select.within.as_deref().unwrap_or_default();
        match wanted {
            _ if has_loop => {
                let numbers = self.select.iterations.as_deref().unwrap_or_default();
                format!("--iterations {numbers}: the loop has fewer iterations")
            }
            WantedLoop::Main => "--iterations: there is no loop".to_string(),
            WantedLoop::Around(events) if events.is_empty() => {
                format!("--within {within}: {}", no_such_event(fold.alphabet(), within))
            }
            WantedLoop::Around(_) => format!("--within {within}: no loop has that event in it"),
            WantedLoop::Number(_) => {
                format!("--within {within}: there is no such loop; `loopfold iterations --list` shows all")
            }
        }
    }
}

/// The iterations of the outermost loops of each stream, as `loops` numbers them.
pub(crate) fn numbering(fold: &Fold, exact: bool) -> Result<Vec<Rc<IterationNumbers>>> {
    let folded = if exact { None } else { with_loops(fold)? };
    let nests = folded.as_ref().unwrap_or(fold);
    let mut numbers = vec![Rc::default(); fold.streams().len()];
    for class in nests.classes()? {
        let of_class = Rc::new(IterationNumbers::of(&shown_nest(nests, &class, exact)?)?);
        class.streams.iter().for_each(|stream| numbers[stream.index()] = Rc::clone(&of_class));
    }
    Ok(numbers)
}

fn ranges_by_stream(fold: &Fold, parts: &[StreamPart]) -> Vec<Vec<Range<u64>>> {
    let mut ranges = vec![Vec::new(); fold.streams().len()];
    parts.iter().for_each(|part| ranges[part.stream.index()].push(part.range.clone()));
    ranges
}

/// The positions that are in a range of both; each is in order.
fn common(one: &[Range<u64>], other: &[Range<u64>]) -> Vec<Range<u64>> {
    let both = one
        .iter()
        .flat_map(|one| other.iter().map(|other| one.start.max(other.start)..one.end.min(other.end)));
    both.filter(|range| !range.is_empty()).collect()
}

/// The same streams with the loops that `loops` shows. Returns `None` if the fold has them, or is
/// too long for memory: then its own loops are taken.
fn with_loops(fold: &Fold) -> Result<Option<Fold>> {
    let chosen = FolderArgs::default();
    let folder = folder(&chosen)?;
    let wanted = folder.describe();
    if fold.streams().iter().all(|stream| stream.folder().raw() == wanted) {
        return Ok(None);
    }
    refold(fold, &*folder, threads(&chosen))
}
