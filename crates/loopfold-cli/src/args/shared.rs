//! Options that many commands have: each is defined here, once, and flattened into the arguments
//! of a command.

use clap::{Arg, Args};

/// The heading of options that choose what is shown, and how.
pub(super) const SHOWING: &str = "Showing";
/// The heading of options that choose what is searched for, and how.
pub(super) const FINDING: &str = "Finding";

/// `--json`.
#[derive(Args, Debug, Clone, Copy)]
pub(crate) struct Json {
    /// Print one JSON object
    #[arg(id = "json", long = "json", help_heading = SHOWING)]
    pub(crate) on: bool,
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

    /// The same where `--json` prints all by default.
    pub(super) fn of_text(what: &'static str, default: &'static str) -> impl FnOnce(Arg) -> Arg {
        move |top| {
            top.help(format!("Show this many {what}; 0 shows all, which is the default with --json"))
                .default_value(default)
                .default_value_if("json", "true", "0")
        }
    }
}
