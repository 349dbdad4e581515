//! Writes the rules as a graph for Graphviz, as whole program paths are drawn (Larus).
//!
//! Interior nodes are rules, leaves are events; a node's edges leave it in the order of
//! the rule's items, with how often an item repeats where that is more than once. Each
//! node says how often it is executed when all streams are unfolded. Rules from which
//! streams unfold have a double border and the names of the streams.
//!
//! Costs one pass over the rules. Graphviz takes very long on thousands of nodes, and the
//! picture is unreadable, so there is a limit.

use super::{event_name, rule_name};
use crate::emit::{DotString, Text};
use crate::fold::{Target, rule_uses, symbol_counts};
use crate::{Error, Fold, Result, RuleId};
use hashbrown::HashMap;
use std::io::Write;

/// Names are cut after this many characters.
const LONGEST_NAME: usize = 40;
/// At most this many streams with the same rule are named.
const MOST_NAMES: usize = 3;

/// Writes the graph of a fold. Fails if it has more than `limit` nodes and edges in all.
///
/// ```
/// use loopfold::export::{dot, grammar};
///
/// let text = "loopfold grammar 1\nA -> 'b' 'c'\nS -> 'a' A^3\nstream 'main' -> S\nend\n";
/// let mut graph = Vec::new();
/// dot::write(&grammar::read(text.as_bytes())?, 100, &mut graph)?;
/// let graph = String::from_utf8_lossy(&graph);
/// assert!(graph.contains(r#"R1 [label="R1\n3×"]"#));
/// assert!(graph.contains(r#"R2 -> R1 [label="3×"]"#));
/// # Ok::<(), loopfold::Error>(())
/// ```
pub fn write(fold: &Fold, limit: usize, mut output: impl Write) -> Result<()> {
    let fold = fold.canonical_without_times();
    let (nodes, edges) = (fold.rules().len().saturating_add(fold.alphabet().len()), fold.items());
    if nodes.saturating_add(edges) > limit {
        return Err(Error::limit(format_args!(
            "a graph of {nodes} nodes and {edges} edges; at most {limit} of both together are drawn"
        )));
    }
    writeln!(output, "// The rules of a fold: a node is executed as often as it says; edges are in order.")?;
    writeln!(output, "digraph fold {{")?;
    writeln!(output, "  graph [ordering=out]")?;
    writeln!(output, "  node [shape=box]")?;
    write_rules(&fold, &mut output)?;
    write_events(&fold, &mut output)?;
    write_edges(&fold, &mut output)?;
    writeln!(output, "}}")?;
    Ok(output.flush()?)
}

fn write_rules(fold: &Fold, output: &mut impl Write) -> Result<()> {
    let uses = Counts(rule_uses(fold).ok());
    let streams = stream_names(fold);
    // Each after the rules that use it, as the picture has them.
    for rule in fold.rules().rev() {
        let name = rule_name(rule);
        let (streams, border) = match streams.get(&rule) {
            Some(names) => (format!("\\n{names}"), ", peripheries=2"),
            None => (String::new(), ""),
        };
        writeln!(output, "  {name} [label=\"{name}{streams}{}\"{border}]", uses.label(rule.index()))?;
    }
    Ok(())
}

fn write_events(fold: &Fold, output: &mut impl Write) -> Result<()> {
    let counts = Counts(symbol_counts(fold).ok());
    for symbol in fold.alphabet().symbols() {
        let label = fold.alphabet().label(symbol);
        let label = DotString::of(&label, LONGEST_NAME);
        let count = counts.label(symbol.index());
        writeln!(output, "  {} [label=\"{label}{count}\", shape=ellipse]", event_name(symbol))?;
    }
    Ok(())
}

fn write_edges(fold: &Fold, output: &mut impl Write) -> Result<()> {
    for rule in fold.rules().rev() {
        for item in fold.body(rule) {
            let target = match item.target() {
                Target::Rule(inner) => rule_name(inner),
                Target::Symbol(symbol) => event_name(symbol),
            };
            let times = match item.times() {
                1 => String::new(),
                times => format!(" [label=\"{times}×\"]"),
            };
            writeln!(output, "  {} -> {target}{times}", rule_name(rule))?;
        }
    }
    Ok(())
}

/// How often nodes are executed, where 64 bits can count that.
struct Counts(Option<Vec<u64>>);

impl Counts {
    fn label(&self, index: usize) -> String {
        self.0.as_ref().map_or(String::new(), |counts| format!("\\n{}×", counts[index]))
    }
}

/// The names of the streams that unfold from each rule, the first few of them, as they are written.
fn stream_names(fold: &Fold) -> HashMap<RuleId, String> {
    let mut streams: HashMap<RuleId, Vec<Text<'_>>> = HashMap::new();
    for stream in fold.streams() {
        streams.entry(stream.root()).or_default().push(stream.title());
    }
    let join = |titles: Vec<Text<'_>>| {
        let named =
            titles.iter().take(MOST_NAMES).map(|title| DotString::of(title, LONGEST_NAME).to_string());
        let more = titles.len().saturating_sub(MOST_NAMES);
        let more = (more > 0).then(|| format!("and {more} more"));
        named.chain(more).collect::<Vec<String>>().join(", ")
    };
    streams.into_iter().map(|(root, titles)| (root, join(titles))).collect()
}
