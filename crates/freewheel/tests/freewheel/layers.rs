//! The rules of the layers, as tests: who may depend on whom, and what the pure crates may name. Bans of single
//! types and functions are in `clippy.toml`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Crate, and the crates of this workspace that it may depend on.
const LAYERS: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("model", &["units"]),
    ("freeblock", &["units", "model"]),
    ("array", &["units", "model", "freeblock"]),
    ("host", &["units", "model", "freeblock"]),
    ("nbd", &[]),
    ("trace", &["units"]),
    ("disksim", &["units", "model"]),
    ("sim", &["units", "model", "array", "freeblock", "host", "trace"]),
    ("live", &["units", "model", "freeblock", "host", "nbd", "trace", "sim"]),
    ("extract", &["units", "model", "trace", "sim"]),
    ("study", &["units", "model", "array", "freeblock", "trace", "sim"]),
    ("reproduce", &["units", "model", "array", "freeblock", "host", "trace", "sim", "study"]),
    (
        "report",
        &["units", "model", "array", "freeblock", "trace", "sim", "extract", "study", "reproduce"],
    ),
    (
        "freewheel",
        &[
            "units",
            "model",
            "freeblock",
            "array",
            "host",
            "nbd",
            "trace",
            "disksim",
            "sim",
            "live",
            "extract",
            "study",
            "reproduce",
            "report",
        ],
    ),
    ("testkit", &["units", "model"]),
    (
        "fuzz-checks",
        &[
            "units",
            "model",
            "freeblock",
            "host",
            "disksim",
            "nbd",
            "trace",
            "sim",
            "live",
            "extract",
        ],
    ),
    ("cli", &["freewheel"]),
    // The command line is the package's command, too.
    ("python", &["freewheel", "cli"]),
    (
        "bench",
        &["units", "model", "array", "freeblock", "nbd", "trace", "sim", "live", "reproduce"],
    ),
];

/// Crates that know no clock, thread, file, network or environment.
const PURE: &[&str] = &["units", "model", "array", "freeblock", "host", "disksim", "nbd"];
const IMPURE_NAMES: &[&str] =
    &["std::time", "std::fs", "std::net", "std::thread", "std::env", "std::process", "std::io"];
/// Modules of `std` that may not be imported in a group either.
const IMPURE_MODULES: &[&str] =
    &["time", "fs", "net", "thread", "env", "process", "io", "os", "sync"];
/// External crates that pure crates may use: data and numbers, without effects.
const PURE_DEPENDENCIES: &[&str] = &[
    "hdrhistogram",
    "libm",
    "percent-encoding",
    // Says what will be read soon; what is read is the same.
    "prefetch-index",
    "schemars",
    "serde",
    "slab",
    "strsim",
    "thiserror",
    "freewheel-units",
    "freewheel-model",
    "freewheel-freeblock",
];
/// Items of `std::sync` that deterministic crates may use everywhere: they share values and order no
/// events.
const SHARING: &[&str] = &["Arc", "Weak"];
/// Files of deterministic crates that may use more of `std::sync`, by the end of their path, and what:
/// flags that stop a search, counters of progress, and results of independent parts, which are put in
/// order when all threads have ended.
const SYNCHRONISED: &[(&str, &[&str])] = &[
    ("trace/src/input.rs", &["atomic", "OnceLock"]),
    // For the end of the process.
    ("trace/src/temporary_names.rs", &["Mutex", "MutexGuard", "PoisonError"]),
    ("sim/src/experiment/fleet.rs", &["Mutex", "PoisonError"]),
    // Copies of tasks for runs on several threads.
    ("sim/src/experiment/prepared.rs", &["Mutex", "PoisonError"]),
    ("postmark/free_reads.rs", &["Mutex", "MutexGuard", "PoisonError"]),
    // The planners of all arms share their moves on one thread, and a planner must be `Send`.
    ("array/src/files/gap_moves.rs", &["Mutex", "MutexGuard", "PoisonError"]),
    // The texts of shipped drives never change.
    ("sim/src/library.rs", &["OnceLock"]),
    ("background/mod.rs", &["atomic"]),
    ("reproduce/src/lib.rs", &["atomic"]),
    ("reproduce/src/tr03.rs", &["atomic", "Mutex"]),
    ("study/src/progress.rs", &["atomic"]),
    ("fleet/run.rs", &["atomic", "Mutex", "PoisonError"]),
    ("sweep/loads.rs", &["Mutex", "MutexGuard", "PoisonError"]),
    ("sweep/run.rs", &["Mutex", "PoisonError"]),
    ("scrub/scan.rs", &["atomic"]),
    ("scrub/projection.rs", &["atomic"]),
];
/// Crates whose results must be the same bytes every time.
const DETERMINISTIC: &[&str] = &[
    "units",
    "model",
    "array",
    "freeblock",
    "host",
    "trace",
    "disksim",
    "sim",
    "extract",
    "study",
    "reproduce",
    "report",
];
/// The only crates with a `clippy.toml` of their own, which lifts the bans of the workspace's: one measures
/// how long things take, one waits for the time, and one ends random damage in time.
const MAY_READ_THE_TIME: &[&str] = &["bench", "fuzz-checks", "live"];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") && !is_test(&path) {
            files.push(path);
        }
    }
    files
}

/// True if a file below `src` is a module of tests.
fn is_test(path: &Path) -> bool {
    path.ends_with("tests.rs") || path.parent().is_some_and(|folder| folder.ends_with("tests"))
}

/// The file without comments and without its tests, which may name anything.
fn code_of(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let shipped = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    shipped.lines().filter(is_code).collect::<Vec<_>>().join("\n")
}

/// True if `name` stands in `code` as a whole word.
fn names(code: &str, name: &str) -> bool {
    let boundary = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
    code.match_indices(name).any(|(at, _)| {
        boundary(code[..at].chars().next_back()) && boundary(code[at + name.len()..].chars().next())
    })
}

fn violations(of: &[&str], forbidden: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for krate in of {
        for file in sources(&crates().join(krate).join("src")) {
            let code = code_of(&file);
            for name in forbidden.iter().filter(|name| names(&code, name)) {
                found.push(format!("{} names {name}", file.display()));
            }
        }
    }
    found
}

#[test]
fn pure_crates_use_no_outside_world() {
    assert_eq!(violations(PURE, IMPURE_NAMES), Vec::<String>::new());
}

/// Words of `code` inside the braces of `std::{...}`.
fn grouped_std_imports(code: &str) -> Vec<&str> {
    let groups = code.split("std::{").skip(1);
    let inside = groups.filter_map(|rest| rest.split("};").next());
    inside.flat_map(|group| group.split(|c: char| !c.is_alphanumeric() && c != '_')).collect()
}

#[test]
fn pure_crates_use_no_grouped_escape() {
    for krate in PURE {
        for file in sources(&crates().join(krate).join("src")) {
            let code = code_of(&file);
            let imported = grouped_std_imports(&code);
            let forbidden = imported.iter().find(|word| IMPURE_MODULES.contains(word));
            assert_eq!(forbidden, None, "{}", file.display());
        }
    }
    let sneaky = "use std::{env as e, collections::BTreeMap};\nfn f() {}";
    assert!(grouped_std_imports(sneaky).contains(&"env"));
}

#[test]
fn pure_crates_depend_on_pure_ones() {
    for krate in PURE {
        let manifest = fs::read_to_string(crates().join(krate).join("Cargo.toml")).unwrap();
        assert!(!manifest.contains("build-dependencies") && !manifest.contains("[target"));
        for key in dependencies(&manifest) {
            assert!(PURE_DEPENDENCIES.contains(&key.as_str()), "crates/{krate} depends on {key}");
        }
    }
}

/// Items and modules of `std::sync` that `code` names.
fn synchronisation(code: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for rest in code.split("std::sync::").skip(1) {
        let end = if rest.starts_with('{') { '}' } else { ';' };
        let group = rest.split(end).next().unwrap_or_default();
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let mut words = group.split(|c: char| !is_word(c)).filter(|word| !word.is_empty());
        if end == '}' { found.extend(words) } else { found.extend(words.next()) }
    }
    found
}

#[test]
fn reproducible_crates_share_only_values() {
    let mut found = Vec::new();
    for krate in DETERMINISTIC {
        for file in sources(&crates().join(krate).join("src")) {
            let code = code_of(&file);
            let exception = SYNCHRONISED.iter().find(|(end, _)| file.ends_with(end));
            let exception = exception.map_or(&[][..], |(_, names)| names);
            let may = |name: &&str| SHARING.contains(name) || exception.contains(name);
            let more = synchronisation(&code).into_iter().filter(|name| !may(name));
            found.extend(more.map(|name| format!("{} names std::sync::{name}", file.display())));
        }
    }
    assert_eq!(found, Vec::<String>::new());
    let both = "use std::sync::{Arc, Mutex};\nuse std::sync::atomic::AtomicU64;";
    assert_eq!(synchronisation(both), ["Arc", "Mutex", "atomic"]);
}

#[test]
fn clippy_bans_are_lifted_for_real_time() {
    let own = |(name, _): &&(&str, _)| crates().join(name).join("clippy.toml").exists();
    let mut lifted: Vec<&str> = LAYERS.iter().filter(own).map(|(name, _)| *name).collect();
    lifted.sort_unstable();
    assert_eq!(lifted, MAY_READ_THE_TIME);
}

/// Names of the crates that a manifest depends on outside of tests.
fn dependencies(manifest: &str) -> Vec<String> {
    let section = manifest.split("[dependencies]").nth(1).unwrap_or_default();
    let section = section.split("\n[").next().unwrap_or_default();
    let key = |line: &str| line.split(['.', ' ', '=']).next().unwrap_or_default().to_string();
    section.lines().filter(|line| line.contains('=')).map(key).collect()
}

#[test]
fn crates_depend_downwards_only() {
    let allowed: BTreeMap<&str, &[&str]> = LAYERS.iter().copied().collect();
    for entry in fs::read_dir(crates()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let layer = allowed.get(name.as_str());
        let layer = layer.unwrap_or_else(|| panic!("crates/{name} has no row in LAYERS"));
        let manifest = fs::read_to_string(crates().join(&name).join("Cargo.toml")).unwrap();
        for key in dependencies(&manifest).iter().filter(|key| key.starts_with("freewheel")) {
            let target = key.strip_prefix("freewheel-").unwrap_or(key);
            assert!(layer.contains(&target), "crates/{name} must not depend on {target}");
        }
    }
}

#[test]
fn layer_search_finds_targets() {
    assert!(names("let x = std::time::Duration::ZERO;", "std::time"));
    assert!(!names("use std::timely;", "std::time"));
    assert!(!names("use not_std::time;", "std::time"));
}
