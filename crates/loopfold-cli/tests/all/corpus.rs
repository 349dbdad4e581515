//! Every case of the corpus, given to every command: as an archive with its times, and as a
//! grammar that the library did not write.

use crate::support::corpus::trace_of;
use crate::support::{Folder, Run, run};
use loopfold::Symbol;
use loopfold::archive;
use loopfold::folders::{Auto, fold_trace};
use loopfold::trace::Role;
use loopfold_testing::corpus::{self, Case};

/// A case as files, and words of a query that occurs in it.
struct Files {
    case: Case,
    archive: String,
    grammar: String,
    events: u64,
    /// Two events beside each other, or one; nothing if there are none.
    query: Option<String>,
    /// The first of them.
    event: Option<String>,
    /// The first two sends, receives or collectives: where there are any, nothing else is compared.
    messages: Option<String>,
}

impl Files {
    fn new(case: Case, folder: &Folder) -> Self {
        let grammar = folder.file(&format!("{}.grammar", case.name), case.grammar());
        let trace = trace_of(&case);
        let middle = trace.streams.iter().find(|stream| !stream.symbols.is_empty()).map(|stream| {
            let symbols = &stream.symbols[stream.symbols.len() / 2..];
            symbols.iter().take(2).map(|&symbol| word(&trace.alphabet.label(symbol))).collect::<Vec<_>>()
        });
        let all = trace.streams.iter().flat_map(|stream| &stream.symbols);
        let is_message = |&symbol: &Symbol| {
            matches!(trace.alphabet.meaning(symbol).role, Role::Send | Role::Receive | Role::Collective)
        };
        let messages: Vec<String> = all
            .copied()
            .filter(is_message)
            .take(2)
            .map(|symbol| word(&trace.alphabet.label(symbol)))
            .collect();
        let fold = fold_trace(trace, &Auto, 1).unwrap();
        let mut file = Vec::new();
        archive::write(&fold, &mut file).unwrap();
        let archive = folder.file(&format!("{}.fold", case.name), file);
        let messages = Some(messages.join(" ")).filter(|words| !words.is_empty());
        let event = middle.as_ref().map(|words| words[0].clone());
        let query = middle.map(|words| words.join(" "));
        Self { case, archive, grammar, events: fold.events().unwrap(), query, event, messages }
    }

    /// Runs a command on the archive, and with JSON on both files.
    fn check(&self, command: &[&str], arguments: &[&str]) {
        let plain = self.run(&[command, &[&self.archive], arguments].concat());
        for input in [&self.archive, &self.grammar] {
            let json = self.run(&[command, &["--json", input], arguments].concat());
            assert_eq!(plain.code, json.code, "{}: {command:?}: {}", self.case.name, plain.err);
            json.json();
        }
    }

    /// Waits are found if there are times, which a grammar does not have.
    fn check_waits(&self) {
        let commands = [&["waits"][..], &["waits", "--json"], &["waits", "--correct-clocks"]];
        for command in commands {
            let arguments = [command, &[&self.archive]].concat();
            if self.case.streams.iter().any(|stream| !stream.clock.is_empty()) {
                self.run(&arguments);
            } else if !self.case.streams.is_empty() {
                run(&arguments).fails_with(&["the times of every event"]);
            }
        }
        if !self.case.streams.is_empty() {
            run(&["waits", &self.grammar]).fails_with(&["the times of every event"]);
        }
    }

    /// A command that ends well: 0, or 1 if there is nothing. No name drives a terminal.
    fn run(&self, arguments: &[&str]) -> Run {
        let run = run(arguments);
        assert!(matches!(run.code, Some(0 | 1)), "{}: {arguments:?}: {}", self.case.name, run.err);
        let drives =
            |letter: char| letter == '\u{202e}' || (letter.is_control() && !matches!(letter, '\n' | '\t'));
        // Names as they are leave through `cat` alone.
        let is_raw = arguments[0] == "cat" && !arguments.contains(&"--json");
        assert!(
            is_raw || !run.text().contains(drives),
            "{}: {arguments:?}: {:?}",
            self.case.name,
            run.text()
        );
        self.fits(arguments, &run.text());
        run
    }

    /// What is printed to be read is no wider than 80 columns.
    fn fits(&self, arguments: &[&str], text: &str) {
        const DATA: [&str; 6] = ["--json", "--all", "--csv", "--matrix", "--full", "--queries"];
        let is_read = !matches!(arguments[0], "cat" | "export" | "find" | "fold" | "merge" | "verify");
        if is_read && !arguments.iter().any(|argument| DATA.contains(argument)) {
            let wide = text.lines().find(|line| line.chars().count() > 80);
            assert_eq!(wide, None, "{}: {arguments:?}", self.case.name);
        }
    }
}

/// The label of an event as a word of a query.
fn word(label: &str) -> String {
    let quote = if label.contains('\'') { '"' } else { '\'' };
    format!("{quote}{label}{quote}")
}

fn every_case(check: impl Fn(&Files, &Folder)) {
    let folder = Folder::new();
    for case in corpus::all() {
        check(&Files::new(case, &folder), &folder);
    }
}

#[test]
fn commands_without_a_query() {
    every_case(|files, _| {
        for command in ["loops", "stats", "cat", "hot", "patterns"] {
            files.check(&[command], &[]);
        }
        files.check(&["loops", "--align", "calls"], &[]);
        files.run(&["cat", "--times", &files.archive]);
        files.check_waits();
        let stats = run(&["stats", "--json", &files.archive]).ok().json();
        assert_eq!(stats["events"], files.events);
        assert_eq!(stats["streams"], files.case.streams.len());
    });
}

#[test]
fn commands_with_a_query() {
    every_case(|files, _| {
        let (Some(query), Some(event)) = (&files.query, &files.event) else { return };
        files.check(&["find"], &[query]);
        files.check(&["find", "--before", event], &[query]);
        files.check(&["context"], &[event]);
        let count = |input| run(&["find", "--json", input, query]).ok().json()["count"].clone();
        assert_eq!(count(&files.archive), count(&files.grammar), "{}", files.case.name);
        files.check(&["similar", "--edits", "0"], &[files.messages.as_ref().unwrap_or(query)]);
    });
}

#[test]
fn commands_that_write() {
    every_case(|files, folder| {
        let [folded, joined] = ["folded.fold", "joined.fold"].map(|name| folder.at(name));
        files.run(&["fold", "--json", &files.grammar, "-o", &folded]).ok().json();
        files.run(&["merge", "--json", &files.archive, &folded, "-o", &joined]).ok().json();
        for file in [&folded, &joined] {
            files.run(&["verify", "--json", file]).ok().json();
        }
        let stats = run(&["stats", "--json", &joined]).ok().json();
        assert_eq!(stats["events"], 2 * files.events);
        files.run(&["export", &files.archive, "--to", "dot", "--limit", "10000"]).ok();
        // What is exported is read as the same again.
        let text = files.run(&["export", &files.archive, "--to", "grammar"]).ok().out;
        let again = folder.file("again.grammar", &text);
        assert_eq!(run(&["export", &again, "--to", "grammar"]).ok().out, text);
    });
}
