//! Folds an array of `uint32` as it lies in memory, its numbers as symbols, and gives the symbols of the
//! rules their meaning afterwards.
//!
//! For a folder that only compares symbols, so that their size does not matter. Interning ten million
//! numbers would take twice as long as folding them where there are loops; this costs O(rules) and a
//! look at each number.

use crate::events::DTYPE_NOTE;
use hashbrown::{HashMap, HashSet};
use loopfold::fold::{FoldBuilder, FoldedStream, Target};
use loopfold::folders::Folder;
use loopfold::trace::{Alphabet, Event};
use loopfold::{Fold, Result, RuleId, Symbol};

/// The folder that only compares symbols.
pub(crate) const FOLDER: &str = "outermost";

/// Folds the numbers. Returns `None` if some are too large to be symbols.
pub(crate) fn fold(numbers: &[u32], name: &str, folder: &dyn Folder, threads: usize) -> Option<Result<Fold>> {
    let largest = numbers.iter().copied().max().unwrap_or(0);
    (largest < Symbol::LIMIT).then(|| folded(numbers, name, folder, threads))
}

fn folded(numbers: &[u32], name: &str, folder: &dyn Folder, threads: usize) -> Result<Fold> {
    let symbols: &[Symbol] = bytemuck::TransparentWrapper::wrap_slice(numbers);
    let mut builder = FoldBuilder::default();
    let root = folder.fold_on(symbols, threads, &mut builder)?.root;
    let rules = builder.finish();
    let mut alphabet = Alphabet::default();
    let mut renamed: HashMap<Symbol, Symbol> = HashMap::new();
    for symbol in in_order(&rules, root) {
        renamed.insert(symbol, alphabet.intern(&Event::integer(symbol.raw().into()), None)?);
    }
    let mut builder = FoldBuilder::new(alphabet);
    let roots = builder.append_rules(&rules, |symbol| Ok(renamed.get(&symbol).copied().unwrap_or(symbol)))?;
    let notes = vec![(DTYPE_NOTE.to_string(), "uint32".to_string())];
    builder.stream(FoldedStream::new(name, folder.describe(), roots[root.index()]).with_notes(notes));
    Ok(builder.finish())
}

/// The distinct symbols below a rule, in the order in which they first occur: each rule is entered where
/// it first occurs.
fn in_order(rules: &Fold, root: RuleId) -> Vec<Symbol> {
    let mut symbols: Vec<Symbol> = Vec::new();
    let mut known: HashSet<Symbol> = HashSet::new();
    let mut entered: HashSet<RuleId> = HashSet::new();
    entered.insert(root);
    let mut open = vec![rules.body(root).iter()];
    while let Some(items) = open.last_mut() {
        match items.next().map(|item| item.target()) {
            None => {
                open.pop();
            }
            Some(Target::Symbol(symbol)) if known.insert(symbol) => symbols.push(symbol),
            Some(Target::Rule(rule)) if entered.insert(rule) => open.push(rules.body(rule).iter()),
            Some(_) => {}
        }
    }
    symbols
}
