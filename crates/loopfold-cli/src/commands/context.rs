//! `loopfold context`: the events before and after an event or a sequence, with counts.

use crate::args::ContextArgs;
use crate::show::{self, Labels};
use crate::{Outcome, input, tables};
use anstyle::{AnsiColor, Style};
use anyhow::Result;
use loopfold::questions::context::{Context, ContextNode, ContextTree, Neighbour};
use loopfold::questions::query::Query;
use loopfold::trace::TimesKept;
use loopfold_json::context::{Shown, context as json_context, neighbours};
use std::io::{BufWriter, Write};

const HEAD: Style = AnsiColor::Cyan.on_default().bold();
const LESS: Style = Style::new().dimmed();

pub(super) fn run(arguments: &ContextArgs) -> Result<Outcome> {
    let (read, text) = arguments.read.split_query()?;
    let (fold, notes) = input::fold(&read, TimesKept::None, &arguments.folder)?;
    let query = Query::parse(&text, fold.alphabet())?;
    let context = fold.context(&query, arguments.depth)?;
    show::notes(&notes);
    show::notes(&query.unknown_events(fold.alphabet()));
    if arguments.form.is_data() {
        let top = arguments.top.most();
        let is_table = arguments.form.table_format().is_some();
        tables::print_answer(&arguments.form, "context", "neighbours", |out| {
            match is_table {
                true => neighbours(out, &fold, &context, |nodes| chosen(nodes, top))?,
                false => {
                    json_context(out, &fold, &text, arguments.depth, &context, |nodes| chosen(nodes, top))?
                }
            }
            Ok(())
        })?;
    } else {
        let mut out = BufWriter::new(show::stdout());
        let labels = Labels::new(&fold, arguments.hex.on);
        let top = arguments.top.most();
        let width = show::line_width();
        let mut printer = Printer { out: &mut out, labels, top, width, whole: context.count };
        printer.print(arguments, &context)?;
        out.flush()?;
    }
    Ok(super::find::outcome(context.count > 0))
}

/// The children to show, and what the others are.
fn chosen(children: &[ContextNode], top: usize) -> Shown<'_> {
    // In place of a single other child, "1 other" would be no shorter.
    let shown = if children.len() <= top.saturating_add(1) { children.len() } else { top };
    let (nodes, others) = children.split_at(shown);
    // All of them together are not more than the occurrences of the query.
    let others_count = others.iter().map(|other| other.count).sum();
    Shown { nodes, others: others.len(), others_count }
}

/// Which side of the query is shown.
#[derive(Clone, Copy)]
struct Side {
    arrow: &'static str,
    edge: &'static str,
}

const AFTER: Side = Side { arrow: " → ", edge: "end of stream" };
const BEFORE: Side = Side { arrow: " ← ", edge: "start of stream" };

/// The characters of the numbers of a line.
const BESIDE: usize = 28;

/// Prints trees with a line for each node; a node with a single child continues on
/// its line.
struct Printer<'a, W> {
    out: &'a mut W,
    labels: Labels<'a>,
    top: usize,
    width: usize,
    whole: u64,
}

impl<W: Write> Printer<'_, W> {
    fn print(&mut self, arguments: &ContextArgs, context: &Context) -> Result<()> {
        writeln!(self.out, "{}", show::plural(context.count, "occurrence"))?;
        if context.count == 0 || arguments.depth == 0 {
            return Ok(());
        }
        writeln!(self.out, "\n{HEAD}after it{HEAD:#}")?;
        self.children(&context.after, context.after.nearest(), AFTER, 0)?;
        writeln!(self.out, "\n{HEAD}before it{HEAD:#}")?;
        self.children(&context.before, context.before.nearest(), BEFORE, 0)
    }

    /// The depth is at most what was asked for, which is bounded.
    fn children(
        &mut self,
        tree: &ContextTree,
        children: &[ContextNode],
        side: Side,
        indent: usize,
    ) -> Result<()> {
        let Shown { nodes, others, others_count } = chosen(children, self.top);
        for child in nodes {
            let mut last = child;
            let mut labels = vec![self.label(child, side, indent)];
            while let [only] = tree.beyond(last) {
                labels.push(self.label(only, side, indent));
                last = only;
            }
            self.line(child.count, &self.chain(&labels, side, indent), indent)?;
            self.children(tree, tree.beyond(last), side, indent + 1)?;
        }
        if others > 0 {
            let text = format!("{} others", show::count(others as u64));
            self.line(others_count, &format!("{LESS}{text}{LESS:#}"), indent)?;
        }
        Ok(())
    }

    fn line(&mut self, count: u64, text: &str, indent: usize) -> Result<()> {
        let share = show::percent(count as f64 / self.whole as f64);
        let pad = "  ".repeat(indent);
        Ok(writeln!(self.out, "{:>15}  {share:>9}  {pad}{text}", show::count(count))?)
    }

    /// Labels one after the other, on as many lines as they need.
    fn chain(&self, labels: &[String], side: Side, indent: usize) -> String {
        let (room, mut used, mut text) = (self.room(indent), 0, String::new());
        for label in labels {
            let length = label.chars().count() + side.arrow.len();
            if used > 0 && used + length > room {
                text.push_str(&format!("\n{}", " ".repeat(BESIDE + 2 * indent)));
                used = 0;
            }
            text.push_str(if text.is_empty() { "" } else { side.arrow });
            text.push_str(label);
            used += length;
        }
        text
    }

    fn room(&self, indent: usize) -> usize {
        self.width.saturating_sub(BESIDE + 2 * indent + 4).max(16)
    }

    fn label(&self, node: &ContextNode, side: Side, indent: usize) -> String {
        match node.neighbour {
            Neighbour::Event(symbol) => show::shorten(&self.labels.of(symbol), self.room(indent)),
            Neighbour::Edge => format!("{LESS}{}{LESS:#}", side.edge),
        }
    }
}
