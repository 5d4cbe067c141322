//! The search for what to do in a gap: what is wanted where, bounds on what tracks and cylinders offer,
//! and the rules that look for the best.
//!
//! ```text
//!   what is wanted     wanted, tracks, regular_tracks, track_extent, region_weights
//!   what fits a gap    reach (how long the head may stay where), cylinder_range
//!   bounds             index (the tree), arcs, path_arcs, block_start_mask, sibling_bounds
//!   the search         best_first, with frontier (nodes that wait) and known (the best so far); field (its inputs)
//!   rules              greedy (one track), paths (several stops), chains (tracks of one cylinder)
//! ```

mod arcs;
mod best_first;
mod block_start_mask;
mod chains;
mod cylinder_range;
mod field;
mod frontier;
mod greedy;
mod index;
mod known;
mod path_arcs;
mod paths;
mod reach;
mod region_weights;
mod regular_tracks;
mod sibling_bounds;
mod track_extent;
mod tracks;
mod wanted;

pub use best_first::SearchProgress;
pub(crate) use best_first::{Search, SearchCost};
pub(crate) use cylinder_range::CylinderRange;
pub(crate) use field::Field;
pub(crate) use greedy::Greedy;
pub use index::Fineness;
pub(crate) use index::{Index, Objective};
pub(crate) use paths::Paths;
pub(crate) use reach::{DwellWindow, Reach};
pub(crate) use region_weights::RegionWeights;
pub(crate) use tracks::Tracks;
pub use wanted::{Delivered, LayerKey};
pub(crate) use wanted::{Ration, Timed, Wanted};
