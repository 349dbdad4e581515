//! Response files: `@FILE` among arguments stands for the arguments in the file.

use crate::{Error, Result};
use std::path::Path;

/// Files in files are read to this depth.
const DEPTH: usize = 16;

/// The arguments with those of all files. A file that does not exist is an argument, as for gcc.
pub(super) fn expand(arguments: &[String]) -> Result<Vec<String>> {
    let mut expanded = Vec::new();
    expand_into(arguments, &mut expanded, 0)?;
    Ok(expanded)
}

fn expand_into(arguments: &[String], expanded: &mut Vec<String>, depth: usize) -> Result<()> {
    for argument in arguments {
        let file = argument.strip_prefix('@').map(Path::new).filter(|path| path.is_file());
        let Some(file) = file else {
            expanded.push(argument.clone());
            continue;
        };
        if depth == DEPTH {
            return Err(Error::at(file, "response files are nested too deeply"));
        }
        let text = std::fs::read_to_string(file).map_err(|error| Error::at(file, error))?;
        expand_into(&split(&text), expanded, depth + 1)?;
    }
    Ok(())
}

/// Arguments as in a shell: separated by space, with quotes and backslashes.
fn split(text: &str) -> Vec<String> {
    let (mut all, mut current) = (Vec::new(), None::<String>);
    let mut quote = None;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (None, space) if space.is_whitespace() => all.extend(current.take()),
            (None, '"' | '\'') => {
                quote = Some(character);
                current.get_or_insert_default();
            }
            (Some(open), close) if open == close => quote = None,
            (None | Some('"'), '\\') => current.get_or_insert_default().extend(characters.next()),
            (_, other) => current.get_or_insert_default().push(other),
        }
    }
    all.extend(current);
    all
}

#[cfg(test)]
mod tests {
    use super::{expand, split};

    #[test]
    fn quotes_and_backslashes() {
        assert_eq!(
            split("a  b\n'c d' \"e \\\" f\" g\\ h '' x\"y\"z"),
            ["a", "b", "c d", "e \" f", "g h", "", "xyz"]
        );
        assert!(split(" \n").is_empty());
    }

    #[test]
    fn files_in_files() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        std::fs::write(&one, format!("-a @{} -b", two.display())).unwrap();
        std::fs::write(&two, "-c").unwrap();
        let of = |path: &std::path::Path| format!("@{}", path.display());
        assert_eq!(expand(&[of(&one), "@nowhere".into()]).unwrap(), ["-a", "-c", "-b", "@nowhere"]);
        std::fs::write(&two, of(&one)).unwrap();
        assert!(expand(&[of(&one)]).is_err());
    }
}
