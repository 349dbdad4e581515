//! Classifies communication: finds the nearest of the well-known topologies, and the deviation
//! from it.
//!
//! A topology is a set of channels, each from a process to another; those of a pattern are
//! compared with those that each topology would have. Processes are taken in the order of
//! their numbers, so a grid is found in the row-major order in which ranks are given out,
//! of any shape, and a tree from any root. One look at every channel is enough for each
//! shape that the number of processes can be divided into, and for each root that has
//! about the right number of partners.

use std::collections::BTreeSet;
use std::fmt;

/// The channels between processes `0..processes`, each from a sender to a receiver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Channels {
    processes: usize,
    pairs: BTreeSet<(usize, usize)>,
    /// True if exchanges come one after the other, each with another partner, so that what
    /// was received can be passed on in the next.
    in_stages: bool,
}

impl Channels {
    /// No channels between this many processes.
    pub fn new(processes: usize) -> Self {
        Self { processes, ..Self::default() }
    }

    /// Adds a channel. One from a process to itself, or to one that is not there, is none.
    pub fn add(&mut self, from: usize, to: usize) {
        if from != to && from.max(to) < self.processes {
            self.pairs.insert((from, to));
        }
    }

    /// Sets that exchanges come in stages: this distinguishes a butterfly from a hypercube.
    #[must_use]
    pub fn in_stages(mut self, in_stages: bool) -> Self {
        self.in_stages = in_stages;
        self
    }

    /// How many processes there are.
    pub fn processes(&self) -> usize {
        self.processes
    }

    /// The channels, from and to, in order.
    pub fn pairs(&self) -> impl ExactSizeIterator<Item = (usize, usize)> {
        self.pairs.iter().copied()
    }

    /// The nearest well-known topology. Returns `None` if none is near, or hardly any process
    /// takes part.
    ///
    /// ```
    /// use loopfold::mpi::{Channels, Direction, Layout};
    ///
    /// let mut channels = Channels::new(6);
    /// for process in 0..6 {
    ///     channels.add(process, (process + 1) % 6);
    /// }
    /// let topology = channels.topology().unwrap();
    /// assert_eq!((topology.layout, topology.departs()), (Layout::Ring, 0));
    /// assert_eq!(topology.directions, [Direction::Up]);
    /// ```
    pub fn topology(&self) -> Option<Topology> {
        nearest(self.candidates())
    }

    /// The line, ring, mesh, torus or wavefront of a given shape that is near, of at most three
    /// dimensions. Returns `None` if there is none, or the shape has other processes.
    pub fn topology_in(&self, shape: &[usize]) -> Option<Topology> {
        let is_shape = (1..=3).contains(&shape.len()) && shape.iter().all(|&side| side > 0);
        let processes = shape.iter().try_fold(1usize, |all, &side| all.checked_mul(side))?;
        let topology = (is_shape && processes == self.processes).then(|| self.grid(shape))?;
        nearest(topology.into_iter().collect())
    }

    /// The same among those whose processes have places in a grid of one or more dimensions:
    /// lines, rings, meshes, tori, wavefronts and hypercubes.
    pub fn grid_topology(&self) -> Option<Topology> {
        nearest(self.grids())
    }

    fn candidates(&self) -> Vec<Topology> {
        let n = self.processes;
        let mut candidates = Vec::new();
        if n < 2 || self.pairs.is_empty() {
            return candidates;
        }
        candidates.extend(self.grid(&[n]));
        candidates.extend(self.all_to_all());
        if n > 3 {
            candidates.extend(self.star());
            candidates.extend(self.hypercube());
            candidates.extend(shapes(n).iter().filter_map(|shape| self.grid(shape)));
            candidates.extend(self.trees(Layout::BinaryTree, binary_parent));
            candidates.extend(self.trees(Layout::BinomialTree, low_binomial_parent));
            candidates.extend(self.trees(Layout::BinomialTree, high_binomial_parent));
        }
        candidates
    }

    fn grids(&self) -> Vec<Topology> {
        let n = self.processes;
        if n < 2 || self.pairs.is_empty() {
            return Vec::new();
        }
        let mut grids: Vec<Topology> = self.grid(&[n]).into_iter().chain(self.hypercube()).collect();
        grids.extend(shapes(n).iter().filter_map(|shape| self.grid(shape)));
        grids
    }

    /// A line, ring, mesh, torus or wavefront of this shape.
    fn grid(&self, shape: &[usize]) -> Option<Topology> {
        let grid = Grid { shape };
        let (mut steps, mut wraps) = (DirectionCounts::default(), DirectionCounts::default());
        for (from, to) in self.pairs() {
            match grid.neighbour_step(from, to) {
                Some(NeighbourStep { dimension, up, wraps: false }) => steps[dimension][usize::from(up)] += 1,
                Some(NeighbourStep { dimension, up, wraps: true }) => wraps[dimension][usize::from(up)] += 1,
                None => {}
            }
        }
        let mut ideal = 0;
        let mut present = 0;
        let mut directions = Vec::new();
        let (mut wrapping, mut open) = (0, 0);
        for (dimension, &length) in shape.iter().enumerate() {
            let rows = self.processes / length;
            let used = [0, 1].map(|side| 2 * steps[dimension][side] > rows * (length - 1));
            directions.push(Direction::of(used)?);
            let in_use = |counts: &DirectionCounts| {
                (0..2).filter(|&side| used[side]).map(|side| counts[dimension][side]).sum()
            };
            let sides = usize::from(used[0]) + usize::from(used[1]);
            let (stepping, wrapped): (usize, usize) = (in_use(&steps), in_use(&wraps));
            ideal += sides * rows * (length - 1);
            present += stepping;
            if length > 2 && 2 * wrapped > sides * rows {
                ideal += sides * rows;
                present += wrapped;
                wrapping += 1;
            } else if length > 2 {
                open += 1;
            }
        }
        let one_way = directions.iter().all(|&direction| direction != Direction::Both);
        let layout = match shape.len() {
            1 if wrapping == 1 => Layout::Ring,
            1 => Layout::Line,
            // Where some dimensions wrap around and some do not, the others are missing.
            _ if wrapping > 0 && open == 0 => Layout::Torus,
            _ if wrapping > 0 => return None,
            _ if one_way => Layout::Wavefront,
            _ => Layout::Mesh,
        };
        self.compared(layout, shape.to_vec(), directions, ideal, present)
    }

    fn all_to_all(&self) -> Option<Topology> {
        let ideal = self.processes * (self.processes - 1);
        self.compared(Layout::AllToAll, vec![self.processes], vec![Direction::Both], ideal, self.pairs.len())
    }

    /// One process and all others.
    fn star(&self) -> Option<Topology> {
        let mut touching = vec![[0usize; 2]; self.processes];
        for (from, to) in self.pairs() {
            touching[from][1] += 1;
            touching[to][0] += 1;
        }
        let (centre, counts) = touching.iter().enumerate().max_by_key(|(_, [into, out])| into + out)?;
        let rays = self.processes - 1;
        let used = counts.map(|count| 2 * count > rays);
        let present = (0..2).filter(|&side| used[side]).map(|side| counts[side]).sum();
        let ideal = rays * (usize::from(used[0]) + usize::from(used[1]));
        let directions = vec![Direction::of(used)?];
        let star = self.compared(Layout::Star, vec![self.processes], directions, ideal, present)?;
        Some(Topology { root: Some(centre), ..star })
    }

    /// Partners whose numbers differ in one bit.
    fn hypercube(&self) -> Option<Topology> {
        let bits = self.processes.trailing_zeros() as usize;
        // Of two bits it is a square.
        if !self.processes.is_power_of_two() || bits < 3 {
            return None;
        }
        let layout = if self.in_stages { Layout::Butterfly } else { Layout::Hypercube };
        let present = self.pairs().filter(|(from, to)| (from ^ to).is_power_of_two()).count();
        let shape = vec![2; bits];
        self.compared(layout, shape, vec![Direction::Both; bits], self.processes * bits, present)
    }

    /// The best tree of a kind, which is given by the parent of each process when 0 is the
    /// root; for another root the numbers count from there, modulo the number of processes.
    fn trees(&self, layout: Layout, parent: fn(usize) -> usize) -> Option<Topology> {
        let n = self.processes;
        let root_degree = (1..n).filter(|&process| parent(process) == 0).count();
        let mut partners = vec![BTreeSet::new(); n];
        for (from, to) in self.pairs() {
            partners[from].insert(to);
            partners[to].insert(from);
        }
        let is_likely = |&root: &usize| root == 0 || partners[root].len().abs_diff(root_degree) <= 1;
        let roots = (0..n).filter(is_likely).take(MOST_ROOTS);
        let trees = roots.filter_map(|root| {
            let place = |number: usize| (number + root) % n;
            let channel = |child: usize| (place(parent(child)), place(child));
            // Down from the root, and up to it.
            let down = (1..n).filter(|&child| self.pairs.contains(&channel(child))).count();
            let up =
                (1..n).map(channel).filter(|&(above, below)| self.pairs.contains(&(below, above))).count();
            let used = [up, down].map(|count| 2 * count > n - 1);
            let present = if used[0] { up } else { 0 } + if used[1] { down } else { 0 };
            let ideal = (n - 1) * (usize::from(used[0]) + usize::from(used[1]));
            let tree = self.compared(layout, vec![n], vec![Direction::of(used)?], ideal, present)?;
            Some(Topology { root: Some(root), ..tree })
        });
        trees.min_by(|one, other| one.departure().total_cmp(&other.departure()))
    }

    fn compared(
        &self,
        layout: Layout,
        shape: Vec<usize>,
        directions: Vec<Direction>,
        ideal: usize,
        present: usize,
    ) -> Option<Topology> {
        let (missing, extra) = (ideal - present, self.pairs.len() - present);
        (ideal > 0).then_some(Topology { layout, shape, directions, root: None, missing, extra, ideal })
    }
}

/// The nearest one, if it is near.
fn nearest(candidates: Vec<Topology>) -> Option<Topology> {
    let mut best: Option<Topology> = None;
    for candidate in candidates {
        // Of equals the one that was tried first is the simplest.
        let is_nearer = |best: &Topology| candidate.departure() < best.departure();
        if candidate.departure() <= FARTHEST && best.as_ref().is_none_or(is_nearer) {
            best = Some(candidate);
        }
    }
    best
}

/// Channels with a larger deviation have no name.
const FARTHEST: f64 = 0.2;
/// Roots that are tried.
const MOST_ROOTS: usize = 1024;

/// The shapes of grids of two and three dimensions, each of at least two processes.
fn shapes(processes: usize) -> Vec<Vec<usize>> {
    let divisors = |n: usize| (2..=n / 2).filter(move |divisor| n.is_multiple_of(*divisor));
    let mut shapes: Vec<Vec<usize>> = divisors(processes).map(|rows| vec![rows, processes / rows]).collect();
    // The squarest first.
    shapes.sort_by_key(|shape| shape[0].abs_diff(shape[1]));
    for planes in divisors(processes) {
        let rest = processes / planes;
        shapes.extend(divisors(rest).map(|rows| vec![planes, rows, rest / rows]));
    }
    shapes
}

fn binary_parent(process: usize) -> usize {
    (process - 1) / 2
}

/// Without its lowest bit.
fn low_binomial_parent(process: usize) -> usize {
    process & (process - 1)
}

/// Without its highest bit.
fn high_binomial_parent(process: usize) -> usize {
    process & !(1 << process.ilog2())
}

/// Channels by dimension, and by whether they lead up.
type DirectionCounts = [[usize; 2]; 3];

/// Processes in row-major order.
struct Grid<'a> {
    shape: &'a [usize],
}

/// A channel between neighbours.
struct NeighbourStep {
    dimension: usize,
    up: bool,
    /// True if it leads from one end to the other.
    wraps: bool,
}

impl Grid<'_> {
    /// The step of a channel between neighbours. Returns `None` for other channels.
    fn neighbour_step(&self, mut from: usize, mut to: usize) -> Option<NeighbourStep> {
        let mut step = None;
        for (dimension, &length) in self.shape.iter().enumerate().rev() {
            let (here, there) = (from % length, to % length);
            (from, to) = (from / length, to / length);
            if here == there {
                continue;
            }
            let apart = here.abs_diff(there);
            let wraps = apart > 1;
            let is_near = apart == 1 || apart == length - 1;
            // Around the end the next one has a smaller number.
            let up = (here < there) != wraps;
            if step.is_some() || !is_near {
                return None;
            }
            step = Some(NeighbourStep { dimension, up, wraps });
        }
        step
    }
}

/// The kind of a topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// Each with the next one.
    Line,
    /// A line whose ends meet.
    Ring,
    /// Neighbours in two or three dimensions.
    Mesh,
    /// A mesh whose ends meet.
    Torus,
    /// A mesh in which everything goes from one corner to the opposite one.
    Wavefront,
    /// One with all others.
    Star,
    /// Each with two below it.
    BinaryTree,
    /// Each with as many below it as its number has bits to spare.
    BinomialTree,
    /// Those whose numbers differ in one bit.
    Hypercube,
    /// The same, one bit after the other.
    Butterfly,
    /// Each with all others.
    AllToAll,
}

impl Layout {
    /// The usual name.
    pub fn name(self) -> &'static str {
        match self {
            Layout::Line => "line",
            Layout::Ring => "ring",
            Layout::Mesh => "mesh",
            Layout::Torus => "torus",
            Layout::Wavefront => "wavefront",
            Layout::Star => "star",
            Layout::BinaryTree => "binary tree",
            Layout::BinomialTree => "binomial tree",
            Layout::Hypercube => "hypercube",
            Layout::Butterfly => "butterfly",
            Layout::AllToAll => "all-to-all",
        }
    }
}

/// The direction of messages in a dimension: up is towards larger numbers, or away from the
/// root of a tree and the centre of a star.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Only up.
    Up,
    /// Only down.
    Down,
    /// Both directions.
    Both,
}

impl Direction {
    /// By whether channels down and up are used.
    fn of([down, up]: [bool; 2]) -> Option<Self> {
        match (down, up) {
            (true, true) => Some(Self::Both),
            (true, false) => Some(Self::Down),
            (false, true) => Some(Self::Up),
            (false, false) => None,
        }
    }
}

/// A topology, and the deviation of some channels from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Its name.
    pub layout: Layout,
    /// The number of processes in each dimension.
    pub shape: Vec<usize>,
    /// The direction of messages in each dimension.
    pub directions: Vec<Direction>,
    /// The root of a tree or the centre of a star.
    pub root: Option<usize>,
    /// Channels that it has and the pattern has not.
    pub missing: usize,
    /// Channels that the pattern has and it has not.
    pub extra: usize,
    /// Channels that it has.
    pub ideal: usize,
}

impl Topology {
    /// How many channels differ.
    pub fn departs(&self) -> usize {
        self.missing + self.extra
    }

    /// The channels that differ, as a share of those that it has.
    pub fn departure(&self) -> f64 {
        self.departs() as f64 / self.ideal as f64
    }
}

impl fmt::Display for Topology {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shape: Vec<String> = self.shape.iter().map(ToString::to_string).collect();
        let shape = shape.join(" by ");
        match self.layout {
            Layout::Mesh | Layout::Torus => {
                write!(out, "{}-D {} of {shape}", self.shape.len(), self.layout.name())?
            }
            Layout::Wavefront => write!(out, "wavefront over {shape}")?,
            Layout::Hypercube | Layout::Butterfly => {
                write!(out, "{} of {}", self.layout.name(), 1usize << self.shape.len())?;
            }
            _ => write!(out, "{} of {shape}", self.layout.name())?,
        }
        self.write_directions(out)?;
        match (self.missing, self.extra) {
            (0, 0) => Ok(()),
            (missing, 0) => write!(out, ", but for {missing} of {} channels missing", self.ideal),
            (0, extra) => write!(out, ", and {extra} channels more"),
            (missing, extra) => {
                write!(out, ", but for {missing} of {} channels missing and {extra} more", self.ideal)
            }
        }
    }
}

impl Topology {
    fn write_directions(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Direction::{Both, Down, Up};
        if let Some(root) = self.root {
            let (place, away) =
                if self.layout == Layout::Star { ("around", "from it") } else { ("from", "down") };
            write!(out, " {place} {root}")?;
            return match self.directions[..] {
                [Up] => write!(out, ", {away}"),
                [Down] => write!(out, ", {}", if self.layout == Layout::Star { "to it" } else { "up" }),
                _ => Ok(()),
            };
        }
        match (self.layout, &self.directions[..]) {
            (Layout::Wavefront, [rows, columns]) => {
                let corner = |up_is: bool| {
                    let row = if (*rows == Up) == up_is { "south" } else { "north" };
                    let column = if (*columns == Up) == up_is { "east" } else { "west" };
                    format!("{row}-{column}")
                };
                write!(out, ", from {} to {}", corner(false), corner(true))
            }
            (_, [Up]) => write!(out, ", upwards"),
            (_, [Down]) => write!(out, ", downwards"),
            (_, directions) if directions.iter().any(|&direction| direction != Both) => {
                let signs = directions.iter().map(|direction| match direction {
                    Up => "+",
                    Down => "-",
                    Both => "±",
                });
                write!(out, ", directions {}", signs.collect::<Vec<_>>().join(" "))
            }
            _ => Ok(()),
        }
    }
}
