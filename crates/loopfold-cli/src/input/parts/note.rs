//! What `fold --part` notes of each stream, under two keys that `merge` removes:
//!
//! - `part`: `PART/COUNT INPUT PLACE FOLDER`, such as `2/3 1 0 auto`: the number of the part from 1, how
//!   many there are, the stream's place in the whole (the number of its input, and its number among the
//!   streams that this part knows), and the folder. A part in which nothing is to be read has one empty
//!   stream, with `-` for INPUT and PLACE, so that it is a part of a trace too.
//! - `part-of`: `INPUT OPTIONS`, the fingerprint of all inputs and that of the options, 16 hexadecimal
//!   digits each. Archives of earlier versions do not have it. It has a key of its own so that they read
//!   the other one.

use super::fingerprint::Fingerprint;
use anyhow::Result;
use loopfold::Fold;
use loopfold::fold::{FoldBuilder, FoldedStream};

const PART: &str = "part";
const PART_OF: &str = "part-of";
/// The place of a stream that only stands for its part.
const NOWHERE: &str = "- -";

/// The note of a stream of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PartNote<'a> {
    /// From 1.
    pub(super) part: usize,
    pub(super) count: usize,
    /// The numbers of the input and of the stream. `None` in a part without streams.
    pub(super) place: Option<(u64, u64)>,
    pub(super) folder: &'a str,
    pub(super) fingerprint: Option<Fingerprint>,
}

impl<'a> PartNote<'a> {
    /// That of a stream, if it has one.
    pub(super) fn of(stream: &'a FoldedStream) -> Option<Self> {
        let (part, rest) = stream.note(PART)?.raw().split_once(' ')?;
        let (part, count) = part.split_once('/')?;
        let (part, count): (usize, usize) = (part.parse().ok()?, count.parse().ok()?);
        let (place, folder) = match rest.strip_prefix(NOWHERE) {
            Some(folder) => (None, folder.strip_prefix(' ')?),
            None => {
                let mut words = rest.splitn(3, ' ');
                let place = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
                (Some(place), words.next()?)
            }
        };
        let fingerprint = match stream.note(PART_OF) {
            Some(text) => Some(parse_fingerprint(text.raw())?),
            None => None,
        };
        (1..=count).contains(&part).then_some(Self { part, count, place, folder, fingerprint })
    }

    fn texts(&self) -> impl Iterator<Item = (String, String)> {
        let Self { part, count, place, folder, fingerprint } = self;
        let place = place.map_or(NOWHERE.to_string(), |(input, stream)| format!("{input} {stream}"));
        let fingerprint =
            fingerprint.map(|Fingerprint { input, options }| format!("{input:016x} {options:016x}"));
        let part = (PART.to_string(), format!("{part}/{count} {place} {folder}"));
        std::iter::once(part).chain(fingerprint.map(|text| (PART_OF.to_string(), text)))
    }
}

fn parse_fingerprint(text: &str) -> Option<Fingerprint> {
    let (input, options) = text.split_once(' ')?;
    let number = |digits: &str| u64::from_str_radix(digits, 16).ok();
    Some(Fingerprint { input: number(input)?, options: number(options)? })
}

/// The same fold with this note on the part of each stream, or none.
pub(super) fn with_notes<'a>(
    mut fold: Fold,
    mut note: impl FnMut(&FoldedStream) -> Option<PartNote<'a>>,
) -> Result<Fold> {
    let times: Vec<_> = fold.stream_ids().map(|stream| fold.take_times(stream)).collect();
    let mut builder = FoldBuilder::new(fold.alphabet().clone());
    let rules = builder.append_rules(&fold, Ok)?;
    for (stream, times) in fold.streams().iter().zip(times) {
        let is_other = |(key, _): &&(String, String)| ![PART, PART_OF].contains(&key.as_str());
        let mut notes: Vec<_> = stream.notes().iter().filter(is_other).cloned().collect();
        notes.extend(note(stream).iter().flat_map(PartNote::texts));
        let noted =
            FoldedStream::new(stream.name().raw(), stream.folder().raw(), rules[stream.root().index()]);
        builder.stream(noted.with_notes(notes).with_times(times));
    }
    Ok(builder.finish())
}

/// The fold of a part without streams: one that has this note and no events.
pub(super) fn empty_part(note: &PartNote<'_>) -> Result<Fold> {
    let mut builder = FoldBuilder::default();
    let root = builder.root_rule(Vec::new())?;
    let name = format!("part {}/{}", note.part, note.count);
    builder.stream(FoldedStream::new(name, note.folder, root).with_notes(note.texts().collect()));
    Ok(builder.finish())
}

/// The same fold without streams that only stand for their part.
pub(super) fn without_empty(fold: &Fold) -> Fold {
    fold.with_streams(|stream| PartNote::of(fold.stream(stream)).is_none_or(|note| note.place.is_some()))
}
