//! Collective operations whose members are in several processes: each process reduces what its own members
//! do, and what ends their waits is computed from these partial results.
//!
//! The operations on a communicator are numbered by all processes in the same way, so the n-th one needs no
//! name. Blocks of [`BLOCK`] operations take turns over the processes: one of them, the *home* of the block,
//! joins the partial results and answers those that sent them. A partial result is a count, what is said of
//! the operation, and the one enter that counts; for a scan, in which every member waits for others, it is
//! all enters. So a process sends and receives some 5 bytes for each operation, however many members it has.
//!
//! Memory: these bytes.

use super::LeftOut;
use super::collective::{Complete, Ends, Member, Operation, Operations, Stamp, later};
use super::kinds::Shape;
use super::plan::Resolver;
use super::{Class, exchange::Exchange};
use crate::bytes::{put_number, put_text};
use crate::mpi::{CommId, Group};
use crate::questions::wire::{Reader, put_optional, put_signed};
use crate::{Error, Result};
use hashbrown::HashMap;

/// Operations on a communicator whose partial results go to the same process.
const BLOCK: u64 = 1 << 10;

/// Which process is the home of an operation.
#[derive(Clone, Copy)]
struct Homes {
    /// That of the first block.
    first: usize,
    processes: usize,
}

impl Homes {
    fn of(self, operation: u64) -> usize {
        ((self.first as u64 + operation / BLOCK) % self.processes as u64) as usize
    }
}

const SAME: u8 = 1;
const AGREE: u8 = 2;
const ALL: u8 = 4;
const STAMP: u8 = 8;

/// The partial results of the members in this process.
pub(super) struct PartialOperations {
    processes: usize,
    groups: Vec<PartialGroup>,
    numbers: HashMap<Group, u32>,
}

struct PartialGroup {
    group: Group,
    /// A stream that has it, and its name there.
    stream: usize,
    comm: CommId,
    /// How many members are here.
    size: usize,
    operations: Operations,
    /// How many are written.
    written: u64,
    homes: Homes,
    to: HashMap<usize, PartialWriter>,
}

#[derive(Default)]
struct PartialWriter {
    bytes: Vec<u8>,
    operation: Option<Operation>,
    enter: i64,
}

impl PartialOperations {
    pub(super) fn new(exchange: &dyn Exchange) -> Self {
        Self { processes: exchange.size(), groups: Vec::new(), numbers: HashMap::new() }
    }

    /// The number of a communicator of a stream; `size` is how many of its members are here.
    pub(super) fn number(
        &mut self,
        resolver: Resolver<'_>,
        (stream, comm): (usize, CommId),
        size: impl FnOnce(&[u32]) -> usize,
    ) -> u32 {
        let group = resolver.message_ends.group(stream, comm);
        if let Some(&known) = self.numbers.get(&group) {
            return known;
        }
        let (_, members) = resolver.members(stream, comm);
        let lowest = members.iter().min().copied().unwrap_or(0);
        let homes =
            Homes { first: (lowest as usize + comm.0 as usize) % self.processes, processes: self.processes };
        let size = size(&members);
        let number = self.groups.len() as u32;
        self.numbers.insert(group, number);
        self.groups.push(PartialGroup {
            group,
            stream,
            comm,
            size,
            operations: Operations::new(size, size),
            written: 0,
            homes,
            to: HashMap::new(),
        });
        number
    }

    /// A member takes part in its next operation.
    pub(super) fn join(&mut self, group: u32, operation: Operation, member: Member) {
        let group = &mut self.groups[group as usize];
        if let Some(complete) = group.operations.join(operation, member) {
            group.write(&complete);
        }
    }

    /// The messages to all processes, and which communicators each is about.
    pub(super) fn finish(mut self) -> (Vec<Vec<u8>>, SentGroups) {
        let mut messages = vec![Vec::new(); self.processes];
        let mut sent = SentGroups { order: vec![Vec::new(); self.processes], homes: HashMap::new() };
        for group in &mut self.groups {
            let operations = std::mem::replace(&mut group.operations, Operations::new(0, 0));
            for incomplete in operations.into_incomplete() {
                group.write(&incomplete);
            }
            sent.homes.insert(group.group, group.homes);
            for (&home, writer) in &group.to {
                let out = &mut messages[home];
                put_number(out, group.stream as u64);
                put_number(out, group.comm.0.into());
                put_number(out, group.size as u64);
                put_text(out, &writer.bytes);
                sent.order[home].push(group.group);
            }
        }
        (messages, sent)
    }
}

impl PartialGroup {
    fn write(&mut self, partial: &Complete) {
        let home = self.homes.of(self.written);
        self.written += 1;
        self.to.entry(home).or_default().write(partial, self.size);
    }
}

impl PartialWriter {
    fn write(&mut self, partial: &Complete, size: usize) {
        let Complete { operation, agree, members } = partial;
        let operation = *operation;
        let stamp = members.iter().fold(None, |end, member| operation.joined(end, member));
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let is_same = self.operation == Some(operation);
        let is_all = members.len() == size;
        self.bytes.push(
            flag(is_same, SAME) | flag(*agree, AGREE) | flag(is_all, ALL) | flag(stamp.is_some(), STAMP),
        );
        if !is_same {
            self.bytes.push(shape_code(operation.shape));
            put_optional(&mut self.bytes, operation.root.map(u64::from));
            self.operation = Some(operation);
        }
        if !is_all {
            put_number(&mut self.bytes, members.len() as u64);
        }
        if let Some(stamp) = stamp {
            put_stamp(&mut self.bytes, &mut self.enter, stamp);
        }
        if operation.shape == Shape::Scan {
            for member in members {
                put_number(&mut self.bytes, member.own.into());
                self.bytes.push(u8::from(member.enter.is_some()));
                if let Some(stamp) = member.stamp() {
                    put_stamp(&mut self.bytes, &mut self.enter, stamp);
                }
            }
        }
    }
}

/// The rank, and the enter since the last one.
fn put_stamp(bytes: &mut Vec<u8>, last: &mut i64, (enter, rank): Stamp) {
    put_number(bytes, rank.into());
    put_signed(bytes, i128::from(enter) - i128::from(*last));
    *last = enter;
}

fn stamp(reader: &mut Reader, last: &mut i64) -> Result<Stamp> {
    let rank = reader.small()?;
    *last = reader.since(*last)?;
    Ok((*last, rank))
}

const SHAPES: [Shape; 6] = [
    Shape::All(Class::Barrier),
    Shape::All(Class::AllToAll),
    Shape::OneToAll,
    Shape::AllToOne,
    Shape::Scan,
    Shape::Other,
];

fn shape_code(shape: Shape) -> u8 {
    SHAPES.iter().position(|&known| known == shape).unwrap_or(SHAPES.len() - 1) as u8
}

/// What one process says of one operation.
struct Partial {
    operation: Operation,
    agree: bool,
    count: usize,
    stamp: Option<Stamp>,
    /// Of a scan: ranks in the communicator, and when they enter.
    members: Vec<(u32, Option<Stamp>)>,
}

/// Reads the partial results of one process on one communicator.
struct PartialReader {
    size: usize,
    reader: Reader,
    operation: Operation,
    enter: i64,
    answer: AnswerWriter,
}

#[derive(Default)]
struct AnswerWriter {
    bytes: Vec<u8>,
    enter: i64,
}

impl PartialReader {
    fn new(size: usize, bytes: Vec<u8>) -> Self {
        let operation = Operation { shape: Shape::Other, root: None };
        let (reader, answer) = (Reader::new(bytes), AnswerWriter::default());
        Self { size, reader, operation, enter: 0, answer }
    }

    fn next(&mut self) -> Result<Option<Partial>> {
        if self.reader.is_empty() {
            return Ok(None);
        }
        let flags = self.reader.byte()?;
        if flags & SAME == 0 {
            let code = self.reader.byte()?;
            let shape = *SHAPES.get(usize::from(code)).ok_or_else(|| Reader::damaged("a shape"))?;
            let root = self.reader.optional()?;
            let root = root.map(|root| u32::try_from(root).map_err(|_| Reader::damaged("a root")));
            self.operation = Operation { shape, root: root.transpose()? };
        }
        let count = if flags & ALL > 0 { self.size } else { self.reader.number()? as usize };
        let end = (flags & STAMP > 0).then(|| stamp(&mut self.reader, &mut self.enter)).transpose()?;
        let mut members = Vec::new();
        if self.operation.shape == Shape::Scan {
            for _ in 0..count {
                let own = self.reader.small()?;
                let enters = self.reader.byte()? > 0;
                let enter = enters.then(|| stamp(&mut self.reader, &mut self.enter)).transpose()?;
                members.push((own, enter));
            }
        }
        Ok(Some(Partial { operation: self.operation, agree: flags & AGREE > 0, count, stamp: end, members }))
    }
}

impl AnswerWriter {
    /// Not all take part, or they disagree.
    fn nothing(&mut self) {
        self.bytes.push(0);
    }

    fn same(&mut self, end: Option<Stamp>) {
        self.bytes.push(AGREE | if end.is_some() { STAMP } else { 0 });
        if let Some(end) = end {
            put_stamp(&mut self.bytes, &mut self.enter, end);
        }
    }
}

/// How many operations were joined, and of which kind.
#[derive(Default)]
pub(super) struct Joined {
    pub(super) collectives: u64,
    pub(super) left_out: LeftOut,
}

/// Joins what all processes have sent to this one, and returns the answers to each.
pub(super) fn join_partials(
    resolver: Resolver<'_>,
    messages: Vec<Vec<u8>>,
) -> Result<(Vec<Vec<u8>>, Joined)> {
    let processes = messages.len();
    let mut groups: Vec<(usize, CommId, Vec<PartialReader>)> = Vec::new();
    let mut numbers: HashMap<Group, usize> = HashMap::new();
    // For each process its communicators, in the order of its message: which, and its place there.
    let mut order: Vec<Vec<(usize, usize)>> = vec![Vec::new(); processes];
    for (process, message) in messages.into_iter().enumerate() {
        let mut reader = Reader::new(message);
        while !reader.is_empty() {
            let stream = reader.number()? as usize;
            let comm = CommId(reader.small()?);
            let size = reader.number()? as usize;
            if stream >= resolver.streams || comm.0 as usize >= resolver.message_ends.calls.comms().len() {
                return Err(Reader::damaged("a communicator"));
            }
            let group = resolver.message_ends.group(stream, comm);
            let number = *numbers.entry(group).or_insert_with(|| {
                groups.push((stream, comm, Vec::new()));
                groups.len() - 1
            });
            let readers = &mut groups[number].2;
            order[process].push((number, readers.len()));
            readers.push(PartialReader::new(size, reader.text()?));
        }
    }
    let mut joined = Joined::default();
    for (stream, comm, readers) in &mut groups {
        join_group(resolver, (*stream, *comm), readers, &mut joined)?;
    }
    let mut answers = vec![Vec::new(); processes];
    for (answer, order) in answers.iter_mut().zip(order) {
        for (number, place) in order {
            put_text(answer, &groups[number].2[place].answer.bytes);
        }
    }
    Ok((answers, joined))
}

/// Joins the operations on one communicator, one after the other.
fn join_group(
    resolver: Resolver<'_>,
    (stream, comm): (usize, CommId),
    readers: &mut [PartialReader],
    joined: &mut Joined,
) -> Result<()> {
    let size = resolver.group_size(stream, comm);
    loop {
        let mut parts: Vec<(usize, Partial)> = Vec::new();
        for (index, reader) in readers.iter_mut().enumerate() {
            parts.extend(reader.next()?.map(|part| (index, part)));
        }
        let Some((_, first)) = parts.first() else { return Ok(()) };
        let operation = first.operation;
        let count: usize = parts.iter().map(|(_, part)| part.count).sum();
        let agree = parts.iter().all(|(_, part)| part.agree && part.operation == operation);
        if count < size.present {
            joined.left_out.incomplete += 1;
        } else if !agree {
            joined.left_out.disagreeing += 1;
        } else {
            joined.collectives += 1;
            joined.left_out.partial += u64::from(size.present < size.all);
        }
        if count < size.present || !agree {
            parts.iter().for_each(|&(index, _)| readers[index].answer.nothing());
        } else if operation.shape == Shape::Scan {
            answer_scan(&parts, readers);
        } else {
            let end = parts.iter().fold(None, |end, (_, part)| operation.both(end, part.stamp));
            parts.iter().for_each(|&(index, _)| readers[index].answer.same(end));
        }
    }
}

/// Every member waits for those of lower rank.
fn answer_scan(parts: &[(usize, Partial)], readers: &mut [PartialReader]) {
    let of_part = |(index, part): &'_ (usize, Partial)| {
        let index = *index;
        part.members.iter().map(move |&(own, enter)| (own, index, enter)).collect::<Vec<_>>()
    };
    let mut members: Vec<(u32, usize, Option<Stamp>)> = parts.iter().flat_map(of_part).collect();
    members.sort_unstable();
    parts.iter().for_each(|&(index, _)| readers[index].answer.bytes.push(AGREE));
    let mut last = None;
    for (_, index, enter) in members {
        let answer = &mut readers[index].answer;
        answer.bytes.push(u8::from(last.is_some()));
        if let Some(last) = last {
            put_stamp(&mut answer.bytes, &mut answer.enter, last);
        }
        last = later(last, enter);
    }
}

/// Which communicators a message to each process was about.
pub(super) struct SentGroups {
    order: Vec<Vec<Group>>,
    homes: HashMap<Group, Homes>,
}

/// What ends the waits of the operations on all communicators that have members here.
pub(super) struct OperationEnds {
    groups: HashMap<Group, GroupEnds>,
}

struct GroupEnds {
    homes: Homes,
    next: u64,
    from: HashMap<usize, (Reader, i64)>,
}

impl OperationEnds {
    /// From the answers of all processes to what was sent.
    pub(super) fn new(sent: SentGroups, answers: Vec<Vec<u8>>) -> Result<Self> {
        let of_group = |(group, homes)| (group, GroupEnds { homes, next: 0, from: HashMap::new() });
        let mut groups: HashMap<Group, GroupEnds> = sent.homes.into_iter().map(of_group).collect();
        for (home, (order, answer)) in sent.order.into_iter().zip(answers).enumerate() {
            let mut reader = Reader::new(answer);
            for group in order {
                let bytes = reader.text()?;
                if let Some(ends) = groups.get_mut(&group) {
                    ends.from.insert(home, (Reader::new(bytes), 0));
                }
            }
        }
        Ok(Self { groups })
    }

    /// What ends the waits of the members here of the next operation on a communicator, of which there are
    /// so many. If that differs from one to another, it is in the order of their ranks.
    pub(super) fn next(&mut self, group: Group, operation: Operation, members: usize) -> Result<Ends> {
        let unknown = || Error::invalid("another process did not answer on a collective operation");
        let ends = self.groups.get_mut(&group).ok_or_else(unknown)?;
        let home = ends.homes.of(ends.next);
        ends.next += 1;
        let (reader, enter) = ends.from.get_mut(&home).ok_or_else(unknown)?;
        let flags = reader.byte()?;
        if flags & AGREE == 0 {
            return Ok(Ends::Nothing);
        }
        if operation.shape != Shape::Scan {
            let end = (flags & STAMP > 0).then(|| stamp(reader, enter)).transpose()?;
            return Ok(Ends::Same(end));
        }
        let mut each = Vec::new();
        for _ in 0..members {
            let has_end = reader.byte()? > 0;
            each.push(has_end.then(|| stamp(reader, enter)).transpose()?);
        }
        Ok(Ends::Each(each))
    }
}
