//! Hot subpaths of a fold, and of the unfolded streams by their definition.

use super::unfolded;
use loopfold::Fold;
use loopfold::fold::{Item, Target, rule_uses};
use loopfold::questions::hot::{self, EventCosts, HotSubpaths, Selection};
use loopfold_testing::subpaths::{self, Hot, Part};

/// What to look for.
pub struct Question {
    pub settings: hot::Config,
    /// The same for the oracle.
    pub hot: Hot,
    /// What each event costs, by its symbol.
    pub costs: Vec<u64>,
}

impl Question {
    pub fn ask(&self, fold: &Fold, selection: Selection) -> HotSubpaths {
        let costs: Vec<f64> = self.costs.iter().map(|&cost| cost as f64).collect();
        let settings = self.settings.selection(selection);
        fold.hot_subpaths(&EventCosts::new(&costs).unwrap(), &settings).unwrap()
    }

    #[track_caller]
    pub fn check(&self, fold: &Fold, streams: &[Vec<u32>]) {
        for selection in [Selection::Minimal, Selection::All] {
            let expected = subpaths::hot(
                streams,
                |event| self.costs[event as usize],
                self.hot,
                selection == Selection::All,
            );
            let given = self.ask(fold, selection);
            let pairs: Vec<(Vec<u32>, u64)> = given
                .subpaths
                .iter()
                .map(|hot| (hot.events.iter().map(|symbol| symbol.raw()).collect(), hot.count))
                .collect();
            assert_eq!(pairs, expected, "{:?} {:?} of {streams:?}", self.settings, self.costs);
            assert_eq!(given.found, expected.len() as u64);
            self.check_numbers(&given, streams);
        }
    }

    pub fn check_numbers(&self, given: &HotSubpaths, streams: &[Vec<u32>]) {
        let total: u64 = streams.iter().flatten().map(|&event| self.costs[event as usize]).sum();
        assert_eq!(given.total, total as f64);
        for hot in &given.subpaths {
            let events: Vec<u32> = hot.events.iter().map(|symbol| symbol.raw()).collect();
            let each: u64 = events.iter().map(|&event| self.costs[event as usize]).sum();
            assert_eq!(hot.cost, (each * hot.count) as f64);
            assert_eq!(hot.share, hot.cost / total as f64);
            let counts = streams.iter().map(|stream| subpaths::count(stream, &events)).enumerate();
            let expected: Vec<(usize, u64)> = counts.filter(|&(_, count)| count > 0).collect();
            let given: Vec<(usize, u64)> =
                hot.streams.iter().map(|&(id, count)| (id.index(), count)).collect();
            assert_eq!(given, expected, "{events:?} in {streams:?}");
        }
    }
}

/// The same rules with every count written out.
pub fn written_out(fold: &Fold) -> Vec<Vec<Part>> {
    let part = |item: &Item| match item.target() {
        Target::Symbol(symbol) => Part::Event(symbol.raw()),
        Target::Rule(rule) => Part::Rule(rule.index()),
    };
    let body =
        |rule| fold.body(rule).iter().flat_map(|item| vec![part(item); item.times() as usize]).collect();
    fold.rules().map(body).collect()
}

#[track_caller]
pub fn check_figure_seven(question: &Question, fold: &Fold) {
    let rules = written_out(fold);
    let uses = rule_uses(fold).unwrap();
    let printed = subpaths::figure_seven(&rules, &uses, |event| question.costs[event as usize], question.hot);
    let given = question.ask(fold, Selection::Paper);
    let mut events: Vec<Vec<u32>> =
        given.subpaths.iter().map(|hot| hot.events.iter().map(|symbol| symbol.raw()).collect()).collect();
    events.sort();
    assert!(printed.iter().eq(&events), "{printed:?} but {events:?} of {rules:?}, {:?}", question.settings);
    let streams = unfolded(fold);
    question.check_numbers(&given, &streams);
    for hot in &given.subpaths {
        assert!(hot.cost >= given.limit);
    }
}
