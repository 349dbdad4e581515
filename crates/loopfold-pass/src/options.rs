//! What the pass is asked to do.

use crate::error::{Error, Result};
use std::path::PathBuf;

pub(crate) const USAGE: &str = "\
usage: loopfold-pass [OPTIONS] INPUT -o OUTPUT

Inserts code into LLVM bitcode that records the paths of its functions, and generates an object.
`loopfold-cc` calls it.

  -o OUTPUT            the object to write
  --emit-bitcode       write bitcode instead of an object
  --blocks             record basic blocks instead of paths
  --only GLOB          instrument only functions with such a name; may be repeated
  --drop GLOB          do not instrument functions with such a name; may be repeated
  -O LEVEL             optimise code for 0 to 3 (default 2)
  --function-sections  put each function into a section of its own
  --describe           print the functions, their paths and blocks
  --version            print the version, and that of LLVM";

/// The arguments.
#[derive(Debug, Default)]
pub(crate) struct Options {
    pub(crate) input: PathBuf,
    pub(crate) output: PathBuf,
    pub(crate) emit_bitcode: bool,
    pub(crate) blocks: bool,
    pub(crate) only: Vec<String>,
    pub(crate) drop: Vec<String>,
    pub(crate) level: u8,
    pub(crate) function_sections: bool,
    pub(crate) describe: bool,
    /// Also call a function at the start of each block, independently of the numbering. For tests.
    pub(crate) check_blocks: bool,
}

impl Options {
    pub(crate) fn parse(arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self { level: 2, ..Self::default() };
        let mut arguments = arguments;
        while let Some(argument) = arguments.next() {
            let mut value = || {
                let value = arguments.next();
                value.ok_or_else(|| Error::new(format_args!("{argument} needs a value")))
            };
            match argument.as_str() {
                "-o" => options.output = value()?.into(),
                "--emit-bitcode" => options.emit_bitcode = true,
                "--blocks" => options.blocks = true,
                "--only" => options.only.push(value()?),
                "--drop" => options.drop.push(value()?),
                "-O" => options.level = level(&value()?)?,
                "--function-sections" => options.function_sections = true,
                "--describe" => options.describe = true,
                "--check-blocks" => options.check_blocks = true,
                input if options.input.as_os_str().is_empty() && !input.starts_with('-') => {
                    options.input = input.into();
                }
                other => return Err(Error::new(format_args!("unknown argument {other}\n{USAGE}"))),
            }
        }
        let nothing = options.output.as_os_str().is_empty() && !options.describe;
        if options.input.as_os_str().is_empty() || nothing {
            return Err(Error::new(USAGE));
        }
        Ok(options)
    }

    /// Whether a function is to be instrumented.
    pub(crate) fn selects(&self, linkage_name: &str) -> bool {
        if self.only.is_empty() && self.drop.is_empty() {
            return true;
        }
        let readable = demangled(linkage_name);
        let fits = |globs: &[String]| {
            globs.iter().any(|glob| matches(glob, linkage_name) || matches(glob, &readable))
        };
        (self.only.is_empty() || fits(&self.only)) && !fits(&self.drop)
    }
}

fn level(text: &str) -> Result<u8> {
    let level = text.parse().ok().filter(|level| *level <= 3);
    level.ok_or_else(|| Error::new(format_args!("-O {text}: a level is from 0 to 3")))
}

/// The name of a function as the source has it, without parameters.
fn demangled(name: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
    let symbol = cpp_demangle::Symbol::new(name).ok();
    symbol.and_then(|symbol| symbol.demangle_with_options(&options).ok()).unwrap_or_else(|| name.to_string())
}

/// Whether a name is as a glob says: `*` is any text, `?` any one character. Takes O(both lengths).
fn matches(glob: &str, name: &str) -> bool {
    let (glob, name): (Vec<char>, Vec<char>) = (glob.chars().collect(), name.chars().collect());
    let (mut at, mut in_name) = (0, 0);
    // Where to go on if what follows the last star does not fit.
    let mut star: Option<(usize, usize)> = None;
    while in_name < name.len() {
        if glob.get(at) == Some(&'*') {
            star = Some((at, in_name));
            at += 1;
        } else if glob.get(at).is_some_and(|&wanted| wanted == '?' || wanted == name[in_name]) {
            at += 1;
            in_name += 1;
        } else if let Some((star_at, from)) = star {
            star = Some((star_at, from + 1));
            (at, in_name) = (star_at + 1, from + 1);
        } else {
            return false;
        }
    }
    glob[at..].iter().all(|&rest| rest == '*')
}

#[cfg(test)]
mod tests {
    use super::{Options, demangled, matches};

    #[test]
    fn globs() {
        for (glob, name, expected) in [
            ("*", "", true),
            ("a*c", "abcbc", true),
            ("a*c", "abcb", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*b*", "abc", true),
            ("abc", "abcd", false),
            ("", "a", false),
            ("**", "x", true),
        ] {
            assert_eq!(matches(glob, name), expected, "{glob} {name}");
        }
    }

    #[test]
    fn names_of_all_languages() {
        assert_eq!(demangled("main"), "main");
        assert_eq!(demangled("_ZN3foo3barEi"), "foo::bar");
        assert_eq!(demangled("_RNvC7mycrate4main"), "mycrate::main");
        let options =
            Options { only: vec!["foo::*".into()], drop: vec!["*bar".into()], ..Options::default() };
        assert!(
            options.selects("_ZN3foo3bazEi") && !options.selects("_ZN3foo3barEi") && !options.selects("x")
        );
    }
}
