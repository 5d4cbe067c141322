//! Experiments and drive files as TOML documents. A fault names the line, the whole key, its value, and
//! the allowed values.
//!
//! In a table whose other keys depend on one key (`kind`, `form`), Serde reports the table only. This
//! module finds the faulty key by its value in Serde's message.

use std::borrow::Cow;
use std::fmt;

use freewheel_units::{BLOCK_BYTES, Bytes, did_you_mean};
use serde::de::DeserializeOwned;
use serde_path_to_error::Segment;
use toml::de::DeTable;
use toml::{Table, Value};

/// A fault in a document.
#[derive(Debug)]
pub struct Fault {
    /// Line from 1, where known.
    pub line: Option<usize>,
    /// Key, value and allowed values.
    pub says: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(out, "line {line}: {}", self.says),
            None => out.write_str(&self.says),
        }
    }
}

/// Parses TOML; a fault shows the place as the parser does.
pub(crate) fn parse(text: &str) -> Result<Value, Fault> {
    let table: Result<Table, _> = toml::from_str(text);
    table.map(Value::Table).map_err(|error| {
        let says = error.to_string();
        Fault { line: None, says: says.trim_end().to_owned() + hint(text, &says) }
    })
}

/// A likely mistake behind a parser's message.
fn hint(text: &str, says: &str) -> &'static str {
    if text.trim_start().starts_with('{') {
        "\nthis is JSON, and TOML is needed: `key = value` on a separate line, and `[name]` above the \
         keys of a table"
    } else if says.contains("invalid boolean") || says.contains("string values must be quoted") {
        "\na text needs quotes: \"tr96\" and not tr96"
    } else if says.contains("recursion limit") {
        "\nlists, tables and dotted keys nest too deep: at most 80 levels are read"
    } else if says.contains("too large") || says.contains("as i128") {
        "\nTOML's whole numbers end at 9223372036854775807"
    } else {
        ""
    }
}

/// Reads a document from its text; faults have lines.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, Fault> {
    interpret(&parse(text)?, Some(text))
}

/// Reads a parsed document; with its text, faults have lines.
pub(crate) fn interpret<T: DeserializeOwned>(root: &Value, text: Option<&str>) -> Result<T, Fault> {
    let line = |path: &[Step]| text.and_then(|text| line(text, path));
    understood(root).map_err(|(says, path)| Fault { line: line(&path), says })
}

/// A table whose type one of its keys tells.
pub(crate) struct TaggedTable {
    /// The table's key in the document.
    pub key: &'static str,
    /// The key in it that tells.
    pub tag: &'static str,
    /// The value of that key.
    pub name: &'static str,
}

/// The fault of a table of type `T`: Serde loses the path below a table whose type a key tells. None if the
/// table is another one, or has no fault.
pub(crate) fn fault_of<T: DeserializeOwned>(
    root: &Value,
    text: Option<&str>,
    TaggedTable { key, tag, name }: &TaggedTable,
) -> Option<Fault> {
    let mut table = root.get(key)?.as_table()?.clone();
    if table.remove(*tag)?.as_str()? != *name {
        return None;
    }
    let table = Value::Table(table);
    let (message, below) = attempt::<T>(&table).err()?;
    let below = narrowed(
        &table,
        below,
        &message,
        |without| matches!(attempt::<T>(without), Err((other, _)) if other == message),
    );
    let path = [&[Step::Key((*key).into())], &below[..]].concat();
    let says = lone_name::<T>(&table, &below, &message)
        .map(|says| format!("`{}` {says}", dotted(&path)))
        .unwrap_or_else(|| explained(&dotted(&path), value_at(root, &path), &message));
    Some(Fault { line: text.and_then(|text| line(text, &path)), says })
}

/// A step from a table or a list to a part of it.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    Key(String),
    Entry(usize),
}

/// Reads a document, or reports the fault and its path.
fn understood<T: DeserializeOwned>(root: &Value) -> Result<T, (String, Vec<Step>)> {
    attempt(root).map_err(|(text, path)| {
        let path = narrowed(
            root,
            path,
            &text,
            |without| matches!(attempt::<T>(without), Err((other, _)) if other == text),
        );
        let says = lone_name::<T>(root, &path, &text)
            .map(|says| format!("`{}` {says}", dotted(&path)))
            .unwrap_or_else(|| explained(&dotted(&path), value_at(root, &path), &text));
        (says, path)
    })
}

/// Like `understood`, with Serde's message and path, which may end at a table.
fn attempt<T: DeserializeOwned>(root: &Value) -> Result<T, (String, Vec<Step>)> {
    serde_path_to_error::deserialize(root.clone()).map_err(|error| {
        let path = error
            .path()
            .iter()
            .filter_map(|segment| match segment {
                Segment::Seq { index } => Some(Step::Entry(*index)),
                Segment::Map { key } => Some(Step::Key(key.clone())),
                Segment::Enum { .. } | Segment::Unknown => None,
            })
            .collect();
        (error.inner().message().to_owned(), path)
    })
}

/// The fault of a name that stands alone where it needs a value, as `"chen"` for `{ chen = 4 }`, or that has
/// a value and needs none. Serde says so in its own terms; what value is needed, a wrong one brings out.
fn lone_name<T: DeserializeOwned>(root: &Value, path: &[Step], text: &str) -> Option<String> {
    let said_with = |value: Value| -> Option<String> {
        let mut with = root.clone();
        *path.iter().try_fold(&mut with, |value, step| match step {
            Step::Key(key) => value.get_mut(key),
            Step::Entry(number) => value.get_mut(number),
        })? = value;
        attempt::<T>(&with).err().map(|(said, _)| said)
    };
    let value = value_at(root, path)?;
    if let Some((name, _)) = value.as_table().and_then(|table| table.iter().next()) {
        let takes_none = text.starts_with("expected table, found")
            && said_with(Value::String(name.clone())).is_none_or(|said| said != text);
        return takes_none
            .then(|| format!("is a table: {name:?} takes no value, so write it alone"));
    }
    let name = value.as_str().filter(|_| text.ends_with("expected newtype variant"))?;
    let with = [(name.to_owned(), Value::Boolean(true))];
    let said = said_with(Value::Table(with.into_iter().collect()));
    let expected = said.as_ref().and_then(|said| said.split_once(", expected "));
    let value = expected.map_or("its value", |(_, expected)| needed(expected));
    Some(format!("is {name:?} alone: write {{ {name} = ... }} with {value}"))
}

/// Most values that are tested as the cause of a fault. A test reads the whole document, so a long list
/// of equal values would take hours without this bound.
const SUSPECTS_MAX: usize = 64;

/// Extends a path to the first suspect without which Serde's message changes.
fn narrowed(
    root: &Value,
    path: Vec<Step>,
    text: &str,
    is_still_said: impl Fn(&Value) -> bool,
) -> Vec<Step> {
    let Some(at) = value_at(root, &path) else { return path };
    let mut suspects = Vec::new();
    look_for_suspects(at, &path, text, &mut suspects);
    suspects
        .into_iter()
        .take(SUSPECTS_MAX)
        .find(|suspect| {
            let mut without = root.clone();
            remove(&mut without, suspect);
            !is_still_said(&without)
        })
        .unwrap_or(path)
}

/// Adds the paths of all parts of `value`, at `path`, to which Serde's message may refer.
fn look_for_suspects(value: &Value, path: &[Step], text: &str, suspects: &mut Vec<Vec<Step>>) {
    let mut look = |step: Step, inner: &Value| {
        let suits = match (text.strip_prefix(UNKNOWN_KEY), &step) {
            (Some(rest), Step::Key(key)) => rest.starts_with(&format!("`{key}`")),
            (Some(_), Step::Entry(_)) => false,
            (None, _) => !text.starts_with(MISSING_KEY) && is_named(inner, text),
        };
        let path = [path, &[step]].concat();
        look_for_suspects(inner, &path, text, suspects);
        if suits {
            suspects.push(path);
        }
    };
    match value {
        Value::Table(table) => {
            table.iter().for_each(|(key, inner)| look(Step::Key(key.clone()), inner));
        }
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(number, inner)| look(Step::Entry(number), inner));
        }
        _ => {}
    }
}

/// True if a message repeats this value.
fn is_named(value: &Value, text: &str) -> bool {
    match value {
        Value::String(value) => {
            text.contains(&format!("string {value:?}")) || text.contains(&format!("`{value}`"))
        }
        Value::Integer(value) => text.contains(&format!("integer `{value}`")),
        Value::Float(_) => text.contains(&format!("floating point `{value}`")),
        Value::Boolean(value) => text.contains(&format!("boolean `{value}`")),
        Value::Datetime(_) | Value::Table(_) => text.contains("map,"),
        Value::Array(_) => text.contains("sequence,"),
    }
}

fn value_at<'v>(root: &'v Value, path: &[Step]) -> Option<&'v Value> {
    path.iter().try_fold(root, |value, step| match step {
        Step::Key(key) => value.get(key),
        Step::Entry(number) => value.get(number),
    })
}

fn remove(root: &mut Value, path: &[Step]) {
    let Some((last, before)) = path.split_last() else { return };
    let parent = before.iter().try_fold(root, |value, step| match step {
        Step::Key(key) => value.get_mut(key),
        Step::Entry(number) => value.get_mut(number),
    });
    match (parent, last) {
        (Some(Value::Table(table)), Step::Key(key)) => drop(table.remove(key)),
        (Some(Value::Array(list)), Step::Entry(number)) => drop(list.remove(*number)),
        _ => {}
    }
}

/// As `--set` takes it: `freeblock.tasks[0].kind`.
fn dotted(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Key(key) if text.is_empty() => text += key,
            Step::Key(key) => text += &format!(".{key}"),
            Step::Entry(number) => text += &format!("[{number}]"),
        }
    }
    text
}

/// Line of the text, from 1, on which the part at `path` begins; None for the whole document.
fn line(text: &str, path: &[Step]) -> Option<usize> {
    let root = DeTable::parse(text).ok()?;
    let (Step::Key(first), rest) = path.split_first()? else { return None };
    let first = root.get_ref().get(first.as_str())?;
    let at = rest.iter().try_fold(first, |value, step| match step {
        Step::Key(key) => value.get_ref().get(key),
        Step::Entry(number) => value.get_ref().get(number),
    })?;
    Some(1 + text[..at.span().start].matches('\n').count())
}

/// The fault of a key of a table; with the document's text it has a line.
pub(crate) fn fault_of_key(table: &str, key: &str, text: Option<&str>, says: String) -> Fault {
    let path = [Step::Key(table.into()), Step::Key(key.into())];
    Fault { line: text.and_then(|text| line(text, &path)), says }
}

/// The line of a key in an entry of a list of tables, or of the entry where it lacks the key.
pub fn line_of(text: &str, list: &str, entry: usize, key: &str) -> Option<usize> {
    let of_entry = [Step::Key(list.into()), Step::Entry(entry)];
    let of_key = [&of_entry[..], &[Step::Key(key.into())]].concat();
    line(text, &of_key).or_else(|| line(text, &of_entry))
}

const UNKNOWN_KEY: &str = "unknown field ";
const MISSING_KEY: &str = "missing field ";
const UNKNOWN_NAME: &str = "unknown variant ";

/// Rewrites Serde's `text` about the value of this key: the fault, and the allowed values.
fn explained(key: &str, value: Option<&Value>, text: &str) -> String {
    let (wrong, expected) = text.split_once(", expected ").unwrap_or((text, ""));
    if let Some(name) = wrong.strip_prefix(MISSING_KEY) {
        let before = if key.is_empty() { String::new() } else { format!("{key}.") };
        return format!("the key `{before}{}` is missing", name.trim_matches('`'));
    }
    if let Some(name) = wrong.strip_prefix(UNKNOWN_KEY) {
        let known: Vec<String> = quoted(expected).map(|name| format!("`{name}`")).collect();
        let known = known.join(", ");
        return format!("there is no key `{key}`: there are {known}{}", meant(name, expected));
    }
    let Some(value) = value.filter(|_| !key.is_empty()) else { return text.into() };
    if expected.is_empty() {
        return format!("`{key}`: {text}");
    }
    let meant =
        wrong.strip_prefix(UNKNOWN_NAME).map(|name| meant(name, expected)).unwrap_or_default();
    let (shown, needed) = (shown(value), needed(expected));
    format!("`{key}` is {shown}: {needed} is needed{meant}{}", share_meant(value, expected))
}

fn meant(name: &str, expected: &str) -> String {
    did_you_mean(name.trim_matches('`'), quoted(expected))
}

/// The number that a share in per cent means.
fn share_meant(value: &Value, expected: &str) -> String {
    let percent = value.as_str().filter(|_| expected.starts_with('f'));
    let percent = percent.and_then(|text| text.strip_suffix('%')?.trim().parse::<f64>().ok());
    // Through millionths, so that 7 % is not 0.07000000000000001.
    percent.map_or(String::new(), |percent| format!(", as {}", (percent * 1e6).round() / 1e8))
}

/// Names in a text of Serde's: all that stands between accents.
fn quoted(text: &str) -> impl Iterator<Item = &str> + Clone {
    text.split('`').skip(1).step_by(2)
}

fn shown(value: &Value) -> Cow<'static, str> {
    match value {
        Value::Table(_) => "a table".into(),
        Value::Array(_) => "a list".into(),
        other => other.to_string().into(),
    }
}

/// Needed value in words without a programmer's types; Serde's text where it has none.
pub fn needed(expected: &str) -> &str {
    match expected {
        // TOML has no larger ones.
        "u64" | "usize" => "a whole number of 0 to 9223372036854775807",
        "u8" => "a whole number of 0 to 255",
        "u16" => "a whole number of 0 to 65535",
        "u32" => "a whole number of 0 to 4294967295",
        "i8" | "i16" | "i32" | "i64" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a string" | "string only" | "variant identifier" => "a text in quotes",
        "path string" => "a path in quotes",
        "a sequence" => "a list",
        "a map" => "a table",
        "a tuple of size 2" => "a list of two",
        _ if ["struct ", "internally tagged enum ", "struct variant "]
            .iter()
            .any(|of| expected.starts_with(of)) =>
        {
            "a table"
        }
        other => other,
    }
}

/// Err when the value of this key is no multiple of `least`.
pub(crate) fn check_whole(key: &str, value: Bytes, least: Bytes) -> Result<(), String> {
    if value.get().is_multiple_of(least.get()) {
        return Ok(());
    }
    if least.get() == BLOCK_BYTES {
        return Err(format!(
            "`{key}` is {value}, {} bytes: whole blocks of {least} are needed, as 4KiB",
            value.get()
        ));
    }
    Err(format!(
        "`{key}` is {value}: a drive of 4Kn takes whole sectors of {least} alone; give a multiple, or take a drive of 512e (`electronics.sector` in its file, or `host.behaviour.sector`)"
    ))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use freewheel_model::drive::spec::DriveSpec;

    use super::*;
    use crate::config::SimConfig;

    fn said<T: DeserializeOwned>(text: &str) -> String {
        read::<T>(text).err().map_or_else(|| panic!("{text}"), |fault| fault.to_string())
    }

    const WHOLE: &str = "a whole number of 0 to 9223372036854775807 is needed";

    #[test]
    fn fault_names_line_key_and_need() {
        for (text, says) in [
            ("seed = 'a'", format!("line 1: `seed` is \"a\": {WHOLE}")),
            ("seed = -5", format!("line 1: `seed` is -5: {WHOLE}")),
            ("\nqueue_depth = 1e3", "line 2: `queue_depth` is 1000.0: a whole number of 0".into()),
            ("electronics = 1", "line 1: `electronics` is 1: true or false is needed".into()),
            ("drive = 5", "line 1: `drive` is 5: a text in quotes is needed".into()),
            ("workload = 'closed'", "line 1: `workload` is \"closed\": a table is needed".into()),
            (
                "[workload]\nkind = 'closed'\n\nrequests = 5.5",
                format!("line 4: `workload.requests` is 5.5: {WHOLE}"),
            ),
            (
                "[workload]\nkind = 'closed'\nthink_time = 3",
                "line 3: `workload.think_time` is 3: a length of time as a text with its unit".into(),
            ),
            (
                "[workload]\nkind = 'closed'\n[workload.pattern]\nsize = '3xB'",
                "line 4: `workload.pattern.size`: `3xB` has the unknown unit `xB`: write one".into(),
            ),
            (
                "[workload]\nkind = 'closed'\nthink_time_distribution = 'exp'",
                "line 3: `workload.think_time_distribution` is \"exp\": `constant` or `exponential` is needed"
                    .into(),
            ),
            ("[workload]\nrequests = 5", "line 1: the key `workload.kind` is missing".into()),
            ("drive = 'tr96'", "the key `workload` is missing".into()),
            (
                "[workload]\nkind = 'closed'\npattern.read_share = '7%'",
                "line 3: `workload.pattern.read_share` is \"7%\": a number is needed, as 0.07".into(),
            ),
            ("[freeblock]\ntasks = 3", "line 2: `freeblock.tasks` is 3: a list is needed".into()),
            (
                "[[freeblock.tasks]]\n[[freeblock.tasks]]\nkind = 3",
                "line 3: `freeblock.tasks[1].kind` is 3: a text in quotes is needed".into(),
            ),
        ] {
            let said = said::<SimConfig>(text);
            assert!(said.starts_with(&says), "{text}: {said}");
        }
    }

    #[test]
    fn fault_suggests_near_key_or_name() {
        for (text, says, meant) in [
            ("sed = 1", "line 1: there is no key `sed`: there are `seed`, `drive`", "seed"),
            (
                "[workload]\nkind = 'closd'",
                "line 2: `workload.kind` is \"closd\": one of `closed`, `open`, `trace`, `postmark`, `files` is needed",
                "closed",
            ),
            (
                "[workload]\nkind = 'closed'\npattern.sise = '4KiB'",
                "line 3: there is no key `workload.pattern.sise`: there are `read_share`, `fua_share`, `size`",
                "size",
            ),
            (
                "[[freeblock.tasks]]\nkind = 'scrup'",
                "line 2: `freeblock.tasks[0].kind` is \"scrup\": one of `scan`",
                "scrub",
            ),
            (
                "[scheduler]\npolicy = 'sptff'",
                "line 2: `scheduler.policy`: no policy is called `sptff`: there are fcfs",
                "sptf",
            ),
        ] {
            let said = said::<SimConfig>(text);
            assert!(said.starts_with(says), "{text}: {said}");
            assert!(said.ends_with(&format!("; did you mean `{meant}`?")), "{text}: {said}");
        }
        let said = said::<SimConfig>("[[freeblock.tasks]]\nkind = 'elevator'");
        assert!(said.ends_with("`compare` is needed"), "{said}");
    }

    #[test]
    fn fault_picks_wrong_among_equal_values() {
        let text = "[workload]\nkind = 'open'\nmean_gap = '1ms'\n\
                    [workload.pattern]\nread_share = 0.5\nlocal_share = 0.5\n";
        let said = said::<SimConfig>(&text.replace("'1ms'\n", "'1ms'\nrequests = 0.5\n"));
        assert!(said.starts_with("line 4: `workload.requests` is 0.5: "), "{said}");
    }

    #[test]
    fn fault_search_tries_few_equal_values() {
        let list = vec!["'x'"; 5000].join(", ");
        let text = format!(
            "[workload]\nkind = 'closed'\npattern = {{ fua_share = 'x', read_share = 'x', size = [{list}] }}"
        );
        assert!(said::<SimConfig>(&text).starts_with("line 1: `workload`"));
        let (root, tried) = (parse(&text).unwrap(), Cell::new(0));
        let is_still_said = |_: &Value| {
            tried.set(tried.get() + 1);
            true
        };
        let path = narrowed(&root, Vec::new(), "invalid type: string \"x\"", is_still_said);
        assert_eq!((path, tried.get()), (Vec::new(), SUSPECTS_MAX));
    }

    #[test]
    fn fault_in_seek_curve_told_alike() {
        let good = include_str!("../../../drives/tr96.toml");
        assert!(read::<DriveSpec>(good).is_ok());
        for (from, to, says) in [
            ("year = 1996", "year = 'x'", "line 5: `year` is \"x\": a whole number of 0 to 65535"),
            (
                "year = 1996",
                "year = 70000",
                "line 5: `year` is 70000: a whole number of 0 to 65535",
            ),
            (
                "single_ms = 2.0",
                "single_ms = 'x'",
                "line 17: `seek.read.single_ms` is \"x\": a number",
            ),
            ("single_ms", "singel_ms", "line 17: there is no key `seek.read.singel_ms`: there are"),
            ("head_switch =", "head_swich =", "line 9: there is no key `head_swich`: there are"),
        ] {
            let said = said::<DriveSpec>(&good.replacen(from, to, 1));
            assert!(said.starts_with(says), "{said}");
        }
    }

    #[test]
    fn non_toml_text_shown_with_place() {
        let json = said::<SimConfig>("{\"drive\": \"tr96\"}");
        assert!(json.contains("line 1") && json.ends_with("above the keys of a table"), "{json}");
        let bare = said::<SimConfig>("drive = tr96");
        assert!(bare.ends_with("a text needs quotes: \"tr96\" and not tr96"), "{bare}");
        for large in ["9223372036854775808", "99999999999999999999999"] {
            let said = said::<SimConfig>(&format!("seed = {large}"));
            assert!(said.ends_with("\nTOML's whole numbers end at 9223372036854775807"), "{said}");
        }
        for deep in [format!("{}a = 1", "a.".repeat(10_000)), "[[".repeat(10_000)] {
            let said = said::<SimConfig>(&deep);
            assert!(said.len() < 100_000, "{said}");
        }
        let deep = said::<SimConfig>(&format!("{}a = 1", "a.".repeat(100)));
        assert!(deep.ends_with("nest too deep: at most 80 levels are read"), "{deep}");
        let said = said::<SimConfig>("seed = 1\ndrive =\n");
        assert!(said.starts_with("TOML parse error at line 2, column 8\n"), "{said}");
    }
}
