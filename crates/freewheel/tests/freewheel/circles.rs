//! Files and folders of a crate use each other in one direction only.
//!
//! A module is a node of a tree of folders. Within every folder each file or subfolder is one member,
//! and so is the code of the folder's own `mod.rs`. One member uses another when any path of its code
//! (`use crate::`, `super::`, `self::`, and paths within code) leads to an item defined there.
//! Re-exports are followed to the definition. No chain of uses may lead back.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// Crates in which not even a `mod.rs` and the files of its folder use each other in circles. Elsewhere
/// a file may use what its folder's `mod.rs` defines: the two are one module.
const STRICT: &[&str] = &["freeblock", "freewheel", "testkit", "units"];

/// Path of a module from its crate's root on.
type Module = Vec<String>;

/// A module's code, and the names that it imports.
#[derive(Default)]
struct File {
    /// Paths that its code names, each from one of `crate`, `self`, `super` or a child on.
    paths: BTreeSet<Vec<String>>,
    /// Names that `use` items bring into scope: name, path, and whether it is only passed on.
    imports: BTreeMap<String, Import>,
}

struct Import {
    path: Vec<String>,
    /// Re-exported, and not used by the file's own code.
    is_facade: bool,
}

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Modules below `folder`, without those of tests.
fn modules(folder: &Path, at: &[String], found: &mut BTreeMap<Module, PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        if stem == "tests" || stem == "bin" {
            continue;
        }
        let child = || [at, std::slice::from_ref(&stem)].concat();
        if path.is_dir() {
            modules(&path, &child(), found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let is_own = stem == "mod" || at.is_empty() && (stem == "lib" || stem == "main");
            found.insert(if is_own { at.to_vec() } else { child() }, path);
        }
    }
}

/// Words, `::`, and single other characters of the code, without comments and test modules; a literal is one
/// token.
fn tokens(text: &str) -> Vec<String> {
    let shipped = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let mut tokens = Vec::new();
    flatten(shipped.parse().unwrap(), &mut tokens);
    tokens
}

fn flatten(stream: TokenStream, found: &mut Vec<String>) {
    let mut is_joint = false;
    for tree in stream {
        let is_second = std::mem::take(&mut is_joint);
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                found.push(open.to_string());
                flatten(group.stream(), found);
                found.push(close.to_string());
            }
            TokenTree::Punct(punct) if punct.as_char() == ':' => {
                if is_second {
                    found.pop();
                }
                found.push(if is_second { "::" } else { ":" }.to_string());
                is_joint = !is_second && punct.spacing() == Spacing::Joint;
            }
            other => found.push(other.to_string()),
        }
    }
}

/// The paths of a `use` tree that begins at `at`, each with the name that it brings into scope; behind
/// it, the next token's number.
fn use_tree(
    tokens: &[String],
    mut at: usize,
    before: &[String],
    found: &mut Vec<(String, Vec<String>)>,
) -> usize {
    let mut path = before.to_vec();
    loop {
        match tokens[at].as_str() {
            "{" => {
                at += 1;
                while tokens[at] != "}" {
                    at = use_tree(tokens, at, &path, found);
                    at += usize::from(tokens[at] == ",");
                }
                return at + 1;
            }
            "::" => at += 1,
            "as" => {
                found.push((tokens[at + 1].clone(), path));
                return at + 2;
            }
            "," | "}" | ";" => {
                // `self` in braces is the module before it.
                if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
                    path.pop();
                }
                found.push((path.last().cloned().unwrap_or_default(), path));
                return at;
            }
            word => {
                path.push(word.to_string());
                at += 1;
            }
        }
    }
}

fn parse(text: &str) -> File {
    let tokens = tokens(text);
    let (mut file, mut at) = (File::default(), 0);
    let (mut imports, mut words) = (Vec::new(), BTreeSet::new());
    let mut is_public = false;
    while at < tokens.len() {
        // `use<..>` within a type is no import.
        if tokens[at] == "use" && tokens[at + 1] != "<" {
            let mut tree = Vec::new();
            at = use_tree(&tokens, at + 1, &[], &mut tree);
            imports.extend(tree.into_iter().map(|(name, path)| (name, path, is_public)));
            is_public = false;
            continue;
        }
        is_public = match tokens[at].as_str() {
            "pub" => true,
            // `pub(super) use`
            "(" | ")" | "crate" | "super" | "in" => is_public,
            _ => false,
        };
        let is_start = at == 0 || tokens[at - 1] != "::";
        let is_word = tokens[at].starts_with(|c: char| c.is_alphabetic() || c == '_');
        let is_declared = at > 0 && tokens[at - 1] == "mod";
        if is_start && is_word && !is_declared {
            let mut path = vec![tokens[at].clone()];
            let mut next = at + 1;
            while tokens.get(next).is_some_and(|token| token == "::")
                && let Some(word) = tokens.get(next + 1)
                && word.starts_with(|c: char| c.is_alphabetic() || c == '_')
            {
                path.push(word.clone());
                next += 2;
            }
            words.insert(path[0].clone());
            // A word alone is an import, counted there, or `super` in `pub(super)`.
            if path.len() > 1 {
                file.paths.insert(path);
            }
        }
        at += 1;
    }
    for (name, path, is_public) in imports {
        let is_facade = is_public && !words.contains(&name);
        file.imports.insert(name, Import { path, is_facade });
    }
    file
}

/// A crate's modules.
struct Source {
    files: BTreeMap<Module, File>,
}

impl Source {
    fn read(krate: &str) -> Self {
        let mut paths = BTreeMap::new();
        modules(&crates().join(krate).join("src"), &[], &mut paths);
        let file = |path: &PathBuf| parse(&fs::read_to_string(path).unwrap());
        Self { files: paths.iter().map(|(module, path)| (module.clone(), file(path))).collect() }
    }

    fn is_module(&self, module: &[String]) -> bool {
        self.files.contains_key(module) || self.files.keys().any(|other| other.starts_with(module))
    }

    /// The module that defines what `path` names in `from`; None when it lies outside of the crate.
    fn definer(&self, from: &Module, path: &[String], depth: usize) -> Option<Module> {
        if depth == 0 {
            return None;
        }
        let mut at = from.clone();
        let mut rest = path;
        match path[0].as_str() {
            "crate" => (at, rest) = (Vec::new(), &path[1..]),
            "self" => rest = &path[1..],
            "super" => {
                while rest.first().is_some_and(|word| word == "super") {
                    at.pop();
                    rest = &rest[1..];
                }
            }
            _ => {}
        }
        let is_relative = rest.len() == path.len();
        for (number, word) in rest.iter().enumerate() {
            let child = [at.clone(), vec![word.clone()]].concat();
            if self.is_module(&child) {
                at = child;
                continue;
            }
            let import = self.files.get(&at).and_then(|file| file.imports.get(word));
            if let Some(import) = import.filter(|import| import.path != path) {
                return self.definer(&at, &import.path, depth - 1);
            }
            if is_relative && number == 0 {
                return None;
            }
            break;
        }
        Some(at)
    }

    /// Each module, and the others that it uses.
    fn uses(&self) -> BTreeSet<(Module, Module)> {
        let mut uses = BTreeSet::new();
        for (module, file) in &self.files {
            let imported = file.imports.values().filter(|import| !import.is_facade);
            for path in imported.map(|import| &import.path).chain(&file.paths) {
                let used = self.definer(module, path, 9).filter(|used| used != module);
                uses.extend(used.map(|used| (module.clone(), used)));
            }
        }
        uses
    }

    /// Circles in each folder: the folder, and the members of it that lead to each other.
    fn circles(&self, is_strict: bool) -> Vec<(String, BTreeSet<String>)> {
        let uses = self.uses();
        let folders: BTreeSet<&[String]> =
            self.files.keys().flat_map(|file| (0..file.len()).map(|n| &file[..n])).collect();
        let mut circles = Vec::new();
        for folder in folders {
            let member = |module: &Module| {
                let own = || "mod".to_string();
                let below = module.strip_prefix(folder)?;
                Some(below.first().cloned().unwrap_or_else(own))
            };
            let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
            for (from, to) in &uses {
                if let (Some(from), Some(to)) = (member(from), member(to))
                    && from != to
                    && (is_strict || to != "mod")
                {
                    edges.entry(from).or_default().insert(to);
                }
            }
            let name = if folder.is_empty() { ".".into() } else { folder.join("/") };
            circles.extend(strongly_connected(&edges).into_iter().map(|c| (name.clone(), c)));
        }
        circles
    }
}

/// All that can be reached from `from`.
fn reachable(edges: &BTreeMap<String, BTreeSet<String>>, from: &str) -> BTreeSet<String> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![from.to_string()]);
    while let Some(at) = open.pop() {
        for to in edges.get(&at).into_iter().flatten() {
            if reached.insert(to.clone()) {
                open.push(to.clone());
            }
        }
    }
    reached
}

/// Sets of members of which each leads to every other and back.
fn strongly_connected(edges: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<BTreeSet<String>> {
    let reach: BTreeMap<&str, BTreeSet<String>> =
        edges.keys().map(|from| (from.as_str(), reachable(edges, from))).collect();
    let is_back = |from: &str, to: &str| reach.get(to).is_some_and(|reach| reach.contains(from));
    let circle = |from: &&str| -> BTreeSet<String> {
        reach[from].iter().filter(|to| is_back(from, to)).cloned().collect()
    };
    reach.keys().map(circle).filter(|circle| circle.len() > 1).collect()
}

fn crate_names() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(crates())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn files_and_folders_depend_one_way() {
    let mut circles = Vec::new();
    for krate in crate_names() {
        for (folder, circle) in Source::read(&krate).circles(STRICT.contains(&krate.as_str())) {
            circles.push(format!("crates/{krate}, folder {folder}: {circle:?}"));
        }
    }
    assert!(circles.is_empty(), "circles:\n{}", circles.join("\n"));
}

fn source(files: &[(&str, &str)]) -> Source {
    let module = |path: &str| path.split('/').filter(|s| !s.is_empty()).map(Into::into).collect();
    Source { files: files.iter().map(|(path, text)| (module(path), parse(text))).collect() }
}

#[test]
fn circle_search_sees_groups_and_re_exports() {
    let members = |circles: Vec<(String, BTreeSet<String>)>| -> Vec<(String, Vec<String>)> {
        circles.into_iter().map(|(at, circle)| (at, circle.into_iter().collect())).collect()
    };
    let through_a_facade = source(&[
        ("", "mod a;\nmod b;\npub use b::{Deep, Other as B};"),
        ("a", "use crate::{B, x::y};\npub struct A;"),
        ("b", "pub struct Other;\nfn f(_: super::a::A) {}"),
    ]);
    let circle = |at: &str, names: [&str; 2]| (at.to_string(), names.map(String::from).to_vec());
    assert_eq!(members(through_a_facade.circles(true)), [circle(".", ["a", "b"])]);
    let between_folders = source(&[
        ("", "mod one;\nmod two;"),
        ("one/a", "use crate::two::b::B;"),
        ("one/c", "pub struct C;"),
        ("two/b", "use crate::one::c::C;\n// use crate::two::d::D;\n\"use crate::two::d::D;\""),
        ("two/d", "use super::b::B;"),
    ]);
    assert_eq!(members(between_folders.circles(true)), [circle(".", ["one", "two"])]);
    let with_its_folder = source(&[
        ("", "mod a;\nuse a::A;\npub struct Root;"),
        ("a", "use super::Root;\npub(super) struct A;"),
    ]);
    assert_eq!(members(with_its_folder.circles(true)), [circle(".", ["a", "mod"])]);
    assert_eq!(members(with_its_folder.circles(false)), []);
}
