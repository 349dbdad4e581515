//! Folds the streams of archives again, each distinct one in one of the processes.
//!
//! All processes have read the same rules, so a request names the rules to unfold, and an answer is a
//! fold with a stream for each. A process holds one unfolded stream a thread, as one process alone does.

use super::Nodes;
use super::plan::{Loads, assign};
use super::serve::refold_request;
use super::wire::Received;
use crate::args::FolderArgs;
use crate::folding::{self, threads};
use anyhow::{Context as _, Result};
use loopfold::archive::{self, ReadConfig};
use loopfold::fold::{FoldBuilder, FoldedStream};
use loopfold::folders::{self, Folder};
use loopfold::{Fold, RuleId};
use std::collections::HashMap;
use std::io::Cursor;

/// The folds that can be folded again, and the folder that does so.
pub(crate) struct Refolded<'a> {
    pub(crate) folds: &'a [Fold],
    pub(crate) chosen: &'a FolderArgs,
}

/// Folds the streams of a fold again: its number among those of the archives.
pub(crate) fn refold(
    nodes: &Nodes,
    number: usize,
    fold: &Fold,
    folder: &dyn Folder,
    chosen: &FolderArgs,
) -> Result<Fold> {
    let mut distinct: Vec<RuleId> = fold.streams().iter().map(FoldedStream::root).collect();
    distinct.sort_unstable();
    distinct.dedup();
    let lengths: Vec<u64> = distinct.iter().map(|&root| fold.length(root)).collect();
    let owners = assign(&lengths, &mut Loads::of(nodes.size()));
    let of = |rank: usize| -> Vec<RuleId> {
        let owned = distinct.iter().zip(&owners).filter(|&(_, &owner)| owner == rank);
        owned.map(|(&root, _)| root).collect()
    };
    let asked: Vec<usize> = (1..nodes.size()).filter(|&rank| owners.contains(&rank)).collect();
    for &rank in &asked {
        let request = refold_request().number(number as u64);
        let request = request.list(&of(rank), |to, root| to.number(root.index() as u64));
        nodes.send(rank, &request.0)?;
    }
    let mut joined = FoldBuilder::default();
    joined.join(&fold_roots(fold, &of(0), folder, threads(chosen))?)?;
    for &rank in &asked {
        let (part, _) = archive::read(Cursor::new(nodes.receive(rank)?), &ReadConfig::new())?;
        joined.join(&part)?;
    }
    with_roots(fold, &joined.finish())
}

/// The answer to such a request.
pub(super) fn answer(request: &mut Received<'_>, refolded: &Refolded<'_>) -> Result<Vec<u8>> {
    let number = request.number()? as usize;
    let fold = refolded.folds.get(number).context("there is no such archive to fold again")?;
    let rules: Vec<RuleId> = fold.rules().collect();
    let roots = request.list(|from| {
        let root = rules.get(from.number()? as usize).copied();
        root.context("there is no such rule to fold again; are the archives the same on all nodes?")
    })?;
    let folder = folding::folder(refolded.chosen)?;
    let part = fold_roots(fold, &roots, &*folder, threads(refolded.chosen))?;
    let mut bytes = Vec::new();
    archive::write(&part, &mut bytes)?;
    Ok(bytes)
}

/// A fold with a stream for each rule, which has its number for a name.
fn fold_roots(fold: &Fold, roots: &[RuleId], folder: &dyn Folder, threads: usize) -> Result<Fold> {
    let mut builder = FoldBuilder::new(fold.alphabet().clone());
    let rules = builder.append_rules(fold, Ok)?;
    for root in roots {
        builder.stream(FoldedStream::new(root.index().to_string(), "", rules[root.index()]));
    }
    Ok(folders::refold(&builder.finish(), folder, threads)?)
}

/// The streams of a fold with the rules that were made for each of its roots.
fn with_roots(fold: &Fold, made: &Fold) -> Result<Fold> {
    let by_root: HashMap<&str, &FoldedStream> =
        made.streams().iter().map(|stream| (stream.name().raw(), stream)).collect();
    let mut builder = FoldBuilder::new(made.alphabet().clone());
    let renamed = builder.append_rules(made, Ok)?;
    for stream in fold.streams() {
        let root = stream.root().index().to_string();
        let folded = *by_root.get(root.as_str()).context("a stream was not folded again")?;
        let notes = stream.notes().iter().filter(|(key, _)| key != WHY).chain(folded.notes());
        let again =
            FoldedStream::new(stream.name().raw(), folded.folder().raw(), renamed[folded.root().index()]);
        builder.stream(again.with_notes(notes.cloned().collect()).with_times(stream.times().clone()));
    }
    Ok(builder.finish())
}

/// The note on why a folder was chosen.
const WHY: &str = "why";
