//! Paths of functions, and how deep calls are nested.

use super::Folded;
use crate::support::paths::{BLOCKS, FUNCTIONS, Form, check_path, path_of};
use loopfold::questions;
use loopfold_testing::Rng;
use loopfold_testing::calls::{Step, call_block};
use loopfold_testing::corpus::{Case, Role, Value};
use std::collections::BTreeSet;

/// The place of a name in a list, or behind it.
fn number(name: &Value, known: &[&str]) -> u8 {
    let is_it = |other: &&str| *name == Value::Text((*other).into());
    known.iter().position(is_it).unwrap_or(known.len()) as u8
}

/// The calls of each stream. Other events do nothing to a path.
fn steps(case: &Case) -> Vec<Vec<Step>> {
    let step = |event: &loopfold_testing::corpus::Event| match event.role {
        Role::Enter => Step::Call(number(&event.name, &FUNCTIONS)),
        Role::Leave => Step::Return,
        Role::Block => Step::Block(number(&event.name, &BLOCKS)),
        _ => Step::Block(u8::MAX),
    };
    case.streams.iter().map(|stream| stream.events.iter().map(step).collect()).collect()
}

/// All paths of one and two blocks, also with others between them, and some longer ones.
pub(super) fn paths(Folded { case, fold, .. }: &Folded<'_>) {
    let traces = steps(case);
    let mut rng = Rng::new(3);
    let has_callers = |event: &loopfold_testing::corpus::Event| {
        event.role == Role::Enter && event.fields.iter().any(|(key, _)| key == "caller")
    };
    let calls = case.streams.iter().flat_map(|stream| &stream.events).any(has_callers);
    let form = if calls { Form::Calls } else { Form::Qualified };
    let blocks: Vec<u8> = (0..4).chain((0..3).filter(|_| calls).map(call_block)).collect();
    for function in 0..3 {
        for &one in &blocks {
            check_path(fold, form, &traces, function, &path_of(&[one], &[]), &mut rng);
            for &other in &blocks {
                for path in [
                    path_of(&[one, other], &[]),
                    path_of(&[one, other], &[1]),
                    path_of(&[one, other, one], &[]),
                    path_of(&[one, other, one, other], &[2]),
                ] {
                    check_path(fold, form, &traces, function, &path, &mut rng);
                }
            }
        }
    }
}

pub(super) fn call_statistics(Folded { case, fold, .. }: &Folded<'_>) {
    let (mut functions, mut deepest) = (BTreeSet::new(), 0);
    for stream in &case.streams {
        let mut open = 0u64;
        for event in &stream.events {
            match event.role {
                Role::Enter => open += 1,
                Role::Leave => open = open.saturating_sub(1),
                _ => {}
            }
            deepest = deepest.max(open);
            let owner = event.fields.iter().find(|(key, _)| key == "function" || key == "caller");
            functions.extend(owner.map(|(_, owner)| format!("{owner:?}")));
            functions.extend((event.role == Role::Enter).then(|| format!("{:?}", event.name)));
        }
    }
    let expected = questions::statistics::CallStatistics { functions: functions.len() as u64, deepest };
    assert_eq!(fold.call_statistics().unwrap(), expected);
}
