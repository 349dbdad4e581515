//! Options of formats, derived from the lists of the sources: a source that has a new option, or a
//! new source, needs nothing here.

use crate::formats;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use loopfold_sources::{Options, SourceOption, Takes};
use std::collections::BTreeSet;
use std::fmt::{self, Display};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// The options of all formats.
#[derive(Debug, Clone, Default)]
pub(crate) struct FormatArgs {
    /// What they say.
    pub(crate) options: Options,
    /// The names of those that were given.
    given: Vec<&'static str>,
}

impl FormatArgs {
    /// The format that the options name by themselves.
    pub(crate) fn implied_format(&self) -> Option<&'static str> {
        let implies = |option: &SourceOption| option.implies_format && self.given.contains(&option.name);
        formats::all().find(|source| source.options().iter().any(implies)).map(|source| source.name())
    }

    /// The same, where an option is also used for something else than reading an input.
    pub(crate) fn not_only_for_reading(mut self, name: &str) -> Self {
        self.given.retain(|&given| given != name);
        self
    }

    /// Fails if an option was given that is for none of the formats of the inputs.
    pub(crate) fn check(&self, inputs: &[&'static str]) -> Result<(), UselessOption> {
        let options = shared_options();
        let mut given = options.into_iter().filter(|shared| self.given.contains(&shared.name()));
        match given.find(|shared| !inputs.iter().any(|input| shared.formats().contains(input))) {
            Some(option) => Err(UselessOption { option, inputs: inputs.to_vec() }),
            None => Ok(()),
        }
    }

    fn set(&mut self, option: &SourceOption, matches: &ArgMatches) {
        let texts = || matches.get_many::<String>(option.name).into_iter().flatten().cloned();
        match option.takes {
            Takes::Nothing(set) => set(&mut self.options),
            Takes::Text(_, set) | Takes::OneOf(_, _, set) | Takes::List(_, set) | Takes::Repeated(_, set) => {
                texts().for_each(|text| set(&mut self.options, text));
            }
            Takes::File(_, set) => {
                let files = matches.get_many::<PathBuf>(option.name).into_iter().flatten().cloned();
                files.for_each(|file| set(&mut self.options, file));
            }
        }
    }
}

impl Args for FormatArgs {
    fn augment_args(command: Command) -> Command {
        command.args(shared_options().iter().map(SharedOption::argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for FormatArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut arguments = Self::default();
        arguments.update_from_arg_matches(matches)?;
        Ok(arguments)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for shared in shared_options() {
            if matches.value_source(shared.name()) == Some(clap::parser::ValueSource::CommandLine) {
                self.given.push(shared.name());
                // All definitions of an option set the same.
                self.set(shared.first(), matches);
            }
        }
        Ok(())
    }
}

/// An option that is for none of the formats of the inputs.
#[derive(Debug)]
pub(crate) struct UselessOption {
    option: SharedOption,
    inputs: Vec<&'static str>,
}

impl Display for UselessOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let formats = self.option.formats();
        let mut inputs: Vec<&str> = Vec::new();
        for input in &self.inputs {
            if !inputs.contains(input) {
                inputs.push(input);
            }
        }
        write!(
            f,
            "--{} is an option of the format{} {}, but the input{} {}; `loopfold help {}` shows its options",
            self.option.name(),
            if formats.len() == 1 { "" } else { "s" },
            formats.join(" and "),
            if self.inputs.len() == 1 { " is" } else { "s are" },
            inputs.join(" and "),
            formats.join("` or `loopfold help ")
        )
    }
}

impl std::error::Error for UselessOption {}

/// An option of a format as an argument.
pub(crate) fn argument(option: &'static SourceOption) -> Arg {
    let argument = Arg::new(option.name).long(option.name).help(option.help);
    match option.takes {
        Takes::Nothing(_) => argument.action(ArgAction::SetTrue),
        Takes::Text(value, _) => argument.value_name(value),
        Takes::OneOf(value, words, _) => argument.value_name(value).value_parser(words.to_vec()),
        Takes::List(value, _) => argument.value_name(value).action(ArgAction::Append).value_delimiter(','),
        Takes::Repeated(value, _) => argument.value_name(value).action(ArgAction::Append),
        Takes::File(value, _) => argument.value_name(value).value_parser(value_parser!(PathBuf)),
    }
}

/// The options of one name: each format that has it, and what it is there. There is at least one.
#[derive(Debug)]
struct SharedOption(Vec<(&'static str, &'static SourceOption)>);

fn shared_options() -> Vec<SharedOption> {
    let mut all: Vec<SharedOption> = Vec::new();
    for source in formats::all() {
        for option in source.options() {
            let definition = (source.name(), option);
            match all.iter_mut().find(|shared| shared.name() == option.name) {
                Some(shared) => shared.0.push(definition),
                None => all.push(SharedOption(vec![definition])),
            }
        }
    }
    all
}

impl SharedOption {
    fn first(&self) -> &'static SourceOption {
        self.0[0].1
    }

    fn name(&self) -> &'static str {
        self.first().name
    }

    fn formats(&self) -> Vec<&'static str> {
        self.0.iter().map(|&(format, _)| format).collect()
    }

    /// Shown in long help, under a heading for the formats.
    fn argument(&self) -> Arg {
        let formats = self.formats();
        let heading = heading(format!("Format {}", formats.join(" or ")));
        let argument = argument(self.first()).help_heading(heading).hide_short_help(true);
        if formats.len() == 1 {
            return argument;
        }
        let of_format =
            |&(format, option): &(&str, &SourceOption)| format!("{format}: {}", uncapitalized(option.help));
        let help: Vec<String> = self.0.iter().map(of_format).collect();
        argument.help(help.join("; ")).value_name("VALUE")
    }
}

/// A heading, which has to live as long as the program: each text once, however often arguments are
/// parsed.
fn heading(text: String) -> &'static str {
    static ALL: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = all.get(text.as_str()) {
        return known;
    }
    let heading: &'static str = text.leak();
    all.insert(heading);
    heading
}

fn uncapitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_lowercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::discriminant;

    #[test]
    fn options_of_the_same_name_take_the_same() {
        for shared in shared_options() {
            let first = discriminant(&shared.first().takes);
            assert!(
                shared.0.iter().all(|(_, other)| discriminant(&other.takes) == first),
                "{}",
                shared.name()
            );
        }
    }

    #[test]
    fn an_option_needs_an_input_of_its_format() {
        let given = |given| FormatArgs { given, ..FormatArgs::default() };
        given(vec!["select"]).check(&["lines"]).unwrap();
        given(vec!["select", "mask"]).check(&["fold", "lines"]).unwrap();
        let error = |names, inputs: &[&'static str]| given(names).check(inputs).unwrap_err().to_string();
        let one = error(vec!["select"], &["csv"]);
        assert!(one.starts_with("--select is an option of the format lines, but the input is csv;"), "{one}");
        let equal = error(vec!["mask"], &["fold", "fold"]);
        assert!(equal.contains("but the inputs are fold; `loopfold help lines`"), "{equal}");
        let two = error(vec!["stream-by"], &["fold", "otf2", "fold"]);
        assert!(two.contains("the formats csv and lines, but the inputs are fold and otf2;"), "{two}");
    }
}
