//! Looks up streams that the data names, without asking the sink each time. O(1) an event, a hash of
//! the name; memory is O(streams).

use crate::{Context, Result};
use hashbrown::HashMap;
use loopfold::StreamId;

/// The streams of one input, by the bytes that name them there.
#[derive(Default)]
pub(crate) struct Streams {
    known: HashMap<Vec<u8>, StreamId, foldhash::fast::RandomState>,
}

impl Streams {
    /// The stream of this name, opened when it is first asked for. What has no name
    /// belongs to the stream of the input.
    pub(crate) fn named(&mut self, name: &[u8], context: &mut Context<'_>) -> Result<StreamId> {
        if let Some(&stream) = self.known.get(name) {
            return Ok(stream);
        }
        let stream = match name {
            b"" => context.only_stream()?,
            _ => context.stream(&String::from_utf8_lossy(name))?,
        };
        self.known.insert(name.to_vec(), stream);
        Ok(stream)
    }
}
