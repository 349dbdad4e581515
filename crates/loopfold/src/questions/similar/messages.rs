//! Matches the sends and receives of messages by their order.
//!
//! The n-th send from one process to another with a communicator and a tag is received by the
//! n-th receive from it there. Receives with a wildcard source or tag have no partner here.
//! Time and memory are O(messages).

use super::compared::ProcessStreams;
use super::joined::SimilarPartners;
use crate::fold::Fold;
use crate::mpi::Channel;
use crate::{Error, Result};
use hashbrown::HashMap;

/// The partners of all sends and receives of the first stream of each process.
#[derive(Clone, Debug, Default)]
pub struct MessagesInOrder {
    /// For each process its events with a partner, in their order.
    partners: HashMap<usize, Vec<(u64, End)>>,
}

/// A process, and the position of an event in its stream.
type End = (usize, u64);

/// More messages do not fit in memory.
const MOST: usize = 1 << 26;

impl MessagesInOrder {
    /// Matches the messages of all processes.
    pub fn of(fold: &Fold, processes: &ProcessStreams<'_>) -> Result<Self> {
        let mut ends: HashMap<Channel, [Vec<End>; 2]> = HashMap::new();
        let mut count = 0;
        for stream in fold.stream_ids() {
            let Some(process) = processes.process(stream) else { continue };
            let symbols = fold.alphabet().symbols();
            let channels: Vec<_> = symbols.map(|symbol| processes.message(stream, symbol)).collect();
            for (position, symbol) in (0u64..).zip(fold.unfold(fold.stream(stream).root())) {
                let Some((channel, is_send)) = channels[symbol.index()] else { continue };
                ends.entry(channel).or_default()[usize::from(is_send)].push((process, position));
                count += 1;
                if count > MOST {
                    return Err(Error::limit(format_args!("more than {MOST} messages cannot be matched")));
                }
            }
        }
        let mut partners: HashMap<usize, Vec<(u64, End)>> = HashMap::new();
        for [receives, sends] in ends.into_values() {
            for (receive, send) in receives.into_iter().zip(sends) {
                partners.entry(receive.0).or_default().push((receive.1, send));
                partners.entry(send.0).or_default().push((send.1, receive));
            }
        }
        partners.values_mut().for_each(|events| events.sort_unstable());
        Ok(Self { partners })
    }
}

impl SimilarPartners for MessagesInOrder {
    fn partner(&self, process: usize, position: u64) -> Option<(usize, u64)> {
        let events = self.partners.get(&process)?;
        let found = events.binary_search_by_key(&position, |&(position, _)| position).ok()?;
        Some(events[found].1)
    }
}
