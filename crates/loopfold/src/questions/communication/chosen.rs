//! Selects the events that processes are compared by, and the form in which they are compared:
//! those that an [`EventChoice`] takes, without the fields that it leaves out. A trace without
//! communication is taken as it is. Time and memory are O(alphabet).

use crate::mpi::Calls;
use crate::questions::patterns::{EventChoice, Only};
use crate::trace::{Alphabet, Projection};
use crate::{Result, Symbol};

/// Which events of a trace are compared, and as what.
#[derive(Clone, Debug)]
pub(in crate::questions) struct ChosenEvents {
    /// The meanings of forms.
    pub(in crate::questions) alphabet: Alphabet,
    /// The form of each symbol of the trace.
    pub(in crate::questions) forms: Vec<Symbol>,
    /// Whether each symbol of the trace is compared.
    pub(in crate::questions) taken: Vec<bool>,
}

impl ChosenEvents {
    pub(in crate::questions) fn of(alphabet: &Alphabet, calls: &Calls, choice: &EventChoice) -> Result<Self> {
        let as_it_is = calls.is_empty();
        let is_taken = |symbol| match calls.get(symbol) {
            _ if choice.all_events || as_it_is => true,
            None => false,
            Some(call) => match choice.only {
                None => true,
                Some(Only::Messages) => call.collective.is_none(),
                Some(Only::Collectives) => call.collective.is_some(),
            },
        };
        let taken = alphabet.symbols().map(is_taken).collect();
        let ignore = if as_it_is { Vec::new() } else { choice.left_out.clone() };
        let (alphabet, forms) = Projection { ignore, ..Projection::default() }.of_alphabet(alphabet)?;
        Ok(Self { alphabet, forms, taken })
    }
}
