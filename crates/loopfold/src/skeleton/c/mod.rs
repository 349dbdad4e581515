//! Writes a program as C that a person can read: a function for each loop, with its share of the
//! time, and a statement for each call.

mod calls;
mod expressions;
mod persistent;
mod runtime;

use super::operations::Members;
use super::program::{Node, NodeId, Program};
use super::scale::Scaled;
use super::timing::Timing;
use super::{Config, Shared};
use crate::questions::logical::{At, Expression, LogicalEvent};
use calls::{Calls, LARGEST, Replay};
use expressions::{LAST, comm_name, expression, guard};
use hashbrown::{HashMap, HashSet};
use persistent::Persistent;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What is written.
pub(super) struct Written {
    pub(super) text: String,
    pub(super) notes: Vec<String>,
}

/// Shorter computation than this is left out: calling costs as much.
const SHORTEST_WORK: f64 = 20.0;

/// A share of the time below which it does not matter whether processes compute equally long.
const LEAST_UNEVEN: f64 = 0.01;

/// Bytes of a buffer at most.
const LARGEST_BUFFER: i64 = 1 << 31;

pub(super) struct Writer<'a> {
    config: &'a Config,
    whole: &'a Program,
    scaled: &'a Scaled,
    timing: &'a Timing,
    calls: Calls<'a>,
    /// How often each process executes each node: in the whole program, and here.
    executions: Vec<(Vec<u64>, Vec<u64>)>,
    /// The functions so far, those that are called first.
    functions: String,
    /// Lengths of computation, by rank or by chance.
    tables: String,
    /// The number of each loop in the text.
    loops: usize,
    instead: BTreeMap<String, (&'static str, u64)>,
    left_out: BTreeMap<String, (&'static str, u64)>,
    largest: i64,
}

impl<'a> Writer<'a> {
    pub(super) fn new(
        config: &'a Config,
        whole: &'a Program,
        scaled: &'a Scaled,
        shared: &'a Shared,
    ) -> Self {
        let program = &scaled.program;
        let executions = (0..program.processes)
            .map(|process| {
                let recorded = process % whole.processes;
                (whole.executions(recorded), program.executions(process))
            })
            .collect();
        let calls = Calls {
            program,
            wildcards: config.wildcards.unwrap_or(super::Wildcards::Recorded),
            persistent: Persistent::of(program),
            created: created(program),
            same_bytes: same_bytes(program),
            split_as: split_as(program, &shared.members),
        };
        Self {
            config,
            whole,
            scaled,
            timing: &shared.timing,
            calls,
            executions,
            functions: String::new(),
            tables: String::new(),
            loops: 0,
            instead: BTreeMap::new(),
            left_out: BTreeMap::new(),
            largest: 1,
        }
    }

    /// The whole text.
    pub(super) fn write(mut self, heading: &str) -> Written {
        let mut body = String::new();
        let top = self.scaled.program.top.clone();
        self.nodes(&top, 1, &mut body);
        let run = format!(
            "\n/* Everything between MPI_Init and MPI_Finalize. */\nstatic void replay(void)\n{{\n{body}}}\n"
        );
        let replayed = format!("{}{run}", self.functions);
        let notes = self.notes();
        let mut text = String::new();
        let _ = writeln!(text, "{}", comment(&[heading.to_string(), notes.join("\n")].join("\n")));
        text.push_str(&self.declarations(&replayed));
        text.push_str(&self.tables);
        text.push_str(&replayed);
        text.push_str(&self.main(&replayed));
        Written { text, notes }
    }

    fn nodes(&mut self, nodes: &[NodeId], depth: usize, out: &mut String) {
        let mut open: Option<String> = None;
        for &id in nodes {
            match &self.scaled.program.nodes[id] {
                Node::Call(event) => {
                    let event = event.clone();
                    self.call(id, &event, depth, out);
                    open = None;
                }
                Node::Branch { guard: condition, body } => {
                    let (condition, body) = (guard(condition), body.clone());
                    let mut inner = String::new();
                    self.nodes(&body, depth + 1, &mut inner);
                    if inner.is_empty() {
                        continue;
                    }
                    // One branch after the other is one if they have the same condition.
                    if open.as_ref() == Some(&condition) && out.ends_with("}\n") {
                        out.truncate(out.trim_end().len() - 1);
                        out.truncate(out.trim_end_matches(' ').len());
                    } else {
                        line(out, depth, &format!("if ({condition}) {{"));
                    }
                    out.push_str(&inner);
                    line(out, depth, "}");
                    open = Some(condition);
                }
                Node::Loop { body } => {
                    let body = body.clone();
                    self.repeated(id, &body, depth, out);
                    open = None;
                }
            }
        }
    }

    /// A loop: a function, unless it is a single call.
    fn repeated(&mut self, id: NodeId, body: &[NodeId], depth: usize, out: &mut String) {
        let times = self.times(id);
        let comment = self.loop_comment(id);
        let is_simple = matches!(body, [only] if matches!(self.scaled.program.nodes[*only], Node::Call(_)));
        self.loops += 1;
        let (name, mut inner) = (format!("loop_{}", self.loops), String::new());
        let is_once = times == "1";
        if is_simple {
            self.nodes(body, depth + usize::from(!is_once), &mut inner);
            line(out, depth, &format!("/* {comment} */"));
            if is_once {
                out.push_str(&inner);
                return;
            }
            line(out, depth, &format!("for (long nth = 0; nth < {times}; nth++) {{"));
            out.push_str(&inner);
            line(out, depth, "}");
            return;
        }
        self.nodes(body, if is_once { 1 } else { 2 }, &mut inner);
        if !is_once {
            inner = format!("    for (long nth = 0; nth < {times}; nth++) {{\n{inner}    }}\n");
        }
        let _ = write!(self.functions, "\n/* {comment} */\nstatic void {name}(void)\n{{\n{inner}}}\n");
        line(out, depth, &format!("{name}();"));
    }

    /// How often a loop iterates, as C.
    fn times(&self, id: NodeId) -> String {
        let program = &self.scaled.program;
        let executed: Vec<usize> =
            (0..program.processes).filter(|&process| self.executions[process].1[id] > 0).collect();
        let at: Vec<At<'_>> = executed.iter().map(|&process| program.places.at(process, None)).collect();
        let counts =
            executed.iter().map(|&process| i64::try_from(program.counts[id][process]).unwrap_or(i64::MAX));
        expression(&Expression::of_numbers(&at, counts), crate::mpi::WORLD)
    }

    fn loop_comment(&self, id: NodeId) -> String {
        let range = |counts: &mut dyn Iterator<Item = u64>| {
            let (least, most) =
                counts.fold((u64::MAX, 0), |(least, most), count| (least.min(count), most.max(count)));
            if least >= most { most.to_string() } else { format!("{least} to {most}") }
        };
        let program = &self.scaled.program;
        let executed = || (0..program.processes).filter(|&process| self.executions[process].1[id] > 0);
        let left = range(&mut executed().map(|process| program.counts[id][process]));
        let recorded = |process: usize| self.whole.counts[id][process % self.whole.processes];
        let whole = range(&mut executed().map(recorded));
        let iterations = if left == "1" && left == whole { "iteration" } else { "iterations" };
        let of = if left == whole { String::new() } else { format!(" of {whole}") };
        match self.timing.is_known {
            true => format!("{left}{of} {iterations}; {:.1} % of the time", 100.0 * self.timing.share(id)),
            false => format!("{left}{of} {iterations}"),
        }
    }

    fn call(&mut self, id: NodeId, event: &LogicalEvent, depth: usize, out: &mut String) {
        let name = event.text().unwrap_or("?").to_string();
        let replay = self.calls.replay(id, event);
        if !matches!(replay, Replay::Nothing) {
            self.work(id, depth, out);
        }
        let executed: u64 = self.executions.iter().map(|(_, here)| here[id]).sum();
        match replay {
            Replay::Nothing => {}
            Replay::Call(text) => line(out, depth, &text),
            Replay::Instead(text, reason) => {
                self.instead.entry(name.clone()).or_insert((reason, 0)).1 += executed;
                line(out, depth, &format!("/* instead of {name}: {reason} */\n{text}"));
            }
            Replay::LeftOut(reason) => {
                self.left_out.entry(name).or_insert((reason, 0)).1 += executed;
                line(out, depth, &format!("/* {} is left out: {reason} */", harmless(&event.to_string())));
            }
        }
        self.enlarge(event);
    }

    /// The buffer that a call needs.
    fn enlarge(&mut self, event: &LogicalEvent) {
        let program = &self.scaled.program;
        let is_for_all = event.role == crate::trace::Role::Collective;
        for process in 0..program.processes {
            let at = program.places.at(process, event.comm.as_deref());
            let factor = if is_for_all { at.comm.size.max(1) } else { 1 };
            for key in ["bytes", "recvbytes"] {
                let values = event.field(key).map_or(&[][..], |field| &field.values);
                for bytes in values.iter().filter_map(|value| value.integer(at)) {
                    self.largest = self.largest.max(bytes.saturating_mul(factor));
                }
            }
        }
    }

    /// Computation before a call.
    fn work(&mut self, id: NodeId, depth: usize, out: &mut String) {
        let scale = self.config.scale.value();
        let factor = |process: usize| {
            let (whole, here) = &self.executions[process];
            self.scaled.work_factor(whole[id], here[id], scale)
        };
        let executed: Vec<usize> =
            (0..self.executions.len()).filter(|&process| self.executions[process].1[id] > 0).collect();
        let recorded = self.whole.processes;
        let lengths: Vec<f64> = executed
            .iter()
            .map(|&process| factor(process) * self.timing.gap(id, process % recorded))
            .collect();
        let mean = lengths.iter().sum::<f64>() / lengths.len().max(1) as f64;
        if mean < SHORTEST_WORK {
            return;
        }
        if self.config.noise {
            let (own, gap) = (mean, self.timing.mean_gap(id));
            let parts = self.timing.quantiles(id, 16);
            let parts = parts.into_iter().map(|part| part * if gap > 0.0 { own / gap } else { 0.0 });
            self.table(id, parts);
            line(out, depth, &format!("noisy_work(work_{id});"));
            return;
        }
        // Differences between processes are kept where they matter.
        let is_even = lengths.iter().all(|length| (length - mean).abs() <= 0.1 * mean);
        if is_even || self.timing.gap_share(id) < LEAST_UNEVEN {
            line(out, depth, &format!("work({mean:.0});"));
            return;
        }
        let mut by_rank = vec![0.0; self.executions.len()];
        executed.iter().zip(&lengths).for_each(|(&process, &length)| by_rank[process] = length);
        self.table(id, by_rank.into_iter());
        line(out, depth, &format!("work(work_{id}[rank]);"));
    }

    fn table(&mut self, id: NodeId, lengths: impl Iterator<Item = f64>) {
        let lengths: Vec<String> = lengths.map(|length| format!("{length:.0}")).collect();
        let _ = write!(self.tables, "static const float work_{id}[] = {{");
        for (place, some) in lengths.chunks(16).enumerate() {
            let _ = write!(self.tables, "{}{}", if place > 0 { ",\n    " } else { "" }, some.join(", "));
        }
        self.tables.push_str("};\n");
    }

    fn declarations(&self, replayed: &str) -> String {
        let mut parts: Vec<&str> = Vec::new();
        let mut used = replayed.to_string();
        used.push_str("enter(&world); world");
        if self.grid().is_some() {
            used.push_str("grid(");
        }
        for part in runtime::PARTS.iter().rev() {
            if part.needed_by.iter().any(|needed| used.contains(needed)) {
                used.push_str(part.text);
                parts.push(part.text);
            }
        }
        parts.reverse();
        let has_regions = has_regions(replayed);
        let mut text = String::from("#define _GNU_SOURCE\n");
        if has_regions {
            text.push_str("#include <dlfcn.h>\n");
        }
        text.push_str("#include <mpi.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <time.h>\n\n");
        let _ = writeln!(
            text,
            "enum {{ RANKS = {}, MOST_PENDING = {} }};",
            self.executions.len(),
            self.scaled.ended.most_pending.max(1)
        );
        if self.config.touched > 0 {
            let _ = writeln!(text, "#define TOUCHED ((size_t){})", self.config.touched.max(64));
        }
        if replayed.contains(LARGEST) {
            let _ = writeln!(text, "#define {LARGEST} {}", self.largest.clamp(1, i32::MAX.into()));
        }
        if replayed.contains(&format!("&{LAST})")) {
            let _ = writeln!(
                text,
                "/* Of the message that was last received from anyone. */\nstatic MPI_Status {LAST};"
            );
        }
        text.push_str("static int rank, size;\n/* What is in messages does not matter, so all have the same buffers. */\nstatic char *out, *in;\n");
        parts.iter().for_each(|part| text.push_str(part));
        let mut created: Vec<&String> = self.calls.created.iter().collect();
        created.sort();
        for comm in created {
            let _ = writeln!(text, "static struct place {};", comm_name(comm));
        }
        if self.calls.persistent.len() > 0 {
            let _ = writeln!(text, "static MPI_Request persistent[{}];", self.calls.persistent.len());
        }
        if replayed.contains("free_persistent(") {
            let _ = write!(
                text,
                "\nstatic void free_persistent(void)\n{{\n    static int next;\n    MPI_Request_free(&persistent[next++ % {}]);\n}}\n",
                self.calls.persistent.len()
            );
        }
        text.push_str(if self.config.touched > 0 { runtime::WORK_IN_MEMORY } else { runtime::WORK });
        text.push_str(runtime::CALIBRATE);
        text.push_str(runtime::CONNECT);
        if replayed.contains("noisy_work(") {
            text.push_str(runtime::NOISE);
        }
        if has_regions {
            text.push_str(runtime::REGIONS);
        }
        text.push('\n');
        text
    }

    /// The grid of all processes.
    fn grid(&self) -> Option<std::sync::Arc<crate::mpi::Grid>> {
        let program = &self.scaled.program;
        (program.processes > 0).then(|| program.places.world(0).grid.clone()).flatten()
    }

    fn main(&self, replayed: &str) -> String {
        let buffer = self.largest.clamp(1, LARGEST_BUFFER);
        let mut text = String::from(
            "\nint main(int argc, char **argv)\n{\n    MPI_Init(&argc, &argv);\n    world.comm = MPI_COMM_WORLD;\n    enter(&world);\n",
        );
        if let Some(grid) = self.grid() {
            let sides: Vec<String> = grid.sides.iter().map(ToString::to_string).collect();
            let periods: Vec<String> = grid.periodic.iter().map(|&is| u8::from(is).to_string()).collect();
            let _ = writeln!(
                text,
                "    grid(&world, {}, (const int[]){{{}}}, (const int[]){{{}}});",
                sides.len(),
                sides.join(", "),
                periods.join(", ")
            );
        }
        text.push_str(
            "    rank = world.rank;\n    size = world.size;\n    if (size != RANKS) {\n        if (rank == 0)\n            \
             fprintf(stderr, \"this skeleton is for %d processes\\n\", RANKS);\n        MPI_Abort(MPI_COMM_WORLD, 2);\n    }\n",
        );
        if replayed.contains("self.comm") {
            text.push_str("    self.comm = MPI_COMM_SELF;\n    enter(&self);\n");
        }
        let _ = writeln!(text, "    out = malloc({buffer});\n    in = malloc({buffer});");
        text.push_str("    if (!out || !in)\n        MPI_Abort(MPI_COMM_WORLD, 3);\n");
        let _ = writeln!(text, "    memset(out, 0, {buffer});\n    memset(in, 0, {buffer});");
        if self.config.touched > 0 {
            text.push_str(
                "    memory = calloc(TOUCHED, 1);\n    if (!memory)\n        MPI_Abort(MPI_COMM_WORLD, 3);\n",
            );
        }
        if replayed.contains("noisy_work(") {
            text.push_str("    noise_state = 12345ul + (unsigned long)rank;\n");
        }
        if replayed.contains("MPI_Bsend") || replayed.contains("MPI_Ibsend") {
            let _ = writeln!(
                text,
                "    static char attached[1 << 24];\n    PMPI_Buffer_attach(attached, sizeof attached);"
            );
        }
        if has_regions(replayed) {
            text.push_str("    find_regions();\n");
        }
        text.push_str("    calibrate();\n    work(0);\n    connect();\n    PMPI_Barrier(MPI_COMM_WORLD);\n    const double start = PMPI_Wtime();\n    replay();\n");
        text.push_str("    double own = PMPI_Wtime() - start, longest = 0;\n    PMPI_Reduce(&own, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);\n");
        let _ = writeln!(
            text,
            "    if (rank == 0)\n        printf(\"skeleton %.9f s, program %.9f s\\n\", longest, longest / {:?});",
            self.config.scale.value()
        );
        text.push_str("    MPI_Finalize();\n    return 0;\n}\n");
        text
    }

    /// What is not replayed as it was recorded.
    fn notes(&self) -> Vec<String> {
        let times = |count: u64| if count == 1 { "once".to_string() } else { format!("{count} times") };
        let mut notes: Vec<String> = self
            .left_out
            .iter()
            .map(|(name, (reason, count))| {
                format!("{} is left out, {}: {reason}", harmless(name), times(*count))
            })
            .collect();
        notes.extend(self.instead.iter().map(|(name, (reason, count))| {
            format!("{} is replaced, {}: {reason}", harmless(name), times(*count))
        }));
        if !self.timing.is_known {
            notes.push("the times of calls are not known, so nothing is computed between them".to_string());
        }
        if self.largest > LARGEST_BUFFER {
            notes.push("there are messages of more than 2 GiB, which do not fit the buffers".to_string());
        }
        notes
    }
}

fn has_regions(replayed: &str) -> bool {
    ["_region(\"", "mark_place(\""].iter().any(|call| replayed.contains(call))
}

/// Lines of code, indented.
fn line(out: &mut String, depth: usize, text: &str) {
    for line in text.lines() {
        let _ = writeln!(out, "{:indent$}{}", "", line.replace('\t', "    "), indent = 4 * depth);
    }
}

/// Text that does not end a comment.
fn harmless(text: &str) -> String {
    text.chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .collect::<String>()
        .replace("*/", "* /")
        .replace("/*", "/ *")
}

/// A comment of several lines.
fn comment(text: &str) -> String {
    let lines: Vec<String> = text.trim_end().lines().map(harmless).collect();
    format!("/* {}\n */", lines.join("\n * "))
}

/// The communicators that calls create.
fn created(program: &Program) -> HashSet<String> {
    let call = |node: &Node| match node {
        Node::Call(event) => event.field("newcomm")?.values.first().map(ToString::to_string),
        _ => None,
    };
    program.nodes.iter().filter_map(call).collect()
}

/// The bytes of all processes in calls with counts for each, by name and communicator, if they
/// are the same.
fn same_bytes(program: &Program) -> HashMap<(String, String), Option<i64>> {
    let mut known: HashMap<(String, String), Option<i64>> = HashMap::new();
    for node in &program.nodes {
        let Node::Call(event) = node else { continue };
        let (Some(name), Some(comm)) = (event.text(), event.comm.clone()) else { continue };
        let Some(bytes) = event.field("bytes").and_then(|field| field.values.first()) else { continue };
        let base = name.trim_start_matches("MPI_").to_string();
        let same = match bytes.same() {
            Some(crate::questions::logical::Token::Number(bytes)) => Some(*bytes),
            _ => None,
        };
        known
            .entry((base, comm))
            .and_modify(|before| *before = before.filter(|_| *before == same))
            .or_insert(same);
    }
    known
}

/// For communicators that are created by calls which do not say their members: the first member
/// and the own place of each process.
fn split_as(program: &Program, members: &Members) -> HashMap<String, Vec<(i64, i64)>> {
    let mut result = HashMap::new();
    for comm in created(program) {
        let place = |process: usize| {
            let members = members.get(process, &comm);
            members.map_or((0, process as i64), |members| {
                let own = members.iter().position(|&member| member as usize == process);
                (members.first().map_or(0, |&first| first.into()), own.map_or(0, |own| own as i64))
            })
        };
        result.insert(comm.clone(), (0..program.processes).map(place).collect());
    }
    result
}
