//! Colours of a terminal, and text that fits its width.

use std::env;
use std::io::{IsTerminal, Stdout, stdout};

use terminal_size::{Width, terminal_size_of};
use textwrap::core::display_width;
use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm, fill};

/// Columns of a terminal that does not tell.
const WIDTH: usize = 100;
/// Narrower columns are not believed: words hardly fit.
const WIDTH_MIN: usize = 20;
/// Columns by which the later lines of a paragraph are indented.
const HANGING: usize = 2;
/// Keeps two words on a line; it is printed as a space.
const NO_BREAK_SPACE: &str = "\u{a0}";

/// True if this stream is a terminal that shows colours to somebody who wants them.
pub fn has_colours(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && env::var_os("NO_COLOR").is_none_or(|set| set.is_empty()) && !is_dumb()
}

fn is_dumb() -> bool {
    env::var_os("TERM").is_some_and(|name| name == "dumb")
}

/// Sentences as stdout shows them best: on a terminal within its width, elsewhere as they are.
pub fn prose(text: &str) -> String {
    let stdout = stdout();
    if stdout.is_terminal() { wrapped(text, width(&stdout)) } else { text.to_owned() }
}

/// `COLUMNS` comes first, for a person can set it.
fn width(stdout: &Stdout) -> usize {
    let named = env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    named
        .filter(|&columns| columns >= WIDTH_MIN)
        .or_else(|| terminal_size_of(stdout).map(|(Width(columns), _)| usize::from(columns)))
        .unwrap_or(WIDTH)
        .max(WIDTH_MIN)
}

/// Every line within this width, its rest below with an indent. Words stay whole, and so does a number with
/// its unit.
fn wrapped(text: &str, width: usize) -> String {
    text.split('\n')
        .map(|line| {
            let indent = " ".repeat(indent_of_rest(line, width));
            let options = Options::new(width)
                .subsequent_indent(&indent)
                .break_words(false)
                .word_separator(WordSeparator::AsciiSpace)
                .word_splitter(WordSplitter::NoHyphenation)
                .wrap_algorithm(WrapAlgorithm::FirstFit);
            fill(&with_units(line), options).replace(NO_BREAK_SPACE, " ")
        })
        .collect::<Vec<_>>()
        .join("\n")
}

/// Indent of the rest of a line: below the last of its columns that begins in the left half, below the text
/// of an item of a list, or a little inwards.
fn indent_of_rest(line: &str, width: usize) -> usize {
    let columns = line
        .char_indices()
        .filter(|&(at, letter)| letter != ' ' && line[..at].ends_with("  "))
        .map(|(at, _)| display_width(&line[..at]));
    columns.filter(|&column| column <= width / 2).max().unwrap_or(HANGING)
}

/// A space after a digit is one at which no line may end.
fn with_units(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let mut text = String::with_capacity(line.len());
    for (at, word) in words.iter().enumerate() {
        text += word;
        let is_number = word.ends_with(|last: char| last.is_ascii_digit());
        let is_last = at + 1 == words.len();
        text += if is_last {
            ""
        } else if is_number {
            NO_BREAK_SPACE
        } else {
            " "
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraph_rest_hangs_below_text() {
        let text = "- A scrub in idle time takes long.\nshort\n";
        assert_eq!(wrapped(text, 20), "- A scrub in idle\n  time takes long.\nshort\n");
    }

    #[test]
    fn row_rest_hangs_below_last_column() {
        let row = "-23 to -3.9 %  p99 0 %  Read cache, 256 MiB, LIRS  and a warning";
        let indent = " ".repeat(24);
        let expected =
            format!("-23 to -3.9 %  p99 0 %  Read cache, 256 MiB, LIRS\n{indent}and a warning");
        assert_eq!(wrapped(row, 50), expected);
    }

    #[test]
    fn number_keeps_unit_long_word_whole() {
        assert_eq!(wrapped("It takes about 95 days.", 17), "It takes about\n  95 days.");
        let path = "report: /a/folder/with/a/long/name/report.html";
        assert_eq!(wrapped(path, 20), "report:\n  /a/folder/with/a/long/name/report.html");
    }

    #[test]
    fn colours_take_no_room() {
        let text = "\u{1b}[32m-4 %\u{1b}[0m  one two";
        assert_eq!(wrapped(text, 13), text);
        assert_eq!(wrapped(text, 12), "\u{1b}[32m-4 %\u{1b}[0m  one\n      two");
    }

    #[test]
    fn fitting_text_stays_unchanged() {
        let text = "a  b\n\n  c\n";
        assert_eq!(wrapped(text, 20), text);
    }
}
