//! Keys that messages and documents name: each is a key of a schema, an option, or listed here.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::glossary::Names;
use super::{Page, code_and_words, pages, repository, split};

/// Names in messages that are no keys: programs, keys of DiskSim's and fio's files, a claim, a module, and
/// `key` in `key = value`.
const IN_MESSAGES: &[&str] = &[
    "beyond.price",
    "bs",
    "defects",
    "disksim_disk",
    "dm_disk",
    "freewheel",
    "instantiate",
    "jobs",
    "key",
    "lsblk",
    "public_traces",
    "rw",
    "source",
    "sync",
    "topology",
    "--gtod_reduce",
    "--iodepth",
    "--rw",
    "--write_iolog",
    "--write_lat_log",
];

/// Names in documents that are no keys: programs, crates, files of systems, names of other tools, and names
/// that code composes or tests have.
const IN_DOCUMENTS: &[&str] = &[
    "aws-lc-rs",
    "axum",
    "blktrace_api.h",
    "block_size_minimum",
    "cdl_enable",
    "clat",
    "cylinders_from",
    "effort-spent",
    "failmode",
    "fdatasync",
    "freewheel_margin_seconds",
    "freewheel_task_running",
    "freewheel_task_superseded_bytes_total",
    "hardware",
    "io-uring",
    "maud",
    "mdadm",
    "mine.toml",
    "mkfs",
    "nbd-client",
    "ncq_prio_enable",
    "old_drives",
    "poll",
    "prefetch-index",
    "rsync",
    "rustix",
    "rustls",
    "sdb",
    "service_ns_p99",
    "signal-hook",
    "thread-priority",
    "test",
    "tokio",
    "utoipa",
    "wpaexporter",
    "--log_issue_time",
];

/// Text literals of code, without those in comments.
fn literals(code: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let skipped = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '\'' if rest.starts_with("'\\") => {
                3 + rest.get(3..).and_then(|rest| rest.find('\'')).unwrap_or(0)
            }
            '\'' if rest.chars().nth(2) == Some('\'') => {
                rest.chars().take(3).map(char::len_utf8).sum()
            }
            'r' if rest[1..].trim_start_matches('#').starts_with('"') => {
                let hashes = rest[1..].find('"').unwrap_or(0);
                let end = format!("\"{}", "#".repeat(hashes));
                let text = &rest[2 + hashes..];
                let length = text.find(&end).unwrap_or(text.len());
                found.push(&text[..length]);
                2 + hashes + length + end.len()
            }
            '"' => {
                let text = &rest[1..];
                let mut is_escaped = false;
                let is_end = |char: char| {
                    let ends = char == '"' && !is_escaped;
                    is_escaped = char == '\\' && !is_escaped;
                    ends
                };
                let length = text.find(is_end).unwrap_or(text.len());
                found.push(&text[..length]);
                length + 2
            }
            other => other.len_utf8(),
        };
        rest = rest.get(skipped..).unwrap_or_default();
    }
    found
}

/// Code that ships, below a folder.
fn shipped(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_test = path.ends_with("tests") || path.ends_with("tests.rs");
        if path.is_dir() && !is_test {
            found.extend(shipped(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") && !is_test {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
            found.push((path, code.to_owned()));
        }
    }
    found
}

/// The name of a key or an option in a piece of code, as `host.scheduler` of `[host.scheduler]`. None for
/// commands, paths, types and values.
fn name_in(code: &str) -> Option<String> {
    let name = code.split(" = ").next().unwrap_or_default();
    let name = name.split(['=', '[']).find(|part| !part.is_empty())?.trim_end_matches(']');
    let is_name = name.trim_start_matches("--").starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || ['_', '-', '.'].contains(&c));
    is_name.then(|| name.to_owned())
}

/// True for keys and words of the schemas, and for options.
fn is_known(names: &Names, words: &BTreeSet<&str>, name: &str) -> bool {
    match name.strip_prefix("--") {
        Some(option) => names.options.contains(option),
        None => name.split('.').all(|part| names.keys.contains_key(part) || words.contains(part)),
    }
}

fn words(names: &Names) -> BTreeSet<&str> {
    names.keys.values().flatten().map(String::as_str).collect()
}

/// Names in the messages of some code that no surface has.
fn unknown_in_messages(names: &Names, code: &str) -> Vec<String> {
    let words = words(names);
    let named = literals(code).into_iter().flat_map(|text| code_and_words(text).0);
    let named = named.filter_map(name_in);
    named
        .filter(|name| !is_known(names, &words, name) && !IN_MESSAGES.contains(&name.as_str()))
        .collect()
}

#[test]
fn keys_in_messages_exist() {
    let names = Names::new();
    let mut wrong = Vec::new();
    for krate in fs::read_dir(repository().join("crates")).unwrap() {
        for (path, code) in shipped(&krate.unwrap().path().join("src")) {
            let unknown = unknown_in_messages(&names, &code);
            wrong.extend(unknown.into_iter().map(|name| format!("{}: `{name}`", path.display())));
        }
    }
    assert!(wrong.is_empty(), "messages name keys that nothing has: {wrong:#?}");
}

#[test]
fn keys_wrong_in_message_are_noticed() {
    let names = Names::new();
    let code = r##"
        // "give tasks `beside` it a higher one" in a comment is no message.
        let mark = '"';
        error("give the other `tasks` a higher `priority`, or `--block-size 1MiB`, or `kind = \"scan\"`");
        error("`workload.pattern.size` of `[host.scheduler]` and `freeblock.tasks[1].kind`");
        error("give tasks `beside` it a higher one");
        raw(r#"an "old" `decide_before`"#);
        option("use `--mechanics-only`");
    "##;
    let unknown = unknown_in_messages(&names, code);
    assert_eq!(unknown, ["beside", "decide_before", "--mechanics-only"]);
}

/// Names on a page that no surface, file or function has.
fn unknown_on(
    names: &Names,
    words: &BTreeSet<&str>,
    files: &BTreeSet<String>,
    page: &Page,
) -> Vec<String> {
    let (prose, _) = split(&page.text);
    let named = prose.iter().flat_map(|line| code_and_words(line).0);
    let named = named.filter(|code| !code.contains(' ') || code.contains(" = "));
    let exists = |code: &str, name: &String| {
        let is_listed = IN_DOCUMENTS.contains(&name.as_str());
        if is_listed || is_known(names, words, name) {
            return true;
        }
        // Tables and values belong to configurations; a name alone may also be one in JSON or in code.
        let is_alone = !code.starts_with('[') && !code.contains(" = ");
        is_alone
            && (names.have(name)
                || files.contains(name)
                || names.sources.contains(&format!("fn {name}"))
                || names.sources.contains(&format!("\"{name}\"")))
    };
    let named = named.filter_map(|code| Some((code, name_in(code)?)));
    named.filter(|(code, name)| !exists(code, name)).map(|(_, name)| name).collect()
}

/// Paths of all files below a folder of the repository, and each file's name with and without its ending.
fn file_names(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(repository().join(folder)).unwrap() {
        let path = folder.join(entry.unwrap().file_name());
        let is_built = path.ends_with("target") || path.ends_with(".git") || path.ends_with("out");
        if repository().join(&path).is_dir() && !is_built {
            found.extend(file_names(&path));
        }
        let parts = [path.file_name(), path.file_stem(), Some(path.as_os_str())];
        found.extend(parts.into_iter().flatten().map(|part| part.to_string_lossy().into_owned()));
    }
    found
}

#[test]
fn keys_in_documents_exist() {
    let (names, files) = (Names::new(), file_names(Path::new("")));
    let words = words(&names);
    let mut wrong = Vec::new();
    // The page of planted faults names tests, which a test of its own compares.
    for page in pages().iter().filter(|page| !page.path.ends_with("planted-faults.md")) {
        let unknown = unknown_on(&names, &words, &files, page);
        wrong.extend(unknown.into_iter().map(|name| format!("{}: `{name}`", page.path.display())));
    }
    assert!(wrong.is_empty(), "documents name keys that nothing has: {wrong:#?}");
}

#[test]
fn keys_wrong_in_document_are_noticed() {
    let names = Names::new();
    let text = "`kind = \"scan\"`, `--seed` and `[host]` exist; `decide_before`, `job = \"scan\"`, \
                `--scrub-block` and `[hosts]` do not.";
    let page = Page { path: "page.md".into(), text: text.into() };
    let unknown = unknown_on(&names, &words(&names), &BTreeSet::new(), &page);
    assert_eq!(unknown, ["decide_before", "job", "--scrub-block", "hosts"]);
}
