//! Checks which module of the library uses which, and which crate uses which.
//!
//! The sources are read, not compiled: modules are followed from the root of each crate through
//! `mod` lines; in each file, comments, texts and what is only for tests are left out, and every
//! path is resolved that begins with `crate`, `self`, `super` or the name of a crate. A name that
//! the root exports again counts as the module that it comes from. A path that cannot be resolved
//! is an error, so that none is missed. Takes a fraction of a second. Which crates write files, what the
//! command reads, and what prints, is checked in the same pass (`writing`, `reading`, `printing`).
//!
//! The tables here are the only ones: `ARCHITECTURE.md` shows them, and must show the same.

mod printing;
mod reading;
mod tokens;
mod writing;

use anyhow::{Context as _, Result, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use tokens::{Token, tokens};

/// A module or a crate, and what it may use.
type Layer = (&'static str, &'static [&'static str]);

/// The modules of the library.
const MODULES: &[Layer] = &[
    ("error", &[]),
    ("interrupt", &["error"]),
    ("ids", &["error"]),
    ("emit", &[]),
    ("bytes", &["error"]),
    ("packed", &["bytes", "error"]),
    ("parallel", &["error", "interrupt"]),
    ("trace", &["bytes", "emit", "error", "ids", "interrupt"]),
    ("repeats", &["error", "ids", "interrupt", "parallel"]),
    ("fold", &["emit", "error", "ids", "interrupt", "trace"]),
    ("mpi", &["bytes", "emit", "error", "fold", "ids", "trace"]),
    ("folders", &["error", "fold", "ids", "interrupt", "parallel", "repeats", "trace"]),
    (
        "questions",
        &["bytes", "emit", "error", "fold", "ids", "interrupt", "mpi", "packed", "parallel", "trace"],
    ),
    ("archive", &["bytes", "error", "fold", "ids", "interrupt", "mpi", "packed", "trace"]),
    ("export", &["emit", "error", "fold", "ids", "trace"]),
    ("sections", &["archive", "error", "fold", "questions"]),
    ("skeleton", &["emit", "error", "fold", "ids", "mpi", "questions", "trace"]),
];

/// The crates. Tests may use `loopfold-testing` too.
const CRATES: &[Layer] = &[
    ("loopfold", &[]),
    ("loopfold-sources", &["loopfold"]),
    ("loopfold-otf2", &["loopfold", "loopfold-sources"]),
    ("loopfold-json", &["loopfold"]),
    ("loopfold-output", &[]),
    ("loopfold-paths", &[]),
    ("loopfold-pass", &["loopfold-paths"]),
    ("loopfold-record", &["loopfold", "loopfold-output", "loopfold-paths", "loopfold-sources"]),
    (
        "loopfold-cli",
        &[
            "loopfold",
            "loopfold-json",
            "loopfold-otf2",
            "loopfold-output",
            "loopfold-record",
            "loopfold-sources",
        ],
    ),
    ("loopfold-mpi", &["loopfold-cli"]),
    ("loopfold-python", &["loopfold", "loopfold-cli", "loopfold-json"]),
    ("loopfold-capi", &["loopfold", "loopfold-cli"]),
    ("loopfold-testing", &[]),
    ("xtask", &["loopfold", "loopfold-otf2", "loopfold-sources", "loopfold-testing"]),
];

/// Fails if something uses what it may not, or `ARCHITECTURE.md` shows other tables.
pub(crate) fn check(root: &Path) -> Result<()> {
    let mut wrong = Vec::new();
    for &(name, _) in CRATES {
        let folder = if name == "xtask" { root.join(name) } else { root.join("crates").join(name) };
        let of_crate = Crate::read(&folder.join("src")).with_context(|| name.to_string())?;
        let modules = if name == "loopfold" { Some(MODULES) } else { None };
        wrong.extend(of_crate.violations(name, modules)?);
    }
    let document = root.join("ARCHITECTURE.md");
    let text = std::fs::read_to_string(&document).context("ARCHITECTURE.md")?;
    for (heading, layers) in [("## Crates", CRATES), ("### `loopfold`", MODULES)] {
        wrong.extend(differences(&text, heading, layers));
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// A file of a crate: where it is, which module it is, and what is in it.
struct SourceFile {
    path: PathBuf,
    module: Vec<String>,
    tokens: Vec<Token>,
}

/// The files of a crate that are not only for tests. The root is the first.
struct Crate {
    files: Vec<SourceFile>,
}

impl Crate {
    fn read(source: &Path) -> Result<Self> {
        let roots = ["lib.rs", "main.rs"].map(|name| source.join(name));
        let root = roots.iter().find(|root| root.is_file()).context("there is no lib.rs and no main.rs")?;
        let mut files = Vec::new();
        let mut waiting = vec![(root.clone(), Vec::new())];
        while let Some((path, module)) = waiting.pop() {
            let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            let tokens = without_tests(tokens(&text));
            let folder = folder_of_children(&path, module.is_empty());
            for name in declared_modules(&tokens) {
                let candidates = [folder.join(format!("{name}.rs")), folder.join(&name).join("mod.rs")];
                let found = candidates.into_iter().find(|candidate| candidate.is_file());
                let found = found.with_context(|| format!("{}: no file of mod {name}", path.display()))?;
                waiting.push((found, [&module[..], &[name]].concat()));
            }
            files.push(SourceFile { path, module, tokens });
        }
        Ok(Self { files })
    }

    /// What uses something that it may not.
    fn violations(&self, name: &str, modules: Option<&[Layer]>) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        let exported = self.files.first().map(|root| exports(&root.tokens)).unwrap_or_default();
        for file in &self.files {
            let place = |line: usize| format!("{}:{line}", file.path.display());
            for (used, line) in crates_used(&file.tokens) {
                if used != name && !may_use(CRATES, name, &used) {
                    wrong.push(format!("{}: {name} may not use {used}", place(line)));
                }
            }
            for (line, what) in writes(name, &file.tokens) {
                if what == "File::options" && writing::may_open(&file.path) {
                    continue;
                }
                wrong.push(format!("{}: {what} writes a file; loopfold-output does that", place(line)));
            }
            for (line, what) in printing::places(name, &file.module, &file.tokens) {
                wrong.push(format!(
                    "{}: {what} opens the terminal; loopfold-cli's show does that",
                    place(line)
                ));
            }
            for (line, what) in reading::places(name, &file.module, &file.tokens) {
                wrong.push(format!("{}: {what} opens a file; input::files does that", place(line)));
            }
            // The root joins them all.
            let (Some(modules), Some(own)) = (modules, file.module.first()) else { continue };
            ensure!(
                modules.iter().any(|(known, _)| known == own),
                "the module {own} is in no table of layers"
            );
            for (used, line) in modules_used(&file.tokens, &file.module, modules, &exported) {
                match used {
                    Used::Module(used) if used == *own || may_use(modules, own, &used) => {}
                    Used::Module(used) => {
                        wrong.push(format!("{}: {own} may not use {used}", place(line)));
                    }
                    Used::Unknown(path) => {
                        wrong.push(format!("{}: {path} is in no known module", place(line)));
                    }
                }
            }
        }
        wrong.sort_unstable();
        wrong.dedup();
        Ok(wrong)
    }
}

/// Where a file of a crate writes files by itself, and what it calls or imports for that.
fn writes(name: &str, tokens: &[Token]) -> Vec<(usize, String)> {
    let mut places = writing::places(name, tokens);
    let imported = paths(tokens).into_iter().filter(|path| path.is_import && writing::imported(&path.names));
    if !writing::is_exempt(name) {
        places.extend(imported.map(|path| (path.line, path.names.join("::"))));
    }
    places
}

fn may_use(layers: &[Layer], user: &str, used: &str) -> bool {
    layers.iter().any(|(name, uses)| *name == user && uses.contains(&used))
}

/// Where the files of the modules lie that a file declares.
fn folder_of_children(path: &Path, is_root: bool) -> PathBuf {
    let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
    match path.file_stem() {
        Some(stem) if !is_root && stem != "mod" => folder.join(stem),
        _ => folder,
    }
}

/// Leaves out items with the attribute `#[cfg(test)]`.
fn without_tests(tokens: Vec<Token>) -> Vec<Token> {
    const ATTRIBUTE: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let is_at = |at: usize| {
        ATTRIBUTE
            .iter()
            .enumerate()
            .all(|(index, text)| tokens.get(at + index).is_some_and(|token| token.text == *text))
    };
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if is_at(at) {
            at = end_of_item(&tokens, at);
        } else {
            kept.push(tokens[at].clone());
            at += 1;
        }
    }
    kept
}

/// Where an item ends that begins here, with its attributes: behind the first `;` or pair of braces
/// that is not within parentheses or brackets. What is no item, such as a field, ends at a comma.
fn end_of_item(tokens: &[Token], begin: usize) -> usize {
    const ITEMS: [&str; 14] = [
        "async",
        "const",
        "enum",
        "extern",
        "fn",
        "impl",
        "let",
        "macro_rules",
        "mod",
        "static",
        "struct",
        "trait",
        "type",
        "use",
    ];
    let mut open = 0usize;
    let mut is_item = false;
    for (at, token) in tokens.iter().enumerate().skip(begin) {
        match token.text.as_str() {
            "(" | "[" | "{" => open += 1,
            ")" | "]" | "}" if open == 0 => return at,
            closing @ (")" | "]" | "}") => {
                open -= 1;
                if open == 0 && closing == "}" {
                    return at + 1;
                }
            }
            ";" if open == 0 => return at + 1,
            "," if open == 0 && !is_item => return at + 1,
            text if open == 0 => is_item |= ITEMS.contains(&text),
            _ => {}
        }
    }
    tokens.len()
}

/// The modules that have files of their own.
fn declared_modules(tokens: &[Token]) -> Vec<String> {
    let is_declared = |window: &&[Token]| window[0].text == "mod" && window[2].text == ";";
    tokens.windows(3).filter(is_declared).map(|window| window[1].text.clone()).collect()
}

/// The names that the root exports again, with the modules that they come from.
fn exports(root: &[Token]) -> BTreeMap<String, String> {
    let mut exported = BTreeMap::new();
    for path in paths(root) {
        if let (true, [module, .., name]) = (path.is_import, &path.names[..]) {
            exported.insert(name.clone(), module.clone());
        }
    }
    exported
}

/// The crates of this workspace that are named.
fn crates_used(tokens: &[Token]) -> Vec<(String, usize)> {
    let mut used = Vec::new();
    for path in paths(tokens) {
        let Some(first) = path.names.first() else { continue };
        let name = first.replace('_', "-");
        if CRATES.iter().any(|(known, _)| *known == name) {
            used.push((name, path.line));
        }
    }
    used
}

/// What a path leads to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Used {
    /// A module below the root.
    Module(String),
    /// Something else.
    Unknown(String),
}

/// The modules below the root that a file uses, its own left out.
fn modules_used(
    tokens: &[Token],
    module: &[String],
    modules: &[Layer],
    exported: &BTreeMap<String, String>,
) -> BTreeSet<(Used, usize)> {
    let mut used = BTreeSet::new();
    for path in paths(tokens) {
        let mut names = path.names.iter().map(String::as_str).peekable();
        // How deep below the root the path begins.
        let mut depth = match names.next() {
            Some("crate") => 0,
            Some("self") => module.len() + path.inline,
            Some("super") => (module.len() + path.inline).saturating_sub(1),
            _ => continue,
        };
        while names.next_if_eq(&"super").is_some() {
            depth = depth.saturating_sub(1);
        }
        if depth > 0 {
            continue;
        }
        let unknown = || Used::Unknown(path.names.join("::"));
        let found = match names.next() {
            Some(name) if modules.iter().any(|(known, _)| *known == name) => Used::Module(name.to_string()),
            Some(name) => exported.get(name).map_or_else(unknown, |from| Used::Module(from.clone())),
            None => unknown(),
        };
        used.insert((found, path.line));
    }
    used
}

/// A path as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
struct WrittenPath {
    names: Vec<String>,
    line: usize,
    /// Whether it stands in a `use`.
    is_import: bool,
    /// In how many modules it stands that have no files of their own.
    inline: usize,
}

/// All paths, in the order in which they are written; those of a `use` with braces one by one.
fn paths(tokens: &[Token]) -> Vec<WrittenPath> {
    let mut found = Vec::new();
    // Where the braces close of the modules that are open.
    let mut inline: Vec<usize> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        inline.retain(|&end| end > at);
        let text = tokens[at].text.as_str();
        if text == "mod" && tokens.get(at + 2).is_some_and(|token| token.text == "{") {
            inline.push(end_of_item(tokens, at));
            at += 3;
        } else if text == "use" && tokens.get(at + 1).is_some_and(|next| next.text != "<") {
            let before = found.len();
            at = import(tokens, at + 1, &mut Vec::new(), &mut found);
            found[before..].iter_mut().for_each(|path: &mut WrittenPath| path.inline = inline.len());
        } else if is_visibility(tokens, at) {
            // `pub(crate)`, `pub(in crate::questions)`.
            at = closing(tokens, at + 1) + 1;
        } else if tokens[at].is_name() {
            let line = tokens[at].line;
            let mut names = vec![text.to_string()];
            while let [colons, name] = &tokens[(at + 1).min(tokens.len())..(at + 3).min(tokens.len())]
                && colons.text == "::"
                && name.is_name()
            {
                names.push(name.text.clone());
                at += 2;
            }
            let is_path = names.len() > 1 || tokens.get(at + 1).is_some_and(|next| next.text == "::");
            if is_path {
                found.push(WrittenPath { names, line, is_import: false, inline: inline.len() });
            }
            at += 1;
        } else {
            at += 1;
        }
    }
    found
}

fn is_visibility(tokens: &[Token], at: usize) -> bool {
    let text = |at: usize| tokens.get(at).map(|token| token.text.as_str());
    text(at) == Some("pub") && text(at + 1) == Some("(")
}

/// Where the parenthesis closes that opens here.
fn closing(tokens: &[Token], open: usize) -> usize {
    let found = tokens[open.min(tokens.len())..].iter().position(|token| token.text == ")");
    found.map_or(tokens.len(), |length| open + length)
}

/// Takes one path of a `use`, or several in braces, behind what comes before them; returns where it
/// ends.
fn import(tokens: &[Token], mut at: usize, before: &mut Vec<String>, found: &mut Vec<WrittenPath>) -> usize {
    let depth = before.len();
    let line = tokens.get(at).map_or(0, |token| token.line);
    let mut is_grouped = false;
    while let Some(token) = tokens.get(at) {
        match token.text.as_str() {
            "{" => {
                is_grouped = true;
                at += 1;
                while tokens.get(at).is_some_and(|token| token.text != "}") {
                    at = import(tokens, at, before, found);
                    if tokens.get(at).is_some_and(|token| token.text == ",") {
                        at += 1;
                    }
                }
                at += 1;
            }
            // Another name for the same.
            "as" => at += 2,
            "," | "}" => break,
            ";" => {
                at += 1;
                break;
            }
            "::" => at += 1,
            name => {
                before.push(name.to_string());
                at += 1;
            }
        }
    }
    if !is_grouped && before.len() > depth {
        // `a::b::{self}` is `a::b`.
        let names = match before.last() {
            Some(last) if last == "self" && before.len() > 1 => before[..before.len() - 1].to_vec(),
            _ => before.clone(),
        };
        found.push(WrittenPath { names, line, is_import: true, inline: 0 });
    }
    before.truncate(depth);
    at
}

/// A table as a document shows it: the first column has the name, the last what it may use.
struct Shown<'a> {
    layers: &'a [Layer],
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, uses) in self.layers {
            writeln!(f, "| `{name}` | … | {} |", names(uses))?;
        }
        Ok(())
    }
}

fn names(uses: &[&str]) -> String {
    uses.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// What is different in the table under a heading of a document.
fn differences(document: &str, heading: &str, layers: &[Layer]) -> Option<String> {
    let rows = rows_under(document, heading);
    let expected: Vec<(String, String)> =
        layers.iter().map(|(name, uses)| (format!("`{name}`"), names(uses))).collect();
    (rows != expected)
        .then(|| format!("ARCHITECTURE.md, `{heading}`: the table has to say\n{}", Shown { layers }))
}

/// The first and the last cell of each row of the first table under a heading.
fn rows_under(document: &str, heading: &str) -> Vec<(String, String)> {
    let lines = document.lines().skip_while(|line| *line != heading).skip(1);
    let table = lines.skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let (first, last) = (cells.first().copied(), cells.last().copied());
        (first.unwrap_or_default().to_string(), last.unwrap_or_default().to_string())
    };
    // The head of the table, and the line below it.
    table.skip(2).map(row).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::fs;

    const LAYERS: &[Layer] =
        &[("fold", &[]), ("archive", &["fold"]), ("questions", &["fold"]), ("error", &[])];

    /// The modules that a file of `archive::read` uses.
    fn used(source: &str) -> Vec<String> {
        let root = tokens("pub mod fold; mod error; pub use error::{Error, Result}; pub use fold::Fold;");
        let module = ["archive".to_string(), "read".to_string()];
        let tokens = without_tests(tokens(source));
        let found = modules_used(&tokens, &module, LAYERS, &exports(&root));
        found
            .into_iter()
            .map(|(used, _)| match used {
                Used::Module(name) => name,
                Used::Unknown(path) => format!("unknown {path}"),
            })
            .collect()
    }

    fn check(source: &str, expected: &[&str]) {
        assert_eq!(used(source), expected, "{source}");
    }

    #[test]
    fn imports_are_found() {
        check("use crate::fold::Item;", &["fold"]);
        check("pub use crate::questions::query::Query;", &["questions"]);
        check("pub(crate) use crate::questions::query::Query as Other;", &["questions"]);
        check("use crate::{fold::{self, Item}, questions::path::{Levels, Scheme}};", &["fold", "questions"]);
        check("use crate::fold;", &["fold"]);
        check("use super::super::questions::Query;", &["questions"]);
        check("use self::super::super::fold::Item;", &["fold"]);
        check("use {crate::fold::Item, std::fmt};", &["fold"]);
        check("fn f() { use crate::fold::Item; }", &["fold"]);
    }

    #[test]
    fn what_the_root_exports_is_its_module() {
        check("use crate::{Error, Fold, Result};", &["error", "fold"]);
        check("fn f(fold: &crate::Fold) {}", &["fold"]);
        check("use crate::Unheard;", &["unknown crate::Unheard"]);
        check("use crate::*;", &["unknown crate::*"]);
        check("use crate as all;", &["unknown crate"]);
    }

    #[test]
    fn paths_in_code_are_found() {
        check("fn f() { crate::questions::ask(1); }", &["questions"]);
        check("impl super::super::questions::Ask for X {}", &["questions"]);
        check(
            "fn f(x: Vec<crate::fold::Item>) -> <X as crate::questions::Ask>::Answer {}",
            &["fold", "questions"],
        );
        check("mod inner { fn f() { super::super::super::fold::g() } }", &["fold"]);
        check("macro_rules! m { () => { $crate::questions::ask() } }", &["questions"]);
    }

    #[test]
    fn what_stays_within_a_module_is_no_dependency() {
        check("use super::layout::Section; use self::inner::X; use std::io::Read;", &[]);
        check("mod inner { use super::super::layout::Section; }", &[]);
        check("pub(in crate::archive) fn f() -> impl Ord + use<> {}", &[]);
        check("let fold = questions::path; fold::x();", &[]);
    }

    #[test]
    fn documents_texts_and_tests_do_not_count() {
        check(
            "//! [`Query`](crate::questions::query::Query)\n/// use crate::questions::query::Query;\nfn f() {}",
            &[],
        );
        check("/* crate::questions */ const A: &str = \"crate::questions::x\";", &[]);
        check(
            "#[cfg(test)]\nmod tests { use crate::questions::query::Query; } use crate::fold::Item;",
            &["fold"],
        );
        check(
            "#[cfg(test)]\n#[allow(unused)]\nuse crate::questions::query::Query;\nuse crate::fold::Item;",
            &["fold"],
        );
        check(
            "#[cfg(test)] fn f<A, B>() -> [u8; 3] { crate::questions::x() } use crate::fold::Item;",
            &["fold"],
        );
        check("struct S { #[cfg(test)] a: crate::questions::A, b: crate::fold::B }", &["fold"]);
        check("enum E { A, #[cfg(test)] B(crate::questions::A) } use crate::fold::Item;", &["fold"]);
    }

    #[test]
    fn crates_are_found() {
        let crates = |source: &str| {
            let names: Vec<String> = crates_used(&tokens(source)).into_iter().map(|(name, _)| name).collect();
            names.join(" ")
        };
        assert_eq!(
            crates("use loopfold_sources::Input; fn f() { loopfold::fold::g() }"),
            "loopfold-sources loopfold"
        );
        assert_eq!(crates("use {loopfold::Fold, loopfold_otf2 as otf2};"), "loopfold loopfold-otf2");
        assert_eq!(crates("/// loopfold::Fold\nuse std::fmt; let loopfold = x.loopfold;"), "");
    }

    /// A whole crate, on disk.
    fn violations(files: &[(&str, &str)]) -> Result<Vec<String>> {
        let folder = tempfile::tempdir()?;
        for (name, source) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap())?;
            fs::write(path, source)?;
        }
        let wrong = Crate::read(folder.path())?.violations("loopfold", Some(LAYERS))?;
        let prefix = folder.path().display().to_string();
        Ok(wrong.into_iter().map(|line| line.replace(&prefix, "")).collect())
    }

    #[test]
    fn a_crate_is_followed_from_its_root() {
        let files = [
            ("lib.rs", "pub mod archive; pub mod fold; mod error; pub use fold::Fold;"),
            ("archive/mod.rs", "mod read;\n#[cfg(test)]\nmod tests;"),
            ("archive/read.rs", "mod deep;\nuse crate::Fold;"),
            (
                "archive/read/deep.rs",
                "\nuse super::super::super::questions::Query;\nuse loopfold_sources::Input;",
            ),
            ("archive/tests.rs", "use crate::questions::query::Query;"),
            ("fold.rs", "fn f() { crate::archive::write() }"),
            ("error.rs", ""),
        ];
        let expected = [
            "/archive/read/deep.rs:2: archive may not use questions",
            "/archive/read/deep.rs:3: loopfold may not use loopfold-sources",
            "/fold.rs:1: fold may not use archive",
        ];
        assert_eq!(violations(&files).unwrap(), expected);
        assert!(violations(&files[..1]).unwrap_err().to_string().contains("no file of mod"));
        let unheard = [("lib.rs", "mod unheard;"), ("unheard.rs", "")];
        assert!(violations(&unheard).unwrap_err().to_string().contains("unheard"));
    }

    #[test]
    fn a_document_must_show_the_table() {
        let document = "## Crates\n\n| a | what | uses |\n| --- | --- | --- |\n| `fold` | rules | |\n\
                        | `archive` | a file | `fold` |\n\n## More\n\n| x | y |\n| --- | --- |\n| `z` | `y` |\n";
        let layers: &[Layer] = &[("fold", &[]), ("archive", &["fold"])];
        assert_eq!(differences(document, "## Crates", layers), None);
        assert_eq!(differences(document, "## More", &[("z", &["y"])]), None);
        let wrong: [&[Layer]; 3] =
            [&layers[..1], &[("fold", &[]), ("archive", &[])], &[("archive", &["fold"]), ("fold", &[])]];
        for layers in wrong {
            let wrong = differences(document, "## Crates", layers).unwrap();
            assert!(wrong.contains("ARCHITECTURE.md") && wrong.contains("| `fold` |"), "{wrong}");
        }
        assert!(differences(document, "## Nowhere", layers).is_some());
    }

    #[test]
    fn the_layers_of_this_repository_hold() {
        super::check(&crate::root()).unwrap();
    }
}
