//! Colours by meaning, for text on a terminal.

use anstyle::AnsiColor;

/// Choice of colours for text.
#[derive(Clone, Copy)]
pub(crate) enum Paint {
    Plain,
    Coloured,
}

impl Paint {
    /// Colours words that help.
    pub(crate) fn help(self, words: &str) -> String {
        self.with(AnsiColor::Green, words)
    }

    /// Colours words that harm.
    pub(crate) fn harm(self, words: &str) -> String {
        self.with(AnsiColor::Red, words)
    }

    /// Colours words that are to be doubted.
    pub(crate) fn doubt(self, words: &str) -> String {
        self.with(AnsiColor::Yellow, words)
    }

    fn with(self, colour: AnsiColor, words: &str) -> String {
        let style = colour.on_default();
        match self {
            Self::Coloured if !words.is_empty() => format!("{style}{words}{style:#}"),
            _ => words.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paint_plain_text_has_no_escapes() {
        assert_eq!(Paint::Plain.help("-4 %"), "-4 %");
        assert_eq!(Paint::Coloured.harm("+4 %"), "\u{1b}[31m+4 %\u{1b}[0m");
        assert_eq!(Paint::Coloured.doubt(""), "");
    }
}
