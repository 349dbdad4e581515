//! Selects the streams that `--stream` names by name, title, glob or number.

use crate::input::BYTES_NOTE;
use anyhow::{Result, bail};
use loopfold::Fold;
use loopfold::fold::FoldedStream;
use loopfold::trace::Glob;

/// A message lists no more streams than this.
const MOST_LISTED: usize = 8;

/// The streams that any of the selectors selects, all if there is none.
pub(crate) fn choose(fold: Fold, selectors: &[String]) -> Result<Fold> {
    if selectors.is_empty() {
        return Ok(fold);
    }
    let chosen = chosen(&fold, selectors)?;
    // In canonical form, so that rules and symbols of other streams are gone.
    let some = fold.with_streams(|stream| chosen[stream.index()]).canonical();
    // The size in bytes of a part of an input is not known.
    Ok(if chosen.contains(&false) { some.without_notes(BYTES_NOTE) } else { some })
}

/// For each stream whether a selector selects it. One that selects none is an error.
pub(crate) fn chosen(fold: &Fold, selectors: &[String]) -> Result<Vec<bool>> {
    let streams = fold.streams();
    let mut chosen = vec![selectors.is_empty(); streams.len()];
    for selector in selectors {
        let selected = selected_by(streams, selector);
        if selected.is_empty() {
            bail!("--stream {selector}: {}; {}", why_none(streams, selector), listed(streams));
        }
        selected.into_iter().for_each(|index| chosen[index] = true);
    }
    Ok(chosen)
}

/// An exact name or title comes first: a stream may be called `7` or `a[1]`.
fn selected_by(streams: &[FoldedStream], selector: &str) -> Vec<usize> {
    let those = |fits: &dyn Fn(&str) -> bool| -> Vec<usize> {
        let fits = |&index: &usize| fits(streams[index].name().raw()) || fits(streams[index].title().raw());
        (0..streams.len()).filter(fits).collect()
    };
    let exact = those(&|name| name == selector);
    if !exact.is_empty() {
        return exact;
    }
    if let Some(number) = number(selector) {
        return if number < streams.len() { vec![number] } else { Vec::new() };
    }
    let glob = Glob::new(selector);
    those(&|name| glob.fits(name))
}

fn number(selector: &str) -> Option<usize> {
    let is_number = !selector.is_empty() && selector.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| selector.parse().unwrap_or(usize::MAX))
}

fn why_none(streams: &[FoldedStream], selector: &str) -> String {
    if number(selector).is_some() {
        return format!("no stream has this name, and numbers are less than {}", streams.len());
    }
    let contains = |stream: &FoldedStream| {
        [stream.name(), stream.title()].iter().any(|name| name.raw().contains(selector))
    };
    match streams.iter().filter(|stream| contains(stream)).count() {
        count if count == 0 || selector.is_empty() => "no stream has this name".to_string(),
        count => format!("no stream has this name ('*{selector}*' would select {count})"),
    }
}

fn listed(streams: &[FoldedStream]) -> String {
    let names: Vec<String> =
        streams.iter().take(MOST_LISTED).map(|stream| stream.title().terminal().to_string()).collect();
    let more = match streams.len() - names.len() {
        0 => String::new(),
        more => format!(" and {more} more (`loopfold stats --streams` lists all)"),
    };
    format!("there are: {}{more}", names.join(", "))
}
