//! Who may connect: the user whose server it is, and root.

use std::io;

use axum::serve::Listener;
use rustix::fs::fstat;
use tokio::net::{UnixListener, UnixStream};

/// A listening socket that closes the connections of other users. The system knows who they are, also
/// of connections from before the socket's file had its permissions.
pub(super) struct Peers {
    socket: UnixListener,
    user: u32,
}

impl Peers {
    /// For the user who opened this socket.
    pub fn new(socket: UnixListener) -> io::Result<Self> {
        let user = fstat(&socket)?.st_uid;
        Ok(Self { socket, user })
    }

    /// The next connection of somebody who may have one.
    pub async fn accept(&mut self) -> UnixStream {
        loop {
            // It waits where the system has no descriptor left.
            let (stream, _) = Listener::accept(&mut self.socket).await;
            if stream.peer_cred().is_ok_and(|peer| admits(self.user, peer.uid())) {
                return stream;
            }
        }
    }
}

/// True if the server of a user talks to a peer.
fn admits(user: u32, peer: u32) -> bool {
    peer == user || peer == 0
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use tokio::runtime;

    use super::*;

    /// True if a connection of this process is taken by its server, or by one of the user after it.
    fn is_let_in(by_another: bool) -> bool {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut peers = Peers::new(UnixListener::bind(&path).unwrap()).unwrap();
            peers.user += u32::from(by_another);
            let client = UnixStream::connect(&path).await.unwrap();
            tokio::select! {
                _ = peers.accept() => true,
                closed = client.readable() => {
                    closed.unwrap();
                    false
                }
            }
        })
    }

    #[test]
    fn peers_are_limited_to_user_and_root() {
        assert!(is_let_in(false));
        let me = tempfile::tempfile().unwrap().metadata().unwrap().uid();
        assert_eq!(is_let_in(true), me == 0);
        assert!(admits(1000, 1000) && admits(1000, 0) && !admits(1000, 1001));
        assert!(!admits(0, 1000));
    }
}
