use loopfold::folders::{Outermost, fold_trace};
use loopfold::trace::{Collector, Event, Sink as _};
use loopfold::{Fold, RuleId};
use loopfold_json::{JsonWriter, LONGEST_LABEL, Labels, nest};
use serde_json::{Value, json};

/// A fold of one stream of these events.
fn fold(events: &[&str]) -> Fold {
    let mut collector = Collector::default();
    let stream = collector.stream("main").expect("a stream");
    for event in events {
        collector.push_event(stream, &Event::named(event)).expect("an event");
    }
    fold_trace(collector.finish().expect("a trace"), &Outermost::default(), 1).expect("a fold")
}

fn written(fold: &Fold, root: RuleId) -> (Value, usize) {
    let mut out = JsonWriter::new(Vec::new());
    let mut labels = Labels::new(fold.alphabet());
    nest(&mut out, &mut labels, &fold.nest(root, 1 << 20), None).expect("memory can be written to");
    (serde_json::from_slice(&out.into_inner()).expect("JSON"), labels.cut())
}

#[test]
fn nests_are_arrays_of_events_and_loops() {
    let fold = fold(&["a", "b", "c", "c", "b", "c", "c", "d"]);
    let expected = json!(["a", {"times": 2, "body": ["b", {"times": 2, "body": ["c"]}]}, "d"]);
    assert_eq!(written(&fold, fold.streams()[0].root()), (expected, 0));
}

#[test]
fn long_labels_are_cut_at_a_character_and_counted_once() {
    // The limit is in the middle of a character of two bytes.
    let long = "x".to_string() + &"ü".repeat(LONGEST_LABEL);
    let longest = "y".repeat(LONGEST_LABEL);
    let longer = "y".repeat(LONGEST_LABEL + 1);
    let fold = fold(&[&long, "a", &long, &longest, &longer, &long]);
    let cut = "x".to_string() + &"ü".repeat(LONGEST_LABEL / 2 - 1) + "…";
    let expected = json!([cut, "a", cut, longest, longest.clone() + "…", cut]);
    assert_eq!(written(&fold, fold.streams()[0].root()), (expected, 2));
}

#[test]
fn more_labels_than_the_cache_has_slots() {
    let names: Vec<String> = (0..10_000).map(|number| format!("event {number}")).collect();
    let events: Vec<&str> = names.iter().chain(&names[..5000]).map(String::as_str).collect();
    let fold = fold(&events);
    assert_eq!(written(&fold, fold.streams()[0].root()), (json!(events), 0));
}
