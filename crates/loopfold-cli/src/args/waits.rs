//! The arguments of `waits`.

use super::shared::{FINDING, Form, Full, Hex, Top};
use super::{FolderArgs, ReadArgs};
use clap::Args;

const WAITS_HELP: &str = "\
A late sender is a send that enters after its receive does; a late receiver is a receive that a send, which is not \
buffered, has to wait for. Members of a barrier and of N×N operations (allreduce, allgather, alltoall, reduce-scatter) \
wait for the last one, those of a broadcast or scatter for the root, the root of a reduce or gather for the first of \
the others, those of a scan for the ranks before them. Waits for nonblocking calls are in the call that completes them. \
The wait of a call is the longest of these, and its cause the process that ends it.

A place is a call without tag, bytes and partners, in its function and its loops. The worst iteration is that of the \
outermost loop, in all processes together, with the number that `loops` and `iterations` give it. Shares are of the \
time of all selected streams together. The time in communication calls is waiting, what comes after that in the same \
calls, and calls that waited for nobody, such as nonblocking ones.

--stream, --class, --from, --to, --within and --iterations select whose waits count; messages are matched in the whole \
trace. With --stream, the waits of other processes for the selected ones are among the pairs.";

#[derive(Args, Debug)]
#[command(after_long_help = WAITS_HELP)]
#[command(mut_arg("top", Top::of_data("places and processes", "10")))]
#[command(mut_arg("rows", Form::of(&["waits"])))]
pub(crate) struct WaitsArgs {
    /// Shift the clock of each process so that no message is received before it is sent
    #[arg(long, help_heading = FINDING)]
    pub(crate) correct_clocks: bool,
    #[command(flatten)]
    pub(crate) top: Top,
    #[command(flatten)]
    pub(crate) full: Full,
    #[command(flatten)]
    pub(crate) hex: Hex,
    #[command(flatten)]
    pub(crate) form: Form,
    #[command(flatten)]
    pub(crate) folder: FolderArgs,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
}
