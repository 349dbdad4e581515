//! `loopfold help`: prints the help of a command or of a format.

use crate::Outcome;
use crate::args::{self, Arguments};
use crate::formats;
use anyhow::{Result, bail};
use clap::CommandFactory as _;
use loopfold_sources::{Description, Source};
use std::io::Write;

pub(super) fn run(topic: Option<&str>) -> Result<Outcome> {
    let mut command = Arguments::command();
    command.build();
    let mut out = crate::show::stdout();
    let Some(topic) = topic else {
        write!(out, "{}", command.render_long_help().ansi())?;
        return Ok(Outcome::Done);
    };
    if let Some(command) = command.find_subcommand_mut(topic) {
        write!(out, "{}", command.render_long_help().ansi())?;
    } else if let Some(source) = formats::by_name(topic) {
        print_format(&mut out, source)?;
    } else {
        let commands: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        let formats: Vec<&str> = formats::all().map(|source| source.name()).collect();
        bail!(
            "no command or format is called {topic}\ncommands: {}\nformats: {}",
            commands.join(", "),
            formats.join(", ")
        );
    }
    Ok(Outcome::Done)
}

fn print_format(out: &mut impl Write, source: &'static dyn Source) -> Result<()> {
    let Description { event, stream, times, example } = source.description();
    let none = |text: &'static str| if text.is_empty() { "none" } else { text };
    writeln!(out, "{}: {}\n", source.name(), source.about())?;
    writeln!(out, "Event:   {event}")?;
    writeln!(out, "Stream:  {stream}")?;
    writeln!(out, "Times:   {}", none(times))?;
    match source.fields() {
        [] => writeln!(out, "Fields:  none")?,
        fields => {
            let named = |&field: &&'static str| if field == "*" { "whatever the input names" } else { field };
            let fields: Vec<&str> = fields.iter().map(named).collect();
            writeln!(out, "Fields:  {} (for --key and --ignore)", fields.join(", "))?;
        }
    }
    if !source.options().is_empty() {
        let options = source.options().iter().map(args::format_argument);
        let mut command = clap::Command::new(source.name())
            .args(options)
            .disable_help_flag(true)
            .max_term_width(100)
            .help_template("{all-args}");
        write!(out, "\n{}", command.render_help().ansi())?;
    }
    Ok(writeln!(out, "\nExample:\n  {example}")?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[test]
    fn every_format_has_a_description_and_an_example_that_is_accepted() {
        for source in formats::all() {
            let Description { event, stream, example, .. } = source.description();
            assert!(!event.is_empty() && !stream.is_empty(), "{}", source.name());
            let command = &example[example.find("loopfold ").unwrap()..];
            Arguments::try_parse_from(command.split_whitespace()).unwrap();
        }
    }

    #[test]
    fn commands_and_formats_have_different_names() {
        let command = Arguments::command();
        for source in formats::all() {
            assert!(command.find_subcommand(source.name()).is_none(), "{}", source.name());
        }
    }
}
