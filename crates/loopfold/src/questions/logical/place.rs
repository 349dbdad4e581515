//! Where a process is: its rank in a communicator, how many there are, and its place in a grid.

use crate::mpi::{CommGrids, Communicators, Grid};
use crate::{Error, Fold, Result};
use hashbrown::HashMap;
use std::sync::Arc;

/// A process in a communicator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its rank.
    pub rank: i64,
    /// How many processes the communicator has.
    pub size: i64,
    /// The grid of the communicator, which has as many places.
    pub grid: Option<Arc<Grid>>,
}

impl Place {
    /// A process of a communicator without a grid.
    pub fn new(rank: i64, size: i64) -> Self {
        Self { rank, size, grid: None }
    }

    /// How many dimensions the grid has.
    pub fn dimensions(&self) -> usize {
        self.grid.as_ref().map_or(0, |grid| grid.sides.len())
    }

    /// Where it is in a dimension of the grid, from 0.
    pub fn coordinate(&self, dimension: usize) -> i64 {
        let Some(grid) = &self.grid else { return 0 };
        let below: i64 = grid.sides.iter().skip(dimension + 1).map(|&side| i64::from(side)).product();
        grid.sides.get(dimension).map_or(0, |&side| self.rank / below.max(1) % i64::from(side.max(1)))
    }

    /// How many places there are in a dimension.
    pub fn side(&self, dimension: usize) -> i64 {
        let side = self.grid.as_ref().and_then(|grid| grid.sides.get(dimension));
        side.map_or(1, |&side| i64::from(side))
    }

    /// The rank some steps away. Returns `None` outside of the grid.
    pub fn step(&self, steps: &[i64]) -> Option<i64> {
        let grid = self.grid.as_ref().filter(|grid| grid.sides.len() == steps.len())?;
        let mut rank = 0;
        for (dimension, &step) in steps.iter().enumerate() {
            let side = self.side(dimension);
            let at = self.coordinate(dimension).checked_add(step)?;
            let at = if grid.periodic[dimension] { at.rem_euclid(side) } else { at };
            if !(0..side).contains(&at) {
                return None;
            }
            rank = rank * side + at;
        }
        Some(rank)
    }
}

/// The two places that a value can depend on.
#[derive(Clone, Copy, Debug)]
pub struct At<'a> {
    /// In the communicator of the event.
    pub comm: &'a Place,
    /// Among all processes.
    pub world: &'a Place,
}

/// The places of all streams, in the world and in the communicators that events name.
#[derive(Clone, Debug, Default)]
pub struct Places {
    world: Vec<Place>,
    /// Places that differ from that in the world, for each stream.
    comms: Vec<HashMap<String, Place>>,
}

impl Places {
    /// The places of the streams of a fold.
    pub(super) fn of(fold: &Fold) -> Result<Self> {
        let communicators = Communicators::of(fold);
        let grids = CommGrids::of(fold, &communicators)?;
        let names: Vec<String> = comm_names(fold);
        let size = i64::from(communicators.size());
        let mut places = Self::default();
        let mut shared: HashMap<(String, u32), Option<Arc<Grid>>> = HashMap::new();
        let mut grid_of = |comm: &str, size: u32| {
            let grid = || grids.get(comm, size).cloned().map(Arc::new);
            shared.entry((comm.to_string(), size)).or_insert_with(grid).clone()
        };
        for stream in 0..fold.streams().len() {
            let rank = i64::from(communicators.rank(stream));
            let mut own = HashMap::new();
            let mut world = Place::new(rank, size);
            for comm in &names {
                let Some(rank) = communicators.own_rank(stream, comm) else { continue };
                let size = communicators.comm_size(stream, comm);
                let place = Place { rank: rank.into(), size: size.into(), grid: grid_of(comm, size) };
                if place.size == world.size && place.rank == world.rank && world.grid.is_none() {
                    // A grid of all processes serves to describe any of them.
                    world.grid.clone_from(&place.grid);
                }
                own.insert(comm.clone(), place);
            }
            places.world.push(world);
            places.comms.push(own);
        }
        // The grid of all processes is that of every one of them.
        let first = places.world.first().and_then(|place| place.grid.clone());
        if places.world.iter().any(|place| place.grid != first) {
            places.world.iter_mut().for_each(|place| place.grid = None);
        }
        places.check()?;
        Ok(places)
    }

    /// Places in the world only, for another number of processes than was recorded.
    pub fn of_world(world: Vec<Place>) -> Self {
        let comms = vec![HashMap::new(); world.len()];
        Self { world, comms }
    }

    /// The places of some streams, in this order.
    pub fn chosen(&self, streams: &[usize]) -> Self {
        let world = streams.iter().map(|&stream| self.world[stream].clone()).collect();
        let comms = streams.iter().map(|&stream| self.comms[stream].clone()).collect();
        Self { world, comms }
    }

    /// Sets the place of a stream in a communicator.
    pub fn set(&mut self, stream: usize, comm: &str, place: Place) {
        self.comms[stream].insert(comm.to_string(), place);
    }

    fn check(&self) -> Result<()> {
        let is_place = |place: &Place| (0..place.size).contains(&place.rank);
        match self.world.iter().all(is_place) {
            true => Ok(()),
            false => Err(Error::invalid("a stream is a process that cannot be")),
        }
    }

    /// Among all processes.
    pub fn world(&self, stream: usize) -> &Place {
        &self.world[stream]
    }

    /// In a communicator; in the world, if it is not known to be a member.
    pub fn at(&self, stream: usize, comm: Option<&str>) -> At<'_> {
        let world = &self.world[stream];
        At { comm: comm.and_then(|comm| self.comms[stream].get(comm)).unwrap_or(world), world }
    }
}

/// The communicators that the events of a fold name, that of all processes first.
fn comm_names(fold: &Fold) -> Vec<String> {
    let calls = crate::mpi::Calls::of(fold.alphabet());
    let mut names: Vec<String> = calls.comms().map(|(_, name)| name.to_string()).collect();
    names.sort();
    names
}
