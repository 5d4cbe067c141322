//! tr96: how to stripe files over 32 disks, where to put them, and moving what is hot.
//!
//! The workload of section 4.1: 1000 files of class A and 1000 of class B, all read or written as a
//! whole, and 8000 of class C that only take up space. Sizes are exponential within a class, with the means of
//! table 2. Seven tenths of the requests read. The paper does not state the order of the files on the disks:
//! here it is shuffled.

mod allocation;
mod cooling;
mod model;
mod over_time;
mod restripe;
mod tables;
mod traces;
mod workload;

pub(super) use allocation::allocation;
pub(super) use cooling::tab6;
pub(super) use model::model;
pub(super) use restripe::restripe;
pub(super) use tables::{tab3, tab4, tab5};
pub(super) use traces::{fig8, tab7};
