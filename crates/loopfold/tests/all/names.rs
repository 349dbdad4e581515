//! Names of events: globs, fields and regular expressions select what `grep` finds in the
//! unfolded text.

use crate::support::folders;
use loopfold::Fold;
use loopfold::folders::fold_trace;
use loopfold::questions::find::Place;
use loopfold::questions::query::Query;
use loopfold::trace::{Collector, Event, Field, Name, Sink, Value};
use loopfold_testing::{Rng, names};

/// A short text of few letters, so that patterns often fit.
fn text(rng: &mut Rng, letters: &[char], longest: usize) -> String {
    (0..rng.between(1, longest)).map(|_| letters[rng.below(letters.len())]).collect()
}

/// An event with a name and up to two fields, as it is printed, and its parts.
struct Kind {
    name: String,
    number: Option<u64>,
    fields: Vec<(&'static str, String)>,
}

impl Kind {
    fn random(rng: &mut Rng) -> Self {
        let letters = ['a', 'b', 'A', '_', '*', '['];
        let plain = if rng.one_in(4) { letters.len() } else { 4 };
        let number = rng.one_in(8).then(|| rng.below(300) as u64);
        let name = number.map_or_else(|| text(rng, &letters[..plain], 4), |number| number.to_string());
        let fields = ["src", "tag"].into_iter().filter(|_| rng.one_in(2));
        let fields: Vec<&'static str> = fields.collect();
        let value = |rng: &mut Rng| match rng.one_in(2) {
            true => rng.below(30).to_string(),
            false => text(rng, &['x', 'y', '-'], 3),
        };
        Self { name, number, fields: fields.into_iter().map(|key| (key, value(rng))).collect() }
    }

    fn label(&self) -> String {
        let fields: String = self.fields.iter().map(|(key, value)| format!(" {key}={value}")).collect();
        format!("{}{fields}", self.name)
    }

    fn push(&self, collector: &mut Collector, stream: loopfold::StreamId) {
        let value = |value: &'_ str| match value.parse() {
            Ok(number) => Value::Integer(number),
            Err(_) => Value::Text(value.to_string().leak().as_bytes()),
        };
        let fields: Vec<Field<'_>> =
            self.fields.iter().map(|(key, text)| Field { key, value: value(text) }).collect();
        let name = self.number.map_or(Name::Text(self.name.as_bytes()), Name::Integer);
        collector.push_event(stream, &Event { name, fields: &fields, ..Event::default() }).unwrap();
    }
}

/// A word that stands for some events, as often as not.
fn random_word(rng: &mut Rng, labels: &[String]) -> String {
    let mut word: Vec<char> = labels[rng.below(labels.len())].chars().collect();
    let place = |rng: &mut Rng, word: &[char]| rng.below(word.len().max(1));
    match rng.below(7) {
        0 => {}
        // A name without its fields, or with some.
        1 => {
            let parts: Vec<String> = word.iter().collect::<String>().split(' ').map(String::from).collect();
            let kept = parts.iter().filter(|_| rng.one_in(2)).cloned().collect::<Vec<_>>().join(" ");
            word = if kept.is_empty() { vec!['z'] } else { kept.chars().collect() };
        }
        2..=4 => {
            for _ in 0..rng.between(1, 3) {
                let at = place(rng, &word);
                let glob = ["*", "?", "[ab]", "[!a]"][rng.below(4)].chars();
                let end = (at + rng.below(3)).min(word.len());
                word.splice(at..end, glob);
            }
        }
        _ => {
            let expression: String = (0..rng.between(1, 5))
                .map(|_| ["a", "b", "_", ".", "a*", ".*", "x", "src=", "^a", "y$", "|b"][rng.below(11)])
                .collect();
            return format!("/{expression}/");
        }
    }
    word.into_iter().collect()
}

fn quoted(word: &str, rng: &mut Rng) -> String {
    // Fields belong to the name before them, so that a word of fields alone needs quotes.
    let is_field =
        |part: &str| part.find('=').is_some_and(|at| at > 0 && part[..at].chars().all(char::is_alphanumeric));
    let mut parts = word.split(' ');
    let is_plain =
        parts.next().is_some_and(|name| !name.is_empty() && !is_field(name)) && parts.all(is_field);
    if is_plain && rng.one_in(2) { word.to_string() } else { format!("'{word}'") }
}

fn fold_of(kinds: &[Kind], rng: &mut Rng) -> (Fold, Vec<Vec<String>>) {
    let mut collector = Collector::default();
    let mut streams = Vec::new();
    for index in 0..rng.between(1, 2) {
        let stream = collector.stream(&format!("s{index}")).unwrap();
        let (mut labels, mut body) = (Vec::new(), Vec::new());
        for _ in 0..rng.between(1, 40) {
            if body.is_empty() || rng.one_in(4) {
                body = (0..rng.between(1, 4)).map(|_| rng.below(kinds.len())).collect();
            }
            for &kind in &body {
                kinds[kind].push(&mut collector, stream);
                labels.push(kinds[kind].label());
            }
        }
        streams.push(labels);
    }
    let all = folders();
    let folder = &all[rng.below(all.len())];
    (fold_trace(collector.finish().unwrap(), &**folder, 1).unwrap(), streams)
}

#[test]
fn patterns_select_what_grep_finds_in_the_unfolded_text() {
    let mut rng = Rng::new(151);
    let (mut found, mut nothing) = (0, 0);
    for _ in 0..8_000 {
        let kinds: Vec<Kind> = (0..rng.between(1, 12)).map(|_| Kind::random(&mut rng)).collect();
        let (fold, streams) = fold_of(&kinds, &mut rng);
        // What is printed is what the test takes for it.
        for (labels, stream) in streams.iter().zip(fold.streams()) {
            let printed = fold.unfold(stream.root()).map(|symbol| fold.alphabet().label(symbol));
            assert!(printed.eq(labels.iter().cloned()));
        }
        let all: Vec<String> =
            fold.alphabet().symbols().map(|symbol| fold.alphabet().label(symbol)).collect();
        let words: Vec<String> = (0..rng.between(1, 3)).map(|_| random_word(&mut rng, &all)).collect();
        let query: Vec<String> = words.iter().map(|word| quoted(word, &mut rng)).collect();
        let query = query.join(" ");
        let mut expected = Vec::new();
        for (labels, stream) in streams.iter().zip(fold.stream_ids()) {
            for (start, window) in labels.windows(words.len()).enumerate() {
                if window.iter().zip(&words).all(|(label, word)| names::stands_for(word, label, &all)) {
                    let (start, end) = (start as u64, (start + words.len() - 1) as u64);
                    expected.push(Place { stream, start, end });
                }
            }
        }
        let parsed = Query::parse(&query, fold.alphabet()).unwrap();
        // A text that is the name of one event is that event.
        if parsed.len() != words.len() {
            continue;
        }
        let places: Vec<Place> = fold.find(&parsed).unwrap().places().collect();
        assert_eq!(places, expected, "{query} in {streams:?}");
        *(if expected.is_empty() { &mut nothing } else { &mut found }) += 1;
    }
    assert!(found > 2_000 && nothing > 2_000, "{found} {nothing}");
}

#[test]
fn a_query_with_an_unknown_event_occurs_nowhere() {
    let mut rng = Rng::new(152);
    let kinds: Vec<Kind> = (0..5).map(|_| Kind::random(&mut rng)).collect();
    let (fold, streams) = fold_of(&kinds, &mut rng);
    let known = format!("'{}'", streams[0][0]);
    for query in [
        "nix".to_string(),
        format!("{known} nix"),
        format!("{} nix {known}", format!("{known} ").repeat(100)),
    ] {
        let parsed = Query::parse(&query, fold.alphabet()).unwrap();
        assert_eq!(parsed.unknown(), ["nix"]);
        let found = fold.find(&parsed).unwrap();
        assert_eq!((found.count().unwrap(), found.first()), (0, None));
        if parsed.len() < 60 {
            assert_eq!(fold.context(&parsed, 2).unwrap().count, 0);
        }
        assert!(fold.order(&parsed, &parsed).unwrap().iter().all(|order| order.first.is_none()));
    }
}
