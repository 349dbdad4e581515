//! From classes of streams to logical nodes.

use super::fit::{Known, Meant, fit};
use super::guard::Guard;
use super::merge::Merger;
use super::place::{Place, Places};
use super::shapes::{PEERS, Shapes, tokens};
use super::tree::{Group, Kind, TreeNode};
use super::{
    EventName, Expression, LogicalEvent, LogicalField, LogicalNode, LogicalPart, LogicalTrace, Token,
};
use crate::fold::Fold;
use crate::questions::communication::SequenceHash;
use crate::questions::patterns::FoldStream;
use crate::trace::{Name, Value};
use crate::{Error, Result, RuleId, StreamId, Symbol};
use hashbrown::HashMap;
use std::collections::BTreeMap;

pub(super) fn build(fold: &Fold, fold_stream: FoldStream<'_>) -> Result<LogicalTrace> {
    let places = Places::of(fold)?;
    let shapes = Shapes::of(fold);
    let strict = Shapes::hashes(fold, &shapes.strict)?;
    let loose = Shapes::hashes(fold, &shapes.loose)?;
    let builder = Builder { fold, places: &places, shapes: &shapes, strict, loose, fold_stream };
    let mut parts = Vec::new();
    for (name, streams) in threads(fold) {
        parts.push(builder.part(name, streams)?);
    }
    Ok(LogicalTrace { parts, places })
}

/// The streams by what follows the rank in their names.
fn threads(fold: &Fold) -> BTreeMap<String, Vec<StreamId>> {
    let mut threads: BTreeMap<String, Vec<StreamId>> = BTreeMap::new();
    for id in fold.stream_ids() {
        let name = fold.stream(id).name().raw();
        let thread = crate::mpi::rank_of(name).and_then(|_| name.splitn(3, ' ').nth(2)).unwrap_or("");
        threads.entry(thread.to_string()).or_default().push(id);
    }
    threads
}

/// Classes that have the same of these shapes, with the rule of each.
type ShapedGroup<'a> = (&'a [u32], Vec<(u32, RuleId)>);

struct Builder<'a> {
    fold: &'a Fold,
    places: &'a Places,
    shapes: &'a Shapes<'a>,
    strict: Vec<SequenceHash>,
    loose: Vec<SequenceHash>,
    fold_stream: FoldStream<'a>,
}

impl Builder<'_> {
    fn part(&self, name: String, mut streams: Vec<StreamId>) -> Result<LogicalPart> {
        streams.sort_by_key(|id| self.places.world(id.index()).rank);
        let rank = |id: &StreamId| self.places.world(id.index()).rank;
        if let Some(twice) = streams.windows(2).find(|two| rank(&two[0]) == rank(&two[1])) {
            return Err(Error::invalid(format_args!(
                "the streams {} and {} are the same process; a logical trace is of one execution",
                self.fold.stream(twice[0]).name().terminal(),
                self.fold.stream(twice[1]).name().terminal()
            )));
        }
        let mut classes: Vec<(RuleId, Vec<StreamId>)> = Vec::new();
        let mut known: HashMap<RuleId, usize> = HashMap::new();
        for &id in &streams {
            let root = self.fold.stream(id).root();
            let class = *known.entry(root).or_insert_with(|| {
                classes.push((root, Vec::new()));
                classes.len() - 1
            });
            classes[class].1.push(id);
        }
        let mut trees: Vec<Vec<TreeNode>> = Vec::new();
        for (shapes, members) in self.groups(&classes) {
            let group = Group { fold: self.fold, shapes, members };
            trees.extend(group.trees(self.fold_stream)?);
        }
        // What most streams do is what the others are compared with.
        let weight = |tree: &Vec<TreeNode>| {
            let members = tree.first().map_or(&[][..], |node| &node.members);
            members.iter().map(|&class| classes[class as usize].1.len()).sum::<usize>()
        };
        trees.sort_by_key(|tree| std::cmp::Reverse(weight(tree)));
        let likeness = |(class, symbol): (u32, Symbol), (other, there): (u32, Symbol)| {
            let first = |class: u32| classes[class as usize].1.first().map_or(0, |id| id.index());
            self.likeness((first(class), symbol), (first(other), there))
        };
        let mut merger = Merger::new(&likeness);
        let tree = trees.into_iter().reduce(|one, other| merger.merge(one, other)).unwrap_or_default();
        let all: Vec<u32> = (0..classes.len() as u32).collect();
        let writer = Writer { builder: self, classes: &classes };
        let nodes = writer.nodes(tree, &all);
        Ok(LogicalPart { name, streams, nodes })
    }

    /// How similar two events of two streams are that have the same shape: in what is not a
    /// peer, and in the distances of their peers.
    fn likeness(&self, (stream, symbol): (usize, Symbol), (other, there): (usize, Symbol)) -> u32 {
        let exact = &self.shapes.exact;
        let is_equal = exact[symbol.index()] == exact[there.index()];
        let (own, theirs) = (self.places.world(stream).rank, self.places.world(other).rank);
        let mut is_near = false;
        for (one, other) in self.shapes.peers(symbol).zip(self.shapes.peers(there)) {
            if let (Token::Number(one), Token::Number(other)) = (one, other) {
                if one.wrapping_sub(own) != other.wrapping_sub(theirs) && one != other {
                    return u32::from(is_equal);
                }
                is_near = true;
            }
        }
        u32::from(is_equal) + u32::from(is_near)
    }

    /// Classes with the same shapes; with the same looser shapes where the rest follows a rule.
    fn groups(&self, classes: &[(RuleId, Vec<StreamId>)]) -> Vec<ShapedGroup<'_>> {
        let mut strict: Vec<Vec<(u32, RuleId)>> = Vec::new();
        let mut loose: Vec<Vec<usize>> = Vec::new();
        let mut known: HashMap<(SequenceHash, u64), usize> = HashMap::new();
        let mut known_loose: HashMap<(SequenceHash, u64), usize> = HashMap::new();
        for (number, &(root, _)) in (0u32..).zip(classes) {
            let length = self.fold.length(root);
            let next = strict.len();
            let group = *known.entry((self.strict[root.index()], length)).or_insert(next);
            if group == next {
                strict.push(Vec::new());
                let place = *known_loose.entry((self.loose[root.index()], length)).or_insert_with(|| {
                    loose.push(Vec::new());
                    loose.len() - 1
                });
                loose[place].push(group);
            }
            strict[group].push((number, root));
        }
        let mut groups = Vec::new();
        for together in loose {
            let all: Vec<(u32, RuleId)> = together.iter().flat_map(|&group| strict[group].clone()).collect();
            if together.len() > 2 && self.follows_rules(&all, classes) {
                groups.push((&self.shapes.loose[..], all));
            } else {
                groups.extend(
                    together
                        .iter()
                        .map(|&group| (&self.shapes.strict[..], std::mem::take(&mut strict[group]))),
                );
            }
        }
        groups
    }

    /// Whether the fields in which classes of a looser shape differ follow a rule, such as tags
    /// that are ranks.
    fn follows_rules(&self, members: &[(u32, RuleId)], classes: &[(RuleId, Vec<StreamId>)]) -> bool {
        let events: u64 = members.iter().map(|&(_, root)| self.fold.length(root)).sum();
        let group = Group { fold: self.fold, shapes: &self.shapes.loose, members: members.to_vec() };
        if events > MOST_COMPARED {
            return false;
        }
        let Ok(trees) = group.trees(self.fold_stream) else { return false };
        let [tree] = &trees[..] else { return false };
        let writer = Writer { builder: self, classes };
        writer.is_regular(tree)
    }
}

/// Events of streams whose other fields are compared, at most.
const MOST_COMPARED: u64 = 1 << 24;

/// Writes nodes of a tree as logical nodes.
struct Writer<'a> {
    builder: &'a Builder<'a>,
    classes: &'a [(RuleId, Vec<StreamId>)],
}

impl Writer<'_> {
    fn nodes(&self, body: Vec<TreeNode>, around: &[u32]) -> Vec<LogicalNode> {
        let mut nodes: Vec<LogicalNode> = Vec::new();
        // The members of the branch that is open.
        let mut open: Option<(Vec<u32>, Vec<LogicalNode>)> = None;
        for node in body {
            let members = node.members.clone();
            if open.as_ref().is_some_and(|(branch, _)| *branch != members) {
                nodes.extend(open.take().map(|branch| self.branch(branch, around)));
            }
            let written = self.node(node);
            if members == around {
                nodes.push(written);
            } else {
                open.get_or_insert_with(|| (members, Vec::new())).1.push(written);
            }
        }
        nodes.extend(open.map(|branch| self.branch(branch, around)));
        nodes
    }

    fn branch(&self, (members, body): (Vec<u32>, Vec<LogicalNode>), around: &[u32]) -> LogicalNode {
        let places = |members: &[u32]| -> Vec<&Place> {
            members.iter().flat_map(|&class| self.streams(class)).map(|id| self.world(id)).collect()
        };
        let chosen: hashbrown::HashSet<i64> = places(&members).iter().map(|place| place.rank).collect();
        let mut all = places(around);
        all.sort_by_key(|place| place.rank);
        let is_chosen: Vec<bool> = all.iter().map(|place| chosen.contains(&place.rank)).collect();
        LogicalNode::Branch { guard: Guard::fit(&all, &is_chosen), body }
    }

    fn streams(&self, class: u32) -> &[StreamId] {
        &self.classes[class as usize].1
    }

    fn world(&self, id: &StreamId) -> &Place {
        self.builder.places.world(id.index())
    }

    fn node(&self, TreeNode { members, kind, .. }: TreeNode) -> LogicalNode {
        match kind {
            Kind::Event { symbols, .. } => LogicalNode::Event(self.event(&members, &symbols)),
            Kind::Loop { times, body, .. } => {
                let count = |&count: &u64| Token::Number(i64::try_from(count).unwrap_or(i64::MAX));
                let counts = self.known(&members, times.iter().map(count), None);
                let body = self.nodes(body, &members);
                LogicalNode::Loop { times: fit(&counts, Meant::Quantity), body }
            }
        }
    }

    /// The values of members as those of their processes.
    fn known<'a>(
        &'a self,
        members: &'a [u32],
        values: impl Iterator<Item = Token>,
        comm: Option<&'a str>,
    ) -> Vec<Known<'a>> {
        let of_class = |(&class, token): (&u32, Token)| {
            self.streams(class)
                .iter()
                .map(move |id| Known { at: self.builder.places.at(id.index(), comm), token: token.clone() })
        };
        let mut known: Vec<Known<'a>> = members.iter().zip(values).flat_map(of_class).collect();
        known.sort_by_key(|one| one.at.world.rank);
        known
    }

    fn event(&self, members: &[u32], symbols: &[Symbol]) -> LogicalEvent {
        let meaning = |symbol: &Symbol| &self.builder.shapes.meanings[symbol.index()];
        let first = meaning(&symbols[0]);
        let comm = first.field("comm").map(|value| match value {
            Value::Integer(number) => number.to_string(),
            Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
        });
        let comm = comm.or_else(|| Some(crate::mpi::WORLD.to_string()));
        let same = symbols.iter().all(|symbol| symbol == &symbols[0]);
        let field = |(place, field): (usize, &crate::trace::Field<'_>)| {
            let (listed, is_list) = tokens(field.value);
            let values = if same {
                listed.into_iter().map(Expression::Same).collect()
            } else {
                let all: Vec<Vec<Token>> =
                    symbols.iter().map(|symbol| tokens(meaning(symbol).fields[place].value).0).collect();
                (0..listed.len())
                    .map(|nth| self.value(members, field.key, comm.as_deref(), &all, nth))
                    .collect()
            };
            LogicalField { key: field.key.to_string(), values, is_list }
        };
        let name = match first.name {
            Name::Text(text) => EventName::Text(text.into()),
            Name::Integer(number) => EventName::Integer(number),
        };
        let fields = first.fields.iter().enumerate().map(field).collect();
        LogicalEvent { name, role: first.role, fields, comm }
    }

    /// The nth values of a field.
    fn value(
        &self,
        members: &[u32],
        key: &str,
        comm: Option<&str>,
        all: &[Vec<Token>],
        nth: usize,
    ) -> Expression {
        let token = |tokens: &Vec<Token>| tokens.get(nth).cloned().unwrap_or(Token::word(b""));
        let is_peer = PEERS.contains(&key);
        let known = self.known(members, all.iter().map(token), comm);
        fit(&known, if is_peer { Meant::Peer } else { Meant::Quantity })
    }

    /// Whether every value beside those that vary anyway follows a rule.
    fn is_regular(&self, body: &[TreeNode]) -> bool {
        body.iter().all(|node| match &node.kind {
            Kind::Loop { body, .. } => self.is_regular(body),
            Kind::Event { symbols, .. } => {
                let event = self.event(&node.members, symbols);
                let is_rule = |value: &Expression| !matches!(value, Expression::Cases(..));
                event.fields.iter().all(|field| field.values.iter().all(is_rule))
            }
        })
    }
}
