//! The frame of a chart: a picture with axes, names along them, and places in it.
//!
//! Colours are classes of the page's style, so that they follow its light and dark scheme.

use maud::{Markup, html};

use crate::drawing::{at, point};
use crate::legend;

/// A picture and the margins around its axes, in its own units.
pub(crate) struct Frame {
    pub width: f64,
    pub height: f64,
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
}

/// A name along an axis, and its place as a share of the axis.
pub(crate) type Tick = (f64, String);

impl Frame {
    /// Place of a share of the horizontal axis.
    pub(crate) fn x(&self, share: f64) -> f64 {
        self.left + share * (self.width - self.left - self.right)
    }

    /// Place of a share of the vertical axis, which rises.
    pub(crate) fn y(&self, share: f64) -> f64 {
        self.height - self.bottom - share * (self.height - self.top - self.bottom)
    }

    /// The picture; `label` names it for those who do not see it.
    pub(crate) fn picture(&self, label: &str, content: &Markup) -> Markup {
        html! {
            svg.plot viewBox=(format!("0 0 {} {}", self.width, self.height)) role="img" aria-label=(label) {
                (content)
            }
        }
    }

    /// Both axes with their lines and names.
    pub(crate) fn axes(&self, across: &[Tick], up: &[Tick]) -> Markup {
        let (left, right) = (at(self.x(0.0)), at(self.x(1.0)));
        let (base, top) = (at(self.y(0.0)), at(self.y(1.0)));
        html! {
            @for (share, name) in up {
                @let y = at(self.y(*share));
                line.grid x1=(left) x2=(right) y1=(y) y2=(y) {}
                text x=(at(self.left - 6.0)) y=(y) dy="4" text-anchor="end" { (name) }
            }
            @for (share, name) in across {
                @let x = at(self.x(*share));
                line.grid x1=(x) x2=(x) y1=(base) y2=(top) {}
                text x=(x) y=(at(self.y(0.0) + 18.0)) text-anchor="middle" { (name) }
            }
            path.tick d=(format!("M{left} {top}V{base}H{right}")) fill="none" {}
        }
    }

    /// Name of the horizontal axis.
    pub(crate) fn name_across(&self, name: &str) -> Markup {
        let (x, y) = (at(self.x(0.5)), at(self.height - 6.0));
        html! { text.axis x=(x) y=(y) text-anchor="middle" { (name) } }
    }

    /// Name of the vertical axis, which reads upwards.
    pub(crate) fn name_up(&self, name: &str) -> Markup {
        let middle = at(self.y(0.5));
        let turned = format!("rotate(-90 16 {middle})");
        html! { text.axis x="16" y=(middle) text-anchor="middle" transform=(turned) { (name) } }
    }

    /// A line through shares of both axes.
    pub(crate) fn polyline(
        &self,
        colour: usize,
        points: impl Iterator<Item = (f64, f64)>,
    ) -> Markup {
        let points: Vec<String> = points.map(|(x, y)| point(self.x(x), self.y(y))).collect();
        html! { polyline class=(legend::line_colour(colour)) points=(points.join(" ")) {} }
    }

    /// A dot at shares of both axes, with the words that a pointer shows.
    pub(crate) fn dot(&self, colour: usize, radius: f64, (x, y): (f64, f64), says: &str) -> Markup {
        html! {
            circle class=(legend::line_colour(colour)) r=(radius) cx=(at(self.x(x))) cy=(at(self.y(y))) {
                @if !says.is_empty() { title { (says) } }
            }
        }
    }
}
