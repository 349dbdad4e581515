//! Waits, found by all processes together: each replays the streams whose times it has.
//!
//! Process 0 sends the fold of the whole, without times, and what is asked to all others, over a tree; then all
//! of them do the same, and process 0 gets the sums. See [`Waits::divided`] for what else travels.

use super::Nodes;
use super::serve::{here, waits_request};
use super::share::OwnTimes;
use super::sums::SharedTimes;
use super::wire::{Message, Received};
use anyhow::{Result, bail};
use loopfold::Fold;
use loopfold::archive::{self, ReadConfig};
use loopfold::questions::waits::{Config, Division, Exchange, Focus, Waits, broadcast, can_be_divided};
use loopfold::trace::Times;
use std::io::Cursor;

/// The exchange of the library.
struct Messages<'a>(&'a Nodes);

fn io_error(error: anyhow::Error) -> loopfold::Error {
    std::io::Error::other(format!("{error:#}")).into()
}

impl Exchange for Messages<'_> {
    fn rank(&self) -> usize {
        self.0.rank()
    }

    fn size(&self) -> usize {
        self.0.size()
    }

    fn send(&self, to: usize, message: &[u8]) -> loopfold::Result<()> {
        self.0.send(to, message).map_err(io_error)
    }

    fn receive(&self, from: usize) -> loopfold::Result<Vec<u8>> {
        self.0.receive(from).map_err(io_error)
    }
}

impl SharedTimes {
    /// The waits of a fold that has these streams. Returns `None` if process 0 has to find them alone.
    pub(crate) fn waits(&self, fold: &Fold, config: &Config, focus: &Focus) -> Result<Option<Waits>> {
        let mut bare = fold.clone();
        fold.stream_ids().for_each(|stream| drop(bare.take_times(stream)));
        let mut bytes = Vec::new();
        archive::write(&bare, &mut bytes)?;
        // The others number symbols and rules as they read them.
        let (read, _) = archive::read(Cursor::new(&bytes), &ReadConfig::new())?;
        if !self.has_all_of(fold) || read != bare || !can_be_divided(fold, &self.owners)? {
            return Ok(None);
        }
        for rank in 1..self.nodes.size() {
            self.nodes.send(rank, &waits_request().0)?;
        }
        let exchange = Messages(self.nodes);
        let question = Message::default()
            .bytes(&bytes)
            .list(&self.owners, |to, &owner| to.number(owner as u64))
            .number(config.correct_clocks.into())
            .bytes(&focus.to_bytes());
        broadcast(&exchange, question.0)?;
        Ok(Waits::divided(fold, config, focus, &Division { exchange: &exchange, owners: &self.owners })?)
    }
}

/// Finds waits together with the others, when process 0 asks for that.
pub(super) fn take_part(nodes: &Nodes, own: &OwnTimes) -> Result<()> {
    let exchange = Messages(nodes);
    let question = broadcast(&exchange, Vec::new())?;
    let mut received = Received(&question);
    let (mut fold, _) = archive::read(Cursor::new(received.bytes()?), &ReadConfig::new())?;
    let owners = received.list(|from| Ok(from.number()? as usize))?;
    let config = Config::new().correct_clocks(received.number()? > 0);
    let focus = Focus::from_bytes(received.bytes()?)?;
    drop(question);
    own.set_times(&mut fold, &owners, nodes.rank())?;
    let division = Division { exchange: &exchange, owners: &owners };
    match Waits::divided(&fold, &config, &focus, &division)? {
        None => Ok(()),
        Some(_) => bail!("process 0 is not the one that prints"),
    }
}

impl OwnTimes {
    /// Gives the streams of a fold that this process owns their times.
    fn set_times(&self, fold: &mut Fold, owners: &[usize], rank: usize) -> Result<()> {
        let here = here(&self.chunks);
        let own = fold.stream_ids().zip(owners).filter(|&(_, &owner)| owner == rank);
        let own: Vec<_> = own.map(|(stream, _)| stream).collect();
        if own.len() != self.outlines.len() {
            bail!("process 0 asks for other streams than this process has read");
        }
        for (stream, outline) in own.into_iter().zip(&self.outlines) {
            fold.set_times(stream, Times::from_outline(outline, &here)?)?;
        }
        Ok(())
    }
}
