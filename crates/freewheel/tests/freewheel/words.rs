//! First words of doc comments: the subject comes first, as a noun or a verb.

use std::fs;
use std::path::{Path, PathBuf};

/// First words behind which the subject comes late or never.
const LATE_SUBJECTS: &[&str] = &[
    "What", "Whether", "How", "Of", "Its", "When", "Where", "Why", "Which", "Those", "Whose", "It",
    "They", "The same",
];

/// Largest share of doc comments with such a first word, in per cent.
const SHARE_MAX: usize = 2;

fn sources(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let below = |path: PathBuf| if path.is_dir() { sources(&path) } else { vec![path] };
    let files = paths.flat_map(below);
    files.filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}

/// The first lines of the doc comments in some code.
fn first_lines(code: &str) -> Vec<&str> {
    let doc = |line: &str| {
        let text = line.trim_start();
        let is_doc = text.starts_with("//!") || text.starts_with("///");
        is_doc && !text.starts_with("////")
    };
    let lines: Vec<&str> = code.lines().collect();
    let begins = |&number: &usize| doc(lines[number]) && (number == 0 || !doc(lines[number - 1]));
    let first = (0..lines.len()).filter(begins);
    first.map(|number| lines[number].trim_start()[3..].trim()).collect()
}

fn has_late_subject(text: &str) -> bool {
    let is_whole = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    LATE_SUBJECTS.iter().any(|word| text.strip_prefix(word).is_some_and(is_whole))
}

#[test]
fn doc_comments_begin_with_their_subject() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut all, mut late) = (0, Vec::new());
    for path in sources(&crates) {
        let code = fs::read_to_string(&path).unwrap();
        for text in first_lines(&code) {
            all += 1;
            if has_late_subject(text) {
                late.push(format!("{}: {text}", path.display()));
            }
        }
    }
    assert!(all > 10_000, "only {all} doc comments were found");
    assert!(late.len() * 100 <= all * SHARE_MAX, "{} of {all}: {late:#?}", late.len());
}

#[test]
fn late_subject_is_noticed() {
    let code = "//! Whether it is so.\n//! What follows does not count.\n\n/// Itself a noun.\nfn f() {}\n\
                \n    /// The same again.\n    // What a plain comment says is free.\n/// Of all.\n";
    let late: Vec<&str> =
        first_lines(code).into_iter().filter(|text| has_late_subject(text)).collect();
    assert_eq!(late, ["Whether it is so.", "The same again.", "Of all."]);
}
