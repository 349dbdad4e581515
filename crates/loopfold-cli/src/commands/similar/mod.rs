//! `loopfold similar`: windows of streams that are like a pattern, and occurrences of a
//! communication pattern that they make.

mod file;
mod larger;
mod pattern;
mod print;
mod search;

use crate::args::SimilarArgs;
use crate::{Outcome, input, show};
use anyhow::{Context as _, Result, bail};
use larger::Larger;
use loopfold::trace::TimesKept;
use pattern::Asked;

pub(super) fn run(arguments: &SimilarArgs) -> Result<Outcome> {
    let max_error = share(&arguments.max_error)?;
    let has_option = arguments.pattern.is_some() || arguments.like.is_some() || arguments.number.is_some();
    let (read, text) = match has_option {
        true => (arguments.read.clone(), None),
        false => {
            let (read, text) = arguments.read.split_query()?;
            (read, Some(text))
        }
    };
    let (fold, notes) = input::fold(&read, TimesKept::None, &arguments.folder)?;
    show::notes(&notes);
    let (asked, notes) = Asked::read(arguments, text.as_deref(), &fold)?;
    show::notes(&notes);
    let found = search::search(arguments, &fold, &asked, max_error)?;
    show::notes(&found.notes);
    // What lies in larger patterns is said where there is something to say it of.
    let larger = (found.count > 0).then(|| Larger::of(arguments, &fold)).transpose()?;
    print::print(arguments, &fold, &asked, &found, larger.as_ref())?;
    // Of a pattern of several processes, its occurrences are what was asked for.
    let is_found = match &found.joined {
        Some(joined) => !joined.occurrences.is_empty(),
        None => found.count > 0,
    };
    Ok(super::find::outcome(is_found))
}

/// A share such as `10%` or `0.1`.
fn share(text: &str) -> Result<f64> {
    let (number, scale) = match text.trim().strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text, 1.0),
    };
    let number: f64 = number.trim().parse().with_context(|| format!("--max-error {text}"))?;
    if !number.is_finite() || number < 0.0 {
        bail!("--max-error is a share, such as 10% or 0.1");
    }
    Ok(number / scale)
}
