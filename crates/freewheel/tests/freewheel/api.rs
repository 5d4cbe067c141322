//! The public interface as a text, so that every change of it shows, and its size.
//!
//! The text has a line for each item: its kind, its name, and the crate that defines a re-exported one.
//! Functions of this crate itself have their signature. `cargo insta review` accepts a change.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use syn::{Attribute, ImplItem, Item, UseTree, Visibility};

/// Most items of the root, modules included.
const ROOT_MAX: usize = 37;

/// Most items of the root and all modules; an item that both offer counts once.
const ALL_MAX: usize = 270;

/// An item that this crate offers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Offered {
    /// Kind and name, or signature.
    text: String,
    is_documented: bool,
}

/// A `pub use` of one item.
struct ReExport {
    /// Path of the item from the crate on.
    path: Vec<String>,
    /// Name under which it is offered.
    name: String,
}

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn parse(path: &Path) -> syn::File {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn is_documented(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| attribute.path().is_ident("doc"))
}

/// Kind and name of an item that a module defines, if it is public.
fn definition(item: &Item) -> Option<(&'static str, String, &[Attribute])> {
    let (kind, visibility, name, attributes) = match item {
        Item::Const(item) => ("const", &item.vis, &item.ident, &item.attrs),
        Item::Enum(item) => ("enum", &item.vis, &item.ident, &item.attrs),
        Item::Fn(item) => ("fn", &item.vis, &item.sig.ident, &item.attrs),
        Item::Static(item) => ("static", &item.vis, &item.ident, &item.attrs),
        Item::Struct(item) => ("struct", &item.vis, &item.ident, &item.attrs),
        Item::Trait(item) => ("trait", &item.vis, &item.ident, &item.attrs),
        Item::Type(item) => ("type", &item.vis, &item.ident, &item.attrs),
        _ => return None,
    };
    is_public(visibility).then(|| (kind, name.to_string(), &attributes[..]))
}

/// The kinds of [`definition`].
const KINDS: [&str; 7] = ["const", "enum", "fn", "static", "struct", "trait", "type"];

/// All items that a `use` brings into scope.
fn re_exports(tree: &UseTree, before: &[String], found: &mut Vec<ReExport>) {
    let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
    match tree {
        UseTree::Path(path) => re_exports(&path.tree, &with(&path.ident), found),
        UseTree::Name(name) => {
            found.push(ReExport { path: with(&name.ident), name: name.ident.to_string() });
        }
        UseTree::Rename(rename) => {
            found.push(ReExport { path: with(&rename.ident), name: rename.rename.to_string() });
        }
        UseTree::Group(group) => {
            group.items.iter().for_each(|tree| re_exports(tree, before, found));
        }
        UseTree::Glob(_) => panic!("{}::*: name each item", before.join("::")),
    }
}

/// All Rust files below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let files = paths.into_iter().flat_map(|path| match path.is_dir() {
        true => sources(&path),
        false => vec![path],
    });
    files.filter(|path| path.extension().is_some_and(|ending| ending == "rs")).collect()
}

/// Kind of an item of another crate, found by its name in that crate's files. Of several of that name the
/// one counts whose file is named after the path's last module.
fn kind_of(path: &[String]) -> (&'static str, bool) {
    let krate = path[0].strip_prefix("freewheel_").expect("another crate of this workspace");
    let (name, module) = (&path[path.len() - 1], &path[path.len() - 2]);
    let mut found = BTreeSet::new();
    for file in sources(&crates().join(krate).join("src")) {
        let is_near = file.components().any(|part| {
            let part = part.as_os_str().to_string_lossy();
            part.strip_suffix(".rs").unwrap_or(&part) == module
        });
        // Parsing takes long, and a definition has its name behind its kind.
        let text = fs::read_to_string(&file).unwrap();
        if !KINDS.iter().any(|kind| text.contains(&format!("pub {kind} {name}"))) {
            continue;
        }
        for item in &parse(&file).items {
            if let Some((kind, _, attributes)) = definition(item).filter(|item| item.1 == *name) {
                found.insert((!is_near, kind, is_documented(attributes)));
            }
        }
    }
    let (is_elsewhere, kind, is_documented) =
        *found.first().unwrap_or_else(|| panic!("{} is no item", path.join("::")));
    let rivals = found.iter().filter(|rival| rival.0 == is_elsewhere).count();
    assert_eq!(rivals, 1, "{}: several items of that name: {found:?}", path.join("::"));
    (kind, is_documented)
}

/// The signature of a function in the text of its file, in one line.
fn signature(text: &str, name: &str) -> String {
    let starts = ["(", "<"].map(|next| text.find(&format!("pub fn {name}{next}")));
    let start = starts.into_iter().flatten().next().unwrap_or_else(|| panic!("{name} is missing"));
    let end = text[start..].find(" {\n").expect("a body");
    let words: Vec<&str> = text[start..][..end].split_whitespace().collect();
    words.join(" ").replace("( ", "(").replace(", )", ")").replacen("pub ", "", 1)
}

/// Public functions of a type that a module of this crate defines.
fn methods(text: &str, item: &syn::ItemImpl) -> Vec<Offered> {
    let of = match &*item.self_ty {
        syn::Type::Path(path) if item.trait_.is_none() => path.path.segments[0].ident.to_string(),
        _ => return Vec::new(),
    };
    let public = item.items.iter().filter_map(|item| match item {
        ImplItem::Fn(method) if is_public(&method.vis) => Some(method),
        _ => None,
    });
    let offered = public.map(|method| Offered {
        text: format!("  {of}: {}", signature(text, &method.sig.ident.to_string())),
        is_documented: is_documented(&method.attrs),
    });
    offered.collect()
}

/// An enum that a module of this crate defines, and its variants.
fn with_variants(item: &syn::ItemEnum) -> Vec<Offered> {
    let variants = item.variants.iter().map(|variant| Offered {
        text: format!("  {}::{}", item.ident, variant.ident),
        is_documented: is_documented(&variant.attrs),
    });
    let text = format!("enum {}", item.ident);
    let own = Offered { text, is_documented: is_documented(&item.attrs) };
    std::iter::once(own).chain(variants).collect()
}

/// The items of a module of this crate, its re-exports included.
fn items(file: &str) -> Vec<Offered> {
    let path = crates().join("freewheel/src").join(file);
    let text = fs::read_to_string(&path).unwrap();
    let mut offered = Vec::new();
    for item in &parse(&path).items {
        match item {
            Item::Use(item) if is_public(&item.vis) => offered.extend(used(&item.tree)),
            Item::Mod(module) if is_public(&module.vis) => {
                let text = format!("mod {}", module.ident);
                let is_documented = documents_itself(&module.ident.to_string());
                offered.push(Offered { text, is_documented });
            }
            Item::Impl(item) => offered.extend(methods(&text, item)),
            Item::Enum(item) if is_public(&item.vis) => offered.extend(with_variants(item)),
            item => offered.extend(definition(item).map(|(kind, name, attributes)| Offered {
                text: match kind {
                    "fn" => signature(&text, &name),
                    _ => format!("{kind} {name}"),
                },
                is_documented: is_documented(attributes),
            })),
        }
    }
    offered
}

/// The items that a `pub use` offers.
fn used(tree: &UseTree) -> Vec<Offered> {
    let mut found = Vec::new();
    re_exports(tree, &[], &mut found);
    let offered = found.iter().flat_map(|ReExport { path, name }| {
        if !path[0].starts_with("freewheel_") {
            return own(path, name);
        }
        let (kind, is_documented) = kind_of(path);
        vec![Offered { text: format!("{kind} {name} of {}", path[0]), is_documented }]
    });
    offered.collect()
}

/// An item that a module of this crate defines, offered by the root, with its variants and methods.
fn own(path: &[String], name: &str) -> Vec<Offered> {
    let is_it = |offered: &Offered| {
        // Kind and name, or for a part two blanks and the name.
        let word = if offered.text.starts_with(' ') { 2 } else { 1 };
        offered.text.split(['(', '<', ' ', ':']).nth(word) == Some(name)
    };
    let all = items(&format!("{}.rs", path[0]));
    let found: Vec<Offered> = all.into_iter().filter(is_it).collect();
    assert!(!found.is_empty(), "{} is no item", path.join("::"));
    found
}

fn documents_itself(module: &str) -> bool {
    let path = crates().join("freewheel/src").join(format!("{module}.rs"));
    is_documented(&parse(&path).attrs)
}

/// Name and items of the root and of each public module.
fn interface() -> Vec<(String, Vec<Offered>)> {
    let root = items("lib.rs");
    let modules = root.iter().filter_map(|item| item.text.strip_prefix("mod "));
    let modules: Vec<String> = modules.map(str::to_owned).collect();
    let with_items = |name: String| {
        let items = items(&format!("{name}.rs"));
        (name, items)
    };
    let modules = modules.into_iter().map(with_items);
    std::iter::once(("the root".to_owned(), root)).chain(modules).collect()
}

/// Items themselves, without variants and methods.
fn names(items: &[Offered]) -> BTreeSet<&str> {
    items.iter().map(|item| &*item.text).filter(|text| !text.starts_with(' ')).collect()
}

#[test]
fn interface_changes_show_in_snapshot() {
    let mut text = String::new();
    for (name, mut items) in interface() {
        items.sort_by_key(|item| item.text.trim_start().to_owned());
        let lines = items.iter().map(|item| format!("    {}\n", item.text));
        text += &format!("{name}: {} items\n{}", names(&items).len(), lines.collect::<String>());
    }
    insta::assert_snapshot!(text);
}

#[test]
fn interface_is_small() {
    let interface = interface();
    let root = names(&interface[0].1).len();
    assert!(root <= ROOT_MAX, "the root has {root} items: at most {ROOT_MAX}");
    let all: BTreeSet<&str> = interface.iter().flat_map(|(_, items)| names(items)).collect();
    assert!(all.len() <= ALL_MAX, "{} items: at most {ALL_MAX}", all.len());
}

#[test]
fn items_are_documented_and_offered_once() {
    let interface = interface();
    for (module, items) in &interface {
        let bare: Vec<&Offered> = items.iter().filter(|item| !item.is_documented).collect();
        assert!(bare.is_empty(), "{module}: without a line of documentation: {bare:?}");
    }
    let mut seen = BTreeSet::new();
    for item in interface.iter().flat_map(|(_, items)| items) {
        let is_own = !item.text.contains(" of freewheel_");
        assert!(is_own || seen.insert(&item.text), "{} is offered twice", item.text);
    }
}

#[test]
fn api_search_finds_signatures_and_kinds() {
    let text = "pub fn longer(a: u8) {\n}\npub fn long<T>(\n    a: T,\n    b: u8,\n) -> T {\n}\n";
    assert_eq!(signature(text, "long"), "fn long<T>(a: T, b: u8) -> T");
    let path = |text: &str| text.split("::").map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(kind_of(&path("freewheel_units::Bytes")), ("struct", true));
    assert_eq!(kind_of(&path("freewheel_sim::library::names")), ("fn", true));
    let glob: UseTree = syn::parse_str("freewheel_units::*").unwrap();
    assert!(std::panic::catch_unwind(|| re_exports(&glob, &[], &mut Vec::new())).is_err());
    let module = std::panic::catch_unwind(|| kind_of(&path("freewheel_sim::library")));
    assert!(module.is_err(), "a whole module is no item");
}
