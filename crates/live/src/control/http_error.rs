//! Errors of HTTP requests, in words for the client.
//!
//! A body is read directly into its type: a tree of its contents would take a hundred times its bytes. An
//! invalid value is therefore quoted as in Serde's message.

use std::error::Error;

use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use freewheel_sim::toml_faults::needed;

use super::Unanswered;

/// Characters of a value that an answer repeats.
const SHOWN_MAX: usize = 80;

impl From<JsonRejection> for Unanswered {
    fn from(rejection: JsonRejection) -> Self {
        let status = rejection.status();
        let why = match &rejection {
            JsonRejection::MissingJsonContentType(_) => {
                "a body needs the header `Content-Type: application/json`".into()
            }
            JsonRejection::JsonSyntaxError(error) => no_json(&cause(error)),
            JsonRejection::JsonDataError(error) => misfit(error),
            other => format!("the body cannot be read: {}", cause(other)),
        };
        Self::NotUnderstood { status, why }
    }
}

impl From<PathRejection> for Unanswered {
    fn from(rejection: PathRejection) -> Self {
        // A task's number is the only variable part of a path.
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

/// First cause of an error.
fn cause(error: &dyn Error) -> String {
    let mut first = error;
    while let Some(source) = first.source() {
        first = source;
    }
    first.to_string()
}

/// Message about a body that is no JSON. Of a number where a name is expected serde says the same as of no
/// value at all.
fn no_json(cause: &str) -> String {
    match cause.split_once(": expected value") {
        Some((path, at)) => {
            format!("{path}: no value that fits{at}: names and texts are in double quotes")
        }
        None => format!("the body is no JSON: {cause}"),
    }
}

/// The field that does not fit what is asked for, its value, and what is expected there.
fn misfit(error: &dyn Error) -> String {
    let mut source = error.source();
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<serde_path_to_error::Error<serde_json::Error>>() {
            return explained(&error.path().to_string(), &error.inner().to_string());
        }
        source = error.source();
    }
    cause(error)
}

/// The cause and the expected values in serde's `text`.
fn explained(path: &str, text: &str) -> String {
    let text = text.rsplit_once(" at line ").map_or(text, |(text, _)| text);
    // What is expected comes last; a value may have any words in it.
    let (wrong, expected) = text.rsplit_once(", expected ").unwrap_or((text, ""));
    let at = if path == "." { String::new() } else { format!("{path}: ") };
    if let Some(field) = wrong.strip_prefix("missing field ") {
        return format!("{at}the field {field} is missing");
    }
    if let Some(field) = wrong.strip_prefix("unknown field ") {
        // The path ends with the field itself.
        return format!("there is no field {}: {} is expected", cut(field), listed(expected));
    }
    if let Some(field) = wrong.strip_prefix("duplicate field ") {
        return format!("the field {field} is there twice");
    }
    match value(wrong) {
        Some(value) if !expected.is_empty() => {
            format!("{at}{}: {} is expected", cut(&value), listed(expected))
        }
        _ => format!("{at}{}", cut(text)),
    }
}

/// The value that serde says is wrong.
fn value(wrong: &str) -> Option<String> {
    if let Some(name) = wrong.strip_prefix("unknown variant `") {
        return name.strip_suffix('`').map(|name| format!("{name:?}"));
    }
    let (_, value) = wrong.strip_prefix("invalid ")?.split_once(": ")?;
    let number = ["integer `", "floating point `", "boolean `"]
        .into_iter()
        .find_map(|kind| value.strip_prefix(kind)?.strip_suffix('`'));
    Some(match value {
        "map" => "an object".into(),
        "sequence" => "a list".into(),
        other => number.or(other.strip_prefix("string ")).unwrap_or(other).into(),
    })
}

/// As much of a value as tells which it is.
fn cut(value: &str) -> String {
    match value.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}...", &value[..end]),
        None => value.into(),
    }
}

/// Expected value, in words without a programmer's types.
fn listed(expected: &str) -> &str {
    match expected {
        "struct ByteRange" => "an object with `offset_bytes` and `length_bytes`",
        "struct BlockRange" => "an object with `first_block` and `blocks`",
        // JSON has larger ones than TOML.
        "u64" => "a whole number that is not negative",
        other => needed(other),
    }
}

#[cfg(test)]
mod tests {
    use axum::Json;
    use serde_json::json;

    use super::super::request::TaskRequest;
    use super::*;

    fn refused(body: &str) -> String {
        let rejection = Json::<TaskRequest>::from_bytes(body.as_bytes()).unwrap_err();
        match Unanswered::from(rejection) {
            Unanswered::NotUnderstood { why, .. } => why,
            other => panic!("{body}: {other}"),
        }
    }

    #[test]
    fn invalid_field_is_named_with_expectation() {
        let whole = "a whole number that is not negative is expected";
        for (document, says) in [
            (
                json!({"kind": "scrubb"}),
                "kind: \"scrubb\": one of `scan`, `scrub`, `backup`, `refresh` is expected",
            ),
            (json!({"kind": 1}), "kind: no value that fits at line 1"),
            (json!({}), "the field `kind` is missing"),
            (
                json!({"kind": "scan", "skip_since_ns": "all"}),
                &format!("skip_since_ns: \"all\": {whole}"),
            ),
            (json!({"kind": "scan", "skip_since_ns": -5}), &format!("skip_since_ns: -5: {whole}")),
            (
                json!({"kind": "scan", "skip_since_ns": 1.5}),
                &format!("skip_since_ns: 1.5: {whole}"),
            ),
            (json!({"kind": "scan", "length": 8}), "length: 8: "),
            (json!({"kind": "scan", "block_size": "big"}), "block_size: "),
            (json!({"kind": "scan", "promote_tail": {"cost": "1"}}), "promote_tail.cost: \"1\": "),
            (json!({"kind": "scan", "rounds": 2}), "there is no field `rounds`: one of `kind`, "),
            (
                json!({"kind": "scan", "repeat": "yes"}),
                "repeat: \"yes\": true or false is expected",
            ),
            (json!({"kind": "scan", "skip": {"a": 1}}), "skip: an object: a list is expected"),
            (
                json!({"kind": "scan", "extents": [{"offset_bytes": 1, "length_bytes": 2}, 7]}),
                "extents[1]: 7: an object with `offset_bytes` and `length_bytes` is expected",
            ),
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
            let error = refused(&document.to_string());
            assert!(error.starts_with(says), "{document}: {error}");
        }
        assert!(Json::<TaskRequest>::from_bytes(b"{\"kind\": \"scan\"}").is_ok());
        assert!(refused("{\"kind\": \"scan\"").starts_with("the body is no JSON: "));
        let twice = refused("{\"kind\": \"scan\", \"kind\": \"scan\"}");
        assert_eq!(twice, "the field `kind` is there twice");
    }

    #[test]
    fn long_value_is_repeated_in_part() {
        let long = "x, expected ".repeat(10_000);
        for document in [
            json!({"kind": &long}),
            json!({"kind": "scan", "length": &long}),
            json!({"kind": "scan", &long: 1}),
            json!({"kind": "scan", "skip": [{"first_block": 0, "blocks": vec![0; 1000]}]}),
            json!([&long]),
        ] {
            let error = refused(&document.to_string());
            assert!(error.len() < 400 && error.contains("expected"), "{error}");
        }
    }
}
