//! Notes for the user on how the peers of messages were rewritten.

use crate::show;
use loopfold::mpi::PeerRewrite;

/// The most communicators that a note names.
const MOST_NAMED: usize = 8;

const LONGEST_NAME: usize = 40;

/// Notes for the user on how peers were rewritten.
pub(super) fn notes_on_peers(rewrite: &PeerRewrite) -> Vec<String> {
    let mut notes = Vec::new();
    if !rewrite.has_messages {
        notes.push("no event has the rank of a peer, so --peers changes nothing".to_string());
    }
    let inferred: Vec<_> = rewrite.grids.iter().filter(|grid| grid.is_inferred).collect();
    for grid in inferred.iter().take(MOST_NAMED) {
        notes.push(format!("communicator {}: a grid of {grid}", show::shorten(&grid.comm, LONGEST_NAME)));
    }
    if inferred.len() > MOST_NAMED {
        notes.push(format!(
            "and {} more communicators whose messages show a grid",
            inferred.len() - MOST_NAMED
        ));
    }
    let about = |comms: &[String], what: &str| {
        (!comms.is_empty()).then(|| format!("{}: {what}", some_communicators(comms)))
    };
    notes.extend(about(&rewrite.without_grid, "no grid is known, so its peers are written as distances"));
    notes.extend(about(
        &rewrite.unclear,
        "the trace does not list its members, so it is assumed to contain all processes",
    ));
    notes.extend(about(
        &rewrite.reused,
        "its number is used again for other processes, so its peers are written as ranks",
    ));
    notes.extend(about(
        &rewrite.unplaced,
        "some processes use it, but the trace does not show them as members; their peers are written as ranks",
    ));
    notes
}

/// Says that numbers of communicators are used again.
pub(super) fn note_on_reused(reused: &[String]) -> String {
    format!(
        "{}: its number is used again for other processes; the later ones are called {}.2 and so on",
        some_communicators(reused),
        reused.first().map_or_else(String::new, |comm| show::shorten(comm, LONGEST_NAME)),
    )
}

/// The names of the first few communicators.
fn some_communicators(comms: &[String]) -> String {
    let shown = comms.iter().take(MOST_NAMED);
    let mut names: Vec<String> = shown.map(|comm| show::shorten(comm, LONGEST_NAME)).collect();
    if comms.len() > MOST_NAMED {
        names.push(format!("and {} more", comms.len() - MOST_NAMED));
    }
    format!("communicator {}", names.join(", "))
}
