//! The bytes that processes exchange: as `bytes` writes and reads them, in readers that own them.

use crate::bytes::{Bytes, put_number, put_wide};
use crate::{Error, Result};

/// What is read, in messages of errors.
const PLACE: &str = "message of another process";

/// Appends a number that may be negative.
pub(in crate::questions) fn put_signed(out: &mut Vec<u8>, number: i128) {
    put_wide(out, ((number << 1) ^ (number >> 127)) as u128);
}

/// Appends a number, or that there is none.
pub(in crate::questions) fn put_optional(out: &mut Vec<u8>, number: Option<u64>) {
    put_wide(out, number.map_or(0, |number| u128::from(number) + 1));
}

/// Reads what was received.
#[derive(Default)]
pub(in crate::questions) struct Reader {
    bytes: Vec<u8>,
    at: usize,
}

impl Reader {
    pub(in crate::questions) fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, at: 0 }
    }

    pub(in crate::questions) fn damaged(what: &str) -> Error {
        Error::damaged(PLACE, format_args!("{what} makes no sense"))
    }

    pub(in crate::questions) fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    #[inline]
    fn take<T>(&mut self, take: impl FnOnce(&mut Bytes<'_>) -> Result<T>) -> Result<T> {
        let mut left = Bytes::new(&self.bytes[self.at..], PLACE);
        let taken = take(&mut left)?;
        self.at = self.bytes.len() - left.rest().len();
        Ok(taken)
    }

    pub(in crate::questions) fn byte(&mut self) -> Result<u8> {
        self.take(|bytes| bytes.byte())
    }

    pub(in crate::questions) fn wide(&mut self) -> Result<u128> {
        self.take(|bytes| bytes.wide())
    }

    pub(in crate::questions) fn number(&mut self) -> Result<u64> {
        self.take(|bytes| bytes.number())
    }

    pub(in crate::questions) fn small(&mut self) -> Result<u32> {
        u32::try_from(self.wide()?).map_err(|_| Self::damaged("a number"))
    }

    pub(in crate::questions) fn optional(&mut self) -> Result<Option<u64>> {
        let number = self.wide()?;
        let Some(number) = number.checked_sub(1) else { return Ok(None) };
        u64::try_from(number).map(Some).map_err(|_| Self::damaged("a number"))
    }

    pub(in crate::questions) fn signed(&mut self) -> Result<i128> {
        let number = self.wide()?;
        Ok((number >> 1) as i128 ^ -((number & 1) as i128))
    }

    /// A time, from how long after another one it is.
    pub(in crate::questions) fn since(&mut self, time: i64) -> Result<i64> {
        let time = self.signed()?.checked_add(time.into());
        time.and_then(|time| i64::try_from(time).ok()).ok_or_else(|| Self::damaged("a time"))
    }

    pub(in crate::questions) fn text(&mut self) -> Result<Vec<u8>> {
        self.take(|bytes| Ok(bytes.text()?.to_vec()))
    }

    pub(in crate::questions) fn list<T>(
        &mut self,
        mut take: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let length = self.number()?;
        (0..length).map(|_| take(self)).collect()
    }
}

/// Appends a list.
pub(in crate::questions) fn put_list<T>(
    out: &mut Vec<u8>,
    list: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
    mut put: impl FnMut(&mut Vec<u8>, T),
) {
    let list = list.into_iter();
    put_number(out, list.len() as u64);
    list.for_each(|one| put(out, one));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn what_is_put_is_read() {
        let mut out = Vec::new();
        let signed = [0, -1, 1, i64::MIN.into(), i128::from(i64::MAX) - i128::from(i64::MIN)];
        signed.iter().for_each(|&number| put_signed(&mut out, number));
        [None, Some(0), Some(u64::MAX)].into_iter().for_each(|number| put_optional(&mut out, number));
        put_list(&mut out, [7u64, 300], put_number);
        let mut reader = Reader::new(out);
        for number in signed {
            assert_eq!(reader.signed().unwrap(), number);
        }
        for number in [None, Some(0), Some(u64::MAX)] {
            assert_eq!(reader.optional().unwrap(), number);
        }
        assert_eq!(reader.list(Reader::number).unwrap(), [7, 300]);
        assert!(reader.is_empty());
        assert!(reader.byte().is_err());
    }
}
