//! Inputs that are empty, damaged, hostile or not there: a clear word, never a panic,
//! and no harm to what was there before.

use crate::support::{Folder, run, run_with_input, shell};
use loopfold::archive;
use loopfold::fold::{FoldBuilder, FoldedStream, Item, Target};
use loopfold::trace::{Alphabet, Event};
use loopfold_testing::streams;

#[test]
fn nothing_is_fine() {
    let folder = Folder::new();
    let empty = folder.file("empty.txt", "");
    let text = run(&["loops", &empty]).ok().text();
    assert!(text.contains("no events"), "{text}");
    let archive = folder.at("empty.fold");
    run(&["fold", &empty, "-o", &archive]).ok();
    assert_eq!(run(&["cat", &archive]).ok().out, b"");
    assert_eq!(run(&["stats", "--json", &archive]).ok().json()["events"], 0);
    run(&["verify", &archive]).ok();
    let one = run_with_input(&["loops", "-"], b"just this\n").ok().text();
    assert!(one.contains("1 event · no loops") && one.contains("just this"), "{one}");
    let no_events = run_with_input(&["loops", "--format", "chrome", "-"], b"{\"traceEvents\":[]}").ok();
    assert_eq!(no_events.text(), "no events\n");
}

#[test]
fn what_cannot_be_opened_is_named() {
    let folder = Folder::new();
    run(&["loops", &folder.at("absent")]).fails_with(&["absent", "No such file"]);
    let path = folder.path().to_str().unwrap();
    run(&["loops", path]).fails_with(&[path, "is a directory"]);
    run(&["loops", "--format", "nonsense", "-"]).fails_with(&["nonsense", "lines"]);
}

#[test]
fn a_file_without_permission_is_named() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    let secret = folder.file("secret.txt", "a\n");
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o000)).unwrap();
    let run = match std::fs::read(&secret) {
        Ok(_) => crate::support::run_as_nobody(&folder, &["loops", &secret]),
        Err(_) => run(&["loops", &secret]),
    };
    run.fails_with(&["secret.txt", "Permission denied"]);
}

#[test]
fn binary_data_is_not_taken_for_lines_unless_asked() {
    let binary: Vec<u8> = (0..5000u32).flat_map(|n| (n * 7919).to_le_bytes()).collect();
    run_with_input(&["loops", "-"], &binary).fails_with(&["binary", "--format"]);
    let forced = run_with_input(&["cat", "--format", "lines", "-"], &binary).ok();
    assert_eq!(forced.out, binary);
    run_with_input(&["loops", "--format", "lines", "-"], &binary).ok();
}

#[test]
fn compressed_data_that_ends_early() {
    let folder = Folder::new();
    folder.file(
        "x.txt",
        (0..20_000u32).map(|n| format!("{}\n", n.wrapping_mul(2_654_435_761) >> 22)).collect::<String>(),
    );
    let made = shell("gzip -k x.txt && head -c 9000 x.txt.gz > cut.gz", folder.path());
    assert_eq!(made.code, Some(0), "{}", made.err);
    let cut = folder.at("cut.gz");
    run(&["loops", &cut]).fails_with(&["cut.gz", "ends early"]);
    let lenient = run(&["cat", "--lenient", &cut]).ok();
    let whole = std::fs::read(folder.at("x.txt")).unwrap();
    assert!(lenient.out.len() > 5000 && whole.starts_with(&lenient.out[..lenient.out.len() - 1]));
    assert!(lenient.err.contains("ends early"), "{}", lenient.err);
}

#[test]
fn a_chrome_trace_that_is_cut() {
    let events: String = (0..50)
        .map(|n| {
            format!("{{\"ph\":\"X\",\"name\":\"e{}\",\"pid\":1,\"tid\":1,\"ts\":{n},\"dur\":1}},\n", n % 5)
        })
        .collect();
    let trace = format!("{{\"traceEvents\":[\n{events}");
    let cut = &trace.as_bytes()[..trace.len() - 30];
    run_with_input(&["loops", "-"], cut).fails_with(&["byte", "standard input"]);
    let lenient = run_with_input(&["cat", "--lenient", "-"], cut).ok();
    assert_eq!(lenient.text().lines().count(), 49);
    assert!(lenient.err.contains("damaged"), "{}", lenient.err);
}

#[test]
fn numbers_out_of_range_and_integers_cut_in_half() {
    let csv = b"name,time\na,1\nb,99999999999999999999\n";
    run_with_input(&["loops", "--event", "name", "--start", "time", "-"], csv).fails_with(&["line 3"]);
    run_with_input(&["loops", "--event", "nmae", "-"], csv).fails_with(&["nmae", "name"]);
    let integers: Vec<u8> = [[1, 0, 0, 0]; 10].concat().into_iter().chain([7]).collect();
    run_with_input(&["loops", "--format", "u32", "-"], &integers).fails_with(&["byte 40", "multiple of 4"]);
    let lenient = run_with_input(&["loops", "--format", "u32", "--lenient", "-"], &integers).ok();
    assert!(lenient.text().contains("(1)^10"), "{}", lenient.text());
}

#[test]
fn a_stream_longer_than_a_folder_takes() {
    let long = "a\n".repeat(20_000);
    run_with_input(&["loops", "--folder", "minimum", "-"], long.as_bytes()).fails_with(&[
        "20000 events",
        "at most 16384",
        "outermost",
    ]);
}

#[test]
fn names_are_kept_as_they_are_and_shown_escaped() {
    let nasty = b"bad \xff\xfe utf8\n\x1b]0;owned\x07\x1b[2J\n".repeat(3);
    let shown = run_with_input(&["loops", "-"], &nasty).ok();
    let text = String::from_utf8(shown.out).unwrap();
    assert!(text.contains(r"bad \xff\xfe utf8") && text.contains(r"\u{1b}]0;owned\u{7}"), "{text}");
    assert!(!text.contains('\u{1b}'));
    let json = run_with_input(&["loops", "--json", "-"], &nasty).ok().json();
    assert_eq!(json["classes"][0]["nest"][0]["body"][0], r"bad \xff\xfe utf8");
    assert_eq!(run_with_input(&["cat", "-"], &nasty).ok().out, nasty);
}

#[test]
fn one_changed_byte_of_an_archive_is_found() {
    let folder = Folder::new();
    let trace = folder.file("x.txt", "init\n".to_string() + &"read\nwrite\n".repeat(40));
    let archive = folder.at("x.fold");
    run(&["fold", &trace, "-o", &archive]).ok();
    let good = std::fs::read(&archive).unwrap();
    for position in 0..good.len() {
        let mut bad = good.clone();
        bad[position] ^= 0x20;
        assert!(
            archive::read(
                std::io::Cursor::new(&bad),
                &loopfold::archive::ReadConfig::new().times(true).lenient(false)
            )
            .is_err()
        );
        if position % 7 == 0 {
            let path = folder.file("bad.fold", &bad);
            let verified = run(&["verify", &path]);
            assert_eq!(verified.code, Some(1), "byte {position}: {}{}", verified.text(), verified.err);
            assert!(verified.text().contains("bad.fold: bad: "), "{}", verified.text());
            // Without its mark it is not an archive any more, but some file.
            if position >= 8 {
                assert_eq!(run(&["cat", &path]).code, Some(2), "byte {position}");
            }
        }
    }
}

/// An archive of a few bytes in which one event repeats 2^60 times.
fn giant() -> Vec<u8> {
    let mut alphabet = Alphabet::default();
    let a = alphabet.intern(&Event::named("a"), None).unwrap();
    let b = alphabet.intern(&Event::named("b"), None).unwrap();
    let mut builder = FoldBuilder::new(alphabet);
    let mut rule = builder.rule(&[Item::once(a), Item::once(b)]).unwrap();
    for _ in 0..59 {
        let half = Item::new(Target::Rule(rule), 1);
        let other = Item::new(Target::Rule(rule), 1);
        rule = builder.rule(&[half, other]).unwrap();
    }
    builder.stream(FoldedStream::new("giant", "outermost", rule));
    let mut file = Vec::new();
    archive::write(&builder.finish(), &mut file).unwrap();
    assert!(file.len() <= 200, "{}", file.len());
    file
}

#[test]
fn an_archive_may_claim_anything() {
    let folder = Folder::new();
    folder.file("giant.fold", giant());
    let limited = |script: &str| shell(&format!("ulimit -v 400000; {script}"), folder.path());
    let stats = limited("\"$loopfold\" stats --json giant.fold").ok();
    assert_eq!(stats.json()["events"].as_u64(), Some(1 << 60));
    let head = limited("\"$loopfold\" cat giant.fold | head -n 3").ok();
    assert_eq!(head.text(), "a\nb\na\n");
    let far = limited("\"$loopfold\" cat --from 1152921504606846973 giant.fold").ok();
    assert_eq!(far.text(), "b\na\nb\n");
    let loops = limited("\"$loopfold\" loops giant.fold --folder innermost").ok();
    assert!(loops.err.contains("more than fits in memory"), "{}", loops.err);
    assert!(loops.out.len() < 100_000);
}

/// A trace whose archive is some kilobytes long.
fn incompressible() -> String {
    streams::random(30_000, 200, 3).iter().map(|symbol| format!("{symbol}\n")).collect()
}

#[test]
fn a_full_disk_or_a_kill_leaves_the_old_archive() {
    let folder = Folder::new();
    let trace = folder.file("x.txt", "a\nb\n".repeat(10));
    let archive = folder.at("x.fold");
    run(&["fold", &trace, "-o", &archive]).ok();
    let old = std::fs::read(&archive).unwrap();
    folder.file("large.txt", incompressible());
    // A file may have two blocks at the most: writing fails as on a full disk.
    let full = shell("trap '' XFSZ; ulimit -f 2; \"$loopfold\" fold large.txt -o x.fold", folder.path());
    assert_eq!(full.code, Some(2), "{}", full.err);
    assert!(full.err.contains("x.fold") && full.err.contains("too large"), "{}", full.err);
    assert_eq!(std::fs::read(&archive).unwrap(), old);
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "{left:?}");
    // The same, but the signal kills the process in the middle of writing.
    let killed = shell("ulimit -f 2; \"$loopfold\" fold large.txt -o x.fold", folder.path());
    assert_ne!(killed.code, Some(0));
    assert_eq!(std::fs::read(&archive).unwrap(), old);
    run(&["verify", &archive]).ok();
}

#[test]
fn an_archive_cannot_be_written_where_there_is_no_folder() {
    let folder = Folder::new();
    let trace = folder.file("x.txt", "a\n");
    let nowhere = folder.at("no/such/x.fold");
    run(&["fold", &trace, "-o", &nowhere]).fails_with(&["x.fold"]);
}

#[test]
fn an_archive_is_never_written_over_a_trace_that_is_read() {
    let folder = Folder::new();
    let trace = folder.file("x.log", "a\nb\n");
    run(&["fold", &trace, "-o", &trace]).fails_with(&["x.log", "one of the inputs"]);
    assert_eq!(std::fs::read(&trace).unwrap(), b"a\nb\n");
    // An archive may replace itself: it is read before it is written.
    let archive = folder.at("x.fold");
    run(&["fold", &trace, "-o", &archive]).ok();
    run(&["fold", &archive, "-o", &archive, "--folder", "innermost"]).ok();
    assert_eq!(run(&["cat", &archive]).ok().text(), "a\nb\n");
}

#[test]
fn links_pipes_and_modes_stay_what_they_are() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    folder.file("x.log", "a\nb\n");
    let made = shell(
        "mkdir d && : > d/real.fold && chmod 640 d/real.fold && ln -s d/real.fold link.fold && \
         \"$loopfold\" fold x.log -o link.fold && test -L link.fold && \"$loopfold\" verify d/real.fold && \
         mkfifo pipe && { cat pipe > copy.fold & } && \"$loopfold\" fold x.log -o pipe && wait && test -p pipe && \
         \"$loopfold\" verify copy.fold && \"$loopfold\" fold x.log -o - | \"$loopfold\" verify - && \
         gzip -k copy.fold && \"$loopfold\" verify copy.fold.gz && \"$loopfold\" cat copy.fold.gz",
        folder.path(),
    );
    assert_eq!(made.code, Some(0), "{}{}", made.text(), made.err);
    assert!(made.text().ends_with("a\nb\n"), "{}", made.text());
    let mode = std::fs::metadata(folder.path().join("d/real.fold")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    // A device that is always full stays a device.
    if std::path::Path::new("/dev/full").exists() {
        let full = shell("\"$loopfold\" fold x.log -o /dev/full", folder.path());
        assert_eq!(full.code, Some(2), "{}", full.err);
        assert!(full.err.contains("No space left"), "{}", full.err);
    }
}
