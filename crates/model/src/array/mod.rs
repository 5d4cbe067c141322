//! How the blocks of a volume are spread over drives, and over the arms of one drive.

pub mod allocation;
pub mod cooling;
pub mod heat;
pub mod partition;
pub mod placement;
pub mod space;
mod striping;

pub use striping::{DriveRange, Piece, Striping};
