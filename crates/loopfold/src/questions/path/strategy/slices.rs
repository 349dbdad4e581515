//! A cache of the slices of functions, so that later paths of a function cost O(items of its
//! slice).
//!
//! A slice is built after enough paths of its function were searched, and kept unless searching
//! it takes as long as searching the fold. Memory: up to half a gigabyte of items.

use super::Scheme;
use crate::questions::path::PathQuery;
use crate::questions::path::slice::{Dedup, FunctionSlice};
use hashbrown::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Items of all slices that are kept: half a gigabyte.
const MAX_ITEMS: usize = 1 << 26;

/// So many paths of a function are searched over all rules before its slice is made.
pub(super) const DIRECT: usize = 3;

/// The cache, by the names of functions.
#[derive(Default)]
pub(super) struct SliceCache<'a>(Mutex<Functions<'a>>);

#[derive(Default)]
struct Functions<'a> {
    known: HashMap<Vec<u8>, Known<'a>>,
    /// Items of all slices.
    items: usize,
}

/// The entry of a function.
enum Known<'a> {
    /// So many paths of it were searched.
    Searched(usize),
    Kept(Kept<'a>),
    /// Its slice is so large that going over all rules is no slower.
    Everywhere,
}

/// The cached slice of a function.
#[derive(Clone)]
pub(super) struct Kept<'a> {
    pub(super) slice: Arc<FunctionSlice<'a>>,
    /// How it was found.
    pub(super) scheme: Scheme,
    /// Whether rules that hold the same are one in it.
    is_deduplicated: bool,
}

impl<'a> SliceCache<'a> {
    fn lock(&self) -> MutexGuard<'_, Functions<'a>> {
        // Whoever panicked left the counts and slices as they were.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn clear(&self) {
        let mut functions = self.lock();
        functions.known.clear();
        functions.items = 0;
    }

    /// The slice of a path's function, if it was found by this scheme. The first time that it
    /// is requested, rules that hold the same become one.
    pub(super) fn get(&self, query: &PathQuery, wanted: Option<Scheme>) -> Option<Kept<'a>> {
        let known = match self.lock().known.get(query.function()) {
            Some(Known::Kept(kept)) => Some(kept.clone()),
            _ => None,
        };
        let is_wanted = |kept: &Kept<'_>| {
            wanted.is_none_or(|scheme| scheme == kept.scheme) && kept.slice.steps() == query.steps()
        };
        let mut kept = known.filter(is_wanted)?;
        if !kept.is_deduplicated {
            kept.slice = Arc::new(kept.slice.deduplicated());
            kept.is_deduplicated = true;
            self.lock().known.insert(query.function().to_vec(), Known::Kept(kept.clone()));
        }
        Some(kept)
    }

    /// Counts a search for a path whose slice cannot be used, and returns how many there were
    /// before.
    pub(super) fn count(&self, query: &PathQuery) -> usize {
        match self.lock().known.entry_ref(query.function()).or_insert(Known::Searched(0)) {
            Known::Searched(paths) => std::mem::replace(paths, paths.saturating_add(1)),
            Known::Kept(_) => DIRECT,
            Known::Everywhere => 0,
        }
    }

    /// Keeps the slice of a path's function, if that pays.
    pub(super) fn keep(
        &self,
        query: &PathQuery,
        slice: FunctionSlice<'a>,
        scheme: Scheme,
        dedup: Dedup,
    ) -> Kept<'a> {
        let (items, all_items) = (slice.items(), slice.fold().items());
        let is_deduplicated = dedup == Dedup::Yes;
        let kept = Kept { slice: Arc::new(slice), scheme, is_deduplicated };
        let mut functions = self.lock();
        let before = match functions.known.get(query.function()) {
            Some(Known::Kept(before)) => before.slice.items(),
            _ => 0,
        };
        let sum = functions.items.saturating_sub(before).saturating_add(items);
        // Two thirds of the fold take no less time than all of it does directly.
        let is_worth_it = !is_deduplicated || items.saturating_mul(3) <= all_items.saturating_mul(2);
        if sum <= MAX_ITEMS && is_worth_it {
            functions.items = sum;
            functions.known.insert(query.function().to_vec(), Known::Kept(kept.clone()));
        } else if is_deduplicated {
            functions.known.insert(query.function().to_vec(), Known::Everywhere);
        }
        kept
    }
}
