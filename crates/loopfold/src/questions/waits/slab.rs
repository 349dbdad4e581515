//! Values by numbers that are used again once their values are removed.

/// Values by numbers that are used again.
pub(super) struct Slab<T> {
    values: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { values: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    pub(super) fn insert(&mut self, value: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self.values[number as usize] = Some(value);
            return number;
        }
        self.values.push(Some(value));
        // The limit of what is in flight is lower.
        (self.values.len() - 1) as u32
    }

    pub(super) fn remove(&mut self, number: u32) -> Option<T> {
        self.free.push(number);
        self.values[number as usize].take()
    }

    pub(super) fn len(&self) -> usize {
        self.values.len() - self.free.len()
    }

    pub(super) fn take_all(&mut self) -> Vec<T> {
        self.free.clear();
        std::mem::take(&mut self.values).into_iter().flatten().collect()
    }
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;

    fn index(&self, number: u32) -> &T {
        let value = &self.values[number as usize];
        // Whoever has a number has not removed it.
        value.as_ref().unwrap_or_else(|| unreachable!("a number that was removed"))
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, number: u32) -> &mut T {
        let value = &mut self.values[number as usize];
        value.as_mut().unwrap_or_else(|| unreachable!("a number that was removed"))
    }
}
