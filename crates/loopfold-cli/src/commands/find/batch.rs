//! `loopfold find --queries FILE`: many queries on one input, which is read once, on all
//! cores. Each line has its answer, in the order of the file; a line that cannot be
//! answered has its error, and the others are answered.

use super::Paths;
use super::path::{begin_answer, search, searches, streams_of, total};
use super::places::{Places, Shared};
use super::scheme::Searcher;
use super::stored::Stored;
use crate::Outcome;
use crate::args::FindArgs;
use crate::call;
use crate::input::files;
use crate::show::{self, JsonOut};
use crate::tables;
use anyhow::{Context as _, Result, bail};
use loopfold::interrupt;
use loopfold::questions::path::PathQuery;
use loopfold::questions::query::Query;
use loopfold::trace::TimesKept;
use loopfold::{ErrorKind, Fold};
use loopfold_json::JsonWriter;
use loopfold_json::find::{error_of_many, sequence_of_many};
use loopfold_sources::Input;
use std::io::Read as _;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// A file of queries that is longer than this is something else.
const LONGEST: u64 = 1 << 30;

pub(super) fn run(arguments: &FindArgs, file: &Path) -> Result<Outcome> {
    let name = if file == Path::new("-") { "standard input".to_string() } else { file.display().to_string() };
    if file == Path::new("-") && arguments.read.inputs.iter().any(|input| input == Path::new("-")) {
        bail!("standard input cannot be both the trace and the queries");
    }
    let text = read(file).with_context(|| name.clone())?;
    let opening = Instant::now();
    let (fold, archive, notes) = super::open(arguments, &arguments.read, TimesKept::All)?;
    show::notes(&notes);
    if arguments.explain {
        let opened = opening.elapsed().as_nanos() as i128;
        show::notes(&[format!("opened in {}", show::duration(opened))]);
    }
    let lines = lines_of(&text, &fold);
    let has_paths = lines.iter().any(|line| matches!(line.asked, Ok(Question::Paths(_))));
    let (stored, notes) =
        if has_paths { Stored::of(archive, &arguments.read, &fold) } else { Default::default() };
    show::notes(&notes);
    let answers = answer_all(arguments, &fold, stored, &lines)?;
    let mut seen = Seen::default();
    if arguments.form.table_format().is_some() {
        tables::print_answer(&arguments.form, "queries", "queries", |out| {
            out.begin_object()?;
            out.key("queries")?;
            out.begin_array()?;
            for (line, answer) in lines.iter().zip(answers) {
                seen.write(out, &name, line, answer)?;
            }
            out.end()?;
            Ok(out.end()?)
        })?;
    } else {
        show::print_json(|out| {
            for (line, answer) in lines.iter().zip(answers) {
                seen.write(out, &name, line, answer)?;
                out.end_line()?;
            }
            Ok(())
        })?;
    }
    Ok(match seen {
        Seen { bad: true, .. } => Outcome::Failed,
        Seen { found: true, .. } => Outcome::Done,
        _ => Outcome::Nothing,
    })
}

/// Whether some query was wrong, and whether something was found.
#[derive(Default)]
struct Seen {
    bad: bool,
    found: bool,
}

impl Seen {
    /// Writes an answer, with its notes or its error beside it.
    fn write(
        &mut self,
        out: &mut JsonOut<'_>,
        name: &str,
        line: &Line,
        answer: Result<Answer, String>,
    ) -> Result<()> {
        let place = |note: &String| format!("{name}, line {}: {note}", line.number);
        match answer {
            Ok(answer) => {
                show::notes(&answer.notes.iter().map(place).collect::<Vec<_>>());
                self.found |= answer.is_found;
                Ok(out.formatted(&answer.json)?)
            }
            Err(message) => {
                self.bad = true;
                if call::is_one() {
                    show::notes(&[place(&message)]);
                } else {
                    show::error(&anyhow::anyhow!(place(&message)));
                }
                Ok(error_of_many(out, &line.text, &message, line.number)?)
            }
        }
    }
}

fn read(file: &Path) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    if file == Path::new("-") {
        files::check_input(file)?;
        std::io::stdin().lock().take(LONGEST + 1).read_to_end(&mut text)?;
    } else {
        Input::open(files::open(file)?, false)?.take(LONGEST + 1).read_to_end(&mut text)?;
    }
    if text.len() as u64 > LONGEST {
        bail!("a file of queries of more than {}", show::bytes(LONGEST));
    }
    Ok(text)
}

/// One query.
struct Line {
    /// From 1.
    number: usize,
    text: String,
    asked: Result<Question, String>,
    /// Why there is nothing to find, if the trace lacks what the query names.
    notes: Vec<String>,
}

enum Question {
    Paths(Vec<PathQuery>),
    Sequence,
}

/// The lines that are queries. Paths are read here, since those of one function share work.
fn lines_of(text: &[u8], fold: &Fold) -> Vec<Line> {
    let mut paths = Paths::of(fold);
    let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
    let mut lines = Vec::new();
    for (index, bytes) in text.split(|&byte| byte == b'\n').enumerate() {
        let bytes = bytes.trim_ascii();
        if bytes.is_empty() || bytes.starts_with(b"#") {
            continue;
        }
        let text = String::from_utf8_lossy(bytes).into_owned();
        let mut notes = Vec::new();
        let asked = match std::str::from_utf8(bytes) {
            Err(_) => Err("the query is not text in UTF-8".to_string()),
            Ok(text) => question(text, &mut paths, &mut notes).map_err(|error| error.to_string()),
        };
        lines.push(Line { number: index + 1, text, asked, notes });
    }
    lines
}

/// What a line asks, with notes on what the trace lacks.
fn question(text: &str, paths: &mut Paths<'_>, notes: &mut Vec<String>) -> loopfold::Result<Question> {
    match paths.read(text) {
        Some(Err(error)) if error.kind() == ErrorKind::NotFound => {
            notes.push(error.to_string());
            Ok(Question::Paths(Vec::new()))
        }
        Some(paths) => Ok(Question::Paths(paths?)),
        None => Ok(Question::Sequence),
    }
}

/// The answers of all lines, in order.
fn answer_all(
    arguments: &FindArgs,
    fold: &Fold,
    stored: Stored,
    lines: &[Line],
) -> Result<Vec<Result<Answer, String>>> {
    let paths = lines.iter().filter_map(|line| match &line.asked {
        Ok(Question::Paths(paths)) => Some(paths),
        _ => None,
    });
    let paths: Vec<PathQuery> = paths.flatten().cloned().collect();
    let mut searcher = Searcher::new(fold, arguments.method.wanted(), arguments.read.lenient, &stored)?;
    searcher.search_together(&paths)?;
    let batch = Batch { arguments, fold, searcher, shared: Shared::new(fold, &paths) };
    let answers: Vec<OnceLock<Result<Answer, String>>> = lines.iter().map(|_| OnceLock::new()).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while let index = next.fetch_add(1, Ordering::Relaxed)
            && let (Some(line), Some(slot)) = (lines.get(index), answers.get(index))
        {
            interrupt::poll();
            let _ = slot.set(batch.answer(line).map_err(|error| format!("{error:#}")));
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = arguments.folder.threads.unwrap_or(cores).clamp(1, lines.len().max(1));
    let interrupt = interrupt::current();
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(|| interrupt.enter(work))).collect();
        work();
        others.into_iter().for_each(|other| interrupt::joined(other.join()));
    });
    let missing = || Err("this query was not answered".to_string());
    Ok(answers.into_iter().map(|slot| slot.into_inner().unwrap_or_else(missing)).collect())
}

/// What all lines share.
struct Batch<'a> {
    arguments: &'a FindArgs,
    fold: &'a Fold,
    searcher: Searcher<'a>,
    shared: Shared<'a>,
}

/// The answer to a query.
struct Answer {
    /// As JSON, without the end of the line.
    json: Vec<u8>,
    is_found: bool,
    /// What the trace lacks.
    notes: Vec<String>,
}

impl Batch<'_> {
    fn answer(&self, line: &Line) -> Result<Answer> {
        let mut out = JsonWriter::new(Vec::new());
        let mut notes = line.notes.clone();
        let count = match &line.asked {
            Err(message) => bail!("{message}"),
            Ok(Question::Sequence) => {
                let query = Query::parse(&line.text, self.fold.alphabet())?;
                notes.extend(query.unknown_events(self.fold.alphabet()));
                let found = self.fold.find(&query)?;
                sequence_of_many(&mut out, self.fold, &line.text, &found, line.number)?;
                found.count()?
            }
            Ok(Question::Paths(paths)) => self.paths(&mut out, line, paths)?,
        };
        Ok(Answer { json: out.into_inner(), is_found: count > 0, notes })
    }

    fn paths(&self, out: &mut JsonWriter<Vec<u8>>, line: &Line, paths: &[PathQuery]) -> Result<u64> {
        let asked = search(&self.searcher, paths)?;
        let mut places = Places::new(&asked, &self.shared);
        let mut answer =
            begin_answer(out, self.fold, &asked, &line.text, self.arguments.stacks, &mut places)?;
        answer.stream_count(streams_of(self.fold, &asked).len())?;
        if self.arguments.explain {
            answer.searches(searches(&asked))?;
        }
        answer.line(line.number)?;
        answer.end()?;
        total(&asked)
    }
}
