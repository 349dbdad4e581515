//! Writes a grammar.

use super::{END, MAGIC, ROLES, VERSION, is_word, quote};
use crate::export::{event_name, rule_name};
use crate::fold::{FoldedStream, Item, Target};
use crate::trace::{Meaning, Name, Role, Value};
use crate::{Error, Fold, Result, RuleId, Symbol};
use std::io::Write;

const HEAD: &str = "\
# The rules of a fold. A rule is made of events and of rules above it; ^n repeats what is before it n times.
# A stream unfolds from its rule. Times of events are not kept here.
";
/// Lines are broken after this many bytes, but never within a name.
const WIDTH: usize = 100;
const INDENT: &str = "    ";
/// An event whose name in quotes is longer is defined once and has a short name in rules.
const LONGEST_IN_PLACE: usize = 32;

/// Writes a fold as a grammar. Times of events are left out.
///
/// ```
/// use loopfold::export::grammar;
/// use loopfold::folders::{Outermost, fold_trace};
/// use loopfold::trace::{Collector, Event, Sink};
///
/// let mut collector = Collector::default();
/// let stream = collector.stream("main")?;
/// for name in ["init", "read", "write", "read", "write", "read", "write", "close"] {
///     collector.push_event(stream, &Event::named(name))?;
/// }
/// let fold = fold_trace(collector.finish()?, &Outermost::default(), 1)?;
/// let mut text = Vec::new();
/// grammar::write(&fold, &mut text)?;
/// assert_eq!(grammar::read(&text[..])?, fold.canonical());
///
/// let text = String::from_utf8_lossy(&text);
/// assert!(text.contains("R1 -> 'read' 'write'\nR2 -> 'init' R1^3 'close'\nstream 'main' -> R2\n"));
/// # Ok::<(), loopfold::Error>(())
/// ```
pub fn write(fold: &Fold, output: impl Write) -> Result<()> {
    let fold = fold.canonical_without_times();
    check_items(&fold)?;
    let mut writer = Writer { fold: &fold, output, line: String::new(), in_place: Vec::new() };
    writer.write()
}

/// Fails if an item repeats a rule without events, as no fold does that a folder made.
fn check_items(fold: &Fold) -> Result<()> {
    let is_empty = |item: &Item| fold.target_length(item.target()) == 0;
    match fold.rules().any(|rule| fold.body(rule).iter().any(is_empty)) {
        true => Err(Error::invalid("an item that repeats a rule without events")),
        false => Ok(()),
    }
}

struct Writer<'a, W> {
    fold: &'a Fold,
    output: W,
    line: String,
    /// For each symbol whether it is written in place.
    in_place: Vec<bool>,
}

impl<W: Write> Writer<'_, W> {
    fn write(&mut self) -> Result<()> {
        write!(self.output, "{MAGIC}{VERSION}\n{HEAD}\n")?;
        let fold = self.fold;
        for symbol in fold.alphabet().symbols() {
            self.event(symbol)?;
        }
        // In canonical form the rules of a stream come before those that only later
        // streams need: so what was read before damage are whole streams.
        let mut rules = fold.rules().peekable();
        for stream in fold.streams() {
            while let Some(rule) = rules.next_if(|&rule| rule <= stream.root()) {
                self.rule(rule)?;
            }
            self.stream(stream)?;
        }
        writeln!(self.output, "{END}")?;
        Ok(self.output.flush()?)
    }

    /// Defines an event, unless it can be written in place.
    fn event(&mut self, symbol: Symbol) -> Result<()> {
        let meaning = self.fold.alphabet().meaning(symbol);
        self.line.clear();
        put_name(&mut self.line, meaning.name);
        let is_bare = meaning.role == Role::Plain && meaning.fields.is_empty();
        let in_place = is_bare && self.line.len() <= LONGEST_IN_PLACE;
        self.in_place.push(in_place);
        if in_place {
            return Ok(());
        }
        self.line.clear();
        self.line.push_str(&event_name(symbol));
        self.line.push_str(" =");
        put_meaning(&mut self.line, &meaning);
        self.end_line()
    }

    fn rule(&mut self, rule: RuleId) -> Result<()> {
        let fold = self.fold;
        self.line.clear();
        self.line.push_str(&rule_name(rule));
        self.line.push_str(" ->");
        for &item in fold.body(rule) {
            let before = self.line.len();
            self.line.push(' ');
            self.item(item);
            if self.line.len() > WIDTH && before > INDENT.len() {
                let item = self.line.split_off(before);
                self.end_line()?;
                self.line.clear();
                self.line.push_str(&INDENT[1..]);
                self.line.push_str(&item);
            }
        }
        self.end_line()
    }

    fn item(&mut self, item: Item) {
        match item.target() {
            Target::Rule(rule) => self.line.push_str(&rule_name(rule)),
            Target::Symbol(symbol) if self.in_place[symbol.index()] => {
                put_name(&mut self.line, self.fold.alphabet().meaning(symbol).name);
            }
            Target::Symbol(symbol) => self.line.push_str(&event_name(symbol)),
        }
        if item.times() > 1 {
            self.line.push('^');
            self.line.push_str(&item.times().to_string());
        }
    }

    fn stream(&mut self, stream: &FoldedStream) -> Result<()> {
        self.line.clear();
        self.line.push_str("stream ");
        quote::put(&mut self.line, stream.name().raw().as_bytes());
        self.line.push_str(" -> ");
        self.line.push_str(&rule_name(stream.root()));
        self.line.push('\n');
        self.line.push_str(INDENT);
        self.line.push_str("folder ");
        quote::put(&mut self.line, stream.folder().raw().as_bytes());
        for (key, value) in stream.notes() {
            self.line.push('\n');
            self.line.push_str(INDENT);
            self.line.push_str("note ");
            quote::put(&mut self.line, key.as_bytes());
            self.line.push(' ');
            quote::put(&mut self.line, value.as_bytes());
        }
        self.end_line()
    }

    fn end_line(&mut self) -> Result<()> {
        self.line.push('\n');
        Ok(self.output.write_all(self.line.as_bytes())?)
    }
}

fn put_meaning(line: &mut String, meaning: &Meaning<'_>) {
    if let Some((_, role)) = ROLES.iter().find(|(role, _)| *role == meaning.role) {
        line.push(' ');
        line.push_str(role);
    }
    line.push(' ');
    put_name(line, meaning.name);
    for field in &meaning.fields {
        line.push(' ');
        match is_word(field.key.as_bytes()) {
            true => line.push_str(field.key),
            false => quote::put(line, field.key.as_bytes()),
        }
        line.push('=');
        match field.value {
            Value::Integer(number) => line.push_str(&number.to_string()),
            Value::Text(text) => quote::put(line, text),
        }
    }
}

fn put_name(line: &mut String, name: Name<'_>) {
    match name {
        Name::Text(text) => quote::put(line, text),
        Name::Integer(number) => line.push_str(&number.to_string()),
    }
}
