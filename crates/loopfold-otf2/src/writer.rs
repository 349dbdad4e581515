//! A safe interface to the part of the OTF2 library that writes archives.
//!
//! Functions that only writing needs are looked up when an archive is opened, so that reading works
//! with libraries that lack them. Arguments that version 3 added are passed to version 2 as well,
//! which does not look at them.
#![allow(unsafe_code)]

use crate::library::{Code, Library, Opaque, library};
use std::ffi::{CString, c_char};
use std::path::Path;

/// Declares the functions and how they are found.
macro_rules! functions {
    ($($field:ident = $symbol:literal ($($argument:ty),*) -> $result:ty;)*) => {
        struct Functions {
            $($field: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl Functions {
            fn find(library: &Library) -> Result<Self, String> {
                $(
                    // SAFETY: the types are those of the library's headers.
                    let $field = unsafe { library.function::<unsafe extern "C" fn($($argument),*) -> $result>($symbol) }
                        .ok_or_else(|| format!("the OTF2 library has no {}", $symbol))?;
                )*
                Ok(Self { $($field,)* })
            }
        }
    };
}

functions! {
    open = "OTF2_Archive_Open" (*const c_char, *const c_char, u32, u64, u64, u32, u32) -> Opaque;
    set_flush = "OTF2_Archive_SetFlushCallbacks" (Opaque, *const FlushCallbacks, Opaque) -> Code;
    set_serial = "OTF2_Archive_SetSerialCollectiveCallbacks" (Opaque) -> Code;
    set_creator = "OTF2_Archive_SetCreator" (Opaque, *const c_char) -> Code;
    close = "OTF2_Archive_Close" (Opaque) -> Code;
    open_events = "OTF2_Archive_OpenEvtFiles" (Opaque) -> Code;
    close_events = "OTF2_Archive_CloseEvtFiles" (Opaque) -> Code;
    open_definitions = "OTF2_Archive_OpenDefFiles" (Opaque) -> Code;
    close_definitions = "OTF2_Archive_CloseDefFiles" (Opaque) -> Code;
    event_writer = "OTF2_Archive_GetEvtWriter" (Opaque, u64) -> Opaque;
    close_event_writer = "OTF2_Archive_CloseEvtWriter" (Opaque, Opaque) -> Code;
    definition_writer = "OTF2_Archive_GetDefWriter" (Opaque, u64) -> Opaque;
    close_definition_writer = "OTF2_Archive_CloseDefWriter" (Opaque, Opaque) -> Code;
    global_writer = "OTF2_Archive_GetGlobalDefWriter" (Opaque) -> Opaque;
    close_global_writer = "OTF2_Archive_CloseGlobalDefWriter" (Opaque, Opaque) -> Code;
    enter = "OTF2_EvtWriter_Enter" (Opaque, Opaque, u64, u32) -> Code;
    leave = "OTF2_EvtWriter_Leave" (Opaque, Opaque, u64, u32) -> Code;
    send = "OTF2_EvtWriter_MpiSend" (Opaque, Opaque, u64, u32, u32, u32, u64) -> Code;
    receive = "OTF2_EvtWriter_MpiRecv" (Opaque, Opaque, u64, u32, u32, u32, u64) -> Code;
    isend = "OTF2_EvtWriter_MpiIsend" (Opaque, Opaque, u64, u32, u32, u32, u64, u64) -> Code;
    isend_complete = "OTF2_EvtWriter_MpiIsendComplete" (Opaque, Opaque, u64, u64) -> Code;
    irecv_request = "OTF2_EvtWriter_MpiIrecvRequest" (Opaque, Opaque, u64, u64) -> Code;
    irecv = "OTF2_EvtWriter_MpiIrecv" (Opaque, Opaque, u64, u32, u32, u32, u64, u64) -> Code;
    collective_begin = "OTF2_EvtWriter_MpiCollectiveBegin" (Opaque, Opaque, u64) -> Code;
    collective_end = "OTF2_EvtWriter_MpiCollectiveEnd" (Opaque, Opaque, u64, u32, u32, u32, u64, u64) -> Code;
    count = "OTF2_EvtWriter_GetNumberOfEvents" (Opaque, *mut u64) -> Code;
    clock = "OTF2_GlobalDefWriter_WriteClockProperties" (Opaque, u64, u64, u64, u64) -> Code;
    string = "OTF2_GlobalDefWriter_WriteString" (Opaque, u32, *const c_char) -> Code;
    paradigm = "OTF2_GlobalDefWriter_WriteParadigm" (Opaque, u32, u32, u32) -> Code;
    node = "OTF2_GlobalDefWriter_WriteSystemTreeNode" (Opaque, u32, u32, u32, u32) -> Code;
    region = "OTF2_GlobalDefWriter_WriteRegion" (Opaque, u32, u32, u32, u32, u32, u32, u32, u32, u32, u32) -> Code;
    location_group = "OTF2_GlobalDefWriter_WriteLocationGroup" (Opaque, u32, u32, u32, u32, u32) -> Code;
    location = "OTF2_GlobalDefWriter_WriteLocation" (Opaque, u64, u32, u32, u64, u32) -> Code;
    group = "OTF2_GlobalDefWriter_WriteGroup" (Opaque, u32, u32, u32, u32, u32, u32, *const u64) -> Code;
    comm = "OTF2_GlobalDefWriter_WriteComm" (Opaque, u32, u32, u32, u32, u32) -> Code;
}

#[repr(C)]
struct FlushCallbacks {
    before: unsafe extern "C" fn(Opaque, u8, u64, Opaque, bool) -> u8,
    after: Option<unsafe extern "C" fn(Opaque, u8, u64) -> u64>,
}

/// Full buffers are written.
unsafe extern "C" fn flush(_: Opaque, _: u8, _: u64, _: Opaque, _: bool) -> u8 {
    1
}

static FLUSH: FlushCallbacks = FlushCallbacks { before: flush, after: None };

const WRITE: u32 = 0;
const POSIX: u32 = 1;
const UNCOMPRESSED: u32 = 1;
const UNDEFINED: u32 = u32::MAX;
const MPI: u32 = 4;
const USER: u32 = 1;
const PROCESS: u32 = 1;
const CPU_THREAD: u32 = 1;
const COMM_LOCATIONS: u32 = 4;
const COMM_GROUP: u32 = 5;

/// A region of the archive.
pub(crate) struct Region<'a> {
    pub(crate) name: &'a str,
    pub(crate) role: u32,
    pub(crate) is_mpi: bool,
}

/// Something that happens at a location.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Record {
    Enter(u32),
    Leave(u32),
    Send(Envelope),
    Receive(Envelope),
    Isend(Envelope, u64),
    IsendComplete(u64),
    IrecvRequest(u64),
    Irecv(Envelope, u64),
    CollectiveBegin,
    CollectiveEnd { operation: u32, comm: u32, root: Option<u32>, sent: u64, received: u64 },
}

/// A message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Envelope {
    pub(crate) peer: u32,
    pub(crate) comm: u32,
    pub(crate) tag: u32,
    pub(crate) bytes: u64,
}

/// An archive that is being written. It is not closed if that fails on the way.
pub(crate) struct Writer {
    library: &'static Library,
    functions: Functions,
    archive: Opaque,
}

type Outcome<T> = Result<T, String>;

fn text(text: &str) -> Outcome<CString> {
    CString::new(text.replace('\0', " ")).map_err(|error| error.to_string())
}

impl Writer {
    /// Begins an archive in a folder that does not exist yet.
    pub(crate) fn create(folder: &Path) -> Outcome<Self> {
        let library = library().map_err(|error| error.to_string())?;
        let functions = Functions::find(library)?;
        let (path, name) = (text(&folder.to_string_lossy())?, text("traces")?);
        // SAFETY: both texts live through the call.
        let archive = unsafe {
            (functions.open)(path.as_ptr(), name.as_ptr(), WRITE, 1 << 20, 4 << 20, POSIX, UNCOMPRESSED)
        };
        let archive = library.object(archive)?;
        let writer = Self { library, functions, archive };
        let creator = text(concat!("loopfold ", env!("CARGO_PKG_VERSION")))?;
        // SAFETY: the archive is open; the callbacks live as long as the program.
        unsafe {
            writer.check((writer.functions.set_flush)(archive, &raw const FLUSH, std::ptr::null_mut()))?;
            writer.check((writer.functions.set_serial)(archive))?;
            writer.check((writer.functions.set_creator)(archive, creator.as_ptr()))?;
            writer.check((writer.functions.open_events)(archive))?;
        }
        Ok(writer)
    }

    fn check(&self, code: Code) -> Outcome<()> {
        self.library.check(code)
    }

    /// Writes the records of a location, which come from `records`, and returns how many there are.
    pub(crate) fn location(
        &self,
        location: u64,
        records: impl FnOnce(&mut dyn FnMut(u64, Record) -> Outcome<()>) -> Outcome<()>,
    ) -> Outcome<u64> {
        // SAFETY: the archive is open, and its event files are.
        let writer = self.library.object(unsafe { (self.functions.event_writer)(self.archive, location) })?;
        records(&mut |time, record| self.put(writer, time, record))?;
        let mut count = 0;
        // SAFETY: the writer is open, and closed once.
        unsafe {
            self.check((self.functions.count)(writer, &raw mut count))?;
            self.check((self.functions.close_event_writer)(self.archive, writer))?;
        }
        Ok(count)
    }

    fn put(&self, writer: Opaque, time: u64, record: Record) -> Outcome<()> {
        let (f, none) = (&self.functions, std::ptr::null_mut());
        // SAFETY: the writer is open; no attributes are given.
        let code = unsafe {
            match record {
                Record::Enter(region) => (f.enter)(writer, none, time, region),
                Record::Leave(region) => (f.leave)(writer, none, time, region),
                Record::Send(m) => (f.send)(writer, none, time, m.peer, m.comm, m.tag, m.bytes),
                Record::Receive(m) => (f.receive)(writer, none, time, m.peer, m.comm, m.tag, m.bytes),
                Record::Isend(m, request) => {
                    (f.isend)(writer, none, time, m.peer, m.comm, m.tag, m.bytes, request)
                }
                Record::IsendComplete(request) => (f.isend_complete)(writer, none, time, request),
                Record::IrecvRequest(request) => (f.irecv_request)(writer, none, time, request),
                Record::Irecv(m, request) => {
                    (f.irecv)(writer, none, time, m.peer, m.comm, m.tag, m.bytes, request)
                }
                Record::CollectiveBegin => (f.collective_begin)(writer, none, time),
                Record::CollectiveEnd { operation, comm, root, sent, received } => {
                    let root = root.unwrap_or(UNDEFINED);
                    (f.collective_end)(writer, none, time, operation, comm, root, sent, received)
                }
            }
        };
        self.check(code)
    }

    /// Writes the definitions and closes the archive: locations with their names, processes and
    /// counts, in order; regions; communicators by name, as ranks of the world. `end` is the last
    /// time, in nanoseconds.
    pub(crate) fn finish(
        self,
        end: u64,
        locations: &[(String, u32, u64)],
        regions: &[Region<'_>],
        comms: &[(String, Vec<u32>)],
    ) -> Outcome<()> {
        let f = &self.functions;
        // SAFETY: the archive is open, and what is opened here is closed here.
        unsafe {
            self.check((f.close_events)(self.archive))?;
            self.check((f.open_definitions)(self.archive))?;
            for location in 0..locations.len() as u64 {
                let writer = self.library.object((f.definition_writer)(self.archive, location))?;
                self.check((f.close_definition_writer)(self.archive, writer))?;
            }
            self.check((f.close_definitions)(self.archive))?;
        }
        // SAFETY: the archive is open.
        let global = self.library.object(unsafe { (f.global_writer)(self.archive) })?;
        let mut definitions = Definitions { writer: &self, global, strings: 0 };
        definitions.write(end, locations, regions, comms)?;
        // SAFETY: the writer is open; the archive is not used any more.
        unsafe {
            self.check((f.close_global_writer)(self.archive, global))?;
            self.check((f.close)(self.archive))
        }
    }
}

struct Definitions<'a> {
    writer: &'a Writer,
    global: Opaque,
    strings: u32,
}

impl Definitions<'_> {
    fn string(&mut self, value: &str) -> Outcome<u32> {
        let value = text(value)?;
        self.strings += 1;
        // SAFETY: the writer is open, and the text lives through the call.
        let code = unsafe { (self.writer.functions.string)(self.global, self.strings - 1, value.as_ptr()) };
        self.writer.check(code).map(|()| self.strings - 1)
    }

    fn write(
        &mut self,
        end: u64,
        locations: &[(String, u32, u64)],
        regions: &[Region<'_>],
        comms: &[(String, Vec<u32>)],
    ) -> Outcome<()> {
        let (writer, global) = (self.writer, self.global);
        let (f, check) = (&writer.functions, |code| writer.check(code));
        let [empty, mpi, machine, class] = ["", "MPI", "machine", "machine"].map(|name| self.string(name));
        let (empty, mpi, machine, class) = (empty?, mpi?, machine?, class?);
        // SAFETY: here and below the writer is open and numbers are those of definitions before.
        unsafe {
            check((f.clock)(global, 1_000_000_000, 0, end + 1, u64::MAX))?;
            check((f.paradigm)(global, MPI, mpi, 0))?;
            check((f.node)(global, 0, machine, class, UNDEFINED))?;
        }
        for (number, region) in (0..).zip(regions) {
            let name = self.string(region.name)?;
            let paradigm = if region.is_mpi { MPI } else { USER };
            // SAFETY: as above.
            check(unsafe {
                (f.region)(global, number, name, name, empty, region.role, paradigm, 0, empty, 0, 0)
            })?;
        }
        let processes = locations.iter().map(|&(_, rank, _)| rank + 1).max().unwrap_or(0);
        for rank in 0..processes {
            let name = self.string(&format!("MPI Rank {rank}"))?;
            // SAFETY: as above.
            check(unsafe { (f.location_group)(global, rank, name, PROCESS, 0, UNDEFINED) })?;
        }
        for (number, (name, rank, count)) in (0..).zip(locations) {
            let name = self.string(name)?;
            // SAFETY: as above.
            check(unsafe { (f.location)(global, number, name, CPU_THREAD, *count, *rank) })?;
        }
        // The first location of each process stands for it.
        let first = |rank: u32| locations.iter().position(|location| location.1 == rank).unwrap_or(0) as u64;
        let masters: Vec<u64> = (0..processes).map(first).collect();
        // SAFETY: as above; the list is as long as it says.
        check(unsafe {
            (f.group)(global, 0, empty, COMM_LOCATIONS, MPI, 0, masters.len() as u32, masters.as_ptr())
        })?;
        for (number, (name, ranks)) in (0..).zip(comms) {
            let name = self.string(name)?;
            let members: Vec<u64> = ranks.iter().map(|&rank| rank.into()).collect();
            // SAFETY: as above.
            unsafe {
                let count = members.len() as u32;
                check((f.group)(global, number + 1, empty, COMM_GROUP, MPI, 0, count, members.as_ptr()))?;
                check((f.comm)(global, number, name, number + 1, UNDEFINED, 0))?;
            }
        }
        Ok(())
    }
}
