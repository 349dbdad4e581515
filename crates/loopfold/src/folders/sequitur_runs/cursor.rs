//! The cursor: a place in the grammar from which the next symbols are predicted.
//!
//! It stands at an item, some repetitions of which have passed, inside the rules of the items
//! on its stack. It never changes a rule; only a loop's count grows with each iteration. A step
//! takes constant time, apart from leaving rules, each of which was entered.

use super::grammar::{Grammar, NodeId, Part};
use crate::Symbol;

/// What the cursor predicts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Mode {
    /// There is no cursor.
    #[default]
    None,
    /// The last item is a rule, and another iteration of it may be in progress.
    Loop,
    /// A digram was found again, and taken off the start rule.
    Match,
    /// The last item was found again where its hint points. It still is the last item,
    /// hidden so that the cursor stops before it.
    Hinted,
}

/// An item whose rule the cursor is in, and how many repetitions of it have passed.
#[derive(Clone, Copy, Debug)]
struct Frame {
    item: NodeId,
    passed: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Cursor {
    pub(super) mode: Mode,
    /// Where the match began; for a loop the item that repeats.
    pub(super) begin: NodeId,
    /// The rules that the cursor is in, outermost first.
    frames: Vec<Frame>,
    /// The item it stands at, and how many repetitions of it have passed.
    at: Frame,
    /// What the hidden last item stands for.
    hidden: Part,
}

impl Default for Cursor {
    fn default() -> Self {
        let nowhere = Frame { item: super::grammar::NONE, passed: 0 };
        Self { mode: Mode::None, begin: nowhere.item, frames: Vec::new(), at: nowhere, hidden: Part::NOTHING }
    }
}

impl Cursor {
    /// Puts the cursor before an item.
    pub(super) fn enter(&mut self, mode: Mode, begin: NodeId, item: NodeId) {
        self.mode = mode;
        self.begin = begin;
        self.at = Frame { item, passed: 0 };
        self.frames.clear();
    }

    pub(super) fn leave(&mut self) {
        if self.mode == Mode::None {
            self.frames.clear();
        }
    }

    /// Makes the start rule's last item a guard, so that a match that comes round to it
    /// ends there.
    pub(super) fn hide_last(&mut self, grammar: &mut Grammar) {
        let last = grammar.last();
        self.hidden = std::mem::replace(&mut grammar.node_mut(last).part, Part::NOTHING);
    }

    pub(super) fn show_last(&mut self, grammar: &mut Grammar) {
        if self.mode == Mode::Hinted {
            let last = grammar.last();
            grammar.node_mut(last).part = self.hidden;
        }
    }

    /// What a part of the start rule stands for, hidden or not.
    pub(super) fn shown(&self, part: Part) -> Part {
        if part == Part::NOTHING { self.hidden } else { part }
    }

    /// Takes a symbol if it is the very next thing predicted.
    #[inline(always)]
    pub(super) fn predicts(&mut self, grammar: &mut Grammar, symbol: Part, most_times: u32) -> bool {
        if self.mode == Mode::None {
            return false;
        }
        let node = grammar.node(self.at.item);
        if node.part != symbol {
            return false;
        }
        self.at.passed += 1;
        if self.at.passed == node.times {
            self.at = Frame { item: node.next, passed: 0 };
            self.leave_rules(grammar, most_times);
        }
        true
    }

    /// Takes symbols as long as they are predicted; returns how many.
    pub(super) fn follow(&mut self, grammar: &mut Grammar, symbols: &[Symbol], most_times: u32) -> usize {
        if self.mode == Mode::None {
            return 0;
        }
        let mut at = self.at;
        let mut taken = 0;
        while let Some(&symbol) = symbols.get(taken) {
            let Some(symbol) = Part::symbol(symbol) else { break };
            let node = *grammar.node(at.item);
            if node.part == symbol {
                taken += 1;
                at.passed += 1;
                if at.passed == node.times {
                    at = Frame { item: node.next, passed: 0 };
                    if grammar.node(at.item).part.is_guard() {
                        self.at = at;
                        self.leave_rules(grammar, most_times);
                        at = self.at;
                    }
                }
            } else if grammar.is_rule_from(node.part, symbol) {
                self.frames.push(at);
                at = Frame { item: grammar.head(node.part), passed: 0 };
            } else {
                break;
            }
        }
        self.at = at;
        taken
    }

    /// Takes an item if it is predicted, entering rules to find it.
    pub(super) fn advance(&mut self, grammar: &mut Grammar, part: Part, times: u32, most_times: u32) -> bool {
        let first = grammar.first(part);
        loop {
            let node = *grammar.node(self.at.item);
            if node.part == part {
                if times > node.times - self.at.passed {
                    return false;
                }
                self.at.passed += times;
                if self.at.passed == node.times {
                    self.at = Frame { item: node.next, passed: 0 };
                    self.leave_rules(grammar, most_times);
                }
                return true;
            }
            if !grammar.is_rule_from(node.part, first) {
                return false;
            }
            self.frames.push(self.at);
            self.at = Frame { item: grammar.head(node.part), passed: 0 };
        }
    }

    /// At the end of a rule: begins its next iteration, or moves behind the item that repeats
    /// it.
    fn leave_rules(&mut self, grammar: &mut Grammar, most_times: u32) {
        while grammar.node(self.at.item).part.is_guard() {
            let head = grammar.node(self.at.item).next;
            if let Some(frame) = self.frames.last_mut() {
                frame.passed += 1;
                let node = grammar.node(frame.item);
                if frame.passed < node.times {
                    self.at = Frame { item: head, passed: 0 };
                    return;
                }
                self.at = Frame { item: node.next, passed: 0 };
                self.frames.pop();
            } else if self.mode == Mode::Loop {
                self.go_round(grammar, most_times);
                self.at = Frame { item: head, passed: 0 };
                return;
            } else {
                return;
            }
        }
    }

    /// A pass of the loop is complete.
    fn go_round(&mut self, grammar: &mut Grammar, most_times: u32) {
        let node = *grammar.node(self.begin);
        if node.times < most_times {
            grammar.node_mut(self.begin).times += 1;
        } else {
            grammar.restart();
            grammar.append(node.part, 1);
            self.begin = grammar.last();
        }
    }

    /// The outermost item that is not complete.
    fn bottom(&self) -> Frame {
        self.frames.first().copied().unwrap_or(self.at)
    }

    /// The last item that matched as a whole, in the list where the match began.
    pub(super) fn last_whole(&self, grammar: &Grammar) -> NodeId {
        grammar.node(self.bottom().item).previous
    }

    /// Whether no item has matched in part.
    pub(super) fn is_between_items(&self) -> bool {
        self.frames.is_empty() && self.at.passed == 0
    }

    /// The items behind the last whole one that matched in part, outermost first. For a loop,
    /// the whole items of the current iteration come first.
    pub(super) fn partial_items(&self, grammar: &Grammar, mode: Mode, items: &mut Vec<(Part, u32)>) {
        let bottom = self.bottom();
        if mode == Mode::Loop {
            let head = grammar.head(grammar.node(self.begin).part);
            put_items(grammar, head, bottom.item, items);
        }
        put_passed(grammar, bottom, items);
        for (depth, frame) in self.frames.iter().enumerate() {
            let inner = self.frames.get(depth + 1).copied().unwrap_or(self.at);
            let head = grammar.head(grammar.node(frame.item).part);
            put_items(grammar, head, inner.item, items);
            put_passed(grammar, inner, items);
        }
    }

    /// Everything that matched and is not in the start rule.
    pub(super) fn matched_items(&self, grammar: &Grammar, items: &mut Vec<(Part, u32)>) {
        match self.mode {
            Mode::None => return,
            Mode::Loop => {}
            Mode::Match => put_items(grammar, self.begin, self.bottom().item, items),
            Mode::Hinted => {
                put_items(grammar, grammar.node(self.begin).next, self.bottom().item, items);
            }
        }
        self.partial_items(grammar, self.mode, items);
    }
}

/// The items from one up to another of the same list.
fn put_items(grammar: &Grammar, from: NodeId, to: NodeId, items: &mut Vec<(Part, u32)>) {
    let mut id = from;
    while id != to {
        let node = grammar.node(id);
        items.push((node.part, node.times));
        id = node.next;
    }
}

/// The repetitions of an item that have passed.
fn put_passed(grammar: &Grammar, frame: Frame, items: &mut Vec<(Part, u32)>) {
    if frame.passed > 0 {
        items.push((grammar.node(frame.item).part, frame.passed));
    }
}
