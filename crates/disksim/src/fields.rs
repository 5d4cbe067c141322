//! Reading a block's parameters so that none is forgotten: what was not asked for is reported.

use std::fmt::Display;

use freewheel_units::SimDuration;

use crate::Parameter;
use crate::error::{ImportError, wrong};
use crate::number::Decimal;
use crate::parse::{Block, Kind, Param, Value};

/// Values that a drive file cannot hold, and remarks on others.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub not_represented: Vec<Parameter>,
    pub notes: Vec<String>,
}

impl Report {
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    pub fn lost(&mut self, param: &Param, why: impl Into<String>) {
        self.not_represented.push(Parameter {
            name: param.key.clone(),
            value: param.value.shown(),
            file: param.at.file.to_string(),
            line: param.at.line,
            why: why.into(),
        });
    }
}

/// A parameter without effect, and the note about it.
pub(crate) struct Leftover {
    /// Key of the value.
    pub key: &'static str,
    /// The value that means "off" and is not worth a word.
    pub off: Option<i64>,
    /// Reason why any other value is not represented.
    pub why: &'static str,
}

/// The parameters of a block, with a tick at those that were asked for.
pub(crate) struct Fields<'a> {
    block: &'a Block,
    asked: Vec<bool>,
}

impl<'a> Fields<'a> {
    pub fn new(block: &'a Block) -> Self {
        Self { block, asked: vec![false; block.params.len()] }
    }

    /// The parameter of this key, the last if it is given more than once.
    pub fn get(&mut self, key: &str) -> Option<&'a Param> {
        let at = self.block.params.iter().rposition(|param| param.key.eq_ignore_ascii_case(key))?;
        self.asked[at] = true;
        Some(&self.block.params[at])
    }

    pub fn need(&mut self, key: &str) -> Result<&'a Param, ImportError> {
        let at = &self.block.at;
        self.get(key).ok_or_else(|| wrong(at, format!("`{}` needs `{key}`", self.block.kind)))
    }

    pub fn number(&mut self, key: &str) -> Result<Option<(Decimal, &'a Param)>, ImportError> {
        self.get(key).map(|param| Ok((number(&param.value, key)?, param))).transpose()
    }

    pub fn need_number(&mut self, key: &str) -> Result<(Decimal, &'a Param), ImportError> {
        let param = self.need(key)?;
        Ok((number(&param.value, key)?, param))
    }

    /// A whole number in `0..=max`, None where the key is not given.
    pub fn whole<T: TryFrom<u128> + PartialOrd + Display>(
        &mut self,
        key: &str,
        max: T,
    ) -> Result<Option<T>, ImportError> {
        self.get(key).map(|param| whole(&param.value, key, max)).transpose()
    }

    pub fn need_whole<T: TryFrom<u128> + PartialOrd + Display>(
        &mut self,
        key: &str,
        max: T,
    ) -> Result<T, ImportError> {
        whole(&self.need(key)?.value, key, max)
    }

    /// A whole number of either sign, None where the key is not given. DiskSim takes any; the nearest
    /// of `0..=max` is taken here, with a line in the report where that is another.
    pub fn level(
        &mut self,
        key: &str,
        max: u32,
        report: &mut Report,
    ) -> Result<Option<u32>, ImportError> {
        let Some((number, param)) = self.number(key)? else { return Ok(None) };
        let size = number.abs().whole::<u128>().ok_or_else(|| {
            let rule = format!("`{key}` takes a whole number, not `{}`", param.value.shown());
            wrong(&param.value.at, rule)
        })?;
        let taken = if number.is_negative() { 0 } else { size.min(max.into()) as u32 };
        if number.is_negative() || size > max.into() {
            report.lost(param, format!("0 to {max} is expected; {taken} is taken"));
        }
        Ok(Some(taken))
    }

    /// A switch: 0 or 1, off where the key is not given.
    pub fn flag(&mut self, key: &str, report: &mut Report) -> Result<bool, ImportError> {
        Ok(self.level(key, 1, report)?.unwrap_or(0) == 1)
    }

    /// Milliseconds times `scale`; zero and a line in the report where it is negative.
    pub fn time(
        &mut self,
        key: &str,
        scale: Decimal,
        report: &mut Report,
    ) -> Result<SimDuration, ImportError> {
        let Some((ms, param)) = self.number(key)? else { return Ok(SimDuration::ZERO) };
        match ms.ms(scale) {
            Some(time) => Ok(time),
            None if ms.is_negative() => {
                report.lost(param, "a negative time; zero is used");
                Ok(SimDuration::ZERO)
            }
            None => Err(wrong(&param.value.at, format!("`{key}` is beyond 1000 s"))),
        }
    }

    /// Reports every parameter that no reader used.
    pub fn finish(self, rules: &[Leftover], report: &mut Report) {
        for (param, _) in self.block.params.iter().zip(&self.asked).filter(|(_, asked)| !**asked) {
            let rule = rules.iter().find(|rule| rule.key.eq_ignore_ascii_case(&param.key));
            let why = match rule {
                _ if self
                    .block
                    .params
                    .iter()
                    .rfind(|other| other.key.eq_ignore_ascii_case(&param.key))
                    .is_some_and(|last| last != param) =>
                {
                    "given again further down, which counts"
                }
                Some(rule) if rule.off.is_some_and(|off| is(&param.value, off)) => continue,
                Some(rule) => rule.why,
                None => "not a parameter that Freewheel knows",
            };
            report.lost(param, why);
        }
    }
}

fn is(value: &Value, off: i64) -> bool {
    let Kind::Text(text) = &value.kind else { return false };
    Decimal::parse(text).is_some_and(|number| number.f64() == off as f64)
}

pub(crate) fn text<'v>(value: &'v Value, key: &str) -> Result<&'v str, ImportError> {
    match &value.kind {
        Kind::Text(text) => Ok(text),
        _ => Err(wrong(&value.at, format!("`{key}` takes a word, not {}", value.shown()))),
    }
}

pub(crate) fn number(value: &Value, key: &str) -> Result<Decimal, ImportError> {
    let shown = value.shown();
    match &value.kind {
        Kind::Text(text) => Decimal::parse(text).ok_or_else(|| error(value, key, &shown)),
        _ => Err(error(value, key, &shown)),
    }
}

fn error(value: &Value, key: &str, shown: &str) -> ImportError {
    wrong(&value.at, format!("`{key}` takes a number, not `{shown}`"))
}

pub(crate) fn whole<T: TryFrom<u128> + PartialOrd + Display>(
    value: &Value,
    key: &str,
    max: T,
) -> Result<T, ImportError> {
    let found = number(value, key)?.whole::<T>();
    found.filter(|number| *number <= max).ok_or_else(|| {
        let rule =
            format!("`{key}` is {}; a whole number from 0 to {max} is expected", value.shown());
        wrong(&value.at, rule)
    })
}

pub(crate) fn list<'v>(value: &'v Value, key: &str) -> Result<&'v [Value], ImportError> {
    match &value.kind {
        Kind::List(items) => Ok(items),
        _ => {
            Err(wrong(&value.at, format!("`{key}` takes a list `[ ... ]`, not {}", value.shown())))
        }
    }
}

pub(crate) fn block<'v>(value: &'v Value, key: &str) -> Result<&'v Block, ImportError> {
    match &value.kind {
        Kind::Block(block) => Ok(block),
        _ => {
            let rule = format!("`{key}` takes a block `TYPE {{ ... }}`, not {}", value.shown());
            Err(wrong(&value.at, rule))
        }
    }
}
