//! Every case of the corpus, folded by every folder and asked every question, beside the same
//! by brute force over its streams.
//!
//! A check is a function and a name in the list below; a case leaves one out by a line
//! `without`, which is an error unless the check really fails. Folders are left out likewise.

mod calls;
mod loops;
mod processes;
mod repeats;
mod sequences;
mod stored;
mod times;

use crate::support::corpus::trace_of;
use crate::support::folders;
use loopfold::folders::{Folder, fold_trace};
use loopfold::trace::Stream;
use loopfold::{Fold, Trace};
use loopfold_testing::corpus::{self, Case};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A case, its fold by one of the folders, and its streams as numbers.
struct Folded<'a> {
    case: &'a Case,
    trace: &'a Trace,
    streams: &'a [Vec<u32>],
    folder: &'a dyn Folder,
    fold: &'a Fold,
}

/// A case and its streams as numbers, for what does not depend on a fold.
struct Unfolded<'a> {
    case: &'a Case,
    trace: &'a Trace,
    streams: &'a [Vec<u32>],
}

macro_rules! checks {
    ($($each:ident: $($file:ident::$check:ident),+;)+) => {
        $($(
            #[test]
            fn $check() {
                $each(stringify!($check), $file::$check);
            }
        )+)+

        const CHECKS: &[&str] = &[$($(stringify!($check)),+),+];
    };
}

checks! {
    every_folder:
        sequences::unfolding, sequences::threads, sequences::online, sequences::refolding, sequences::joining, sequences::windows, sequences::find, sequences::order, sequences::context,
        sequences::hot_subpaths, sequences::figure_seven, sequences::parts, sequences::dropping,
        stored::archives, stored::sections, stored::summaries, stored::grammars, stored::graphs,
        loops::nests, loops::aligned_nests, loops::near_nests, loops::classes, loops::statistics, loops::loop_collapsed,
        times::event_sums, times::rule_sums, times::loop_times, times::self_times, times::summed_times, times::clocks,
        calls::paths, calls::call_statistics,
        processes::similar_windows, processes::peers, processes::trace_patterns, processes::partners,
        processes::waits, processes::logical_traces;
    every_case:
        stored::written_grammars, repeats::ngrams, repeats::exact_repeats, repeats::process_patterns;
}

/// Says which case a check failed on.
struct Where<'a>(&'a str, &'a str);

impl Drop for Where<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("in the case {}, {}", self.0, self.1);
        }
    }
}

fn every_folder(check: &str, run: fn(&Folded<'_>)) {
    every_case_with(check, |Unfolded { case, trace, streams }| {
        for folder in folders().iter().filter(|folder| !is_without(case, folder.name())) {
            let _where = Where(&case.name, folder.name());
            let fold = fold_trace((*trace).clone(), &**folder, 1).unwrap();
            run(&Folded { case, trace, streams, folder: &**folder, fold: &fold });
        }
    });
}

fn every_case(check: &str, run: fn(&Unfolded<'_>)) {
    every_case_with(check, |unfolded| {
        let _where = Where(&unfolded.case.name, "unfolded");
        run(unfolded);
    });
}

fn every_case_with(check: &str, run: impl Fn(&Unfolded<'_>)) {
    corpus::all().iter().for_each(|case| check_case(case, check, &run));
}

fn check_case(case: &Case, check: &str, run: impl Fn(&Unfolded<'_>)) {
    let trace = trace_of(case);
    let numbers = |stream: &Stream| stream.symbols.iter().map(|symbol| symbol.raw()).collect();
    let streams: Vec<Vec<u32>> = trace.streams.iter().map(numbers).collect();
    let unfolded = Unfolded { case, trace: &trace, streams: &streams };
    match case.without.iter().find(|without| without.what == check) {
        None => run(&unfolded),
        Some(without) if without.is_slow() => {}
        Some(_) => {
            let outcome = catch_unwind(AssertUnwindSafe(|| run(&unfolded)));
            assert!(outcome.is_err(), "{} need not be without {check}", case.name);
        }
    }
}

fn is_without(case: &Case, what: &str) -> bool {
    case.without.iter().any(|without| without.what == what)
}

#[test]
fn what_is_left_out_is_known() {
    let folders = folders();
    for case in corpus::all() {
        for without in &case.without {
            let is_folder = folders.iter().any(|folder| folder.name() == without.what);
            let is_check = CHECKS.contains(&without.what.as_str());
            assert!(is_folder || is_check, "{}: without {}", case.name, without.what);
            assert!(without.reason.len() > 10, "{}: {}", case.name, without.reason);
        }
    }
}

#[test]
fn a_check_that_is_left_out_has_to_fail() {
    let case = |reason: &str| corpus::parse("x", &format!("# x\nwithout find: {reason}")).unwrap();
    let passes = |case: &Case, is_good: bool| {
        let run = |_: &Unfolded<'_>| assert!(is_good, "as it should");
        catch_unwind(AssertUnwindSafe(|| check_case(case, "find", run))).is_ok()
    };
    let (good, bad) = (true, false);
    assert!(passes(&case("it fails"), bad) && !passes(&case("it fails"), good));
    assert!(passes(&case("slow"), bad) && passes(&case("slow"), good));
    assert!(!passes(&Case::default(), bad) && passes(&Case::default(), good));
}
