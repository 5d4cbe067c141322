//! The fields of a line from its end, for formats in which an early field, such as the name of a process,
//! may have blanks.

use crate::fault::Fault;
use crate::scan::Token;

/// Fields between runs of spaces and tabs, right to left.
#[derive(Debug, Clone, Copy)]
pub(super) struct LastFields<'a> {
    rest: &'a [u8],
}

impl<'a> LastFields<'a> {
    pub fn new(line: &'a [u8]) -> Self {
        Self { rest: line }
    }

    /// The last field that is left.
    pub fn peek(&self) -> Option<&'a [u8]> {
        let rest = self.rest.trim_ascii_end();
        let begin = rest.iter().rposition(u8::is_ascii_whitespace).map_or(0, |at| at + 1);
        (begin < rest.len()).then(|| &rest[begin..])
    }

    /// Takes the last field that is left, which the format calls `name`.
    pub fn next(&mut self, name: &'static str) -> Result<Token<'a>, Fault> {
        let Some(text) = self.peek() else {
            return Err(Fault::new(name, b"", "the line has fewer columns than the format"));
        };
        let rest = self.rest.trim_ascii_end();
        self.rest = &rest[..rest.len() - text.len()];
        Ok(Token { name, text })
    }

    /// Rest of the line, without the blanks around it.
    pub fn rest(self) -> &'a [u8] {
        self.rest.trim_ascii()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_fields_come_from_end() {
        let mut fields = LastFields::new(b" tmux: server \t 7  R ");
        assert_eq!(fields.next("a").unwrap().text, b"R");
        assert_eq!(fields.peek(), Some(&b"7"[..]));
        assert_eq!(fields.next("b").unwrap().text, b"7");
        assert_eq!(fields.rest(), b"tmux: server");
        let mut empty = LastFields::new(b" ");
        assert_eq!(empty.next("c").unwrap_err().field, "c");
    }
}
