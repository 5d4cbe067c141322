//! The curves for a terminal.

use freewheel_study::CacheCurves;

use super::rows::summary;
use super::words::{Conclusions, columns, counted};
use crate::page::trace_name;

pub(super) fn text(curves: &CacheCurves, conclusions: &Conclusions) -> String {
    let (name, table) = (trace_name(&curves.options.trace), summary(curves).text(1));
    let mut text = format!("{name}: {}\n{}\n\n{table}\n", counted(curves), columns(curves));
    let Conclusions { headline, details, cautions } = conclusions;
    for sentence in std::iter::once(headline).chain(details).chain(cautions) {
        text += sentence;
        text.push('\n');
    }
    text
}
