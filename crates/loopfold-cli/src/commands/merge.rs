//! `loopfold merge`: archives and traces into one archive, archives as they are; the parts of a trace become its
//! whole.

use crate::args::{FolderName, MergeArgs};
use crate::{Outcome, input, save, show};
use anyhow::Result;
use loopfold::questions::path::PathIndex;
use loopfold::sections;
use loopfold::trace::TimesKept;
use loopfold_json::archives;

pub(super) fn run(arguments: &MergeArgs) -> Result<Outcome> {
    let folder = arguments.folder.or(FolderName::Auto);
    let mut loaded = input::load_for(&arguments.read, TimesKept::All, &folder)?;
    loaded.join_parts()?;
    let has_chunks = loaded.chunk_bytes > 0;
    // The index of what is joined is a new one, and there is one if all had one.
    let index = loaded.is_indexed().then_some(PathIndex::RANGES);
    let blocks = loaded.blocks()?;
    let (fold, mut notes) = loaded.fold_as_stored(&folder)?;
    notes.extend(has_chunks.then(|| input::CHUNKS_LEFT_OUT.to_string()));
    let config = sections::with_blocks(sections::write_config(index, None), &blocks);
    let bytes = save::save_fold(&fold, &arguments.output, &config)?;
    show::notes(&notes);
    if arguments.json.on {
        let name = arguments.output.path().to_string_lossy();
        show::print_json_line(|out| Ok(archives::merged(out, &fold, &name, bytes)?))?;
    } else {
        let streams = show::plural(fold.streams().len() as u64, "stream");
        let name = show::plain(arguments.output.path().as_os_str().as_encoded_bytes());
        show::remark(&format!("{name}: {streams} in {}", show::bytes(bytes)));
    }
    Ok(Outcome::Done)
}
