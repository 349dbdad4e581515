//! LoopCollapsed streams: what they say of times, lengths and positions is what writing them out
//! says.

use crate::support::outermost;
use loopfold::Symbol;
use loopfold::fold::FoldBuilder;
use loopfold::folders;
use loopfold::questions::{CollapsedLoop, LoopCollapsed, Node};
use loopfold_testing::{Rng, streams};

fn symbols(stream: &[u32]) -> Vec<Symbol> {
    stream.iter().map(|&symbol| Symbol::new(symbol as usize).unwrap()).collect()
}

/// The symbols of an interval, by their places, with these loops written out.
fn written_out(start: usize, end: usize, loops: &[CollapsedLoop]) -> Vec<usize> {
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

fn check(collapsed: &LoopCollapsed, stream: &[Symbol]) {
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
            let told =
                (collapsed.times(start, end), collapsed.events(start, end), collapsed.first(start, end));
            assert_eq!(
                told,
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

#[test]
fn intervals_are_what_writing_them_out_says() {
    let mut rng = Rng::new(5);
    let (mut loops, mut nested) = (0, 0);
    for _ in 0..3_000 {
        let stream = symbols(&streams::small(&mut rng, 60));
        let collapsed = LoopCollapsed::of(&stream, &outermost).unwrap();
        loops += collapsed.loops().len();
        nested += collapsed.loops().windows(2).filter(|pair| pair[1].end <= pair[0].end).count();
        check(&collapsed, &stream);
    }
    assert!(loops > 3_000 && nested > 300, "{loops} {nested}");
}

#[test]
fn the_loops_of_any_fold_are_taken_as_they_are() {
    let mut rng = Rng::new(6);
    for _ in 0..100 {
        let stream = symbols(&streams::small(&mut rng, 40));
        for folder in folders::all(loopfold::archive::coded_size) {
            let mut builder = FoldBuilder::default();
            let root = folder.fold(&stream, &mut builder).unwrap();
            let fold = builder.finish();
            let collapsed = LoopCollapsed::of_rule(&fold, root, 40).unwrap();
            check(&collapsed, &stream);
        }
    }
}

#[test]
fn a_stream_of_2_to_the_60_events_needs_only_its_symbols() {
    let mut builder = FoldBuilder::default();
    let [a, b] = [0, 1].map(|symbol| loopfold::fold::Item::once(Symbol::new(symbol).unwrap()));
    let inner = builder.repeat(&[a, b], 1 << 29).unwrap();
    let outer = builder.repeat(&[inner, b], 1 << 30).unwrap();
    let root = builder.rule(&[a, outer]).unwrap();
    let fold = builder.finish();
    let collapsed = LoopCollapsed::of_rule(&fold, root, 4).unwrap();
    assert_eq!(collapsed.length(), fold.length(root));
    assert_eq!(collapsed.times(1, 3), 1 << 59);
    assert_eq!(collapsed.times(2, 4), 1 << 30);
    assert_eq!(collapsed.events(2, 4), 2);
    assert_eq!(collapsed.first(2, 4), 1 << 30);
    assert!(LoopCollapsed::of_rule(&fold, root, 3).unwrap_err().kind() == loopfold::ErrorKind::Limit);
}
