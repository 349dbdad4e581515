//! The tokenizer of grammars; it reads one line at a time.
//!
//! A statement is a line and the indented lines after it. Comments begin with `#` and end with
//! the line; empty lines are ignored.

use super::{MAGIC, VERSION, begins_word, continues_word, quote};
use crate::{Error, Result};
use std::io::BufRead;

/// What a word is; [`Tokens::text`] is the word itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A name without quotes.
    Word,
    /// Digits, perhaps after a minus.
    Number,
    /// A name that was in quotes.
    Text,
    /// `->`
    Arrow,
    /// `=`
    Equals,
    /// `^`
    Power,
    /// The end of the statement.
    End,
}

/// Reads words. There is always a current one, at first an end.
pub(super) struct Tokens<R> {
    input: R,
    line: Vec<u8>,
    /// Where in the line to continue.
    at: usize,
    /// The number of the line, from 1.
    number: u64,
    /// The line begins a statement that has not been begun.
    waiting: bool,
    ended: bool,
    token: Token,
    text: Vec<u8>,
    /// The line of the last word.
    place: u64,
}

impl<R: BufRead> Tokens<R> {
    /// Reads the first line, which must be that of a grammar.
    pub(super) fn new(input: R) -> Result<Self> {
        let mut tokens = Self {
            input,
            line: Vec::new(),
            at: 0,
            number: 0,
            waiting: false,
            ended: false,
            token: Token::End,
            text: Vec::new(),
            place: 1,
        };
        tokens.read_line()?;
        match tokens.line.strip_prefix(MAGIC.as_bytes()).map(<[u8]>::trim_ascii) {
            None => return Err(tokens.wrong("this is not a grammar of loopfold")),
            Some(version) if version != VERSION.as_bytes() => {
                let version = version.escape_ascii();
                return Err(tokens.wrong(format_args!(
                    "a grammar of version {version}; this program reads version {VERSION}"
                )));
            }
            Some(_) => {}
        }
        tokens.next_line()?;
        if !tokens.ended && !tokens.waiting {
            tokens.place = tokens.number;
            return Err(tokens.wrong("an indented line goes on with a statement, and there is none above it"));
        }
        Ok(tokens)
    }

    /// Moves to the first word of the next statement, if there is one. The statement before
    /// must have been read to its end.
    pub(super) fn begin(&mut self) -> Result<bool> {
        if !self.waiting {
            return Ok(false);
        }
        self.waiting = false;
        self.advance()?;
        Ok(true)
    }

    /// Whether the text ends with this statement, whose last word must have been passed.
    pub(super) fn is_over(&self) -> bool {
        self.ended
    }

    /// What the current word is.
    pub(super) fn token(&self) -> Token {
        self.token
    }

    /// The current word, without quotes and escapes.
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// An error at the last word.
    pub(super) fn wrong(&self, reason: impl std::fmt::Display) -> Error {
        Error::damaged(self.place_name(), reason)
    }

    /// Where the last word is.
    pub(super) fn place_name(&self) -> String {
        format!("line {}", self.place)
    }

    /// Moves to the next word of the statement.
    pub(super) fn advance(&mut self) -> Result<()> {
        loop {
            self.skip_blanks();
            if self.waiting || self.ended {
                self.token = Token::End;
                return Ok(());
            }
            if let Some(&byte) = self.line.get(self.at) {
                self.place = self.number;
                return self.take_word(byte);
            }
            self.next_line()?;
        }
    }

    fn take_word(&mut self, first: u8) -> Result<()> {
        let rest = &self.line[self.at..];
        let (token, length) = match first {
            quote::QUOTE => {
                self.text.clear();
                let taken = quote::take(&rest[1..], &mut self.text);
                self.at += 1 + taken.map_err(|reason| self.wrong(reason))?;
                self.token = Token::Text;
                return Ok(());
            }
            b'=' => (Token::Equals, 1),
            b'^' => (Token::Power, 1),
            b'-' if rest.get(1) == Some(&b'>') => (Token::Arrow, 2),
            b'-' if rest.get(1).is_some_and(u8::is_ascii_digit) => (Token::Number, 1 + digits(&rest[1..])),
            _ if first.is_ascii_digit() => (Token::Number, digits(rest)),
            _ if begins_word(first) => {
                (Token::Word, rest.iter().take_while(|&&byte| continues_word(byte)).count())
            }
            _ => {
                let shown = first.escape_ascii();
                return Err(
                    self.wrong(format_args!("{shown} means nothing here; names are written in quotes"))
                );
            }
        };
        self.token = token;
        self.text.clear();
        self.text.extend_from_slice(&rest[..length]);
        self.at += length;
        Ok(())
    }

    fn skip_blanks(&mut self) {
        let blanks = self.line[self.at..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        self.at += blanks;
        if self.line.get(self.at) == Some(&b'#') {
            self.at = self.line.len();
        }
    }

    /// Moves to the next line that is not empty.
    fn next_line(&mut self) -> Result<()> {
        while self.read_line()? {
            let indented = matches!(self.line.first(), Some(b' ' | b'\t'));
            self.skip_blanks();
            if self.at < self.line.len() {
                self.waiting = !indented;
                return Ok(());
            }
        }
        self.ended = true;
        Ok(())
    }

    /// Reads a line, without its end. False when there is none.
    fn read_line(&mut self) -> Result<bool> {
        self.line.clear();
        self.at = 0;
        if self.input.read_until(b'\n', &mut self.line)? == 0 {
            return Ok(false);
        }
        self.number += 1;
        self.line.pop_if(|last| *last == b'\n');
        self.line.pop_if(|last| *last == b'\r');
        Ok(true)
    }
}

fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}
