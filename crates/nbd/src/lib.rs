//! The Network Block Device protocol as state machines, for servers and for clients.
//!
//! Goals: bytes in, events and bytes out, so that any socket, thread or runtime can drive it, and a test can
//! drive both ends. The codec never copies payloads that can be read or sent in place. A server session
//! returns only valid requests (in range, aligned, flags allowed) and answers all others. For any bytes of
//! the other side, memory is bounded and no call panics.
//! Non-goals: sockets, TLS (a session tells when it begins), the oldstyle negotiation, and the
//! experimental extensions (extended headers, resize).
//!
//! The protocol: `doc/proto.md` and `doc/uri.md` of NetworkBlockDevice/nbd; names in quotes are
//! its sections.
//!
//! ```text
//!   socket -> bytes -> server::Session::feed -> Event::Request { ticket, command, data }
//!                                            -> Event::Send(bytes) -> socket
//!   Ticket::data() -> Head, then the data themselves -> socket        (any thread, any order)
//!
//!   client::Session::request -> Head, then the data of a write -> socket
//!   socket -> bytes -> client::Session::feed -> Event::Reply { cookie, result, data }
//! ```

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod command;
mod errno;
mod export;
mod head;
mod limits;
mod option;
mod uri;
mod violation;
mod wire;

pub mod client;
pub mod server;

pub use command::{Command, Extent, Span};
pub use errno::Errno;
pub use export::{BadExport, BlockSizes, Export, Features};
pub use head::Head;
pub use limits::Limits;
pub use option::{OptionCode, OptionError};
pub use uri::{Address, BadUri, PORT, Uri};
pub use violation::Violation;
pub use wire::STRING_BYTES_MAX;
