//! The names of functions for traces of addresses, from the programs that were traced.
//!
//! An address becomes the function that it lies in, and its offset there: `main`, `main+0x1c`.
//! So different addresses stay different events. Functions come from the symbol tables of a
//! program, and where those have none, from its debug information. Names of C++ and Rust are
//! demangled.
//!
//! Programs are loaded at addresses other than those they were linked for (position-independent
//! executables, shared libraries). A trace does not say where, but many of its addresses are
//! where functions begin, and pages are loaded as a whole: so the *slide* is the multiple of a page
//! with which the most addresses are the beginning of a function. A program of which hardly
//! any function begins where the trace says so is of another build, which is an error: its names
//! would be wrong.
//!
//! Cost: the functions of a page offset for each of some hundred addresses, and a look-up for each
//! address. Debug information is read only if symbols are missing.

use crate::{Error, Result};
use hashbrown::{HashMap, HashSet};
use loopfold::Symbol;
use loopfold::trace::{Alphabet, Field, Meaning, Name, Role, Value};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SectionKind, SymbolKind};
use std::borrow::Cow;
use std::rc::Rc;

/// Programs are loaded at multiples of this.
const PAGE: u64 = 0x1000;

/// Addresses that vote for a slide.
const VOTERS: usize = 512;

/// The addresses of a trace.
#[derive(Clone, Debug, Default)]
pub struct Addresses {
    /// All of them, in order, each once.
    all: Vec<u64>,
    /// Those at which functions are entered.
    entered: HashSet<u64>,
}

impl Addresses {
    /// Adds those of an alphabet.
    pub fn add(&mut self, alphabet: &Alphabet) {
        for symbol in alphabet.symbols() {
            let meaning = alphabet.meaning(symbol);
            let named = AddressText::of_name(meaning.name).map(|text| text.address);
            if matches!(meaning.role, Role::Enter | Role::Leave) {
                self.entered.extend(named);
            }
            let fields = meaning.fields.iter().filter_map(|field| address_of_field(field, &meaning));
            self.all.extend(named.into_iter().chain(fields));
        }
        self.all.sort_unstable();
        self.all.dedup();
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

/// A text with an address in it: `0x404610`, `0x80002318 slliw`, `I 04001000`.
struct AddressText<'a> {
    before: &'a str,
    address: u64,
    behind: &'a str,
}

impl<'a> AddressText<'a> {
    fn of_name(name: Name<'a>) -> Option<Self> {
        match name {
            Name::Integer(address) => Some(Self { before: "", address, behind: "" }),
            Name::Text(text) => Self::of(std::str::from_utf8(text).ok()?),
        }
    }

    fn of(text: &'a str) -> Option<Self> {
        let (before, digits) = match text.strip_prefix("0x") {
            Some(digits) => ("", digits),
            None => ("I ", text.strip_prefix("I ")?),
        };
        let length = digits.find(|digit: char| !digit.is_ascii_hexdigit()).unwrap_or(digits.len());
        let behind = &digits[length..];
        let address = u64::from_str_radix(&digits[..length], 16).ok()?;
        (behind.is_empty() || behind.starts_with(' ')).then_some(Self { before, address, behind })
    }
}

/// The address in a field that names code. Data addresses have no functions.
fn address_of_field(field: &Field<'_>, meaning: &Meaning<'_>) -> Option<u64> {
    let is_block = meaning.name == Name::Text(b"SB");
    match (field.key, field.value) {
        ("function" | "caller" | "pc" | "symbol", Value::Text(text)) => {
            AddressText::of(std::str::from_utf8(text).ok()?).map(|text| text.address)
        }
        ("pc", Value::Integer(address)) => u64::try_from(address).ok(),
        ("address", Value::Text(text)) if is_block => {
            let text = std::str::from_utf8(text).ok()?;
            u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()
        }
        _ => None,
    }
}

/// A function of a program.
#[derive(Clone, Debug)]
struct Function {
    start: u64,
    /// 0 if that is not known: then it reaches to the next one.
    size: u64,
    name: String,
}

/// The names of addresses.
#[derive(Clone, Debug, Default)]
pub struct SymbolNames {
    names: HashMap<u64, String>,
}

impl SymbolNames {
    /// How many addresses have a name.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// True if no address has a name.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Adds the names that a program, an executable or a library, has for addresses. Those that
    /// are known already stay.
    ///
    /// # Errors
    /// If it is no program, has no functions, or is of another build.
    pub fn add(&mut self, program: &[u8], addresses: &Addresses) -> Result<()> {
        let file = object::File::parse(program)
            .map_err(|error| Error::option(format_args!("this is no program with symbols: {error}")))?;
        let functions = functions_of(&file);
        let code = Code::of(&file);
        if functions.is_empty() && file.section_by_name(".debug_info").is_none() {
            return Err(Error::option("it has no symbols and no debug information"));
        }
        let slide = slide_of(&functions, &code, addresses)?;
        let debug = DebugInfo::of(&file);
        for &address in &addresses.all {
            if self.names.contains_key(&address) {
                continue;
            }
            let linked = address.wrapping_sub(slide);
            let name = name_in(&functions, &code, linked)
                .or_else(|| debug.as_ref()?.name(linked, addresses.entered.contains(&address)));
            self.names.extend(name.map(|name| (address, name)));
        }
        Ok(())
    }

    /// The alphabet with names for addresses, and for each old symbol the new one.
    pub fn rename(&self, alphabet: &Alphabet) -> Result<(Alphabet, Vec<Symbol>)> {
        let mut named = Alphabet::default();
        let mut renamed = Vec::with_capacity(alphabet.len());
        for symbol in alphabet.symbols() {
            let meaning = alphabet.meaning(symbol);
            let name = AddressText::of_name(meaning.name).and_then(|text| self.text(&text));
            let values: Vec<Option<String>> = meaning
                .fields
                .iter()
                .map(|field| self.names.get(&address_of_field(field, &meaning)?).cloned())
                .collect();
            let fields: Vec<Field<'_>> = meaning
                .fields
                .iter()
                .zip(&values)
                .map(|(field, value)| match value {
                    Some(value) => Field { key: field.key, value: Value::Text(value.as_bytes()) },
                    None => *field,
                })
                .collect();
            let name = name.as_ref().map_or(meaning.name, |name| Name::Text(name.as_bytes()));
            let event = loopfold::trace::Event { name, role: meaning.role, fields: &fields };
            renamed.push(named.intern(&event, None)?);
        }
        Ok((named, renamed))
    }

    fn text(&self, text: &AddressText<'_>) -> Option<String> {
        let name = self.names.get(&text.address)?;
        Some(format!("{}{name}{}", text.before, text.behind))
    }
}

/// Where a program has code, in order.
struct Code(Vec<(u64, u64)>);

impl Code {
    fn of(file: &object::File<'_>) -> Self {
        let code = file.sections().filter(|section| section.kind() == SectionKind::Text);
        let mut ranges: Vec<(u64, u64)> = code
            .map(|section| (section.address(), section.address().saturating_add(section.size())))
            .collect();
        ranges.sort_unstable();
        Self(ranges)
    }

    fn contains(&self, address: u64) -> bool {
        let next = self.0.partition_point(|&(start, _)| start <= address);
        next.checked_sub(1).is_some_and(|last| address < self.0[last].1)
    }
}

/// The functions of the symbol tables, in order. Of several at one place, the first by its table,
/// a global one before others.
fn functions_of(file: &object::File<'_>) -> Vec<Function> {
    let mut found: Vec<(u64, bool, u64, String)> = Vec::new();
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        let is_function = symbol.kind() == SymbolKind::Text && symbol.is_definition();
        if let Ok(name) = symbol.name()
            && is_function
            && !name.is_empty()
        {
            found.push((symbol.address(), !symbol.is_global(), symbol.size(), name.to_string()));
        }
    }
    found.sort_by_key(|&(start, is_local, ..)| (start, is_local));
    found.dedup_by_key(|function| function.0);
    let function =
        |(start, _, size, name): (u64, bool, u64, String)| Function { start, size, name: demangled(&name) };
    found.into_iter().map(function).collect()
}

/// A name as it is in the source. A name of C such as `f` would be a type of C++.
fn demangled(name: &str) -> String {
    let is_mangled = ["_Z", "__Z", "_R", "__R"].iter().any(|prefix| name.starts_with(prefix));
    match is_mangled {
        true => addr2line::demangle_auto(Cow::Borrowed(name), None).into_owned(),
        false => name.to_string(),
    }
}

/// The function that an address lies in, and its offset.
fn name_in(functions: &[Function], code: &Code, address: u64) -> Option<String> {
    let next = functions.partition_point(|function| function.start <= address);
    let function = &functions[next.checked_sub(1)?];
    let offset = address - function.start;
    let reaches = if function.size > 0 { offset < function.size } else { code.contains(address) };
    match offset {
        _ if !reaches => None,
        0 => Some(function.name.clone()),
        offset => Some(format!("{}+{offset:#x}", function.name)),
    }
}

/// By how much the addresses of a trace differ from those that a program was linked for.
fn slide_of(functions: &[Function], code: &Code, addresses: &Addresses) -> Result<u64> {
    let mut entered: Vec<u64> = addresses.entered.iter().copied().collect();
    entered.sort_unstable();
    let candidates = if entered.is_empty() { &addresses.all } else { &entered };
    if candidates.is_empty() {
        return Ok(0);
    }
    let slide = best_slide(functions, candidates);
    let starts: HashSet<u64> = functions.iter().map(|function| function.start).collect();
    let inside = candidates.iter().filter(|address| code.contains(address.wrapping_sub(slide))).count();
    let hits = candidates.iter().filter(|address| starts.contains(&address.wrapping_sub(slide))).count();
    if functions.is_empty() {
        return Ok(slide);
    }
    if inside == 0 {
        return Err(Error::option(
            "no address of the trace lies in it: it is another program, or of another build",
        ));
    }
    // Entries are all beginnings of functions; of other addresses some must be.
    let wrong = if entered.is_empty() { hits == 0 } else { 2 * hits < inside };
    if wrong {
        return Err(Error::option(format_args!(
            "of {inside} addresses of the trace that lie in it, {hits} are where a function begins: it is of another build"
        )));
    }
    Ok(slide)
}

/// The slide with which the most addresses are beginnings of functions; of several the smallest,
/// and none if that is as good.
fn best_slide(functions: &[Function], addresses: &[u64]) -> u64 {
    let mut by_offset: HashMap<u64, Vec<u64>> = HashMap::new();
    for function in functions {
        by_offset.entry(function.start % PAGE).or_default().push(function.start);
    }
    let mut votes: HashMap<u64, usize> = HashMap::new();
    let step = addresses.len().div_ceil(VOTERS).max(1);
    for &address in addresses.iter().step_by(step) {
        for &start in by_offset.get(&(address % PAGE)).into_iter().flatten() {
            *votes.entry(address.wrapping_sub(start)).or_default() += 1;
        }
    }
    let most = votes.values().copied().max().unwrap_or(0);
    if votes.get(&0).copied().unwrap_or(0) == most {
        return 0;
    }
    votes.into_iter().filter(|&(_, count)| count == most).map(|(slide, _)| slide).min().unwrap_or(0)
}

/// The functions of debug information.
struct DebugInfo(addr2line::Context<gimli::EndianReader<gimli::RunTimeEndian, Rc<[u8]>>>);

impl DebugInfo {
    /// Returns `None` if there is none, or none that can be read: symbols are names, too.
    fn of(file: &object::File<'_>) -> Option<Self> {
        file.section_by_name(".debug_info")?;
        let endian = match file.is_little_endian() {
            true => gimli::RunTimeEndian::Little,
            false => gimli::RunTimeEndian::Big,
        };
        let section = |id: gimli::SectionId| -> std::result::Result<_, gimli::Error> {
            let data = file.section_by_name(id.name()).and_then(|section| section.uncompressed_data().ok());
            let data: Rc<[u8]> = data.unwrap_or_default().into_owned().into();
            Ok(gimli::EndianReader::new(data, endian))
        };
        Some(Self(addr2line::Context::from_dwarf(gimli::Dwarf::load(section).ok()?).ok()?))
    }

    /// The function that an address lies in. Where it is not entered there, the address follows,
    /// so that different addresses have different names.
    fn name(&self, address: u64, is_entry: bool) -> Option<String> {
        let mut frames = self.0.find_frames(address).skip_all_loads().ok()?;
        let mut outermost = None;
        while let Ok(Some(frame)) = frames.next() {
            outermost = frame.function.or(outermost);
        }
        let name = demangled(&outermost?.raw_name().ok()?);
        Some(if is_entry { name } else { format!("{name} {address:#x}") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loopfold::trace::Event;

    fn function(start: u64, size: u64, name: &str) -> Function {
        Function { start, size, name: name.to_string() }
    }

    fn addresses(entered: &[u64]) -> Addresses {
        let mut alphabet = Alphabet::default();
        for address in entered {
            let name = format!("{address:#x}");
            alphabet.intern(&Event { role: Role::Enter, ..Event::named(&name) }, None).unwrap();
        }
        let mut addresses = Addresses::default();
        addresses.add(&alphabet);
        addresses
    }

    #[test]
    fn an_address_is_a_function_and_an_offset() {
        let functions = [function(0x1000, 0x20, "main"), function(0x1040, 0, "f")];
        let code = Code(vec![(0x1000, 0x1100)]);
        let name = |address| name_in(&functions, &code, address);
        assert_eq!(name(0x1000).as_deref(), Some("main"));
        assert_eq!(name(0x101c).as_deref(), Some("main+0x1c"));
        assert_eq!(name(0x1020), None);
        assert_eq!(name(0x10ff).as_deref(), Some("f+0xbf"));
        assert_eq!((name(0x1100), name(0xfff)), (None, None));
    }

    #[test]
    fn the_slide_is_where_most_functions_begin() {
        let functions: Vec<Function> =
            (0..50).map(|n| function(0x1000 + 0x70 * n + n * n, 0x40, &format!("f{n}"))).collect();
        let code = Code(vec![(0x1000, 0x9000)]);
        for slide in [0, 0x5555_5555_4000, 0x10_8000] {
            let entered: Vec<u64> =
                functions.iter().step_by(3).map(|function| function.start + slide).collect();
            assert_eq!(slide_of(&functions, &code, &addresses(&entered)).unwrap(), slide);
        }
        // The functions of another build begin elsewhere.
        let other: Vec<u64> =
            functions.iter().map(|function| function.start + 8 + function.start % 3).collect();
        let error = slide_of(&functions, &code, &addresses(&other)).unwrap_err().to_string();
        assert!(error.contains("it is of another build"), "{error}");
        let error = slide_of(&functions, &code, &addresses(&[0x5000_0000_0003])).unwrap_err().to_string();
        assert!(
            error.contains("no address of the trace lies in it: it is another program, or of another build"),
            "{error}"
        );
    }

    #[test]
    fn names_take_the_place_of_addresses() {
        let mut names = SymbolNames::default();
        names.names.extend([(0x10, "main".to_string()), (0x24, "f+0x4".to_string())]);
        let mut alphabet = Alphabet::default();
        let caller = [Field { key: "caller", value: Value::Text(b"0x10") }];
        let f = Event { role: Role::Enter, fields: &caller, ..Event::named("0x24") };
        for event in [f, Event::integer(0x24), Event::named("0x24 addi"), Event::named("I 00000024")] {
            alphabet.intern(&event, None).unwrap();
        }
        for other in ["0x99", "main", "L8", "0x24x"] {
            alphabet.intern(&Event::named(other), None).unwrap();
        }
        let (named, renamed) = names.rename(&alphabet).unwrap();
        let labels: Vec<String> = renamed.iter().map(|&symbol| named.label(symbol)).collect();
        let expected =
            ["enter f+0x4 caller=main", "f+0x4", "f+0x4 addi", "I f+0x4", "0x99", "main", "L8", "0x24x"];
        assert_eq!(labels, expected);
    }

    #[test]
    fn functions_are_those_of_the_symbol_table() {
        let functions = [("main", 0x1000, 0x40), ("_ZN3foo3barEi", 0x1040, 0x20), ("tail", 0x1080, 0)];
        let program = loopfold_testing::elf::program(0x1000, 0x200, &functions);
        for slide in [0, 0x5555_5555_4000] {
            let mut names = SymbolNames::default();
            names.add(&program, &addresses(&[0x1000 + slide, 0x1040 + slide, 0x9000 + slide])).unwrap();
            assert_eq!(names.names[&(0x1000 + slide)], "main");
            assert_eq!(names.names[&(0x1040 + slide)], "foo::bar(int)");
            assert_eq!(names.len(), 2);
        }
        // Any part of it may be missing.
        for length in 0..program.len() {
            let _ = SymbolNames::default().add(&program[..length], &addresses(&[0x1000]));
        }
    }

    #[test]
    fn what_is_no_program_is_an_error() {
        let error = SymbolNames::default().add(b"hello", &Addresses::default()).unwrap_err().to_string();
        assert!(error.contains("no program"), "{error}");
    }

    #[test]
    fn names_are_demangled() {
        assert_eq!(demangled("_ZN3foo3barEi"), "foo::bar(int)");
        assert_eq!(demangled("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE"), "core::fmt::Formatter::pad");
        assert_eq!((demangled("main"), demangled("f")), ("main".to_string(), "f".to_string()));
    }
}
