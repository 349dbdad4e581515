//! Whether archives are all parts of one trace, each of them once; if not, which one is odd and why.
//!
//! The odd archive is the first one that differs from what most of them have in common, and from the
//! first archive if no such majority exists. Fingerprints are compared before anything is counted: what
//! is missing does not matter as long as a part is wrong.
//!
//! Archives without fingerprints, which earlier versions wrote, are merged with each other as ever. A
//! mixture is refused: nothing shows that they are of the same trace, and the part can be folded again.

use super::note::PartNote;
use crate::show;
use anyhow::{Result, bail};
use loopfold::Fold;
use std::collections::HashMap;

/// An archive with the path that it was read from.
#[derive(Clone, Copy)]
pub(super) struct Named<'a> {
    pub(super) name: &'a str,
    pub(super) fold: &'a Fold,
}

/// Returns the note of one of the archives if they are all the parts of one trace, and `None` if none of
/// them is a part. Fails otherwise.
pub(super) fn check<'a>(archives: &[Named<'a>]) -> Result<Option<PartNote<'a>>> {
    let notes = archives.iter().map(part_of).collect::<Result<Vec<_>>>()?;
    let Some(first) = notes.iter().flatten().next() else { return Ok(None) };
    let has_fingerprints = notes.iter().flatten().any(|note| note.fingerprint.is_some());
    let mut parts = Vec::new();
    for (archive, note) in archives.iter().zip(&notes) {
        match note {
            Some(note) => parts.push((archive.name, *note)),
            // What earlier versions wrote for a part in which nothing is to be read.
            None if archive.fold.streams().is_empty() && !has_fingerprints => {}
            None => bail!(
                "only some inputs are parts, and {} is none: merge the {} parts first",
                archive.name,
                first.count
            ),
        }
    }
    if has_fingerprints && let Some((name, _)) = parts.iter().find(|(_, note)| note.fingerprint.is_none()) {
        bail!(
            "{name} has no fingerprint of its input, as an earlier version wrote it, but other parts have one: fold \
             that part again"
        );
    }
    check_identity(&parts)?;
    check_numbers(archives.len(), &mut parts)?;
    Ok(Some(*first))
}

/// The note that all streams of an archive have, but for their places.
fn part_of<'a>(archive: &Named<'a>) -> Result<Option<PartNote<'a>>> {
    let mut notes = archive.fold.streams().iter().map(PartNote::of);
    let Some(first) = notes.next() else { return Ok(None) };
    let common = |note: Option<PartNote<'a>>| note.map(|note| PartNote { place: None, ..note });
    if notes.any(|other| common(other) != common(first)) {
        bail!("{} has streams of several parts: merge the archives that `fold --part` wrote", archive.name);
    }
    Ok(first)
}

/// Fails unless all parts are of one trace and folded in the same way.
fn check_identity(parts: &[(&str, PartNote<'_>)]) -> Result<()> {
    let identity = |note: &PartNote<'_>| {
        (note.count, note.fingerprint.map(|print| (print.input, print.options)), note.folder.to_string())
    };
    let mut how_many = HashMap::new();
    for (_, note) in parts {
        *how_many.entry(identity(note)).or_insert(0usize) += 1;
    }
    let most = how_many.values().copied().max().unwrap_or(0);
    let is_common = |note: &PartNote<'_>| how_many.get(&identity(note)) == Some(&most);
    let Some((_, common)) = parts.iter().find(|(_, note)| is_common(note)) else { return Ok(()) };
    let is_odd = |note: &PartNote<'_>| identity(note) != identity(common);
    let Some((name, odd)) = parts.iter().find(|(_, note)| is_odd(note)) else { return Ok(()) };
    let others: Vec<&str> = parts.iter().filter(|(_, note)| !is_odd(note)).map(|&(name, _)| name).collect();
    let others = listed(&others);
    let (part, count) = (odd.part, odd.count);
    let prints = odd.fingerprint.zip(common.fingerprint);
    if prints.is_some_and(|(odd, common)| odd.input != common.input) {
        bail!("{name} is part {part} of {count} of another trace than {others}");
    }
    if count != common.count {
        bail!("{name} is part {part} of {count}, but {others} of {}", common.count);
    }
    if odd.folder != common.folder {
        bail!("{name} was folded by {}, but {others} by {}", odd.folder, common.folder);
    }
    bail!(
        "{name} was folded with other options than {others}: --times, --format, --key, --ignore, --map and \
         the options of the format must be the same for all parts"
    );
}

/// Fails unless every part is there, and once.
fn check_numbers(archives: usize, parts: &mut [(&str, PartNote<'_>)]) -> Result<()> {
    parts.sort_by_key(|(_, note)| note.part);
    if let Some(twice) = parts.windows(2).find(|pair| pair[0].1.part == pair[1].1.part) {
        let [one, another] = [twice[0].0, twice[1].0];
        bail!("part {} is there twice: {one} and {another}", twice[0].1.part);
    }
    let count = parts.first().map_or(0, |(_, note)| note.count);
    if archives != count {
        let are = if archives == 1 { "is" } else { "are" };
        let archives = show::plural(archives as u64, "archive");
        bail!("there {are} {archives}, but the trace was folded in {count} parts");
    }
    Ok(())
}

/// One or two names, or the first one and how many others there are.
fn listed(names: &[&str]) -> String {
    match names {
        [] => "the others".to_string(),
        [one] => (*one).to_string(),
        [one, another] => format!("{one} and {another}"),
        [one, others @ ..] => format!("{one} and {} others", others.len()),
    }
}
