//! Bugs that were found, each held down by a test that is named after it.

use crate::support::{Folder, run};
use loopfold::archive;
use loopfold::fold::{FoldBuilder, FoldedStream, Item};
use loopfold::trace::{Alphabet, Event, Field, Role, Value};

/// Once for the fold and again for what it has beside it.
#[test]
#[cfg(target_os = "linux")]
fn find_opened_an_archive_twice() {
    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
    let folder = Folder::new();
    let trace =
        folder.file("x.calls", "call main\n1\ncall f\n0\n1\nreturn\n2\ncall f\n0\n2\nreturn\n3\nreturn\n");
    let (archive, queries) = (folder.at("x.fold"), folder.file("queries", "f: 0 1\nf: 0 2\n"));
    run(&["fold", &trace, "-o", &archive, "--chunks"]).ok();
    let watch = inotify::init(CreateFlags::NONBLOCK).unwrap();
    // Closes too, or several opens in a row would be one event.
    inotify::add_watch(&watch, archive.as_str(), WatchFlags::OPEN | WatchFlags::CLOSE).unwrap();
    let opened = |arguments: &[&str]| {
        run(arguments).ok();
        let mut buffer = [const { std::mem::MaybeUninit::uninit() }; 4096];
        let mut events = inotify::Reader::new(&watch, &mut buffer);
        std::iter::from_fn(|| Some(events.next().ok()?.events()))
            .filter(|event| event.contains(ReadFlags::OPEN))
            .count()
    };
    assert_eq!(opened(&["find", &archive, "f: 0 1"]), 1);
    assert_eq!(opened(&["find", &archive, "f: 0 1", "--scheme", "chunks"]), 1);
    assert_eq!(opened(&["find", &archive, "f: 0 1", "--scheme", "indexed", "--json"]), 1);
    assert_eq!(opened(&["find", &archive, "--queries", &queries]), 1);
}

/// After a hit all patterns of the trace were looked for, to say which of them it lies within; if
/// there were too many messages for that, the windows were lost too.
#[test]
fn similar_lost_its_matches_to_a_limit_of_patterns() {
    // Each event of this kind is 60,000 messages to a process that is not there.
    let list = "9,".repeat(59_999) + "9";
    let mut alphabet = Alphabet::default();
    let mut send = |name: &str, to: Value<'_>| {
        let fields = [Field { key: "dest", value: to }];
        alphabet.intern(&Event { role: Role::Send, fields: &fields, ..Event::named(name) }, None).unwrap()
    };
    let many = send("many", Value::Text(list.as_bytes()));
    let mut items = Vec::new();
    for to in 1..320 {
        // Nothing repeats, so that every event is looked at.
        items.push(Item::once(many));
        items.push(Item::once(send(&format!("s{to}"), Value::Integer(to))));
    }
    let mut builder = FoldBuilder::new(alphabet);
    let root = builder.rule(&items).unwrap();
    builder.stream(FoldedStream::new("rank 0", "outermost", root));
    let folder = Folder::new();
    let path = folder.at("many.fold");
    archive::write(&builder.finish(), std::fs::File::create(&path).unwrap()).unwrap();
    run(&["patterns", &path]).fails_with(&["lists of so many messages"]);
    let asked = ["similar", &path, "s7 many s8", "--edits", "0"];
    let found = run(&[&asked[..], &["--json"]].concat()).ok();
    assert_eq!(found.json()["matches"][0]["start"], 13);
    assert!(found.json()["matches"][0]["within"].is_null());
    assert!(found.err.contains("is not known: events that are lists of so many messages"), "{}", found.err);
    let text = run(&asked).ok();
    assert!(text.text().contains("rank 0, events 13 to 15: the same\n"), "{}", text.text());
    assert!(text.err.contains("is not known"), "{}", text.err);
    // Where it is not printed, it is not looked for.
    let all = run(&[&asked[..], &["--all"]].concat()).ok();
    assert_eq!((all.text().as_str(), all.err.as_str()), ("rank 0\t13\t15\t3\t0\n", ""));
}
