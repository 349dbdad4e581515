//! Finds which of many intervals of a stream contain a symbol.
//!
//! Intervals are mostly nested or disjoint, so that a symbol is in few; where too many overlap,
//! the last ones are left out. Time and memory are O(total length of the intervals that are
//! kept).

/// Intervals of a stream, in an order of the caller's choice, each with something to know of it.
#[derive(Clone, Debug, Default)]
pub struct Holders<T> {
    all: Vec<(u32, u32, T)>,
    /// For each symbol, where in `holding` its intervals begin.
    starts: Vec<u32>,
    holding: Vec<u32>,
}

/// The symbols of all intervals together, and more of them for each symbol of the stream.
const MOST: usize = 1 << 26;
const MOST_EACH: usize = 8;

impl<T> Holders<T> {
    /// Intervals, from a symbol to before another, of a stream of this many symbols.
    pub fn new(symbols: usize, mut all: Vec<(u32, u32, T)>) -> Self {
        let mut room = MOST + MOST_EACH * symbols;
        all.retain(|&(start, end, _)| {
            let rest = room.checked_sub((end - start) as usize);
            room = rest.unwrap_or(room);
            rest.is_some()
        });
        let mut starts = vec![0u32; symbols + 1];
        for &(start, end, _) in &all {
            (start..end).for_each(|index| starts[index as usize + 1] += 1);
        }
        for index in 1..starts.len() {
            starts[index] += starts[index - 1];
        }
        let mut next = starts.clone();
        let mut holding = vec![0u32; starts.last().copied().unwrap_or(0) as usize];
        for (number, &(start, end, _)) in all.iter().enumerate() {
            for index in start..end {
                let slot = &mut next[index as usize];
                holding[*slot as usize] = number as u32;
                *slot += 1;
            }
        }
        Self { all, starts, holding }
    }

    /// The intervals that are kept.
    pub fn all(&self) -> &[(u32, u32, T)] {
        &self.all
    }

    /// The numbers of those that hold a symbol, in their order.
    pub fn of(&self, symbol: usize) -> &[u32] {
        &self.holding[self.range_of(symbol)]
    }

    /// The numbers of those that hold the first symbol, the second and so on.
    pub(in crate::questions) fn holding(&self) -> &[u32] {
        &self.holding
    }

    /// Where those that hold a symbol are among them.
    pub(in crate::questions) fn range_of(&self, symbol: usize) -> std::ops::Range<usize> {
        self.starts[symbol] as usize..self.starts[symbol + 1] as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_hold_their_symbols_in_order() {
        let holders = Holders::new(5, vec![(1, 3, 'a'), (0, 5, 'b'), (2, 4, 'c')]);
        let names = |symbol| -> String {
            holders.of(symbol).iter().map(|&number| holders.all()[number as usize].2).collect()
        };
        assert_eq!([0, 1, 2, 3, 4].map(names), ["b", "ab", "abc", "bc", "b"]);
    }

    #[test]
    fn intervals_that_overlap_too_much_are_left_out() {
        let many = (2..20_000).map(|end| (0, end, ())).collect();
        let holders = Holders::new(20_000, many);
        assert!(holders.holding.len() <= MOST + MOST_EACH * 20_000);
        assert!(holders.all().len() > 10_000 && holders.all().len() < 19_998);
    }
}
