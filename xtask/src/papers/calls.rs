//! Figures 11 and 12 of Zhang and Gupta's paper: the properties of control flow traces, and their
//! sizes in chunks of several sizes and as a fold, with their indexes.

use crate::bench::{control_flow_traces, files_under};
use crate::table::{Column, Table, grouped, short};
use anyhow::Result;
use loopfold::Fold;
use loopfold::archive;
use loopfold::folders::{Auto, fold_trace};
use loopfold::questions::path::{ChunkSize, Deepest, Functions, PathIndex, chunk_totals};
use loopfold::sections;
use std::io::Cursor;
use std::path::Path;

/// The sizes of chunks, in megabytes of symbols.
const CHUNKS: [u64; 3] = [80, 40, 4];

/// Prints both for the traces under a directory, or for generated programs.
pub(super) fn print(traces: Option<&Path>) -> Result<()> {
    let columns = [
        Column::Text("trace"),
        Column::Number("MB"),
        Column::Number("largest nesting"),
        Column::Number("functions"),
    ];
    let title = "Zhang and Gupta, figure 11: traces of control flow, four bytes an event. Published: 28 to 509 MB,\n\
                 nesting of 4 (compress) to 424 (li), 7 to 1,085 functions (gcc)";
    let mut characters = Table::new(title, &columns);
    let columns = [
        Column::Text("trace"),
        Column::Number("one chunk"),
        Column::Number("80 MB"),
        Column::Number("40 MB"),
        Column::Number("4 MB"),
        Column::Number("their index"),
        Column::Number("fold"),
        Column::Number("its index"),
    ];
    let title = "Zhang and Gupta, figure 12: bytes of compressed traces, in chunks (zstd) and as archives, and of the\n\
                 indexes of functions. Published: gzip in chunks as large as in one, SEQUITUR 0.3 to 1.7 times that,\n\
                 indexes of 0.1 to 17.4 kB";
    let mut sizes = Table::new(title, &columns);
    let files: Vec<_> = traces.into_iter().flat_map(files_under).collect();
    for (name, trace) in control_flow_traces(&files, 1_000_000)? {
        let fold = fold_trace(trace, &Auto, 1)?;
        characters.row(characters_of(&name, &fold)?);
        sizes.row(sizes_of(&name, &fold)?);
    }
    println!("{characters}\n{sizes}");
    Ok(())
}

fn characters_of(name: &str, fold: &Fold) -> Result<Vec<String>> {
    let measure = Deepest::new(fold.alphabet());
    let mut deepest = 0;
    for stream in fold.streams() {
        deepest = fold.measure(&measure, stream.root())?.deepest().max(deepest);
    }
    let events = fold.events().unwrap_or(u64::MAX);
    let functions = Functions::of(fold.alphabet())?.all().len();
    Ok(vec![name.to_string(), short(events as f64 * 4.0 / 1e6), grouped(deepest), grouped(functions as u128)])
}

fn sizes_of(name: &str, fold: &Fold) -> Result<Vec<String>> {
    // As large as chunks can be.
    let whole = chunk_totals(fold, ChunkSize::of_symbols(1 << 26)?)?;
    let mut cells = vec![name.to_string(), grouped(whole.bytes)];
    let mut index = 0;
    for megabytes in CHUNKS {
        let totals = chunk_totals(fold, ChunkSize::of_bytes(megabytes << 20)?)?;
        cells.push(grouped(totals.bytes));
        index = totals.directory;
    }
    let mut file = Vec::new();
    archive::write_with(fold, &mut file, &sections::write_config(Some(PathIndex::RANGES), None))?;
    let stored = archive::sizes(Cursor::new(&file))?;
    cells.extend([grouped(index), grouped(stored.total - stored.index), grouped(stored.index)]);
    Ok(cells)
}
