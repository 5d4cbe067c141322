//! The server session, byte for byte against messages worked out by hand from the protocol.

mod negotiation;
mod requests;
