//! The electronics: small cases worked out by hand, and what must hold for any drive.

mod any;
mod basics;
mod buffer;
mod bus;
mod extents;
mod flush;
mod fua;
mod hand;
mod lent;
mod limits;
mod media_cache;
mod queue;
mod sectors;
mod spec;
mod writes;
