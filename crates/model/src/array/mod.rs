//! How the blocks of a volume are spread over drives, and over the arms of one drive.

pub mod partition;
mod striping;

pub use striping::{DriveRange, Piece, Striping};
