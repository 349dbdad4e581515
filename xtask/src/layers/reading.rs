//! Checks that the command opens files only in `input::files`, which refuses those that its outputs
//! will replace.

use super::tokens::Token;

const READER: &[&str] = &["input", "files"];

/// Modules that read other files, and why they may.
const EXEMPT: &[(&[&str], &str)] = &[
    (READER, "it is what the others use"),
    (&["folding"], "reads how much memory the machine has"),
    (&["nodes"], "reads how much memory the process has"),
    (&["save"], "looks whether the output is an archive"),
    (&["commands", "skeleton", "check"], "reads what it has recorded itself"),
];

/// Functions of `std::fs` that read a file.
const READING: [&str; 2] = ["read", "read_to_string"];

/// Each place of a file of the command that opens a file by itself: the line, and what is called there.
pub(super) fn places(name: &str, module: &[String], tokens: &[Token]) -> Vec<(usize, String)> {
    let is_exempt = EXEMPT.iter().any(|(exempt, _)| module.iter().eq(exempt.iter()));
    if name != "loopfold-cli" || is_exempt {
        return Vec::new();
    }
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let is_read = |at: usize| {
        let of = if at >= 2 && text(at - 1) == "::" { text(at - 2) } else { "" };
        of == "fs" && READING.contains(&text(at)) || of == "File" && ["open", "options"].contains(&text(at))
    };
    (0..tokens.len()).filter(|&at| is_read(at)).map(|at| (tokens[at].line, text(at).to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::tokens::tokens;

    fn found(module: &[&str], source: &str) -> Vec<String> {
        let module: Vec<String> = module.iter().map(|name| name.to_string()).collect();
        places("loopfold-cli", &module, &tokens(source)).into_iter().map(|(_, what)| what).collect()
    }

    #[test]
    fn what_opens_a_file_is_found() {
        let source = "File::open(path)?; std::fs::read(path)?; fs::read_to_string(path); input.read(b)";
        assert_eq!(found(&["commands", "find"], source), ["open", "read", "read_to_string"]);
        assert_eq!(found(READER, source), [""; 0]);
    }
}
