//! Parses words into blocks of parameters.
//!
//! ```text
//!   text      = { statement }
//!   statement = TYPE NAME block | "instantiate" list "as" NAME | "topology" TYPE NAME list
//!   block     = "{" [ param { "," param } [","] ] "}"
//!   param     = KEY "=" value              KEY: words up to the sign
//!   value     = WORDS | list | TYPE [NAME] block
//!   list      = "[" [ value { "," value } [","] ] "]"
//! ```

use crate::error::{ImportCause, ImportError, Place, wrong};
use crate::lex::{Token, TokenKind};

/// Nesting of blocks and lists.
const DEPTH_MAX: usize = 64;
/// Blocks at the outermost level.
const BLOCKS_MAX: usize = 1000;
/// Characters of a value that a report shows.
const SHOWN_MAX: usize = 60;

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Value {
    pub kind: Kind,
    pub at: Place,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    /// A number, a name, a file.
    Text(String),
    List(Vec<Value>),
    Block(Block),
}

/// `TYPE NAME { KEY = VALUE, ... }`
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Block {
    pub kind: String,
    pub name: Option<String>,
    pub params: Vec<Param>,
    pub at: Place,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Param {
    pub key: String,
    pub value: Value,
    pub at: Place,
}

/// Content of the outermost level of the texts.
#[derive(Debug, Default)]
pub(crate) struct Document {
    pub blocks: Vec<Block>,
    /// Names of the blocks that are instantiated.
    pub instantiated: Vec<String>,
}

impl Value {
    /// For a report: the text itself, a list in brackets, cut when it is long.
    pub fn shown(&self) -> String {
        let whole = match &self.kind {
            Kind::Text(text) => text.clone(),
            Kind::List(items) => {
                let shown: Vec<String> = items.iter().take(8).map(Self::shown).collect();
                let more = if items.len() > 8 { ", ..." } else { "" };
                format!("[{}{more}]", shown.join(", "))
            }
            Kind::Block(block) => format!("{} {{ {} parameters }}", block.kind, block.count()),
        };
        match whole.char_indices().nth(SHOWN_MAX) {
            Some((end, _)) => format!("{}...", &whole[..end]),
            None => whole,
        }
    }
}

impl Block {
    /// Parameters in it, those of inner blocks counted one by one.
    pub fn count(&self) -> usize {
        self.params.iter().map(|param| count(&param.value)).sum()
    }
}

fn count(value: &Value) -> usize {
    match &value.kind {
        Kind::Block(block) => block.count(),
        Kind::List(items) if items.iter().any(|v| matches!(v.kind, Kind::Block(_))) => {
            items.iter().map(count).sum()
        }
        _ => 1,
    }
}

/// Reads the tokens of one text into `document`.
pub(crate) fn parse(
    tokens: &[Token],
    file: &str,
    document: &mut Document,
) -> Result<(), ImportError> {
    let end = tokens.last().map_or(Place::new(file, 0), |token| token.at.clone());
    let mut parser = Parser { tokens, next: 0, end };
    // A text without a block is another kind of file.
    let has_blocks = tokens.iter().any(|token| token.what == TokenKind::Mark('{'));
    while parser.peek().is_some() {
        parser
            .statement(document)
            .map_err(|error| if has_blocks { error } else { error.of(ImportCause::NoDrive) })?;
    }
    Ok(())
}

struct Parser<'a> {
    tokens: &'a [Token],
    next: usize,
    end: Place,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&TokenKind> {
        self.tokens.get(self.next).map(|token| &token.what)
    }

    fn here(&self) -> Place {
        self.tokens.get(self.next).map_or_else(|| self.end.clone(), |token| token.at.clone())
    }

    fn at_mark(&self, mark: char) -> bool {
        self.peek() == Some(&TokenKind::Mark(mark))
    }

    fn expected(&self, what: &str) -> ImportError {
        let found = self.peek().map_or("the end of the text".into(), |w| format!("`{}`", w.text()));
        wrong(&self.here(), format!("expected {what}, found {found}"))
    }

    fn mark(&mut self, mark: char, what: &str) -> Result<(), ImportError> {
        if !self.at_mark(mark) {
            return Err(self.expected(what));
        }
        self.next += 1;
        Ok(())
    }

    /// All words up to the next mark, with single spaces between.
    fn words(&mut self) -> Vec<String> {
        let mut words = Vec::new();
        while let Some(TokenKind::Word(word)) = self.peek() {
            words.push(word.clone());
            self.next += 1;
        }
        words
    }

    fn statement(&mut self, document: &mut Document) -> Result<(), ImportError> {
        let at = self.here();
        match self.peek() {
            Some(TokenKind::Mark(';')) => {
                self.next += 1;
                Ok(())
            }
            Some(TokenKind::Word(word)) if word == "instantiate" => self.instantiate(document),
            Some(TokenKind::Word(word)) if word == "topology" => {
                self.words();
                self.skip_brackets()
            }
            Some(TokenKind::Word(kind)) => {
                let kind = kind.clone();
                if document.blocks.len() >= BLOCKS_MAX {
                    return Err(wrong(&at, format!("more than {BLOCKS_MAX} blocks")));
                }
                self.next += 1;
                let name = match self.peek() {
                    Some(TokenKind::Word(name)) => Some(name.clone()),
                    _ => None,
                };
                self.next += usize::from(name.is_some());
                let params = self.params(0)?;
                document.blocks.push(Block { kind, name, params, at });
                Ok(())
            }
            _ => Err(self.expected("a block `TYPE NAME { ... }`, `instantiate` or `topology`")),
        }
    }

    fn instantiate(&mut self, document: &mut Document) -> Result<(), ImportError> {
        self.next += 1;
        self.skip_brackets()?;
        match (self.peek(), self.tokens.get(self.next + 1).map(|token| &token.what)) {
            (Some(TokenKind::Word(word)), Some(TokenKind::Word(name))) if word == "as" => {
                document.instantiated.push(name.clone());
                self.next += 2;
                Ok(())
            }
            _ => Err(self.expected("`as NAME`")),
        }
    }

    fn skip_brackets(&mut self) -> Result<(), ImportError> {
        self.mark('[', "`[`")?;
        let mut open = 1;
        while open > 0 {
            match self.peek() {
                Some(TokenKind::Mark('[')) => open += 1,
                Some(TokenKind::Mark(']')) => open -= 1,
                None => return Err(self.expected("`]`")),
                _ => {}
            }
            self.next += 1;
        }
        Ok(())
    }

    fn params(&mut self, depth: usize) -> Result<Vec<Param>, ImportError> {
        self.mark('{', "`{`")?;
        let mut params = Vec::new();
        while !self.at_mark('}') {
            let at = self.here();
            let key = self.words().join(" ");
            if key.is_empty() {
                return Err(self.expected("a parameter `KEY = VALUE` or `}`"));
            }
            self.mark('=', &format!("`=` behind `{key}`"))?;
            let value = self.value(depth + 1)?;
            params.push(Param { key, value, at });
            self.separator('}')?;
        }
        self.next += 1;
        Ok(params)
    }

    /// A comma, which the end may do without.
    fn separator(&mut self, end: char) -> Result<(), ImportError> {
        if self.at_mark(',') {
            self.next += 1;
        } else if !self.at_mark(end) {
            return Err(self.expected(&format!("`,` or `{end}`")));
        }
        Ok(())
    }

    fn value(&mut self, depth: usize) -> Result<Value, ImportError> {
        let at = self.here();
        if depth > DEPTH_MAX {
            return Err(wrong(&at, format!("blocks and lists nest deeper than {DEPTH_MAX}")));
        }
        if self.at_mark('[') {
            return Ok(Value { kind: Kind::List(self.list(depth)?), at });
        }
        let words = self.words();
        let kind = match (self.at_mark('{'), words.as_slice()) {
            (_, []) => return Err(self.expected("a value")),
            (false, words) => Kind::Text(words.join(" ")),
            (true, [kind, name @ ..]) if name.len() <= 1 => Kind::Block(Block {
                kind: kind.clone(),
                name: name.first().cloned(),
                params: self.params(depth)?,
                at: at.clone(),
            }),
            (true, _) => return Err(self.expected("`,` before the next block")),
        };
        Ok(Value { kind, at })
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Value>, ImportError> {
        self.mark('[', "`[`")?;
        let mut items = Vec::new();
        while !self.at_mark(']') {
            items.push(self.value(depth + 1)?);
            self.separator(']')?;
        }
        self.next += 1;
        Ok(items)
    }
}
