//! Loops with exceptions against their definition.

use crate::support::near::{compare, follow};
use crate::support::{fold_of, folders};
use loopfold_testing::near::{self, Loops};
use loopfold_testing::{Rng, streams};

#[test]
fn equal_the_definition_on_programs_with_odd_iterations() {
    let mut rng = Rng::new(1);
    let (folders, mut found) = (folders(), 0);
    for round in 0..10_000 {
        let loops = Loops {
            loops: rng.between(1, 3),
            iterations: rng.between(3, 40),
            longest: rng.between(1, 12),
            letters: rng.between(2, 8),
            odd: rng.between(0, 250),
        };
        let program = near::program(&mut rng, loops);
        // The nest to show most often, the others in turn.
        let folder = if round % 2 == 0 { 0 } else { round / 2 % folders.len() };
        if program.events.len() > 200 && folders[folder].name() == "minimum" {
            continue;
        }
        let fold = fold_of(std::slice::from_ref(&program.events), &*folders[folder]);
        found += compare(&fold, fold.streams()[0].root(), &program.events);
    }
    assert!(found > 3000, "{found}");
}

/// Loops in loops with odd iterations and numbers of iterations that vary.
fn nested(rng: &mut Rng, depth: usize, letters: usize) -> Vec<u32> {
    let (least, more, odd) = (rng.between(1, 6), rng.below(4), rng.between(0, 100));
    let parts: Vec<Vec<u32>> = (0..rng.between(1, 3))
        .map(|_| (0..rng.between(1, 4)).map(|_| rng.below(letters) as u32).collect())
        .collect();
    let mut events = Vec::new();
    for _ in 0..if depth == 0 { rng.between(20, 40) } else { rng.between(least, least + more) } {
        for (index, part) in parts.iter().enumerate() {
            events.extend(part);
            if index == 0 && depth < 2 {
                let seed = rng.below(3) as u64;
                events.extend(nested(&mut Rng::new(depth as u64 * 7 + seed), depth + 1, letters));
            }
        }
        if rng.below(1000) < odd {
            events.push(rng.below(letters) as u32);
        }
    }
    events
}

#[test]
fn nests_unfold_to_the_stream() {
    let mut rng = Rng::new(3);
    let (folders, mut found) = (folders(), 0);
    for round in 0..2_000 {
        let letters = rng.between(2, 8);
        let stream = match round % 3 {
            0 => nested(&mut rng, 0, letters),
            1 => {
                let loops = Loops { loops: 2, iterations: 30, longest: 8, letters, odd: 100 };
                near::program(&mut rng, loops).events.repeat(2)
            }
            _ => streams::small(&mut rng, 300).iter().map(|event| event % 8).collect(),
        };
        let folder = if round % 2 == 0 { 0 } else { round / 2 % folders.len() };
        if stream.len() <= 200 || folders[folder].name() != "minimum" {
            let fold = fold_of(std::slice::from_ref(&stream), &*folders[folder]);
            found += follow(&fold, fold.streams()[0].root(), &stream);
        }
    }
    assert!(found > 500, "{found}");
}

#[test]
fn equal_the_definition_on_streams_of_all_kinds() {
    let mut rng = Rng::new(2);
    let folders = folders();
    for round in 0..3_000 {
        let stream: Vec<u32> = streams::small(&mut rng, 150).iter().map(|event| event % 8).collect();
        let fold = fold_of(std::slice::from_ref(&stream), &*folders[round % folders.len()]);
        compare(&fold, fold.streams()[0].root(), &stream);
    }
}
