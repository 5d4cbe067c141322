//! The free work of a run in words and on a page.

mod page;
mod task_words;
mod words;

pub(crate) use page::{
    POTENTIAL_IS, bandwidth_chart, efficiency_chart, nodes_chart, sections, shares_chart, titled,
};
pub use words::{FreeWorkPart, free_work_parts};
