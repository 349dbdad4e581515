//! Rewrites symbols for a stream, each when it first occurs there.

use super::super::call::{Nobody, WORLD, is_relative, text_of};
use super::{Place, Places};
use crate::trace::{Alphabet, Event, Field, Meaning, Role, Value};
use crate::{Result, Symbol};
use std::collections::BTreeSet;

/// The fields that say who is at the other end of a message.
pub(in super::super) const ENDS: [&str; 3] = ["dest", "src", "from"];

/// Whether an event is about a message.
pub(in super::super) fn has_peers(meaning: &Meaning<'_>) -> bool {
    meaning.role != Role::Collective && meaning.fields.iter().any(|field| ENDS.contains(&field.key))
}

/// The communicator of an event.
pub(in super::super) fn comm_of(meaning: &Meaning<'_>) -> String {
    meaning.field("comm").map_or_else(|| WORLD.to_string(), text_of)
}

/// From the symbols of one alphabet to those of another, stream by stream.
pub(super) struct Symbols<'a> {
    old: &'a Alphabet,
    new: Alphabet,
    nobody: Nobody,
    known: Vec<Known>,
    unplaced: BTreeSet<String>,
}

/// The new symbol of a symbol.
#[derive(Clone, Copy)]
enum Known {
    NotYet,
    /// Known for this stream only.
    In(usize, Symbol),
    /// In all streams: it is not about a message.
    Always(Symbol),
}

impl<'a> Symbols<'a> {
    pub(super) fn new(old: &'a Alphabet) -> Self {
        let meanings: Vec<Meaning<'_>> = old.symbols().map(|symbol| old.meaning(symbol)).collect();
        Self {
            old,
            new: Alphabet::default(),
            nobody: Nobody::of(&meanings),
            known: vec![Known::NotYet; old.len()],
            unplaced: BTreeSet::new(),
        }
    }

    /// The new symbol of a symbol in a stream.
    #[inline]
    pub(super) fn renamed(&mut self, symbol: Symbol, stream: usize, places: &Places) -> Result<Symbol> {
        match self.known[symbol.index()] {
            Known::Always(new) => Ok(new),
            Known::In(known, new) if known == stream => Ok(new),
            _ => self.rename(symbol, stream, places),
        }
    }

    fn rename(&mut self, symbol: Symbol, stream: usize, places: &Places) -> Result<Symbol> {
        let meaning = self.old.meaning(symbol);
        let new;
        self.known[symbol.index()] = if !has_peers(&meaning) {
            new = self.new.intern_entry(self.old.entry(symbol), None)?;
            Known::Always(new)
        } else {
            new = self.rewrite(symbol, &meaning, stream, places)?;
            Known::In(stream, new)
        };
        Ok(new)
    }

    fn rewrite(
        &mut self,
        symbol: Symbol,
        meaning: &Meaning<'_>,
        stream: usize,
        places: &Places,
    ) -> Result<Symbol> {
        let comm = comm_of(meaning);
        let place = places.place(stream, &comm).filter(|_| !places.is_done[stream]);
        let Some(place) = place else {
            if !places.is_done[stream] && !places.reused.contains(&comm) {
                self.unplaced.insert(comm);
            }
            return self.new.intern_entry(self.old.entry(symbol), None);
        };
        let rewritten = |field: &Field<'_>| {
            ENDS.contains(&field.key).then(|| peers_from(&place, field.value, self.nobody)).flatten()
        };
        let rewritten: Vec<Option<String>> = meaning.fields.iter().map(rewritten).collect();
        let mut fields: Vec<Field<'_>> = meaning.fields.clone();
        for (field, rewritten) in fields.iter_mut().zip(&rewritten) {
            if let Some(text) = rewritten {
                field.value = Value::Text(text.as_bytes());
            }
        }
        self.new.intern(&Event { fields: &fields, ..meaning.event() }, None)
    }

    /// Takes the new alphabet.
    pub(super) fn take_alphabet(&mut self) -> Alphabet {
        std::mem::take(&mut self.new)
    }

    /// The new alphabet, and the communicators that were used by processes that are not
    /// members.
    pub(super) fn finish(self) -> (Alphabet, Vec<String>) {
        (self.new, self.unplaced.into_iter().collect())
    }
}

/// Peers relative to a place. Returns `None` if they do not change.
fn peers_from(place: &Place<'_>, value: Value<'_>, nobody: Nobody) -> Option<String> {
    let text = match value {
        Value::Integer(number) => return Some(peer_from(place, number, nobody)),
        Value::Text(text) => std::str::from_utf8(text).ok().filter(|_| !is_relative(text))?,
    };
    let word = |word: &str| match word.trim().parse() {
        Ok(number) => peer_from(place, number, nobody),
        Err(_) => word.to_string(),
    };
    Some(text.split(',').map(word).collect::<Vec<_>>().join(","))
}

fn peer_from(place: &Place<'_>, number: i64, nobody: Nobody) -> String {
    match u32::try_from(number) {
        Ok(rank) => place.offset_to(rank),
        Err(_) if number > 0 => number.to_string(),
        Err(_) if nobody.is(number) => "none".to_string(),
        Err(_) => "any".to_string(),
    }
}

impl Place<'_> {
    /// The offset to a rank: `(0,+1)` in a grid, `+1` else.
    fn offset_to(&self, rank: u32) -> String {
        let is_inside = |size: u32| self.own < size && rank < size;
        let Some(grid) = self.grid.filter(|grid| grid.size().is_some_and(is_inside)) else {
            return format!("{:+}", i64::from(rank) - i64::from(self.own));
        };
        let steps = grid.way(self.own, rank);
        let step = |&step: &i64| if step == 0 { "0".to_string() } else { format!("{step:+}") };
        format!("({})", steps.iter().map(step).collect::<Vec<_>>().join(","))
    }
}
