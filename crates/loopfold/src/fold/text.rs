//! A rule as one line of text, for tests, examples and small nests.

use super::{Fold, Target};
use crate::RuleId;

impl Fold {
    /// The nest of a rule, such as `init (read write)^3 close`. Rules that do not
    /// repeat are written in place. Meant for small folds: its length is that of the
    /// nest.
    pub fn nest_text(&self, rule: RuleId) -> String {
        enum Step {
            Items(RuleId, usize),
            Close(u64),
        }
        let mut text = String::new();
        let mut steps = vec![Step::Items(rule, 0)];
        while let Some(step) = steps.pop() {
            match step {
                Step::Close(times) => {
                    text.truncate(text.trim_end().len());
                    text.push_str(&format!(")^{times} "));
                }
                Step::Items(rule, index) => {
                    let Some(item) = self.body(rule).get(index) else { continue };
                    steps.push(Step::Items(rule, index + 1));
                    let times = item.times();
                    if times > 1 {
                        text.push('(');
                        steps.push(Step::Close(times));
                    }
                    match item.target() {
                        Target::Rule(inner) => steps.push(Step::Items(inner, 0)),
                        Target::Symbol(symbol) => {
                            text.push_str(&self.alphabet().label(symbol));
                            text.push(' ');
                        }
                    }
                }
            }
        }
        text.truncate(text.trim_end().len());
        text
    }
}
