//! Patterns of a stream, slowly: the n-gram procedure of Alawneh and Hamou-Lhadj as they
//! print it (algorithms 1 and 2), and repeats by looking at every substring.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A sequence and where it begins.
pub type Repeats = BTreeMap<Vec<u32>, Vec<usize>>;

/// A line of the execution of [`ngrams`], as in figure 5.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The n-gram.
    pub pattern: Vec<u32>,
    /// Whether it was not in the list before.
    pub new: bool,
    /// Whether it is directly followed by itself.
    pub tandem: bool,
    /// Where it is, with this line.
    pub positions: Vec<usize>,
}

/// Algorithms 1 and 2: all that is in the pattern list in the end with a frequency of two or
/// more.
///
/// Where they are ambiguous or contradict figure 5 or the text, this was chosen:
/// * `tandemRepeats` counts the occurrence at hand too: the pointers then move to the last
///   one, as the text has it. All of them are added to the pattern, as in row 6.
/// * `p` moves with the pointers (row 7 has position 11, not 5).
/// * Line 22 checks `nextPattern`, not `currentPattern`: row 6 finds the tandem of the new
///   tri-gram.
/// * After a match the current position leaves the prefix like all others. Line 4 of
///   algorithm 2 would leave it there until the next match, and count it twice in the end.
/// * So that a pattern whose prefix is used up can still be matched, one that is in the list
///   is a match (lines 6 to 10 of algorithm 2 rely on what line 4 left); and what is removed
///   in line 28 is only the current position, and a pattern only if it was made for it.
/// * Occurrences do not overlap, as the definition of a repeat demands: one that is directly
///   followed by itself stays where it is when others grow, and a bi-gram that overlaps itself
///   is passed over.
/// * After a match has ended, the next bi-gram begins at the event that did not fit (row 8).
pub fn ngrams(stream: &[u32]) -> Repeats {
    let mut list = PatternList::default();
    list.detect(stream);
    let is_repeat = |(_, positions): &(Vec<u32>, BTreeSet<usize>)| positions.len() >= 2;
    list.patterns
        .into_iter()
        .filter(is_repeat)
        .map(|(pattern, positions)| (pattern, positions.into_iter().collect()))
        .collect()
}

/// The lines of the execution.
pub fn ngram_rows(stream: &[u32]) -> Vec<Row> {
    let mut list = PatternList::default();
    list.detect(stream);
    list.rows
}

#[derive(Default)]
struct PatternList {
    patterns: HashMap<Vec<u32>, BTreeSet<usize>>,
    rows: Vec<Row>,
}

impl PatternList {
    fn detect(&mut self, stream: &[u32]) {
        let mut at = 0;
        while at + 2 <= stream.len() {
            let bigram = stream[at..at + 2].to_vec();
            let known = self.patterns.get(&bigram);
            if known.is_some_and(|positions| at > 0 && positions.contains(&(at - 1))) {
                at += 1;
                continue;
            }
            let new = known.is_none();
            let tandem = tandem_repeats(stream, at, 2);
            let positions = self.patterns.entry(bigram.clone()).or_default();
            positions.extend((0..tandem).map(|repeat| at + 2 * repeat));
            self.row(&bigram, new, tandem);
            let position = at + 2 * (tandem - 1);
            at = if new { position + 1 } else { self.grow(stream, position) };
        }
    }

    /// The n-gram at a position grows as long as it has a match; returns where to continue.
    fn grow(&mut self, stream: &[u32], mut position: usize) -> usize {
        let mut length = 2;
        while position + length < stream.len() {
            let current = stream[position..position + length].to_vec();
            let next = stream[position..position + length + 1].to_vec();
            let new = !self.patterns.contains_key(&next);
            let moved: Vec<usize> = self.patterns[&current]
                .iter()
                .copied()
                .filter(|&other| other != position)
                .filter(|&other| stream.get(other..other + length + 1) == Some(&next[..]))
                .filter(|&other| tandem_repeats(stream, other, length) == 1)
                .collect();
            let tandem = tandem_repeats(stream, position, length + 1);
            let matches = !new || !moved.is_empty() || tandem > 1;
            let mut positions: BTreeSet<usize> = self.patterns.get(&next).cloned().unwrap_or_default();
            positions.extend(&moved);
            positions.extend((0..tandem).map(|repeat| position + (length + 1) * repeat));
            let row = Row {
                pattern: next.clone(),
                new,
                tandem: tandem > 1,
                positions: positions.iter().copied().collect(),
            };
            self.rows.push(row);
            if !matches {
                break;
            }
            if let Some(prefix) = self.patterns.get_mut(&current) {
                moved.iter().chain([&position]).for_each(|other| {
                    prefix.remove(other);
                });
            }
            self.patterns.insert(next, positions);
            position += (length + 1) * (tandem - 1);
            length += 1;
        }
        position + length
    }

    fn row(&mut self, pattern: &[u32], new: bool, tandem: usize) {
        let positions = self.patterns[pattern].iter().copied().collect();
        self.rows.push(Row { pattern: pattern.to_vec(), new, tandem: tandem > 1, positions });
    }
}

/// How many times the `length` events at a position repeat, one directly after the other.
fn tandem_repeats(stream: &[u32], position: usize, length: usize) -> usize {
    let pattern = &stream[position..position + length];
    stream[position..].chunks(length).take_while(|chunk| *chunk == pattern).count()
}

/// All maximal repeats of two or more events, with all their occurrences, which may overlap:
/// what occurs at least twice, and not always with the same event before or behind.
pub fn maximal_repeats(stream: &[u32]) -> Repeats {
    let mut all: Repeats = BTreeMap::new();
    for start in 0..stream.len() {
        for end in start + 2..=stream.len() {
            all.entry(stream[start..end].to_vec()).or_default().push(start);
        }
    }
    all.retain(|repeat, starts| {
        let before: BTreeSet<Option<&u32>> =
            starts.iter().map(|&start| start.checked_sub(1).map(|before| &stream[before])).collect();
        let behind: BTreeSet<Option<&u32>> =
            starts.iter().map(|&start| stream.get(start + repeat.len())).collect();
        starts.len() >= 2 && before.len() >= 2 && behind.len() >= 2
    });
    all
}

/// The repeats with two occurrences that do not overlap.
pub fn separate(mut repeats: Repeats) -> Repeats {
    repeats.retain(|repeat, starts| starts[starts.len() - 1] - starts[0] >= repeat.len());
    repeats
}

/// Whether a repeat is part of another one that is longer.
pub fn is_part_of_another(repeat: &[u32], others: &Repeats) -> bool {
    others.keys().any(|other| other.len() > repeat.len() && contains(other, repeat))
}

/// Whether a sequence is a part of another one.
pub fn contains(whole: &[u32], part: &[u32]) -> bool {
    whole.windows(part.len()).any(|window| window == part)
}

/// An occurrence of a communication pattern in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// The position of its first event.
    pub start: usize,
    /// The position behind its last event.
    pub end: usize,
    /// How many events it has in all processes.
    pub events: u64,
    /// The number of its pattern.
    pub number: usize,
}

/// The abstracted stream: the number of a pattern where one of its occurrences begins, the
/// largest of those that begin there, and the events that are in none.
pub fn abstracted(stream: &[u32], occurrences: &[Occurrence]) -> Vec<Result<u32, usize>> {
    let mut written = Vec::new();
    let mut at = 0;
    while at < stream.len() {
        let begin_here = occurrences.iter().filter(|one| one.start == at);
        match begin_here.max_by_key(|one| (one.events, std::cmp::Reverse(one.number))) {
            Some(largest) => {
                written.push(Err(largest.number));
                at = largest.end;
            }
            None => {
                written.push(Ok(stream[at]));
                at += 1;
            }
        }
    }
    written
}
