//! Which form of scheme 2 a path needs: the narrowest summaries that can hold it.
//!
//! | path | summary |
//! | --- | --- |
//! | up to 13 blocks, no gaps, no recursion, no slice yet | [`DirectMatcher`], 16 bytes |
//! | up to 32 blocks | bit sets of 32 |
//! | up to 64 blocks | bit sets of 64 |
//! | longer | bit sets of any width |
//! | with gaps | a state of its automaton |
//!
//! On a slice, a function that calls itself has one for each level of calls that differs, any
//! other a single one.

use crate::Result;
use crate::fold::Fold;
use crate::questions::find::bits::Wide;
use crate::questions::path::locate::{DirectMatcher, FlatMatcher, NestedMatcher, PathMatcher};
use crate::questions::path::slice::FunctionSlice;
use crate::questions::path::summary::frame::FrameState;
use crate::questions::path::summary::gaps::GapState;
use crate::questions::path::{PathFound, PathQuery};
use std::sync::Arc;

impl<'a> PathFound<'a> {
    /// Searches for a path directly over all rules; `None` if the function calls itself, or
    /// the path is long or has gaps.
    pub(in crate::questions::path) fn directly(fold: &'a Fold, query: &PathQuery) -> Option<Self> {
        let matcher = DirectMatcher::new(fold, query)?;
        Some(Self::new(fold, Box::new(matcher), query))
    }

    /// Searches for a path in the slice of its function.
    pub(in crate::questions::path) fn on_slice(
        slice: &Arc<FunctionSlice<'a>>,
        query: &PathQuery,
    ) -> Result<Self> {
        let matcher = match query.len() {
            _ if query.has_gaps() => matcher_of::<GapState>(slice, query)?,
            ..=32 => matcher_of::<u32>(slice, query)?,
            33..=64 => matcher_of::<u64>(slice, query)?,
            _ => matcher_of::<Wide>(slice, query)?,
        };
        Ok(Self::new(slice.fold(), matcher, query))
    }
}

fn matcher_of<'a, S: FrameState + 'a>(
    slice: &Arc<FunctionSlice<'a>>,
    query: &PathQuery,
) -> Result<Box<dyn PathMatcher + 'a>> {
    Ok(match slice.is_recursive() {
        false => Box::new(FlatMatcher::<S>::new(slice, query)?),
        true => Box::new(NestedMatcher::<S>::new(slice, query)?),
    })
}
