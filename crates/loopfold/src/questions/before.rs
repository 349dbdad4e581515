//! Order: whether one query occurs before another, and where first.
//!
//! An occurrence is before another if its last event comes before the first event of the other
//! in the same stream. Different streams are not ordered.
//!
//! Cost: what finding both queries costs, and a few walks down the rules for each
//! distinct stream.

use super::find::{Found, Place};
use super::query::Query;
use crate::fold::Fold;
use crate::{Error, Result, RuleId, StreamId};
use hashbrown::HashMap;

/// The order of the occurrences of a query A and a query B in one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// The stream.
    pub stream: StreamId,
    /// How often A occurs.
    pub count: u64,
    /// How often B occurs.
    pub others: u64,
    /// How many occurrences of A are before some occurrence of B.
    pub before: u64,
    /// The first occurrence of A that is before one of B, and the first of B that it is
    /// before. If any A is before some B, the first A is.
    pub first: Option<(Place, Place)>,
    /// The first occurrence of B, when it is before the first one of A.
    pub earlier: Option<Place>,
}

impl Fold {
    /// The order of two queries in every stream.
    ///
    /// ```
    /// use loopfold::folders::{Outermost, fold_trace};
    /// use loopfold::questions::before::OrderTotal;
    /// use loopfold::questions::query::Query;
    /// use loopfold::trace::{Collector, Event, Sink};
    ///
    /// let mut collector = Collector::default();
    /// let stream = collector.stream("main")?;
    /// for name in ["free", "malloc", "malloc", "free", "malloc"] {
    ///     collector.push_event(stream, &Event::named(name))?;
    /// }
    /// let fold = fold_trace(collector.finish()?, &Outermost::default(), 1)?;
    /// let query = |text| Query::parse(text, fold.alphabet());
    /// let orders = fold.order(&query("malloc")?, &query("free")?)?;
    /// let order = orders[0];
    /// assert_eq!((order.count, order.others, order.before), (3, 2, 2));
    /// let (malloc, free) = order.first.unwrap();
    /// assert_eq!((malloc.start, free.start), (1, 3));
    /// assert_eq!(order.earlier.unwrap().start, 0);
    /// assert_eq!(OrderTotal::of(&orders)?.before, 2);
    /// # Ok::<(), loopfold::Error>(())
    /// ```
    pub fn order(&self, query: &Query, other: &Query) -> Result<Vec<Order>> {
        let (found, others) = (self.find(query)?, self.find(other)?);
        let mut known: HashMap<RuleId, Order> = HashMap::new();
        let orders = self.stream_ids().map(|stream| {
            let order =
                known.entry(self.stream(stream).root()).or_insert_with(|| in_stream(&found, &others, stream));
            order.moved_to(stream)
        });
        Ok(orders.collect())
    }
}

fn in_stream(found: &Found<'_>, others: &Found<'_>, stream: StreamId) -> Order {
    let first = found.places_in(stream).next();
    let next = first.and_then(|first| others.first_from(stream, first.end.checked_add(1)?));
    let last = others.last_in(stream);
    let first_other = others.places_in(stream).next();
    Order {
        stream,
        count: found.count_in(stream),
        others: others.count_in(stream),
        before: last.map_or(0, |last| found.count_before(stream, last.start)),
        first: first.zip(next),
        earlier: first_other.filter(|other| first.is_some_and(|first| other.end < first.start)),
    }
}

/// The order of two queries over all streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderTotal {
    /// How often A occurs.
    pub count: u64,
    /// How often B occurs.
    pub others: u64,
    /// How many occurrences of A are before some occurrence of B.
    pub before: u64,
    /// The first stream, if any, in which an A is before a B.
    pub first: Option<Order>,
    /// The first stream, if any, in which a B is there before the first A.
    pub earlier: Option<Order>,
}

impl OrderTotal {
    /// Adds up the orders in all streams.
    pub fn of(orders: &[Order]) -> Result<Self> {
        let sum = |part: fn(&Order) -> u64| {
            let sum = orders.iter().map(part).try_fold(0u64, u64::checked_add);
            sum.ok_or_else(|| Error::limit("there are more than 2^64 occurrences"))
        };
        Ok(Self {
            count: sum(|order| order.count)?,
            others: sum(|order| order.others)?,
            before: sum(|order| order.before)?,
            first: orders.iter().find(|order| order.first.is_some()).copied(),
            earlier: orders.iter().find(|order| order.earlier.is_some()).copied(),
        })
    }
}

impl Order {
    /// The same order in another stream with the same events.
    fn moved_to(&self, stream: StreamId) -> Self {
        let moved = |place: Place| Place { stream, ..place };
        Self {
            stream,
            first: self.first.map(|(first, next)| (moved(first), moved(next))),
            earlier: self.earlier.map(moved),
            ..*self
        }
    }
}
