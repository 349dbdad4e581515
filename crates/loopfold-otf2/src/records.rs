//! The records of OTF2 that become events, as plain data.

/// One record of a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    /// A region is entered.
    Enter(u32),
    /// A region is left.
    Leave(u32),
    /// A message is sent.
    Send(Message),
    /// A message was received.
    Receive(Message),
    /// A message begins to be sent, by a request.
    Isend(Message, u64),
    /// A request to receive is posted; what arrives is known when it completes.
    Request(u64),
    /// A message was received that was asked for before.
    Irecv(Message, u64),
    /// A nonblocking send completed.
    IsendComplete(u64),
    /// A request was tested and is not complete.
    Test,
    /// A request was cancelled.
    Cancelled(u64),
    /// A collective operation ended.
    Collective(Collective),
    /// A nonblocking collective operation ended.
    CollectiveComplete(Collective, u64),
    /// A communicator was made.
    NewCommunicator(u32),
    /// Something that belongs to a call and has no field of an event.
    Nothing,
    /// A record of a kind that the library does not know.
    Unknown,
}

/// A message from or to a rank of a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) peer: u32,
    pub(crate) comm: u32,
    pub(crate) tag: u32,
    pub(crate) bytes: u64,
}

/// A collective operation on a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Collective {
    pub(crate) operation: u8,
    pub(crate) comm: u32,
    pub(crate) root: u32,
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

/// Takes the records of a location, in order.
pub(crate) trait Visitor {
    /// The next record and its time in ticks.
    fn record(&mut self, time: u64, record: Record);
}
