//! Choice of files to move between disks that each hold whole files, so that clients wait less.
//!
//! # The problem
//! A JBOD fills disk by disk. Some disks hold the files that everybody reads, and queues form there while
//! other disks idle. Balancers in use move bytes until bytes are equal, which ignores queues.
//!
//! # The measure
//! Each disk is an M/G/1 queue whose service time is that of the drive, with seeks between the places
//! of its files. By Little's law the sum over
//! disks of rate times response is the number of requests that wait or are served; divided by all
//! requests a second it is the mean response of clients. So a move gains what the source loses less what
//! the target gets, and unlike disks, sizes of requests and queues all count in one unit.
//!
//! ```text
//!    busy   gain of a move: requests present
//!    90 %   source  ########################        before
//!    60 %           ######                          after:   18 fewer
//!    10 %   target  #
//!    30 %           ##                              1 more
//! ```
//! A copy costs too: its pieces keep both disks busy while it lasts. The cost is what clients wait longer
//! meanwhile, in seconds of waiting summed over clients. Cost over gain is the time after which the move
//! has paid.
//!
//! # The choice
//! [`Balancer::next_move`] takes the move with the most saved within a horizon, cost deducted, and
//! continues from there. It looks at the disks on which load is dearest, and there at the files with the
//! most load and at a sample of the others; the disks of each drive on which load is cheapest are targets.
//! Where no disk has room, [`Balancer::next_exchange`] looks for two moves of which the first makes room.
//!
//! ```
//! use std::sync::Arc;
//!
//! use freewheel_array::rebalance::*;
//! use freewheel_model::drive::Drive;
//! use freewheel_units::Blocks;
//!
//! let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../drives/tr96.toml");
//! let drive = toml::from_str(&std::fs::read_to_string(file)?)?;
//! let models = [DriveModel::new(Arc::new(Drive::build(&drive)?), 1.0)];
//! let disk = BalanceDisk { model: 0, blocks: Blocks::new(1_000_000) };
//! let file = |blocks, rate| BalanceFile {
//!     blocks: Blocks::new(blocks), request: Blocks::new(16), rate, disk: Some(0),
//! };
//! let files = [file(20_000, 25.0), file(60_000, 10.0)];
//! let mut balancer = Balancer::new(&models, &[disk, disk], &files);
//! let wanted = balancer.next_move(&RebalanceSpec::default())?;
//! assert_eq!((wanted.file, wanted.from, wanted.to), (1, 0, 1));
//! // Responses get 5 ms shorter. The copy and its comparison cost clients 410 s of waiting in all.
//! assert!((0.0045..0.005).contains(&wanted.gain_s) && wanted.payback_s() < 2600.0, "{wanted:?}");
//! balancer.apply(&wanted);
//! assert_eq!(balancer.next_move(&RebalanceSpec::default()), Err(NoMove::TooLittleGain));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod balancer;
mod copy_cost;
mod exchange;
mod load;
mod places;

pub use balancer::{BalanceDisk, BalanceFile, Balancer, NoMove, RankedMove, RebalanceSpec};
pub use copy_cost::CopyCost;
pub use load::QueueLoad;
pub use places::DriveModel;

#[cfg(test)]
mod tests;
