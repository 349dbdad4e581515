//! Loops with exceptions against their definition.

use crate::support::near::{compare, follow};
use crate::support::{fold_of, folders, outermost};
use loopfold::Symbol;
use loopfold::fold::{FoldBuilder, Item, Target};
use loopfold::folders::Outermost;
use loopfold::questions::near::{Config, NearLoop, NearSearch, near_nest};
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

#[test]
fn equal_the_definition_where_many_iterations_in_a_row_are_odd() {
    let mut rng = Rng::new(4);
    let mut joined = 0;
    for _ in 0..60 {
        let body: Vec<u32> = (0..rng.between(8, 14)).map(|_| rng.below(7) as u32).collect();
        let mut stream = Vec::new();
        for _ in 0..rng.between(2, 5) {
            (0..rng.between(40, 160)).for_each(|_| stream.extend(&body));
            for _ in 0..rng.between(2, 8) {
                stream.extend(&body);
                let last = stream.len() - 1 - rng.below(body.len());
                stream[last] = 7;
            }
        }
        let fold = fold_of(std::slice::from_ref(&stream), &Outermost::default());
        let root = fold.streams()[0].root();
        compare(&fold, root, &stream);
        let found = NearSearch::new(&fold, Config::new(&outermost)).unwrap().loops(root).unwrap();
        let is_long = |near: &NearLoop| {
            near.exceptions.iter().any(|gap| gap.end - gap.start > 3 * near.body.len() as u64)
        };
        joined += found.into_iter().filter(is_long).count();
    }
    assert!(joined > 10, "{joined}");
}

#[test]
fn an_archive_that_declares_any_number_of_events_is_no_problem() {
    // (a b)^(2^50) c (a b)^(2^50), and a body that is searched in a loop that is too long.
    let mut builder = FoldBuilder::default();
    let symbol = |index| Symbol::new(index).unwrap();
    let pair = builder.rule(&[Item::once(symbol(0)), Item::once(symbol(1))]).unwrap();
    let many = Item::new(Target::Rule(pair), 1 << 50);
    let outer = builder.rule(&[many, Item::once(symbol(2)), many]).unwrap();
    let mut body: Vec<Item> = (3..11).map(|index| Item::once(symbol(index))).collect();
    let eight = builder.rule(&body).unwrap();
    body.clear();
    for other in 11..14 {
        body.extend([Item::new(Target::Rule(eight), 5), Item::once(symbol(other))]);
    }
    body.push(Item::new(Target::Rule(eight), 4));
    let odd = builder.rule(&body).unwrap();
    let root =
        builder.rule(&[Item::new(Target::Rule(outer), 3), Item::new(Target::Rule(odd), 1 << 40)]).unwrap();
    let fold = builder.finish();
    let nest = near_nest(&fold, root, 1000, Config::new(&outermost)).unwrap().unwrap();
    let [near] = &nest.near[..] else { panic!("{nest:?}") };
    assert_eq!((near.occurrences, near.iterations, near.followed()), (1 << 40, (19, 19), 3 << 40));
    assert_eq!(nest.length(0..nest.nodes.len()), fold.length(root));
}
