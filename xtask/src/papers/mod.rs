//! Stub.
use crate::Arguments;
pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    arguments.finish()
}
