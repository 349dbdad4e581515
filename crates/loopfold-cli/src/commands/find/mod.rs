//! `loopfold find`: how often a sequence of events or a path of a function occurs, and where.

mod batch;
mod path;
mod places;
mod scheme;
mod sequence;
mod stored;

use super::before;
use crate::args::{FindArgs, FindMethod, FindShown, FolderName, ReadArgs, Top};
use crate::{Outcome, input, show};
use anyhow::{Result, bail};
use loopfold::archive::Archive;
use loopfold::questions::path::{PathQuery, PathReader, is_path};
use loopfold::questions::query::Query;
use loopfold::trace::TimesKept;
use loopfold::{ErrorKind, Fold};
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::time::Instant;
use stored::Stored;

pub(super) fn run(arguments: &FindArgs) -> Result<Outcome> {
    if arguments.shown.nth == Some(0) {
        bail!("--nth counts from 1");
    }
    if let Some(queries) = &arguments.queries {
        return batch::run(arguments, queries);
    }
    let times =
        if arguments.shown.count && !arguments.form.is_data() { TimesKept::None } else { TimesKept::All };
    let (read, text) = arguments.read.split_query()?;
    let opening = Instant::now();
    let (fold, archive, notes) = open(arguments, &read, times)?;
    let opened = opening.elapsed();
    let mut reader = Paths::of(&fold);
    if let Some(paths) = reader.read(&text) {
        show::notes(&notes);
        let paths = known_paths(paths)?;
        let asked = path::Question { text: &text, paths: &paths, is_pattern: reader.is_pattern(&text) };
        let (stored, notes) = Stored::of(archive, &read, &fold);
        show::notes(&notes);
        return path::run(arguments, &fold, stored, &asked, opened);
    }
    only_for_paths(arguments)?;
    let query = Query::parse(&text, fold.alphabet())?;
    let other = arguments.before.as_ref().map(|other| Query::parse(other, fold.alphabet())).transpose()?;
    show::notes(&notes);
    show::notes(&query.unknown_events(fold.alphabet()));
    if let Some(other) = other {
        show::notes(&other.unknown_events(fold.alphabet()));
        return before::run(arguments, &fold, &text, &query, &other);
    }
    let found = fold.find(&query)?;
    if arguments.form.is_data() {
        return sequence::print_data(arguments, &text, &fold, &found);
    }
    let mut out = BufWriter::new(show::raw_stdout());
    let outcome = sequence::print(&mut out, arguments, &fold, &found)?;
    out.flush()?;
    Ok(outcome)
}

/// All inputs as one fold; with the archive that it comes from, if it is one, and notes.
type Opened = (Fold, Option<Archive<BufReader<File>>>, Vec<String>);

fn open(arguments: &FindArgs, read: &ReadArgs, times: TimesKept) -> Result<Opened> {
    let folder = arguments.folder.or(FolderName::AutoOnline);
    let mut loaded = input::load_for(read, times, &folder)?;
    let archive = loaded.archive.take();
    let (fold, notes) = loaded.fold_as_stored(&folder)?;
    Ok((fold, archive, notes))
}

/// Distinguishes paths of functions from sequences of events, and parses them.
struct Paths<'a> {
    fold: &'a Fold,
    /// Made when the first path is read.
    reader: Option<PathReader<'a>>,
}

impl<'a> Paths<'a> {
    fn of(fold: &'a Fold) -> Self {
        Self { fold, reader: None }
    }

    /// True if a path is asked of all functions that fit a pattern.
    fn is_pattern(&mut self, text: &str) -> bool {
        self.reader.as_mut().is_some_and(|reader| reader.is_pattern(text))
    }

    /// Returns `None` if the text is not written as a path, or if the trace has no functions.
    fn read(&mut self, text: &str) -> Option<loopfold::Result<Vec<PathQuery>>> {
        if !is_path(text) {
            return None;
        }
        if self.reader.is_none() {
            match PathReader::new(self.fold.alphabet()) {
                Ok(reader) => self.reader = Some(reader),
                Err(error) => return Some(Err(error)),
            }
        }
        let reader = self.reader.as_mut()?;
        (!reader.functions().all().is_empty()).then(|| reader.read(text))
    }
}

/// The paths of a query; none, with a note, if the trace lacks the function or a block.
fn known_paths(paths: loopfold::Result<Vec<PathQuery>>) -> Result<Vec<PathQuery>> {
    match paths {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            show::notes(&[error.to_string()]);
            Ok(Vec::new())
        }
        paths => Ok(paths?),
    }
}

fn only_for_paths(arguments: &FindArgs) -> Result<()> {
    let option = match arguments {
        FindArgs { stacks: true, .. } => "--stacks",
        FindArgs { explain: true, .. } => "--explain",
        FindArgs { method, .. } if !matches!(method, FindMethod::Auto | FindMethod::Folded) => "--method",
        _ => return Ok(()),
    };
    bail!("{option} is for paths of functions in traces of calls, such as 'F: B1 B2'")
}

/// The rows of a table, or `None` for JSON.
fn rows(arguments: &FindArgs) -> Option<&str> {
    let form = &arguments.form;
    let default = if arguments.shown.per_stream { "streams" } else { "all" };
    form.table_format().map(|_| form.rows().unwrap_or(default))
}

/// What is listed: whether all places, and whether the streams.
fn listed(arguments: &FindArgs) -> (bool, bool) {
    let FindShown { all, per_stream, .. } = arguments.shown;
    rows(arguments).map_or((all, per_stream), |rows| (rows == "all", rows == "streams"))
}

/// How many of `all` to show.
pub(super) fn limit(top: Top, all: u64) -> u64 {
    top.limit(all)
}

pub(super) fn outcome(found: bool) -> Outcome {
    if found { Outcome::Done } else { Outcome::Nothing }
}

/// Notes what is left out, after what is printed.
pub(super) fn note_more(out: &mut impl Write, left_out: u64) -> Result<()> {
    out.flush()?;
    if left_out > 0 {
        show::notes(&[format!("and {} more (--top 0 shows all)", show::count(left_out))]);
    }
    Ok(())
}
