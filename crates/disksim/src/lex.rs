//! Texts to words and marks, with `source FILE` spliced in where it stands, as libparam does.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::error::{ImportError, Place, missing, wrong};

/// Nesting of `source`.
const SOURCE_DEPTH_MAX: usize = 16;
/// Files sourced, together.
const SOURCES_MAX: usize = 256;
/// Words and marks of all files together.
const TOKENS_MAX: usize = 2_000_000;

/// A word or a mark, and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Token {
    pub what: TokenKind,
    pub at: Place,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TokenKind {
    /// Anything that is not a mark: names, numbers, parts of keys.
    Word(String),
    /// One of `{ } [ ] , = ; : ?`.
    Mark(char),
}

impl TokenKind {
    pub fn text(&self) -> String {
        match self {
            Self::Word(word) => word.clone(),
            Self::Mark(mark) => mark.to_string(),
        }
    }
}

const MARKS: &str = "{}[],=;:?";

/// The texts there are, by name, and which were read.
pub(crate) struct Texts<'a> {
    given: BTreeMap<String, String>,
    resolver: &'a dyn Fn(&str) -> Option<String>,
    read: Vec<String>,
    sourced: usize,
}

fn base_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

impl<'a> Texts<'a> {
    pub fn new(files: &[(&str, &str)], resolver: &'a dyn Fn(&str) -> Option<String>) -> Self {
        let given = files.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect();
        Self { given, resolver, read: Vec::new(), sourced: 0 }
    }

    /// The given files that no text refers to.
    pub fn unread(&self) -> impl Iterator<Item = &str> {
        self.given.keys().filter(|name| !self.read.contains(name)).map(String::as_str)
    }

    /// The text of a file, marked as read: among those given by its name or the last part of it,
    /// else from the resolver.
    pub fn get(&mut self, name: &str) -> Option<String> {
        let known = self.given.get_key_value(name).map(|(key, _)| key.clone());
        let known = known.or_else(|| {
            self.given.keys().find(|given| base_name(given) == base_name(name)).cloned()
        });
        match known {
            Some(key) => {
                self.read.push(key.clone());
                self.given.get(&key).cloned()
            }
            None => (self.resolver)(name),
        }
    }

    /// The files that texts name, from these on, and that are not there; each once.
    pub fn all_missing(&mut self, names: &[&str]) -> Vec<String> {
        let mut due: Vec<String> = names.iter().rev().map(|name| name.to_string()).collect();
        let (mut seen, mut missing) = (Vec::new(), Vec::new());
        while let Some(name) = due.pop() {
            if seen.contains(&name) || seen.len() >= SOURCES_MAX {
                continue;
            }
            match self.get(&name) {
                Some(text) => due.extend(named_in(&text, &name).into_iter().rev()),
                None => missing.push(name.clone()),
            }
            seen.push(name);
        }
        missing
    }

    /// True if a given text has been read already.
    pub fn was_read(&self, name: &str) -> bool {
        self.read.iter().any(|read| read == name)
    }

    /// Tokens of a file with all that it sources.
    pub fn tokens(&mut self, name: &str) -> Result<Vec<Token>, ImportError> {
        let mut tokens = Vec::new();
        self.tokens_into(name, &Place::new(name, 0), 0, &mut tokens)?;
        Ok(tokens)
    }

    fn tokens_into(
        &mut self,
        name: &str,
        from: &Place,
        depth: usize,
        out: &mut Vec<Token>,
    ) -> Result<(), ImportError> {
        if depth > SOURCE_DEPTH_MAX {
            let rule = format!("`source` is nested deeper than {SOURCE_DEPTH_MAX} files");
            return Err(wrong(from, rule));
        }
        self.sourced += 1;
        if self.sourced > SOURCES_MAX {
            return Err(wrong(from, format!("more than {SOURCES_MAX} files are sourced")));
        }
        let text = self.get(name).ok_or_else(|| missing(from, name))?;
        let file: Rc<str> = base_name(name).into();
        let mut words = scan(&text, &file).into_iter().peekable();
        while let Some(token) = words.next() {
            if out.len() >= TOKENS_MAX {
                return Err(wrong(&token.at, format!("more than {TOKENS_MAX} words")));
            }
            let sourced = match (&token.what, words.peek()) {
                (TokenKind::Word(word), Some(Token { what: TokenKind::Word(file), .. }))
                    if word == "source" && starts_something(out) =>
                {
                    Some(file.clone())
                }
                _ => None,
            };
            match sourced {
                Some(file) => {
                    words.next();
                    self.tokens_into(&file, &token.at, depth + 1, out)?;
                }
                None => out.push(token),
            }
        }
        Ok(())
    }
}

/// The files that a text needs: by `source FILE`, or as an extracted seek curve.
fn named_in(text: &str, name: &str) -> Vec<String> {
    let tokens = scan(text, &base_name(name).into());
    let is_extracted = (0..tokens.len()).any(|at| word(at, &tokens) == "extracted");
    let mut names = Vec::new();
    // Behind a sourced file stands what that file ends with: a block or a value.
    let mut behind_source = 0;
    for at in 0..tokens.len() {
        let starts = at == behind_source || starts_something(&tokens[..at]);
        if starts && word(at, &tokens) == "source" && !word(at + 1, &tokens).is_empty() {
            names.push(word(at + 1, &tokens).to_owned());
            behind_source = at + 2;
        }
        let is_curve = [word(at, &tokens), word(at + 1, &tokens), word(at + 2, &tokens)]
            == ["Full", "seek", "curve"];
        if is_curve && is_extracted && !word(at + 4, &tokens).is_empty() {
            names.push(word(at + 4, &tokens).to_owned());
        }
    }
    names
}

fn word(at: usize, tokens: &[Token]) -> &str {
    match tokens.get(at).map(|token| &token.what) {
        Some(TokenKind::Word(word)) => word.as_str(),
        _ => "",
    }
}

/// `source` is a word of a key unless a value or a statement begins here.
fn starts_something(before: &[Token]) -> bool {
    match before.last().map(|token| &token.what) {
        None => true,
        Some(TokenKind::Mark(mark)) => "=[,}]{;".contains(*mark),
        // After `instantiate [...] as NAME`.
        Some(TokenKind::Word(_)) => {
            let as_word = before.len().checked_sub(2).map(|at| &before[at].what);
            matches!(as_word, Some(TokenKind::Word(word)) if word == "as")
        }
    }
}

fn scan(text: &str, file: &Rc<str>) -> Vec<Token> {
    let mut tokens = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let at = Place { file: file.clone(), line: index as u32 + 1 };
        scan_line(line, &at, &mut tokens);
    }
    tokens
}

fn scan_line(line: &str, at: &Place, tokens: &mut Vec<Token>) {
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next() {
        if first == '#' {
            return;
        }
        let length = if MARKS.contains(first) {
            tokens.push(Token { what: TokenKind::Mark(first), at: at.clone() });
            first.len_utf8()
        } else {
            let length =
                rest.find(|c: char| c.is_whitespace() || MARKS.contains(c)).unwrap_or(rest.len());
            tokens.push(Token { what: TokenKind::Word(rest[..length].into()), at: at.clone() });
            length
        };
        rest = rest[length..].trim_start();
    }
}
