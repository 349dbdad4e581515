//! The names of the functions of a binary trace, by number.
//!
//! Names come from outside, since the trace has none. Each function has a name of its own:
//! programs have static functions of the same name in several modules. So the name
//! determines the number. A look-up costs O(1), an index or a hash; every name is kept twice.

use hashbrown::{HashMap, HashSet};

/// The names of functions, by number.
///
/// ```
/// use loopfold_sources::FunctionNames;
///
/// let names = FunctionNames::new([("main", "a.c"), ("init", "a.c"), ("init", "b.c")]);
/// assert_eq!(names.name(0), "main");
/// assert_eq!(names.name(2), "b.c:init");
/// assert_eq!(names.name(12), "f12");
/// assert_eq!(names.number("b.c:init"), Some(2));
/// assert_eq!(names.number("f12"), Some(12));
/// assert_eq!(names.number("exit"), None);
/// ```
#[derive(Clone, Debug, Default)]
pub struct FunctionNames {
    names: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl FunctionNames {
    /// Functions with their modules, in the order of their numbers. A name that several
    /// have gets its module, `bits.c:init`, and if that is not enough, marks.
    pub fn new<'a>(functions: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let functions: Vec<(&str, &str)> = functions.into_iter().collect();
        let mut seen = HashSet::new();
        let shared: HashSet<&str> =
            functions.iter().map(|&(name, _)| name).filter(|&name| !seen.insert(name)).collect();
        let mut names = Self::default();
        for (number, &(name, module)) in functions.iter().enumerate() {
            let Ok(number) = u32::try_from(number) else { break };
            let is_shared = shared.contains(name);
            let mut own =
                if is_shared && !module.is_empty() { format!("{module}:{name}") } else { name.to_string() };
            // A name that only one function has is its own, whatever others are given.
            let is_taken = |own: &String| {
                names.numbers.contains_key(own) || ((is_shared || own != name) && seen.contains(own.as_str()))
            };
            if is_taken(&own) {
                own = format!("{own}#{number}");
            }
            while is_taken(&own) {
                own.push('#');
            }
            names.numbers.insert(own.clone(), number);
            names.names.push(own);
        }
        names
    }

    /// The name of a function: `f12` where none is known.
    pub fn name(&self, number: u32) -> String {
        if let Some(known) = self.names.get(number as usize) {
            return known.clone();
        }
        let mut name = format!("f{number}");
        while self.numbers.contains_key(&name) {
            name.push('#');
        }
        name
    }

    /// The number of a function, from its name.
    pub fn number(&self, name: &str) -> Option<u32> {
        if let Some(&known) = self.numbers.get(name) {
            return Some(known);
        }
        let number = name.strip_prefix('f')?.trim_end_matches('#').parse().ok()?;
        (self.name(number) == name).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_has_a_name_of_its_own() {
        let functions = [
            ("init", "a.c"),
            ("init", "b.c"),
            ("b.c:init", ""),
            ("init", "a.c"),
            ("x", ""),
            ("x", ""),
            ("x#5", ""),
            ("f9", "a.c"),
            ("", ""),
            ("", ""),
            ("f11", ""),
        ];
        let names = FunctionNames::new(functions);
        let all: Vec<String> = (0..20).map(|number| names.name(number)).collect();
        assert_eq!(all[0], "a.c:init");
        assert_eq!(all[2], "b.c:init");
        assert_eq!((all[6].as_str(), all[7].as_str()), ("x#5", "f9"));
        assert_eq!((all[11].as_str(), all[12].as_str()), ("f11#", "f12"));
        let distinct: HashSet<&String> = all.iter().collect();
        assert_eq!(distinct.len(), all.len(), "{all:?}");
        for (number, name) in all.iter().enumerate() {
            assert_eq!(names.number(name), Some(number as u32), "{name}");
        }
        for none in ["f3", "f", "f012", "f12#", "f99999999999", "init", "g"] {
            assert_eq!(names.number(none), None, "{none}");
        }
    }
}
