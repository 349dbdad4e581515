//! Communication patterns with a name: the sends and receives of each process in one round,
//! with their partners.
//!
//! Programs do the same thing in different orders: a stage of an exchange may send first or
//! receive first, a program may post all receives before it sends any, a tree or a wavefront
//! may have the opposite direction. All these are *variants* of the pattern. Time and memory
//! are O(events of a variant).

use super::topology::{Channels, Layout};
use crate::trace::Role;
use crate::{Error, Result};

/// A pattern of a known layout and shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownPattern {
    layout: Layout,
    shape: Vec<usize>,
}

/// A usual implementation of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownVariant {
    /// The order of the events, and the direction of the messages.
    pub order: String,
    /// For each process its events: a send or a receive, and the process at the other end.
    pub events: Vec<Vec<(Role, usize)>>,
}

/// Names as they are written, and how many dimensions a shape has.
const NAMES: [(&str, Layout, std::ops::RangeInclusive<usize>); 11] = [
    ("line", Layout::Line, 1..=1),
    ("ring", Layout::Ring, 1..=1),
    ("mesh", Layout::Mesh, 2..=3),
    ("torus", Layout::Torus, 2..=3),
    ("wavefront", Layout::Wavefront, 2..=3),
    ("star", Layout::Star, 1..=1),
    ("binary-tree", Layout::BinaryTree, 1..=1),
    ("binomial-tree", Layout::BinomialTree, 1..=1),
    ("hypercube", Layout::Hypercube, 1..=1),
    ("butterfly", Layout::Butterfly, 1..=1),
    ("all-to-all", Layout::AllToAll, 1..=1),
];

/// Patterns with more events are too large to look for.
const MOST_EVENTS: usize = 1 << 22;

impl KnownPattern {
    /// Reads a name and a size, such as `butterfly:16` or `mesh:4x4`.
    ///
    /// ```
    /// use loopfold::mpi::KnownPattern;
    /// use loopfold::trace::Role::{Receive, Send};
    ///
    /// let butterfly = KnownPattern::parse("butterfly:8")?;
    /// let first = &butterfly.variants()[0];
    /// assert_eq!(first.order, "send first");
    /// assert_eq!(first.events[5], [(Send, 4), (Receive, 4), (Send, 7), (Receive, 7), (Send, 1), (Receive, 1)]);
    /// # Ok::<(), loopfold::Error>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self> {
        let (name, size) = text.split_once(':').unwrap_or((text, ""));
        let Some((name, layout, dimensions)) = NAMES.iter().find(|(known, ..)| *known == name) else {
            let names: Vec<&str> = NAMES.iter().map(|(name, ..)| *name).collect();
            return Err(Error::invalid(format_args!(
                "no pattern is called {name:?}; there are: {}",
                names.join(", ")
            )));
        };
        let example = if dimensions.contains(&1) { "16" } else { "4x4" };
        let bad = || Error::invalid(format_args!("{text:?} has no size such as {name}:{example}"));
        let sides = size.split('x').map(|side| side.parse::<usize>().ok().filter(|&side| side > 0));
        let shape = sides.collect::<Option<Vec<usize>>>().ok_or_else(bad)?;
        if !dimensions.contains(&shape.len()) {
            return Err(bad());
        }
        Self { layout: *layout, shape }.checked()
    }

    fn checked(self) -> Result<Self> {
        let processes = self.shape.iter().try_fold(1usize, |all, &side| all.checked_mul(side));
        let partners = match self.layout {
            Layout::AllToAll => processes,
            Layout::Hypercube | Layout::Butterfly => Some(usize::BITS as usize),
            _ => Some(6),
        };
        let events =
            processes.zip(partners).and_then(|(all, partners)| all.checked_mul(partners)?.checked_mul(2));
        if events.is_none_or(|events| events > MOST_EVENTS) {
            return Err(Error::limit(format_args!("a {} of so many processes", self.layout.name())));
        }
        if self.processes() < 2 {
            return Err(Error::invalid(format_args!("a {} has at least 2 processes", self.layout.name())));
        }
        let in_bits = matches!(self.layout, Layout::Hypercube | Layout::Butterfly);
        if in_bits && !self.processes().is_power_of_two() {
            return Err(Error::invalid(format_args!("the size of a {} is a power of 2", self.layout.name())));
        }
        Ok(self)
    }

    /// Its name.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// How many processes it has.
    pub fn processes(&self) -> usize {
        self.shape.iter().product()
    }

    /// The usual implementations, the most usual first.
    pub fn variants(&self) -> Vec<KnownVariant> {
        let mut variants: Vec<KnownVariant> = Vec::new();
        for (flow, rounds) in self.flows() {
            // What is passed on is received before it is sent.
            let passes_on =
                matches!(self.layout, Layout::Wavefront | Layout::BinaryTree | Layout::BinomialTree);
            for (order, arrange) in &ORDERS[..if passes_on { 1 } else { ORDERS.len() }] {
                let events = rounds.iter().map(|stages| arrange(stages)).collect();
                let order = match (flow.is_empty(), passes_on) {
                    (true, _) => order.to_string(),
                    (false, true) => flow.clone(),
                    (false, false) => format!("{flow}, {order}"),
                };
                // If no process both sends and receives in a stage, all orders are equal.
                if !variants.iter().any(|known| known.events == events) {
                    variants.push(KnownVariant { order, events });
                }
            }
        }
        variants
    }

    /// The directions of the messages, and for each process the stages of a round.
    fn flows(&self) -> Vec<(String, Vec<Vec<Stage>>)> {
        let n = self.processes();
        let all = |stages: &dyn Fn(usize) -> Vec<Stage>| -> Vec<Vec<Stage>> { (0..n).map(stages).collect() };
        let both = |name: &str, down: Vec<Vec<Stage>>| {
            let up = reversed(&down);
            vec![(format!("{name} down"), down), (format!("{name} up"), up)]
        };
        match self.layout {
            Layout::Ring => {
                let up = all(&|process| vec![Stage::shift((process + n - 1) % n, (process + 1) % n)]);
                let down = reversed(&up);
                vec![("upwards".to_string(), up), ("downwards".to_string(), down)]
            }
            Layout::Line | Layout::Mesh | Layout::Torus => {
                let wraps = self.layout == Layout::Torus;
                let mut flows = Vec::new();
                for (dimensions, which) in self.dimension_orders() {
                    let exchanges = all(&|process| self.exchanges(process, &dimensions, wraps));
                    let shifts = all(&|process| self.shifts(process, &dimensions, wraps));
                    flows.push((format!("by neighbours{which}"), exchanges));
                    flows.push((format!("by shifts{which}"), shifts));
                }
                flows
            }
            Layout::Wavefront => self.wavefronts(),
            Layout::Star => {
                let out = all(&|process| match process {
                    0 => (1..n).map(|ray| Stage { sends: vec![ray], receives: vec![] }).collect(),
                    _ => vec![Stage { sends: vec![], receives: vec![0] }],
                });
                let into = reversed(&out);
                let exchange = all(&|process| match process {
                    0 => (1..n).map(Stage::exchange).collect(),
                    _ => vec![Stage::exchange(0)],
                });
                let gathered = into.iter().zip(&out).map(|(into, out)| [&into[..], out].concat()).collect();
                vec![
                    ("with each".to_string(), exchange),
                    ("to the centre and back".to_string(), gathered),
                    ("from the centre".to_string(), out),
                    ("to the centre".to_string(), into),
                ]
            }
            Layout::BinaryTree => both("tree", tree(n, |child| (child - 1) / 2)),
            Layout::BinomialTree => {
                let mut low = both("tree", tree(n, |child| child & (child - 1)));
                low.extend(both("tree of doubling steps", tree(n, |child| child & !(1 << child.ilog2()))));
                low
            }
            Layout::Hypercube | Layout::Butterfly => {
                let bits = n.trailing_zeros();
                let flip = |process: usize, bit: u32| Stage::exchange(process ^ 1 << bit);
                vec![
                    (String::new(), all(&|process| (0..bits).map(|bit| flip(process, bit)).collect())),
                    (
                        "highest bit first".to_string(),
                        all(&|process| (0..bits).rev().map(|bit| flip(process, bit)).collect()),
                    ),
                ]
            }
            Layout::AllToAll => {
                let in_turn = |process: usize| {
                    (1..n).map(|by| Stage::shift((process + n - by) % n, (process + by) % n)).collect()
                };
                let in_order =
                    |process: usize| (0..n).filter(|&other| other != process).map(Stage::exchange).collect();
                vec![
                    ("in turn".to_string(), all(&in_turn)),
                    ("in the order of ranks".to_string(), all(&in_order)),
                ]
            }
        }
    }

    /// The neighbour of a process one step up or down in a dimension, if it has one.
    fn neighbour(&self, process: usize, dimension: usize, up: bool, wraps: bool) -> Option<usize> {
        let stride: usize = self.shape[dimension + 1..].iter().product();
        let side = self.shape[dimension];
        let at = process / stride % side;
        let there = if up { at + 1 } else { at + side - 1 };
        let is_inside = if up { at + 1 < side } else { at > 0 };
        // Around two is the same neighbour again.
        (is_inside || wraps && side > 2).then_some(process - at * stride + there % side * stride)
    }

    /// The orders of the dimensions, with their names.
    fn dimension_orders(&self) -> Vec<(Vec<usize>, &'static str)> {
        let first: Vec<usize> = (0..self.shape.len()).collect();
        let last = first.iter().rev().copied().collect();
        vec![(first, ""), (last, ", last dimension first")]
    }

    /// With one neighbour after the other.
    fn exchanges(&self, process: usize, dimensions: &[usize], wraps: bool) -> Vec<Stage> {
        let directions = dimensions.iter().flat_map(|&dimension| [(dimension, false), (dimension, true)]);
        let neighbours =
            directions.filter_map(|(dimension, up)| self.neighbour(process, dimension, up, wraps));
        neighbours.map(Stage::exchange).collect()
    }

    /// To the neighbour on one side and from that on the other, and then in the opposite
    /// direction.
    fn shifts(&self, process: usize, dimensions: &[usize], wraps: bool) -> Vec<Stage> {
        let directions = dimensions.iter().flat_map(|&dimension| [(dimension, true), (dimension, false)]);
        directions
            .map(|(dimension, up)| Stage {
                sends: self.neighbour(process, dimension, up, wraps).into_iter().collect(),
                receives: self.neighbour(process, dimension, !up, wraps).into_iter().collect(),
            })
            .collect()
    }

    /// From each corner: what comes from the neighbours before goes to those behind.
    fn wavefronts(&self) -> Vec<(String, Vec<Vec<Stage>>)> {
        let dimensions = self.shape.len();
        let mut flows = Vec::new();
        for down in 0..1usize << dimensions {
            let is_up = |dimension: usize| down >> (dimensions - 1 - dimension) & 1 == 0;
            let signs = (0..dimensions).map(|dimension| if is_up(dimension) { "+" } else { "-" });
            let signs = signs.collect::<Vec<_>>().join(" ");
            for (order, which) in self.dimension_orders() {
                let stages = |process: usize| {
                    let next = |forwards: bool| -> Vec<usize> {
                        let next = |&dimension: &usize| {
                            self.neighbour(process, dimension, is_up(dimension) == forwards, false)
                        };
                        order.iter().filter_map(next).collect()
                    };
                    vec![
                        Stage { sends: vec![], receives: next(false) },
                        Stage { sends: next(true), receives: vec![] },
                    ]
                };
                let all = (0..self.processes()).map(stages).collect();
                flows.push((format!("directions {signs}{which}"), all));
            }
        }
        flows
    }

    /// The channels of a variant.
    pub fn channels(&self, variant: &KnownVariant) -> Channels {
        let mut channels = Channels::new(self.processes()).in_stages(self.layout == Layout::Butterfly);
        for (process, events) in variant.events.iter().enumerate() {
            for &(role, peer) in events {
                match role {
                    Role::Send => channels.add(process, peer),
                    _ => channels.add(peer, process),
                }
            }
        }
        channels
    }
}

/// A stage: what a process receives and sends.
#[derive(Clone, Debug)]
struct Stage {
    sends: Vec<usize>,
    receives: Vec<usize>,
}

impl Stage {
    fn exchange(with: usize) -> Self {
        Self { sends: vec![with], receives: vec![with] }
    }

    fn shift(from: usize, to: usize) -> Self {
        Self { sends: vec![to], receives: vec![from] }
    }

    fn sent(&self) -> impl Iterator<Item = (Role, usize)> {
        self.sends.iter().map(|&peer| (Role::Send, peer))
    }

    fn received(&self) -> impl Iterator<Item = (Role, usize)> {
        self.receives.iter().map(|&peer| (Role::Receive, peer))
    }
}

type Arrange = fn(&[Stage]) -> Vec<(Role, usize)>;

/// The usual orders of the events of a round.
const ORDERS: [(&str, Arrange); 4] = [
    ("send first", |stages| stages.iter().flat_map(|stage| stage.sent().chain(stage.received())).collect()),
    ("receive first", |stages| {
        stages.iter().flat_map(|stage| stage.received().chain(stage.sent())).collect()
    }),
    ("all receives first", |stages| {
        stages.iter().flat_map(Stage::received).chain(stages.iter().flat_map(Stage::sent)).collect()
    }),
    ("all sends first", |stages| {
        stages.iter().flat_map(Stage::sent).chain(stages.iter().flat_map(Stage::received)).collect()
    }),
];

/// From the root: what comes from the parent goes to the children.
fn tree(processes: usize, parent: fn(usize) -> usize) -> Vec<Vec<Stage>> {
    let from_parent = |child: usize| match child {
        0 => Vec::new(),
        _ => vec![Stage { sends: vec![], receives: vec![parent(child)] }],
    };
    let mut stages: Vec<Vec<Stage>> = (0..processes).map(from_parent).collect();
    for child in 1..processes {
        stages[parent(child)].push(Stage { sends: vec![child], receives: vec![] });
    }
    stages
}

/// The same with all messages reversed, from the last to the first.
fn reversed(processes: &[Vec<Stage>]) -> Vec<Vec<Stage>> {
    let reversed = |stage: &Stage| Stage { sends: stage.receives.clone(), receives: stage.sends.clone() };
    processes.iter().map(|stages| stages.iter().rev().map(reversed).collect()).collect()
}
