//! Keys of objects that come from the input, such as names of streams: an archive can have the
//! same one twice, and an object cannot. Cost: O(keys).

use std::collections::HashMap;

/// Which of these keys to write so that each is written once, where it first is: the last of those
/// that are equal.
pub(crate) fn distinct<'a>(keys: impl IntoIterator<Item = &'a str>) -> Vec<usize> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut written = Vec::new();
    for (index, key) in keys.into_iter().enumerate() {
        let next = written.len();
        let place = *places.entry(key).or_insert(next);
        if place == next {
            written.push(index);
        } else {
            written[place] = index;
        }
    }
    written
}
