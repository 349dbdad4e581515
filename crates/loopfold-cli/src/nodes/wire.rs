//! The bytes of messages between processes: numbers of 8 bytes, and texts with their lengths.

use anyhow::{Result, anyhow};

/// Writes a message.
#[derive(Default)]
pub(super) struct Message(pub(super) Vec<u8>);

impl Message {
    pub(super) fn number(mut self, number: u64) -> Self {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    pub(super) fn bytes(self, bytes: &[u8]) -> Self {
        let mut message = self.number(bytes.len() as u64);
        message.0.extend_from_slice(bytes);
        message
    }

    pub(super) fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }

    pub(super) fn list<T>(self, list: &[T], put: impl FnMut(Self, &T) -> Self) -> Self {
        let message = self.number(list.len() as u64);
        list.iter().fold(message, put)
    }
}

/// Reads a message.
pub(super) struct Received<'a>(pub(super) &'a [u8]);

impl<'a> Received<'a> {
    pub(super) fn number(&mut self) -> Result<u64> {
        let (number, rest) = self.0.split_first_chunk::<8>().ok_or_else(too_short)?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*number))
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8]> {
        let length = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        let (bytes, rest) = self.0.split_at_checked(length).ok_or_else(too_short)?;
        self.0 = rest;
        Ok(bytes)
    }

    pub(super) fn text(&mut self) -> Result<String> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|_| anyhow!("a message is not text"))
    }

    pub(super) fn list<T>(&mut self, mut take: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let length = self.number()?;
        (0..length).map(|_| take(self)).collect()
    }
}

fn too_short() -> anyhow::Error {
    anyhow!("a message from another process is too short")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn what_is_sent_is_received() {
        let message = Message::default().number(7).text("rank").list(&[1, 2], |to, &one| to.number(one));
        let mut received = Received(&message.0);
        assert_eq!(received.number().unwrap(), 7);
        assert_eq!(received.text().unwrap(), "rank");
        assert_eq!(received.list(Received::number).unwrap(), [1, 2]);
        assert!(received.number().is_err());
        for length in 0..message.0.len() {
            let mut cut = Received(&message.0[..length]);
            let all = (|| -> Result<_> { Ok((cut.number()?, cut.text()?, cut.list(Received::number)?)) })();
            assert!(all.is_err());
        }
    }
}
