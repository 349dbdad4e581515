//! The source `otf2`: archives of Score-P and other tracers of parallel programs.
//!
//! The OTF2 library itself reads them. It is loaded at run time, so that nothing is needed to
//! build this, and a site's own library can be used. All unsafe code is in three files, `library`
//! (the C functions), `reader` and `writer` (safe interfaces to them). `export` writes archives. The others are `definitions` (the
//! rank of each location), `calls` (from records to events), `kinds` (kinds of events, by number),
//! `read` (all locations in parallel), `cut` (where a file was cut).
#![deny(unsafe_code)]

mod anchor;
mod calls;
mod cut;
mod definitions;
mod export;
mod kinds;
mod library;
mod read;
mod reader;
mod records;
mod writer;

pub use anchor::{anchor_in, files_of};
pub use export::write;

use calls::Wanted;
use definitions::{Definitions, NamedLocation};
use loopfold::StreamId;
use loopfold_sources::{Context, Description, Error, Fit, Globs, Result, Source, SourceOption, Takes};
use reader::Reader;
use std::io::BufRead;
use std::path::Path;

const OPTIONS: &[SourceOption] = &[
    SourceOption::new(
        "mpi-only",
        "Read only MPI calls, each as one event",
        Takes::Nothing(|options| options.mpi_only = true),
    ),
    SourceOption::new(
        "regions",
        "Read only regions whose names match this pattern with * and ?; can be given several times",
        Takes::Repeated("GLOB", |options, glob| options.regions.push(glob)),
    ),
];

/// The source.
#[derive(Clone, Copy, Debug)]
pub struct Otf2;

impl Source for Otf2 {
    fn name(&self) -> &'static str {
        "otf2"
    }

    fn about(&self) -> &'static str {
        "OTF2 archives, by the anchor file or its directory"
    }

    fn fields(&self) -> &'static [&'static str] {
        kinds::FIELDS
    }

    fn description(&self) -> Description {
        Description {
            event: "an MPI call; an enter and a leave of any other region",
            stream: "a rank, or a thread",
            times: "start, duration",
            example: "loopfold loops scorep-run/traces.otf2 --mpi-only --ignore bytes,tag",
        }
    }

    fn options(&self) -> &'static [SourceOption] {
        OPTIONS
    }

    fn fits(&self, head: &[u8]) -> Fit {
        if anchor::looks_like(head) { Fit::Certain } else { Fit::No }
    }

    /// The anchor file is only the beginning; the library wants its path.
    fn read(&self, _: &mut dyn BufRead, context: &mut Context<'_>) -> Result<()> {
        match context.path().map(Path::to_path_buf) {
            Some(anchor) => read_archive(&anchor, context),
            None => Err(Error::option(
                "an OTF2 archive is a directory of files and cannot come through a pipe; name its anchor file",
            )),
        }
    }
}

/// Whether the OTF2 library can be loaded; if not, why.
pub fn is_available() -> Result<()> {
    library::library().map(|_| ())
}

fn read_archive(anchor: &Path, context: &mut Context<'_>) -> Result<()> {
    let library = library::library()?;
    let not_otf2 =
        |reason| Error::option(format_args!("this is not the anchor file of an OTF2 archive: {reason}"));
    let definitions = Reader::open(library, anchor).map_err(not_otf2)?.definitions();
    let definitions = definitions.map_err(|reason| Error::damaged("definitions", reason))?;
    definitions.check(|place, reason| context.damaged(place, reason))?;
    let mut locations = definitions.named_locations();
    note_lost_definitions(anchor, &locations, context)?;
    let mut streams = open_streams(&definitions, &locations, context)?;
    let records = locations.iter().map(|named| named.location.records);
    context.weigh(&streams.iter().copied().zip(records).collect::<Vec<_>>());
    let is_wanted: Vec<bool> = streams.iter().map(|&stream| context.wants_stream(stream)).collect();
    let are_all_read = is_wanted.iter().all(|&wanted| wanted);
    keep_wanted(&mut locations, &is_wanted);
    keep_wanted(&mut streams, &is_wanted);
    let wanted = Wanted {
        mpi_only: context.options.mpi_only,
        regions: Globs::new(&context.options.regions),
        caller: context.wants("caller"),
        sizes: context.wants("sent") || context.wants("received"),
    };
    context.count_bytes(anchor::bytes_of(anchor));
    let found = read::read(library, anchor, &definitions, &locations, &wanted, &streams, context)?;
    // Other processes may find some in what they read.
    if wanted.mpi_only && found.mpi_calls == 0 && are_all_read {
        context.damaged("archive", "there are no MPI calls; without --mpi-only all regions are read")?;
    }
    Ok(())
}

fn keep_wanted<T>(all: &mut Vec<T>, is_wanted: &[bool]) {
    let mut wanted = is_wanted.iter();
    all.retain(|_| wanted.next().copied().unwrap_or(true));
}

/// Locations whose definitions are gone while others have theirs would be read with wrong
/// numbers and clocks.
fn note_lost_definitions(
    anchor: &Path,
    locations: &[NamedLocation],
    context: &mut Context<'_>,
) -> Result<()> {
    let lacks = |named: &&NamedLocation| anchor::lacks_definitions(anchor, named.location.id);
    let lacking: Vec<&NamedLocation> = locations.iter().filter(lacks).collect();
    if lacking.len() == locations.len() {
        return Ok(());
    }
    for named in lacking {
        let reason =
            format!("its definitions, {}.def, are missing; its numbers may be wrong", named.location.id);
        context.damaged(&named.name, reason)?;
    }
    Ok(())
}

/// Opens a stream for every location, with what is known of its communicators.
fn open_streams(
    definitions: &Definitions,
    locations: &[NamedLocation],
    context: &mut Context<'_>,
) -> Result<Vec<StreamId>> {
    let mut streams = Vec::new();
    for named in locations {
        let stream = context.stream(&named.name)?;
        if !named.title.is_empty() {
            context.describe(stream, "location", &named.title)?;
        }
        for (comm, ranks) in named.rank.into_iter().flat_map(|rank| definitions.comms_of(rank)) {
            context.describe(stream, &format!("comm {comm}"), &ranks)?;
        }
        streams.push(stream);
    }
    if let Some(&first) = streams.first() {
        for (comm, name) in definitions.comm_names() {
            context.describe(first, &format!("comm {comm} name"), &name)?;
        }
        for (comm, shape) in definitions.shapes() {
            context.describe(first, &format!("comm {comm} shape"), &shape)?;
        }
    }
    Ok(streams)
}
