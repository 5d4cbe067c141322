//! What is wrong with what was asked over HTTP, in words for whoever asked.

use std::error::Error;

use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use freewheel_sim::document::needed;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::{Path, Segment};

use super::Unanswered;

impl From<JsonRejection> for Unanswered {
    fn from(rejection: JsonRejection) -> Self {
        let status = rejection.status();
        let why = match &rejection {
            JsonRejection::MissingJsonContentType(_) => {
                "a body needs the header `Content-Type: application/json`".into()
            }
            JsonRejection::JsonSyntaxError(error) => {
                format!("the body is no JSON: {}", cause(error))
            }
            // A field that is there twice.
            JsonRejection::JsonDataError(error) => cause(error),
            other => format!("the body cannot be read: {}", cause(other)),
        };
        Self::NotUnderstood { status, why }
    }
}

impl From<PathRejection> for Unanswered {
    fn from(rejection: PathRejection) -> Self {
        // Nothing but the number of a task is in any path.
        let why = "a task's number is expected in the path, as in /v1/tasks/1".into();
        Self::NotUnderstood { status: rejection.status(), why }
    }
}

impl From<QueryRejection> for Unanswered {
    fn from(rejection: QueryRejection) -> Self {
        let why = "since_ns: a whole number of nanoseconds is expected, as in ?since_ns=0".into();
        Self::NotUnderstood { status: rejection.status(), why }
    }
}

/// What was first said of an error.
fn cause(error: &dyn Error) -> String {
    let mut first = error;
    while let Some(source) = first.source() {
        first = source;
    }
    first.to_string()
}

/// What a document says; of one that does not, the field that is to blame, its value, and what is
/// expected there.
pub(super) fn understood<T: DeserializeOwned>(document: &Value) -> Result<T, String> {
    serde_path_to_error::deserialize(document).map_err(|error| {
        let at = error.path();
        explained(&at.to_string(), value_at(document, at), &error.inner().to_string())
    })
}

fn value_at<'v>(document: &'v Value, path: &Path) -> Option<&'v Value> {
    path.iter().try_fold(document, |value, segment| match segment {
        Segment::Seq { index } => value.get(index),
        Segment::Map { key } => value.get(key),
        Segment::Enum { .. } | Segment::Unknown => None,
    })
}

/// Of `text` as serde has it: what it says is wrong, and what it expected.
fn explained(path: &str, value: Option<&Value>, text: &str) -> String {
    let (wrong, expected) = text.split_once(", expected ").unwrap_or((text, ""));
    let at = if path == "." { String::new() } else { format!("{path}: ") };
    if let Some(field) = wrong.strip_prefix("missing field ") {
        return format!("{at}the field {field} is missing");
    }
    if let Some(field) = wrong.strip_prefix("unknown field ") {
        // The path ends with the field itself.
        return format!("there is no field {field}: {} is expected", listed(expected));
    }
    match value {
        Some(value) if !expected.is_empty() => {
            format!("{at}{value}: {} is expected", listed(expected))
        }
        _ => format!("{at}{text}"),
    }
}

/// What is expected, in words that no programmer's type is part of.
fn listed(expected: &str) -> &str {
    match expected {
        "struct BlockRange" => "an object with `first_block` and `blocks`",
        "struct TaskRequest" => "an object",
        // JSON has larger ones than TOML.
        "u64" => "a whole number that is not negative",
        other => needed(other),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::api::TaskRequest;
    use super::*;

    #[test]
    fn what_is_wrong_is_named_with_its_value_and_what_is_expected() {
        let whole = "a whole number that is not negative is expected";
        for (document, says) in [
            (
                json!({"kind": "scrubb"}),
                "kind: \"scrubb\": one of `scan`, `scrub`, `backup` is expected",
            ),
            (json!({"kind": 1}), "kind: 1: "),
            (json!({}), "the field `kind` is missing"),
            (json!({"kind": "scan", "blocks": "all"}), &format!("blocks: \"all\": {whole}")),
            (json!({"kind": "scan", "blocks": -5}), &format!("blocks: -5: {whole}")),
            (json!({"kind": "scan", "blocks": 1.5}), &format!("blocks: 1.5: {whole}")),
            (
                json!({"kind": "scan", "repeat": "yes"}),
                "repeat: \"yes\": true or false is expected",
            ),
            (json!({"kind": "scan", "skip": {"a": 1}}), "skip: {\"a\":1}: a list is expected"),
            (
                json!({"kind": "scan", "skip": [{"first_block": 0, "blocks": 8}, {"blocks": 8}]}),
                "skip[1]: the field `first_block` is missing",
            ),
            (
                json!({"kind": "scan", "skip": [7]}),
                "skip[0]: 7: an object with `first_block` and `blocks` is expected",
            ),
            (json!({"kind": "scan", "block": 1}), "there is no field `block`: one of `kind`, "),
            (json!("scan"), "\"scan\": an object is expected"),
        ] {
            let error = understood::<TaskRequest>(&document).unwrap_err();
            assert!(error.starts_with(says), "{document}: {error}");
        }
        assert!(understood::<TaskRequest>(&json!({"kind": "scan"})).is_ok());
    }
}
