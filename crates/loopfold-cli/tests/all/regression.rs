//! Bugs that were found, each held down by a test that is named after it.

#[cfg(target_os = "linux")]
use crate::support::{Folder, run};

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
    // Closes too, or several opens in a row would be told as one.
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
