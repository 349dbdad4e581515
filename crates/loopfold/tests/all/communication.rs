//! Communication patterns of programs whose communication is known.

use crate::support::{outermost, programs};
use loopfold::folders::SequiturRuns;
use loopfold::mpi::{Direction, Layout};
use loopfold::questions::communication::{
    CommunicationPattern, Description, Partners, Processes, communication_patterns,
};
use loopfold::questions::patterns::{
    self, EventChoice, LoopCollapsed, MemoryBudget, Patterns, RecurringPlace,
};
use loopfold_testing::mpi::{self, Program};

/// Asks for the patterns of a program: from its loops alone, and from its process patterns as
/// well, which must find the same.
fn check(program: &Program, then: impl Fn(Vec<(CommunicationPattern, Description)>)) {
    check_with(program, |shown| vec![Vec::new(); shown.len()], &then);
    let with_patterns =
        |shown: &[&LoopCollapsed]| Patterns::of(shown, &patterns::Config::new()).unwrap().places(shown.len());
    check_with(program, with_patterns, &then);
}

fn check_with(
    program: &Program,
    places: impl Fn(&[&LoopCollapsed]) -> Vec<Vec<RecurringPlace>>,
    then: &impl Fn(Vec<(CommunicationPattern, Description)>),
) {
    let fold = programs::fold(program, &SequiturRuns);
    let processes =
        Processes::of(&fold, &EventChoice::default(), MemoryBudget::default(), &outermost).unwrap();
    let partners = Partners::of(&processes).unwrap();
    assert_eq!((&partners.unmatched[..], &partners.disagreements[..]), (&[][..], &[][..]));
    let places = places(&processes.shown());
    let describe = |pattern: CommunicationPattern| {
        let description = Description::of(&pattern, &processes, &partners, None);
        (pattern, description)
    };
    then(communication_patterns(&processes, &partners, &places).into_iter().map(describe).collect());
}

fn summaries(patterns: &[(CommunicationPattern, Description)]) -> Vec<(u64, u64, usize, String)> {
    let summaries = |(pattern, description): &(CommunicationPattern, Description)| {
        let topology = description.topology.as_ref().map_or(String::new(), |topology| {
            format!(
                "{} {:?} {:?} {}",
                topology.layout.name(),
                topology.shape,
                topology.directions,
                topology.departs()
            )
        });
        (pattern.count, pattern.events, pattern.parts().len(), topology)
    };
    patterns.iter().map(summaries).collect()
}

#[test]
fn sp_exchanges_with_all_others() {
    check(&mpi::sp(400), |patterns| {
        // The first time lies before the loop, so it is found with process patterns only.
        let (count, ..) = summaries(&patterns)[0];
        assert!(count == 400 || count == 401);
        assert_eq!(summaries(&patterns)[0], (count, 96, 4, "all-to-all [4] [Both] 0".to_string()));
    });
}

#[test]
fn lu_is_two_wavefronts_in_a_mesh() {
    check(&mpi::lu(4, 4, 31, 300), |patterns| {
        let layout = |index: usize| patterns[index].1.topology.as_ref().unwrap();
        assert_eq!((layout(0).layout, &layout(0).shape[..]), (Layout::Mesh, &[4, 4][..]));
        assert_eq!((patterns[0].0.count, patterns[0].0.parts().len()), (300, 16));
        let sweeps: Vec<_> =
            patterns[1..3].iter().map(|pattern| pattern.1.topology.clone().unwrap()).collect();
        assert!(sweeps.iter().all(|sweep| sweep.layout == Layout::Wavefront && sweep.shape == [4, 4]));
        let mut directions: Vec<_> = sweeps.iter().map(|sweep| sweep.directions.clone()).collect();
        directions.sort_by_key(|directions| directions[0] == Direction::Down);
        assert_eq!(directions, [vec![Direction::Up; 2], vec![Direction::Down; 2]]);
    });
}

#[test]
fn a_weather_model_exchanges_in_a_mesh_in_two_functions() {
    check(&mpi::weather(4, 4, 3510), |patterns| {
        assert_eq!(patterns[0].0.count, 3510);
        assert_eq!(patterns[0].1.topology.as_ref().unwrap().shape, [4, 4]);
        let functions = [("SOLVE_EM".to_string(), 3500), ("START_DOMAIN_EM".to_string(), 10)];
        assert_eq!(patterns[0].1.functions, functions);
        // Figure 8: the shorter one is how the longer one begins, and occurs elsewhere.
        let collective: Vec<_> = patterns.iter().filter(|pattern| pattern.1.is_collective).collect();
        let summaries: Vec<_> =
            collective.iter().map(|pattern| (pattern.0.count, pattern.0.parts().len())).collect();
        assert_eq!(summaries, [(116, 16), (60, 16)]);
    });
}
