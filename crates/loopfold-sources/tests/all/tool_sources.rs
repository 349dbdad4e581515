//! Bad input: whatever happens to the bytes of a log, a source reads what it can or
//! gives an error with a place. It never panics and never fails leniently.

use loopfold::Trace;
use loopfold::trace::{Collector, Projection, TimesKept};
use loopfold_sources::{ALL, Context, Options, Result, Source};

/// A small input for each source, with what its format has of odd forms.
const SAMPLES: &[(&str, &str)] = &[
    (
        "chrome",
        r#"{"head":{"a":["]"]},"traceEvents":[
{"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"prog"}},
{"ph":"B","name":"main","pid":1,"tid":1,"ts":1.5},
{"ph":"X","cat":"kernel","name":"k\u00e9\"","pid":"0","tid":7,"ts":"2.25","dur":1,"args":{"s":[1,{"x":"}"}]}},
{"ph":"E","name":"main","pid":1,"tid":1,"ts":9},
{"ph":"i","name":"mark","pid":1,"tid":1,"ts":10,"s":"t"},
{"ph":"C","name":"count","pid":1,"tid":1,"ts":11,"args":{"v":1}}
],"tail":12}
"#,
    ),
    (
        "chrome",
        r#"[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":5},
{"ph":"X","name":"b","pid":1,"tid":1,"ts":2,"dur":1},
{"ph":"X","name":"c","pid":1,"tid":1,"ts":20,"dur":1},
"#,
    ),
    (
        "strace",
        r#"7 1700000000.000001 execve("/bin/x", ["x"], 0x7ff /* 3 vars */) = 0 <0.000100>
7 1700000000.000300 wait4(-1,  <unfinished ...>
8 1700000000.000310 openat(AT_FDCWD, "x=(", O_RDONLY) = -1 ENOENT (No such file or directory) <0.000001>
8 1700000000.000360 +++ exited with 0 +++
7 1700000000.000400 <... wait4 resumed>[{WIFEXITED(s)}], 0, NULL) = 8 <0.000100>
7 1700000000.000500 --- SIGCHLD {si_signo=SIGCHLD} ---
"#,
    ),
    (
        "ltrace",
        r#"[pid 5] 10:00:00.000002 libc.so.6->qsort(0x1, 2, 8 <unfinished ...>
[pid 5] 10:00:00.000003 strcmp("a", "b")    = -1 <0.000001>
[pid 5] 10:00:00.000009 <... qsort resumed> )     = <void>
[pid 5] 10:00:00.000013 +++ exited (status 0) +++
"#,
    ),
    (
        "lackey",
        "==9== Lackey\nSB 0401ab70\nSB 0401b7e7\nI  04001000,3\n L 1ffe80,8\n S 1ffe88,4\n M 0421c7cc,4\n",
    ),
    (
        "spike",
        "core   0: 0x0000000000001000 (0x00000297) auipc   t0, 0x0\ncore   0: >>>>  main\n\
         core   0: 3 0x0000000000001000 (0x00000297) x5 0x1\ncore   1: 0x0000000080000008 (0x0001) c.nop\n\
         core   0: exception trap_user_ecall, epc 0x0000000080000010\n",
    ),
    (
        "execlog",
        "0, 0x10, 0x1, \"0001 nop a\"\n1, 0x12, 0x1, \"0001 nop a\", load, 0x000a61c4\n\
         1, 0x22, 0x4, \"0004 lw a4,0(s0)\", load, 0x000a61c40, 0x16, 0x5, \"0005 sd a,b\"\n\n",
    ),
    (
        "perf",
        "   my prog 40/42 [000] d..3.  1522.5: sched:sched_switch: prev_comm=a ==> next_comm=b\n\
         prog 41 [001]  1522.6: raw_syscalls:sys_enter: NR 12 (0, 7ff)\nprog 7 10.6:  250000 cycles:u:\n\
         \t    55d0aa11 inner+0x3 (/bin/prog)\n\n",
    ),
    ("calls", "call main\n1\ncall f\nB 2\nreturn\nthread 7\nreturn\ncall f\n007\nthread a b\nB\nreturn\n"),
    ("finstrument", "E0x10\nE 0x20 0x14\nE0x30\nX0x20\n\nX0x40\nX 0x10 0x4\nE0x10\n"),
    (
        "babeltrace",
        "[10:00:00.000000001] (+?.?????????) vm app:start: { cpu_id = 1 }, { vpid = 4, vtid = 5 }, { }\n\
         [2026-01-02 10:00:00.000000002] (+0.000000001) vm app:alloc: { cpu_id = 0 }, { size = 8, n = \"a, }\" }\n",
    ),
];

fn source(name: &str) -> &'static dyn Source {
    *ALL.iter().find(|source| source.name() == name).unwrap()
}

fn read(name: &str, text: &[u8], lenient: bool, key: Option<&[&str]>, calls: bool) -> Result<Trace> {
    let key = key.map(|key| key.iter().map(ToString::to_string).collect());
    let mut collector = Collector::new(Projection { key, ..Projection::default() }, TimesKept::All);
    let options = Options { lenient, calls, ..Options::default() };
    let mut context = Context::new(&options, &mut collector, "input", false);
    source(name).read(&mut &text[..], &mut context)?;
    Ok(collector.finish()?)
}

/// The events of all streams in the order of their starts.
fn by_start(trace: &Trace) -> Vec<(i64, String)> {
    let mut events = Vec::new();
    for stream in &trace.streams {
        let starts = stream.times.starts.as_ref().unwrap().values().unwrap();
        for (&symbol, start) in stream.symbols.iter().zip(starts) {
            events.push((start, trace.alphabet.label(symbol)));
        }
    }
    events.sort();
    events
}

#[test]
fn every_sample_is_read_and_known_by_its_head() {
    for (name, text) in SAMPLES {
        let trace = read(name, text.as_bytes(), false, None, false).unwrap();
        assert!(trace.events() >= 2, "{name}");
        let best = ALL.iter().max_by_key(|source| source.fits(text.as_bytes())).unwrap();
        assert_eq!(best.fits(text.as_bytes()), source(name).fits(text.as_bytes()), "{name}, {}", best.name());
    }
}

#[test]
fn a_chrome_trace_cut_anywhere_gives_the_events_before_the_cut() {
    for (name, text) in SAMPLES.iter().filter(|(name, _)| *name == "chrome") {
        let whole = by_start(&read(name, text.as_bytes(), false, None, false).unwrap());
        let is_list = text.starts_with('[');
        for cut in 0..text.len() {
            let text = &text.as_bytes()[..cut];
            let trace = read(name, text, true, None, false).unwrap();
            let events = by_start(&trace);
            assert_eq!(events, whole[..events.len()], "cut at {cut}");
            let complete = text.trim_ascii_end();
            let may_end_here = if is_list {
                complete == b"[" || complete.ends_with(b"}") || complete.ends_with(b"},")
            } else {
                complete.ends_with(b"12}")
            };
            match read(name, text, false, None, false) {
                Ok(_) => assert!(may_end_here, "cut at {cut}"),
                Err(error) => {
                    assert!(!may_end_here, "cut at {cut}: {error}");
                    assert!(
                        error.kind() == loopfold::ErrorKind::Damaged
                            && error.to_string().starts_with("byte "),
                        "{error}"
                    );
                }
            }
        }
    }
}

#[test]
fn logs_cut_anywhere_are_read_leniently() {
    for (name, text) in SAMPLES {
        for cut in 0..text.len() {
            let text = &text.as_bytes()[..cut];
            read(name, text, true, None, false).unwrap();
            if let Err(error) = read(name, text, false, None, false) {
                assert!(error.kind() == loopfold::ErrorKind::Damaged, "{name}: {error}");
            }
        }
    }
}

/// Pseudo-random numbers, the same in every execution.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }
}

/// Bytes that mean something in one of the formats.
const SIGNIFICANT: &[u8] = b"\"\\{}[](),:;=<>+-.0123456789abcdefxXBEM \t\r\n\0\xff";

fn mutated(text: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut text = text.to_vec();
    for _ in 0..1 + dice.below(4) {
        let at = dice.below(text.len());
        let length = dice.below(20).min(text.len() - at);
        match dice.below(5) {
            0 => drop(text.drain(at..at + length)),
            1 => text.insert(at, SIGNIFICANT[dice.below(SIGNIFICANT.len())]),
            2 if at < text.len() => text[at] = SIGNIFICANT[dice.below(SIGNIFICANT.len())],
            3 => {
                let piece = text[at..at + length].to_vec();
                let to = dice.below(text.len());
                text.splice(to..to, piece);
            }
            _ => {
                let digits = b"99999999999999999999"[..1 + dice.below(20)].to_vec();
                text.splice(at..at, digits);
            }
        }
    }
    text
}

#[test]
fn mutated_logs_never_panic_and_never_fail_leniently() {
    let keys: [Option<&[&str]>; 2] = [
        None,
        Some(&[
            "name", "cat", "args", "args.s", "errno", "result", "fd", "pc", "mnemonic", "address", "cpu",
            "size", "function", "caller",
        ]),
    ];
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for (name, text) in SAMPLES {
        for case in 0..2000 {
            let text = mutated(text.as_bytes(), &mut dice);
            let key = keys[case % 2];
            let calls = case % 3 == 0;
            read(name, &text, true, key, calls).unwrap();
            if let Err(error) = read(name, &text, false, key, calls) {
                assert!(error.kind() == loopfold::ErrorKind::Damaged, "{name}: {error}");
            }
            for source in ALL {
                source.fits(&text);
            }
        }
    }
}

#[test]
fn any_source_reads_any_sample_leniently() {
    for (name, _) in SAMPLES {
        for (_, text) in SAMPLES {
            read(name, text.as_bytes(), true, None, false).unwrap();
        }
        let noise: Vec<u8> = (0..20_000u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        read(name, &noise, true, Some(&["class"]), false).unwrap();
    }
}
