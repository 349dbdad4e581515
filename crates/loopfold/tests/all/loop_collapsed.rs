//! LoopCollapsed streams: what they say of times, lengths and positions is what writing them out
//! says.

use crate::support::patterns::check_collapsed;
use crate::support::{outermost, symbols};
use loopfold::Symbol;
use loopfold::fold::FoldBuilder;
use loopfold::folders;
use loopfold::questions::patterns::LoopCollapsed;
use loopfold_testing::{Rng, streams};

#[test]
fn intervals_are_what_writing_them_out_says() {
    let mut rng = Rng::new(5);
    let (mut loops, mut nested) = (0, 0);
    for _ in 0..3_000 {
        let stream = symbols(&streams::small(&mut rng, 60));
        let collapsed = LoopCollapsed::of(&stream, &outermost).unwrap();
        loops += collapsed.loops().len();
        nested += collapsed.loops().windows(2).filter(|pair| pair[1].end <= pair[0].end).count();
        check_collapsed(&collapsed, &stream);
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
            check_collapsed(&collapsed, &stream);
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
