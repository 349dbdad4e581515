#![allow(clippy::unwrap_used)]

use super::*;
use loopfold_testing::{Rng, streams};
use std::collections::{HashMap, HashSet};

fn symbols(stream: &[u32]) -> Vec<Symbol> {
    stream.iter().map(|&symbol| Symbol::from_raw(symbol)).collect()
}

fn unfolded(folding: &Folding) -> Vec<Symbol> {
    let mut builder = FoldBuilder::default();
    let root = folding.rules(&mut builder).unwrap();
    builder.finish().unfold(root).collect()
}

/// Checks the three properties and that the index and the uses are what the rules say.
fn check_invariants(folding: &Folding, about: &[u32]) {
    let rules = folding.grammar.lists();
    let mut digrams = HashSet::new();
    let mut uses: HashMap<Part, (u32, u64)> = HashMap::new();
    for (_, items) in &rules {
        for pair in items.windows(2) {
            assert!(pair[0].0 != pair[1].0, "equal neighbours in {about:?}");
            assert!(digrams.insert((pair[0], pair[1])), "a digram twice in {about:?}");
        }
        for &(part, times) in items.iter().filter(|(part, _)| part.is_rule()) {
            let (items, repeats) = uses.entry(part).or_default();
            *items += 1;
            *repeats += u64::from(times);
        }
    }
    assert_eq!(digrams.len(), folding.grammar.digrams(), "the index of {about:?}");
    for (rule, items) in &rules[1..] {
        let (used, repeats) = uses.get(rule).copied().unwrap_or_default();
        assert_eq!(used, folding.grammar.uses(*rule), "uses in {about:?}");
        assert!(repeats >= 2 && items.len() >= 2, "a rule without use in {about:?}");
    }
}

#[test]
fn the_properties_hold_after_every_symbol() {
    let mut rng = Rng::new(11);
    for _ in 0..4_000 {
        let stream = symbols(&streams::small(&mut rng, 60));
        let mut folding = Folding::new();
        for (index, &symbol) in stream.iter().enumerate() {
            folding.push(symbol).unwrap();
            let so_far: Vec<u32> = stream[..=index].iter().map(|symbol| symbol.raw()).collect();
            assert_eq!(unfolded(&folding), stream[..=index], "{so_far:?}");
            let mut settled = folding.clone();
            settled.settle();
            assert_eq!(unfolded(&settled), stream[..=index], "settled {so_far:?}");
            check_invariants(&settled, &so_far);
        }
        assert_eq!(folding.events(), stream.len() as u64);
    }
}

#[test]
fn settling_on_the_way_loses_nothing() {
    let mut rng = Rng::new(12);
    for _ in 0..4_000 {
        let stream = symbols(&streams::small(&mut rng, 120));
        let mut folding = Folding::new();
        for &symbol in &stream {
            folding.push(symbol).unwrap();
            if rng.one_in(7) {
                folding.settle();
            }
        }
        assert_eq!(unfolded(&folding), stream);
    }
}

#[test]
fn one_by_one_or_all_at_once_is_the_same() {
    let mut rng = Rng::new(13);
    for _ in 0..4_000 {
        let stream = symbols(&streams::small(&mut rng, 300));
        let mut one_by_one = Folding::new();
        let mut at_once = Folding::new();
        stream.iter().for_each(|&symbol| one_by_one.push(symbol).unwrap());
        at_once.extend(&stream).unwrap();
        let fold = |folding: Folding| Box::new(folding).finish().unwrap().0;
        assert_eq!(fold(one_by_one), fold(at_once));
    }
}

/// With small counts every loop soon ends the start rule; nothing is lost, and in the
/// fold a loop is one item all the same.
#[test]
fn counts_that_do_not_fit_lose_nothing() {
    let mut rng = Rng::new(14);
    for most_times in [1, 2, 3, 5] {
        for _ in 0..2_000 {
            let stream = symbols(&streams::small(&mut rng, 80));
            let mut folding = Folding { most_times, ..Folding::new() };
            for (index, &symbol) in stream.iter().enumerate() {
                folding.push(symbol).unwrap();
                assert_eq!(unfolded(&folding), stream[..=index], "{stream:?}");
            }
            folding.settle();
            assert_eq!(unfolded(&folding), stream, "{stream:?}");
        }
    }
    let mut folding = Box::new(Folding { most_times: 7, ..Folding::new() });
    folding.extend(&symbols(&[1, 2, 3].repeat(1000))).unwrap();
    let (fold, folded) = folding.finish().unwrap();
    assert_eq!((fold.items(), fold.length(folded.root)), (1 + 3, 3000), "{fold:?}");
}

#[test]
fn long_streams_of_all_families_come_back() {
    for family in streams::FAMILIES {
        let stream = symbols(&family.make(30_000));
        let mut folding = Folding::new();
        folding.extend(&stream).unwrap();
        assert_eq!(unfolded(&folding), stream, "{}", family.name);
        folding.settle();
        assert_eq!(unfolded(&folding), stream, "{} settled", family.name);
        let about = family.name.bytes().map(u32::from).collect::<Vec<u32>>();
        check_invariants(&folding, &about);
    }
}

#[test]
fn loops_are_items() {
    let nest = |text: &str| {
        let mut builder = FoldBuilder::default();
        let root = SequiturRuns.fold(&symbols(&streams::letters(text)), &mut builder).unwrap();
        let fold = builder.finish();
        (fold.items(), fold.length(root))
    };
    assert_eq!(nest(&"a".repeat(1000)), (1, 1000));
    assert_eq!(nest(&format!("x{}y", "ab".repeat(1000))), (5, 2002));
    let inner = format!("{}{}c", "a".repeat(20), "bd".repeat(30));
    assert_eq!(nest(&inner.repeat(50)), (1 + 3 + 2, 50 * 81));
    assert_eq!(nest(""), (0, 0));
}
