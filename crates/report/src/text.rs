//! Text for a terminal of results that other crates define.

/// A result as tables and sentences for a terminal.
pub trait Text {
    /// The text, with a line end.
    fn text(&self) -> String;
}
