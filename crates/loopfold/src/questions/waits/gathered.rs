//! What a process has found, as bytes for another one, which adds it to its own.
//!
//! Places are sent by the call that is shown, with the times of their loops, since each process numbers nests
//! by itself. Size: O(places × (pairs + iterations)).

use super::BackwardTimes;
use super::clocks::Clocks;
use super::replay::Done;
use super::tally::{Pairs, Place, PlaceKey, Sum, Tally};
use super::walk::Site;
use super::{Class, LeftOut};
use crate::bytes::put_number;
use crate::questions::wire::{Reader, put_list, put_optional, put_signed};
use crate::{Result, StreamId, Symbol};
use hashbrown::HashMap;

impl Done {
    /// `shown` is the call of a place for each symbol.
    pub(super) fn encode(&self, shown: &[Symbol]) -> Vec<u8> {
        let mut out = Vec::new();
        let out = &mut out;
        for number in [self.total, self.messages, self.collectives] {
            put_number(out, number);
        }
        self.left_out.fields().into_iter().for_each(|field| put_number(out, field));
        put_list(out, &self.backward, |out, backward| {
            put_number(out, backward.stream.index() as u64);
            put_number(out, backward.count);
            put_number(out, backward.first);
        });
        put_optional_time(out, self.origin);
        out.extend(self.clocks.encode());
        self.tally.encode(shown, out);
        std::mem::take(out)
    }

    /// Adds what another process has found; there are so many symbols.
    pub(super) fn absorb(&mut self, reader: &mut Reader, symbols: usize) -> Result<()> {
        self.total = self.total.saturating_add(reader.number()?);
        self.messages += reader.number()?;
        self.collectives += reader.number()?;
        self.left_out.absorb(reader)?;
        self.backward.extend(reader.list(|reader| {
            let stream = StreamId::new(reader.number()? as usize)?;
            Ok(BackwardTimes { stream, count: reader.number()?, first: reader.number()? })
        })?);
        self.origin = [self.origin, optional_time(reader)?].into_iter().flatten().min();
        self.clocks.absorb(reader)?;
        self.tally.absorb(reader, symbols)
    }
}

impl LeftOut {
    fn fields(self) -> [u64; 10] {
        [
            self.unknown_senders,
            self.absent,
            self.unreceived,
            self.unsent,
            self.incomplete,
            self.disagreeing,
            self.partial,
            self.unknown_requests,
            self.without_start,
            self.without_duration,
        ]
    }

    fn absorb(&mut self, reader: &mut Reader) -> Result<()> {
        for field in [
            &mut self.unknown_senders,
            &mut self.absent,
            &mut self.unreceived,
            &mut self.unsent,
            &mut self.incomplete,
            &mut self.disagreeing,
            &mut self.partial,
            &mut self.unknown_requests,
            &mut self.without_start,
            &mut self.without_duration,
        ] {
            *field = field.saturating_add(reader.number()?);
        }
        Ok(())
    }
}

fn put_optional_time(out: &mut Vec<u8>, time: Option<i64>) {
    out.push(u8::from(time.is_some()));
    if let Some(time) = time {
        put_signed(out, time.into());
    }
}

fn optional_time(reader: &mut Reader) -> Result<Option<i64>> {
    (reader.byte()? > 0).then(|| reader.since(0)).transpose()
}

impl Clocks {
    /// Violations and bounds.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_list(&mut out, &self.violations, |out, (&(from, to), &(count, worst))| {
            [from.into(), to.into(), count, worst].into_iter().for_each(|number| put_number(out, number));
        });
        let bounds = self.bounds.iter().flatten().collect::<Vec<_>>();
        put_list(&mut out, bounds, |out, (&(from, to), &bound)| {
            put_number(out, from.into());
            put_number(out, to.into());
            put_signed(out, bound.into());
        });
        out
    }

    /// Adds those of another process.
    pub(super) fn absorb(&mut self, reader: &mut Reader) -> Result<()> {
        for _ in 0..reader.number()? {
            let (count, worst) = self.violations.entry((reader.small()?, reader.small()?)).or_default();
            *count += reader.number()?;
            *worst = (*worst).max(reader.number()?);
        }
        for _ in 0..reader.number()? {
            let pair = (reader.small()?, reader.small()?);
            let other = reader.since(0)?;
            let bound = self.bounds.get_or_insert_default().entry(pair).or_insert(i64::MAX);
            *bound = (*bound).min(other);
        }
        Ok(())
    }

    /// The offsets, for other processes.
    pub(super) fn encode_offsets(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_list(&mut out, &self.offsets, |out, (&rank, &offset)| {
            put_number(out, rank.into());
            put_signed(out, offset.into());
        });
        put_optional(&mut out, self.drift.map(|(from, _)| from.into()));
        put_optional(&mut out, self.drift.map(|(_, to)| to.into()));
        out
    }

    pub(super) fn with_offsets(reader: &mut Reader) -> Result<Self> {
        let offsets = reader.list(|reader| Ok((reader.small()?, reader.since(0)?)))?;
        let (from, to) = (reader.optional()?, reader.optional()?);
        let drift = from.zip(to).map(|(from, to)| (from as u32, to as u32));
        Ok(Self { offsets: offsets.into_iter().collect(), drift, ..Self::default() })
    }
}

impl Tally {
    fn encode(&self, shown: &[Symbol], out: &mut Vec<u8>) {
        // A symbol for all that are shown as the same call.
        let mut first: HashMap<Symbol, u32> = HashMap::new();
        for (symbol, &call) in (0u32..).zip(shown) {
            first.entry(call).or_insert(symbol);
        }
        let mut places: HashMap<PlaceKey, Place> = HashMap::new();
        for place in &self.places {
            let symbol = first.get(&shown[place.site.symbol.index()]).copied().unwrap_or_default();
            let site = Site { symbol: Symbol::from_raw(symbol), ..place.site };
            let key = (place.class, site.symbol, site.function, site.nest);
            places.entry(key).or_insert_with(|| Place::new(place.class, site)).add(place);
        }
        put_list(out, places.values(), |out, place| {
            let Site { symbol, function, nest, .. } = place.site;
            put_optional(out, place.class.map(|class| class as u64));
            put_number(out, symbol.index() as u64);
            put_number(out, function.into());
            put_list(out, self.nests.times(nest), put_number);
            put_pairs(out, &place.pairs);
            put_list(out, &place.iterations, |out, &time| put_number(out, time));
            put_sum(out, place.wrong_order);
        });
        put_list(out, &self.starts, |out, (&times, starts)| {
            put_number(out, times);
            let mut last = 0;
            put_list(out, starts, |out, start| {
                out.push(u8::from(start.is_some()));
                if let Some(start) = *start {
                    put_signed(out, i128::from(start) - i128::from(last));
                    last = start;
                }
            });
        });
        put_pairs(out, &self.others);
        put_number(out, self.after_waits);
    }

    fn absorb(&mut self, reader: &mut Reader, symbols: usize) -> Result<()> {
        for _ in 0..reader.number()? {
            let class = reader.optional()?.map(|class| Class::ALL.get(class as usize).copied());
            let class = class.map(|class| class.ok_or_else(|| Reader::damaged("a class"))).transpose()?;
            let symbol = Symbol::new(reader.number()? as usize)?;
            if symbol.index() >= symbols {
                return Err(Reader::damaged("an event"));
            }
            let function = reader.small()?;
            let nest = self.nests.of_times(&reader.list(Reader::number)?)?;
            let site = Site { symbol, function, nest, iteration: 0 };
            let pairs = pairs(reader)?;
            let iterations = reader.list(Reader::number)?;
            let place = Place { class, site, pairs, iterations, wrong_order: sum(reader)? };
            self.add_place(&place)?;
        }
        for _ in 0..reader.number()? {
            let times = reader.number()?;
            let mut last = 0;
            let starts = reader.list(|reader| {
                let start = (reader.byte()? > 0).then(|| reader.since(last)).transpose()?;
                last = start.unwrap_or(last);
                Ok(start)
            })?;
            self.add_starts(times, &starts);
        }
        for (pair, sum) in pairs(reader)? {
            let known = self.others.entry(pair).or_default();
            *known = known.plus(sum);
        }
        self.after_waits = self.after_waits.saturating_add(reader.number()?);
        Ok(())
    }
}

fn put_sum(out: &mut Vec<u8>, sum: Sum) {
    put_number(out, sum.time);
    put_number(out, sum.count);
}

fn sum(reader: &mut Reader) -> Result<Sum> {
    Ok(Sum { time: reader.number()?, count: reader.number()? })
}

fn put_pairs(out: &mut Vec<u8>, pairs: &Pairs) {
    put_list(out, pairs, |out, (&(waiting, cause), &sum)| {
        put_number(out, waiting.into());
        put_number(out, cause.into());
        put_sum(out, sum);
    });
}

fn pairs(reader: &mut Reader) -> Result<Pairs> {
    let pairs = reader.list(|reader| Ok(((reader.small()?, reader.small()?), sum(reader)?)))?;
    Ok(pairs.into_iter().collect())
}
