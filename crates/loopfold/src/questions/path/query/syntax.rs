//! Parses paths: `F1: B1 B2 B3`.
//!
//! The name of the function ends at the first colon that a blank follows, so names may have
//! colons and blanks inside; in quotes they may have anything. A name that no function has is a
//! pattern if it has `*`, `?` or `[…]` outside of quotes, or is written as a regular expression:
//! it stands for all functions that match it and have the blocks. Behind it come blocks as
//! [`EventPattern`] says, `*` for any one block, and `..` for any blocks between two others, or
//! none. A name that a block has is that block.
//!
//! Cost: the blocks of a function are sorted by name when it is first requested, then a path
//! costs one look-up for each of its blocks.

use super::PathQuery;
use super::functions::{Function, Functions};
use crate::questions::names::{join_fields, near_are, nearest, shortened};
use crate::questions::query::words_with_quotes;
use crate::trace::{Alphabet, EventPattern, Meaning, Name, integer, printed};
use crate::{Error, Result, Symbol};
use hashbrown::HashMap;

/// True if a text is written as a path of a function: a name, a colon, a blank, blocks.
/// Colons in quotes do not count, so a sequence of events is no path.
///
/// ```
/// use loopfold::questions::path::is_path;
///
/// assert!(is_path("main: 1 2") && is_path("a::b: x") && is_path("'a: b': x"));
/// assert!(!is_path("a::b c") && !is_path("'main: 1' 2") && !is_path("main:"));
/// ```
pub fn is_path(text: &str) -> bool {
    Written::of(text).is_some()
}

/// A path as it is written.
struct Written<'t> {
    function: String,
    quoted: bool,
    blocks: &'t str,
}

impl<'t> Written<'t> {
    /// `None` if it is no path.
    fn of(text: &'t str) -> Option<Self> {
        let colon = end_of_function(text)?;
        let (function, blocks) = (text[..colon].trim(), &text[colon + 1..]);
        let words = words_with_quotes(function).ok()?;
        match &words[..] {
            [only] if only.quoted => {
                Some(Self { function: only.text.clone(), quoted: true, blocks: blocks.trim() })
            }
            // A sequence of events that contains one ending in a colon.
            words if words.iter().any(|word| word.quoted) => None,
            _ => Some(Self { function: function.to_string(), quoted: false, blocks: blocks.trim() }),
        }
    }
}

/// The first colon outside of quotes that a blank and something else follow.
fn end_of_function(text: &str) -> Option<usize> {
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        while let Some(quote) = text[at..].chars().next().filter(|first| matches!(first, '"' | '\'')) {
            at += 2 + text[at + 1..].find(quote)?;
        }
        let end = text[at..].find(char::is_whitespace).map_or(text.len(), |length| at + length);
        if text[at..end].ends_with(':') && !text[end..].trim().is_empty() {
            return Some(end - 1).filter(|&colon| !text[..colon].trim().is_empty());
        }
        at = end;
    }
    None
}

/// One block of a path as it is written.
enum Block {
    Named(String),
    Any,
}

/// The blocks of a path, and the places before which there are gaps.
fn blocks_of(text: &str) -> Result<(Vec<Block>, Vec<usize>)> {
    let (mut blocks, mut gaps) = (Vec::new(), Vec::new());
    for word in join_fields(words_with_quotes(text)?, |_| false) {
        match &word.text[..] {
            "*" if !word.quoted => blocks.push(Block::Any),
            ".." if !word.quoted => {
                if gaps.last() != Some(&blocks.len()) {
                    gaps.push(blocks.len());
                }
            }
            _ => blocks.push(Block::Named(word.text)),
        }
    }
    if gaps.first() == Some(&0) || gaps.last() == Some(&blocks.len()) {
        return Err(Error::invalid(".. stands between two blocks; the first and the last must be named"));
    }
    Ok((blocks, gaps))
}

/// Reads paths as users write them, for one alphabet.
///
/// ```
/// use loopfold::questions::path::PathReader;
/// use loopfold::trace::{Alphabet, Event, Field, Role, Value};
///
/// let mut alphabet = Alphabet::default();
/// alphabet.intern(&Event { role: Role::Enter, ..Event::named("a::f") }, None)?;
/// let f = [Field { key: "function", value: Value::Text(b"a::f") }];
/// for block in ["B1", "B2"] {
///     alphabet.intern(&Event { role: Role::Block, fields: &f, ..Event::named(block) }, None)?;
/// }
/// let mut reader = PathReader::new(&alphabet)?;
/// let paths = reader.read("a::f: B1 * .. B2")?;
/// assert_eq!((paths[0].len(), paths[0].gaps()), (3, &[2][..]));
/// assert_eq!(reader.read("*f: B1")?[0].function(), b"a::f");
/// let error = reader.read("a:f: B1").unwrap_err();
/// assert_eq!(error.to_string(), "no function is called a:f; near is: a::f");
/// # Ok::<(), loopfold::Error>(())
/// ```
pub struct PathReader<'a> {
    alphabet: &'a Alphabet,
    functions: Functions,
    /// The functions by what is printed for them, once that was requested.
    by_label: Option<HashMap<String, usize>>,
    /// The blocks of the functions that were requested.
    blocks: HashMap<usize, BlockNames>,
}

opaque_debug!(PathReader<'a>);

impl<'a> PathReader<'a> {
    /// Looks at all functions of an alphabet.
    pub fn new(alphabet: &'a Alphabet) -> Result<Self> {
        let functions = Functions::of(alphabet)?;
        Ok(Self { alphabet, functions, by_label: None, blocks: HashMap::new() })
    }

    /// The functions of the alphabet.
    pub fn functions(&self) -> &Functions {
        &self.functions
    }

    /// Reads a path; one for each function that its pattern stands for, in the order in
    /// which they were first seen.
    pub fn read(&mut self, text: &str) -> Result<Vec<PathQuery>> {
        let Some(written) = Written::of(text) else {
            return Err(Error::invalid(
                "a path is written as a function, a colon, a blank, and blocks: 'F: B1 B2'",
            ));
        };
        let (blocks, gaps) = blocks_of(written.blocks)?;
        if let Some(function) = self.function_called(&written.function) {
            return Ok(vec![
                self.path(function, &blocks, &gaps)?.map_err(|word| self.unknown_block(function, &word))?,
            ]);
        }
        let pattern = EventPattern::parse(&written.function)?;
        if written.quoted || !pattern.has_others() {
            return Err(self.unknown_function(&written.function));
        }
        self.paths_of_all(&pattern, &blocks, &gaps)
    }

    /// True if the function of a path is a pattern: no function is called so.
    pub fn is_pattern(&mut self, text: &str) -> bool {
        Written::of(text).is_some_and(|written| self.function_called(&written.function).is_none())
    }

    /// The function of this name or label, or of this number.
    fn function_called(&mut self, name: &str) -> Option<usize> {
        let decimal = integer(name).map(|number| number.to_string());
        let by_name = |name: &str| self.functions.index_of(name.as_bytes());
        if let Some(found) = by_name(name).or_else(|| by_name(&decimal?)) {
            return Some(found);
        }
        let all = self.functions.all().iter().enumerate();
        let by_label = self.by_label.get_or_insert_with(|| {
            // Of several with the same label the first one.
            let mut labels = HashMap::new();
            all.for_each(|(index, function)| {
                labels.entry(label_of(function)).or_insert(index);
            });
            labels
        });
        by_label.get(name).copied()
    }

    /// The path of each function that fits a pattern and has the blocks.
    fn paths_of_all(
        &mut self,
        pattern: &EventPattern,
        blocks: &[Block],
        gaps: &[usize],
    ) -> Result<Vec<PathQuery>> {
        let all = self.functions.all().iter().enumerate();
        let named = |function: &Function| pattern.fits(&bare(Name::Text(function.name())));
        let fitting: Vec<usize> = all
            .filter(|(_, function)| function.is_entered() && named(function))
            .map(|(index, _)| index)
            .collect();
        let mut paths = Vec::new();
        for &function in &fitting {
            paths.extend(self.path(function, blocks, gaps)?);
        }
        let pattern = shortened(pattern.word());
        match fitting.len() {
            0 => Err(Error::not_found(format_args!("no function fits {pattern}"))),
            _ if !paths.is_empty() => Ok(paths),
            1 => Err(Error::not_found(format_args!(
                "the only function that fits {pattern} does not have all these blocks"
            ))),
            many => Err(Error::not_found(format_args!(
                "none of the {many} functions that fit {pattern} has all these blocks"
            ))),
        }
    }

    /// The path of a function, or the word that is no block of it.
    fn path(&mut self, index: usize, blocks: &[Block], gaps: &[usize]) -> Result<Result<PathQuery, String>> {
        let Some(function) = self.functions.all().get(index) else { return Ok(Err(String::new())) };
        let names = self
            .blocks
            .entry(index)
            .or_insert_with(|| BlockNames::new(self.alphabet, self.functions.blocks_of(function)));
        let mut symbols = Vec::with_capacity(blocks.len());
        for block in blocks {
            let called = match block {
                Block::Any => names.all.clone(),
                Block::Named(word) => names.called(word, self.alphabet)?,
            };
            match block {
                _ if !called.is_empty() => symbols.push(called),
                Block::Named(word) => return Ok(Err(word.clone())),
                Block::Any => return Ok(Err("*".to_string())),
            }
        }
        Ok(Ok(PathQuery::new(&self.functions, function, symbols)?.with_gaps(gaps)?))
    }

    #[cold]
    fn unknown_function(&self, name: &str) -> Error {
        let names = self.functions.all().iter().filter(|function| function.is_entered()).map(label_of);
        Error::not_found(format!("no function is called {}{}", shortened(name), near(names, name)))
    }

    #[cold]
    fn unknown_block(&self, function: usize, word: &str) -> Error {
        let Some(function) = self.functions.all().get(function) else {
            return Error::invalid("there is no such function");
        };
        let blocks = self.functions.blocks_of(function);
        let name = shortened(&label_of(function));
        if blocks.is_empty() {
            return Error::not_found(format_args!("{name} has no blocks in this trace"));
        }
        let labels = || blocks.iter().map(|&block| bare_label(self.alphabet.meaning(block).name));
        let mut hint = near(labels(), word);
        if hint.is_empty() {
            const SHOWN: usize = 8;
            let few: Vec<String> = labels().take(SHOWN).map(|label| shortened(&label)).collect();
            let more = match blocks.len().saturating_sub(SHOWN) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            hint = format!("; it has {}{more}", few.join(", "));
        }
        Error::not_found(format!("{name} has no block called {}{hint}", shortened(word)))
    }
}

/// `; near are: …`, if any are.
fn near(names: impl Iterator<Item = String>, word: &str) -> String {
    near_are(&nearest(names, word))
}

/// The printed name of a function.
fn label_of(function: &Function) -> String {
    bare_label(Name::Text(function.name()))
}

fn bare_label(name: Name<'_>) -> String {
    bare(name).to_string()
}

fn bare(name: Name<'_>) -> Meaning<'_> {
    Meaning { name, ..Meaning::default() }
}

/// The blocks of a function by what they are called.
struct BlockNames {
    all: Vec<Symbol>,
    by_text: HashMap<Vec<u8>, Vec<Symbol>>,
    by_number: HashMap<u64, Vec<Symbol>>,
    /// By what is printed for them, once no name was it.
    by_label: Option<HashMap<String, Vec<Symbol>>>,
}

impl BlockNames {
    fn new(alphabet: &Alphabet, all: Vec<Symbol>) -> Self {
        let mut names =
            Self { all: Vec::new(), by_text: HashMap::new(), by_number: HashMap::new(), by_label: None };
        for &block in &all {
            match alphabet.meaning(block).name {
                Name::Text(text) => names.by_text.entry(text.to_vec()).or_default().push(block),
                Name::Integer(number) => names.by_number.entry(number).or_default().push(block),
            }
        }
        names.all = all;
        names
    }

    fn called(&mut self, word: &str, alphabet: &Alphabet) -> Result<Vec<Symbol>> {
        let exactly = self.called_exactly(word, alphabet);
        if !exactly.is_empty() {
            return Ok(exactly);
        }
        let pattern = EventPattern::parse(word)?;
        // Inside of its function a block is known by its name alone.
        let fits = |block: &Symbol| {
            let meaning = alphabet.meaning(*block);
            pattern.fits_others(&bare(meaning.name)) || pattern.fits_others(&meaning)
        };
        Ok(if pattern.has_others() { self.all.iter().copied().filter(fits).collect() } else { Vec::new() })
    }

    fn called_exactly(&mut self, word: &str, alphabet: &Alphabet) -> Vec<Symbol> {
        let by_number = integer(word).and_then(|number| self.by_number.get(&number));
        let by_text = self.by_text.get(word.as_bytes());
        let called: Vec<Symbol> = by_text.into_iter().chain(by_number).flatten().copied().collect();
        if !called.is_empty() {
            return called;
        }
        let all = &self.all;
        let by_label = self.by_label.get_or_insert_with(|| {
            let mut labels: HashMap<String, Vec<Symbol>> = HashMap::new();
            for &block in all {
                let meaning = alphabet.meaning(block);
                for label in printed(&meaning).into_iter().chain([bare_label(meaning.name)]) {
                    labels.entry(label).or_default().push(block);
                }
            }
            labels
        });
        by_label.get(word).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::trace::{Event, Field, Role, Value};

    /// Functions with blocks 1, 2, `x y`, `*`, `..` and `it's`, the last one without any.
    fn alphabet() -> Alphabet {
        let mut alphabet = Alphabet::default();
        for function in ["main", "a::b", "a: b", "f(int, char*)", "f[1]", "g\u{1b}", "17"] {
            let enter = Event { role: Role::Enter, ..Event::named(function) };
            alphabet.intern(&enter, None).unwrap();
            let owner = [Field { key: "function", value: Value::Text(function.as_bytes()) }];
            let block = |name: Event<'static>| Event { role: Role::Block, fields: &[], ..name };
            for name in [Event::integer(1), Event::integer(2), Event::named("x y"), Event::named("*")] {
                alphabet.intern(&Event { fields: &owner, ..block(name) }, None).unwrap();
            }
            for name in ["..", "it's", "\u{7}"] {
                alphabet.intern(&Event { fields: &owner, ..block(Event::named(name)) }, None).unwrap();
            }
        }
        alphabet.intern(&Event { role: Role::Enter, ..Event::named("empty") }, None).unwrap();
        alphabet
    }

    /// The paths that a text stands for, or what is wrong with it.
    fn read(text: &str) -> Result<Vec<PathQuery>, String> {
        let alphabet = alphabet();
        let mut reader = PathReader::new(&alphabet).unwrap();
        reader.read(text).map_err(|error| error.to_string())
    }

    #[test]
    fn functions_end_at_a_colon_and_a_blank() {
        let function = |text: &str| -> Vec<String> {
            let paths = read(text).unwrap();
            paths.iter().map(|path| String::from_utf8(path.function().to_vec()).unwrap()).collect()
        };
        for (text, expected) in [
            ("main: 1", "main"),
            ("  main :\t1", "main"),
            ("a::b: 1", "a::b"),
            ("'a::b': 1", "a::b"),
            ("\"a: b\": 1", "a: b"),
            ("f(int, char*): 1", "f(int, char*)"),
            ("f[1]: 1", "f[1]"),
            ("'g\u{1b}': 1", "g\u{1b}"),
            ("g\\u{1b}: 1", "g\u{1b}"),
            ("17: 1", "17"),
            ("0x11: 1", "17"),
        ] {
            assert_eq!(function(text), [expected], "{text}");
        }
        assert_eq!(function("a*: 1"), ["a::b", "a: b"]);
        assert_eq!(function("?[:a]*b: 1 *"), ["a::b", "a: b"]);
        assert_eq!(function("*: 1").len(), 7);
        assert_eq!(function("/^a.*b$/: 1"), ["a::b", "a: b"]);
        for other in
            ["main", "main:", "main: ", ": 1", "a::b 1", "'main: 1'", "x 'a: b' y", "'x' y: z", "'a: 1"]
        {
            assert!(!is_path(other), "{other}");
            assert!(read(other).is_err(), "{other}");
        }
    }

    #[test]
    fn blocks_are_names_numbers_anything_and_gaps() {
        // How many symbols each block may be, and the gaps.
        let blocks = |text: &str| {
            let paths = read(&format!("main: {text}"))?;
            let sizes: Vec<usize> = paths[0].blocks().iter().map(Vec::len).collect();
            Ok::<_, String>((sizes, paths[0].gaps().to_vec()))
        };
        assert_eq!(blocks("1 2 0x2").unwrap(), (vec![1, 1, 1], vec![]));
        assert_eq!(blocks("'x y' it's \"it's\"").unwrap(), (vec![1, 1, 1], vec![]));
        assert_eq!(blocks("* '*' '..'").unwrap(), (vec![7, 1, 1], vec![]));
        assert_eq!(blocks("[12] x* /'|y/ '[1-9]'").unwrap(), (vec![2, 1, 2, 2], vec![]));
        assert_eq!(blocks("/(/").unwrap_err(), "/(/ is not a regular expression: unclosed group");
        assert_eq!(blocks("1 .. 2 .. .. * 1").unwrap(), (vec![1, 1, 7, 1], vec![1, 2]));
        assert_eq!(
            blocks(r"'1 function=main' \u{7} \x07").unwrap_err(),
            r"main has no block called \x07; it has 1, 2, x y, *, .., it's, \u{7}"
        );
        assert_eq!(blocks(r"'1 function=main' \u{7}").unwrap(), (vec![1, 1], vec![]));
        for wrong in [".. 1", "1 ..", "..", "'1"] {
            assert!(blocks(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn errors_say_what_is_near() {
        let error = |text: &str| read(text).unwrap_err();
        assert_eq!(error("mian: 1"), "no function is called mian; near is: main");
        assert_eq!(error("'*': 1"), "no function is called *");
        assert_eq!(error("z*: 1"), "no function fits z*");
        assert_eq!(error("a*: 1 nix"), "none of the 2 functions that fit a* has all these blocks");
        assert_eq!(error("m*: nix"), "the only function that fits m* does not have all these blocks");
        assert_eq!(error("main: its"), "main has no block called its; near is: it's");
        assert_eq!(error("empty: *"), "empty has no blocks in this trace");
    }
}
