//! The sources of text and integers from the outside, as the command uses them: an
//! input is opened, its format guessed or given, and read into a trace.

use loopfold::trace::{Collector, Name, Trace};
use loopfold_sources::{ALL, Context, Damage, Input, Mask, Options, Result, Source, by_name, guess};
use loopfold_testing::Rng;
use std::io::{Read, Write};

/// Reads as the command does; the damage of the input counts too.
fn read(source: &dyn Source, bytes: &[u8], options: &Options) -> Result<(Trace, Damage)> {
    let mut input = Input::open(bytes, options.lenient)?;
    let mut collector = Collector::default();
    let mut context = Context::new(options, &mut collector, "input", false);
    source.read(&mut input, &mut context)?;
    let mut damage = context.into_damage();
    if let Some(description) = input.damage() {
        damage.note(description);
    }
    Ok((collector.finish()?, damage))
}

fn read_as(format: &str, bytes: &[u8]) -> Trace {
    read(by_name(format).unwrap(), bytes, &Options::default()).unwrap().0
}

fn lenient() -> Options {
    Options { lenient: true, ..Options::default() }
}

fn names(trace: &Trace) -> Vec<Vec<u8>> {
    let name = |symbol| match trace.alphabet.meaning(symbol).name {
        Name::Text(text) => text.to_vec(),
        Name::Integer(number) => number.to_string().into_bytes(),
    };
    trace.streams[0].symbols.iter().map(|&symbol| name(symbol)).collect()
}

fn has_note(trace: &Trace, key: &str, value: &str) -> bool {
    trace.streams[0].notes.iter().any(|(known, noted)| known == key && noted == value)
}

/// The file that was read as lines.
fn join_lines(trace: &Trace) -> Vec<u8> {
    let mut file =
        names(trace).into_iter().flat_map(|line| [line, b"\n".to_vec()]).flatten().collect::<Vec<_>>();
    if has_note(trace, "final-newline", "no") {
        file.pop();
    }
    file
}

/// The file that was read as bytes.
fn join_bytes(trace: &Trace) -> Vec<u8> {
    let mut file = names(trace).concat();
    if has_note(trace, "final-newline", "yes") {
        file.push(b'\n');
    }
    file
}

fn bytes(rng: &mut Rng, length: usize, alphabet: &[u8]) -> Vec<u8> {
    (0..length).map(|_| alphabet[rng.below(alphabet.len())]).collect()
}

/// Some bytes changed, cut out, doubled, or the end cut off.
fn mutate(rng: &mut Rng, bytes: &[u8]) -> Vec<u8> {
    let mut mutated = bytes.to_vec();
    for _ in 0..=rng.below(4) {
        let at = rng.below(mutated.len());
        let to = (at + rng.below(12)).min(mutated.len());
        match rng.below(5) {
            0 => mutated.truncate(at),
            1 => drop(mutated.drain(at..to)),
            2 => mutated.splice(at..at, bytes[..rng.below(bytes.len())].to_vec()).for_each(drop),
            3 => mutated[at..to].fill(b"\0\n\r\",;\xff9-e"[rng.below(10)]),
            _ => mutated[at..to].iter_mut().for_each(|byte| *byte ^= 1 << rng.below(8)),
        }
    }
    mutated
}

fn all_bytes() -> Vec<u8> {
    (0..=255).collect()
}

#[test]
fn lines_give_the_file_back() {
    let mut random = Rng::new(1);
    for round in 0..2_000 {
        let alphabet: &[u8] = if round % 2 == 0 { b"a\n\r\xff" } else { &all_bytes() };
        let length = random.below(60);
        let file = bytes(&mut random, length, alphabet);
        assert_eq!(join_lines(&read_as("lines", &file)), file, "{file:?}");
    }
    let long = bytes(&mut random, 3_000_000, b"abcdefgh\n");
    assert_eq!(join_lines(&read_as("lines", &long)), long);
}

#[test]
fn bytes_give_the_file_back() {
    let mut random = Rng::new(2);
    for _ in 0..2_000 {
        let length = random.below(60);
        let file = bytes(&mut random, length, b"ab\n\0\xff");
        assert_eq!(join_bytes(&read_as("bytes", &file)), file, "{file:?}");
    }
    let long = bytes(&mut random, 1_000_000, b"lsam\n");
    assert_eq!(join_bytes(&read_as("bytes", &long)), long);
}

#[test]
fn integers_give_their_values_back() {
    let mut random = Rng::new(3);
    let file = bytes(&mut random, 800_000, &all_bytes());
    for (format, width) in [("u8", 1), ("u16", 2), ("u32", 4), ("u64", 8)] {
        let values = names(&read_as(format, &file));
        assert_eq!(values.len(), file.len() / width);
        for (value, chunk) in values.iter().zip(file.chunks(width)) {
            let expected = chunk.iter().rev().fold(0u64, |number, &byte| number << 8 | u64::from(byte));
            assert_eq!(value, expected.to_string().as_bytes());
        }
    }
}

#[test]
fn an_empty_input_is_a_trace_without_events() {
    for format in ["lines", "bytes", "u8", "u16", "u32", "u64"] {
        let trace = read_as(format, b"");
        assert_eq!((trace.streams.len(), trace.events()), (1, 0), "{format}");
        assert!(trace.streams[0].notes.is_empty(), "{format}");
    }
}

#[test]
fn newlines_alone_are_empty_lines() {
    assert_eq!(names(&read_as("lines", b"\n\n\n")), [b"", b"", b""]);
}

#[test]
fn binary_data_can_be_read_as_lines_if_the_user_insists() {
    let file = b"\0\x01\n\xfe\xff\0\n\x02";
    assert!(guess(file, None).is_none());
    assert_eq!(join_lines(&read_as("lines", file)), file);
}

#[test]
fn a_line_may_be_very_long() {
    let mut file = vec![b'x'; 50_000_000];
    file.extend_from_slice(b"\nshort\n");
    let trace = read_as("lines", &file);
    assert_eq!(names(&trace).iter().map(Vec::len).collect::<Vec<_>>(), [50_000_000, 5]);
}

#[test]
fn a_byte_too_many_is_an_error_or_damage() {
    let file: Vec<u8> = (0..10u32).flat_map(u32::to_le_bytes).chain([7]).collect();
    let source = by_name("u32").unwrap();
    let error = read(source, &file, &Options::default()).unwrap_err();
    assert!(error.kind() == loopfold::ErrorKind::Damaged);
    assert!(error.to_string().starts_with("byte 40: 1 byte left over"), "{error}");
    let (trace, damage) = read(source, &file, &lenient()).unwrap();
    assert_eq!((trace.events(), damage.count), (10, 1));
    assert_eq!(damage.first, [error.to_string()]);
}

type Compressor = fn(&[u8]) -> Vec<u8>;

fn compressors() -> [(&'static str, Compressor); 3] {
    [
        ("gzip", |bytes| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }),
        ("zstd", |bytes| zstd::encode_all(bytes, 1).unwrap()),
        ("xz", |bytes| {
            let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }),
    ]
}

/// Shorter inputs show no compression, and the bytes are taken as they are.
const LONGEST_MAGIC: usize = 6;

#[test]
fn a_compressed_file_may_be_cut_anywhere() {
    let text: Vec<u8> =
        (0..300u32).flat_map(|i| format!("MPI_Send dest={}\n", i * i % 97).into_bytes()).collect();
    let lines = by_name("lines").unwrap();
    for (name, compress) in compressors() {
        let whole = compress(&text);
        let (trace, damage) = read(lines, &whole, &lenient()).unwrap();
        assert_eq!((join_lines(&trace), damage.count), (text.clone(), 0), "{name}");
        for length in LONGEST_MAGIC..whole.len() {
            let error = read(lines, &whole[..length], &Options::default()).unwrap_err();
            assert!(
                error.kind() == loopfold::ErrorKind::Damaged && error.to_string().contains("ends early"),
                "{name} {length}: {error}"
            );
            let (trace, damage) = read(lines, &whole[..length], &lenient()).unwrap();
            assert!(text.starts_with(&join_lines(&trace)), "{name} cut at {length}");
            assert_eq!(damage.count, 1, "{name} cut at {length}");
            assert!(damage.first[0].contains("ends early"), "{:?}", damage.first);
        }
    }
}

#[test]
fn what_is_compressed_is_guessed_by_what_is_inside() {
    for (_, compress) in compressors() {
        let packed = compress(&b"sscclm".repeat(10_000));
        let mut input = Input::open(&packed[..], false).unwrap();
        assert_eq!(guess(input.head().unwrap(), Some("x.fp.txt.zst")).unwrap().name(), "bytes");
        let mut rest = Vec::new();
        input.read_to_end(&mut rest).unwrap();
        assert_eq!(rest.len(), 60_000);
    }
}

fn table_options(lenient: bool) -> Options {
    Options {
        event: vec!["name".into(), "bytes".into()],
        stream_by: Some("rank".into()),
        start: Some("start".into()),
        duration: Some("duration".into()),
        metric: vec!["load".into()],
        lenient,
        ..Options::default()
    }
}

const TABLE: &[u8] = b"rank,name,start (us),duration_ns,bytes,load\n\
    0,MPI_Send,1.5,200,8,0.5\n1,\"MPI_\"\"Recv\"\"\",2,1e3,16,-1e-3\r\n0,\"two\nlines\",3,,,\n";

#[test]
fn a_table_is_read_with_all_its_columns() {
    let source = by_name("csv").unwrap();
    let (trace, damage) = read(source, TABLE, &table_options(false)).unwrap();
    assert_eq!((trace.streams.len(), trace.events(), damage.count), (2, 3, 0));
    assert_eq!(trace.streams[0].times.starts.as_ref().unwrap().values().unwrap(), [1_500, 3_000]);
    assert_eq!(trace.streams[1].times.durations.as_ref().unwrap().values().unwrap(), [1_000]);
}

#[test]
fn a_bad_table_is_an_error_that_says_where() {
    let source = by_name("csv").unwrap();
    for (table, expected) in [
        (&b""[..], "the input is empty"),
        (b"a,b\n", "--event: no column \"name\"; the columns are 1 \"a\", 2 \"b\""),
        (b"rank,name,start,duration,bytes,lod\n", "--metric: no column \"load\"; did you mean \"lod\"?"),
        (
            b"rank,name,start,duration,bytes,load\n0,x\n",
            "line 2: expected 6 cells, as there are headings, found 2",
        ),
        (b"rank,name,start,duration,bytes,load\n0,x,1e30,,,\n", "line 2: \"1e30\" in column \"start\""),
        (b"rank,name,start,duration,bytes,load\n0,x,\xff,,,\n", "line 2: "),
    ] {
        let error = read(source, table, &table_options(false)).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// A valid input for each source, to be mutated.
fn sample(format: &str) -> Vec<u8> {
    match format {
        "csv" => TABLE.to_vec(),
        "calls-binary" => {
            let tokens = [0x8000_0000u32, 0, 0x8000_0001, 5, u32::MAX, 0xc000_0007, u32::MAX, 1];
            tokens.iter().flat_map(|token| token.to_le_bytes()).collect()
        }
        "u8" | "u16" | "u32" | "u64" => (0..20u64).flat_map(u64::to_le_bytes).collect(),
        "bytes" => b"ssssccccllaamm\n".to_vec(),
        _ => b"Oct 11 22:14:15 host su[230]: 10.0.0.1 took 5ms\n2024-01-02T03:04:05Z rank 7 fe80::1 /a/b\n"
            .to_vec(),
    }
}

#[test]
fn no_input_makes_a_source_panic() {
    let mut random = Rng::new(4);
    let formats =
        ["lines", "bytes", "u8", "u16", "u32", "u64", "csv", "calls", "calls-binary", "finstrument"];
    for source in ALL.iter().filter(|source| formats.contains(&source.name())) {
        let valid = sample(source.name());
        for round in 0..2_000 {
            let length = random.below(200);
            let input = match round % 3 {
                0 => bytes(&mut random, length, &all_bytes()),
                1 => bytes(&mut random, length, b",;\"\n\r019.-ea \t"),
                _ => mutate(&mut random, &valid),
            };
            for lenient in [false, true] {
                let mut options = table_options(lenient);
                if source.name() == "lines" {
                    options.select = (round % 2 == 0).then(|| r"(\w+) (\S+)|\d".to_string());
                    options.stream_by = (round % 5 == 0).then(|| r"rank (\d+)".to_string());
                    options.mask = round % 4 < 2;
                }
                if let Err(error) = read(*source, &input, &options) {
                    assert!(!error.to_string().is_empty());
                    // A table without its columns cannot be read at all.
                    let is_forgivable = error.kind() == loopfold::ErrorKind::Damaged && input.len() < 1_000;
                    assert!(!(lenient && is_forgivable), "{}: {error} in {input:?}", source.name());
                }
            }
            guess(&input, None);
        }
    }
}

#[test]
fn no_compressed_input_makes_anything_panic() {
    let mut random = Rng::new(5);
    let lines = by_name("lines").unwrap();
    for (_, compress) in compressors() {
        let valid = compress(&sample("lines").repeat(3));
        for _ in 0..2_000 {
            let mutated = mutate(&mut random, &valid);
            let _ = read(lines, &mutated, &Options::default());
            read(lines, &mutated, &lenient()).unwrap();
        }
    }
}

#[test]
fn masking_twice_is_masking_once_for_lines_of_logs() {
    let line = sample("lines");
    let (mut once, mut twice) = (Vec::new(), Vec::new());
    Mask.apply(&line, &mut once);
    Mask.apply(&once, &mut twice);
    assert_eq!(String::from_utf8_lossy(&once), String::from_utf8_lossy(&twice));
    assert_eq!(once, b"<time> host su[<num>]: <addr> took <num>ms\n<time> rank <num> <addr> <path>\n");
}
