//! Logs with one JSON object a line, as Caddy, nginx, Traefik and collectors of logs write them.
//!
//! Keys are looked up by the names that these use; see [`TIMES`] and the lists below it. A dot leads into an
//! object: `request.uri` is Caddy's. nginx's own names are those of its variables.

use std::borrow::Cow;

use chrono::{DateTime, NaiveDateTime};
use serde_json::{Map, Value};

use super::common;
use super::entry::{Asked, Entry, time_ns};
use super::w3c::{ns, with_query};
use crate::fault::Fault;
use crate::scan::{TimeUnit, decimal_ns, whole_number};

type Keys = &'static [&'static str];

/// Seconds, milliseconds, microseconds or nanoseconds since 1970, or a date with a time.
const TIMES: Keys = &[
    "ts",
    "msec",
    "time_iso8601",
    "time_local",
    "@timestamp",
    "StartUTC",
    "timestamp",
    "time",
    "datetime",
    "date",
];
const METHODS: Keys = &[
    "request.method",
    "request_method",
    "method",
    "RequestMethod",
    "httpRequest.requestMethod",
    "verb",
];
const HOSTS: Keys =
    &["request.host", "host", "http_host", "server_name", "vhost", "RequestHost", "virtual_host"];
const PATHS: Keys =
    &["request.uri", "request_uri", "uri", "RequestPath", "httpRequest.requestUrl", "path", "url"];
const QUERIES: Keys = &["args", "query_string", "query"];
/// A request line, as `GET /a HTTP/1.1`.
const REQUESTS: Keys = &["request", "request_line"];
const STATUSES: Keys = &[
    "status",
    "DownstreamStatus",
    "httpRequest.status",
    "status_code",
    "response.status",
    "response",
];
/// Without the answer's head first.
const SIZES: Keys = &[
    "size",
    "body_bytes_sent",
    "DownstreamContentSize",
    "httpRequest.responseSize",
    "bytes_sent",
    "bytes",
    "response.size",
    "response_size",
];

/// A line without its end.
pub(super) fn parse(line: &[u8]) -> Result<Entry<'_>, Fault> {
    let object: Map<String, Value> =
        serde_json::from_slice(line).map_err(|_| Fault::new("line", line, "no JSON object"))?;
    let object = Object(object);
    let request = object.find(REQUESTS).unwrap_or_default();
    let mut words = request.split(' ').filter(|word| !word.is_empty());
    let mut of_request =
        |field| words.next().map(str::to_owned).ok_or_else(|| none_of(field, line));
    let method = object.find(METHODS).map_or_else(|| of_request("method"), Ok)?;
    let path = match object.path() {
        Some(path) => path,
        None if object.find(METHODS).is_none() => of_request("path")?,
        None => return Err(none_of("path", line)),
    };
    let status = object.find(STATUSES).ok_or_else(|| none_of("status", line))?;
    let size = object.find(SIZES).ok_or_else(|| none_of("size", line))?;
    let time = object.find(TIMES).ok_or_else(|| none_of("time", line))?;
    let query = object.find(QUERIES).unwrap_or_default();
    let asked = Asked {
        time_ns: since_1970(&time)?,
        host: Cow::Owned(object.host().into_bytes()),
        path: with_query(Cow::Owned(path.into_bytes()), query.as_bytes()),
        bytes: bytes(&size)?,
        is_part: false,
    };
    Ok(Entry::of(method.as_bytes(), status.as_bytes(), asked))
}

/// Fields that a log needs and that an object lacks, by their names; none for what is no object.
pub(super) fn missing(line: &[u8]) -> Option<Vec<&'static str>> {
    let object: Map<String, Value> = serde_json::from_slice(line).ok()?;
    let object = Object(object);
    let has_line = object.find(REQUESTS).is_some();
    let needed = [
        ("time", object.find(TIMES).is_some()),
        ("method", has_line || object.find(METHODS).is_some()),
        ("uri", has_line || object.find(PATHS).is_some()),
        ("status", object.find(STATUSES).is_some()),
        ("size", object.find(SIZES).is_some()),
    ];
    Some(needed.into_iter().filter(|(_, is_there)| !is_there).map(|(name, _)| name).collect())
}

fn none_of(field: &'static str, line: &[u8]) -> Fault {
    Fault::new(field, line, "no key has it")
}

struct Object(Map<String, Value>);

impl Object {
    /// The text or number of the first of these keys that is there.
    fn find(&self, keys: Keys) -> Option<String> {
        keys.iter().find_map(|key| self.get(key))
    }

    fn get(&self, key: &str) -> Option<String> {
        let mut names = key.split('.');
        let mut value = self.0.get(names.next()?)?;
        for name in names {
            value = value.get(name)?;
        }
        match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }

    /// The path. Logstash's `request` is one beside a `verb`; its `path` is that of the log itself.
    fn path(&self) -> Option<String> {
        let of_logstash = self.get("verb").and_then(|_| self.get("request"));
        of_logstash.filter(|path| path.starts_with('/')).or_else(|| self.find(PATHS))
    }

    /// The site; empty where there is none.
    fn host(&self) -> String {
        self.find(HOSTS).filter(|host| host != "-").unwrap_or_default().to_ascii_lowercase()
    }
}

fn bytes(text: &str) -> Result<u64, Fault> {
    match text {
        "-" | "" => Ok(0),
        digits => whole_number(digits.as_bytes())
            .ok_or_else(|| Fault::new("size", text.as_bytes(), "not a whole number")),
    }
}

/// A time in one of the forms that logs have, in ns since 1970.
fn since_1970(text: &str) -> Result<u64, Fault> {
    if let Some(unit) = unit(text) {
        let ns = match unit {
            Some(unit) => decimal_ns(text.as_bytes(), unit),
            None => whole_number(text.as_bytes()),
        };
        return time_ns(ns.map(i128::from), text.as_bytes(), "past 2^64 ns");
    }
    let date = DateTime::parse_from_rfc3339(text).or_else(|_| DateTime::parse_from_str(text, "%+"));
    if let Ok(date) = date {
        return time_ns(Some(ns(date.naive_utc())), text.as_bytes(), "before 1970 or after 2554");
    }
    for form in ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y/%m/%d %H:%M:%S%.f"] {
        if let Ok(date) = NaiveDateTime::parse_from_str(text, form) {
            return time_ns(Some(ns(date)), text.as_bytes(), "before 1970 or after 2554");
        }
    }
    common::time(text.as_bytes())
}

/// The unit of a number since 1970, by the digits before its point; none within for nanoseconds. Seconds
/// have ten until the year 2286, and each unit below three more.
fn unit(text: &str) -> Option<Option<TimeUnit>> {
    let whole = text.split('.').next().unwrap_or_default();
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let unit = match whole.len() {
        ..=11 => Some(TimeUnit::Seconds),
        12..=14 => Some(TimeUnit::Milliseconds),
        15..=17 => Some(TimeUnit::Microseconds),
        _ => None,
    };
    (is_number && !whole.is_empty()).then_some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(line: &str) -> (u64, String, String, u64, bool) {
        let Entry::Request(asked) = parse(line.as_bytes()).unwrap() else { panic!("{line}") };
        let text = |bytes: Cow<'_, [u8]>| String::from_utf8(bytes.into_owned()).unwrap();
        (asked.time_ns, text(asked.host), text(asked.path), asked.bytes, asked.is_part)
    }

    /// One request in the keys of several servers. 1704412801.5 is 2024-01-05 00:00:01.5 UTC.
    #[test]
    fn json_request_same_from_every_server() {
        let is =
            (1_704_412_801_500_000_000, "site.example".into(), "/a.zip?v=2".into(), 4096, true);
        for line in [
            r#"{"level":"info","ts":1704412801.5,"request":{"method":"GET","host":"Site.example","uri":"/a.zip?v=2"},"size":4096,"status":206}"#,
            r#"{"msec":"1704412801.500","request_method":"GET","host":"site.example","uri":"/a.zip","args":"v=2","status":"206","body_bytes_sent":"4096","bytes_sent":"4399"}"#,
            r#"{"time_iso8601":"2024-01-05T01:00:01.5+01:00","request":"GET /a.zip?v=2 HTTP/1.1","server_name":"site.example","status":206,"bytes_sent":4096}"#,
            r#"{"StartUTC":"2024-01-05T00:00:01.500000000Z","RequestMethod":"GET","RequestHost":"site.example","RequestPath":"/a.zip?v=2","DownstreamStatus":206,"DownstreamContentSize":4096}"#,
            r#"{"ts":1704412801500,"request":{"method":"GET","host":"site.example","uri":"/a.zip?v=2"},"size":4096,"status":206}"#,
            r#"{"ts":1704412801500000000,"request":{"method":"GET","host":"site.example","uri":"/a.zip?v=2"},"size":4096,"status":206}"#,
            r#"{"ts":"2024/01/05 00:00:01.500","request":{"method":"GET","host":"site.example","uri":"/a.zip?v=2"},"size":4096,"status":206}"#,
        ] {
            assert_eq!(asked(line), is, "{line}");
        }
        let local = r#"{"time_local":"05/Jan/2024:00:00:01 +0000","request":"GET /b HTTP/1.1","status":"200","body_bytes_sent":"7"}"#;
        assert_eq!(asked(local), (1_704_412_801_000_000_000, String::new(), "/b".into(), 7, false));
        let logstash = r#"{"timestamp":"05/Jan/2024:00:00:01 +0000","verb":"GET","request":"/b","path":"/var/log/access.log","response":"200","bytes":"7"}"#;
        assert_eq!(asked(logstash), asked(local));
        let without_path = logstash.replace(r#""path":"/var/log/access.log","#, "");
        assert_eq!(
            (asked(&without_path), missing(without_path.as_bytes())),
            (asked(local), Some(Vec::new()))
        );
    }

    #[test]
    fn json_missing_or_wrong_field_named() {
        let whole = r#"{"ts":1.5,"method":"GET","uri":"/a","size":4,"status":200}"#;
        assert!(parse(whole.as_bytes()).is_ok() && missing(whole.as_bytes()) == Some(Vec::new()));
        for (key, name) in [
            ("ts", "time"),
            ("method", "method"),
            ("uri", "uri"),
            ("size", "size"),
            ("status", "status"),
        ] {
            let line = whole.replace(&format!("\"{key}\""), "\"other\"");
            assert_eq!(missing(line.as_bytes()), Some(vec![name]), "{line}");
            assert!(parse(line.as_bytes()).is_err(), "{line}");
        }
        assert_eq!(missing(b"[1]"), None);
        let wrong = whole.replace("1.5", "\"yesterday\"");
        assert_eq!(parse(wrong.as_bytes()).unwrap_err().field, "time");
        assert_eq!(parse(b"{\"size\":").unwrap_err().field, "line");
    }
}
