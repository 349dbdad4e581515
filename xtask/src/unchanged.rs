//! `cargo xtask unchanged --before COMMAND`: whether two builds of the command answer the same.
//!
//! Each question is asked of both builds about each trace, as text and as JSON: what they print, on
//! both outputs, the exit status, and what they write must be equal, byte for byte. A refactoring is
//! shown harmless by it, and what a change changes is listed.
//!
//! A question about one input goes to both builds one after the other; answers are compared as hashes,
//! as some have hundreds of megabytes, and asked again where they differ, for the first line that does.

use crate::Arguments;
use anyhow::{Context as _, Result, ensure};
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// What is asked about every input, without it. `{event}` and `{other}` are its two most frequent events,
/// and `{output}` a file to write.
const QUESTIONS: &[&str] = &[
    "loops",
    "loops --json",
    "loops --exact",
    "loops --exact --json",
    "loops --align --json",
    "loops --full",
    "loops --table csv",
    "loops --logical",
    "loops --logical --json",
    "loops --patterns",
    "loops --patterns --json",
    "loops --peers relative --json",
    "loops --only {event} --json",
    "loops --folder guarded --json",
    "iterations",
    "iterations --list",
    "iterations --list --json",
    "iterations --json",
    "iterations --slow 3",
    "iterations --slow 3 --json",
    "iterations --table csv",
    "iterations --within {event} --json",
    "stats",
    "stats --json",
    "stats --streams",
    "stats --streams --json",
    "stats --table csv",
    "cat --to 3000",
    "cat --to 3000 --json",
    "cat --to 3000 --times",
    "cat --iterations 1 --json",
    "cat --to 3000 --table csv",
    "hot",
    "hot --json",
    "hot --cost time --json",
    "hot --table csv",
    "patterns",
    "patterns --json",
    "patterns --kind process --json",
    "patterns --table csv",
    "waits",
    "waits --json",
    "waits --table csv",
    "verify",
    "verify --json",
    "export --to grammar",
    "export --to dot",
    "skeleton --output {output}",
    "skeleton --scale 1/2 --output {output}",
    "fold --output {output}",
    "fold --output {output} --times none --json",
    "fold --output {output} --times summary --folder outermost",
    "fold --output {output} --folder sequitur-runs --chunks",
    "merge --output {output}",
];

/// What is asked with words after the input.
const QUERIES: &[(&str, &[&str])] = &[
    ("context", &["{event}"]),
    ("context --json", &["{event}"]),
    ("context --table csv", &["{event}"]),
    ("find", &["{event}"]),
    ("find --json", &["{event} {other}"]),
    ("find --all --top 200 --json", &["{event}"]),
    ("find --table csv", &["{other}"]),
    ("find --before {other} --json", &["{event}"]),
    ("similar", &["{event} {other}"]),
    ("similar --json", &["{event} {other} {event}"]),
];

/// Runs the chore.
pub(crate) fn run(mut arguments: Arguments) -> Result<()> {
    let before = arguments.option("--before")?.context("name the other build with --before COMMAND")?;
    let after = match arguments.option("--after")? {
        Some(after) => PathBuf::from(after),
        None => crate::build::build()?.join("loopfold"),
    };
    let traces = arguments.option("--traces")?;
    let only = arguments.option("--only")?;
    let limit = arguments.option("--limit")?.map_or(Ok(60), |limit| limit.parse())?;
    arguments.finish()?;
    let place = Place::new([before.into(), after], Duration::from_secs(limit))?;
    let mut inputs = place.inputs(&crate::root().join("examples"))?;
    if let Some(traces) = traces {
        inputs.extend(place.inputs(Path::new(&traces))?);
    }
    inputs.retain(|input| only.as_ref().is_none_or(|only| input.to_string_lossy().contains(only.as_str())));
    let mut counts = Counts::default();
    for input in &inputs {
        let counted = place.ask_all(input)?;
        println!("{}  {}", counted.line(), input.display());
        counts.add(&counted);
    }
    println!("{}  in all, of {} inputs", counts.line(), inputs.len());
    ensure!(counts.different == 0, "{} answers differ", counts.different);
    Ok(())
}

/// How many answers there were.
#[derive(Default)]
struct Counts {
    equal: usize,
    different: usize,
    /// Of those that are equal, the ones that both builds refuse.
    refused: usize,
    /// Not compared, as one of the builds took too long.
    late: usize,
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.equal += other.equal;
        self.different += other.different;
        self.refused += other.refused;
        self.late += other.late;
    }

    fn line(&self) -> String {
        let Self { equal, different, refused, late } = self;
        format!("{equal:>5} equal ({refused} of them errors), {different} different, {late} too late")
    }
}

/// Both builds, and a folder for what they write.
struct Place {
    commands: [PathBuf; 2],
    limit: Duration,
    folder: TempDir,
}

/// What a build answers, without its content.
#[derive(PartialEq, Eq)]
struct Answer {
    status: Option<i32>,
    output: u64,
    notes: u64,
    written: Option<u64>,
}

impl Place {
    fn new(commands: [PathBuf; 2], limit: Duration) -> Result<Self> {
        let absolute = |path: PathBuf| path.canonicalize().with_context(|| path.display().to_string());
        let [before, after] = commands;
        Ok(Self { commands: [absolute(before)?, absolute(after)?], limit, folder: tempfile::tempdir()? })
    }

    /// The traces in a folder and those in it; packed archives of OTF2 are unpacked.
    fn inputs(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        let mut inputs = Vec::new();
        let mut entries: Vec<PathBuf> = Vec::new();
        for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
            entries.push(entry?.path());
        }
        entries.sort();
        for path in entries {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                inputs.extend(self.inputs(&path)?);
            } else if name.ends_with(".otf2.tar.zst") {
                inputs.push(self.unpacked(&path, &name)?);
            } else if is_trace(&name) {
                inputs.push(path.canonicalize()?);
            }
        }
        Ok(inputs)
    }

    fn unpacked(&self, path: &Path, name: &str) -> Result<PathBuf> {
        let to = self.folder.path().join(name.trim_end_matches(".tar.zst"));
        fs::create_dir(&to)?;
        let mut unpacking = Command::new("tar").args(["-x", "-C"]).arg(&to).stdin(Stdio::piped()).spawn()?;
        if let Some(mut input) = unpacking.stdin.take() {
            io::copy(&mut zstd::Decoder::new(File::open(path)?)?, &mut input)?;
        }
        ensure!(unpacking.wait()?.success(), "{}: tar fails", path.display());
        // The archive is the folder, or one in it.
        let mut inner = fs::read_dir(&to)?.filter_map(|entry| Some(entry.ok()?.path()));
        Ok(inner.find(|path| path.is_dir() && path.join("traces.otf2").is_file()).unwrap_or(to))
    }

    fn ask_all(&self, input: &Path) -> Result<Counts> {
        let events = self.frequent_events(input);
        let mut counts = Counts::default();
        let questions = QUESTIONS.iter().map(|question| (*question, &[][..]));
        for (question, query) in questions.chain(QUERIES.iter().copied()) {
            let Some(arguments) = arguments(question, query, input, &events) else { continue };
            let (Some(before), Some(after)) = (self.answer(0, &arguments)?, self.answer(1, &arguments)?)
            else {
                counts.late += 1;
                continue;
            };
            if before == after {
                counts.equal += 1;
                counts.refused += usize::from(before.status == Some(2));
            } else {
                counts.different += 1;
                println!("  {}", arguments.join(" "));
                self.show_difference(&arguments, [&before, &after])?;
            }
        }
        Ok(counts)
    }

    /// The two most frequent events, as the earlier build has them.
    fn frequent_events(&self, input: &Path) -> Vec<String> {
        let asked = Command::new(&self.commands[0]).args(["stats", "--json"]).arg(input).output();
        let answer = asked.ok().and_then(|asked| serde_json::from_slice(&asked.stdout).ok());
        let answer: serde_json::Value = answer.unwrap_or_default();
        let rows = answer["frequent"].as_array().into_iter().flatten();
        let label = |row: &serde_json::Value| Some(format!("'{}'", row["event"].as_str()?));
        rows.filter_map(label).filter(|label| label.len() < 200).take(2).collect()
    }

    fn command(&self, build: usize, arguments: &[String]) -> Command {
        let mut command = Command::new(&self.commands[build]);
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env("COLUMNS", "100");
        command
    }

    /// What a build answers; `None` if it takes too long.
    fn answer(&self, build: usize, arguments: &[String]) -> Result<Option<Answer>> {
        let written = self.folder.path().join(OUTPUT);
        let _ = fs::remove_file(&written);
        let mut child =
            self.command(build, arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let (output, notes) = (child.stdout.take(), child.stderr.take());
        let output = std::thread::spawn(move || output.map_or(Ok(0), hash_of));
        let notes = std::thread::spawn(move || notes.map_or(Ok(0), hash_of));
        let status = self.wait(&mut child)?;
        let joined = |thread: std::thread::JoinHandle<io::Result<u64>>| thread.join().unwrap_or(Ok(0));
        let (output, notes) = (joined(output)?, joined(notes)?);
        let Some(status) = status else { return Ok(None) };
        let written = File::open(written).ok().map(hash_of).transpose()?;
        Ok(Some(Answer { status: status.code(), output, notes, written }))
    }

    /// How it ended; `None` if it was ended here.
    fn wait(&self, child: &mut Child) -> Result<Option<std::process::ExitStatus>> {
        let started = Instant::now();
        let mut pause = Duration::from_millis(1);
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(Some(status));
            }
            if started.elapsed() > self.limit {
                child.kill()?;
                child.wait()?;
                return Ok(None);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }

    /// Asks again for what is different, and prints the first lines that are.
    fn show_difference(&self, arguments: &[String], [before, after]: [&Answer; 2]) -> Result<()> {
        if before.status != after.status {
            println!("    status {:?} and {:?}", before.status, after.status);
        }
        if before.written != after.written {
            println!("    what is written differs");
        }
        let [first, second] = [self.command(0, arguments).output()?, self.command(1, arguments).output()?];
        for (one, other) in [(&first.stdout, &second.stdout), (&first.stderr, &second.stderr)] {
            if let Some((one, other)) = first_difference(one, other) {
                println!("    - {one}\n    + {other}");
            }
        }
        Ok(())
    }
}

/// The file that questions write, where they do.
const OUTPUT: &str = "written";

fn is_trace(name: &str) -> bool {
    let is_text = [".md", ".py", ".c", ".h", ".sh", ".f90", ".cpp"].iter().any(|it| name.ends_with(it));
    !is_text
}

fn arguments(question: &str, query: &[&str], input: &Path, events: &[String]) -> Option<Vec<String>> {
    let mut filled = Vec::new();
    for word in question.split(' ') {
        filled.push(fill(word, events)?);
    }
    filled.push(input.to_str()?.to_string());
    for word in query {
        filled.push(fill(word, events)?);
    }
    Some(filled)
}

/// `None` if an input has not so many events.
fn fill(word: &str, events: &[String]) -> Option<String> {
    let mut filled = word.replace("{output}", OUTPUT);
    for (name, event) in [("{event}", events.first()), ("{other}", events.get(1))] {
        if filled.contains(name) {
            filled = filled.replace(name, event?);
        }
    }
    Some(filled)
}

fn hash_of(mut from: impl Read) -> io::Result<u64> {
    let mut hasher = DefaultHasher::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(hasher.finish()),
            length => hasher.write(&buffer[..length]),
        }
    }
}

/// The first lines that differ, cut where that is shown.
fn first_difference(one: &[u8], other: &[u8]) -> Option<(String, String)> {
    let at = one.iter().zip(other).position(|(one, other)| one != other);
    let at = at.or((one.len() != other.len()).then_some(one.len().min(other.len())))?;
    let begin = one[..at].iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    let begin = begin.max(at.saturating_sub(60));
    let shown = |bytes: &[u8]| {
        let line = bytes.get(begin..).unwrap_or_default().split(|&byte| byte == b'\n').next();
        let line = line.unwrap_or_default();
        String::from_utf8_lossy(&line[..line.len().min(160)]).escape_debug().to_string()
    };
    Some((shown(one), shown(other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_that_of_lines() {
        let found = first_difference(b"same\nleft 1\n", b"same\nleft 2\n");
        assert_eq!(found, Some(("left 1".to_string(), "left 2".to_string())));
        assert_eq!(first_difference(b"x", b"x"), None);
        assert_eq!(first_difference(b"x", b"xy"), Some(("x".to_string(), "xy".to_string())));
    }

    #[test]
    fn questions_on_events_need_as_many() {
        let ask = |events: &[&str]| {
            let events: Vec<String> = events.iter().map(|event| event.to_string()).collect();
            arguments("find --json", &["{event} {other}"], Path::new("t"), &events)
        };
        assert_eq!(ask(&["a"]), None);
        assert_eq!(ask(&["a", "b"]).map(|words| words.join("|")).as_deref(), Some("find|--json|t|a b"));
    }
}
