//! Names the places in a program that call MPI: from a return address to the function, the file
//! and the line.
//!
//! Where a module is in memory is read from the process while it runs, when an address is first
//! seen; debugging information is read from the module's file. An address that has none is given
//! by its module and its offset there. Each address is looked up once.

use addr2line::Loader;
use hashbrown::HashMap;
use std::path::Path;

/// The places of a process.
pub(crate) struct Sites {
    process: u32,
    modules: Vec<Module>,
    loaders: HashMap<String, Option<Loader>>,
    names: HashMap<u64, String>,
}

impl std::fmt::Debug for Sites {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sites").field("process", &self.process).finish_non_exhaustive()
    }
}

/// A part of a file that is mapped.
#[derive(Clone, Debug)]
struct Module {
    start: u64,
    end: u64,
    /// The first address of the file in memory.
    base: u64,
    path: String,
}

impl Sites {
    pub(crate) fn new(process: u32) -> Self {
        Self { process, modules: Vec::new(), loaders: HashMap::new(), names: HashMap::new() }
    }

    /// The place that a call returns to.
    pub(crate) fn name(&mut self, address: u64) -> String {
        if let Some(known) = self.names.get(&address) {
            return known.clone();
        }
        let name = self.find(address);
        self.names.insert(address, name.clone());
        name
    }

    fn find(&mut self, address: u64) -> String {
        let is_in = |module: &&Module| (module.start..module.end).contains(&address);
        if !self.modules.iter().any(|module| is_in(&module)) {
            self.modules = modules_of(self.process);
        }
        let Some(module) = self.modules.iter().find(is_in).cloned() else {
            return format!("{address:#x}");
        };
        // The call lies before the address that it returns to.
        let offset = address - module.base;
        let loader = self.loaders.entry_ref(&module.path).or_insert_with(|| Loader::new(&module.path).ok());
        let file = |path: &str| {
            Path::new(path).file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
        };
        let Some(loader) = loader else { return format!("{}+{offset:#x}", file(&module.path)) };
        // Of a program that is not relocated addresses are those of the file.
        let candidates = [offset, address].map(|place| place.saturating_sub(1));
        for place in candidates {
            let line = loader.find_location(place).ok().flatten();
            let mut function = None;
            if let Ok(mut frames) = loader.find_frames(place)
                && let Ok(Some(frame)) = frames.next()
            {
                function = frame.function.and_then(|name| name.demangle().ok().map(|name| name.into_owned()));
            }
            let function = function.or_else(|| loader.find_symbol(place).map(str::to_string));
            let line = line.and_then(|at| Some(format!("{}:{}", file(at.file?), at.line?)));
            match (function, line) {
                (Some(function), Some(line)) => return format!("{function} ({line})"),
                (Some(function), None) => return format!("{function} ({}+{offset:#x})", file(&module.path)),
                (None, Some(line)) => return line,
                (None, None) => {}
            }
        }
        format!("{}+{offset:#x}", file(&module.path))
    }
}

/// What is mapped from files, from `/proc`.
fn modules_of(process: u32) -> Vec<Module> {
    modules_in(&std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default())
}

fn modules_in(maps: &str) -> Vec<Module> {
    let mut bases: HashMap<String, u64> = HashMap::new();
    let mut modules = Vec::new();
    for line in maps.lines() {
        // Range, rights, offset, device, inode; then the path, which may have blanks in it.
        let mut rest = line;
        let mut word = || {
            let (word, behind) = rest.split_once(' ')?;
            rest = behind.trim_start();
            Some(word)
        };
        let (Some(range), Some(_)) = (word(), (0..4).try_for_each(|_| word().map(drop))) else { continue };
        let path = rest;
        let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
        let Some((start, end)) = range.split_once('-') else { continue };
        if let (Some(start), Some(end), true) = (hexadecimal(start), hexadecimal(end), path.starts_with('/'))
        {
            let base = *bases.entry_ref(path).or_insert(start);
            modules.push(Module { start, end, base, path: path.to_string() });
        }
    }
    modules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_may_have_blanks() {
        let maps = "\
7f0000001000-7f0000002000 r--p 00000000 fd:01 1234                       /opt/my  codes/app (x)
7f0000002000-7f0000003000 r-xp 00001000 fd:01 1234                       /opt/my  codes/app (x)
7f0000003000-7f0000004000 rw-p 00000000 00:00 0
7f0000004000-7f0000005000 rw-p 00000000 00:00 0                          [heap]
";
        let modules = modules_in(maps);
        let found: Vec<_> = modules.iter().map(|one| (one.start, one.base, one.path.as_str())).collect();
        let base = 0x7f00_0000_1000;
        assert_eq!(
            found,
            [(base, base, "/opt/my  codes/app (x)"), (base + 0x1000, base, "/opt/my  codes/app (x)")]
        );
    }
}
