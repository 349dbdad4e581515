use loopfold_json::JsonWriter;
use serde_json::json;
use std::io::Result;

fn text(write: impl FnOnce(&mut JsonWriter<Vec<u8>>) -> Result<()>) -> String {
    let mut out = JsonWriter::new(Vec::new());
    write(&mut out).expect("memory can be written to");
    String::from_utf8(out.into_inner()).expect("JSON is UTF-8")
}

#[test]
fn empty_containers() {
    let written = text(|out| {
        out.begin_array()?;
        out.begin_object()?;
        out.end()?;
        out.array([0u64; 0])?;
        out.begin_object()?;
        out.key("a")?;
        out.begin_array()?;
        out.end()?;
        out.field("b", true)?;
        out.end()?;
        out.end()
    });
    assert_eq!(written, r#"[{},[],{"a":[],"b":true}]"#);
}

#[test]
fn scalars_are_written_as_serde_json_does() {
    let texts = ["", "a", "\"quoted\" \\ back", "line\nfeed\ttab\u{1}", "ü → 🦀", "</script>"];
    let floats = [0.0, -0.0, 1.0, 0.1, 1e300, 1e-7, 123456789.25, f64::NAN, f64::INFINITY];
    for one in texts {
        assert_eq!(text(|out| out.value(one)), json!(one).to_string());
        assert_eq!(text(|out| out.value(one.to_string())), json!(one).to_string());
    }
    for one in floats {
        assert_eq!(text(|out| out.value(one)), json!(one).to_string());
    }
    for one in [0, 1, u64::MAX] {
        assert_eq!(text(|out| out.value(one)), json!(one).to_string());
        assert_eq!(text(|out| out.value(Some(one))), json!(one).to_string());
    }
    assert_eq!(text(|out| out.value(i64::MIN)), json!(i64::MIN).to_string());
    assert_eq!(text(|out| out.value(None::<&str>)), "null");
    assert_eq!(text(|out| out.value(7usize)), "7");
    assert_eq!(text(|out| out.value(false)), "false");
}

#[test]
fn what_drives_a_terminal_is_escaped() {
    let hostile = "a\x1b[2J\x7f\u{9b}\u{202e}ü\u{2028}\u{e0041}\u{feff}";
    let written = text(|out| out.value(hostile));
    assert_eq!(written, r#""a\u001b[2J\u007f\u009b\u202eü\u2028\udb40\udc41\ufeff""#);
    assert_eq!(serde_json::from_str::<String>(&written).unwrap(), hostile);
}

#[test]
fn keys_are_escaped() {
    let written = text(|out| {
        out.begin_object()?;
        out.field("a\"b", 1u64)?;
        out.end()
    });
    assert_eq!(written, json!({"a\"b": 1}).to_string());
}

#[test]
fn a_million_levels() {
    const LEVELS: usize = 1_000_000;
    let written = text(|out| {
        for _ in 0..LEVELS {
            out.begin_object()?;
            out.key("n")?;
            out.begin_array()?;
            out.value(0u64)?;
        }
        for _ in 0..LEVELS {
            out.end()?;
            out.end()?;
        }
        Ok(())
    });
    let expected = "{\"n\":[0".to_string() + &",{\"n\":[0".repeat(LEVELS - 1) + &"]}".repeat(LEVELS);
    assert!(written == expected);
}

#[test]
fn one_text_a_line() {
    let written = text(|out| {
        out.array([1u64, 2])?;
        out.end_line()?;
        out.value("b")?;
        out.end_line()
    });
    assert_eq!(written, "[1,2]\n\"b\"\n");
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "a value of an object without a key")]
fn values_of_objects_have_keys() {
    text(|out| {
        out.begin_object()?;
        out.value(1u64)
    });
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "nothing is open")]
fn nothing_is_closed_twice() {
    text(|out| {
        out.begin_array()?;
        out.end()?;
        out.end()
    });
}
