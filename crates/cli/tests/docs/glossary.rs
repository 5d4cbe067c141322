//! The last column of the glossary: each name is where the word can be met.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{code_and_words, repository};

/// Everything that a name of the glossary may be.
pub(super) struct Names {
    /// Keys of the published schemas, and the words that each of them may have as a value.
    pub keys: BTreeMap<String, BTreeSet<String>>,
    verbs: BTreeSet<String>,
    pub options: BTreeSet<String>,
    /// Code that writes metrics, each by a name with or without its prefix.
    metrics: String,
    /// Code without comments.
    pub sources: String,
}

impl Names {
    pub fn new() -> Self {
        let mut keys = BTreeMap::new();
        for schema in fs::read_dir(repository().join("schemas")).unwrap() {
            let schema = fs::read_to_string(schema.unwrap().path()).unwrap();
            let schema: Value = serde_json::from_str(&schema).unwrap();
            collect_keys(&schema, &schema, &mut keys);
        }
        let verbs = verbs();
        let options = verbs.iter().flat_map(|verb| options_of(verb)).collect();
        let crates = repository().join("crates");
        let metrics = fs::read_to_string(crates.join("live/src/control/metrics.rs")).unwrap();
        Self { keys, verbs, options, metrics, sources: sources(&crates) }
    }

    /// True if one of the users' surfaces has this name, with this value where one is given.
    pub fn have(&self, code: &str) -> bool {
        if let Some((key, value)) = code.split_once(" = ") {
            let words = key.rsplit('.').next().and_then(|key| self.keys.get(key));
            return words.is_some_and(|words| words.contains(word_of(value)));
        }
        if code.starts_with('[') {
            let mut keys = code.trim_matches(['[', ']']).split('.');
            return keys.all(|key| self.keys.contains_key(key));
        }
        if let Some(option) = code.strip_prefix("--") {
            return self.options.contains(option);
        }
        if let Some(verb) = code.strip_prefix("freewheel ") {
            return self.verbs.contains(verb.split(' ').next().unwrap());
        }
        if let Some(metric) = code.strip_prefix("freewheel_") {
            return [metric, code].iter().any(|name| self.metrics.contains(&format!("\"{name}\"")));
        }
        code.split('.').all(|name| self.keys.contains_key(name) || is_named(&self.sources, name))
    }
}

/// The word of a value as TOML has it; of a table its only key.
fn word_of(value: &str) -> &str {
    value.trim_start_matches("{ ").split(' ').next().unwrap().trim_matches('"')
}

/// True if code has a field, a string, a letter or a type of this name.
fn is_named(sources: &str, name: &str) -> bool {
    sources.match_indices(name).any(|(at, _)| {
        let is_name = |char: char| char.is_alphanumeric() || char == '_';
        let (before, behind) = (&sources[..at], &sources[at + name.len()..]);
        let is_whole = !before.ends_with(is_name) && !behind.starts_with(is_name);
        let is_field = behind.starts_with(": ");
        let is_text = before.ends_with(['"', '\'']) && behind.starts_with(['"', '\'']);
        let is_type = name.len() > 1 && name.starts_with(char::is_uppercase);
        is_whole && (is_field || is_text || is_type)
    })
}

fn collect_keys(value: &Value, schema: &Value, keys: &mut BTreeMap<String, BTreeSet<String>>) {
    if let Some(Value::Object(properties)) = value.get("properties") {
        for (key, of_key) in properties {
            collect_words(of_key, schema, keys.entry(key.clone()).or_default());
        }
    }
    match value {
        Value::Object(parts) => parts.values().for_each(|part| collect_keys(part, schema, keys)),
        Value::Array(parts) => parts.iter().for_each(|part| collect_keys(part, schema, keys)),
        _ => {}
    }
}

/// The words that a value may be, and the keys of a table.
fn collect_words(value: &Value, schema: &Value, words: &mut BTreeSet<String>) {
    if let Some(name) = value.get("$ref").and_then(Value::as_str) {
        collect_words(schema.pointer(&name[1..]).unwrap(), schema, words);
    }
    let fixed = value.get("enum").and_then(Value::as_array).into_iter().flatten();
    words.extend(fixed.chain(value.get("const")).filter_map(Value::as_str).map(String::from));
    if value.get("type").is_some_and(|kind| kind == "boolean") {
        words.extend(["false", "true"].map(String::from));
    }
    let table = value.get("properties").and_then(Value::as_object).into_iter().flatten();
    words.extend(table.map(|(key, _)| key.clone()));
    for alternatives in ["oneOf", "anyOf", "allOf"].iter().filter_map(|key| value.get(key)) {
        let alternatives = alternatives.as_array().into_iter().flatten();
        alternatives.for_each(|one| collect_words(one, schema, words));
    }
}

fn help(args: &[&str]) -> String {
    let ran = Command::new(env!("CARGO_BIN_EXE_freewheel")).args(args).output().unwrap();
    String::from_utf8(ran.stdout).unwrap()
}

/// Options of a verb and of the verbs below it.
fn options_of(verb: &str) -> Vec<String> {
    let text = help(&[verb, "--help"]);
    let below = commands(&text).into_iter().map(|below| help(&[verb, &below, "--help"]));
    below.chain([text.clone()]).flat_map(|help| options(&help)).collect()
}

fn verbs() -> BTreeSet<String> {
    commands(&help(&["--help"]))
}

/// Verbs that a help lists.
fn commands(help: &str) -> BTreeSet<String> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| !line.is_empty());
    listed.filter_map(|line| line.split_whitespace().next().map(String::from)).collect()
}

fn options(help: &str) -> Vec<String> {
    let words = help.split_whitespace().filter_map(|word| word.strip_prefix("--"));
    words.map(|word| word.trim_end_matches([',', '.', ':', ')', '`']).to_owned()).collect()
}

/// All code below a folder, without tests and comments.
fn sources(folder: &Path) -> String {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let text = |path: PathBuf| match path.is_dir() {
        true => sources(&path),
        false => fs::read_to_string(path).unwrap_or_default(),
    };
    let paths = paths.filter(|path| path.file_name().is_some_and(|name| name != "tests"));
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    paths
        .map(text)
        .map(|text| text.lines().filter(is_code).collect::<Vec<_>>().join("\n"))
        .collect()
}

#[test]
fn glossary_words_exist_on_surfaces() {
    let glossary = fs::read_to_string(repository().join("docs/reference/glossary.md")).unwrap();
    let names = Names::new();
    let appears_as = glossary.lines().filter_map(|line| line.rsplit('|').nth(1));
    let code = appears_as.flat_map(|cell| code_and_words(cell).0);
    let wrong: Vec<&str> = code.filter(|code| !names.have(code)).collect();
    assert!(wrong.is_empty(), "names of the glossary that nobody meets: {wrong:?}");
}

#[test]
fn glossary_wrong_entry_is_noticed() {
    let names = Names::new();
    let right = ["kind = \"scan\"", "[freeblock]", "--idle-after", "freewheel scan", "queue_ns"];
    assert!(right.iter().all(|code| names.have(code)));
    for wrong in [
        "task = \"scan\"",
        "kind = \"scam\"",
        "electronics = maybe",
        "[freeblocks]",
        "[workload.heating]",
        "--idle-before",
        "freewheel scam",
        "freewheel_gaps",
        "queue_n",
        "VolumeBloc",
        "result.free_time",
    ] {
        assert!(!names.have(wrong), "{wrong}");
    }
}
