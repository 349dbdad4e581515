//! The agreement of all processes before anything is read: the same version, the same inputs.
//!
//! A process that cannot see an input, or sees another file there, would fail late or make the
//! answer wrong; so process 0 compares what all of them see and reports the first difference. Of a
//! file that is its length and a checksum of its beginning and its end.

use super::Nodes;
use super::wire::{Message, Received};
use crate::args::ReadArgs;
use crate::formats;
use crate::input::files;
use anyhow::{Context as _, Result, bail};
use std::hash::{DefaultHasher, Hasher as _};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// How processes talk to each other; another number is another language.
const PROTOCOL: u64 = 1;

/// How much of a file is compared, at each end.
const COMPARED: u64 = 1 << 16;

/// A variable that replaces the version, for tests.
const VERSION: &str = "LOOPFOLD_MPI_VERSION";

/// What one process knows.
struct Seen {
    version: String,
    node: String,
    /// For each input a fingerprint, or why it cannot be read.
    inputs: Vec<Result<u64, String>>,
}

/// Fails, with the same error in no other process, if processes differ in version or inputs.
pub(super) fn agree(nodes: &Nodes, arguments: &ReadArgs) -> Result<()> {
    let own = Seen::of(nodes, arguments);
    if nodes.rank() > 0 {
        nodes.send(0, &own.encode())?;
        // The others wait, so that what is printed is what process 0 found.
        nodes.receive(0)?;
        return Ok(());
    }
    for rank in 1..nodes.size() {
        let other = Seen::decode(&nodes.receive(rank)?).with_context(|| {
            format!("process {rank} is of another version than process 0 ({})", own.version)
        })?;
        compare(&own, &other, rank, arguments)?;
    }
    for (input, seen) in arguments.inputs.iter().zip(&own.inputs) {
        if let Err(why) = seen {
            bail!("{}: {why}", input.display());
        }
    }
    for rank in 1..nodes.size() {
        nodes.send(rank, &[])?;
    }
    Ok(())
}

fn compare(own: &Seen, other: &Seen, rank: usize, arguments: &ReadArgs) -> Result<()> {
    let who = format!("process {rank} on {}", other.node);
    if own.version != other.version {
        bail!(
            "{who} is loopfold-mpi {}, but process 0 on {} is {}; install one version on all nodes",
            other.version,
            own.node,
            own.version
        );
    }
    if own.inputs.len() != other.inputs.len() {
        bail!("{who} was given other arguments than process 0");
    }
    for ((input, one), another) in arguments.inputs.iter().zip(&own.inputs).zip(&other.inputs) {
        let input = input.display();
        match (one, another) {
            (Err(why), _) => bail!("{input}: {why}"),
            (_, Err(why)) => {
                bail!("{input}: {who} cannot read it: {why}; all nodes must see the same files")
            }
            (Ok(one), Ok(another)) if one != another => {
                bail!("{input}: {who} sees another file than process 0 on {}", own.node)
            }
            _ => {}
        }
    }
    Ok(())
}

impl Seen {
    fn of(nodes: &Nodes, arguments: &ReadArgs) -> Self {
        let version = std::env::var(VERSION).unwrap_or_else(|_| env!("CARGO_PKG_VERSION").to_string());
        let seen = |input: &std::path::PathBuf| fingerprint(input).map_err(|error| format!("{error:#}"));
        let inputs = arguments.inputs.iter().map(seen).collect();
        Self { version, node: nodes.exchange.node(), inputs }
    }

    fn encode(&self) -> Vec<u8> {
        let message = Message::default().number(PROTOCOL).text(&self.version).text(&self.node);
        let put = |to: Message, seen: &Result<u64, String>| match seen {
            Ok(print) => to.number(1).number(*print),
            Err(why) => to.number(0).text(why),
        };
        message.list(&self.inputs, put).0
    }

    fn decode(bytes: &[u8]) -> Result<Self> {
        let mut received = Received(bytes);
        if received.number()? != PROTOCOL {
            bail!("it does not understand this one");
        }
        let (version, node) = (received.text()?, received.text()?);
        let inputs = received.list(|from| match from.number()? {
            0 => Ok(Err(from.text()?)),
            _ => Ok(Ok(from.number()?)),
        })?;
        Ok(Self { version, node, inputs })
    }
}

fn fingerprint(input: &Path) -> Result<u64> {
    if input.as_os_str() == "-" {
        bail!("standard input cannot be read by several processes; name a file that all of them see");
    }
    let mut hasher = DefaultHasher::new();
    let file = if input.is_dir() { formats::file_of_folder(input) } else { Some(input.to_path_buf()) };
    let Some(file) = file else {
        return listed(input, hasher);
    };
    let mut file = files::open(&file)?;
    let length = file.metadata()?.len();
    hasher.write_u64(length);
    for start in [0, length.saturating_sub(COMPARED)] {
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(start))?;
        file.by_ref().take(COMPARED).read_to_end(&mut bytes)?;
        hasher.write(&bytes);
    }
    Ok(hasher.finish())
}

/// A directory that is no trace, such as a recording: the files in it.
fn listed(directory: &Path, mut hasher: DefaultHasher) -> Result<u64> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        files.push((entry.file_name(), entry.metadata()?.len()));
    }
    files.sort();
    for (name, length) in files {
        hasher.write(name.as_encoded_bytes());
        hasher.write_u64(length);
    }
    Ok(hasher.finish())
}
