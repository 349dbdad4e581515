//! Where programs send their messages: a socket whose name is not one of a file, so that a recorder
//! that is killed leaves nothing behind.
//!
//! Such a name has no owner, so whoever connects is asked for the user.

use crate::Result;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

/// Listens under a name that nobody else has. The address is as the run-time library takes it.
pub(super) fn listen() -> Result<(String, UnixListener)> {
    let name = format!("loopfold-{}-{:016x}", std::process::id(), RandomState::new().hash_one(0));
    let socket = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
    Ok((format!("@{name}"), socket))
}

/// Fails unless a process of the same user has connected, or one of root.
pub(super) fn check_user(connection: &UnixStream) -> io::Result<()> {
    let user = rustix::net::sockopt::socket_peercred(connection)?.uid;
    match user == rustix::process::getuid() || user.is_root() {
        true => Ok(()),
        false => Err(io::Error::from(io::ErrorKind::PermissionDenied)),
    }
}
