//! Hot subpaths against a search of the unfolded streams, for the folds of every folder
//! and for folds made at random, and against figure 7.

use crate::support::hot::{Question, check_figure_seven};
use crate::support::{folders, unfolded};
use loopfold::fold::{FoldBuilder, FoldedStream, Item, Target};
use loopfold::folders::{Folder, Outermost, Repair, SequiturRuns};
use loopfold::questions::hot::{self, EventCosts, HotSubpath, Limit, Selection, related};
use loopfold::trace::{Alphabet, Event};
use loopfold::{Fold, RuleId, Symbol};
use loopfold_testing::subpaths::Hot;
use loopfold_testing::{Rng, streams};

/// How many sets of streams each comparison sees.
const CASES: usize = 2_000;

/// An alphabet in which symbol `n` is called `n`.
fn alphabet(size: u32) -> Alphabet {
    let mut alphabet = Alphabet::default();
    for name in 0..size {
        alphabet.intern(&Event::integer(name.into()), None).unwrap();
    }
    alphabet
}

fn symbol(number: u32) -> Symbol {
    Symbol::new(number as usize).unwrap()
}

/// The fold of some streams whose symbols are below `size`.
fn fold(streams: &[Vec<u32>], size: u32, folder: &dyn Folder) -> Fold {
    let mut builder = FoldBuilder::new(alphabet(size));
    for (index, stream) in streams.iter().enumerate() {
        let stream: Vec<Symbol> = stream.iter().map(|&raw| symbol(raw)).collect();
        let root = folder.fold(&stream, &mut builder).unwrap();
        builder.stream(FoldedStream::new(index.to_string(), folder.name(), root));
    }
    builder.finish()
}

/// Rules made at random, with counts, shared by a few streams. No stream is longer than
/// `longest`.
fn random_fold(rng: &mut Rng, longest: u64, size: u32) -> Fold {
    let mut builder = FoldBuilder::new(alphabet(size));
    let mut rules: Vec<(RuleId, u64)> = Vec::new();
    let wanted = rng.between(1, 8);
    for _ in 0..wanted {
        let (mut body, mut length) = (Vec::new(), 0);
        for _ in 0..rng.between(1, 5) {
            let times = if rng.one_in(3) { rng.between(2, 6) as u64 } else { 1 };
            let (target, each) = match rules.len() {
                known if known > 0 && rng.one_in(2) => {
                    let (rule, length) = rules[rng.below(known)];
                    (Target::Rule(rule), length)
                }
                _ => (Target::Symbol(symbol(rng.below(size as usize) as u32)), 1),
            };
            if length + times * each <= longest {
                length += times * each;
                body.push(Item::new(target, times));
            }
        }
        if !body.is_empty() {
            rules.push((builder.rule(&body).unwrap(), length));
        }
    }
    for index in 0..rng.between(1, 4) {
        let from = rules.len().saturating_sub(3);
        let (root, _) = rules[rng.between(from, rules.len() - 1)];
        builder.stream(FoldedStream::new(index.to_string(), "by hand", root));
    }
    builder.finish()
}

impl Question {
    fn random(rng: &mut Rng, streams: &[Vec<u32>], size: u32) -> Self {
        let max_event_cost = if rng.one_in(2) { 1 } else { rng.between(1, 50) };
        let mut costs: Vec<u64> = (0..size)
            .map(|_| if max_event_cost == 1 { 1 } else { rng.below(max_event_cost + 1) as u64 })
            .collect();
        if rng.one_in(8) {
            // One event that dwarfs the others.
            costs[rng.below(size as usize)] = 100_000;
        }
        let total: u64 = streams.iter().flatten().map(|&event| costs[event as usize]).sum();
        let highest = if rng.one_in(3) { total / 20 } else { total };
        let limit = 1 + rng.below(highest as usize + 2) as u64;
        let min = rng.between(1, 4);
        let span = if rng.one_in(2) { 4 } else { 30 };
        let max = min + rng.below(span);
        let settings = hot::Config::new()
            .min_length(min)
            .max_length(max)
            .min_cost(Limit::Cost(limit as f64))
            .threads(rng.between(1, 3));
        Self { settings, hot: Hot { min, max, limit: limit.into() }, costs }
    }
}

#[test]
fn hot_subpaths_equal_a_search_of_the_unfolded_streams() {
    let mut rng = Rng::new(71);
    let folders = folders();
    for _ in 0..CASES {
        let several: Vec<Vec<u32>> = (0..rng.between(1, 3))
            .map(|_| streams::small(&mut rng, 60).iter().map(|&raw| raw % 100).collect())
            .collect();
        let size = several.iter().flatten().max().map_or(1, |&most| most + 1);
        let question = Question::random(&mut rng, &several, size);
        for folder in &folders {
            question.check(&fold(&several, size, &**folder), &several);
        }
    }
}

/// Rules long enough that many of them have equal beginnings and then differ.
#[test]
fn hot_subpaths_of_longer_streams() {
    let mut rng = Rng::new(75);
    let folders: [&dyn Folder; 3] = [&SequiturRuns, &Repair, &Outermost::default()];
    for case in 0..CASES / 20 {
        let length = rng.between(300, 700);
        let stream = match case % 3 {
            0 => streams::nests(length, rng.next_u64()),
            _ => streams::control_flow(length, rng.next_u64()),
        };
        let size = stream.iter().max().map_or(1, |&most| most + 1);
        let streams = vec![stream];
        let mut question = Question::random(&mut rng, &streams, size);
        question.settings.max_length += 20;
        question.hot.max += 20;
        for folder in folders {
            question.check(&fold(&streams, size, folder), &streams);
        }
    }
}

#[test]
fn hot_subpaths_of_rules_made_at_random() {
    let mut rng = Rng::new(72);
    for _ in 0..3 * CASES {
        let size = rng.between(1, 4) as u32;
        let fold = random_fold(&mut rng, 150, size);
        let streams = unfolded(&fold);
        Question::random(&mut rng, &streams, size).check(&fold, &streams);
    }
}

/// Least lengths at which the search begins with windows, shorter, as long and longer than those.
#[test]
fn hot_subpaths_of_many_events_at_least() {
    let mut rng = Rng::new(76);
    let folders: [&dyn Folder; 3] = [&SequiturRuns, &Repair, &Outermost::default()];
    for case in 0..CASES / 2 {
        let (folds, streams, size) = if case % 4 == 0 {
            let streams: Vec<Vec<u32>> = (0..rng.between(1, 3))
                .map(|_| match rng.below(3) {
                    0 => streams::nests(rng.between(1, 300), rng.next_u64()),
                    1 => streams::control_flow(rng.between(1, 300), rng.next_u64()),
                    _ => streams::small(&mut rng, 100).iter().map(|&raw| raw % 100).collect(),
                })
                .collect();
            let size = streams.iter().flatten().max().map_or(1, |&most| most + 1);
            (folders.map(|folder| fold(&streams, size, folder)).to_vec(), streams, size)
        } else {
            let size = rng.between(1, 4) as u32;
            let fold = random_fold(&mut rng, 300, size);
            let streams = unfolded(&fold);
            (vec![fold], streams, size)
        };
        let mut question = Question::random(&mut rng, &streams, size);
        let min = rng.between(4, 20);
        let max = min + rng.below(25);
        question.settings = question.settings.min_length(min).max_length(max);
        (question.hot.min, question.hot.max) = (min, max);
        for fold in &folds {
            question.check(fold, &streams);
        }
    }
}

#[test]
fn only_the_costliest_are_kept() {
    let mut rng = Rng::new(73);
    for _ in 0..CASES / 10 {
        let fold = random_fold(&mut rng, 150, 3);
        let streams = unfolded(&fold);
        let mut question = Question::random(&mut rng, &streams, 3);
        let all = question.ask(&fold, Selection::All);
        question.settings.keep = rng.below(6);
        let kept = question.ask(&fold, Selection::All);
        assert_eq!(kept.found, all.found);
        assert_eq!(kept.subpaths, all.subpaths[..question.settings.keep.min(all.subpaths.len())]);
    }
}

#[test]
fn figure_seven_of_rules_made_at_random() {
    let mut rng = Rng::new(74);
    for _ in 0..3 * CASES {
        let size = rng.between(1, 4) as u32;
        let fold = random_fold(&mut rng, 300, size);
        check_figure_seven(&Question::random(&mut rng, &unfolded(&fold), size), &fold);
    }
    for _ in 0..CASES / 4 {
        let several = vec![streams::small(&mut rng, 80).iter().map(|&raw| raw % 10).collect()];
        let question = Question::random(&mut rng, &several, 10);
        for folder in folders() {
            check_figure_seven(&question, &fold(&several, 10, &*folder));
        }
    }
}

/// The rules that sequitur makes of (abbc)^4.
fn four_times_abbc() -> Fold {
    let mut alphabet = Alphabet::default();
    let [a, b, c] = ["a", "b", "c"].map(|name| alphabet.intern(&Event::named(name), None).unwrap());
    let mut builder = FoldBuilder::new(alphabet);
    let once = |rule| Item::new(Target::Rule(rule), 1);
    let abbc = builder.rule(&[a, b, b, c].map(Item::once)).unwrap();
    let twice = builder.rule(&[once(abbc); 2]).unwrap();
    let root = builder.rule(&[once(twice); 2]).unwrap();
    builder.stream(FoldedStream::new("main", "sequitur", root));
    builder.finish()
}

#[test]
fn figure_five_with_a_string_four_times_as_frequent() {
    let fold = four_times_abbc();
    let find = |selection| {
        let min_cost = Limit::Cost(6.0);
        let settings = hot::Config::new().max_length(3).min_cost(min_cost).selection(selection);
        let hot = fold.hot_subpaths(&EventCosts::one_each(&fold), &settings).unwrap();
        let text = |events: &[Symbol]| events.iter().map(|&s| fold.alphabet().label(s)).collect::<String>();
        let mut found: Vec<String> = hot.subpaths.iter().map(|hot| text(&hot.events)).collect();
        found.sort();
        found.join(" ")
    };
    assert_eq!(find(Selection::Minimal), "ab bb bc ca");
    assert_eq!(find(Selection::All), "ab abb bb bbc bc bca ca cab");
    assert_eq!(find(Selection::Paper), "ab bc");
}

#[test]
fn repeats_of_any_number_cost_nothing() {
    let mut builder = FoldBuilder::new(alphabet(3));
    let body = [Item::once(symbol(0)), Item::new(Target::Symbol(symbol(1)), 1 << 20), Item::once(symbol(2))];
    let inner = builder.rule(&body).unwrap();
    let root = builder.rule(&[Item::new(Target::Rule(inner), 1 << 40), Item::once(symbol(0))]).unwrap();
    builder.stream(FoldedStream::new("s", "by hand", root));
    let fold = builder.finish();
    let costs = EventCosts::one_each(&fold);
    let hot = fold.hot_subpaths(&costs, &hot::Config::new()).unwrap();
    let first = &hot.subpaths[0];
    assert_eq!((first.events.len(), first.count), (2, (1 << 40) * ((1 << 20) - 1)));
    let min_cost = Limit::Cost(100.0 * (1u64 << 40) as f64);
    let settings = hot::Config::new().min_cost(min_cost).selection(Selection::Paper);
    let first = &fold.hot_subpaths(&costs, &settings).unwrap().subpaths[0];
    assert_eq!((first.events.len(), first.count), (100, (1 << 40) * ((1 << 20) - 99)));
    let settings = hot::Config::new().min_cost(Limit::Cost(1.0)).selection(Selection::All);
    let all = fold.hot_subpaths(&costs, &settings).unwrap();
    // Of each length: only the repeated event, after or before one of the others, and
    // around both at every place.
    assert_eq!(all.found, (2..=100).map(|length| 3 + (length - 1)).sum::<u64>());
    let across = all.subpaths.iter().find(|hot| hot.events.starts_with(&[symbol(2), symbol(0)])).unwrap();
    assert_eq!(across.count, (1 << 40) - 1);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let fold = four_times_abbc();
    let costs = EventCosts::one_each(&fold);
    let with = |change: fn(&mut hot::Config)| {
        let mut settings = hot::Config::new();
        change(&mut settings);
        fold.hot_subpaths(&costs, &settings).unwrap_err().to_string()
    };
    assert!(with(|settings| settings.min_length = 101).contains("at least 101 and at most 100"));
    assert!(with(|settings| settings.min_length = 0).contains("at least 1"));
    assert!(with(|settings| settings.max_length = usize::MAX).contains("1000000"));
    assert!(with(|settings| settings.min_cost = Limit::Share(1.5)).contains("150 %"));
    assert!(with(|settings| settings.min_cost = Limit::Cost(f64::NAN)).contains("NaN"));
    let others = EventCosts::new(&[1.0]).unwrap();
    assert!(fold.hot_subpaths(&others, &hot::Config::new()).is_err());
}

#[test]
fn nothing_is_hot_where_there_is_nothing() {
    let mut builder = FoldBuilder::new(alphabet(1));
    let empty = builder.rule(&[]).unwrap();
    builder.stream(FoldedStream::new("s", "by hand", empty));
    for fold in [Fold::default(), builder.finish()] {
        for selection in [Selection::Minimal, Selection::All, Selection::Paper] {
            let settings = hot::Config::new().selection(selection).min_length(1);
            let hot = fold.hot_subpaths(&EventCosts::one_each(&fold), &settings).unwrap();
            assert_eq!((hot.found, hot.total), (0, 0.0));
        }
    }
    let fold = four_times_abbc();
    let free = EventCosts::new(&[0.0; 3]).unwrap();
    assert_eq!(fold.hot_subpaths(&free, &hot::Config::new()).unwrap().found, 0);
}

#[test]
fn related_subpaths_are_those_of_one_loop() {
    let subpath = |events: &[usize], count: u64| HotSubpath {
        events: events.iter().map(|&event| loopfold::Symbol::new(event).unwrap()).collect(),
        count,
        cost: 0.0,
        share: 0.0,
        streams: Vec::new(),
    };
    // The pairs of a loop of three events; one that overlaps it but is rare; the rotations of
    // another, which overlap too; one that is alone; one event.
    let all = [
        subpath(&[0, 1], 100),
        subpath(&[1, 2], 95),
        subpath(&[2, 0], 100),
        subpath(&[2, 7], 50),
        subpath(&[4, 5, 6], 30),
        subpath(&[6, 4, 5], 20),
        subpath(&[8, 9], 10),
        subpath(&[1], 10),
    ];
    assert_eq!(related(&all), [vec![0, 1, 2], vec![3], vec![4, 5], vec![6], vec![7]]);
}

/// Compared with every pair of subpaths, however they are related.
#[test]
fn related_subpaths_are_connected_pair_by_pair() {
    let mut rng = Rng::new(17);
    for _ in 0..2000 {
        let all: Vec<HotSubpath> = (0..rng.between(1, 12))
            .map(|_| HotSubpath {
                events: (0..rng.between(1, 4))
                    .map(|_| loopfold::Symbol::new(rng.below(3)).unwrap())
                    .collect(),
                count: rng.between(8, 12) as u64,
                cost: 0.0,
                share: 0.0,
                streams: Vec::new(),
            })
            .collect();
        let is_related = |one: &HotSubpath, other: &HotSubpath| {
            let (a, b) = (&one.events, &other.events);
            let is_rotation =
                a.len() == b.len() && (0..a.len()).any(|by| [&a[by..], &a[..by]].concat() == *b);
            let overlap = a.len() == b.len() && a.len() > 1 && a[1..] == b[..b.len() - 1];
            let difference = one.count.abs_diff(other.count) as f64;
            is_rotation || overlap && difference <= 0.1 * one.count.max(other.count) as f64
        };
        let mut group: Vec<usize> = (0..all.len()).collect();
        for _ in 0..all.len() {
            for i in 0..all.len() {
                for j in 0..all.len() {
                    if is_related(&all[i], &all[j]) {
                        let least = group[i].min(group[j]);
                        (group[i], group[j]) = (least, least);
                    }
                }
            }
        }
        let mut expected: Vec<Vec<usize>> = Vec::new();
        for first in 0..all.len() {
            let members: Vec<usize> = (0..all.len()).filter(|&member| group[member] == first).collect();
            expected.extend((!members.is_empty()).then_some(members));
        }
        assert_eq!(related(&all), expected);
    }
}
