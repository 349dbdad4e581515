//! A writer of JSON text: objects, arrays, keys and scalars, one after the other.
//!
//! Numbers and strings are formatted by `serde_json`, so that the text is the same as that of
//! its values. The writer keeps one byte for each array or object that is open and never
//! recurses: nests can be deeper than the stack of the program.
//!
//! Invariant: what has been written is the beginning of a JSON text. Builds with debug assertions
//! check it at every call: values of an object have a key, values of an array have none, and
//! [`JsonWriter::end`] closes something. Cost: O(bytes written).

use serde_json::ser::{CompactFormatter, Formatter as _};
use std::borrow::Cow;
use std::io::{Result, Write};

/// What is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Container {
    Object,
    Array,
}

/// Writes JSON text to `W`, without white space.
#[derive(Debug)]
pub struct JsonWriter<W> {
    out: W,
    open: Vec<Container>,
    /// True if nothing was written in the innermost container, or nothing at all.
    is_first: bool,
    /// True if a key was written and its value was not.
    has_key: bool,
}

impl<W: Write> JsonWriter<W> {
    /// Writes to `out` in small pieces, so that it should have a buffer.
    pub fn new(out: W) -> Self {
        Self { out, open: Vec::new(), is_first: true, has_key: false }
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
        self.before_value()?;
        value.write_to(&mut self.out)
    }

    /// A value that has been formatted by another writer.
    pub fn formatted(&mut self, json: &[u8]) -> Result<()> {
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
    Ok(serde_json::to_writer(out, text)?)
}

/// A value of JSON that is neither an object nor an array.
pub trait Scalar {
    /// Writes the value as JSON text.
    fn write_to<W: Write>(&self, out: &mut W) -> Result<()>;
}

macro_rules! scalars {
    ($($scalar:ty => $method:ident),*) => {$(
        impl Scalar for $scalar {
            fn write_to<W: Write>(&self, out: &mut W) -> Result<()> {
                CompactFormatter.$method(out, *self)
            }
        }
    )*};
}

scalars!(u32 => write_u32, u64 => write_u64, i64 => write_i64, bool => write_bool);

impl Scalar for usize {
    fn write_to<W: Write>(&self, out: &mut W) -> Result<()> {
        CompactFormatter.write_u64(out, *self as u64)
    }
}

impl Scalar for f64 {
    fn write_to<W: Write>(&self, out: &mut W) -> Result<()> {
        if self.is_finite() {
            CompactFormatter.write_f64(out, *self)
        } else {
            CompactFormatter.write_null(out)
        }
    }
}

impl Scalar for str {
    fn write_to<W: Write>(&self, out: &mut W) -> Result<()> {
        string(out, self)
    }
}

impl Scalar for String {
    fn write_to<W: Write>(&self, out: &mut W) -> Result<()> {
        string(out, self)
    }
}

impl Scalar for Cow<'_, str> {
    fn write_to<W: Write>(&self, out: &mut W) -> Result<()> {
        string(out, self)
    }
}

impl<T: Scalar + ?Sized> Scalar for &T {
    fn write_to<W: Write>(&self, out: &mut W) -> Result<()> {
        (**self).write_to(out)
    }
}

impl<T: Scalar> Scalar for Option<T> {
    fn write_to<W: Write>(&self, out: &mut W) -> Result<()> {
        match self {
            Some(value) => value.write_to(out),
            None => CompactFormatter.write_null(out),
        }
    }
}
