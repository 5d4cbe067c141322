//! What must hold for any bytes at all, whichever part of Freewheel reads them.

pub mod nbd;
pub mod trace;
