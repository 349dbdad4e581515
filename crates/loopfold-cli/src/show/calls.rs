//! Control flow as it was read: the text of the source `calls`, the log of `finstrument`,
//! the tokens of `calls-binary`. The output can be read again as the same trace.

use anyhow::{Context as _, Result, bail};
use loopfold::Fold;
use loopfold::emit::Text;
use loopfold::fold::FoldedStream;
use loopfold::trace::{Meaning, Name, Role};
use loopfold_sources::FunctionNames;

/// How the events of a stream are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Style {
    /// As they are shown everywhere.
    #[default]
    Labels,
    /// `call NAME`, `return`, blocks.
    Calls,
    /// `E0x404610`, `X0x404610`.
    Finstrument,
}

impl Style {
    /// How a stream was written when it was read.
    pub(crate) fn of(stream: &FoldedStream) -> Self {
        match stream.note("format").map(Text::raw) {
            Some("calls" | "calls-binary") => Style::Calls,
            Some("finstrument") => Style::Finstrument,
            _ => Style::Labels,
        }
    }

    /// The line of an event. Returns `None` if this style has none for it.
    pub(crate) fn line(self, meaning: &Meaning<'_>, hex: bool) -> Option<Vec<u8>> {
        let start: &[u8] = match (self, meaning.role) {
            (Style::Calls, Role::Leave) => return Some(b"return".to_vec()),
            (Style::Calls, Role::Enter) => b"call ",
            (Style::Calls, Role::Block) => b"",
            (Style::Finstrument, Role::Enter) => b"E",
            (Style::Finstrument, Role::Leave) => b"X",
            _ => return None,
        };
        let bare = Meaning { name: meaning.name, ..Meaning::default() };
        let name = match bare.name {
            // Names from elsewhere may have line ends, which would make two lines of one.
            Name::Text(text) if !text.iter().any(|byte| b"\n\r".contains(byte)) => text.to_vec(),
            _ if hex => format!("{bare:#}").into_bytes(),
            _ => bare.to_string().into_bytes(),
        };
        Some([start, &name].concat())
    }
}

/// The names of the threads of control flow; `None` for the stream of the input, which comes
/// first. Returns `None` if the streams are not the threads of one such trace.
pub(crate) fn threads<'f>(fold: &'f Fold) -> Option<Vec<Option<Text<'f>>>> {
    let id = |(index, stream): (usize, &'_ FoldedStream)| match stream.name().raw().strip_prefix("thread ") {
        _ if Style::of(stream) != Style::Calls => None,
        None if index > 0 => None,
        // Text that a line cannot hold as it is.
        Some(id) if id.trim_ascii() != id || id.is_empty() || id.contains(['\n', '\r']) => None,
        Some(_) => Some(true),
        None => Some(false),
    };
    let named: Vec<bool> = fold.streams().iter().enumerate().map(id).collect::<Option<_>>()?;
    let ids = fold.streams().iter().zip(named);
    let id = |(stream, named): (&'f FoldedStream, bool)| {
        stream.name().raw().strip_prefix("thread ").filter(|_| named).map(Text::new)
    };
    Some(ids.map(id).collect())
}

/// The token that switches to a thread.
pub(crate) fn thread_token(id: Text<'_>) -> Result<u32> {
    let number = id.raw().parse().ok().filter(|&number: &u32| number < NUMBERS - 1);
    let number = number.with_context(|| format!("--raw: {} is not the number of a thread", id.terminal()))?;
    Ok(THREAD | number)
}

/// The token of an event.
pub(crate) fn token(meaning: &Meaning<'_>, functions: &FunctionNames) -> Result<u32> {
    match (meaning.role, meaning.name) {
        (Role::Leave, _) => Ok(EXIT),
        (Role::Block, Name::Integer(block)) => {
            let block = u32::try_from(block).ok().filter(|block| block & ENTER == 0);
            block.context("--raw: a block's number does not fit 31 bits")
        }
        (Role::Enter, Name::Text(name)) => {
            let number = std::str::from_utf8(name).ok().and_then(|name| functions.number(name));
            let number = number.filter(|&number| number < NUMBERS);
            let help = || format!("--raw: the number of {meaning} is not known; --names FILE gives it");
            Ok(ENTER | number.with_context(help)?)
        }
        _ => bail!("--raw: {meaning} is not a numbered event of control flow"),
    }
}

const ENTER: u32 = 0x8000_0000;
const THREAD: u32 = 0xc000_0000;
const EXIT: u32 = u32::MAX;
const NUMBERS: u32 = 1 << 30;
