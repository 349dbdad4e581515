//! What recorded processes send: an introduction with their memory, and the descriptions of their
//! modules. Nothing is answered.
//!
//! A connection has one or several messages and is closed; one without any only asks whether
//! somebody listens.

use super::address::check_user;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::fs::File;
use std::io::{self, IoSliceMut, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

// The same numbers are in runtime.c.
const MAGIC: u32 = 0x3150_464c;
const HEAD: usize = 32;

/// A message.
#[derive(Debug)]
pub(super) enum Message {
    /// A process begins, with its memory. As a copy of another one it has a parent: its process
    /// number, the mark in the lane of the parent, and the first function number that is not also
    /// one of the parent.
    Hello { pid: u32, parent: Option<Parent>, memory: File },
    /// A module is registered, with the number of its first function.
    Module { pid: u32, first: u32, description: Vec<u8> },
    /// A process cannot be recorded: the number of the error.
    Failure { error: i32 },
    /// A process is recorded without the counter that was asked for: the number of the error.
    NoCounter { error: i32 },
}

/// Where a copy of a process comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parent {
    pub(super) pid: u32,
    pub(super) first_own: u32,
}

/// A process that sends no more of its message is not waited for longer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The messages of the next connection that waits; `None` if there is none. A connection that breaks
/// is that of a process that was killed: what it had sent counts.
pub(super) fn next_messages(socket: &UnixListener) -> Option<Vec<Message>> {
    let (connection, _) = socket.accept().ok()?;
    let mut messages = Vec::new();
    let _ = receive_all(connection, &mut messages);
    Some(messages)
}

fn receive_all(mut connection: UnixStream, messages: &mut Vec<Message>) -> io::Result<()> {
    check_user(&connection)?;
    connection.set_nonblocking(false)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    while let Some(message) = receive(&mut connection)? {
        messages.push(message);
    }
    Ok(())
}

/// The next message of a connection. Returns `None` at its end.
fn receive(connection: &mut UnixStream) -> io::Result<Option<Message>> {
    let mut head = [0; HEAD];
    let mut files = Vec::new();
    let mut filled = 0;
    while filled < HEAD {
        match receive_some(connection, &mut head[filled..], &mut files)? {
            0 if filled == 0 => return Ok(None),
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => filled += count,
        }
    }
    let word = |index: usize| u32::from_ne_bytes(std::array::from_fn(|byte| head[index * 4 + byte]));
    let (pid, parent, first, second) = (word(2), word(3), word(4), word(5));
    let bytes = u64::from(word(6)) | u64::from(word(7)) << 32;
    match (word(0), word(1)) {
        (MAGIC, 1) => {
            let memory = files.pop().ok_or_else(|| io::Error::other("a process without memory"))?;
            let parent = (parent > 0).then_some(Parent { pid: parent, first_own: second });
            Ok(Some(Message::Hello { pid, parent, memory: File::from(memory) }))
        }
        (MAGIC, 2) => {
            let mut description = Vec::new();
            connection.take(bytes).read_to_end(&mut description)?;
            if description.len() as u64 != bytes {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            Ok(Some(Message::Module { pid, first, description }))
        }
        (MAGIC, 3) => Ok(Some(Message::Failure { error: first as i32 })),
        (MAGIC, 4) => Ok(Some(Message::NoCounter { error: first as i32 })),
        _ => Err(io::Error::other("a message of another form")),
    }
}

fn receive_some(connection: &UnixStream, bytes: &mut [u8], files: &mut Vec<OwnedFd>) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        let pieces = &mut [IoSliceMut::new(bytes)];
        match recvmsg(connection, pieces, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            received => break received?,
        }
    };
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(sent) = message {
            files.extend(sent);
        }
    }
    Ok(received.bytes)
}
