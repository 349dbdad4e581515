//! The folders that make grammars against the paper's procedure and its worked examples.

use loopfold::fold::{FoldBuilder, FoldedStream, Target, rule_uses};
use loopfold::folders::{Folder, Online, Sequitur, Sequitur1};
use loopfold::{Fold, RuleId, Symbol};
use loopfold_testing::grammars::{Grammar, Part};
use loopfold_testing::{Rng, streams};

fn symbol(raw: u32) -> Symbol {
    Symbol::new(raw as usize).unwrap()
}

/// The rules of a fold as the paper writes them.
fn grammar(fold: &Fold, root: RuleId) -> Grammar {
    // The start rule is the last one that was made, and comes first.
    let number = |rule: RuleId| root.index() - rule.index();
    let part = |target| match target {
        Target::Symbol(symbol) => Part::Symbol(symbol.raw()),
        Target::Rule(rule) => Part::Rule(number(rule)),
    };
    let parts = |rule: RuleId| {
        let items = fold.body(rule).iter();
        items.map(|item| (item.times() == 1).then(|| part(item.target())).unwrap()).collect()
    };
    Grammar(fold.rules().rev().map(parts).collect())
}

/// What an online folder has so far, which must unfold to what was pushed.
fn grammar_of(online: &dyn Online, pushed: &[u32]) -> Grammar {
    let mut builder = FoldBuilder::default();
    let root = online.rules(&mut builder).unwrap();
    let fold = builder.finish();
    assert_eq!(online.events(), pushed.len() as u64);
    assert!(fold.unfold(root).eq(pushed.iter().map(|&raw| symbol(raw))), "{pushed:?} is lost");
    grammar(&fold, root)
}

fn grammar_text(text: &str, folder: &dyn Folder) -> String {
    let stream = streams::letters(text);
    let mut online = folder.online().unwrap();
    stream.iter().for_each(|&raw| online.push(symbol(raw)).unwrap());
    grammar_of(&*online, &stream).to_string()
}

#[test]
fn examples_of_the_paper() {
    for (text, expected) in [
        // Section 3.
        ("abcabcabcabcabc", "S → AAB, A → BB, B → abc"),
        // Section 3.1.
        ("abcab", "S → AcA, A → ab"),
        ("abcabdabcabd", "S → AA, A → BcBd, B → ab"),
        // Section 3.2.
        ("1111", "S → AA, A → 11"),
        ("11111211", "S → AA12A, A → 11"),
        ("11111211111", "S → AB2BA, A → 11, B → A1"),
        // Figures 4 and 5.
        ("1212131214", "S → AB3B4, A → 12, B → A1"),
        ("abbcbcabbc", "S → ABA, A → abB, B → bc"),
        ("", "S → "),
        ("a", "S → a"),
    ] {
        assert_eq!(grammar_text(text, &Sequitur), expected, "{text}");
    }
    assert_eq!(grammar_text("11111211111", &Sequitur1), "S → A2A, A → BB1, B → 11");
}

#[test]
fn steps_of_the_example_with_look_ahead() {
    let stream = streams::letters("11111211111");
    let mut online = Sequitur1.online().unwrap();
    let mut steps = Vec::new();
    for (index, &raw) in stream.iter().enumerate() {
        online.push(symbol(raw)).unwrap();
        steps.push(grammar_of(&*online, &stream[..=index]).to_string());
    }
    // What the grammar is if the stream ends there: the rule A1 of the ninth step is not
    // made when another 1 follows.
    assert_eq!(
        steps[7..],
        [
            "S → AA12A, A → 11",
            "S → AB2B, A → 11, B → A1",
            "S → A12A, A → BB, B → 11",
            "S → A2A, A → BB1, B → 11",
        ]
    );
}

/// Figure 5: how often each rule is executed.
#[test]
fn execution_counts_of_figure_five() {
    let stream: Vec<Symbol> = streams::letters("abbcbcabbc").into_iter().map(symbol).collect();
    let mut builder = FoldBuilder::default();
    let root = Sequitur.fold(&stream, &mut builder).unwrap();
    builder.stream(FoldedStream::new("main", "sequitur", root));
    let fold = builder.finish();
    let counts = rule_uses(&fold).unwrap();
    let mut counts: Vec<(String, u64)> = fold
        .rules()
        .map(|rule| {
            let text: String = fold.unfold(rule).map(|symbol| symbol.raw() as u8 as char).collect();
            (text, counts[rule.index()])
        })
        .collect();
    counts.sort();
    let expected = [("abbc", 2), ("abbcbcabbc", 1), ("bc", 3)];
    assert_eq!(counts, expected.map(|(text, count)| (text.to_string(), count)));
}

/// Compares every step with the paper's procedure, word for word. Both properties must hold
/// whatever the procedure says.
fn compare_every_step(folder: &dyn Folder, looks_ahead: bool, seed: u64, longest: usize, count: usize) {
    let mut rng = Rng::new(seed);
    for _ in 0..count {
        let stream = streams::small(&mut rng, longest);
        let mut online = folder.online().unwrap();
        let mut oracle = Grammar::default();
        for (index, &raw) in stream.iter().enumerate() {
            let so_far = &stream[..=index];
            online.push(symbol(raw)).unwrap();
            let ours = grammar_of(&*online, so_far);
            assert_eq!(ours.duplicates(), [], "digrams in {ours} of {so_far:?}");
            assert_eq!(ours.useless_rules(), [0; 0], "rules in {ours} of {so_far:?}");
            let mut ended = oracle.clone();
            ended.push(raw, None);
            assert_eq!(ours.to_string(), ended.to_string(), "{} of {so_far:?}", folder.name());
            oracle.push(raw, stream.get(index + 1).copied().filter(|_| looks_ahead));
        }
    }
}

#[test]
fn sequitur_equals_the_papers_procedure_at_every_step() {
    compare_every_step(&Sequitur, false, 61, 40, 3000);
    compare_every_step(&Sequitur, false, 62, 150, 60);
}

#[test]
fn sequitur1_equals_the_papers_procedure_at_every_step() {
    compare_every_step(&Sequitur1, true, 63, 40, 3000);
    compare_every_step(&Sequitur1, true, 64, 150, 60);
}

#[test]
fn folding_at_once_is_the_same_as_pushing() {
    let mut rng = Rng::new(65);
    for folder in [&Sequitur as &dyn Folder, &Sequitur1] {
        for _ in 0..200 {
            let stream = streams::nests(rng.between(0, 3000), rng.next_u64());
            let symbols: Vec<Symbol> = stream.iter().copied().map(symbol).collect();
            let mut builder = FoldBuilder::default();
            let root = folder.fold(&symbols, &mut builder).unwrap();
            let at_once = grammar(&builder.finish(), root);
            let mut online = folder.online().unwrap();
            online.extend(&symbols).unwrap();
            assert_eq!(at_once, grammar_of(&*online, &stream));
        }
    }
}

#[test]
fn memory_goes_with_the_grammar() {
    // A million iterations take as many rules as a logarithm.
    let body: Vec<Symbol> = streams::random(100, 50, 1).into_iter().map(symbol).collect();
    for folder in [&Sequitur as &dyn Folder, &Sequitur1] {
        let mut online = folder.online().unwrap();
        (0..20_000).for_each(|_| online.extend(&body).unwrap());
        let mut builder = FoldBuilder::default();
        let root = online.rules(&mut builder).unwrap();
        let fold = builder.finish();
        assert_eq!(fold.length(root), 2_000_000);
        assert!(fold.items() < 300, "{} items", fold.items());
    }
}
