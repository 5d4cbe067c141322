//! Words of the command line for values of the library.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// A word, its value, and its help.
pub type Choice<T> = (&'static str, T, &'static str);

/// A parser that takes these words alone.
pub fn choice<T: Copy + Send + Sync>(
    choices: &'static [Choice<T>],
) -> impl TypedValueParser<Value = T> {
    let words = choices.iter().map(|(word, _, help)| PossibleValue::new(*word).help(*help));
    PossibleValuesParser::new(words).map(|given| {
        let chosen = choices.iter().find(|(word, ..)| *word == given);
        chosen.expect("the parser takes these words alone").1
    })
}
