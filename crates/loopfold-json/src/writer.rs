//! A writer of JSON text: objects, arrays, keys and scalars, one after the other.
//!
//! Numbers and strings are formatted by `serde_json`, so that the text is the same as that of
//! its values; what would drive a terminal is escaped, too. The writer keeps one byte for each array or object that is open and never
//! recurses: nests can be deeper than the stack of the program.
//!
//! Invariant: what has been written is the beginning of a JSON text. Builds with debug assertions
//! check it at every call: values of an object have a key, values of an array have none, and
//! [`JsonWriter::end`] closes something. Cost: O(bytes written).
//!
//! A writer [of rows](JsonWriter::of_rows) writes no text: it passes the same values to [`Rows`], which
//! takes those that are columns of a table.

use crate::rows::Rows;
use loopfold::emit::{Text, is_harmless};
use serde::Serialize as _;
use serde_json::ser::{CompactFormatter, Formatter};
use std::borrow::Cow;
use std::io::{Result, Write};

/// What is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Container {
    Object,
    Array,
}

/// Writes JSON text to `W`, without white space; or the rows of a table.
#[derive(Debug)]
pub struct JsonWriter<W> {
    out: W,
    /// What takes values in place of the text.
    rows: Option<Box<Rows>>,
    open: Vec<Container>,
    /// True if nothing was written in the innermost container, or nothing at all.
    is_first: bool,
    /// True if a key was written and its value was not.
    has_key: bool,
}

impl<W: Write> JsonWriter<W> {
    /// Writes to `out` in small pieces, so that it should have a buffer.
    pub fn new(out: W) -> Self {
        Self { out, rows: None, open: Vec::new(), is_first: true, has_key: false }
    }

    /// Writes the rows of a table to `out`, in the format of `rows`, while an answer is written; the
    /// answer itself is not. [`end_rows`](Self::end_rows) ends the table.
    pub fn of_rows(mut out: W, mut rows: Rows) -> Result<Self> {
        rows.begin_table(&mut out)?;
        Ok(Self { rows: Some(Box::new(rows)), ..Self::new(out) })
    }

    /// Ends the table of [`of_rows`](Self::of_rows). Returns how many rows the answer says it leaves out.
    pub fn end_rows(&mut self) -> Result<u64> {
        match &mut self.rows {
            Some(rows) => rows.end_table(&mut self.out),
            None => Ok(0),
        }
    }

    /// What was written to.
    pub fn into_inner(self) -> W {
        self.out
    }

    /// Begins an object, which [`end`](Self::end) closes.
    pub fn begin_object(&mut self) -> Result<()> {
        self.begin(Container::Object)
    }

    /// Begins an array, which [`end`](Self::end) closes.
    pub fn begin_array(&mut self) -> Result<()> {
        self.begin(Container::Array)
    }

    fn begin(&mut self, container: Container) -> Result<()> {
        if let Some(rows) = &mut self.rows {
            rows.begin(container == Container::Object);
            return Ok(());
        }
        self.before_value()?;
        match container {
            Container::Object => CompactFormatter.begin_object(&mut self.out)?,
            Container::Array => CompactFormatter.begin_array(&mut self.out)?,
        }
        self.open.push(container);
        self.is_first = true;
        Ok(())
    }

    /// Closes the innermost object or array.
    pub fn end(&mut self) -> Result<()> {
        if let Some(rows) = &mut self.rows {
            return rows.end(&mut self.out);
        }
        debug_assert!(!self.has_key, "a key without a value");
        debug_assert!(!self.open.is_empty(), "nothing is open");
        self.is_first = false;
        match self.open.pop() {
            Some(Container::Object) => CompactFormatter.end_object(&mut self.out),
            Some(Container::Array) => CompactFormatter.end_array(&mut self.out),
            None => Ok(()),
        }
    }

    /// The key of the next value of an object.
    pub fn key(&mut self, key: &str) -> Result<()> {
        if let Some(rows) = &mut self.rows {
            rows.key(key);
            return Ok(());
        }
        debug_assert_eq!(self.open.last(), Some(&Container::Object), "a key outside of an object");
        debug_assert!(!self.has_key, "two keys for one value");
        CompactFormatter.begin_object_key(&mut self.out, self.is_first)?;
        string(&mut self.out, key)?;
        CompactFormatter.begin_object_value(&mut self.out)?;
        self.is_first = false;
        self.has_key = true;
        Ok(())
    }

    /// A number, a string, a truth value, or null for `None` and numbers that are not finite.
    pub fn value(&mut self, value: impl Scalar) -> Result<()> {
        if let Some(rows) = &mut self.rows {
            return rows.value(value.value());
        }
        self.before_value()?;
        value.value().write_to(&mut self.out)
    }

    /// A value that has been formatted by another writer.
    pub fn formatted(&mut self, json: &[u8]) -> Result<()> {
        if let Some(rows) = &mut self.rows {
            return rows.formatted(&mut self.out, json);
        }
        self.before_value()?;
        self.out.write_all(json)
    }

    /// A key and its value.
    pub fn field(&mut self, key: &str, value: impl Scalar) -> Result<()> {
        self.key(key)?;
        self.value(value)
    }

    /// An array of scalars.
    pub fn array(&mut self, values: impl IntoIterator<Item: Scalar>) -> Result<()> {
        self.begin_array()?;
        for value in values {
            self.value(value)?;
        }
        self.end()
    }

    /// Ends a line after a whole value; another value may follow.
    pub fn end_line(&mut self) -> Result<()> {
        if self.rows.is_some() {
            return Ok(());
        }
        debug_assert!(self.open.is_empty() && !self.is_first, "no value that is whole");
        self.is_first = true;
        self.out.write_all(b"\n")
    }

    #[inline]
    fn before_value(&mut self) -> Result<()> {
        match self.open.last() {
            Some(Container::Array) => CompactFormatter.begin_array_value(&mut self.out, self.is_first)?,
            Some(Container::Object) => debug_assert!(self.has_key, "a value of an object without a key"),
            None => debug_assert!(self.is_first, "two values in one text"),
        }
        self.is_first = false;
        self.has_key = false;
        Ok(())
    }
}

fn string(out: &mut (impl Write + ?Sized), text: &str) -> Result<()> {
    // The only public access to serde_json's escapes.
    Ok(text.serialize(&mut serde_json::Serializer::with_formatter(out, Harmless))?)
}

/// Also escapes what JSON allows in a string, and a terminal does not only show.
struct Harmless;

impl Formatter for Harmless {
    fn write_string_fragment<W: Write + ?Sized>(&mut self, out: &mut W, fragment: &str) -> Result<()> {
        let mut rest = fragment;
        // Nearly all names are ASCII.
        let is_plain = fragment.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        while let Some((at, character)) = rest.char_indices().find(|&(_, one)| !is_plain && !is_harmless(one))
        {
            out.write_all(&rest.as_bytes()[..at])?;
            for unit in character.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
            rest = &rest[at + character.len_utf8()..];
        }
        out.write_all(rest.as_bytes())
    }
}

/// A value of JSON that is neither an object nor an array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// Nothing, or a number that is not finite.
    Null,
    /// A truth value.
    Bool(bool),
    /// An integer that is not negative.
    Unsigned(u64),
    /// An integer.
    Signed(i64),
    /// A finite number.
    Float(f64),
    /// A string.
    Text(&'a str),
}

impl Value<'_> {
    /// Writes the value as JSON text.
    pub fn write_to<W: Write>(self, out: &mut W) -> Result<()> {
        match self {
            Value::Null => CompactFormatter.write_null(out),
            Value::Bool(value) => CompactFormatter.write_bool(out, value),
            Value::Unsigned(number) => CompactFormatter.write_u64(out, number),
            Value::Signed(number) => CompactFormatter.write_i64(out, number),
            Value::Float(number) => CompactFormatter.write_f64(out, number),
            Value::Text(text) => string(out, text),
        }
    }
}

/// What can be written as a [`Value`].
pub trait Scalar {
    /// The value.
    fn value(&self) -> Value<'_>;
}

macro_rules! scalars {
    ($($scalar:ty: $self:ident => $value:expr),* $(,)?) => {$(
        impl Scalar for $scalar {
            #[inline]
            fn value(&$self) -> Value<'_> {
                $value
            }
        }
    )*};
}

scalars! {
    u32: self => Value::Unsigned(u64::from(*self)),
    u64: self => Value::Unsigned(*self),
    usize: self => Value::Unsigned(*self as u64),
    i64: self => Value::Signed(*self),
    f64: self => if self.is_finite() { Value::Float(*self) } else { Value::Null },
    bool: self => Value::Bool(*self),
    str: self => Value::Text(self),
    String: self => Value::Text(self),
    Cow<'_, str>: self => Value::Text(self),
    // A string is one whatever is in it.
    Text<'_>: self => Value::Text(self.raw()),
}

impl Scalar for Value<'_> {
    fn value(&self) -> Value<'_> {
        *self
    }
}

impl<T: Scalar + ?Sized> Scalar for &T {
    fn value(&self) -> Value<'_> {
        (**self).value()
    }
}

impl<T: Scalar> Scalar for Option<T> {
    fn value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Null, Scalar::value)
    }
}
