//! The functions of a recorded process: from the numbers in tokens to what modules describe.
//!
//! A module gets the numbers of its functions when it is registered, before any of them runs; a
//! process that began as a copy of another one also has that one's. Names are demangled when a
//! function is first met.
//!
//! Functions of the same name are the same function in an archive. A function that is compiled
//! into several modules (from a header, or static ones of the same name) may have other paths in
//! each: those that differ are variants, with a number in the names of their paths.

use hashbrown::HashMap;
use loopfold_paths::{Function, Module};
use std::borrow::Cow;
use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A module as it was registered.
#[derive(Debug)]
pub(super) struct Registered {
    first: u32,
    module: Module,
    names: Vec<OnceLock<Names>>,
}

/// How a function is called in events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Names {
    /// Demangled.
    pub(super) function: String,
    /// What the names of its paths begin with, without a line.
    file: String,
    /// 1, or more for a function of the same name and place with other paths.
    variant: usize,
}

/// A function of a registered module.
#[derive(Clone, Debug)]
pub(super) struct Known {
    registered: Arc<Registered>,
    index: usize,
}

/// All modules of a process.
#[derive(Debug, Default)]
pub(super) struct Modules {
    /// In the order of the first numbers.
    modules: Vec<Arc<Registered>>,
}

impl Modules {
    /// The modules that a copy of the process has whose own numbers begin here.
    pub(super) fn inherited(&self, before: u32) -> Self {
        Self { modules: self.modules.iter().filter(|module| module.first < before).cloned().collect() }
    }

    pub(super) fn add(&mut self, first: u32, module: Module) {
        let names = module.functions().iter().map(|_| OnceLock::new()).collect();
        let place = self.modules.partition_point(|module| module.first <= first);
        self.modules.insert(place, Arc::new(Registered { first, module, names }));
    }

    /// The function with this number. Returns `None` if its module is not registered.
    pub(super) fn get(&self, number: u32) -> Option<Known> {
        let place = self.modules.partition_point(|module| module.first <= number).checked_sub(1)?;
        let registered = Arc::clone(&self.modules[place]);
        let index = (number - registered.first) as usize;
        (index < registered.module.functions().len()).then_some(Known { registered, index })
    }
}

impl Known {
    pub(super) fn function(&self) -> &Function {
        &self.registered.module.functions()[self.index]
    }

    pub(super) fn names(&self, variants: &Variants) -> &Names {
        self.registered.names[self.index].get_or_init(|| Names::of(self.function(), variants))
    }
}

impl Names {
    fn of(function: &Function, variants: &Variants) -> Self {
        let file = Path::new(function.file()).file_name().map(|name| name.to_string_lossy().into_owned());
        Self {
            function: demangled(function.name()),
            file: file.unwrap_or_default(),
            variant: variants.number(function),
        }
    }

    /// The name of a path (`#`) or block (`.`).
    pub(super) fn path(&self, line: Option<u32>, mark: char, number: u32) -> String {
        let place = match line {
            Some(line) if !self.file.is_empty() => format!("{}:{line}", self.file),
            _ => self.function.clone(),
        };
        match self.variant {
            1 => format!("{place}{mark}{number}"),
            variant => format!("{place}{mark}{number}/{variant}"),
        }
    }
}

/// Which functions of the same name and place differ.
#[derive(Debug, Default)]
pub(super) struct Variants {
    hasher: RandomState,
    /// The fingerprints of those that were met, by name, file and line.
    known: Mutex<HashMap<(String, String, u32), Vec<u64>>>,
}

impl Variants {
    pub(super) fn number(&self, function: &Function) -> usize {
        let blocks: Vec<_> =
            function.numbering().graph().blocks().map(|block| function.block(block)).map(of_block).collect();
        let edges: Vec<_> = function.numbering().graph().edges().map(|edge| edge.to.index()).collect();
        let fingerprint = self.hasher.hash_one((blocks, edges, function.paths()));
        let key = (function.name().to_string(), function.file().to_string(), function.line());
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.entry(key).or_default();
        let place = known.iter().position(|&other| other == fingerprint).unwrap_or_else(|| {
            known.push(fingerprint);
            known.len() - 1
        });
        place + 1
    }
}

fn of_block(block: loopfold_paths::Block) -> [u32; 3] {
    [block.first_line, block.last_line, block.instructions]
}

/// A name as its source has it, if it is a C++ or Rust one.
fn demangled(name: &str) -> String {
    let is_mangled = name.starts_with("_Z") || name.starts_with("_R") || name.starts_with("__Z");
    match is_mangled {
        true => addr2line::demangle_auto(Cow::Borrowed(name), None).into_owned(),
        false => name.to_string(),
    }
}
