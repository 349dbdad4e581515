//! Patterns of single streams: what is found, and the same by comparing all with all.

use super::symbols;
use loopfold::Symbol;
use loopfold::questions::nest::Node;
use loopfold::questions::patterns::{CollapsedLoop, LoopCollapsed, Ngrams, Pattern, PatternMethod, Repeats};
use loopfold_testing::patterns;
use std::collections::BTreeMap;

/// What the n-gram detector finds.
pub fn ngrams(stream: &[u32]) -> patterns::Repeats {
    let mut found = patterns::Repeats::new();
    for pattern in Ngrams::of(&symbols(stream)).unwrap() {
        let positions: Vec<usize> = pattern.positions.iter().map(|&position| position as usize).collect();
        let events = stream[positions[0]..positions[0] + pattern.length].to_vec();
        assert!(found.insert(events, positions).is_none(), "a pattern was found twice");
    }
    found
}

/// What the exact detector finds: where each repeat is, and whether it is supermaximal.
pub fn repeats(stream: &[u32]) -> BTreeMap<Vec<u32>, (Vec<usize>, bool)> {
    let found = Repeats::of(&symbols(stream)).unwrap();
    let mut repeats = BTreeMap::new();
    for repeat in found.all() {
        let positions: Vec<usize> = found.positions(repeat).iter().map(|&at| at as usize).collect();
        assert_eq!(positions.len(), found.count(repeat));
        let events = stream[positions[0]..positions[0] + repeat.length].to_vec();
        assert!(repeats.insert(events, (positions, repeat.is_supermaximal)).is_none());
    }
    repeats
}

/// Exact repeats by looking at all substrings.
pub fn expected_repeats(stream: &[u32]) -> BTreeMap<Vec<u32>, (Vec<usize>, bool)> {
    let all = patterns::maximal_repeats(stream);
    patterns::separate(all.clone())
        .into_iter()
        .map(|(repeat, positions)| {
            let is_supermaximal = !patterns::is_part_of_another(&repeat, &all);
            (repeat, (positions, is_supermaximal))
        })
        .collect()
}

/// What is known of a pattern: symbols, places with times, separate places, count, inside.
pub type Summary = (Vec<Symbol>, Vec<(u32, u64)>, u64, u64, u64);

pub fn summary_of(pattern: &Pattern) -> Summary {
    let [only] = &pattern.classes[..] else { panic!("more than one stream") };
    let places = only.places.iter().map(|place| (place.start, place.times)).collect();
    (pattern.symbols.clone(), places, pattern.places, pattern.count, pattern.inside)
}

/// A place without what it has of loops that it starts or ends in but does not lie in.
pub fn uncut(collapsed: &LoopCollapsed, start: u32, end: u32) -> (u32, u32) {
    let is_cut = |at: u32| {
        collapsed.loops().iter().any(|found| {
            let holds = (found.start..found.end).contains(&at);
            let is_around = found.start <= start && found.end >= end;
            let is_inside = found.start >= start && found.end <= end;
            holds && !is_around && !is_inside
        })
    };
    let whole: Vec<u32> = (start..end).filter(|&at| !is_cut(at)).collect();
    match whole[..] {
        [] => (0, 0),
        [first, ..] => (first, whole[whole.len() - 1] + 1),
    }
}

/// The same, by comparing every occurrence with all places of longer patterns.
pub fn settled(collapsed: &LoopCollapsed, method: PatternMethod) -> Vec<Summary> {
    let all = collapsed.symbols();
    let mut found: Vec<(usize, Vec<u32>)> = match method {
        PatternMethod::Ngrams => {
            let grown = Ngrams::of(all).unwrap().into_iter().map(|found| (found.length, found.positions));
            with_loop_bodies(collapsed, grown.collect())
        }
        PatternMethod::Exact => {
            let repeats = Repeats::of(all).unwrap();
            repeats.all().iter().map(|repeat| (repeat.length, repeats.positions(repeat))).collect()
        }
    };
    found.sort_by_key(|(length, starts)| (std::cmp::Reverse(*length), starts[0]));
    let mut places: Vec<(u32, u32)> = Vec::new();
    let mut own: Vec<(usize, Vec<u32>)> = Vec::new();
    for (length, starts) in found {
        let longer = places.clone();
        let mut behind = 0;
        let mut mine = Vec::new();
        for start in starts {
            let end = start + length as u32;
            let is_part = longer.iter().any(|&(begin, behind)| begin <= start && end <= behind);
            if !is_part && start >= behind {
                places.push(uncut(collapsed, start, end));
                mine.push(start);
                behind = end;
            }
        }
        own.push((length, mine));
    }
    let mut found: Vec<Summary> = Vec::new();
    for (length, starts) in own.iter().filter(|(_, starts)| !starts.is_empty()) {
        let first = starts[0] as usize;
        let symbols = all[first..first + length].to_vec();
        let times = |start: u32| collapsed.times(start as usize, start as usize + length);
        let with_times: Vec<(u32, u64)> = starts.iter().map(|&start| (start, times(start))).collect();
        let separate = starts.windows(2).filter(|pair| pair[0] + *length as u32 != pair[1]).count() + 1;
        let count: u64 = with_times.iter().map(|(_, times)| times).sum();
        let mut behind = 0;
        let mut inside = 0;
        for start in 0..=(all.len() - length) as u32 {
            let end = start + *length as u32;
            let is_part = places.iter().any(|&(begin, behind)| begin <= start && end <= behind);
            let is_part = is_part && !starts.contains(&start);
            if all[start as usize..end as usize] == symbols && is_part && start >= behind {
                inside += times(start);
                behind = end;
            }
        }
        found.push((symbols, with_times, separate as u64, count, inside));
    }
    found.sort();
    found
}

/// Adds the bodies of loops that come again elsewhere. The streams are so short that a hundredth
/// of one is less than any loop.
pub fn with_loop_bodies(collapsed: &LoopCollapsed, grown: Vec<(usize, Vec<u32>)>) -> Vec<(usize, Vec<u32>)> {
    let all = collapsed.symbols();
    let mut found: BTreeMap<&[Symbol], Vec<u32>> = grown
        .into_iter()
        .map(|(length, starts)| (&all[starts[0] as usize..starts[0] as usize + length], starts))
        .collect();
    for body in collapsed.loops().iter().map(|found| &all[found.start as usize..found.end as usize]) {
        let starts: Vec<u32> = (0..=all.len() - body.len())
            .filter(|&start| all[start..].starts_with(body))
            .map(|start| start as u32)
            .collect();
        let is_repeat = (starts[starts.len() - 1] - starts[0]) as usize >= body.len();
        if body.len() >= 2 && (is_repeat || found.contains_key(body)) {
            found.insert(body, starts);
        }
    }
    found.into_iter().map(|(body, starts)| (body.len(), starts)).collect()
}

/// The symbols of an interval, by their places, with these loops written out.
pub fn written_out(start: usize, end: usize, loops: &[CollapsedLoop]) -> Vec<usize> {
    let mut out = Vec::new();
    let mut at = start;
    while at < end {
        let starts_here =
            loops.iter().position(|found| found.start as usize == at && found.end as usize <= end);
        match starts_here {
            Some(index) => {
                let CollapsedLoop { end: behind, times, .. } = loops[index];
                let body = written_out(at, behind as usize, &loops[index + 1..]);
                (0..times).for_each(|_| out.extend(&body));
                at = behind as usize;
            }
            None => {
                out.push(at);
                at += 1;
            }
        }
    }
    out
}

/// What it says of every interval is what writing it out says.
pub fn check_collapsed(collapsed: &LoopCollapsed, stream: &[Symbol]) {
    let loops = collapsed.loops();
    let length = collapsed.symbols().len();
    let whole = written_out(0, length, loops);
    let events: Vec<Symbol> = whole.iter().map(|&at| collapsed.symbols()[at]).collect();
    assert_eq!(events, stream);
    assert_eq!(collapsed.length(), stream.len() as u64);
    for (position, &at) in whole.iter().enumerate() {
        assert_eq!(collapsed.index_at(position as u64), Some(at), "{position} {loops:?}");
    }
    assert_eq!(collapsed.index_at(whole.len() as u64), None);
    for start in 0..length {
        let first = whole.iter().position(|&at| at == start).unwrap();
        assert_eq!(collapsed.position(start), first as u64);
        for end in start + 1..=length {
            let whole_loop =
                |found: &&CollapsedLoop| (found.start as usize, found.end as usize) != (start, end);
            let others: Vec<CollapsedLoop> = loops.iter().filter(whole_loop).copied().collect();
            let once = written_out(start, end, &others);
            let found: Vec<usize> =
                (0..=whole.len() - once.len()).filter(|&at| whole[at..at + once.len()] == once[..]).collect();
            let counted =
                (collapsed.times(start, end), collapsed.events(start, end), collapsed.first(start, end));
            assert_eq!(
                counted,
                (found.len() as u64, once.len() as u64, found[0] as u64),
                "{start} {end} {loops:?}"
            );
            let nest = collapsed.nest(start, end);
            assert_eq!(nest.length(0..nest.nodes.len()), once.len() as u64);
            let events = nest.nodes.iter().filter(|node| matches!(node, Node::Event(_)));
            assert_eq!(events.count(), end - start);
        }
    }
}
