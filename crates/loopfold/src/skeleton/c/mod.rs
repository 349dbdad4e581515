//! Writes a program as C that a person can read: a function for each loop, with its share of the
//! time, and a statement for each call.

mod calls;
mod expressions;
mod numbers;
mod persistent;
mod runtime;
mod words;

use super::operations::Members;
use super::program::{Node, NodeId, Program};
use super::scale::Scaled;
use super::timing::Timing;
use super::{Config, Shared};
use crate::emit::c::{Code, Comment};
use crate::emit::{Terminal, code};
use crate::questions::logical::{At, Expression, LogicalEvent};
use crate::{Error, Result};
use calls::{Calls, LARGEST, Replay, arguments_of, created_by};
use expressions::{LAST, comm_name, expression, guard};
use hashbrown::{HashMap, HashSet};
use numbers::{Executed, MOST_BYTES};
use persistent::Persistent;
use std::collections::BTreeMap;

/// What is written.
pub(super) struct Written {
    pub(super) text: String,
    pub(super) notes: Vec<String>,
}

/// What becomes of a call that is not replayed as it was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Other {
    LeftOut,
    Replaced,
}

/// Calls of one name that are not replayed as they were recorded.
struct OtherCalls {
    /// The name, if it is known: comments have no other.
    known: &'static str,
    reason: &'static str,
    count: u64,
}

/// Shorter computation than this is left out: calling costs as much.
const SHORTEST_WORK: f64 = 20.0;

/// A share of the time below which it does not matter whether processes compute equally long.
const LEAST_UNEVEN: f64 = 0.01;

pub(super) struct Writer<'a> {
    config: &'a Config,
    whole: &'a Program,
    scaled: &'a Scaled,
    timing: &'a Timing,
    calls: Calls<'a>,
    /// How often each process executes each node: in the whole program, and here.
    executions: Vec<(Vec<u64>, Vec<u64>)>,
    /// The functions so far, those that are called first.
    functions: Code,
    /// Lengths of computation, by rank or by chance.
    tables: Code,
    /// The number of each loop in the text.
    loops: usize,
    /// Calls that are not replayed as they were recorded, by how and by name.
    others: BTreeMap<(Other, String), OtherCalls>,
    /// The size of the buffers, and whether messages are longer than an `int` counts.
    largest: i64,
    has_longer: bool,
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
            grids: grids(program),
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
            functions: Code::new(),
            tables: Code::new(),
            loops: 0,
            others: BTreeMap::new(),
            largest: 1,
            has_longer: false,
        }
    }

    /// The whole text. Fails if something was recorded that C has no constant for, or that the program
    /// cannot do.
    pub(super) fn write(mut self, heading: &str) -> Result<Written> {
        words::check(&self.scaled.program)?;
        numbers::check_grids(&self.scaled.program, self.calls.created.keys().map(String::as_str))?;
        if self.scaled.ended.most_pending > numbers::MOST_PENDING {
            return Err(Error::invalid("more requests are pending at once than a skeleton has room for"));
        }
        let mut body = Code::new();
        let top = self.scaled.program.top.clone();
        self.nodes(&top, 1, &mut body)?;
        let replayed = code!(
            "{}\n/* Everything between MPI_Init and MPI_Finalize. */\nstatic void replay(void)\n{{\n{}}}\n",
            self.functions,
            body
        );
        let notes = self.notes();
        let used = Used(replayed.without_texts());
        let parts = [
            self.comment(heading),
            self.declarations(&used),
            self.tables.clone(),
            replayed,
            self.main(&used),
        ];
        Ok(Written { text: Code::joined(parts, "").into_text(), notes })
    }

    fn nodes(&mut self, nodes: &[NodeId], depth: usize, out: &mut Code) -> Result<()> {
        let mut open: Option<Code> = None;
        for &id in nodes {
            match &self.scaled.program.nodes[id] {
                Node::Call(event) => {
                    let event = event.clone();
                    self.call(id, &event, depth, out)?;
                    open = None;
                }
                Node::Branch { guard: condition, body } => {
                    let (condition, body) = (guard(condition), body.clone());
                    let mut inner = Code::new();
                    self.nodes(&body, depth + 1, &mut inner)?;
                    if inner.is_empty() {
                        continue;
                    }
                    // One branch after the other is one if they have the same condition.
                    if open.as_ref() != Some(&condition) {
                        out.push_lines(depth, &code!("if ({}) {{", condition));
                    } else {
                        out.drop_line();
                    }
                    out.push(inner);
                    out.push_lines(depth, &code!("}}"));
                    open = Some(condition);
                }
                Node::Loop { body } => {
                    let body = body.clone();
                    self.repeated(id, &body, depth, out)?;
                    open = None;
                }
            }
        }
        Ok(())
    }

    /// A loop: a function, unless it is a single call.
    fn repeated(&mut self, id: NodeId, body: &[NodeId], depth: usize, out: &mut Code) -> Result<()> {
        let times = self.times(id);
        let comment = self.loop_comment(id);
        let is_simple = matches!(body, [only] if matches!(self.scaled.program.nodes[*only], Node::Call(_)));
        self.loops += 1;
        let (name, mut inner) = (code!("loop_{}", self.loops), Code::new());
        let is_once = times.as_str() == "1";
        if is_simple {
            self.nodes(body, depth + usize::from(!is_once), &mut inner)?;
            out.push_lines(depth, &code!("/* {} */", comment));
            if is_once {
                out.push(inner);
                return Ok(());
            }
            out.push_lines(depth, &code!("for (long nth = 0; nth < {}; nth++) {{", times));
            out.push(inner);
            out.push_lines(depth, &code!("}}"));
            return Ok(());
        }
        self.nodes(body, if is_once { 1 } else { 2 }, &mut inner)?;
        if !is_once {
            inner = code!("    for (long nth = 0; nth < {}; nth++) {{\n{}    }}\n", times, inner);
        }
        self.functions.push(code!("\n/* {} */\nstatic void {}(void)\n{{\n{}}}\n", comment, name, inner));
        out.push_lines(depth, &code!("{}();", name));
        Ok(())
    }

    /// How often a loop iterates, as C.
    fn times(&self, id: NodeId) -> Code {
        let program = &self.scaled.program;
        let executed: Vec<usize> =
            (0..program.processes).filter(|&process| self.executions[process].1[id] > 0).collect();
        let at: Vec<At<'_>> = executed.iter().map(|&process| program.places.at(process, None)).collect();
        let counts =
            executed.iter().map(|&process| i64::try_from(program.counts[id][process]).unwrap_or(i64::MAX));
        expression(&Expression::of_numbers(&at, counts), crate::mpi::WORLD, program.processes)
    }

    fn loop_comment(&self, id: NodeId) -> Code {
        let range = |counts: &mut dyn Iterator<Item = u64>| {
            let (least, most) =
                counts.fold((u64::MAX, 0), |(least, most), count| (least.min(count), most.max(count)));
            if least >= most { code!("{}", most) } else { code!("{} to {}", least, most) }
        };
        let program = &self.scaled.program;
        let executed = || (0..program.processes).filter(|&process| self.executions[process].1[id] > 0);
        let left = range(&mut executed().map(|process| program.counts[id][process]));
        let recorded = |process: usize| self.whole.counts[id][process % self.whole.processes];
        let whole = range(&mut executed().map(recorded));
        let iterations = if left.as_str() == "1" && left == whole { "iteration" } else { "iterations" };
        let of = if left == whole { Code::new() } else { code!(" of {}", whole) };
        match self.timing.is_known {
            true => {
                code!("{}{} {}; {:.1} % of the time", left, of, iterations, 100.0 * self.timing.share(id))
            }
            false => code!("{}{} {}", left, of, iterations),
        }
    }

    /// The name of a call, if it is one of MPI that is known.
    fn name_of(&self, event: &LogicalEvent) -> &'static str {
        event.text().and_then(self.config.call_names).unwrap_or("a call")
    }

    fn call(&mut self, id: NodeId, event: &LogicalEvent, depth: usize, out: &mut Code) -> Result<()> {
        let name = self.name_of(event);
        let replay = self.replay(id, event)?;
        if !matches!(replay, Replay::Nothing) {
            self.work(id, depth, out);
        }
        let executed: u64 = self.executions.iter().map(|(_, here)| here[id]).sum();
        match replay {
            Replay::Nothing => {}
            Replay::Call(call) => out.push_lines(depth, &call),
            Replay::Instead(call, reason) => {
                self.count_other(Other::Replaced, event, reason, executed);
                out.push_lines(depth, &code!("/* instead of {}: {} */\n{}", name, reason, call));
            }
            Replay::LeftOut(reason) => {
                self.count_other(Other::LeftOut, event, reason, executed);
                out.push_lines(depth, &code!("/* {} is left out: {} */", name, reason));
            }
        }
        Ok(())
    }

    /// How a call is replayed, with numbers that the program can take.
    fn replay(&mut self, id: NodeId, event: &LogicalEvent) -> Result<Replay> {
        let replay = self.calls.replay(id, event);
        if !matches!(replay, Replay::Call(_) | Replay::Instead(..)) || !is_of_mpi(event) {
            return Ok(replay);
        }
        let processes = (0..self.executions.len()).filter(|&process| self.executions[process].1[id] > 0);
        let executed = Executed { program: &self.scaled.program, event, processes: processes.collect() };
        executed.check()?;
        self.check_is_created(id, &executed)?;
        self.largest = self.largest.max(executed.buffer()?);
        let limited = executed.limited();
        self.has_longer |= limited.is_some();
        Ok(limited.map_or(replay, |limited| self.calls.replay(id, &limited)))
    }

    /// Fails unless every process that executes a call has created its communicator before: nodes are in
    /// the order in which a process first executes them.
    fn check_is_created(&self, id: NodeId, executed: &Executed<'_>) -> Result<()> {
        let comm = executed.event.comm.as_deref().unwrap_or(crate::mpi::WORLD);
        let Some(calls) = self.calls.created.get(comm) else { return Ok(()) };
        let is_created =
            |process: &usize| calls.iter().any(|&call| call < id && self.executions[*process].1[call] > 0);
        match executed.processes.iter().all(is_created) {
            true => Ok(()),
            false => {
                let name = executed.event.text().unwrap_or_default();
                Err(words::refused(
                    name,
                    &format!("comm={comm}"),
                    "which not every process has created before",
                ))
            }
        }
    }

    fn count_other(&mut self, how: Other, event: &LogicalEvent, reason: &'static str, executed: u64) {
        let known = self.name_of(event);
        let name = event.text().unwrap_or(known).to_string();
        self.others.entry((how, name)).or_insert(OtherCalls { known, reason, count: 0 }).count += executed;
    }

    /// Computation before a call.
    fn work(&mut self, id: NodeId, depth: usize, out: &mut Code) {
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
            out.push_lines(depth, &code!("noisy_work(work_{});", id));
            return;
        }
        // Differences between processes are kept where they matter.
        let is_even = lengths.iter().all(|length| (length - mean).abs() <= 0.1 * mean);
        if is_even || self.timing.gap_share(id) < LEAST_UNEVEN {
            out.push_lines(depth, &code!("work({:.0});", numbers::nanoseconds(mean)));
            return;
        }
        let mut by_rank = vec![0.0; self.executions.len()];
        executed.iter().zip(&lengths).for_each(|(&process, &length)| by_rank[process] = length);
        self.table(id, by_rank.into_iter());
        out.push_lines(depth, &code!("work(work_{}[rank]);", id));
    }

    fn table(&mut self, id: NodeId, lengths: impl Iterator<Item = f64>) {
        let lengths: Vec<Code> = lengths.map(|length| code!("{:.0}", numbers::nanoseconds(length))).collect();
        let rows = lengths.chunks(16).map(|some| Code::joined(some, ", "));
        self.tables.push(code!(
            "static const float work_{}[] = {{{}}};\n",
            id,
            Code::joined(rows, ",\n    ")
        ));
    }

    fn declarations(&self, used: &Used) -> Code {
        let mut code = code!("#define _GNU_SOURCE\n");
        if used.has_regions() {
            code.push("#include <dlfcn.h>\n");
        }
        code.push("#include <mpi.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <time.h>\n\n");
        code.push(code!(
            "enum {{ RANKS = {}, MOST_PENDING = {} }};\n",
            self.executions.len(),
            self.scaled.ended.most_pending.max(1)
        ));
        if self.config.touched > 0 {
            code.push(code!("#define TOUCHED ((size_t){})\n", self.config.touched.max(64)));
        }
        if used.has(LARGEST) {
            code.push(code!("#define {} {}\n", LARGEST, self.largest.clamp(1, MOST_BYTES)));
        }
        if used.has(code!("&{})", LAST).as_str()) {
            code.push(code!(
                "/* Of the message that was last received from anyone. */\nstatic MPI_Status {};\n",
                LAST
            ));
        }
        code.push("static int rank, size;\n/* What is in messages does not matter, so all have the same buffers. */\nstatic char *out, *in;\n");
        self.parts(used).into_iter().for_each(|part| code.push(part));
        for comm in self.calls.created.keys().map(|comm| comm_name(comm)) {
            if used.has(code!("{}.comm", comm).as_str()) {
                code.push(code!("static struct place {};\n", comm));
            }
        }
        let persistent = self.calls.persistent.len();
        if used.has("persistent[") || used.has("free_persistent(") {
            code.push(code!("static MPI_Request persistent[{}];\n", persistent));
        }
        if used.has("free_persistent(") {
            code.push(code!(
                "\nstatic void free_persistent(void)\n{{\n    static int next;\n    MPI_Request_free(&persistent[next++ % {}]);\n}}\n",
                persistent
            ));
        }
        code.push(if self.config.touched > 0 { runtime::WORK_IN_MEMORY } else { runtime::WORK });
        code.push(runtime::CALIBRATE);
        code.push(runtime::CONNECT);
        if used.has("noisy_work(") {
            code.push(runtime::NOISE);
        }
        if used.has_regions() {
            code.push(runtime::REGIONS);
        }
        code.push("\n");
        code
    }

    /// The parts of the program that something needs, each before those that need it.
    fn parts(&self, used: &Used) -> Vec<&'static str> {
        let mut parts: Vec<&str> = Vec::new();
        let mut used = used.0.clone();
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
        parts
    }

    /// The grid of all processes.
    fn grid(&self) -> Option<std::sync::Arc<crate::mpi::Grid>> {
        let program = &self.scaled.program;
        (program.processes > 0).then(|| program.places.world(0).grid.clone()).flatten()
    }

    fn main(&self, used: &Used) -> Code {
        let buffer = self.largest;
        let mut code = code!(
            "\nint main(int argc, char **argv)\n{{\n    MPI_Init(&argc, &argv);\n    world.comm = MPI_COMM_WORLD;\n    enter(&world);\n"
        );
        if let Some(grid) = self.grid() {
            code.push(code!("    grid(&world, {});\n", arguments_of(&grid)));
        }
        code.push(
            "    rank = world.rank;\n    size = world.size;\n    if (size != RANKS) {\n        if (rank == 0)\n            \
             fprintf(stderr, \"this skeleton is for %d processes\\n\", RANKS);\n        MPI_Abort(MPI_COMM_WORLD, 2);\n    }\n",
        );
        if used.has("self.comm") {
            code.push("    self.comm = MPI_COMM_SELF;\n    enter(&self);\n");
        }
        code.push(code!("    out = malloc({});\n    in = malloc({});\n", buffer, buffer));
        code.push("    if (!out || !in)\n        MPI_Abort(MPI_COMM_WORLD, 3);\n");
        code.push(code!("    memset(out, 0, {});\n    memset(in, 0, {});\n", buffer, buffer));
        if self.config.touched > 0 {
            code.push(
                "    memory = calloc(TOUCHED, 1);\n    if (!memory)\n        MPI_Abort(MPI_COMM_WORLD, 3);\n",
            );
        }
        if used.has("noisy_work(") {
            code.push("    noise_state = 12345ul + (unsigned long)rank;\n");
        }
        if used.has("MPI_Bsend") || used.has("MPI_Ibsend") {
            code.push(
                "    static char attached[1 << 24];\n    PMPI_Buffer_attach(attached, sizeof attached);\n",
            );
        }
        if used.has_regions() {
            code.push("    find_regions();\n");
        }
        code.push("    calibrate();\n    work(0);\n    connect();\n    PMPI_Barrier(MPI_COMM_WORLD);\n    const double start = PMPI_Wtime();\n    replay();\n");
        code.push("    double own = PMPI_Wtime() - start, longest = 0;\n    PMPI_Reduce(&own, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);\n");
        code.push(code!(
            "    if (rank == 0)\n        printf(\"skeleton %.9f s, program %.9f s\\n\", longest, longest / {:?});\n",
            self.config.scale.value()
        ));
        code.push("    MPI_Finalize();\n    return 0;\n}\n");
        code
    }

    /// What is not replayed as it was recorded, for people.
    fn notes(&self) -> Vec<String> {
        let others = self.others.iter().map(|((how, name), calls)| {
            other_calls(*how, &Terminal::of(name).to_string(), calls.count, calls.reason)
        });
        others.chain(self.limits()).collect()
    }

    /// The comment at the top: the same, without names that are not known.
    fn comment(&self, heading: &str) -> Code {
        let mut others: BTreeMap<(Other, &str, &str), u64> = BTreeMap::new();
        for ((how, _), calls) in &self.others {
            *others.entry((*how, calls.known, calls.reason)).or_default() += calls.count;
        }
        let others =
            others.into_iter().map(|((how, name, reason), count)| other_calls(how, name, count, reason));
        let heading = heading.trim_end().lines().map(str::to_string);
        let lines: Vec<String> = heading.chain(others).chain(self.limits()).collect();
        code!("/* {}\n */\n", Code::joined(lines.iter().map(|line| Comment(line)), "\n * "))
    }

    /// What a skeleton cannot say.
    fn limits(&self) -> impl Iterator<Item = String> {
        const NO_TIMES: &str = "the times of calls are not known, so nothing is computed between them";
        const TOO_LARGE: &str = "of messages of more than 2 GiB, 2 GiB are replayed";
        [(!self.timing.is_known, NO_TIMES), (self.has_longer, TOO_LARGE)]
            .into_iter()
            .filter(|(is_so, _)| *is_so)
            .map(|(_, limit)| limit.to_string())
    }
}

fn other_calls(how: Other, name: &str, count: u64, reason: &str) -> String {
    let times = if count == 1 { "once".to_string() } else { format!("{count} times") };
    let how = if how == Other::LeftOut { "left out" } else { "replaced" };
    format!("{name} is {how}, {times}: {reason}")
}

/// The code of what is replayed, without strings and comments: what it names has to be declared.
struct Used(String);

impl Used {
    fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    fn has_regions(&self) -> bool {
        ["_region(\"", "mark_place(\""].iter().any(|call| self.has(call))
    }
}

/// Whether an event is a call of MPI, and no region or mark.
fn is_of_mpi(event: &LogicalEvent) -> bool {
    let is_region = matches!(event.role, crate::trace::Role::Enter | crate::trace::Role::Leave);
    !is_region && event.text().is_some_and(|name| name.starts_with("MPI_"))
}

/// The communicators that calls create, and these calls: those whose parent is known.
fn created(program: &Program) -> BTreeMap<String, Vec<NodeId>> {
    let mut created: BTreeMap<String, Vec<NodeId>> = BTreeMap::new();
    for (id, node) in program.nodes.iter().enumerate() {
        let Node::Call(event) = node else { continue };
        let Some(made) = created_by(event) else { continue };
        let parent = event.comm.as_deref().unwrap_or(crate::mpi::WORLD);
        if parent == crate::mpi::WORLD || parent == "1" || created.contains_key(parent) {
            created.entry(made).or_default().push(id);
        }
    }
    created
}

/// The communicators that are created as grids, or as copies of grids.
fn grids(program: &Program) -> HashSet<String> {
    let mut grids = HashSet::new();
    for node in &program.nodes {
        let Node::Call(event) = node else { continue };
        let Some(made) = created_by(event) else { continue };
        let is_grid = match event.text().unwrap_or_default() {
            "MPI_Cart_create" => true,
            name if name.starts_with("MPI_Comm_dup") => {
                event.comm.as_ref().is_some_and(|of| grids.contains(of))
            }
            _ => false,
        };
        if is_grid {
            grids.insert(made);
        }
    }
    grids
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
    for comm in created(program).into_keys() {
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
