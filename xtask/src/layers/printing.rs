//! Checks that only `show` of the command opens the terminal: what is printed passes its `Screen`, which
//! lets nothing through that drives a terminal, whatever name was formatted.

use super::tokens::Token;

/// Crates that print themselves, and why they may.
const EXEMPT: &[(&str, &str)] = &[
    ("loopfold-output", "writes what it is given, to whatever the user named"),
    ("loopfold-mpi", "prints two messages of its own, before the command begins"),
    ("loopfold-pass", "is started by a compiler, and prints what that compiles"),
    ("loopfold-testing", "is for tests"),
    ("xtask", "is for developers"),
];

/// The module of `loopfold-cli` that prints.
const PRINTER: &str = "show";

const MACROS: [&str; 5] = ["print", "println", "eprint", "eprintln", "dbg"];
const STREAMS: [&str; 2] = ["stdout", "stderr"];
/// What has functions that open them.
const OPENING: [&str; 2] = ["io", "anstream"];

/// Each place of a file of a crate that opens the terminal by itself: the line, and what is called there.
pub(super) fn places(name: &str, module: &[String], tokens: &[Token]) -> Vec<(usize, String)> {
    let is_printer = name == "loopfold-cli" && module.first().is_some_and(|first| first == PRINTER);
    if is_printer || EXEMPT.iter().any(|(exempt, _)| *exempt == name) {
        return Vec::new();
    }
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let is_opened = |at: usize| {
        let is_of = at >= 2 && text(at - 1) == "::" && OPENING.contains(&text(at - 2));
        // Whether it is a terminal may be asked.
        let is_asked = (1..=4).map(|more| text(at + more)).eq(["(", ")", ".", "is_terminal"]);
        STREAMS.contains(&text(at)) && is_of && !is_asked
    };
    let is_macro = |at: usize| MACROS.contains(&text(at)) && text(at + 1) == "!";
    let found = (0..tokens.len()).filter(|&at| is_opened(at) || is_macro(at));
    found.map(|at| (tokens[at].line, text(at).to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::tokens::tokens;

    fn found(name: &str, module: &str, source: &str) -> Vec<String> {
        let module = [module.to_string()];
        places(name, &module, &tokens(source)).into_iter().map(|(_, what)| what).collect()
    }

    #[test]
    fn what_prints_is_found() {
        assert_eq!(found("loopfold-cli", "commands", "let mut out = std::io::stdout().lock();"), ["stdout"]);
        assert_eq!(found("loopfold-cli", "commands", "anstream::stderr().write(b)"), ["stderr"]);
        assert_eq!(found("loopfold-record", "events", "eprintln!(\"{name}\");"), ["eprintln"]);
        assert_eq!(found("loopfold-cli", "commands", "use std::io::stdout;"), ["stdout"]);
    }

    #[test]
    fn what_does_not_is_not() {
        let asked = "show::stdout(); io::stderr().is_terminal(); Stdio::stdout; command.stdout(pipe)";
        assert_eq!(found("loopfold-cli", "commands", asked), [""; 0]);
        assert_eq!(found("loopfold-cli", "show", "std::io::stdout()"), [""; 0]);
        assert_eq!(found("xtask", "bench", "println!()"), [""; 0]);
    }
}
