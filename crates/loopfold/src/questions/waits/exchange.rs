//! How processes that divide the streams among them exchange messages, and the schedules in which they
//! do so.
//!
//! A send may block until its message is received. So in every schedule the pairs of processes take their
//! turns in an order that is the same for both, and one of them sends while the other receives: a process
//! that waits, waits for one that is in an earlier turn, and none waits for ever.

use crate::Result;

/// One of several processes, which exchange messages. Those from one process to another arrive in order.
pub trait Exchange {
    /// The number of this process.
    fn rank(&self) -> usize;

    /// How many processes there are.
    fn size(&self) -> usize;

    /// Sends a message.
    fn send(&self, to: usize, message: &[u8]) -> Result<()>;

    /// Waits for the next message of a process.
    fn receive(&self, from: usize) -> Result<Vec<u8>>;
}

/// Sends a message to every process, and returns what each has sent to this one. In turn k, process i
/// exchanges with process k − i, modulo their number.
pub(super) fn all_to_all(exchange: &dyn Exchange, mut messages: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
    let (rank, size) = (exchange.rank(), exchange.size());
    let mut received = vec![Vec::new(); size];
    for turn in 0..size {
        let other = (turn + size - rank) % size;
        // Each is sent once, so its memory is free then.
        let message = messages.get_mut(other).map(std::mem::take).unwrap_or_default();
        received[other] = match rank.cmp(&other) {
            std::cmp::Ordering::Equal => message,
            std::cmp::Ordering::Less => {
                exchange.send(other, &message)?;
                drop(message);
                exchange.receive(other)?
            }
            std::cmp::Ordering::Greater => {
                let answer = exchange.receive(other)?;
                exchange.send(other, &message)?;
                answer
            }
        };
    }
    Ok(received)
}

/// Joins the values of all processes over a binary tree: in round k, process i + 2^k sends what it has to
/// process i, where i is a multiple of 2^(k+1). Returns the whole at process 0, and `None` at the others.
pub(super) fn gather<T>(
    exchange: &dyn Exchange,
    mut value: T,
    encode: impl Fn(&T) -> Vec<u8>,
    mut join: impl FnMut(&mut T, &[u8]) -> Result<()>,
) -> Result<Option<T>> {
    let (rank, size) = (exchange.rank(), exchange.size());
    let mut distance = 1;
    while distance < size {
        if !rank.is_multiple_of(2 * distance) {
            exchange.send(rank - distance, &encode(&value))?;
            return Ok(None);
        }
        if rank + distance < size {
            join(&mut value, &exchange.receive(rank + distance)?)?;
        }
        distance *= 2;
    }
    Ok(Some(value))
}

/// Passes a message of process 0 on to all others, over the same tree downwards.
/// The others pass nothing.
pub fn broadcast(exchange: &dyn Exchange, message: Vec<u8>) -> Result<Vec<u8>> {
    let (rank, size) = (exchange.rank(), exchange.size());
    // The distance to the process that this one gets it from: the lowest bit of its number.
    let own = if rank == 0 { size.next_power_of_two() } else { 1 << rank.trailing_zeros() };
    let message = if rank == 0 { message } else { exchange.receive(rank - own)? };
    let mut distance = own / 2;
    while distance > 0 {
        if rank + distance < size {
            exchange.send(rank + distance, &message)?;
        }
        distance /= 2;
    }
    Ok(message)
}
