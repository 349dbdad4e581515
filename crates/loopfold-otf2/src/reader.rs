//! Reads an archive through the library, with a safe interface: definitions into [`Definitions`],
//! the records of a location into a [`Visitor`].
//!
//! A reader belongs to one thread; several threads have a reader each, which share nothing
//! in the library. A panic in a callback does not pass through C: it ends reading, and is resumed
//! when the library has returned.
#![allow(unsafe_code)]

use crate::definitions::Definitions;
use crate::library::{Callback, Code, Library, Opaque};
use crate::records::{Collective, Message, Record, Visitor};
use std::any::Any;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

const GO_ON: Code = 0;
const STOP: Code = 1;

/// An open archive.
pub(crate) struct Reader {
    library: &'static Library,
    archive: Opaque,
}

impl Reader {
    /// Opens the archive of this anchor file.
    pub(crate) fn open(library: &'static Library, anchor: &Path) -> Result<Self, String> {
        let path = CString::new(anchor.as_os_str().as_encoded_bytes()).map_err(|_| "a path with NUL")?;
        // SAFETY: the path ends in NUL and outlives the call.
        let archive = unsafe { (library.functions.open)(path.as_ptr()) };
        Ok(Self { library, archive: library.object(archive)? })
    }

    /// The size of the chunks in which the files of locations are written; 0 if that is not known.
    pub(crate) fn chunk_size(&self) -> u64 {
        let (mut events, mut definitions) = (0, 0);
        // SAFETY: the archive is open, and both numbers are there to be written.
        let code =
            unsafe { (self.library.functions.chunk_size)(self.archive, &mut events, &mut definitions) };
        self.library.check(code).map_or(0, |()| events)
    }

    /// Reads the definitions of the whole archive.
    pub(crate) fn definitions(&self) -> Result<Definitions, String> {
        let Self { library, archive } = *self;
        let functions = &library.functions;
        let mut taken = Taken { taker: Definitions::default(), panic: None };
        // SAFETY: the objects come from the library and are used as it demands: made,
        // registered, read, closed. `taken` outlives reading and is not touched meanwhile.
        let outcome = unsafe {
            let reader = library.object((functions.global_definitions)(archive))?;
            let callbacks = library.object((functions.new_global_callbacks)())?;
            for (name, callback) in definition_callbacks() {
                set(library, "GlobalDef", callbacks, name, callback);
            }
            let taker = (&raw mut taken).cast();
            let registered = (functions.register_global)(archive, reader, callbacks, taker);
            (functions.delete_global_callbacks)(callbacks);
            let outcome = library
                .check(registered)
                .and_then(|()| library.check((functions.read_global)(archive, reader, &mut 0)));
            (functions.close_global)(archive, reader);
            outcome
        };
        if let Some(panic) = taken.panic {
            resume_unwind(panic);
        }
        outcome.map(|()| taken.taker)
    }

    /// Prepares for reading these locations. Their own definitions say how their numbers and
    /// clocks relate to those of the archive, which the library applies to their records; some
    /// archives have none. For each location, what was wrong with them.
    pub(crate) fn prepare(&self, locations: &[u64]) -> Result<Vec<Option<String>>, String> {
        let Self { library, archive } = *self;
        let functions = &library.functions;
        for &location in locations {
            // SAFETY: the archive is open.
            library.check(unsafe { (functions.select)(archive, location) })?;
        }
        // SAFETY: the archive is open.
        let has_definitions = library.check(unsafe { (functions.open_definition_files)(archive) }).is_ok();
        let mut wrong = vec![None; locations.len()];
        if has_definitions {
            for (wrong, &location) in wrong.iter_mut().zip(locations) {
                *wrong = self.local_definitions(location).err();
            }
            // SAFETY: they were opened, and their readers are closed.
            unsafe { (functions.close_definition_files)(archive) };
        }
        // SAFETY: the archive is open.
        library.check(unsafe { (functions.open_event_files)(archive) })?;
        Ok(wrong)
    }

    fn local_definitions(&self, location: u64) -> Result<(), String> {
        let Self { library, archive } = *self;
        let functions = &library.functions;
        // SAFETY: the archive and its files are open, the reader is closed once.
        unsafe {
            let reader = library.object((functions.local_definitions)(archive, location))?;
            let outcome = library.check((functions.read_local)(archive, reader, &mut 0));
            (functions.close_local)(archive, reader);
            outcome
        }
    }

    /// Begins to read a location.
    pub(crate) fn events<V: Visitor>(&self, location: u64, visitor: V) -> Result<Events<V>, String> {
        let Self { library, archive } = *self;
        let functions = &library.functions;
        // SAFETY: the archive is open and the objects are the library's own. The visitor lies
        // on the heap, so that its address stays, and is freed after the reader is closed.
        unsafe {
            let reader = library.object((functions.events)(archive, location))?;
            let callbacks = library.object((functions.new_event_callbacks)())?;
            for (name, callback) in event_callbacks::<V>() {
                set(library, "Evt", callbacks, name, callback);
            }
            let taken = Box::into_raw(Box::new(Taken { taker: visitor, panic: None }));
            let registered = (functions.register_events)(archive, reader, callbacks, taken.cast());
            (functions.delete_event_callbacks)(callbacks);
            let events = Events { library, archive, reader, taken };
            library.check(registered)?;
            Ok(events)
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // SAFETY: the archive was opened and is closed here only.
        unsafe {
            (self.library.functions.close_event_files)(self.archive);
            (self.library.functions.close)(self.archive);
        }
        let _ = self.library.check(0);
    }
}

/// The records of one location. To be dropped before its [`Reader`], which the one place
/// that uses it sees to by the order of its fields.
pub(crate) struct Events<V> {
    library: &'static Library,
    archive: Opaque,
    reader: Opaque,
    taken: *mut Taken<V>,
}

impl<V: Visitor> Events<V> {
    /// Passes the next records to the visitor, at most `most`. Returns how many there were.
    pub(crate) fn read(&mut self, most: u64) -> Result<u64, String> {
        let mut read = 0;
        // SAFETY: archive and reader are open. Nothing else refers to the visitor meanwhile.
        let code =
            unsafe { (self.library.functions.read_events)(self.archive, self.reader, most, &mut read) };
        // SAFETY: the library has returned, so this is the only access.
        if let Some(panic) = unsafe { (*self.taken).panic.take() } {
            resume_unwind(panic);
        }
        self.library.check(code).map(|()| read)
    }

    /// The visitor, between readings.
    pub(crate) fn visitor(&mut self) -> &mut V {
        // SAFETY: the library touches it only inside of `read`, which needs `&mut self` too.
        unsafe { &mut (*self.taken).taker }
    }
}

impl<V> Drop for Events<V> {
    fn drop(&mut self) {
        // SAFETY: both were made in `Reader::events` and are released here only.
        unsafe {
            (self.library.functions.close_events)(self.archive, self.reader);
            drop(Box::from_raw(self.taken));
        }
        let _ = self.library.check(0);
    }
}

/// The user data of callbacks: the receiver of the data, and a panic that must wait.
struct Taken<T> {
    taker: T,
    panic: Option<Box<dyn Any + Send>>,
}

impl<T> Taken<T> {
    /// Lets the taker take, and keeps a panic.
    ///
    /// # Safety
    /// The pointer is that of a `Taken<T>` that nothing else refers to.
    unsafe fn give(pointer: Opaque, take: impl FnOnce(&mut T)) -> Code {
        // SAFETY: the caller's promise.
        let taken = unsafe { &mut *pointer.cast::<Self>() };
        match catch_unwind(AssertUnwindSafe(|| take(&mut taken.taker))) {
            Ok(()) => GO_ON,
            Err(panic) => {
                taken.panic = Some(panic);
                STOP
            }
        }
    }
}

/// Sets a callback if this version of the library knows such records.
///
/// # Safety
/// The callback has the type that the library gives for this name.
unsafe fn set(library: &Library, of: &str, callbacks: Opaque, name: &str, callback: Callback) {
    if let Some(setter) = library.setter(&format!("OTF2_{of}ReaderCallbacks_Set{name}Callback\0")) {
        // SAFETY: the caller's promise.
        unsafe { setter(callbacks, callback) };
        let _ = library.check(0);
    }
}

/// The callbacks for definitions, with the library's names for them. Those of location groups
/// and communicators have an argument more since version 3, which is not needed.
fn definition_callbacks() -> [(&'static str, Callback); 9] {
    type Taker = Taken<Definitions>;
    unsafe extern "C" fn clock(to: Opaque, ticks: u64, offset: u64, _: u64) -> Code {
        // SAFETY: what was registered.
        unsafe { Taker::give(to, |definitions| definitions.clock(ticks, offset)) }
    }
    unsafe extern "C" fn string(to: Opaque, id: u32, text: *const c_char) -> Code {
        // SAFETY: the library's texts end in NUL.
        let text = if text.is_null() { &[][..] } else { unsafe { CStr::from_ptr(text) }.to_bytes() };
        // SAFETY: what was registered.
        unsafe { Taker::give(to, |definitions| definitions.string(id, text)) }
    }
    unsafe extern "C" fn location_group(to: Opaque, id: u32, name: u32, _kind: u8, _node: u32) -> Code {
        // SAFETY: what was registered.
        unsafe { Taker::give(to, |definitions| definitions.location_group(id, name)) }
    }
    unsafe extern "C" fn location(
        to: Opaque,
        id: u64,
        name: u32,
        kind: u8,
        records: u64,
        group: u32,
    ) -> Code {
        // SAFETY: what was registered.
        unsafe { Taker::give(to, |definitions| definitions.location(id, name, kind, records, group)) }
    }
    unsafe extern "C" fn region(
        to: Opaque,
        id: u32,
        name: u32,
        _canonical: u32,
        _description: u32,
        _role: u8,
        paradigm: u8,
        _flags: u32,
    ) -> Code {
        // SAFETY: what was registered.
        unsafe { Taker::give(to, |definitions| definitions.region(id, name, paradigm)) }
    }
    unsafe extern "C" fn group(
        to: Opaque,
        id: u32,
        _name: u32,
        kind: u8,
        paradigm: u8,
        _flags: u32,
        count: u32,
        members: *const u64,
    ) -> Code {
        let members = if members.is_null() {
            &[][..]
        } else {
            // SAFETY: the library read this many.
            unsafe { std::slice::from_raw_parts(members, count as usize) }
        };
        // SAFETY: what was registered.
        unsafe { Taker::give(to, |definitions| definitions.group(id, kind, paradigm, members)) }
    }
    unsafe extern "C" fn comm(to: Opaque, id: u32, name: u32, group: u32, _parent: u32) -> Code {
        // SAFETY: what was registered.
        unsafe { Taker::give(to, |definitions| definitions.comm(id, name, group)) }
    }
    unsafe extern "C" fn dimension(to: Opaque, id: u32, _name: u32, size: u32, is_ring: u8) -> Code {
        // SAFETY: what was registered.
        unsafe { Taker::give(to, |definitions| definitions.dimension(id, size, is_ring != 0)) }
    }
    unsafe extern "C" fn grid(
        to: Opaque,
        _id: u32,
        _name: u32,
        comm: u32,
        count: u8,
        dimensions: *const u32,
    ) -> Code {
        let dimensions = if dimensions.is_null() {
            &[][..]
        } else {
            // SAFETY: the library read this many.
            unsafe { std::slice::from_raw_parts(dimensions, count.into()) }
        };
        // SAFETY: what was registered.
        unsafe { Taker::give(to, |definitions| definitions.grid(comm, dimensions)) }
    }
    [
        ("ClockProperties", clock as unsafe extern "C" fn(_, _, _, _) -> _ as Callback),
        ("String", string as unsafe extern "C" fn(_, _, _) -> _ as Callback),
        ("LocationGroup", location_group as unsafe extern "C" fn(_, _, _, _, _) -> _ as Callback),
        ("Location", location as unsafe extern "C" fn(_, _, _, _, _, _) -> _ as Callback),
        ("Region", region as unsafe extern "C" fn(_, _, _, _, _, _, _, _) -> _ as Callback),
        ("Group", group as unsafe extern "C" fn(_, _, _, _, _, _, _, _) -> _ as Callback),
        ("Comm", comm as unsafe extern "C" fn(_, _, _, _, _) -> _ as Callback),
        ("CartDimension", dimension as unsafe extern "C" fn(_, _, _, _, _) -> _ as Callback),
        ("CartTopology", grid as unsafe extern "C" fn(_, _, _, _, _, _) -> _ as Callback),
    ]
}

/// Defines a callback for records: all begin with the same arguments.
macro_rules! callback {
    ($name:ident, ($($argument:ident: $type:ty),*), $record:expr) => {
        unsafe extern "C" fn $name<V: Visitor>(
            _location: u64,
            time: u64,
            _position: u64,
            to: Opaque,
            _attributes: Opaque,
            $($argument: $type),*
        ) -> Code {
            // SAFETY: what was registered.
            unsafe { Taken::<V>::give(to, |visitor| visitor.record(time, $record)) }
        }
    };
}

callback!(enter, (region: u32), Record::Enter(region));
callback!(leave, (region: u32), Record::Leave(region));
callback!(send, (peer: u32, comm: u32, tag: u32, bytes: u64), Record::Send(Message { peer, comm, tag, bytes }));
callback!(receive, (peer: u32, comm: u32, tag: u32, bytes: u64), {
    Record::Receive(Message { peer, comm, tag, bytes })
});
callback!(isend, (peer: u32, comm: u32, tag: u32, bytes: u64, request: u64), {
    Record::Isend(Message { peer, comm, tag, bytes }, request)
});
callback!(isend_complete, (request: u64), Record::IsendComplete(request));
callback!(request, (request: u64), Record::Request(request));
callback!(irecv, (peer: u32, comm: u32, tag: u32, bytes: u64, request: u64), {
    Record::Irecv(Message { peer, comm, tag, bytes }, request)
});
callback!(test, (_request: u64), Record::Test);
callback!(cancelled, (request: u64), Record::Cancelled(request));
callback!(collective_begin, (), Record::Nothing);
callback!(collective, (operation: u8, comm: u32, root: u32, sent: u64, received: u64), {
    Record::Collective(Collective { operation, comm, root, sent, received })
});
callback!(collective_complete, (operation: u8, comm: u32, root: u32, sent: u64, received: u64, request: u64), {
    Record::CollectiveComplete(Collective { operation, comm, root, sent, received }, request)
});
callback!(new_communicator, (comm: u32), Record::NewCommunicator(comm));
callback!(unknown, (), Record::Unknown);

fn event_callbacks<V: Visitor>() -> [(&'static str, Callback); 16] {
    macro_rules! pointer {
        ($callback:ident, $($more:ty),*) => {
            $callback::<V> as unsafe extern "C" fn(u64, u64, u64, Opaque, Opaque $(, $more)*) -> Code as Callback
        };
    }
    [
        ("Enter", pointer!(enter, u32)),
        ("Leave", pointer!(leave, u32)),
        ("MpiSend", pointer!(send, u32, u32, u32, u64)),
        ("MpiRecv", pointer!(receive, u32, u32, u32, u64)),
        ("MpiIsend", pointer!(isend, u32, u32, u32, u64, u64)),
        ("MpiIsendComplete", pointer!(isend_complete, u64)),
        ("MpiIrecvRequest", pointer!(request, u64)),
        ("MpiIrecv", pointer!(irecv, u32, u32, u32, u64, u64)),
        ("MpiRequestTest", pointer!(test, u64)),
        ("MpiRequestCancelled", pointer!(cancelled, u64)),
        ("MpiCollectiveBegin", pointer!(collective_begin,)),
        ("MpiCollectiveEnd", pointer!(collective, u8, u32, u32, u64, u64)),
        ("NonBlockingCollectiveRequest", pointer!(request, u64)),
        ("NonBlockingCollectiveComplete", pointer!(collective_complete, u8, u32, u32, u64, u64, u64)),
        ("CommCreate", pointer!(new_communicator, u32)),
        ("Unknown", pointer!(unknown,)),
    ]
}
