//! Lists the streams that a source finds in a file, and how fast it was:
//! `cargo run --release --example streams -- chrome trace.json [--lenient] [--calls] [--key=a,b] [--cat]`.
//! With `--cat` the events are printed instead; with `--count` they are only counted, which
//! shows how fast the source is alone.

use loopfold::StreamId;
use loopfold::trace::{Collector, Event, Projection, Sink, TimesKept};
use loopfold_sources::{ALL, Context, Options};
use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (flags, names): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let [format, path] = &names[..] else { return Err("expected a format and a file".into()) };
    let has = |flag: &str| flags.iter().any(|given| given == flag);
    let key = flags.iter().find_map(|flag| flag.strip_prefix("--key="));
    let key = key.map(|key| key.split(',').map(String::from).collect());
    let options = Options { lenient: has("--lenient"), calls: has("--calls"), ..Options::default() };

    let mut head = Vec::new();
    File::open(path)?.take(65536).read_to_end(&mut head)?;
    let fits: Vec<_> = ALL.iter().map(|source| (source.name(), source.fits(&head))).collect();
    eprintln!("{fits:?}");
    let source = ALL.iter().find(|source| source.name() == format).ok_or("no such format")?;

    if has("--count") {
        let mut sink = Counter::default();
        let mut context = Context::new(&options, &mut sink, path, false);
        let begin = Instant::now();
        source.read(&mut BufReader::new(File::open(path)?), &mut context)?;
        let seconds = begin.elapsed().as_secs_f64();
        let bytes = std::fs::metadata(path)?.len();
        println!("{} events, {:.0} MB/s", sink.events, bytes as f64 / seconds / 1e6);
        return Ok(());
    }
    let bytes = std::fs::metadata(path)?.len();
    let mut input = BufReader::new(File::open(path)?);
    let mut sink = Collector::new(Projection { key, ..Projection::default() }, TimesKept::All);
    let begin = Instant::now();
    let mut context = Context::new(&options, &mut sink, path, false);
    source.read(&mut input, &mut context)?;
    let damage = context.into_damage();
    let seconds = begin.elapsed().as_secs_f64();
    eprintln!("{:.0} MB/s, damage {damage:?}", bytes as f64 / seconds / 1e6);

    let trace = sink.finish()?;
    let mut out = std::io::stdout().lock();
    for stream in &trace.streams {
        if has("--cat") {
            for &symbol in &stream.symbols {
                writeln!(out, "{}", trace.alphabet.label(symbol))?;
            }
        } else {
            let shown: Vec<_> = stream.symbols.iter().take(3).map(|&s| trace.alphabet.label(s)).collect();
            writeln!(
                out,
                "{}: {} events {:?} {shown:.60?}",
                stream.name,
                stream.symbols.len(),
                stream.notes
            )?;
        }
    }
    eprintln!("{} events, {} symbols", trace.events(), trace.alphabet.len());
    Ok(())
}

/// A sink that forgets everything.
#[derive(Default)]
struct Counter {
    streams: Vec<String>,
    events: u64,
}

impl Sink for Counter {
    fn stream(&mut self, name: &str) -> loopfold::Result<StreamId> {
        let known = self.streams.iter().position(|stream| stream == name);
        if known.is_none() {
            self.streams.push(name.to_string());
        }
        StreamId::new(known.unwrap_or(self.streams.len() - 1))
    }

    fn describe(&mut self, _: StreamId, _: &str, _: &str) -> loopfold::Result<()> {
        Ok(())
    }

    fn push(&mut self, _: StreamId, _: &Event<'_>) -> loopfold::Result<()> {
        self.events += 1;
        Ok(())
    }

    fn wants(&self, _: &str) -> bool {
        false
    }

    fn wants_times(&self) -> bool {
        true
    }
}
