//! `loopfold context`: what comes before and after an event or a sequence.

use crate::args::ContextArgs;
use crate::show::{self, Labels};
use crate::{Outcome, input};
use anstyle::{AnsiColor, Style};
use anyhow::Result;
use loopfold::Fold;
use loopfold::questions::context::{Context, ContextNode, ContextTree, Neighbour};
use loopfold::questions::query::Query;
use loopfold::trace::TimesKept;
use std::io::{BufWriter, Write};

const HEAD: Style = AnsiColor::Cyan.on_default().bold();
const LESS: Style = Style::new().dimmed();

pub(super) fn run(arguments: &ContextArgs) -> Result<Outcome> {
    let (read, text) = arguments.read.split_query()?;
    let (fold, notes) = input::fold(&read, TimesKept::None, &arguments.folder)?;
    let query = Query::parse(&text, fold.alphabet())?;
    let context = fold.context(&query, arguments.depth)?;
    show::notes(&notes);
    if arguments.json.on {
        let mut out = BufWriter::new(std::io::stdout().lock());
        print_json(&mut out, arguments, &text, &fold, &context)?;
        out.flush()?;
    } else {
        let mut out = BufWriter::new(anstream::stdout().lock());
        let labels = Labels::new(&fold, arguments.hex.on);
        let top = arguments.top.most();
        let width = terminal_size::terminal_size().map_or(100, |(width, _)| usize::from(width.0)).max(60);
        let mut printer = Printer { out: &mut out, labels, top, width, whole: context.count };
        printer.print(arguments, &context)?;
        out.flush()?;
    }
    Ok(super::find::outcome(context.count > 0))
}

/// The children to show, and how many others there are and how often.
fn chosen(children: &[ContextNode], top: usize) -> (&[ContextNode], usize, u64) {
    // In place of a single other child, "1 other" would be no shorter.
    let shown = if children.len() <= top.saturating_add(1) { children.len() } else { top };
    let (shown, others) = children.split_at(shown);
    // All of them together are not more than the occurrences of the query.
    (shown, others.len(), others.iter().map(|other| other.count).sum())
}

/// Which side of the query is shown.
#[derive(Clone, Copy)]
struct Side {
    arrow: &'static str,
    edge: &'static str,
}

const AFTER: Side = Side { arrow: " → ", edge: "end of stream" };
const BEFORE: Side = Side { arrow: " ← ", edge: "start of stream" };

/// Prints trees with a line for each node; a node with a single child goes on in its
/// line.
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
        let (shown, others, count) = chosen(children, self.top);
        for child in shown {
            let mut last = child;
            let mut text = self.label(child, side);
            while let [only] = tree.beyond(last) {
                text.push_str(side.arrow);
                text.push_str(&self.label(only, side));
                last = only;
            }
            self.line(child.count, &text, indent)?;
            self.children(tree, tree.beyond(last), side, indent + 1)?;
        }
        if others > 0 {
            let text = format!("{} others", show::count(others as u64));
            self.line(count, &format!("{LESS}{text}{LESS:#}"), indent)?;
        }
        Ok(())
    }

    fn line(&mut self, count: u64, text: &str, indent: usize) -> Result<()> {
        let share = show::percent(count as f64 / self.whole as f64);
        let pad = "  ".repeat(indent);
        Ok(writeln!(self.out, "{:>15}  {share:>9}  {pad}{text}", show::count(count))?)
    }

    fn label(&self, node: &ContextNode, side: Side) -> String {
        match node.neighbour {
            Neighbour::Event(symbol) => show::shorten(&self.labels.of(symbol), self.width.saturating_sub(30)),
            Neighbour::Edge => format!("{LESS}{}{LESS:#}", side.edge),
        }
    }
}

/// One object, written node by node: trees may be large.
fn print_json(
    out: &mut impl Write,
    arguments: &ContextArgs,
    query: &str,
    fold: &Fold,
    context: &Context,
) -> Result<()> {
    let query = serde_json::to_string(query)?;
    write!(out, "{{\"query\":{query},\"count\":{},\"depth\":{}", context.count, arguments.depth)?;
    let top = arguments.top.most();
    for (key, tree) in [("after", &context.after), ("before", &context.before)] {
        write!(out, ",\"{key}\":")?;
        json_children(out, fold, tree, tree.nearest(), top)?;
    }
    Ok(writeln!(out, "}}")?)
}

fn json_children(
    out: &mut impl Write,
    fold: &Fold,
    tree: &ContextTree,
    children: &[ContextNode],
    top: usize,
) -> Result<()> {
    let (shown, others, count) = chosen(children, top);
    write!(out, "[")?;
    for (index, child) in shown.iter().enumerate() {
        let event = match child.neighbour {
            Neighbour::Event(symbol) => serde_json::to_string(&fold.alphabet().label(symbol))?,
            Neighbour::Edge => "null".to_string(),
        };
        let comma = if index > 0 { "," } else { "" };
        write!(out, "{comma}{{\"event\":{event},\"count\":{}", child.count)?;
        let beyond = tree.beyond(child);
        if !beyond.is_empty() {
            write!(out, ",\"next\":")?;
            json_children(out, fold, tree, beyond, top)?;
        }
        write!(out, "}}")?;
    }
    if others > 0 {
        write!(out, ",{{\"others\":{others},\"count\":{count}}}")?;
    }
    Ok(write!(out, "]")?)
}
