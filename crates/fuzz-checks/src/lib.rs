//! Properties that hold for any bytes at all, whichever part of Freewheel reads them.

pub mod blocks;
pub mod control;
pub mod damage;
pub mod disksim;
pub mod drive;
pub mod experiment;
pub mod extents;
pub mod journal;
pub mod manifest;
pub mod nbd;
pub mod trace;
