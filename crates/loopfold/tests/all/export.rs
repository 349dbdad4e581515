//! Exporters: the papers' figures as graphs, and the grammar as text that is read back
//! as the same fold, whatever the names, and refused when it makes no sense.

use crate::support::export::{check_round_trip, graph, text};
use loopfold::emit::is_harmless;
use loopfold::export::{dot, grammar};
use loopfold::fold::{FoldBuilder, FoldedStream, Item, Target};
use loopfold::folders::{self, Folder, Innermost, Outermost, fold_trace};
use loopfold::trace::{Alphabet, Collector, Column, Event, Field, Name, Role, Sink as _, Times, Value};
use loopfold::{Fold, RuleId, Symbol};
use loopfold_testing::{Rng, streams};
use std::collections::HashMap;

/// A fold of one stream from rules such as `A -> a b`, each after those it is made of,
/// the last one the stream's own. Capital letters are rules, all others are events.
fn by_hand(rules: &[&str]) -> Fold {
    let mut builder = FoldBuilder::default();
    let mut known: HashMap<&str, RuleId> = HashMap::new();
    let mut root = None;
    for rule in rules {
        let (name, body) = rule.split_once(" -> ").unwrap();
        let mut items = Vec::new();
        for word in body.split(' ') {
            let (word, times) = word.split_once('^').unwrap_or((word, "1"));
            let target = match known.get(word) {
                Some(&rule) => Target::Rule(rule),
                None => Target::Symbol(builder.alphabet_mut().intern(&Event::named(word), None).unwrap()),
            };
            items.push(Item::new(target, times.parse().unwrap()));
        }
        let rule = builder.rule(&items).unwrap();
        known.insert(name, rule);
        root = Some(rule);
    }
    builder.stream(FoldedStream::new("main", "by hand", root.unwrap()));
    builder.finish()
}

fn unfolded(fold: &Fold) -> String {
    fold.unfold(fold.streams()[0].root()).map(|symbol| fold.alphabet().label(symbol)).collect()
}

/// The lines of a graph between its head and its closing brace.
fn lines(graph: &str) -> Vec<&str> {
    let lines = graph.lines().map(str::trim);
    lines.skip_while(|line| !line.starts_with("node")).skip(1).filter(|&line| line != "}").collect()
}

#[test]
fn figure_4_is_drawn_with_its_counts() {
    let fold = by_hand(&["A -> 1 2", "B -> A 1", "S -> A B 3 B 4"]);
    assert_eq!(unfolded(&fold), "1212131214");
    let graph = graph(&fold);
    assert_eq!(
        lines(&graph),
        [
            r#"R3 [label="R3\nmain\n1×", peripheries=2]"#,
            r#"R2 [label="R2\n2×"]"#,
            r#"R1 [label="R1\n3×"]"#,
            r#"E1 [label="1\n5×", shape=ellipse]"#,
            r#"E2 [label="2\n3×", shape=ellipse]"#,
            r#"E3 [label="3\n1×", shape=ellipse]"#,
            r#"E4 [label="4\n1×", shape=ellipse]"#,
            "R3 -> R1",
            "R3 -> R2",
            "R3 -> E3",
            "R3 -> R2",
            "R3 -> E4",
            "R2 -> R1",
            "R2 -> E1",
            "R1 -> E1",
            "R1 -> E2",
        ]
    );
}

#[test]
fn figure_5_is_drawn_with_its_counts() {
    let fold = by_hand(&["B -> a b", "C -> b c", "A -> B C", "S -> A C A"]);
    assert_eq!(unfolded(&fold), "abbcbcabbc");
    let graph = graph(&fold);
    for node in [
        r#"R4 [label="R4\nmain\n1×", peripheries=2]"#,
        r#"R3 [label="R3\n2×"]"#,
        r#"R2 [label="R2\n3×"]"#,
        r#"R1 [label="R1\n2×"]"#,
        r#"E1 [label="a\n2×", shape=ellipse]"#,
        r#"E2 [label="b\n5×", shape=ellipse]"#,
        r#"E3 [label="c\n3×", shape=ellipse]"#,
    ] {
        assert!(graph.lines().any(|line| line.trim() == node), "{node} is not in {graph}");
    }
    let edges: Vec<&str> = lines(&graph).into_iter().filter(|line| line.contains("->")).collect();
    assert_eq!(
        edges,
        [
            "R4 -> R3", "R4 -> R2", "R4 -> R3", "R3 -> R1", "R3 -> R2", "R2 -> E2", "R2 -> E3", "R1 -> E1",
            "R1 -> E2"
        ]
    );
}

#[test]
fn repeats_are_on_the_edges_and_counted() {
    let graph = graph(&by_hand(&["A -> a b^4", "S -> A^249 c"]));
    for line in [
        r#"R1 [label="R1\n249×"]"#,
        r#"E2 [label="b\n996×", shape=ellipse]"#,
        r#"R2 -> R1 [label="249×"]"#,
        r#"R1 -> E2 [label="4×"]"#,
    ] {
        assert!(graph.lines().any(|other| other.trim() == line), "{line} is not in {graph}");
    }
}

/// How often each node is executed must be what unfolding shows.
#[test]
fn counts_are_those_of_the_unfolded_streams() {
    let mut rng = Rng::new(3);
    for _ in 0..300 {
        let symbols = streams::small(&mut rng, 80);
        let fold = folded(&symbols, &Innermost::default()).canonical();
        let graph = graph(&fold);
        for symbol in fold.alphabet().symbols() {
            let label = fold.alphabet().label(symbol);
            let count = symbols.iter().filter(|symbol| symbol.to_string() == label).count();
            let line = format!("E{} [label=\"{label}\\n{count}×\", shape=ellipse]", symbol.index() + 1);
            assert!(graph.lines().any(|other| other.trim() == line), "{line} is not in {graph}");
        }
    }
}

#[test]
fn graphs_of_many_nodes_are_refused() {
    let fold = by_hand(&["A -> 1 2", "B -> A 1", "S -> A B 3 B 4"]);
    assert!(dot::write(&fold, 16, Vec::new()).is_ok());
    let error = dot::write(&fold, 15, Vec::new()).unwrap_err();
    assert!(error.kind() == loopfold::ErrorKind::Limit);
    assert!(error.to_string().contains("7 nodes and 9 edges"), "{error}");
}

#[test]
fn a_graph_says_nothing_where_64_bits_cannot_count() {
    let mut builder = FoldBuilder::default();
    let symbol = builder.alphabet_mut().intern(&Event::named("a"), None).unwrap();
    let root = builder.rule(&[Item::new(Target::Symbol(symbol), u64::MAX)]).unwrap();
    builder.stream(FoldedStream::new("one", "by hand", root));
    builder.stream(FoldedStream::new("two", "by hand", root));
    let graph = graph(&builder.finish());
    assert!(graph.contains(r#"R1 [label="R1\none, two\n2×", peripheries=2]"#), "{graph}");
    assert!(graph.contains(r#"E1 [label="a", shape=ellipse]"#), "{graph}");
    assert!(graph.contains("18446744073709551615×"), "{graph}");
}

#[test]
fn names_are_escaped_in_graphs() {
    let mut builder = FoldBuilder::default();
    let names: [&[u8]; 6] =
        [b"say \"hi\"; }", b"back\\slash\\N", b"&lt;b&gt;", b"<b>bold</b>", b"\x1b[2J\n\xff", &[b'x'; 90]];
    let mut intern = |name| Item::once(builder.alphabet_mut().intern(&Event::named(name), None).unwrap());
    let body = names.map(&mut intern);
    let root = builder.rule(&body).unwrap();
    for index in 0..5 {
        builder.stream(FoldedStream::new(format!("\"{index}\"\u{7}"), "by hand", root));
    }
    let graph = graph(&builder.finish());
    assert!(graph.chars().all(|character| is_harmless(character) || character == '\n'), "{graph}");
    for label in [
        r#""say \"hi\"; }\n5×""#,
        r#""back\\slash\\N\n5×""#,
        r#""&amp;lt;b&amp;gt;\n5×""#,
        r#""<b>bold</b>\n5×""#,
        r#""\\u{1b}[2J\\n\\xff\n5×""#,
        r#"xxxxxxxx…\n5×""#,
        r#""R1\n\"0\"\\u{7}, \"1\"\\u{7}, \"2\"\\u{7}, and 2 more\n5×""#,
    ] {
        assert!(graph.contains(label), "{label} is not in {graph}");
    }
}

fn folded(symbols: &[u32], folder: &dyn Folder) -> Fold {
    let mut collector = Collector::default();
    let stream = collector.stream("main").unwrap();
    for symbol in symbols {
        collector.push_event(stream, &Event::named(&symbol.to_string())).unwrap();
    }
    fold_trace(collector.finish().unwrap(), folder, 1).unwrap()
}

#[test]
fn a_grammar_as_text() {
    let mut builder = FoldBuilder::default();
    let fields = [
        Field { key: "peer", value: Value::Integer(-3) },
        Field { key: "odd key", value: Value::Text(b"it's \xff") },
    ];
    let send = Event { name: Name::Text(b"MPI_Send"), role: Role::Send, fields: &fields };
    let long = "a name of more than thirty-two characters";
    let events = [Event::named("init"), send, Event::integer(2_147_492_632), Event::named(long)];
    let [init, send, number, long] =
        events.map(|event| Target::Symbol(builder.alphabet_mut().intern(&event, None).unwrap()));
    let inner = builder.rule(&[Item::new(send, 1), Item::new(number, 12)]).unwrap();
    let root =
        builder.rule(&[Item::new(init, 1), Item::new(Target::Rule(inner), 249), Item::new(long, 1)]).unwrap();
    let empty = builder.rule(&[]).unwrap();
    let notes = vec![("title".to_string(), "rank 0's \u{1b}".to_string()), ("format".into(), "lines".into())];
    builder.stream(FoldedStream::new("rank 0", "outermost", root).with_notes(notes));
    builder.stream(FoldedStream::new("idle", "outermost min-times=4", empty));
    let text = check_round_trip(&builder.finish());
    let expected = r"
E2 = send 'MPI_Send' peer=-3 'odd key'='it\'s \xff'
E4 = 'a name of more than thirty-two characters'
R1 -> E2 2147492632^12
R2 -> 'init' R1^249 E4
stream 'rank 0' -> R2
    folder 'outermost'
    note 'title' 'rank 0\'s \u{1b}'
    note 'format' 'lines'
R3 ->
stream 'idle' -> R3
    folder 'outermost min-times=4'
end
";
    assert!(text.starts_with("loopfold grammar 1\n# ") && text.ends_with(expected), "{text}");
    assert!(text.lines().any(|line| line.starts_with('#') && line.contains("Times of events are not kept")));
}

/// The example in the format's description is one, and written as it would be.
#[test]
fn the_documented_grammar() {
    let page = include_str!("../../../../docs/grammar.md");
    let example = page.split("```\n").nth(1).unwrap();
    let fold = grammar::read(example.as_bytes()).unwrap();
    assert_eq!(fold.events(), Some(1 + 249 * 14 + 1));
    // Numbers of events are those of the whole alphabet.
    assert_eq!(text(&fold), example);
}

#[test]
fn the_smallest_grammars() {
    check_round_trip(&Fold::default());
    assert_eq!(grammar::read(&b"loopfold grammar 1\nend"[..]).unwrap(), Fold::default());
    assert_eq!(
        grammar::read(&b"loopfold grammar 1\r\n# nothing\r\n\r\nend\r\n"[..]).unwrap(),
        Fold::default()
    );
    check_round_trip(&by_hand(&["S -> a"]));
    check_round_trip(&by_hand(&["A -> a b", "S -> A"]));
}

#[test]
fn folds_of_every_folder_come_back() {
    let mut rng = Rng::new(11);
    let folders = folders::all(loopfold::archive::coded_size);
    for _ in 0..500 {
        let symbols = streams::small(&mut rng, 120);
        for folder in &folders {
            check_round_trip(&folded(&symbols, &**folder));
        }
    }
}

#[test]
fn long_rules_are_broken_into_lines() {
    let mut rng = Rng::new(5);
    let symbols: Vec<u32> = (0..5000).map(|_| rng.below(1000) as u32).collect();
    let text = check_round_trip(&folded(&symbols, &Outermost::default()));
    assert!(text.lines().all(|line| line.len() <= 110));
}

/// A fold with rules in rules, shared, empty and repeated roots, counts of all sizes, and
/// names made to be mistaken for something else.
fn hostile_fold(rng: &mut Rng) -> Fold {
    let (alphabet, symbols) = hostile_alphabet(rng);
    let mut builder = FoldBuilder::new(alphabet);
    let mut rules: Vec<RuleId> = Vec::new();
    for _ in 0..rng.below(12) {
        let body = random_body(rng, &symbols, &rules);
        // Too long, or too often: then it is not there.
        rules.extend(builder.rule(&body).ok().filter(|_| !body.is_empty()));
    }
    let empty = builder.rule(&[]).unwrap();
    for _ in 0..rng.below(5) {
        let root = match rng.below(4) {
            0 => empty,
            1 if !rules.is_empty() => rules[rng.below(rules.len())],
            _ => {
                let body = random_body(rng, &symbols, &rules);
                builder.rule(&body).unwrap_or(empty)
            }
        };
        let string = |rng: &mut Rng| String::from_utf8_lossy(&hostile_name(rng)).into_owned();
        let notes = (0..rng.below(3)).map(|_| (string(rng), string(rng))).collect();
        builder.stream(FoldedStream::new(string(rng), string(rng), root).with_notes(notes));
    }
    builder.finish()
}

fn random_body(rng: &mut Rng, symbols: &[Symbol], rules: &[RuleId]) -> Vec<Item> {
    let item = |rng: &mut Rng| {
        let target = match rng.one_in(3) && !rules.is_empty() {
            true => Target::Rule(rules[rng.below(rules.len())]),
            false => Target::Symbol(symbols[rng.below(symbols.len())]),
        };
        let times = if rng.one_in(3) { (rng.next_u64() >> rng.below(64)).max(1) } else { 1 };
        Item::new(target, times)
    };
    (0..rng.below(7)).map(|_| item(rng)).collect()
}

fn hostile_alphabet(rng: &mut Rng) -> (Alphabet, Vec<Symbol>) {
    let mut alphabet = Alphabet::default();
    let mut symbols = Vec::new();
    let roles =
        [Role::Plain, Role::Enter, Role::Leave, Role::Block, Role::Send, Role::Receive, Role::Collective];
    for _ in 0..rng.between(1, 9) {
        let name = hostile_name(rng);
        let name =
            if rng.one_in(3) { Name::Integer(rng.next_u64() >> rng.below(64)) } else { Name::Text(&name) };
        let keys: Vec<String> =
            (0..rng.below(4)).map(|_| String::from_utf8_lossy(&hostile_name(rng)).into_owned()).collect();
        let value = hostile_name(rng);
        let field = |key| {
            let number = rng.next_u64() as i64 >> rng.below(64);
            let value = if rng.one_in(2) { Value::Integer(number) } else { Value::Text(&value) };
            Field { key, value }
        };
        let fields: Vec<Field<'_>> = keys.iter().map(String::as_str).map(field).collect();
        let role = if rng.one_in(2) { Role::Plain } else { roles[rng.below(roles.len())] };
        let event = Event { name, role, fields: &fields };
        symbols.push(alphabet.intern(&event, None).unwrap());
    }
    (alphabet, symbols)
}

fn hostile_name(rng: &mut Rng) -> Vec<u8> {
    let known: [&[u8]; 16] = [
        b"",
        b"R1",
        b"E1",
        b"end",
        b"stream",
        b"->",
        b"^3",
        b"'",
        b"\\",
        b"# no comment",
        b"\n",
        b"\r\n    note",
        b"peer",
        b"12",
        b"\xe2\x80\xae",
        b"\xc3",
    ];
    match rng.below(4) {
        0 => (0..rng.below(70)).map(|_| rng.next_u64() as u8).collect(),
        1 => (0..rng.below(6)).flat_map(|_| known[rng.below(known.len())]).copied().collect(),
        _ => known[rng.below(known.len())].to_vec(),
    }
}

#[test]
fn folds_with_hostile_names_come_back() {
    let mut rng = Rng::new(17);
    for _ in 0..5000 {
        check_round_trip(&hostile_fold(&mut rng));
    }
}

#[test]
fn times_are_left_out() {
    let fold = folded(&[1, 2, 1, 2], &Outermost::default());
    let mut starts = Column::default();
    (0..4).for_each(|start| starts.push(start));
    let mut builder = FoldBuilder::new(fold.alphabet().clone());
    let rules = builder.append_rules(&fold, Ok).unwrap();
    let stream = FoldedStream::new("main", "outermost", rules[fold.streams()[0].root().index()]);
    builder.stream(stream.with_times(Times { starts: Some(starts), ..Times::default() }));
    assert_eq!(grammar::read(text(&builder.finish()).as_bytes()).unwrap(), fold.canonical());
}

#[test]
fn people_may_write_as_they_like() {
    let text = "loopfold grammar 1\n# figure 4\nstart='1'#a comment\nA->start '2'\n\t# in between\n\nstream->A start^1\n\
                end_ = '\\x34'\nS ->\n\tA   stream\n '3' stream\n# here too\n  end_\nunused -> 'x' 'y'\nstream 'x' -> S\nend";
    let fold = grammar::read(text.as_bytes()).unwrap();
    assert_eq!(unfolded(&fold), "1212131214");
    assert_eq!((fold.rules().len(), fold.alphabet().len()), (3, 4));
    assert_eq!((fold.streams()[0].name().raw(), fold.streams()[0].folder().raw()), ("x", "by hand"));
}

/// The statements after the first line of a grammar give this error.
#[track_caller]
fn refuses(statements: &str, expected: &str) {
    let text = format!("loopfold grammar 1\n{statements}");
    let error = grammar::read(text.as_bytes()).unwrap_err();
    assert!(error.kind() == loopfold::ErrorKind::Damaged);
    assert!(error.to_string().starts_with(expected), "{error}");
}

#[test]
fn what_makes_no_sense_is_refused_with_its_line() {
    let not_a_grammar = |text: &[u8], expected: &str| {
        let error = grammar::read(text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    };
    not_a_grammar(b"", "line 1: this is not a grammar");
    not_a_grammar(b"hello\n", "line 1: this is not a grammar");
    not_a_grammar(b"loopfold grammar 2\nend\n", "line 1: a grammar of version 2");
    not_a_grammar(b"loopfold grammar \x1b\nend\n", r"line 1: a grammar of version \x1b");

    refuses("", "line 1: the text ends here, before its `end`");
    refuses("A -> 'a'\n", "line 2: the text ends here, before its `end`");
    refuses("  A -> 'a'\nend\n", "line 2: an indented line");
    refuses("A -> 'a' A\nend\n", "line 2: A is not known");
    refuses("A -> 'a' B\nB -> 'b' A\nend\n", "line 2: B is not known");
    refuses("A -> 'a'\n\nA -> 'b'\nend\n", "line 4: A is defined above already");
    refuses("A = 'a'\nA -> 'b'\nend\n", "line 3: A is defined above already");
    refuses("A -> 'a'\nA = 'b'\nend\n", "line 3: A is defined above already");
    refuses("A ->\nB -> A\nend\n", "line 3: A is empty");
    refuses("A -> 'a'^0\nend\n", "line 2: an item repeats at least once");
    refuses("A -> 'a'^-1\nend\n", "line 2: -1 is out of range");
    refuses("A -> 'a'^18446744073709551616\nend\n", "line 2: 18446744073709551616 is out of range");
    refuses("A -> 'a'^18446744073709551615 'b'\nend\n", "line 2: a rule unfolds to more than 2^64");
    refuses("A -> 'a'^4294967296 'b'\nB -> A^4294967296\nend\n", "line 3: a rule unfolds to more than 2^64");
    refuses("A -> 'a'^\nend\n", "line 2: `^` is followed by");
    refuses("A -> 'a'^'b'\nend\n", "line 2: `^` is followed by");
    refuses("A -> ^2\nend\n", "line 2: a rule is made of");
    refuses("A -> -1\nend\n", "line 2: -1 is out of range");
    refuses("A -> 99999999999999999999\nend\n", "line 2: 99999999999999999999 is out of range");
    refuses("A -> 'a\nend\n", "line 2: a name has no closing quote");
    refuses("A -> 'a'\n    'b\nend\n", "line 3: a name has no closing quote");
    refuses("A -> 'a\\q'\nend\n", "line 2: an unknown escape");
    refuses("A -> 'a' -> 'b'\nend\n", "line 2: a rule is made of");
    refuses("A -> \"a\"\nend\n", "line 2: \\\" means nothing here");
    refuses("A -> 'a' - 'b'\nend\n", "line 2: - means nothing here");
    refuses("A 'a'\nend\n", "line 2: a statement begins with");
    refuses("A\nend\n", "line 2: a statement begins with");
    refuses("12 -> 'a'\nend\n", "line 2: a statement begins with");
    refuses("A =\nend\n", "line 2: an event has a name");
    refuses("A = wait 'x'\nend\n", "line 2: wait is no role; there are enter, leave,");
    refuses("A = -5\nend\n", "line 2: -5 is out of range");
    refuses("A = send\nend\n", "line 2: an event has a name");
    refuses("A = send 'x' 'y'\nend\n", "line 2: a field is written as key=value");
    refuses("A = send 'x' y\nend\n", "line 2: a field is written as key=value");
    refuses("A = send 'x' y=\nend\n", "line 2: the value of a field");
    refuses("A = send 'x' y=9223372036854775808\nend\n", "line 2: 9223372036854775808 is out of range");
    refuses("A = send 'x' '\\xff'=1\nend\n", "line 2: the key of a field is not UTF-8");
    refuses("A = 'x'\nstream 's' -> A\nend\n", "line 3: A is an event");
    refuses("stream 's' -> A\nend\n", "line 2: A is not known");
    refuses("stream 's'\nend\n", "line 2: the name of a stream is followed by");
    refuses("A -> 'a'\nstream 's' ->\n\nend\n", "line 3: a stream unfolds from a rule");
    refuses("A -> 'a'\nstream -> A\nstream A\nend\n", "line 4: a stream has a name in quotes");
    refuses("A -> 'a'\nstream '\\xff' -> A\nend\n", "line 3: this name is not UTF-8");
    refuses("A -> 'a'\nstream 's' -> A\n folder 'x'\n folder 'y'\nend\n", "line 5: a second folder");
    refuses("A -> 'a'\nstream 's' -> A folder\nend\n", "line 3: a folder has a name");
    refuses("A -> 'a'\nstream 's' -> A note 'x'\nend\n", "line 3: a note has a key and a value");
    refuses("A -> 'a'\nstream 's' -> A 'x'\nend\n", "line 3: after the rule of a stream");
    refuses("A -> 'a'\nstream 's' -> A^2\nend\n", "line 3: after the rule of a stream");
    refuses("end\nend\n", "line 3: there is something after the `end`");
    refuses("end 'x'\n", "line 2: there is more in this statement");
    let long = "x".repeat(1_000_000);
    let error = grammar::read(format!("loopfold grammar 1\nA -> {long}\n").as_bytes()).unwrap_err();
    assert!(error.to_string().len() < 200);
}

/// The streams that were complete before the damage are there.
#[test]
fn damage_leaves_the_streams_before_it() {
    let mut builder = FoldBuilder::default();
    for (name, word) in [("one", "abab"), ("two", "ccd"), ("three", "abccd"), ("four", "abab")] {
        let body = word.chars().map(|letter| {
            Item::once(builder.alphabet_mut().intern(&Event::named(&letter.to_string()), None).unwrap())
        });
        let body: Vec<Item> = body.collect();
        let root = builder.rule(&body).unwrap();
        builder.stream(FoldedStream::new(name, "by hand", root));
    }
    let fold = builder.finish();
    let whole = text(&fold);
    let mut seen = [false; 5];
    for length in 19..whole.len() - 1 {
        let (part, error) = grammar::read_leniently(&whole.as_bytes()[..length]).unwrap();
        let error = error.unwrap_or_else(|| panic!("cut at {length} is not noticed"));
        assert!(
            error.kind() == loopfold::ErrorKind::Damaged && error.to_string().starts_with("line "),
            "{error}"
        );
        seen[part.streams().len()] = true;
        let names: Vec<_> = part.streams().iter().map(FoldedStream::name).collect();
        assert_eq!(part, fold.with_streams(|id| names.contains(&fold.stream(id).name())).canonical());
    }
    assert_eq!(seen, [true; 5]);
    assert!(grammar::read_leniently(&whole.as_bytes()[..10]).is_err());
    assert_eq!(grammar::read_leniently(whole.as_bytes()).unwrap().0, fold.canonical());
}

/// Whatever is changed in a text, reading it ends, with a fold that comes back or with an
/// error that names a line; and what is read is no larger than the text allows.
#[test]
fn changed_texts_are_read_or_refused() {
    let mut rng = Rng::new(23);
    let (mut good, mut bad) = (0, 0);
    for round in 0..20_000 {
        let mut bytes = if round % 2 == 0 {
            text(&hostile_fold(&mut rng)).into_bytes()
        } else {
            text(&folded(&streams::small(&mut rng, 40), &Innermost::default())).into_bytes()
        };
        for _ in 0..rng.between(1, 3) {
            mutate(&mut rng, &mut bytes);
        }
        match grammar::read(&bytes[..]) {
            Ok(fold) => {
                good += 1;
                assert!(fold.items() + fold.rules().len() + fold.alphabet().len() <= bytes.len());
                check_round_trip(&fold);
            }
            Err(error) => {
                bad += 1;
                assert!(
                    error.kind() == loopfold::ErrorKind::Damaged && error.to_string().starts_with("line "),
                    "{error}"
                );
            }
        }
    }
    assert!(good > 1000 && bad > 1000, "{good} good, {bad} bad");
}

fn mutate(rng: &mut Rng, bytes: &mut Vec<u8>) {
    let at = rng.below(bytes.len());
    let end = (at + rng.below(12)).min(bytes.len());
    let pieces: [&[u8]; 12] = [
        b"'",
        b"\\",
        b" ",
        b"\n",
        b"^",
        b"9",
        b"R1",
        b"->",
        b"\nend\n",
        b"\n    ",
        b"#",
        b"99999999999999999999",
    ];
    match rng.below(6) {
        0 => bytes[at] = rng.next_u64() as u8,
        1 => bytes[at] ^= 1 << rng.below(8),
        2 => drop(bytes.drain(at..end)),
        3 => drop(bytes.splice(at..at, pieces[rng.below(pieces.len())].iter().copied())),
        4 => {
            let copied = bytes[at..end].to_vec();
            let place = rng.below(bytes.len());
            bytes.splice(place..place, copied);
        }
        _ => bytes.truncate(at.max(1)),
    }
    if bytes.is_empty() {
        bytes.push(b'x');
    }
}

/// A text of 700 bytes may claim 2^60 events and rules a hundred deep.
#[test]
fn deep_rules_and_many_events_are_only_claims() {
    let mut text = "loopfold grammar 1\nR0 -> 'a' 'b'\n".to_string();
    for level in 1..60 {
        text.push_str(&format!("R{level} -> R{} R{0}\n", level - 1));
    }
    let fold = grammar::read(format!("{text}stream 's' -> R59\nend\n").as_bytes()).unwrap();
    assert_eq!(fold.events(), Some(1 << 60));
    check_round_trip(&fold);
    refuses_more(&text);

    let mut chain = "loopfold grammar 1\nR0 -> 'a' 'b'\n".to_string();
    for level in 1..200_000 {
        chain.push_str(&format!("R{level} -> R{} 'a'\n", level - 1));
    }
    let fold = grammar::read(format!("{chain}stream 's' -> R199999\nend\n").as_bytes()).unwrap();
    assert_eq!(fold.events(), Some(200_001));
    check_round_trip(&fold);
}

fn refuses_more(text: &str) {
    let more = (60..64).map(|level| format!("R{level} -> R{} R{0}\n", level - 1)).collect::<String>();
    let error = grammar::read(format!("{text}{more}end\n").as_bytes()).unwrap_err();
    assert!(error.to_string().starts_with("line 65: a rule unfolds to more than 2^64"), "{error}");
}

#[test]
fn a_fold_that_repeats_nothing_is_refused() {
    let mut builder = FoldBuilder::default();
    let empty = builder.rule(&[]).unwrap();
    let root = builder.rule(&[Item::new(Target::Rule(empty), 2)]).unwrap();
    builder.stream(FoldedStream::new("main", "by hand", root));
    assert!(grammar::write(&builder.finish(), Vec::new()).is_err());
}
