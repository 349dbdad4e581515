//! Loads the OTF2 library at run time: declares the functions that are used, and keeps the messages
//! of failures.
//!
//! Versions 2 and 3 differ in two definitions that have an argument more in version 3.
//! Callbacks take the arguments of version 2: a caller that passes more is fine in the
//! calling conventions of C on all systems that OTF2 runs on.
//!
//! Loading happens once in a process; after that a call costs what a call in C costs.
#![allow(unsafe_code)]

use libloading::Library as Handle;
use loopfold_sources::{Error, Result};
use std::cell::RefCell;
use std::ffi::{CStr, OsString, c_char, c_int, c_void};
use std::sync::OnceLock;

/// The variable that names a library to load instead of the usual ones.
pub(crate) const VARIABLE: &str = "LOOPFOLD_OTF2_LIB";

/// The names that are tried, in this order: Debian's, then others'. The
/// numbers are those of versions 3 and 2; the last names need a development package.
const NAMES: [&str; 7] = [
    "libopen-trace-format2.so.10",
    "libotf2.so.10",
    "libotf2.so.9",
    "libotf2.so.8",
    "libotf2.so.7",
    "libotf2.so",
    "libopen-trace-format2.so",
];

/// Whatever the library allocates and only it knows.
pub(crate) type Opaque = *mut c_void;
/// A callback of any type, in the form in which it is handed over.
pub(crate) type Callback = *const c_void;
/// 0 is success.
pub(crate) type Code = c_int;

/// Declares the functions and how they are found.
macro_rules! functions {
    ($($field:ident = $symbol:literal ($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions that every version has.
        pub(crate) struct Functions {
            $(pub(crate) $field: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Functions {
            /// # Safety
            /// The handle must be that of an OTF2 library, and stay open.
            unsafe fn find(handle: &Handle) -> Result<Self, libloading::Error> {
                Ok(Self {
                    // SAFETY: the types are those of the library's headers.
                    $($field: *unsafe { handle.get(concat!($symbol, "\0"))? },)*
                })
            }
        }
    };
}

functions! {
    open = "OTF2_Reader_Open" (*const c_char) -> Opaque;
    close = "OTF2_Reader_Close" (Opaque) -> Code;
    chunk_size = "OTF2_Reader_GetChunkSize" (Opaque, *mut u64, *mut u64) -> Code;
    global_definitions = "OTF2_Reader_GetGlobalDefReader" (Opaque) -> Opaque;
    register_global = "OTF2_Reader_RegisterGlobalDefCallbacks" (Opaque, Opaque, Opaque, Opaque) -> Code;
    read_global = "OTF2_Reader_ReadAllGlobalDefinitions" (Opaque, Opaque, *mut u64) -> Code;
    close_global = "OTF2_Reader_CloseGlobalDefReader" (Opaque, Opaque) -> Code;
    select = "OTF2_Reader_SelectLocation" (Opaque, u64) -> Code;
    open_definition_files = "OTF2_Reader_OpenDefFiles" (Opaque) -> Code;
    close_definition_files = "OTF2_Reader_CloseDefFiles" (Opaque) -> Code;
    local_definitions = "OTF2_Reader_GetDefReader" (Opaque, u64) -> Opaque;
    read_local = "OTF2_Reader_ReadAllLocalDefinitions" (Opaque, Opaque, *mut u64) -> Code;
    close_local = "OTF2_Reader_CloseDefReader" (Opaque, Opaque) -> Code;
    open_event_files = "OTF2_Reader_OpenEvtFiles" (Opaque) -> Code;
    close_event_files = "OTF2_Reader_CloseEvtFiles" (Opaque) -> Code;
    events = "OTF2_Reader_GetEvtReader" (Opaque, u64) -> Opaque;
    register_events = "OTF2_Reader_RegisterEvtCallbacks" (Opaque, Opaque, Opaque, Opaque) -> Code;
    read_events = "OTF2_Reader_ReadLocalEvents" (Opaque, Opaque, u64, *mut u64) -> Code;
    close_events = "OTF2_Reader_CloseEvtReader" (Opaque, Opaque) -> Code;
    new_global_callbacks = "OTF2_GlobalDefReaderCallbacks_New" () -> Opaque;
    delete_global_callbacks = "OTF2_GlobalDefReaderCallbacks_Delete" (Opaque);
    new_event_callbacks = "OTF2_EvtReaderCallbacks_New" () -> Opaque;
    delete_event_callbacks = "OTF2_EvtReaderCallbacks_Delete" (Opaque);
    register_errors = "OTF2_Error_RegisterCallback" (Callback, Opaque) -> Callback;
    describe_error = "OTF2_Error_GetDescription" (Code) -> *const c_char;
}

/// The library.
pub(crate) struct Library {
    pub(crate) functions: Functions,
    handle: Handle,
}

/// The library of this process, loaded when it is first asked for.
pub(crate) fn library() -> Result<&'static Library> {
    static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();
    LIBRARY.get_or_init(|| Library::find(std::env::var_os(VARIABLE))).as_ref().map_err(Error::option)
}

impl Library {
    fn find(named: Option<OsString>) -> Result<Self, String> {
        if let Some(name) = named {
            let shown = name.to_string_lossy();
            return Self::load(&name).map_err(|error| {
                format!("the OTF2 library {shown}, which {VARIABLE} names: {}", why(&error))
            });
        }
        let mut first = None;
        for name in NAMES {
            match Self::load(name.as_ref()) {
                Ok(library) => return Ok(library),
                Err(error) => first = first.or(Some(error)),
            }
        }
        let reason = first.as_ref().map(why).unwrap_or_default();
        Err(format!(
            "reading OTF2 needs the OTF2 library; install libopen-trace-format2-10 (Debian, Ubuntu), load your \
             site's module, or name the file with {VARIABLE} ({reason})"
        ))
    }

    fn load(name: &std::ffi::OsStr) -> Result<Self, libloading::Error> {
        // SAFETY: the initialisers of the OTF2 library do nothing that touches this process;
        // a library of another kind that the user names lacks the functions.
        let handle = unsafe { Handle::new(name)? };
        // SAFETY: a library with all these names is the OTF2 library; the handle is kept.
        let functions = unsafe { Functions::find(&handle)? };
        let report: ErrorCallback = note_error;
        // SAFETY: the callback has the library's type and lives as long as the process.
        unsafe { (functions.register_errors)(report as Callback, std::ptr::null_mut()) };
        Ok(Self { functions, handle })
    }

    /// The function that sets a callback. Returns `None` if this version has no such records.
    pub(crate) fn setter(&self, symbol: &str) -> Option<unsafe extern "C" fn(Opaque, Callback) -> Code> {
        // SAFETY: all functions of this name pattern have this type; the handle stays open.
        unsafe { self.handle.get(symbol.as_bytes()).ok().map(|found| *found) }
    }

    /// Any other function.
    ///
    /// # Safety
    /// The type must be that of the function of this name.
    pub(crate) unsafe fn function<F: Copy>(&self, symbol: &str) -> Option<F> {
        // SAFETY: the caller's promise; the handle stays open.
        unsafe { self.handle.get(symbol.as_bytes()).ok().map(|found| *found) }
    }

    /// `Ok`, or why the last call failed: the library's message, or the meaning of its code.
    pub(crate) fn check(&self, code: Code) -> Result<(), String> {
        let said = SAID.take();
        if code == 0 {
            Ok(())
        } else {
            Err(said.map_or_else(|| self.meaning(code), |said| self.message(said)))
        }
    }

    /// The object that the last call gave, or why it gave none.
    pub(crate) fn object(&self, pointer: Opaque) -> Result<Opaque, String> {
        let said = SAID.take();
        if !pointer.is_null() {
            return Ok(pointer);
        }
        Err(said.map_or_else(|| "it cannot be read".to_string(), |said| self.message(said)))
    }

    /// The library's message, with the meaning of its code.
    fn message(&self, (code, text): (Code, String)) -> String {
        // The text of a system failure only has the place where it happened.
        let text = text.strip_prefix("POSIX: ").unwrap_or(&text);
        format!("{}: {text}", self.meaning(code))
    }

    fn meaning(&self, code: Code) -> String {
        // SAFETY: the library answers any code with a static text or nothing.
        let text = unsafe { (self.functions.describe_error)(code) };
        // SAFETY: as above.
        unsafe { text_at(text) }.unwrap_or_else(|| format!("error {code}"))
    }
}

/// Why a library cannot be loaded, as the system says it.
fn why(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

/// # Safety
/// The pointer is null or that of a text that ends in NUL.
unsafe fn text_at(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

thread_local! {
    /// The first message of the library in this thread since the last check. Later ones only show
    /// how the failure propagated through the library.
    static SAID: RefCell<Option<(Code, String)>> = const { RefCell::new(None) };
}

/// The arguments of a message come as a `va_list`, which on all systems that OTF2 runs on
/// is passed as a pointer or in the size of one.
type ErrorCallback =
    unsafe extern "C" fn(Opaque, *const c_char, u64, *const c_char, Code, *const c_char, Opaque) -> Code;

unsafe extern "C" {
    fn vsnprintf(buffer: *mut c_char, size: usize, format: *const c_char, arguments: Opaque) -> c_int;
}

/// Keeps what the library would print to standard error.
unsafe extern "C" fn note_error(
    _: Opaque,
    _file: *const c_char,
    _line: u64,
    _function: *const c_char,
    code: Code,
    format: *const c_char,
    arguments: Opaque,
) -> Code {
    let _ = std::panic::catch_unwind(|| {
        if format.is_null() || SAID.with_borrow(Option::is_some) {
            return;
        }
        let mut buffer = [0u8; 512];
        // SAFETY: the library passes arguments that fit the format; the length is that of the
        // buffer, and vsnprintf ends it with NUL.
        unsafe { vsnprintf(buffer.as_mut_ptr().cast(), buffer.len(), format, arguments) };
        if let Ok(text) = CStr::from_bytes_until_nul(&buffer)
            && !text.is_empty()
        {
            SAID.set(Some((code, text.to_string_lossy().into_owned())));
        }
    });
    code
}
