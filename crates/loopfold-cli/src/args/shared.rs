//! Options that many commands have: each is defined here, once, and flattened into the arguments
//! of a command.

use super::OutputPath;
use clap::builder::{ArgPredicate, PossibleValuesParser};
use clap::{Arg, Args, ValueEnum};
use loopfold_json::tables::tables;
use std::collections::HashSet;

/// The heading of options that choose what is shown, and how.
pub(super) const SHOWING: &str = "Showing";
/// The heading of options that choose what is searched for, and how.
pub(super) const FINDING: &str = "Finding";
/// The heading of options of tables.
const TABLES: &str = "Tables";

/// `--json`.
#[derive(Args, Debug, Clone, Copy)]
pub(crate) struct Json {
    /// Print one JSON object
    #[arg(id = "json", long = "json", help_heading = SHOWING)]
    pub(crate) on: bool,
}

/// `--json`, and `--table` of commands whose answers have rows. A command says with [`Form::of`] which.
#[derive(Args, Debug, Clone)]
pub(crate) struct Form {
    #[command(flatten)]
    json: Json,
    /// Print the rows as a table for other programs
    ///
    /// csv has a line with the names of the columns, json an object on a line for each row; arrow is the stream format
    /// of Arrow, and parquet is a file of Parquet, compressed by Snappy. docs/tables.md lists the columns.
    #[arg(long, value_name = "FORMAT", value_enum, conflicts_with = "json", help_heading = TABLES)]
    table: Option<TableFormat>,
    /// Print these rows
    #[arg(long, value_name = "NAME", requires = "table", help_heading = TABLES)]
    rows: Option<String>,
    /// --table csv: put an apostrophe before texts that a spreadsheet would execute
    ///
    /// These begin with =, +, - or @, after white space or not. Without the option, texts are exact.
    #[arg(long, requires = "table", help_heading = TABLES)]
    spreadsheet: bool,
    /// Write the table to this file [default: standard output]
    #[arg(short, long, value_name = "FILE", requires = "table", help_heading = TABLES)]
    output: Option<OutputPath>,
}

/// The formats of tables.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableFormat {
    /// Comma-separated values
    Csv,
    /// A JSON object on a line for each row
    Json,
    /// The stream format of Arrow
    #[cfg(feature = "arrow")]
    Arrow,
    /// A file of Parquet
    #[cfg(feature = "arrow")]
    Parquet,
}

impl TableFormat {
    /// Its name.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or(String::new(), |value| value.get_name().to_string())
    }

    /// Whether a terminal can show it.
    pub(crate) fn is_text(self) -> bool {
        matches!(self, TableFormat::Csv | TableFormat::Json)
    }
}

impl Form {
    /// Whether the answer is for programs: JSON or a table.
    pub(crate) fn is_data(&self) -> bool {
        self.json.on || self.table.is_some()
    }

    /// The format of the table, if one is asked for.
    pub(crate) fn table_format(&self) -> Option<TableFormat> {
        self.table
    }

    /// The name of the rows, if they are chosen.
    pub(crate) fn rows(&self) -> Option<&str> {
        self.rows.as_deref()
    }

    /// Whether cells of comma-separated values must not be formulas.
    pub(crate) fn is_for_spreadsheet(&self) -> bool {
        self.spreadsheet
    }

    /// Where the table is written, if not to standard output.
    pub(crate) fn output(&self) -> Option<&OutputPath> {
        self.output.as_ref()
    }

    /// The same in the format of an older option.
    pub(crate) fn or_csv(&self, is_csv: bool) -> Self {
        Self { table: self.table.or(is_csv.then_some(TableFormat::Csv)), ..self.clone() }
    }

    /// For `mut_arg` of `rows`: the rows of these commands.
    pub(super) fn of(commands: &'static [&'static str]) -> impl FnOnce(Arg) -> Arg {
        let names = commands.iter().flat_map(|command| tables(command)).map(|table| table.name);
        let mut names: Vec<&str> = names.collect();
        let default = names.first().copied().unwrap_or_default();
        let mut known = HashSet::new();
        names.retain(|name| known.insert(*name));
        move |rows| {
            rows.help(format!("Print these rows of the answer [default: {default}]"))
                .value_parser(PossibleValuesParser::new(names))
        }
    }
}

/// `--hex`.
#[derive(Args, Debug, Clone, Copy)]
pub(crate) struct Hex {
    /// Print integers in hexadecimal
    #[arg(id = "hex", long = "hex", help_heading = SHOWING)]
    pub(crate) on: bool,
}

/// `--full`.
#[derive(Args, Debug, Clone, Copy)]
pub(crate) struct Full {
    /// Show everything, however long
    #[arg(id = "full", long = "full", help_heading = SHOWING)]
    pub(crate) on: bool,
}

/// `--top`. A command says with [`Top::of`] what it counts and how much is shown by default.
#[derive(Args, Debug, Clone, Copy)]
pub(crate) struct Top {
    /// Show this many; 0 shows all
    #[arg(id = "top", long = "top", value_name = "N", help_heading = SHOWING)]
    count: Option<usize>,
}

impl Top {
    /// The most to show.
    pub(crate) fn most(self) -> usize {
        self.count.filter(|&count| count > 0).unwrap_or(usize::MAX)
    }

    /// How many of `all` to show.
    pub(crate) fn limit(self, all: u64) -> u64 {
        all.min(self.most() as u64)
    }

    /// For `mut_arg`: what is counted, and how many are shown by default.
    pub(super) fn of(what: &'static str, default: &'static str) -> impl FnOnce(Arg) -> Arg {
        move |top| top.help(format!("Show this many {what}; 0 shows all")).default_value(default)
    }

    /// The same where a table has all by default.
    pub(super) fn of_rows(what: &'static str, default: &'static str) -> impl FnOnce(Arg) -> Arg {
        move |top| {
            top.help(format!("Show this many {what}; 0 shows all, which is the default with --table"))
                .default_value(default)
                .default_value_if("table", ArgPredicate::IsPresent, "0")
        }
    }

    /// The same where `--json` and a table have all by default.
    pub(super) fn of_data(what: &'static str, default: &'static str) -> impl FnOnce(Arg) -> Arg {
        move |top| {
            top.help(format!("Show this many {what}; 0 shows all, the default with --json and --table"))
                .default_value(default)
                .default_value_ifs([("json", "true".into(), "0"), ("table", ArgPredicate::IsPresent, "0")])
        }
    }
}
