//! What the source makes of small traces in the forms that tools write.

use super::*;
use crate::Options;
use crate::testing::{Outcome, Reading, damage_of, events_of, note_of, streams_of, times_of};

fn read(text: &str) -> Outcome {
    crate::testing::read(&Chrome, text, Reading::default())
}

fn read_with(text: &str, options: Options) -> Outcome {
    crate::testing::read(&Chrome, text, Reading { options, key: None })
}

fn calls(text: &str) -> Vec<String> {
    events_of(&read_with(text, Options { calls: true, ..Options::default() }), "pid 1")
}

fn lenient(text: &str) -> Outcome {
    crate::testing::read(&Chrome, text, Reading::lenient())
}

#[test]
fn whole_slices_are_emitted_parent_first() {
    // In the order of ends, as some tools write them.
    let text = r#"{"other": {"traceEvents": [1]}, "traceEvents": [
        {"ph":"X","name":"child","pid":1,"tid":2,"ts":10.5,"dur":"1"},
        {"ph":"X","name":"twin inside","pid":1,"tid":2,"ts":20,"dur":5},
        {"ph":"X","name":"twin around","pid":1,"tid":2,"ts":20,"dur":5},
        {"ph":"X","name":"parent","pid":"1","tid":"2","ts":"10.5","dur":40}
    ], "more": "]}"}"#;
    let reading = read(text);
    assert_eq!(events_of(&reading, "pid 1 tid 2"), ["parent", "child", "twin around", "twin inside"]);
    assert_eq!(times_of(&reading, "pid 1 tid 2")[..2], [(10_500, 40_000), (10_500, 1_000)]);
}

#[test]
fn begins_and_ends_are_matched() {
    let text = r#"[
        {"ph":"E","name":"before","pid":1,"ts":1},
        {"ph":"B","name":"a","pid":1,"ts":2},
        {"ph":"B","name":"lost","pid":1,"ts":3},
        {"ph":"B","name":"b","pid":1,"ts":4},
        {"ph":"E","pid":1,"ts":5},
        {"ph":"E","name":"unknown","pid":1,"ts":6},
        {"ph":"E","name":"a","pid":1,"ts":7},
        {"ph":"B","name":"open","pid":1,"ts":8}"#;
    let reading = read(text);
    assert_eq!(events_of(&reading, "pid 1"), ["a", "lost", "b", "open"]);
    assert_eq!(times_of(&reading, "pid 1"), [(2000, 5000), (3000, -1), (4000, 1000), (8000, -1)]);
    assert_eq!(note_of(&reading, "pid 1", "ends-without-begin").unwrap(), "2");
    assert_eq!(note_of(&reading, "pid 1", "begins-without-end").unwrap(), "2");
    assert_eq!(
        calls(text),
        [
            "enter a",
            "enter lost caller=a",
            "enter b caller=lost",
            "leave b",
            "leave lost",
            "leave a",
            "enter open",
            "leave open"
        ]
    );
}

#[test]
fn calls_of_no_duration_keep_their_order() {
    let text = r#"[{"ph":"B","name":"a","pid":1,"ts":5},{"ph":"E","pid":1,"ts":5},
        {"ph":"B","name":"b","pid":1,"ts":5},{"ph":"B","name":"c","pid":1,"ts":5},
        {"ph":"i","name":"mark","pid":1,"ts":5},
        {"ph":"E","pid":1,"ts":5},{"ph":"E","pid":1,"ts":9}]"#;
    assert_eq!(events_of(&read(text), "pid 1"), ["a", "b", "c", "mark"]);
    assert_eq!(
        calls(text),
        ["enter a", "leave a", "enter b", "enter c caller=b", "mark function=c", "leave c", "leave b"]
    );
    let alone = r#"[{"ph":"i","name":"mark","pid":1,"ts":5}]"#;
    assert_eq!(
        (events_of(&read(alone), "pid 1"), calls(alone)),
        (vec!["mark".into()], vec!["mark function=?".into()])
    );
}

#[test]
fn whole_slices_become_nested_calls() {
    let text = r#"[{"ph":"X","name":"a","pid":1,"ts":0,"dur":10},{"ph":"X","name":"b","pid":1,"ts":2,"dur":3},
        {"ph":"X","name":"c","pid":1,"ts":8,"dur":9},{"ph":"X","name":"d","pid":1,"ts":20,"dur":1}]"#;
    assert_eq!(
        calls(text),
        [
            "enter a",
            "enter b caller=a",
            "leave b",
            "enter c caller=a",
            "leave c",
            "leave a",
            "enter d",
            "leave d"
        ]
    );
}

#[test]
fn work_of_a_gpu_queue_is_a_stream_of_its_own() {
    let text = r#"{"traceEvents":[
        {"ph":"X","cat":"gpu_user_annotation","name":"step","pid":0,"tid":7,"ts":1,"dur":9},
        {"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":2,"dur":1},
        {"ph":"X","cat":"gpu_memset","name":"Memset","pid":0,"tid":7,"ts":1,"dur":1},
        {"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":8,"ts":2,"dur":1},
        {"ph":"f","cat":"ac2g","name":"ac2g","pid":0,"tid":8,"ts":2,"id":4},
        {"ph":"M","name":"process_name","pid":0,"tid":0,"args":{"name":"python"}},
        {"ph":"M","name":"process_labels","pid":0,"tid":0,"args":{"labels":"GPU 0"}},
        {"ph":"M","name":"thread_name","pid":0,"tid":7,"args":{"name":"stream 7 "}}]}"#;
    let reading = read(text);
    assert_eq!(streams_of(&reading), ["pid 0 tid 7", "pid 0 tid 7 gpu queue", "pid 0 tid 8"]);
    assert_eq!(events_of(&reading, "pid 0 tid 7 gpu queue"), ["Memset", "gemm"]);
    let title = note_of(&reading, "pid 0 tid 7 gpu queue", "title");
    assert_eq!(title.unwrap(), "python 0 (GPU 0) / stream 7 gpu queue");
    assert_eq!(note_of(&reading, "pid 0 tid 8", "events-left-out").unwrap(), "1 flow arrow");
}

#[test]
fn categories_are_chosen() {
    let text = r#"[{"ph":"B","cat":"x","name":"no","pid":1,"ts":1},{"ph":"B","cat":"y, z","name":"yes","pid":1,"ts":2},
        {"ph":"E","pid":1,"ts":3},{"ph":"E","pid":1,"ts":4},{"ph":"X","name":"none","pid":1,"ts":5,"dur":1}]"#;
    let reading = read_with(text, Options { category: vec!["z".into()], ..Options::default() });
    assert_eq!(events_of(&reading, "pid 1"), ["yes"]);
    assert_eq!(times_of(&reading, "pid 1"), [(2000, 1000)]);
    let options = Options { category: vec!["w".into(), "v".into()], ..Options::default() };
    let error = read_with(text, options).unwrap_err();
    assert_eq!(error, "--category w,v: no event has it; there are x, y, z");
}

#[test]
fn fields_come_when_they_are_wanted() {
    let text = r#"[{"ph":"X","cat":"c","name":"n","pid":1,"ts":1,"dur":1,
        "args":{"size":8,"path":"a\"b","deep":{"size":9},"ratio":0.5}}]"#;
    let by =
        |key: &[&str]| events_of(&crate::testing::read(&Chrome, text, Reading::by(key)), "pid 1").remove(0);
    assert_eq!(by(&["name", "cat"]), "n cat=c");
    assert_eq!(by(&["name", "args.size", "args.path"]), "n args.size=8 args.path=a\"b");
    assert_eq!(by(&["args.ratio"]), "0.5");
    assert_eq!(by(&["name", "args.deep"]), "n args.deep={\"size\":9}");
    assert_eq!(by(&["name", "args.size "]), "n");
}

#[test]
fn titles_come_from_metadata_anywhere() {
    let text = r#"{"traceEvents":[
        {"ph":"M","name":"thread_name","pid":40,"args":{"name":"[40] prog"}},
        {"ph":"M","name":"process_name","pid":40,"args":{"name":"[40] prog"}},
        {"ph":"M","name":"thread_name","pid":41,"args":{"name":"[41] prog"}},
        {"ph":"i","name":"a","pid":40,"ts":1},
        {"ph":"i","name":"a","pid":40,"tid":41,"ts":1},
        {"ph":"i","name":"a","pid":40,"tid":42,"ts":1},
        {"ph":"i","name":"a","pid":"","tid":"","ts":1},
        {"ph":"i","name":"a","tid":3,"ts":1}]}"#;
    let reading = read(text);
    assert_eq!(streams_of(&reading), ["pid 40", "pid 40 tid 41", "pid 40 tid 42", "no pid", "tid 3"]);
    assert_eq!(note_of(&reading, "pid 40", "title").unwrap(), "[40] prog");
    assert_eq!(note_of(&reading, "pid 40 tid 41", "title").unwrap(), "[40] prog / [41] prog");
    assert_eq!(note_of(&reading, "pid 40 tid 42", "title").unwrap(), "[40] prog / thread 42");
    assert_eq!(note_of(&reading, "no pid", "title"), None);
    assert_eq!(streams_of(&read(r#"[{"ph":"i","name":"a","ts":1}]"#)), ["input"]);
}

#[test]
fn names_may_have_escapes() {
    let reading = read(
        r#"[{"ph":"B","name":"say \"hi\" \u00e9","ts":1,"pid":1},{"ph":"E","name":"say \"hi\" \u00e9","ts":2,"pid":1},"#,
    );
    assert_eq!(events_of(&reading, "pid 1"), ["say \"hi\" é"]);
    assert_eq!(times_of(&reading, "pid 1"), [(1000, 1000)]);
}

#[test]
fn empty_traces_are_fine() {
    for text in ["[]", "[", "{\"traceEvents\":[]}", "\u{feff}{\"traceEvents\" : [ ] , \"a\":{}}", "[ ] "] {
        assert_eq!(read(text).unwrap().0.events(), 0, "{text}");
    }
}

#[test]
fn an_empty_object_may_end_the_list() {
    let one = r#"{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1}"#;
    assert_eq!(read(&format!("[{one},{{ }}]")).unwrap(), read(&format!("[{one}]")).unwrap());
}

#[test]
fn what_is_no_trace_is_a_clear_error() {
    for text in ["", "  ", "hello", "{}", "{\"a\":[]}", "12"] {
        let error = read(text).unwrap_err();
        assert!(error.contains("not a Chrome trace"), "{text}: {error}");
    }
    assert!(read("[1,2]").unwrap_err().contains("expected an event"));
    assert!(read("[{\"a\":1}]").unwrap_err().contains("without a phase"));
    assert_eq!(Chrome.fits(b"{\"a\":1}"), Fit::No);
    assert_eq!(Chrome.fits(b"hello"), Fit::No);
    assert_eq!(Chrome.fits(b" [ {\"name\":1,\"ph\":"), Fit::Certain);
}

#[test]
fn damage_has_its_place_and_leaves_the_rest() {
    let good = |number: u32| format!(r#"{{"ph":"i","name":"n{number}","pid":1,"ts":{number}}}"#);
    for bad in [
        r#"{"ph":"i","name":"x","pid":1}"#,
        r#"{"ph":"i","name":"x","pid":1,"ts":99999999999999999999}"#,
        r#"{"ph":"X","name":"x","pid":1,"ts":9223372036854775,"dur":9223372036854775}"#,
        r#"{"ph":"i","name":"x","pid":1,"ts":true}"#,
        r#"{"ph":"i","name":"x" "pid":1,"ts":1}"#,
        r#"{"ph":"i","name":"x,"pid":1,"ts":1}"#,
        r#"{"ph":"i","name":"x","args":{"pid":1,"ts":1},}"#,
        r#"17"#,
    ] {
        let text = format!("[{},{bad},{},{}]", good(1), good(2), good(3));
        assert!(read(&text).unwrap_err().starts_with("byte "), "{bad}");
        let reading = lenient(&text);
        let events = events_of(&reading, "pid 1");
        assert!(damage_of(&reading) > 0 && events.len() >= 2, "{bad}: {events:?}");
        assert_eq!((events[0].as_str(), events.last().unwrap().as_str()), ("n1", "n3"), "{bad}");
    }
    let broken_head = r#"{"a" 1, "traceEvents":[{"ph":"i","name":"n","pid":1,"ts":1}]}"#;
    assert_eq!(events_of(&lenient(broken_head), "pid 1"), ["n"]);
}

#[test]
fn deep_nesting_is_only_counted() {
    let depth = 100_000;
    let args = "{\"a\":[".repeat(depth) + &"]}".repeat(depth);
    let text = format!(r#"[{{"ph":"i","name":"n","pid":1,"ts":1,"args":{args}}}]"#);
    assert_eq!(events_of(&read(&text), "pid 1"), ["n"]);
    assert!(read(&text[..depth]).is_err());
    assert!(lenient(&text[..depth]).is_ok());
}

#[test]
fn an_event_larger_than_the_window_is_whole() {
    let text = format!(r#"[{{"ph":"i","name":"n","args":"{}","pid":1,"ts":1}}]"#, "x".repeat(3 << 20));
    assert_eq!(events_of(&read(&text), "pid 1"), ["n"]);
}

#[test]
fn many_beginnings_without_an_end_do_not_take_forever() {
    let text = format!("[{}{}", r#"{"a":[[},"#.repeat(100_000), "]".repeat(300_000));
    assert!(damage_of(&lenient(&text)) > 0);
}
