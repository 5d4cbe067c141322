//! Columns of CSV that a header line names, in any order and among others.

use crate::fault::Fault;
use crate::scan::{Fields, Token};

/// Places of the `N` columns that a format reads.
#[derive(Debug)]
pub(super) struct Columns<const N: usize> {
    names: [&'static str; N],
    /// For each column of the line the number of its name in `names`, up to the last one read.
    fields: Vec<Option<usize>>,
}

impl<const N: usize> Columns<N> {
    /// Finds `names` in `header`. The first `required` must be there; Err lists those that are not.
    pub fn find(header: &[u8], names: [&'static str; N], required: usize) -> Result<Self, Fault> {
        let columns = header.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
        let mut fields: Vec<_> =
            columns.map(|column| names.iter().position(|name| name.as_bytes() == column)).collect();
        let missing: Vec<_> = (0..required)
            .filter(|name| !fields.contains(&Some(*name)))
            .map(|at| names[at])
            .collect();
        if !missing.is_empty() {
            return Err(missing_columns(header, &missing));
        }
        let last = fields.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        fields.truncate(last);
        Ok(Self { names, fields })
    }

    /// The fields of a line, in the order of the names; `None` for a column that is not there.
    #[inline]
    pub fn pick<'a>(&self, line: &'a [u8]) -> Result<[Option<Token<'a>>; N], Fault> {
        let mut found = [None; N];
        let mut fields = Fields::comma(line);
        for field in &self.fields {
            let name = field.map_or("line", |field| self.names[field]);
            let token = fields.next(name)?;
            if let Some(field) = *field {
                found[field] = Some(token);
            }
        }
        Ok(found)
    }
}

#[cold]
pub(super) fn missing_columns(header: &[u8], missing: &[&str]) -> Fault {
    let reason = format!("the first line must name the columns, and lacks: {}", missing.join(", "));
    Fault::new("header", header, reason)
}

/// The field of a column that [`Columns::find`] requires.
#[inline]
pub(super) fn required<'a>(field: Option<Token<'a>>) -> Token<'a> {
    field.expect("the header has this column")
}

/// The fault of a record before any header.
#[cold]
pub(super) fn no_header(line: &[u8]) -> Fault {
    Fault::new("line", line, "no line before it names the columns")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_found_in_any_order() {
        let columns = Columns::find(b"x,b, a ,y", ["a", "b", "c"], 2).unwrap();
        let fields = columns.pick(b"1,2,3,4").unwrap();
        let texts = fields.map(|field| field.map(|token| token.text));
        assert_eq!(texts, [Some(&b"3"[..]), Some(b"2"), None]);
        // The last column is not read, so a line may lack it.
        assert!(columns.pick(b"1,2,3").is_ok());
        assert_eq!(columns.pick(b"1,2").unwrap_err().field, "a");
    }

    #[test]
    fn header_without_columns_names_missing() {
        let fault = Columns::find(b"x,b", ["a", "b", "c"], 3).unwrap_err();
        assert_eq!(fault.field, "header");
        assert!(fault.reason.ends_with("lacks: a, c"), "{}", fault.reason);
    }
}
