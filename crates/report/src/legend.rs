//! Names of colours, which flow with the page around them.
//!
//! Colours are classes of the page's style, so that they follow its light and dark scheme.

use maud::{Markup, html};

/// A name with the mark that stands before it.
pub(crate) struct Key<'a> {
    pub name: &'a str,
    /// Classes of the mark.
    pub mark: String,
}

pub(crate) fn area<'a>(name: &'a str, colour: &str) -> Key<'a> {
    Key { name, mark: format!("key {colour}") }
}

pub(crate) fn line(name: &str, number: usize) -> Key<'_> {
    Key { name, mark: format!("swatch {}", line_colour(number)) }
}

/// Class of the colour of the line with this number. Colours repeat after nine lines.
pub(crate) fn line_colour(number: usize) -> String {
    format!("c{}", number % LINE_COLOURS)
}

pub(crate) const LINE_COLOURS: usize = 9;

pub(crate) fn legend(keys: &[Key<'_>]) -> Markup {
    html! {
        ul.legend {
            @for key in keys { li { (mark(key)) (key.name) } }
        }
    }
}

pub(crate) fn mark(key: &Key<'_>) -> Markup {
    html! { span class=(key.mark) {} }
}
