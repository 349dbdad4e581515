//! Checks that only `loopfold-output` creates, renames and removes files.
//!
//! The names are searched for in the tokens of the sources that are not only for tests. So a file that
//! a function of another name writes would be missed, such as one that a library is given the path of:
//! such paths are in private folders of `loopfold-output`.

use super::tokens::Token;
use std::path::Path;

/// The crate that writes files.
const WRITER: &str = "loopfold-output";

/// Crates that do so themselves, and why they may.
const EXEMPT: &[(&str, &str)] = &[
    (WRITER, "it is what the others use"),
    ("loopfold-testing", "writes what tests read"),
    ("xtask", "writes into the repository and into folders of its own"),
];

/// Files that open what is there already to be written, and why they may.
const MAY_OPEN: &[(&str, &str)] =
    &[("loopfold-record/src/helper.rs", "opens the memory that it shares, by its descriptor")];

/// Functions of `std::fs` that change what is on disk, and types that lead there.
const CHANGING: [&str; 15] = [
    "copy",
    "create_dir",
    "create_dir_all",
    "hard_link",
    "remove_dir",
    "remove_dir_all",
    "remove_file",
    "rename",
    "set_permissions",
    "soft_link",
    "symlink",
    "write",
    "DirBuilder",
    "OpenOptions",
    "OpenOptionsExt",
];

/// Calls of rustix that do.
const CALLS: [&str; 12] = [
    "linkat",
    "mkdir",
    "mkdirat",
    "openat",
    "rename_with",
    "renameat",
    "renameat_with",
    "symlinkat",
    "unlink",
    "unlinkat",
    "tempdir",
    "tempfile",
];

/// Functions of `File` that open a file to be written.
const OPENING: [&str; 2] = ["create", "create_new"];

/// Options of opening that let a file be written: `File::options().write(true)`.
const OPTIONS: [&str; 5] = ["write", "append", "create", "create_new", "truncate"];

pub(super) fn is_exempt(name: &str) -> bool {
    EXEMPT.iter().any(|(exempt, _)| *exempt == name)
}

/// Whether a file may open what is there already.
pub(super) fn may_open(path: &Path) -> bool {
    MAY_OPEN.iter().any(|(file, _)| path.ends_with(file))
}

/// Each place of a file of a crate that writes files without `loopfold-output`: the line, and what is
/// called there.
pub(super) fn places(name: &str, tokens: &[Token]) -> Vec<(usize, String)> {
    if is_exempt(name) {
        return Vec::new();
    }
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let mut places = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let is_called = text(at + 1) == "(" || text(at + 1) == "::";
        let before = |back: usize| at.checked_sub(back).map_or("", text);
        let of = if before(1) == "::" { before(2) } else { "" };
        let found = match token.text.as_str() {
            word if of == "fs" && CHANGING.contains(&word) => true,
            word if of == "File" && OPENING.contains(&word) => true,
            "OpenOptions" | "DirBuilder" => true,
            word if CALLS.contains(&word) && before(1) != "fn" && before(1) != "." => is_called,
            "options" if of == "File" => may_write(&tokens[at + 1..]),
            // `options.create(true)`
            "create" | "create_new" if before(1) == "." && text(at + 1) == "(" => text(at + 2) == "true",
            _ => false,
        };
        if found {
            let path = if of.is_empty() { String::new() } else { format!("{of}::") };
            places.push((token.line, format!("{path}{}", token.text)));
        }
    }
    places
}

/// Whether what is opened with these options may be written: unless, up to `open`, no option lets it.
fn may_write(options: &[Token]) -> bool {
    let text = |at: usize| options.get(at).map_or("", |token| token.text.as_str());
    let end = (0..options.len()).find(|&at| text(at) == "open" || [";", "{", "}"].contains(&text(at)));
    let end = end.filter(|&end| text(end) == "open");
    let is_set =
        |at: usize| at > 0 && text(at - 1) == "." && OPTIONS.contains(&text(at)) && text(at + 2) != "false";
    // What is opened elsewhere may get more options until then.
    end.is_none_or(|end| (0..end).any(is_set))
}

/// Imported names are used without `fs::` before them.
pub(super) fn imported(path: &[String]) -> bool {
    match path {
        [.., module, name] => module == "fs" && CHANGING.contains(&name.as_str()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::tokens::tokens;

    fn found(source: &str) -> Vec<String> {
        places("loopfold-cli", &tokens(source)).into_iter().map(|(_, what)| what).collect()
    }

    #[test]
    fn what_writes_a_file_is_found() {
        assert_eq!(found("std::fs::write(path, text)?;"), ["fs::write"]);
        assert_eq!(found("fs::rename(a, b)"), ["fs::rename"]);
        assert_eq!(found("let file = File::create(path)?;"), ["File::create"]);
        assert_eq!(found("File::options().write(true).create(true).open(path)"), ["File::options", "create"]);
        assert_eq!(found("let file = File::options().append(true).open(path)?;"), ["File::options"]);
        assert_eq!(found("File::options().read(true).truncate(true).open(path)"), ["File::options"]);
        assert_eq!(found("fs::File::options().read(true).write(is_new).open(path)"), ["File::options"]);
        assert_eq!(found("let mut options = File::options(); options.write(true);"), ["File::options"]);
        assert_eq!(found("fn open(options: &mut OpenOptions) {}"), ["OpenOptions"]);
        assert_eq!(found("OpenOptions::new()"), ["OpenOptions"]);
        assert_eq!(found("let folder = tempfile::tempdir()?;"), ["tempfile", "tempfile::tempdir"]);
        assert_eq!(found("rustix::fs::unlinkat(folder, name, flags)"), ["fs::unlinkat"]);
    }

    #[test]
    fn what_reads_or_is_another_function_is_not() {
        assert_eq!(found("std::fs::read(path)?; File::open(path); file.write(b); write(&mut out)"), [""; 0]);
        assert_eq!(found("// fs::write(a, b)\nconst A: &str = \"fs::write\"; fn rename(self) {}"), [""; 0]);
        assert_eq!(
            found("PartFile::create(folder, rank); output.create(); File::options().read(true).open(path)"),
            [""; 0]
        );
        assert_eq!(found("column.append(true); out.write(buffer)?; source.options()"), [""; 0]);
        assert_eq!(found("File::options().write(false).read(true).open(path)"), [""; 0]);
        assert_eq!(places(WRITER, &tokens("std::fs::write(path, text)?;")), []);
    }

    #[test]
    fn imports_are_found() {
        let path = |text: &str| text.split("::").map(str::to_string).collect::<Vec<_>>();
        assert!(imported(&path("std::fs::write")) && imported(&path("std::fs::OpenOptions")));
        assert!(!imported(&path("std::fs::File")) && !imported(&path("std::fmt::write")));
    }
}
