//! The events of a stream in the form in which they are compared with a pattern.
//!
//! By default that is communication without the envelope of its messages: name, peer and
//! communicator of sends, receives and collectives, as in the list of patterns. In a trace
//! without communication every event is compared as it is. Patterns that are known by name have
//! nothing but sends, receives and the processes at their other ends. Time and memory are
//! O(alphabet).

use crate::fold::Fold;
use crate::mpi::{Calls, Channel, Communicators, MessageEnd, MessageEnds, Peer};
use crate::questions::communication::ChosenEvents;
use crate::questions::names::symbols_called;
use crate::questions::patterns::EventChoice;
use crate::trace::{Alphabet, Role};
use crate::{Result, StreamId, Symbol};
use hashbrown::HashMap;

/// The compared form of each event of a trace.
#[derive(Clone, Debug)]
pub struct Compared {
    chosen: ChosenEvents,
    symbols: Vec<Option<Symbol>>,
}

impl Compared {
    /// The events that are chosen.
    pub fn of(alphabet: &Alphabet, choice: &EventChoice) -> Result<Self> {
        let chosen = ChosenEvents::of(alphabet, &Calls::of(alphabet), choice)?;
        let forms = chosen.forms.iter().zip(&chosen.taken);
        let symbols = forms.map(|(&form, taken)| taken.then_some(form)).collect();
        Ok(Self { chosen, symbols })
    }

    /// What is compared, as events of their own.
    pub fn alphabet(&self) -> &Alphabet {
        &self.chosen.alphabet
    }

    /// The compared form of each symbol of the trace. `None` if it is skipped.
    pub fn symbols(&self) -> &[Option<Symbol>] {
        &self.symbols
    }

    /// The symbols that each word matches, by the names of events of the trace or of their
    /// compared form; `alphabet` is that of the trace. Skipped events do not match.
    pub fn called<W: AsRef<str>>(&self, alphabet: &Alphabet, words: &[W]) -> Result<Vec<Vec<Symbol>>> {
        let mut is_compared = vec![false; self.alphabet().len()];
        self.symbols.iter().flatten().for_each(|symbol| is_compared[symbol.index()] = true);
        let mut called = symbols_called(self.alphabet(), words)?;
        for (symbols, whole) in called.iter_mut().zip(symbols_called(alphabet, words)?) {
            symbols.extend(whole.iter().map(|symbol| self.chosen.forms[symbol.index()]));
            symbols.retain(|symbol| is_compared[symbol.index()]);
            symbols.sort_unstable();
            symbols.dedup();
        }
        Ok(called)
    }
}

/// Sends and receives as symbols: what they are, and the process at the other end.
#[derive(Clone, Debug, Default)]
pub struct RolesAndPeers {
    symbols: HashMap<(Role, Option<usize>), Symbol>,
}

impl RolesAndPeers {
    /// The symbol of an event with this role whose peer is this process of all there are.
    pub fn symbol(&mut self, role: Role, peer: Option<usize>) -> Result<Symbol> {
        let next = self.symbols.len();
        match self.symbols.get(&(role, peer)) {
            Some(&symbol) => Ok(symbol),
            None => {
                let symbol = Symbol::new(next)?;
                self.symbols.insert((role, peer), symbol);
                Ok(symbol)
            }
        }
    }
}

/// Which stream of a trace is which process, and what its events say of the others.
#[derive(Clone, Debug)]
pub struct ProcessStreams<'a> {
    fold: &'a Fold,
    calls: Calls,
    communicators: Communicators,
    /// The first stream of each process.
    streams: HashMap<u32, StreamId>,
}

impl<'a> ProcessStreams<'a> {
    /// Those of a trace.
    pub fn of(fold: &'a Fold) -> Self {
        let calls = Calls::of(fold.alphabet());
        let communicators = Communicators::of(fold);
        let mut streams = HashMap::new();
        for stream in fold.stream_ids() {
            streams.entry(communicators.rank(stream.index())).or_insert(stream);
        }
        Self { fold, calls, communicators, streams }
    }

    /// The stream of a process.
    pub fn stream(&self, process: usize) -> Option<StreamId> {
        self.streams.get(&u32::try_from(process).ok()?).copied()
    }

    /// The process that a stream is, if it is the first stream of it.
    pub fn process(&self, stream: StreamId) -> Option<usize> {
        let process = self.communicators.rank(stream.index()) as usize;
        (self.stream(process) == Some(stream)).then_some(process)
    }

    /// What each symbol of the trace is compared as in one of its streams, when only roles
    /// and peers count: the peer of its first message. A send without a receiver is no message.
    pub fn roles_and_peers(
        &self,
        stream: StreamId,
        numbers: &mut RolesAndPeers,
    ) -> Result<Vec<Option<Symbol>>> {
        let alphabet = self.fold.alphabet();
        let compared = |symbol| {
            let role = alphabet.meaning(symbol).role;
            let peer = match role {
                Role::Collective => Some(None),
                Role::Send | Role::Receive => {
                    self.ends(stream, symbol).next().map(|end| self.peer(stream, &end))
                }
                _ => None,
            };
            peer.map(|peer| numbers.symbol(role, peer.map(|peer| peer as usize))).transpose()
        };
        alphabet.symbols().map(compared).collect()
    }

    fn ends(&self, stream: StreamId, symbol: Symbol) -> impl Iterator<Item = MessageEnd<'_>> {
        let ends = MessageEnds { calls: &self.calls, communicators: &self.communicators };
        ends.of(stream.index(), symbol)
    }

    /// The process at the other end of a message.
    fn peer(&self, stream: StreamId, end: &MessageEnd<'_>) -> Option<u32> {
        let is_world = || self.communicators.members(stream.index(), self.calls.comm(end.comm)).is_none();
        match end.message.peer {
            // The trace may have fewer streams than there were processes.
            Peer::Rank(rank) if end.peer.is_none() && is_world() => Some(rank),
            _ => end.process(),
        }
    }

    /// The channel of the message that a symbol of a stream sends or receives, and whether it
    /// sends.
    pub(super) fn message(&self, stream: StreamId, symbol: Symbol) -> Option<(Channel, bool)> {
        let is_send = match self.fold.alphabet().meaning(symbol).role {
            Role::Send => true,
            Role::Receive => false,
            _ => return None,
        };
        let end = self.ends(stream, symbol).find(|end| end.is_send == is_send)?;
        Some((end.exact_channel()?, is_send))
    }
}
