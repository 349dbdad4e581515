//! A program that makes events itself and folds them as they happen: memory is O(distinct
//! content), whatever the number of events.
//!
//! `cargo run --release --example push -- push.fold`, then `loopfold loops push.fold`.

use loopfold::archive;
use loopfold::folders::{Auto, Folding};
use loopfold::trace::{Event, Sink, Timing};
use std::error::Error;
use std::fs::File;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "push.fold".to_string());
    let mut folding = Folding::new(Auto)?;
    let (solver, writer) = (folding.stream("solver")?, folding.stream("writer")?);
    // Each kind of event is given to the sink once; what happens is a symbol and its times.
    let [relax, exchange, checkpoint] = [
        folding.intern(&Event::named("relax"))?,
        folding.intern(&Event::named("exchange"))?,
        folding.intern(&Event::named("checkpoint"))?,
    ];
    let begun = Instant::now();
    let now = || i64::try_from(begun.elapsed().as_nanos()).unwrap_or(i64::MAX);

    for step in 0..1000 {
        for _ in 0..20 {
            let start = now();
            let residual = f64::from(step).sqrt().sin();
            let metrics = [("residual", residual)];
            let (start, duration) = (Some(start), Some(now() - start));
            folding.push(solver, relax, Timing { start, duration, metrics: &metrics })?;
        }
        folding.push(solver, exchange, Timing { start: Some(now()), ..Timing::UNKNOWN })?;
        if step % 100 == 99 {
            folding.push(writer, checkpoint, Timing { start: Some(now()), ..Timing::UNKNOWN })?;
        }
        if step == 500 {
            // What came so far is a fold at any moment.
            let so_far = folding.so_far()?;
            println!("half way: {} events in {} items", folding.events(), so_far.items());
        }
    }

    let fold = folding.finish()?;
    for stream in fold.streams() {
        println!(
            "{}: {} (by {})",
            stream.name().terminal(),
            fold.nest_text(stream.root()),
            stream.folder().terminal()
        );
    }
    archive::write(&fold, File::create(&path)?)?;
    println!("written to {path}");
    Ok(())
}
