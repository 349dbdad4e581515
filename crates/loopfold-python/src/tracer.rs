//! Traces Python code: functions that are entered and left, lines, and calls into C.
//!
//! It is what `sys.setprofile` and `sys.settrace` call, or `sys.monitoring` from Python 3.12 on. An
//! entry is an event with the fields of a trace of calls (the caller), so that paths of functions can be
//! found. Each code object and each C function gets its symbols once, and is kept, so that no other can
//! get its address; an event then costs two look-ups and a push.

use crate::asker::Native;
use crate::recorder::folding;
use crate::{errors, work};
use hashbrown::HashMap;
use loopfold::folders::Folding;
use loopfold::trace::{Event, Field, Name, Role, Sink as _, Timing, Value};
use loopfold::{StreamId, Symbol};
use loopfold_cli::Progress;
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Instant;

/// What the interpreter reports.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Call,
    Return,
    Line,
    CCall,
    Other,
}

/// The number of a code object.
type Code = u32;

/// A code object that was seen.
struct Known {
    /// Empty if it is not to be traced.
    name: String,
    file: String,
    leave: Option<Symbol>,
    /// Keeps its address.
    _object: Py<PyAny>,
}

struct Thread {
    stream: StreamId,
    /// The functions that are open.
    open: Vec<Code>,
}

struct State {
    folding: Folding,
    by_address: HashMap<usize, Code>,
    codes: Vec<Known>,
    entries: HashMap<(Option<Code>, Code), Symbol>,
    lines: HashMap<(Code, u64), Symbol>,
    functions: HashMap<String, Symbol>,
    threads: HashMap<ThreadId, Thread>,
    /// The texts that the interpreter calls its events by.
    kinds: Vec<(usize, Kind, Py<PyAny>)>,
    started: Instant,
    events: u64,
}

/// Traces Python code.
#[pyclass(frozen, module = "loopfold._native")]
pub(crate) struct NativeTracer {
    state: Mutex<Option<State>>,
    /// Code of files in this directory is left out.
    own: String,
    functions: bool,
    lines: bool,
    c: bool,
    times: bool,
}

impl NativeTracer {
    fn state(&self) -> MutexGuard<'_, Option<State>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn timing(&self, state: &State) -> Timing<'static> {
        let now = || i64::try_from(state.started.elapsed().as_nanos()).ok();
        Timing { start: if self.times { now() } else { None }, ..Timing::UNKNOWN }
    }

    fn handle(&self, kind: Kind, code: &Bound<'_, PyAny>, detail: &Detail<'_, '_>) -> PyResult<()> {
        let mut guard = self.state();
        let Some(state) = guard.as_mut() else { return Ok(()) };
        let code = state.code(code, &self.own)?;
        let is_own = state.codes[code as usize].name.is_empty();
        let symbol = match kind {
            _ if is_own => None,
            Kind::Call if self.functions => Some(state.enter(code)?),
            Kind::Return if self.functions => state.leave(code)?,
            Kind::Line if self.lines => match detail {
                Detail::Line(line) => Some(state.line(code, *line)?),
                Detail::Function(_) | Detail::Nothing => None,
            },
            Kind::CCall if self.c => match detail {
                Detail::Function(function) => state.c_function(function)?,
                Detail::Line(_) | Detail::Nothing => None,
            },
            _ => None,
        };
        let Some(symbol) = symbol else { return Ok(()) };
        let timing = self.timing(state);
        let stream = state.thread()?.stream;
        state.folding.push(stream, symbol, timing).map_err(errors::of_library)?;
        state.events += 1;
        Ok(())
    }
}

enum Detail<'a, 'py> {
    Nothing,
    Line(u64),
    Function(&'a Bound<'py, PyAny>),
}

impl State {
    fn code(&mut self, code: &Bound<'_, PyAny>, own: &str) -> PyResult<Code> {
        let address = code.as_ptr() as usize;
        if let Some(&known) = self.by_address.get(&address) {
            return Ok(known);
        }
        let py = code.py();
        let file: String = code.getattr(intern!(py, "co_filename"))?.extract()?;
        let name = code
            .getattr(intern!(py, "co_qualname"))
            .or_else(|_| code.getattr(intern!(py, "co_name")))?
            .extract::<String>()?;
        let name = if file.starts_with(own) { String::new() } else { name };
        let number = Code::try_from(self.codes.len())?;
        self.codes.push(Known { name, file, leave: None, _object: code.clone().unbind() });
        self.by_address.insert(address, number);
        Ok(number)
    }

    fn thread(&mut self) -> PyResult<&mut Thread> {
        let id = std::thread::current().id();
        if !self.threads.contains_key(&id) {
            let name = match self.threads.len() {
                0 => "main".to_string(),
                number => format!("thread {number}"),
            };
            let stream = self.folding.stream(&name).map_err(errors::of_library)?;
            self.folding.describe(stream, "format", "python").map_err(errors::of_library)?;
            self.threads.insert(id, Thread { stream, open: Vec::new() });
        }
        self.threads.get_mut(&id).ok_or_else(|| PyValueError::new_err("no thread"))
    }

    fn enter(&mut self, code: Code) -> PyResult<Symbol> {
        let thread = self.thread()?;
        let caller = thread.open.last().copied();
        thread.open.push(code);
        if let Some(&symbol) = self.entries.get(&(caller, code)) {
            return Ok(symbol);
        }
        let name = &self.codes[code as usize].name;
        let fields = caller.map(|caller| {
            let value = Value::Text(self.codes[caller as usize].name.as_bytes());
            Field { key: "caller", value }
        });
        let event = Event { name: Name::Text(name.as_bytes()), role: Role::Enter, fields: fields.as_slice() };
        let symbol = self.folding.intern(&event).map_err(errors::of_library)?;
        self.entries.insert((caller, code), symbol);
        Ok(symbol)
    }

    /// Returns `None` for a function that was entered before tracing began.
    fn leave(&mut self, code: Code) -> PyResult<Option<Symbol>> {
        let thread = self.thread()?;
        if thread.open.pop_if(|open| *open == code).is_none() {
            return Ok(None);
        }
        let known = &self.codes[code as usize];
        if let Some(symbol) = known.leave {
            return Ok(Some(symbol));
        }
        let name = known.name.as_bytes();
        let fields = [Field { key: "function", value: Value::Text(name) }];
        let event = Event { name: Name::Text(name), role: Role::Leave, fields: &fields };
        let symbol = self.folding.intern(&event).map_err(errors::of_library)?;
        self.codes[code as usize].leave = Some(symbol);
        Ok(Some(symbol))
    }

    fn line(&mut self, code: Code, line: u64) -> PyResult<Symbol> {
        if let Some(&symbol) = self.lines.get(&(code, line)) {
            return Ok(symbol);
        }
        let file = &self.codes[code as usize].file;
        let base = file.rsplit(['/', '\\']).next().unwrap_or(file);
        let name = format!("{base}:{line}");
        let symbol = self.folding.intern(&Event::named(name.as_str())).map_err(errors::of_library)?;
        self.lines.insert((code, line), symbol);
        Ok(symbol)
    }

    /// A bound method is another object at each call, so C functions are known by name. Returns `None`
    /// for what ends tracing.
    fn c_function(&mut self, function: &Bound<'_, PyAny>) -> PyResult<Option<Symbol>> {
        let py = function.py();
        let text =
            |key: &Bound<'_, PyString>| -> Option<String> { function.getattr(key).ok()?.extract().ok() };
        let Some(name) = text(intern!(py, "__qualname__")) else { return Ok(None) };
        if ["setprofile", "settrace"].contains(&name.as_str()) {
            return Ok(None);
        }
        if let Some(&symbol) = self.functions.get(&name) {
            return Ok(Some(symbol));
        }
        let module = text(intern!(py, "__module__")).filter(|module| module != "builtins");
        let whole = module.map_or_else(|| name.clone(), |module| format!("{module}.{name}"));
        let symbol = self.folding.intern(&Event::named(whole.as_str())).map_err(errors::of_library)?;
        self.functions.insert(name, symbol);
        Ok(Some(symbol))
    }

    fn kind(&mut self, event: &Bound<'_, PyAny>) -> Kind {
        let address = event.as_ptr() as usize;
        if let Some(&(_, kind, _)) = self.kinds.iter().find(|(known, ..)| *known == address) {
            return kind;
        }
        let kind = match event.extract::<String>().as_deref() {
            Ok("call") => Kind::Call,
            Ok("return") => Kind::Return,
            Ok("line") => Kind::Line,
            Ok("c_call") => Kind::CCall,
            _ => Kind::Other,
        };
        // The interpreter has one text for each; whoever calls us otherwise must not fill the list.
        if self.kinds.len() < 16 {
            self.kinds.push((address, kind, event.clone().unbind()));
        }
        kind
    }
}

#[pymethods]
impl NativeTracer {
    #[new]
    fn new(
        folder: &str,
        threads: Option<usize>,
        own: String,
        chosen: (bool, bool, bool, bool),
    ) -> PyResult<Self> {
        let (functions, lines, c, times) = chosen;
        let state = State {
            folding: folding(folder, threads)?,
            by_address: HashMap::new(),
            codes: Vec::new(),
            entries: HashMap::new(),
            lines: HashMap::new(),
            functions: HashMap::new(),
            threads: HashMap::new(),
            kinds: Vec::new(),
            started: Instant::now(),
            events: 0,
        };
        Ok(Self { state: Mutex::new(Some(state)), own, functions, lines, c, times })
    }

    /// For `sys.setprofile` and `sys.settrace`.
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        frame: &Bound<'py, PyAny>,
        event: &Bound<'py, PyAny>,
        arg: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, Self>> {
        let py = slf.py();
        let tracer = slf.get();
        let kind = match tracer.state().as_mut() {
            Some(state) => state.kind(event),
            None => return Ok(slf.clone()),
        };
        if kind == Kind::Other || kind == Kind::CCall && !tracer.c {
            return Ok(slf.clone());
        }
        let code = frame.getattr(intern!(py, "f_code"))?;
        let line: u64 = match kind {
            Kind::Line => frame.getattr(intern!(py, "f_lineno"))?.extract()?,
            _ => 0,
        };
        let detail = match kind {
            Kind::Line => Detail::Line(line),
            Kind::CCall => Detail::Function(arg),
            _ => Detail::Nothing,
        };
        tracer.handle(kind, &code, &detail)?;
        Ok(slf.clone())
    }

    /// For `sys.monitoring`: `PY_START` and `PY_RESUME`.
    fn on_start(&self, code: &Bound<'_, PyAny>, _offset: &Bound<'_, PyAny>) -> PyResult<()> {
        self.handle(Kind::Call, code, &Detail::Nothing)
    }

    /// `PY_RETURN`, `PY_YIELD` and `PY_UNWIND`.
    fn on_return(
        &self,
        code: &Bound<'_, PyAny>,
        _offset: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.handle(Kind::Return, code, &Detail::Nothing)
    }

    /// `LINE`.
    fn on_line(&self, code: &Bound<'_, PyAny>, line: u64) -> PyResult<()> {
        self.handle(Kind::Line, code, &Detail::Line(line))
    }

    /// `CALL`, of which those of functions written in Python are left out.
    fn on_call(
        &self,
        code: &Bound<'_, PyAny>,
        _offset: &Bound<'_, PyAny>,
        function: &Bound<'_, PyAny>,
        _first: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if function.hasattr(intern!(code.py(), "__code__"))? {
            return Ok(());
        }
        self.handle(Kind::CCall, code, &Detail::Function(function))
    }

    /// Events so far.
    #[getter]
    fn events(&self) -> u64 {
        self.state().as_ref().map_or(0, |state| state.events)
    }

    /// The fold of all events.
    #[pyo3(signature = (report=None))]
    fn finish(&self, py: Python<'_>, report: Option<&Bound<'_, PyAny>>) -> PyResult<Native> {
        let state = self.state().take();
        let state = state.ok_or_else(|| PyValueError::new_err("tracing has ended"))?;
        let progress = Arc::new(Progress::default());
        progress.begin("folding", None);
        let fold =
            work::run(py, report, &progress, move || state.folding.finish().map_err(errors::of_library))?;
        Ok(Native::of_fold(fold))
    }
}
