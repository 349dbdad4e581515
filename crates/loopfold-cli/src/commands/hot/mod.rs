//! `loopfold hot`: the most expensive event sequences.

mod costs;

use crate::args::{FolderName, HotArgs, HotMethod};
use crate::folding::threads;
use crate::show::{self, Labels};
use crate::{Outcome, input, tables};
use anyhow::{Result, bail};
use costs::{Costs, Unit};
use loopfold::Fold;
use loopfold::questions::hot::{self, HotSubpath, HotSubpaths, Limit, Selection, related};
use loopfold::trace::TimesKept;
use std::io::Write;

/// The most subpaths that are kept, and the most events or streams of all of them together,
/// whatever sizes an archive declares.
const MOST_KEPT: usize = 100_000;
const MOST_NAMED: usize = 1 << 24;
/// Subpaths that are kept however long they are.
const FEWEST_KEPT: usize = 20;
/// Lines of one subpath on a terminal.
const LINES: usize = 6;
/// So many subpaths are related to one that is shown, or more: they are one row of the text.
const RELATED: usize = 16;

pub(super) fn run(arguments: &HotArgs) -> Result<Outcome> {
    if arguments.all && arguments.method == HotMethod::Paper {
        bail!("--method paper selects by itself; leave out --all");
    }
    let folder = arguments.folder.or(FolderName::AutoOnline);
    let times = if costs::needs_times(arguments.cost.as_deref()) { TimesKept::All } else { TimesKept::None };
    let loaded = input::load_for(&arguments.read, times, &folder)?;
    // Only the paper's selection depends on the folder.
    let refold = arguments.method == HotMethod::Paper && arguments.folder.folder.is_some();
    let (fold, mut notes) = if refold { loaded.fold(&folder)? } else { loaded.fold_as_stored(&folder)? };
    let costs = Costs::of(&fold, arguments.cost.as_deref())?;
    notes.extend(costs.notes.iter().cloned());
    let config = config(arguments, &fold, costs.limit(&arguments.min_cost)?);
    let hot = fold.hot_subpaths(&costs.of_events, &config)?;
    show::notes(&notes);
    if arguments.form.is_data() {
        tables::print_answer(&arguments.form, "hot", "subpaths", |out| {
            Ok(loopfold_json::hot::hot(out, &fold, &hot, &config, costs.unit.name())?)
        })?;
    } else {
        let mut out = show::stdout();
        Printer { arguments, fold: &fold, costs: &costs, config: &config }.print(&mut out, &hot)?;
        out.flush()?;
    }
    Ok(if hot.found > 0 { Outcome::Done } else { Outcome::Nothing })
}

fn config(arguments: &HotArgs, fold: &Fold, min_cost: Limit) -> hot::Config {
    let named = arguments.max_length.max(fold.streams().len()).max(1);
    let most = MOST_KEPT.min(MOST_NAMED / named).max(FEWEST_KEPT);
    let selection = match (arguments.method, arguments.all) {
        (HotMethod::Paper, _) => Selection::Paper,
        (HotMethod::Exact, true) => Selection::All,
        (HotMethod::Exact, false) => Selection::Minimal,
    };
    let kept = match arguments.form.is_data() {
        true => arguments.top.most(),
        false => arguments.top.most().saturating_mul(RELATED),
    };
    hot::Config::new()
        .min_length(arguments.min_length)
        .max_length(arguments.max_length)
        .min_cost(min_cost)
        .selection(selection)
        .keep(kept.min(most))
        .threads(threads(&arguments.folder))
}

struct Printer<'a> {
    arguments: &'a HotArgs,
    fold: &'a Fold,
    costs: &'a Costs,
    config: &'a hot::Config,
}

impl Printer<'_> {
    fn print(&self, out: &mut impl Write, hot: &HotSubpaths) -> Result<()> {
        self.heading(out, hot)?;
        if hot.found == 0 {
            return Ok(());
        }
        let mut groups = related(&hot.subpaths);
        groups.truncate(self.arguments.top.most());
        let several = self.fold.streams().len() > 1;
        let rows: Vec<[String; 4]> =
            groups.iter().map(|group| self.numbers(&hot.subpaths[group[0]])).collect();
        let heads = ["count", "cost", "share", "streams"];
        let columns = if several { 4 } else { 3 };
        let width = |column: usize| {
            rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).max(heads[column].len())
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let line = |cells: &[&str]| -> String {
            cells.iter().zip(&widths).map(|(cell, &width)| format!("{cell:>width$}  ")).collect()
        };
        let placed = show::Beside::new(widths.iter().map(|width| width + 2).sum());
        let most = if self.arguments.full.on { usize::MAX } else { LINES };
        let labels = Labels::new(self.fold, self.arguments.hex.on);
        writeln!(out, "\n{}events", line(&heads))?;
        for (group, row) in groups.iter().zip(&rows) {
            let cells: Vec<&str> = row.iter().map(String::as_str).collect();
            write!(out, "{}", line(&cells))?;
            let mut lines = show::subpath_lines(&labels, &hot.subpaths[group[0]].events, placed.room(), most);
            if group.len() > 1 {
                let rest = show::plural(group.len() as u64 - 1, "rotation or overlap");
                lines
                    .push(format!("  and {}", rest.replace("rotation or overlaps", "rotations or overlaps")));
            }
            placed.write(out, &lines)?;
        }
        let shown: usize = groups.iter().map(Vec::len).sum();
        let left_out = hot.found - shown as u64;
        if left_out > 0 {
            writeln!(out, "… and {} more (--top 0 shows all)", show::count(left_out))?;
        }
        Ok(())
    }

    fn heading(&self, out: &mut impl Write, hot: &HotSubpaths) -> Result<()> {
        let bold = anstyle::Style::new().bold();
        let hot::Config { min_length, max_length, selection, .. } = self.config;
        let kind = match selection {
            Selection::Minimal => "minimal hot subpath",
            Selection::All => "hot subpath",
            Selection::Paper => "hot subpath by the paper's scan",
        };
        let found = match hot.found {
            0 => format!("no {kind}"),
            _ if *selection == Selection::Paper => {
                format!("{} by the paper's scan", show::plural(hot.found, "hot subpath"))
            }
            found => show::plural(found, kind),
        };
        let share = match self.config.min_cost {
            Limit::Share(share) => share,
            Limit::Cost(_) if hot.total > 0.0 => hot.limit / hot.total,
            Limit::Cost(_) => 0.0,
        };
        writeln!(out, "{bold}{found}{bold:#} of {min_length} to {max_length} events")?;
        writeln!(
            out,
            "each costs at least {} in all, {} of {}",
            self.cost(hot.limit),
            show::percent(share),
            self.cost(hot.total),
        )?;
        Ok(())
    }

    fn numbers(&self, subpath: &HotSubpath) -> [String; 4] {
        let count = show::count(subpath.count);
        [count, self.cost(subpath.cost), show::percent(subpath.share), self.streams(subpath)]
    }

    /// The name of the only stream, or how many there are.
    fn streams(&self, subpath: &HotSubpath) -> String {
        match subpath.streams[..] {
            [(only, _)] => show::shorten(&show::plain(self.fold.stream(only).title()), 20),
            ref several => show::count(several.len() as u64),
        }
    }

    fn cost(&self, cost: f64) -> String {
        match self.costs.unit {
            Unit::Time | Unit::SelfTime => show::duration(cost.round() as i128),
            _ if cost.fract() == 0.0 && cost < u64::MAX as f64 => show::count(cost as u64),
            _ if cost >= 1e6 => show::count(cost.round() as u64),
            _ => format!("{cost:.3}"),
        }
    }
}
