//! Numbers of a recording that become numbers of the C program: each within what MPI takes and what the
//! program has room for.
//!
//! A recording can have any number anywhere. In C one of them is an index, a divisor, or how many bytes of
//! a buffer are written. So the values of every call that is written are computed for every process that
//! executes it, and a number that MPI would not accept, or that the program could not take without leaving
//! its arrays, is refused by the names of the call and the field. Bytes are the exception: a message of
//! 3 GiB is a message, of which as much is replayed as an `int` counts.
//!
//! Invariant: behind [`Executed::check`], the values of the fields that are written are in range for all
//! processes that execute the call, and its buffers are as large as [`Executed::buffer`]. Cost: O(values ×
//! processes) for each call.

use super::super::program::Program;
use super::calls::collective_name;
use super::words;
use crate::emit::Terminal;
use crate::mpi::WORLD;
use crate::questions::logical::{At, Expression, LogicalEvent, Token};
use crate::trace::Role;
use crate::{Error, Result};

/// Dimensions of a grid in the C program, at most: those of its `struct place`.
pub(super) const MOST_DIMENSIONS: usize = 8;

/// Bytes of a message in the C program at most: nearly what an `int` holds, and whole elements of all types.
pub(super) const MOST_BYTES: i64 = i32::MAX as i64 - 15;

/// Bytes of a buffer at most.
const LARGEST_BUFFER: i64 = 1 << 36;

/// Requests that are pending at once at most: those of a process are an array.
pub(super) const MOST_PENDING: usize = 1 << 24;

/// Nanoseconds of computation at most, some years: what is longer would not be a number of C.
const LONGEST_WORK: f64 = 1e17;

/// Collective operations with a root.
const ROOTED: [&str; 6] = ["Bcast", "Gather", "Gatherv", "Scatter", "Scatterv", "Reduce"];
/// Those with a count for each process, which are added up.
const WITH_COUNTS: [&str; 3] = ["Gatherv", "Allgatherv", "Scatterv"];
/// Those whose bytes are divided among all.
const DIVIDED: [&str; 3] = ["Alltoallv", "Alltoallw", "Reduce_scatter"];

/// A length of computation as C.
pub(super) fn nanoseconds(length: f64) -> f64 {
    if length.is_nan() { 0.0 } else { length.clamp(0.0, LONGEST_WORK) }
}

/// A call, and the processes that execute it.
pub(super) struct Executed<'a> {
    pub(super) program: &'a Program,
    pub(super) event: &'a LogicalEvent,
    pub(super) processes: Vec<usize>,
}

impl Executed<'_> {
    fn name(&self) -> &str {
        self.event.text().unwrap_or_default()
    }

    fn at(&self) -> impl Iterator<Item = At<'_>> {
        self.processes.iter().map(|&process| self.program.places.at(process, self.event.comm.as_deref()))
    }

    fn values(&self, key: &str) -> &[Expression] {
        self.event.field(key).map_or(&[][..], |field| &field.values)
    }

    fn refused(&self, what: &str, why: &str) -> Error {
        words::refused(self.name(), what, why)
    }

    /// Fails if a number is out of range.
    pub(super) fn check(&self) -> Result<()> {
        for key in self.written_keys() {
            for value in self.values(key) {
                for at in self.at() {
                    let token = value.value(at);
                    if let Some(why) = self.wrong(key, &token, at) {
                        return Err(self.refused(&format!("{key}={token}"), &why));
                    }
                }
            }
        }
        match self.name() {
            "MPI_Cart_create" => self.check_grid()?,
            "MPI_Comm_free" if matches!(self.event.comm.as_deref(), None | Some("0" | "1")) => {
                return Err(self.refused("no communicator", "that could be freed"));
            }
            _ => {}
        }
        if let Some(made @ ("0" | "1")) = self.made().as_deref() {
            return Err(self.refused(&format!("newcomm={made}"), "which is there from the beginning"));
        }
        Ok(())
    }

    /// The communicator that it creates.
    fn made(&self) -> Option<String> {
        self.values("newcomm").first().map(ToString::to_string)
    }

    /// The fields whose numbers are written.
    fn written_keys(&self) -> Vec<&'static str> {
        if self.event.role == Role::Collective {
            let has_root = ROOTED.contains(&collective_name(self.event).0.as_str());
            return if has_root { vec!["bytes", "root"] } else { vec!["bytes"] };
        }
        let mut keys = vec!["n", "done"];
        if self.name() == "MPI_Comm_split" && self.made().is_some() {
            keys.extend(["color", "key"]);
        }
        // Sends, receives, probes, and the starts of both.
        if ["end", "ecv", "robe", "Start"].iter().any(|part| self.name().contains(part)) {
            keys.extend(["dest", "src", "from", "tag", "recvtag", "bytes", "recvbytes"]);
        }
        keys
    }

    /// What is wrong with a value for a process.
    fn wrong(&self, key: &str, token: &Token, at: At<'_>) -> Option<String> {
        let Token::Number(number) = *token else {
            return (!words::is_known(self.event, key, token)).then(|| words::UNKNOWN.to_string());
        };
        let is_int = i32::try_from(number).is_ok();
        let is_right = match key {
            "dest" | "src" | "from" | "root" => (0..at.comm.size).contains(&number),
            "bytes" | "recvbytes" => number >= 0,
            "key" => is_int,
            _ => is_int && number >= 0,
        };
        (!is_right).then(|| match key {
            "dest" | "src" | "from" | "root" => {
                format!("which is no rank among {} of its communicator", at.comm.size)
            }
            _ if number < 0 && key != "key" => "which is negative".to_string(),
            _ => "which no int holds".to_string(),
        })
    }

    /// Fails unless the processes of the parent are enough for the grid.
    fn check_grid(&self) -> Result<()> {
        let text = |key: &str| words::list(self.values(key));
        let refused = |why: &str| Err(self.refused(&format!("dims={}", text("dims")), why));
        let (Some(sides), Some(periods)) = (words::numbers(&text("dims")), words::numbers(&text("periods")))
        else {
            // Who is not in the grid need not know it.
            return match (self.made(), self.event.field("dims")) {
                (None, None) => Ok(()),
                (_, Some(_)) => refused("which is no grid with its periods"),
                (_, None) => Err(self.refused("no dims", "so that its grid is not known")),
            };
        };
        if sides.len() > MOST_DIMENSIONS {
            return refused("which are more dimensions than a skeleton has");
        }
        if sides.len() != periods.len() {
            return refused("and another number of periods");
        }
        let size =
            sides.iter().try_fold(1i64, |size, &side| size.checked_mul(side.into())).unwrap_or(i64::MAX);
        let sides: Vec<u32> = sides.iter().map(|&side| side.unsigned_abs()).collect();
        for (&process, at) in self.processes.iter().zip(self.at()) {
            if !(1..=at.comm.size).contains(&size) || self.made().is_some() && at.comm.rank >= size {
                return refused(&format!("which is no grid of {} processes", at.comm.size));
            }
            let Some(made) = self.made() else { continue };
            let place = self.program.places.at(process, Some(&made)).comm;
            let is_same = |grid: &crate::mpi::Grid| {
                let is_periodic = periods.iter().map(|&period| period != 0);
                grid.sides == sides && grid.periodic.iter().copied().eq(is_periodic)
            };
            if place.grid.as_deref().is_some_and(|grid| !is_same(grid)) {
                return refused("which is another grid than that of its communicator");
            }
        }
        Ok(())
    }

    /// How many bytes of each buffer it reads or writes, at most. Fails if that is more than there may be.
    pub(super) fn buffer(&self) -> Result<i64> {
        let is_collective = self.event.role == Role::Collective;
        let base = if is_collective { collective_name(self.event).0 } else { String::new() };
        let mut largest = 0;
        for key in ["bytes", "recvbytes"] {
            for (value, at) in self.values(key).iter().flat_map(|value| self.at().map(move |at| (value, at)))
            {
                let recorded = value.integer(at).unwrap_or(0);
                let bytes = recorded.clamp(0, MOST_BYTES);
                let size = if is_collective { at.comm.size.max(1) } else { 1 };
                let all = bytes.saturating_mul(self.parts(&base, size));
                let counted = match base.as_str() {
                    base if WITH_COUNTS.contains(&base) => bytes.saturating_mul(size),
                    base if DIVIDED.contains(&base) => bytes.saturating_add(size),
                    _ => 0,
                };
                if counted > i32::MAX.into() || all > LARGEST_BUFFER {
                    let why = format!("which are too many for {size} processes");
                    return Err(self.refused(&format!("{key}={recorded}"), &why));
                }
                largest = largest.max(all);
            }
        }
        Ok(largest)
    }

    /// Parts of a buffer of so many bytes each that it has, at most.
    fn parts(&self, base: &str, size: i64) -> i64 {
        // In a grid, a process may be all of its neighbours.
        let parts = if base.starts_with("Neighbor") { size.max(2 * MOST_DIMENSIONS as i64) } else { size };
        // A double and an int have gaps between them.
        let has_gaps =
            self.values("op").iter().any(|op| ["MINLOC", "MAXLOC"].contains(&op.to_string().as_str()));
        if has_gaps { 2 * parts } else { parts }
    }

    /// The call with as many bytes as an `int` counts, if it has more.
    pub(super) fn limited(&self) -> Option<LogicalEvent> {
        let is_more = |value: &Expression| {
            self.at().any(|at| value.integer(at).is_some_and(|bytes| bytes > MOST_BYTES))
        };
        let mut limited = None;
        for (place, field) in self.event.fields.iter().enumerate() {
            if !["bytes", "recvbytes"].contains(&field.key.as_str()) || !field.values.iter().any(is_more) {
                continue;
            }
            let at: Vec<At<'_>> = self.at().collect();
            let limit = |value: &Expression| {
                let bytes = at.iter().map(|at| value.integer(*at).unwrap_or(0).min(MOST_BYTES));
                Expression::of_numbers(&at, bytes)
            };
            let event = limited.get_or_insert_with(|| self.event.clone());
            event.fields[place].values = field.values.iter().map(limit).collect();
        }
        limited
    }
}

/// Fails unless the grids of these communicators, by which peers are computed, are those of the C program.
pub(super) fn check_grids<'a>(program: &Program, comms: impl Iterator<Item = &'a str>) -> Result<()> {
    let refused = |comm: &str, why: &str| {
        Err(Error::invalid(format_args!("the grid of communicator {} {why}", Terminal::of(comm))))
    };
    let whole = |process: usize| program.places.world(process).grid.as_deref();
    let named: Vec<&str> = comms.chain([WORLD, "1"]).collect();
    for process in 0..program.processes {
        let dimensions = |grid: Option<&crate::mpi::Grid>| grid.map_or(0, |grid| grid.sides.len());
        if dimensions(whole(process)) > MOST_DIMENSIONS {
            return refused(WORLD, "has more dimensions than a skeleton");
        }
        for &comm in &named {
            let grid = program.places.at(process, Some(comm)).comm.grid.as_deref();
            if dimensions(grid) > MOST_DIMENSIONS {
                return refused(comm, "has more dimensions than a skeleton");
            }
            let is_own = match comm {
                WORLD => grid.is_none() || grid == whole(0),
                _ => true,
            };
            if !is_own {
                return refused(comm, "is not that of all processes");
            }
        }
    }
    Ok(())
}
