//! Messages by MPI. A message longer than a gigabyte is sent in pieces, since MPI counts in 32 bits.

use loopfold_cli::nodes::Exchange;
use mpi::Rank;
use mpi::point_to_point::{Destination as _, MatchedReceiveVec as _, Source as _};
use mpi::topology::{Communicator as _, SimpleCommunicator};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The most bytes of a piece.
const PIECE: usize = 1 << 30;

/// The longest pause between two looks for a message.
const LONGEST_PAUSE: Duration = Duration::from_micros(200);

/// All processes.
pub(crate) struct World {
    /// Held while MPI is called: the communicator itself cannot be given to other threads.
    calling: Mutex<()>,
    rank: usize,
    size: usize,
}

impl World {
    pub(crate) fn of(world: &SimpleCommunicator) -> Self {
        let number = |number: Rank| usize::try_from(number).unwrap_or(0);
        let (rank, size) = (number(world.rank()), number(world.size()));
        Self { calling: Mutex::new(()), rank, size }
    }

    fn calling(&self) -> MutexGuard<'_, ()> {
        self.calling.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next piece.
    fn piece(&self, from: Rank) -> Vec<u8> {
        let mut pause = Duration::from_micros(1);
        loop {
            {
                let _calling = self.calling();
                let found = SimpleCommunicator::world().process_at_rank(from).immediate_matched_probe();
                if let Some(message) = found {
                    return message.matched_receive_vec::<u8>().0;
                }
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

fn rank(number: usize) -> io::Result<Rank> {
    Rank::try_from(number).map_err(|_| io::ErrorKind::InvalidInput.into())
}

impl Exchange for World {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn node(&self) -> String {
        mpi::environment::processor_name().unwrap_or_else(|_| "an unknown node".to_string())
    }

    fn send(&self, to: usize, message: &[u8]) -> io::Result<()> {
        let to = rank(to)?;
        let _calling = self.calling();
        let world = SimpleCommunicator::world();
        let process = world.process_at_rank(to);
        process.send(&(message.len() as u64).to_le_bytes()[..]);
        message.chunks(PIECE).for_each(|piece| process.send(piece));
        Ok(())
    }

    fn receive(&self, from: usize) -> io::Result<Vec<u8>> {
        let from = rank(from)?;
        let length = self.piece(from);
        let length = <[u8; 8]>::try_from(&length[..]).map_err(|_| io::ErrorKind::InvalidData)?;
        let length = usize::try_from(u64::from_le_bytes(length)).map_err(|_| io::ErrorKind::InvalidData)?;
        let mut message = Vec::new();
        while message.len() < length {
            let piece = self.piece(from);
            if message.is_empty() { message = piece } else { message.extend_from_slice(&piece) }
        }
        Ok(message)
    }
}
