//! An NBD server over sockets, threads that read, and answers from whichever thread has them; and a
//! [`Client`] of other servers. Both with TLS.
//!
//! ```text
//!   Server::run      accepts, counts, stops                              a thread of the caller
//!     Connection     bytes -> Session -> Service::submit(request, responder)       one thread each
//!       Responder    an answer, from any thread, in any order
//!       Outbox       answers of the connection's own thread leave together when it has read all
//!                    that has come; those of others leave at once as far as the socket takes them,
//!                    and the rest by a second thread, so that no service ever waits for a socket
//! ```

mod address;
mod budget;
mod client;
mod connection;
mod limits;
mod memory;
mod outbox;
mod places;
mod repeats;
mod server;
mod service;
mod socket;
mod stop;
mod stream;
mod tls;

pub use address::{Access, Address, ListenError};
pub(crate) use address::{PRIVATE_MODE, SocketFile, bind_unix};
pub use client::{
    Answer, Client, ClientLimits, ConnectError, Lost, Refusal, Refused, RequestError,
};
pub use limits::Limits;
pub use memory::Memory;
pub use server::{Served, Server};
pub use service::{Caller, Responder, Service, SharedPart};
pub use stop::Stop;
pub use tls::{ServerTls, TlsError};
