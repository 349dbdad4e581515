//! Symbols for integers: those below 2²² are looked up in a table, others in a hash map.
//!
//! About a nanosecond an event where values are small or repeat; memory is O(largest small value +
//! distinct large values). A negative integer is an event whose name is its decimal text, since
//! events are unsigned numbers or names.

use hashbrown::HashMap;
use loopfold::trace::{Event, Sink};
use loopfold::{Result, Symbol};

/// Values below this are looked up in a table.
const SMALL: usize = 1 << 22;

/// An integer of an array.
pub(crate) trait Integer: Copy + Send + PartialEq + 'static {
    /// The value if it is small.
    fn small(self) -> Option<usize>;
    /// Its value, which fits.
    fn wide(self) -> i128;
    /// From such a value. Returns `None` if it does not fit.
    fn narrow(value: i128) -> Option<Self>;
}

macro_rules! integers {
    ($($type:ty),+) => {
        $(impl Integer for $type {
            #[inline]
            fn small(self) -> Option<usize> {
                usize::try_from(self).ok().filter(|&value| value < SMALL)
            }

            fn wide(self) -> i128 {
                i128::from(self)
            }

            fn narrow(value: i128) -> Option<Self> {
                Self::try_from(value).ok()
            }
        })+
    };
}

integers!(u8, u16, u32, u64, i8, i16, i32, i64);

/// The symbols of integers in a sink.
#[derive(Default)]
pub(crate) struct Interned {
    /// The symbol of each small value.
    small: Vec<Option<Symbol>>,
    large: HashMap<i128, Symbol>,
    /// The latest one of these.
    latest: Option<(i128, Symbol)>,
}

impl Interned {
    /// The symbol of a value.
    #[inline]
    pub(crate) fn symbol<T: Integer>(&mut self, value: T, sink: &mut dyn Sink) -> Result<Symbol> {
        let Some(index) = value.small() else { return self.symbol_of_large(value.wide(), sink) };
        if let Some(&Some(symbol)) = self.small.get(index) {
            return Ok(symbol);
        }
        self.new_small(index, sink)
    }

    /// Appends the symbols of values.
    pub(crate) fn symbols<T: Integer>(
        &mut self,
        values: &[T],
        sink: &mut dyn Sink,
        symbols: &mut Vec<Symbol>,
    ) -> Result<()> {
        let mut rest = values;
        loop {
            let before = symbols.len();
            let known = |value: &T| self.small.get(value.small()?).copied().flatten();
            symbols.extend(rest.iter().map_while(known));
            rest = &rest[symbols.len() - before..];
            let Some((&next, others)) = rest.split_first() else { return Ok(()) };
            symbols.push(self.symbol(next, sink)?);
            rest = others;
        }
    }

    #[cold]
    fn new_small(&mut self, index: usize, sink: &mut dyn Sink) -> Result<Symbol> {
        let symbol = sink.intern(&Event::integer(index as u64))?;
        if self.small.len() <= index {
            self.small.resize((index + 1).next_power_of_two(), None);
        }
        self.small[index] = Some(symbol);
        Ok(symbol)
    }

    pub(crate) fn symbol_of_large(&mut self, value: i128, sink: &mut dyn Sink) -> Result<Symbol> {
        if let Some((latest, symbol)) = self.latest
            && latest == value
        {
            return Ok(symbol);
        }
        let symbol = match self.large.get(&value) {
            Some(&symbol) => symbol,
            None => {
                let symbol = match u64::try_from(value) {
                    Ok(number) => sink.intern(&Event::integer(number))?,
                    Err(_) => sink.intern(&Event::named(value.to_string().as_str()))?,
                };
                self.large.insert(value, symbol);
                symbol
            }
        };
        self.latest = Some((value, symbol));
        Ok(symbol)
    }
}
