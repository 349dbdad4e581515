//! What recorded processes send: an introduction with their memory, and the descriptions of their
//! modules. Nothing is answered.
//!
//! A connection has one or several messages and is closed; one without any only asks whether
//! somebody listens. Connections are read in the order in which they were made, as far as they have
//! come: a process that is stopped in the middle of a message makes nobody wait. Who sends a message
//! is what the kernel says, with the number that the process has here: in a name space of its own it
//! knows another one.
//!
//! A process promises a copy before it forks; the copy introduces itself on the same connection. So a
//! copy may still come as long as that is open.
//!
//! Files are received only while there is room for one more: the kernel drops those for which there is
//! none. Connections for which there is no room wait in the socket.

use super::address::check_user;
use rustix::net::sockopt::set_socket_passcred;
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
/// How many connections are taken before they are read.
const BATCH: usize = 64;
/// Bits of the mark in an introduction.
const COUNTED: u32 = 0x8000_0000;
const MIXED: u32 = 0x4000_0000;

/// A message.
#[derive(Debug)]
pub(super) enum Message {
    /// A process begins, with its memory.
    Hello { library: Library, parent: Option<Parent>, memory: File },
    /// A module is registered, with the number of its first function.
    Module { library: Library, first: u32, description: Vec<u8> },
    /// A process cannot be recorded; it may be a copy of another, which may have counted it.
    Failure { reason: Failure, is_counted: bool, is_copy: bool },
    /// A process is recorded without the counter that was asked for: the number of the error.
    NoCounter { error: i32 },
}

/// Why a process cannot be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// It has no shared memory: the number of the error.
    NoMemory(i32),
    /// Its memory did not come with its introduction.
    NotReceived,
    /// What it sends is not understood.
    Malformed,
    /// It is of another user.
    OtherUser,
}

/// A run-time library of a process that has a memory. Nearly all processes have one; see
/// `runtime/state.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Library {
    /// The number of the process in the system.
    pub(super) pid: u32,
    /// Distinguishes those of a process; that of a copy is that of its parent.
    pub(super) tag: u32,
    /// What it executes; different for each program, and 0 if it is not known.
    pub(super) program: u32,
}

/// Where a copy of a process comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parent {
    pub(super) library: Library,
    /// The first number of a function that is not also one of the parent.
    pub(super) first_own: u32,
    /// The parent has counted it, as it could not promise it.
    pub(super) is_counted: bool,
    /// It was not announced: what it did first may be in the stream of the parent.
    pub(super) is_mixed: bool,
}

/// Takes messages.
#[derive(Debug)]
pub(super) struct Inbox {
    socket: UnixListener,
    open: Vec<Connection>,
    piece: Vec<u8>,
    /// Room for the file that is received next.
    reserve: Option<OwnedFd>,
    /// There were too many open files.
    is_full: bool,
}

impl Inbox {
    pub(super) fn new(socket: UnixListener) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        // Also of connections that are made to it.
        set_socket_passcred(&socket, true)?;
        Ok(Self { socket, open: Vec::new(), piece: vec![0; PIECE], reserve: None, is_full: false })
    }

    /// What becomes readable when somebody connects.
    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Whether a message has begun and not ended.
    pub(super) fn is_waiting(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether a copy of a process may come that was promised.
    pub(super) fn is_promised(&self) -> bool {
        self.open.iter().any(|connection| connection.promised_by.is_some() && !connection.is_introduced)
    }

    /// Whether there were too many open files to take all.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    /// All messages that have come. A connection that breaks is that of a process that was killed:
    /// what it had sent counts.
    pub(super) fn take_all(&mut self) -> Vec<Message> {
        self.is_full = false;
        let mut messages = Vec::new();
        while self.accept_some(&mut messages) == BATCH {
            self.read_open(&mut messages);
        }
        self.read_open(&mut messages);
        messages
    }

    /// Takes connections; returns how many.
    fn accept_some(&mut self, messages: &mut Vec<Message>) -> usize {
        let mut count = 0;
        while count < BATCH && self.keep_room() {
            match self.socket.accept() {
                Ok((stream, _)) if check_user(&stream).is_err() => {
                    let reason = Failure::OtherUser;
                    // The program itself is of this user.
                    messages.push(Message::Failure { reason, is_counted: false, is_copy: true });
                }
                Ok((stream, _)) => {
                    count += 1;
                    let is_usable = stream.set_nonblocking(true).is_ok();
                    self.open.extend(is_usable.then(|| Connection::new(stream)));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.is_full |= error.kind() != io::ErrorKind::WouldBlock;
                    break;
                }
            }
        }
        count
    }

    fn read_open(&mut self, messages: &mut Vec<Message>) {
        let mut open = std::mem::take(&mut self.open);
        open.retain_mut(|connection| {
            if !self.keep_room() {
                return true;
            }
            self.reserve = None;
            connection.read(&mut self.piece, messages)
        });
        self.open = open;
    }

    /// Makes sure that there is room for one more file.
    fn keep_room(&mut self) -> bool {
        if self.reserve.is_none() {
            self.reserve = self.socket.as_fd().try_clone_to_owned().ok();
            self.is_full |= self.reserve.is_none();
        }
        self.reserve.is_some()
    }
}

/// A connection, and what has come of its next message.
#[derive(Debug)]
struct Connection {
    stream: UnixStream,
    bytes: Vec<u8>,
    files: Vec<OwnedFd>,
    /// The process that has promised a copy of itself on it.
    promised_by: Option<u32>,
    is_introduced: bool,
}

impl Connection {
    fn new(stream: UnixStream) -> Self {
        Self { stream, bytes: Vec::new(), files: Vec::new(), promised_by: None, is_introduced: false }
    }

    /// Reads what is there; false at the end.
    fn read(&mut self, piece: &mut [u8], messages: &mut Vec<Message>) -> bool {
        loop {
            let sender = match receive_some(&self.stream, piece, &mut self.files) {
                Ok(received) if received.bytes == 0 => return false,
                Ok(received) => {
                    self.bytes.extend_from_slice(&piece[..received.bytes]);
                    received.sender
                }
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            };
            loop {
                match self.parse(sender, messages) {
                    Ok(0) => break,
                    Ok(length) => _ = self.bytes.drain(..length),
                    Err(reason) => {
                        messages.push(Message::Failure { reason, is_counted: false, is_copy: false });
                        return false;
                    }
                }
            }
            // There is room for one file only.
            if self.is_introduced {
                return true;
            }
        }
    }

    /// Takes the first message and returns its length; 0 if more of it must come.
    fn parse(&mut self, sender: u32, messages: &mut Vec<Message>) -> Result<usize, Failure> {
        let Some(head) = self.bytes.get(..HEAD) else { return Ok(0) };
        let word = |index: usize| u32::from_ne_bytes(std::array::from_fn(|byte| head[index * 4 + byte]));
        let (parent, first, second) = (word(3), word(4), word(5));
        let (is_counted, is_copy) = (first & COUNTED != 0, parent > 0);
        match (word(0), word(1)) {
            (MAGIC, 1) => {
                let library = Library { pid: sender, tag: word(6), program: word(7) };
                let from = Library { pid: self.promised_by.unwrap_or(parent), ..library };
                let parent = (parent > 0).then_some(Parent {
                    library: from,
                    first_own: second,
                    is_counted,
                    is_mixed: first & MIXED != 0,
                });
                self.is_introduced = true;
                messages.push(match self.files.pop() {
                    Some(memory) => Message::Hello { library, parent, memory: File::from(memory) },
                    None => Message::Failure { reason: Failure::NotReceived, is_counted, is_copy },
                });
            }
            (MAGIC, 2) => {
                let length = u64::from(word(6)) | u64::from(word(7)) << 32;
                let library = Library { pid: sender, tag: parent, program: second };
                if length > MOST_BYTES {
                    return Err(Failure::Malformed);
                }
                let Some(description) = self.bytes.get(HEAD..HEAD + length as usize) else { return Ok(0) };
                let description = description.to_vec();
                messages.push(Message::Module { library, first, description });
                return Ok(HEAD + length as usize);
            }
            (MAGIC, 3) => {
                self.is_introduced = true;
                let reason = Failure::NoMemory((first & !(COUNTED | MIXED)) as i32);
                messages.push(Message::Failure { reason, is_counted, is_copy });
            }
            (MAGIC, 4) => messages.push(Message::NoCounter { error: first as i32 }),
            (MAGIC, 5) => self.promised_by = Some(sender),
            _ => return Err(Failure::Malformed),
        }
        Ok(HEAD)
    }
}

/// Some bytes, and the process that sent them; 0 if it is not known.
struct Received {
    bytes: usize,
    sender: u32,
}

fn receive_some(connection: &UnixStream, bytes: &mut [u8], files: &mut Vec<OwnedFd>) -> io::Result<Received> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1), ScmCredentials(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        let pieces = &mut [IoSliceMut::new(bytes)];
        match recvmsg(connection, pieces, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            received => break received?,
        }
    };
    let mut sender = 0;
    for message in control.drain() {
        match message {
            RecvAncillaryMessage::ScmRights(sent) => files.extend(sent),
            RecvAncillaryMessage::ScmCredentials(by) => sender = by.pid.as_raw_nonzero().get() as u32,
            _ => {}
        }
    }
    Ok(Received { bytes: received.bytes, sender })
}
