//! What recorded processes send: an introduction with their memory, and the descriptions of their
//! modules. Nothing is answered.
//!
//! A connection has one or several messages and is closed; one without any only asks whether
//! somebody listens. Connections are read in the order in which they were made, as far as they have
//! come: a process that is stopped in the middle of a message makes nobody wait.

use super::address::check_user;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};

// The same numbers are in runtime/layout.h.
const MAGIC: u32 = 0x3150_464c;
const HEAD: usize = 32;
/// How much is read at once.
const PIECE: usize = 1 << 16;
/// No description is larger.
const MOST_BYTES: u64 = 1 << 30;

/// A message.
#[derive(Debug)]
pub(super) enum Message {
    /// A process begins, with its memory.
    Hello { library: Library, program: u32, parent: Option<Parent>, memory: File },
    /// A module is registered, with the number of its first function.
    Module { library: Library, first: u32, description: Vec<u8> },
    /// A process cannot be recorded: the number of the error.
    Failure { error: i32 },
    /// A process is recorded without the counter that was asked for: the number of the error.
    NoCounter { error: i32 },
}

/// A run-time library of a process that has a memory. Nearly all processes have one; see
/// `runtime/state.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Library {
    pub(super) pid: u32,
    /// Tells those of a process apart; that of a copy is that of its parent.
    pub(super) tag: u32,
}

/// Where a copy of a process comes from: its process, the mark in the lane of the parent, and the
/// first number of a function that is not also one of the parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parent {
    pub(super) pid: u32,
    pub(super) first_own: u32,
}

/// Takes messages.
#[derive(Debug)]
pub(super) struct Inbox {
    socket: UnixListener,
    open: Vec<Connection>,
    piece: Vec<u8>,
    /// There were too many open files.
    is_full: bool,
}

impl Inbox {
    pub(super) fn new(socket: UnixListener) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self { socket, open: Vec::new(), piece: vec![0; PIECE], is_full: false })
    }

    /// What becomes readable when somebody connects.
    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Whether a message has begun and not ended.
    pub(super) fn is_waiting(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether there were too many open files to take all.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    /// All messages that have come. A connection that breaks is that of a process that was killed:
    /// what it had sent counts.
    pub(super) fn take_all(&mut self) -> Vec<Message> {
        self.is_full = false;
        self.accept_all();
        let (mut messages, piece) = (Vec::new(), &mut self.piece);
        self.open.retain_mut(|connection| connection.read(piece, &mut messages).unwrap_or(false));
        messages
    }

    fn accept_all(&mut self) {
        loop {
            match self.socket.accept() {
                Ok((stream, _)) => {
                    let is_good = check_user(&stream).and_then(|()| stream.set_nonblocking(true)).is_ok();
                    let connection = Connection { stream, bytes: Vec::new(), files: Vec::new() };
                    self.open.extend(is_good.then_some(connection));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.is_full = error.kind() != io::ErrorKind::WouldBlock;
                    return;
                }
            }
        }
    }
}

/// A connection, and what has come of its next message.
#[derive(Debug)]
struct Connection {
    stream: UnixStream,
    bytes: Vec<u8>,
    files: Vec<OwnedFd>,
}

impl Connection {
    /// Reads what is there; false at the end.
    fn read(&mut self, piece: &mut [u8], messages: &mut Vec<Message>) -> io::Result<bool> {
        loop {
            match receive_some(&self.stream, piece, &mut self.files) {
                Ok(0) => return Ok(false),
                Ok(count) => self.bytes.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error),
            }
            while let Some((message, length)) = parse(&self.bytes, &mut self.files)? {
                self.bytes.drain(..length);
                messages.push(message);
            }
        }
    }
}

/// The first message and its length; `None` if more of it must come.
fn parse(bytes: &[u8], files: &mut Vec<OwnedFd>) -> io::Result<Option<(Message, usize)>> {
    let Some(head) = bytes.get(..HEAD) else { return Ok(None) };
    let word = |index: usize| u32::from_ne_bytes(std::array::from_fn(|byte| head[index * 4 + byte]));
    let (pid, parent, first, second) = (word(2), word(3), word(4), word(5));
    let message = match (word(0), word(1)) {
        (MAGIC, 1) => {
            let memory = files.pop().ok_or_else(|| io::Error::other("a process without memory"))?;
            let parent = (parent > 0).then_some(Parent { pid: parent, first_own: second });
            let library = Library { pid, tag: word(6) };
            Message::Hello { library, program: word(7), parent, memory: File::from(memory) }
        }
        (MAGIC, 2) => {
            let length = u64::from(word(6)) | u64::from(word(7)) << 32;
            if length > MOST_BYTES {
                return Err(io::Error::other("a description that is too long"));
            }
            let Some(description) = bytes.get(HEAD..HEAD + length as usize) else { return Ok(None) };
            let (library, description) = (Library { pid, tag: parent }, description.to_vec());
            let length = HEAD + description.len();
            return Ok(Some((Message::Module { library, first, description }, length)));
        }
        (MAGIC, 3) => Message::Failure { error: first as i32 },
        (MAGIC, 4) => Message::NoCounter { error: first as i32 },
        _ => return Err(io::Error::other("a message of another form")),
    };
    Ok(Some((message, HEAD)))
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
