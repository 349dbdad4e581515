//! Reads a grammar, one statement at a time; each refers only to those above it.

use super::tokens::{Token, Tokens};
use super::{END, ROLES};
use crate::fold::{FoldBuilder, FoldedStream, Item, Target};
use crate::trace::{Event, Field, Name, Role, Value};
use crate::{Error, Fold, Result, RuleId};
use hashbrown::HashMap;
use std::io::BufRead;

/// The folder of a stream that does not name one.
const NO_FOLDER: &str = "by hand";

/// Reads a grammar. The fold is in [canonical form](Fold::canonical) and has no times.
/// Errors name the line.
///
/// ```
/// use loopfold::export::grammar;
///
/// let text = "loopfold grammar 1\n\
///             A -> 'b' 'c'\n\
///             S -> 'a' A^3 'd'\n\
///             stream 'main' -> S\n\
///             end\n";
/// let fold = grammar::read(text.as_bytes())?;
/// assert_eq!(fold.nest_text(fold.streams()[0].root()), "a (b c)^3 d");
///
/// let error = grammar::read(text.replace("A^3", "B^3").as_bytes()).unwrap_err();
/// assert!(error.to_string().starts_with("line 3: B is not known"));
/// # Ok::<(), loopfold::Error>(())
/// ```
pub fn read(input: impl BufRead) -> Result<Fold> {
    match read_leniently(input)? {
        (fold, None) => Ok(fold),
        (_, Some(error)) => Err(error),
    }
}

/// Reads a grammar up to its first error. Returns the streams before the error, and the error.
/// Fails if the text is no grammar at all or cannot be read.
pub fn read_leniently(input: impl BufRead) -> Result<(Fold, Option<Error>)> {
    let mut reader = Reader {
        tokens: Tokens::new(input)?,
        builder: FoldBuilder::default(),
        names: HashMap::new(),
        body: Vec::new(),
    };
    let wrong = match reader.statements() {
        Ok(()) => None,
        Err(error) if error.io().is_some() => return Err(error),
        Err(error) => Some(error),
    };
    Ok((reader.builder.finish().canonical(), wrong))
}

struct Reader<R> {
    tokens: Tokens<R>,
    builder: FoldBuilder,
    /// What the names so far stand for.
    names: HashMap<Vec<u8>, Target>,
    /// The items of the current rule.
    body: Vec<Item>,
}

impl<R: BufRead> Reader<R> {
    fn statements(&mut self) -> Result<()> {
        while self.tokens.begin()? {
            let expected =
                "a statement begins with the name of a rule or an event, with `stream` or with `end`";
            let word = self.take(Token::Word, expected)?;
            match (self.tokens.token(), word.as_slice()) {
                (Token::Arrow, _) => self.rule(word)?,
                (Token::Equals, _) => self.event(word)?,
                (_, b"stream") => self.stream()?,
                (_, word) if word == END.as_bytes() => return self.end(),
                _ => return Err(self.wrong(expected)),
            }
            self.expect_end()?;
        }
        Err(self.cut())
    }

    fn cut(&self) -> Error {
        self.wrong("the text ends here, before its `end`: it was cut")
    }

    fn end(&mut self) -> Result<()> {
        self.expect_end()?;
        match self.tokens.begin()? {
            true => Err(self.wrong("there is something after the `end`")),
            false => Ok(()),
        }
    }

    /// `-> item…`
    fn rule(&mut self, name: Vec<u8>) -> Result<()> {
        self.check_new(&name)?;
        self.tokens.advance()?;
        self.body.clear();
        while self.tokens.token() != Token::End {
            let item = self.item()?;
            self.body.push(item);
        }
        let rule = self.builder.rule(&self.body).map_err(|error| error.within(self.tokens.place_name()))?;
        self.names.insert(name, Target::Rule(rule));
        Ok(())
    }

    /// A target, and `^times` if it repeats.
    fn item(&mut self) -> Result<Item> {
        let target = self.target()?;
        self.tokens.advance()?;
        if self.tokens.token() != Token::Power {
            return Ok(Item::new(target, 1));
        }
        self.tokens.advance()?;
        let times = self.number("`^` is followed by how often it repeats")?;
        if times == 0 {
            return Err(self.wrong("an item repeats at least once"));
        }
        self.tokens.advance()?;
        Ok(Item::new(target, times))
    }

    fn target(&mut self) -> Result<Target> {
        match self.tokens.token() {
            Token::Word => self.known(),
            Token::Text => {
                let symbol = self.builder.alphabet_mut().intern(&Event::named(self.tokens.text()), None)?;
                Ok(Target::Symbol(symbol))
            }
            Token::Number => {
                let number = self.number("the number of an event")?;
                Ok(Target::Symbol(self.builder.alphabet_mut().intern(&Event::integer(number), None)?))
            }
            _ => {
                Err(self
                    .wrong("a rule is made of events and rules, each with `^` and a number if it repeats"))
            }
        }
    }

    /// What the current word stands for, as part of a rule.
    fn known(&self) -> Result<Target> {
        let name = self.tokens.text();
        match self.names.get(name) {
            None => Err(self.unknown(name)),
            Some(&Target::Rule(rule)) if self.builder.length(rule) == 0 => Err(self.wrong(format_args!(
                "{} is empty, and an empty rule cannot be part of another",
                shown(name)
            ))),
            Some(&target) => Ok(target),
        }
    }

    fn unknown(&self, name: &[u8]) -> Error {
        self.wrong(format_args!("{} is not known; what is used is defined above its use", shown(name)))
    }

    /// `= [role] name [key=value]…`
    fn event(&mut self, name: Vec<u8>) -> Result<()> {
        self.check_new(&name)?;
        self.tokens.advance()?;
        let role = self.role()?;
        let what = match self.tokens.token() {
            Token::Number => OwnName::Integer(self.number("the number of an event")?),
            Token::Text => OwnName::Text(self.tokens.text().to_vec()),
            _ => return Err(self.wrong("an event has a name in quotes or a number, perhaps after its role")),
        };
        self.tokens.advance()?;
        let mut fields = Vec::new();
        while self.tokens.token() != Token::End {
            fields.push(self.field()?);
        }
        let fields: Vec<Field<'_>> = fields.iter().map(OwnField::borrow).collect();
        let name_of_event = match &what {
            OwnName::Integer(number) => Name::Integer(*number),
            OwnName::Text(text) => Name::Text(text),
        };
        let event = Event { name: name_of_event, role, fields: &fields };
        let symbol = self.builder.alphabet_mut().intern(&event, None)?;
        self.names.insert(name, Target::Symbol(symbol));
        Ok(())
    }

    fn role(&mut self) -> Result<Role> {
        if self.tokens.token() != Token::Word {
            return Ok(Role::Plain);
        }
        let role = ROLES.iter().find(|(_, word)| word.as_bytes() == self.tokens.text());
        let Some(&(role, _)) = role else {
            let known = ROLES.map(|(_, word)| word).join(", ");
            let word = shown(self.tokens.text());
            return Err(self.wrong(format_args!("{word} is no role; there are {known}")));
        };
        self.tokens.advance()?;
        Ok(role)
    }

    fn field(&mut self) -> Result<OwnField> {
        let expected = "a field is written as key=value";
        if !matches!(self.tokens.token(), Token::Word | Token::Text) {
            return Err(self.wrong(expected));
        }
        let key = self.string("the key of a field")?;
        self.tokens.advance()?;
        self.take(Token::Equals, expected)?;
        let value = match self.tokens.token() {
            Token::Text => OwnValue::Text(self.tokens.text().to_vec()),
            Token::Number => OwnValue::Integer(self.parsed("the value of a field")?),
            _ => return Err(self.wrong("the value of a field is a number or in quotes")),
        };
        self.tokens.advance()?;
        Ok(OwnField { key, value })
    }

    /// `'name' -> rule [folder 'name'] [note 'key' 'value']…`, after `stream`.
    fn stream(&mut self) -> Result<()> {
        let name = self.quoted("a stream has a name in quotes")?;
        self.take(Token::Arrow, "the name of a stream is followed by `->` and a rule")?;
        let root = self.root()?;
        let mut folder = None;
        let mut notes = Vec::new();
        while self.tokens.token() != Token::End {
            let expected = "after the rule of a stream come its `folder` and its `note`s";
            match self.take(Token::Word, expected)?.as_slice() {
                b"folder" if folder.is_some() => return Err(self.wrong("a second folder")),
                b"folder" => folder = Some(self.quoted("a folder has a name in quotes")?),
                b"note" => {
                    let expected = "a note has a key and a value in quotes";
                    notes.push((self.quoted(expected)?, self.quoted(expected)?));
                }
                _ => return Err(self.wrong(expected)),
            }
        }
        if self.tokens.is_over() {
            // The text may end within a name, so this stream is not reliable.
            return Err(self.cut());
        }
        let folder = folder.unwrap_or_else(|| NO_FOLDER.to_string());
        self.builder.stream(FoldedStream::new(name, folder, root).with_notes(notes));
        Ok(())
    }

    fn root(&mut self) -> Result<RuleId> {
        let name = self.take(Token::Word, "a stream unfolds from a rule")?;
        match self.names.get(&name) {
            Some(&Target::Rule(rule)) => Ok(rule),
            Some(Target::Symbol(_)) => {
                Err(self
                    .wrong(format_args!("{} is an event, and a stream unfolds from a rule", shown(&name))))
            }
            None => Err(self.unknown(&name)),
        }
    }

    /// The current word, which must be of this kind; moves to the next.
    fn take(&mut self, token: Token, expected: &str) -> Result<Vec<u8>> {
        if self.tokens.token() != token {
            return Err(self.wrong(expected));
        }
        let text = self.tokens.text().to_vec();
        self.tokens.advance()?;
        Ok(text)
    }

    /// A name in quotes that must be UTF-8.
    fn quoted(&mut self, expected: &str) -> Result<String> {
        if self.tokens.token() != Token::Text {
            return Err(self.wrong(expected));
        }
        let text = self.string("this name")?;
        self.tokens.advance()?;
        Ok(text)
    }

    /// The current word as text.
    fn string(&self, what: &str) -> Result<String> {
        let text = std::str::from_utf8(self.tokens.text());
        Ok(text.map_err(|_| self.wrong(format_args!("{what} is not UTF-8")))?.to_string())
    }

    /// The current word as a number that is not negative.
    fn number(&self, expected: &str) -> Result<u64> {
        self.parsed(expected)
    }

    fn parsed<T: std::str::FromStr>(&self, expected: &str) -> Result<T> {
        if self.tokens.token() != Token::Number {
            return Err(self.wrong(expected));
        }
        let text = std::str::from_utf8(self.tokens.text()).ok().and_then(|text| text.parse().ok());
        text.ok_or_else(|| self.wrong(format_args!("{} is out of range", shown(self.tokens.text()))))
    }

    fn check_new(&self, name: &[u8]) -> Result<()> {
        match self.names.contains_key(name) {
            true => Err(self.wrong(format_args!("{} is defined above already", shown(name)))),
            false => Ok(()),
        }
    }

    fn expect_end(&self) -> Result<()> {
        match self.tokens.token() {
            Token::End => Ok(()),
            _ => Err(self.wrong("there is more in this statement than belongs in it")),
        }
    }

    fn wrong(&self, reason: impl std::fmt::Display) -> Error {
        self.tokens.wrong(reason)
    }
}

/// A word of an error; words are ASCII but may be of any length.
fn shown(word: &[u8]) -> String {
    const LONGEST: usize = 40;
    let end = if word.len() > LONGEST { "…" } else { "" };
    format!("{}{end}", word[..word.len().min(LONGEST)].escape_ascii())
}

enum OwnName {
    Integer(u64),
    Text(Vec<u8>),
}

struct OwnField {
    key: String,
    value: OwnValue,
}

enum OwnValue {
    Integer(i64),
    Text(Vec<u8>),
}

impl OwnField {
    fn borrow(&self) -> Field<'_> {
        let value = match &self.value {
            OwnValue::Integer(number) => Value::Integer(*number),
            OwnValue::Text(text) => Value::Text(text),
        };
        Field { key: &self.key, value }
    }
}
