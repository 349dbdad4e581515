//! A rule as one line of text, for tests, examples and small nests.

use super::cursor::{Cursor, Step};
use super::{Fold, Target};
use crate::RuleId;

/// The nests of all streams, a line each, with their names. Meant for small folds.
impl std::fmt::Display for Fold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for stream in self.streams() {
            writeln!(f, "{}: {}", stream.name().terminal(), self.nest_text(stream.root()))?;
        }
        Ok(())
    }
}

impl Fold {
    /// The nest of a rule, such as `init (read write)^3 close`. Rules that do not
    /// repeat are written in place. Meant for small folds: its length is that of the
    /// nest. A symbol that is not in the alphabet is written as its number, such as `#5`.
    pub fn nest_text(&self, rule: RuleId) -> String {
        let mut text = String::new();
        let mut cursor = Cursor::new(self, rule);
        // How often each rule that the cursor is in repeats, the outermost left out.
        let mut open: Vec<u64> = Vec::new();
        while let Some(step) = cursor.step() {
            match step {
                Step::Stretch(stretch) => {
                    text.push_str(if stretch.times > 1 { "(" } else { "" });
                    match stretch.target {
                        Target::Rule(_) => {
                            open.push(stretch.times);
                            cursor.enter();
                        }
                        Target::Symbol(symbol) => {
                            match symbol.index() < self.alphabet().len() {
                                true => text.push_str(&self.alphabet().label(symbol)),
                                false => text.push_str(&format!("#{}", symbol.raw())),
                            }
                            text.push(' ');
                            close(stretch.times, &mut text);
                            cursor.skip(stretch.times);
                        }
                    }
                }
                Step::End { again, .. } => {
                    close(open.pop().unwrap_or(1), &mut text);
                    // The body is written once.
                    cursor.skip(again);
                }
            }
        }
        text.truncate(text.trim_end().len());
        text
    }
}

/// Closes what repeats, if it does more than once.
fn close(times: u64, text: &mut String) {
    if times > 1 {
        text.truncate(text.trim_end().len());
        text.push_str(&format!(")^{times} "));
    }
}
