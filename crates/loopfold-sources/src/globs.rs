//! Matches names with patterns, as shells have them: `*` stands for anything, `?` for one byte.
//! O(pattern × name) at worst, since one star is remembered.

/// A set of patterns. A name fits if one of them does, or if there are none.
#[derive(Clone, Debug, Default)]
pub struct Globs {
    patterns: Vec<Vec<u8>>,
}

impl Globs {
    /// For these patterns.
    ///
    /// ```
    /// use loopfold_sources::Globs;
    /// let globs = Globs::new(&["MPI_*send".to_string(), "solve?".to_string()]);
    /// assert!(globs.fit(b"MPI_Isend") && globs.fit(b"solve1"));
    /// assert!(!globs.fit(b"MPI_Recv") && !globs.fit(b"solve"));
    /// ```
    pub fn new(patterns: &[String]) -> Self {
        Self { patterns: patterns.iter().map(|pattern| pattern.as_bytes().to_vec()).collect() }
    }

    /// Whether a name fits.
    pub fn fit(&self, name: &[u8]) -> bool {
        self.patterns.is_empty() || self.patterns.iter().any(|pattern| fits(pattern, name))
    }
}

fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut next) = (0, 0);
    // Where the last star is, and the first byte that it does not stand for so far.
    let mut star = None;
    while next < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, next));
                at += 1;
            }
            Some(&byte) if byte == b'?' || byte == name[next] => {
                at += 1;
                next += 1;
            }
            _ => {
                let Some((place, taken)) = star else { return false };
                star = Some((place, taken + 1));
                (at, next) = (place + 1, taken + 1);
            }
        }
    }
    pattern[at..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use loopfold_testing::Rng;

    /// The same, obviously.
    fn fits_slowly(pattern: &[u8], name: &[u8]) -> bool {
        match (pattern, name) {
            ([], name) => name.is_empty(),
            ([b'*', rest @ ..], name) => (0..=name.len()).any(|taken| fits_slowly(rest, &name[taken..])),
            ([b'?', rest @ ..], [_, name @ ..]) => fits_slowly(rest, name),
            ([byte, rest @ ..], [first, name @ ..]) => byte == first && fits_slowly(rest, name),
            (_, []) => false,
        }
    }

    #[test]
    fn stars_stand_for_anything() {
        let mut rng = Rng::new(1);
        let mut both = [0; 2];
        for _ in 0..20_000 {
            let mut text = |letters: &[u8]| -> Vec<u8> {
                (0..rng.below(8)).map(|_| letters[rng.below(letters.len())]).collect()
            };
            let (pattern, name) = (text(b"ab*?"), text(b"ab"));
            let expected = fits_slowly(&pattern, &name);
            assert_eq!(fits(&pattern, &name), expected, "{pattern:?} {name:?}");
            both[usize::from(expected)] += 1;
        }
        assert!(both[0] > 1000 && both[1] > 1000);
    }
}
