//! The documents: sizes, links, commands and numbers.
//!
//! A block of commands (a fence `sh`) runs in a folder with the repository's `examples`, `data` and
//! `drives`, a small trace, `mytrace.csv`, and a web server's log, `access.log`; or `<!-- not run: reason
//! -->` stands on the line before it. A number of `data/reproduce.json` is followed by `<!-- = ID: QUANTITY
//! -->`, or by `<!-- = papers: KEY -->` for the counts of the papers' rows. A block behind `<!-- file: PATH
//! -->` is the beginning of that file.

#[path = "docs/glossary.rs"]
mod glossary;
#[path = "docs/keys.rs"]
mod keys;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rayon::prelude::*;
use serde_json::Value;

const KIB: usize = 1024;
const PAGE_BYTES_MAX: usize = 12 * KIB;

const SMALL_TRACE: &str = "\
arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns
0,R,0,4096,0,5000000
1000000,W,409600,8192,0,6000000
2000000,F,0,0,0,7000000
9000000,R,8192,4096,0,12000000
20000000,W,0,4096,0,24000000
";

/// A document, by its path from the repository's root.
struct Page {
    path: PathBuf,
    text: String,
}

/// A fenced block: its language, the line before it, and its lines.
struct Block<'a> {
    language: &'a str,
    before: &'a str,
    lines: Vec<&'a str>,
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// All Markdown files below a folder of the repository.
fn book(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(repository().join(folder)).unwrap();
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| folder.join(entry.unwrap().file_name()))
        .flat_map(|path| if repository().join(&path).is_dir() { book(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    paths.sort();
    paths
}

fn pages() -> Vec<Page> {
    let at_root = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md"];
    let paths = at_root.iter().map(PathBuf::from).chain(book(Path::new("docs")));
    paths
        .map(|path| Page { text: fs::read_to_string(repository().join(&path)).unwrap(), path })
        .collect()
}

/// The lines of prose, with fences left out, and the fences.
fn split(text: &str) -> (Vec<&str>, Vec<Block<'_>>) {
    let (mut prose, mut blocks, mut open): (Vec<&str>, Vec<Block<'_>>, bool) = Default::default();
    for line in text.lines() {
        match (line.strip_prefix("```"), open) {
            (Some(language), false) => {
                let before = prose.last().copied().unwrap_or_default();
                blocks.push(Block { language, before, lines: Vec::new() });
                open = true;
            }
            (Some(_), true) => open = false,
            (None, true) => blocks.last_mut().unwrap().lines.push(line),
            (None, false) => prose.push(line),
        }
    }
    (prose, blocks)
}

/// Texts between backticks, and outside them.
fn code_and_words(line: &str) -> (Vec<&str>, String) {
    let pieces: Vec<&str> = line.split('`').collect();
    let code = pieces.iter().skip(1).step_by(2).copied().collect();
    (code, pieces.iter().step_by(2).copied().collect())
}

fn links(text: &str) -> Vec<String> {
    let (prose, _) = split(text);
    let target = |piece: &str| piece.split(')').next().unwrap().to_owned();
    prose
        .iter()
        .flat_map(|line| code_and_words(line).1.split("](").skip(1).map(target).collect::<Vec<_>>())
        .collect()
}

/// The anchors of a page's headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = split(text).0.into_iter().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let words = line.trim_start_matches('#').trim().to_lowercase();
            let kept = words.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

/// The commands of a block without their comments, each with the lines that continue it.
fn commands(block: &Block<'_>) -> Vec<String> {
    let joined = block.lines.join("\n").replace("\\\n", " ");
    let without_comment = |line: &str| line.split(" #").next().unwrap().trim().to_owned();
    joined.lines().map(without_comment).filter(|line| line.starts_with("freewheel ")).collect()
}

fn not_run(block: &Block<'_>) -> Option<String> {
    let reason = block.before.strip_prefix("<!-- not run: ")?.strip_suffix(" -->")?;
    Some(reason.to_owned()).filter(|reason| !reason.is_empty())
}

fn freewheel(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_freewheel")).args(args).output().unwrap();
    assert!(output.status.success(), "freewheel {args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A web server's log of 300 requests in a minute.
fn small_log() -> String {
    let line = |number: u32| {
        let (second, file) = (number / 5, number % 7 * (number % 5));
        format!("a - - [01/Aug/1995:00:00:{second:02} -0400] \"GET /{file} HTTP/1.0\" 200 90000\n")
    };
    (0..300).map(line).collect()
}

/// A folder in which the commands of the documents run.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["examples", "data", "drives"] {
        std::os::unix::fs::symlink(repository().join(name), folder.path().join(name)).unwrap();
    }
    fs::write(folder.path().join("mytrace.csv"), SMALL_TRACE).unwrap();
    fs::write(folder.path().join("access.log"), small_log()).unwrap();
    folder
}

fn run(block: &Block<'_>, folder: &Path) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_freewheel")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-ec", &block.lines.join("\n")]).current_dir(folder).env("PATH", path);
    shell.output().unwrap()
}

/// The number before a comment `<!-- = ... -->`, and what the comment says.
fn numbers(text: &str) -> Vec<(&str, &str)> {
    let pieces: Vec<&str> = text.split("<!-- = ").collect();
    let pairs = pieces.windows(2).map(|pair| {
        let digits = pair[0].rsplit(|c: char| !(c.is_ascii_digit() || ".-".contains(c))).next();
        (digits.unwrap(), pair[1].split(" -->").next().unwrap())
    });
    pairs.collect()
}

/// The numbers of the committed full run, as documents refer to them.
fn results() -> BTreeMap<String, f64> {
    let text = fs::read_to_string(repository().join("data/reproduce.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let rows = document["rows"].as_array().unwrap().iter().map(|row| {
        let [id, quantity] = ["id", "quantity"].map(|key| row[key].as_str().unwrap());
        (format!("{id}: {quantity}"), row["ours"].as_f64().unwrap_or(f64::NAN))
    });
    let counts = document["papers"].as_object().unwrap().iter();
    rows.chain(counts.map(|(key, n)| (format!("papers: {key}"), n.as_f64().unwrap()))).collect()
}

/// True if a printed number is the other one, rounded to the same number of digits.
fn rounds_to(printed: &str, exact: f64) -> bool {
    let decimals = printed.split_once('.').map_or(0, |(_, digits)| digits.len());
    let unit = 10_f64.powi(-i32::try_from(decimals).unwrap());
    printed.parse::<f64>().is_ok_and(|value| (value - exact).abs() <= 0.501 * unit)
}

#[test]
fn documents_keep_to_their_sizes() {
    for page in pages() {
        let most = match page.path.to_str().unwrap() {
            "README.md" => 9 * KIB,
            "CHANGELOG.md" => 4 * KIB,
            _ => PAGE_BYTES_MAX,
        };
        let bytes = page.text.len();
        assert!(bytes <= most, "{}: {bytes} bytes, at most {most}", page.path.display());
    }
}

#[test]
fn links_and_anchors_lead_somewhere() {
    for page in pages() {
        for link in links(&page.text).iter().filter(|link| !link.contains("://")) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let here = repository().join(&page.path);
            let target = if file.is_empty() { here } else { here.parent().unwrap().join(file) };
            assert!(target.exists(), "{}: {link}: no such file", page.path.display());
            if !anchor.is_empty() {
                let there = anchors(&fs::read_to_string(&target).unwrap());
                assert!(there.contains(anchor), "{}: {link}: no such heading", page.path.display());
            }
        }
    }
}

#[test]
fn summary_lists_every_page_once() {
    let summary = fs::read_to_string(repository().join("docs/SUMMARY.md")).unwrap();
    let mut listed: Vec<PathBuf> =
        links(&summary).iter().map(|link| Path::new("docs").join(link)).collect();
    listed.sort();
    let mut written = book(Path::new("docs"));
    written.retain(|path| path != Path::new("docs/SUMMARY.md"));
    assert_eq!(listed, written);
}

#[test]
fn commands_stand_in_shell_blocks() {
    for page in pages() {
        for block in split(&page.text).1.iter().filter(|block| block.language != "sh") {
            let commands = commands(block);
            assert!(commands.is_empty(), "{}: {commands:?}: no ```sh", page.path.display());
        }
    }
}

/// Runs the shell blocks of a page one after the other in a folder of their own; returns their number.
fn run_blocks(page: &Page) -> usize {
    let folder = folder();
    let (_, blocks) = split(&page.text);
    let shell = blocks.iter().filter(|block| block.language == "sh" && not_run(block).is_none());
    let mut ran = 0;
    for block in shell.filter(|block| !commands(block).is_empty()) {
        let output = run(block, folder.path());
        let said = String::from_utf8_lossy(&output.stderr);
        let lines = block.lines.join("\n");
        assert!(output.status.success(), "{}:\n{lines}\n{said}", page.path.display());
        ran += 1;
    }
    ran
}

#[test]
fn command_blocks_run_or_say_why() {
    let ran: usize = pages().par_iter().map(run_blocks).sum();
    assert!(ran > 10, "{ran} blocks ran");
}

/// The commands of a page that are not run and those in its sentences.
fn mentioned(page: &Page) -> Vec<String> {
    let (prose, blocks) = split(&page.text);
    let code = prose.iter().flat_map(|line| code_and_words(line).0);
    let in_sentences = code.filter(|code| code.starts_with("freewheel ")).map(str::to_owned);
    let left_out = blocks.iter().filter(|block| not_run(block).is_some()).flat_map(commands);
    in_sentences.chain(left_out).collect()
}

/// The verb of a command, with its second word where it has one.
fn verb(command: &str) -> Vec<&str> {
    let words = command.split_whitespace().skip(1).take_while(|word| !word.starts_with('-'));
    let two_words = ["drive", "plan", "trace"]
        .iter()
        .any(|verb| command.starts_with(&format!("freewheel {verb} ")));
    words.take(if two_words { 2 } else { 1 }).collect()
}

#[test]
fn command_flags_mentioned_exist() {
    let mut helps: BTreeMap<Vec<String>, String> = BTreeMap::new();
    for page in pages() {
        for command in mentioned(&page) {
            let verb: Vec<&str> =
                verb(&command).into_iter().map(|word| word.trim_end_matches('`')).collect();
            let key = verb.iter().map(ToString::to_string).collect();
            let help =
                helps.entry(key).or_insert_with(|| freewheel(&[&verb[..], &["--help"]].concat()));
            let flags = command.split_whitespace().filter(|word| word.starts_with("--"));
            for flag in flags.map(|flag| flag.split('=').next().unwrap()) {
                assert!(help.contains(flag), "{}: {command}: no {flag}", page.path.display());
            }
        }
    }
    assert!(helps.len() > 8, "{:?}", helps.keys());
}

#[test]
fn claims_mentioned_exist() {
    let list = freewheel(&["reproduce", "--list"]);
    for page in pages() {
        for command in mentioned(&page).iter().filter(|it| it.starts_with("freewheel reproduce ")) {
            let words = command.split_whitespace().skip(2);
            for id in words.filter(|word| {
                word.starts_with("osdi00.")
                    || word.starts_with("beyond.")
                    || word.starts_with("fast02.")
            }) {
                assert!(list.contains(id), "{}: {command}: no {id}", page.path.display());
            }
        }
    }
}

/// The keys and values that a page names in code, without paths, examples and commands.
fn names(text: &str) -> BTreeSet<&str> {
    let (prose, _) = split(text);
    let code: Vec<&str> = prose.iter().flat_map(|line| code_and_words(line).0).collect();
    let is_name = |name: &&str| {
        name.starts_with(|c: char| c.is_ascii_lowercase())
            && name
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-.".contains(c))
    };
    code.into_iter().filter(is_name).map(|code| code.rsplit('.').next().unwrap()).collect()
}

#[test]
fn reference_keys_match_schemas() {
    let sim = freewheel(&["sim", "--schema"]) + "exos-x24-24tb";
    let drive = freewheel(&["drive", "schema"]);
    for (page, schema) in [("experiments", sim + &drive), ("drive-files", drive)] {
        let path = repository().join(format!("docs/reference/{page}.md"));
        let text = fs::read_to_string(path).unwrap();
        let unknown: Vec<&str> =
            names(&text).into_iter().filter(|name| !schema.contains(name)).collect();
        assert!(unknown.is_empty(), "{page}: {unknown:?}");
    }
}

/// The paths of all files below a folder.
fn files(folder: &Path) -> Vec<String> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let below = |path: PathBuf| match path.is_dir() {
        true => files(&path),
        false => vec![path.display().to_string()],
    };
    paths.flat_map(below).collect()
}

#[test]
fn source_files_mentioned_exist() {
    let files = files(&repository().join("crates"));
    for page in pages() {
        let (prose, _) = split(&page.text);
        let code = prose.iter().flat_map(|line| code_and_words(line).0);
        for name in code.filter(|name| name.ends_with(".rs")) {
            let there = files.iter().any(|file| file.ends_with(&format!("/{name}")));
            assert!(there, "{}: no {name}", page.path.display());
        }
    }
}

#[test]
fn architecture_folders_exist() {
    let text = fs::read_to_string(repository().join("ARCHITECTURE.md")).unwrap();
    let (prose, _) = split(&text);
    let rows = prose.iter().filter(|line| line.starts_with('|'));
    let folders = rows.flat_map(|line| code_and_words(line).0).filter(|name| name.contains("/src"));
    let missing: Vec<&str> =
        folders.filter(|name| !repository().join("crates").join(name).is_dir()).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn numbers_match_committed_run() {
    let results = results();
    for page in pages() {
        for (printed, row) in numbers(&page.text) {
            let exact =
                *results.get(row).unwrap_or_else(|| panic!("{}: no {row}", page.path.display()));
            let where_it_stands = page.path.display();
            assert!(rounds_to(printed, exact), "{where_it_stands}: {printed} is {exact}: {row}");
        }
    }
}

#[test]
fn readme_states_committed_results() {
    let readme = fs::read_to_string(repository().join("README.md")).unwrap();
    assert!(numbers(&readme).len() >= 12);
}

#[test]
fn numbers_differing_are_noticed() {
    assert_eq!(numbers("reads 47.7<!-- = a: b --> a day"), [("47.7", "a: b")]);
    assert!(rounds_to("47.7", 47.749) && rounds_to("0.0", -0.02) && rounds_to("72", 72.0));
    assert!(!rounds_to("47.8", 47.749) && !rounds_to("", 0.0));
}

/// Blocks that are the beginning of a file, up to its tests, with its path.
fn files_shown(text: &str) -> Vec<(&str, String)> {
    let shown = split(text).1.into_iter().filter_map(|block| {
        let path = block.before.strip_prefix("<!-- file: ")?.strip_suffix(" -->")?;
        Some((path, block.lines.join("\n")))
    });
    shown.collect()
}

#[test]
fn page_files_match_repository() {
    let pages = pages();
    let shown: Vec<_> = pages.iter().flat_map(|page| files_shown(&page.text)).collect();
    for (path, block) in &shown {
        let file = fs::read_to_string(repository().join(path)).unwrap();
        let code = file.split("\n#[cfg(test)]").next().unwrap();
        assert!(code.trim_end() == block, "{path} differs from the page");
    }
    assert!(shown.len() >= 2, "the page about extensions shows files");
}

/// A list that has lost its place in the code would plant no fault.
#[test]
fn planted_faults_have_place_and_row() {
    let list = fs::read_to_string(repository().join("planted-faults/faults.toml")).unwrap();
    let list: toml::Table = list.parse().unwrap();
    let page = repository().join("docs/decisions/planted-faults.md");
    let page = fs::read_to_string(page).unwrap();
    let faults = list["fault"].as_array().unwrap();
    for fault in faults {
        let of = |key: &str| fault[key].as_str().unwrap();
        let code = fs::read_to_string(repository().join(of("file"))).unwrap();
        assert_eq!(code.matches(of("search")).count(), 1, "{}", of("name"));
        let test = of("test").rsplit([':', ' ']).next().unwrap();
        let row = format!("| {} | {} | `{test}` |", of("name"), of("harm"));
        assert!(page.contains(&row), "no row on the page: {row}");
    }
    assert_eq!(page.matches("` |\n").count(), faults.len(), "rows of faults that are not planted");
}
