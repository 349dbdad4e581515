//! Lists of levels, run-length: neighbouring levels with the same value are one run, and
//! levels without a value are left out. A list costs memory only where levels differ.

/// Neighbouring levels that have the same value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Run<T> {
    pub(super) first: u64,
    pub(super) levels: u64,
    pub(super) value: T,
}

impl<T> Run<T> {
    pub(super) fn one(first: u64, value: T) -> Self {
        Self { first, levels: 1, value }
    }

    /// The level behind the last.
    pub(super) fn end(&self) -> u64 {
        self.first.saturating_add(self.levels)
    }
}

impl<T: Clone> Run<T> {
    pub(super) fn view(&self) -> RunView<'_, T> {
        RunView { first: self.first, levels: self.levels, value: &self.value }
    }
}

/// A run whose value is kept elsewhere.
#[derive(Debug)]
pub(super) struct RunView<'a, T> {
    pub(super) first: u64,
    pub(super) levels: u64,
    pub(super) value: &'a T,
}

impl<T> Clone for RunView<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for RunView<'_, T> {}

impl<T> RunView<'_, T> {
    /// The level behind the last.
    pub(super) fn end(&self) -> u64 {
        self.first.saturating_add(self.levels)
    }
}

/// One run of a single level, or a list of any others.
#[derive(Debug)]
pub(super) struct Runs<'a, T> {
    pub(super) one: Option<RunView<'a, T>>,
    many: &'a [Run<T>],
}

impl<T> Clone for Runs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Runs<'_, T> {}

impl<'a, T: Clone> Runs<'a, T> {
    pub(super) const NONE: Self = Self { one: None, many: &[] };

    pub(super) fn of(runs: &'a [Run<T>]) -> Self {
        match runs {
            [run] if run.levels == 1 => Self { one: Some(run.view()), many: &[] },
            many => Self { one: None, many },
        }
    }

    #[inline]
    pub(super) fn single(level: u64, value: &'a T) -> Self {
        Self { one: Some(RunView { first: level, levels: 1, value }), many: &[] }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.one.is_none() && self.many.is_empty()
    }

    #[inline]
    pub(super) fn iter(self) -> impl Iterator<Item = RunView<'a, T>> {
        self.one.into_iter().chain(self.many.iter().map(Run::view))
    }

    pub(super) fn last(&self) -> Option<RunView<'a, T>> {
        self.many.last().map(Run::view).or(self.one)
    }
}

/// Adds levels behind all others.
pub(super) fn push<T: PartialEq>(runs: &mut Vec<Run<T>>, run: Run<T>) {
    match runs.last_mut() {
        Some(last) if last.end() == run.first && last.value == run.value => last.levels += run.levels,
        _ => runs.push(run),
    }
}

/// Takes the last level off.
pub(super) fn pop<T: Clone>(runs: &mut Vec<Run<T>>) -> Option<T> {
    let last = runs.last_mut()?;
    if last.levels > 1 {
        last.levels -= 1;
        return Some(last.value.clone());
    }
    runs.pop().map(|run| run.value)
}
