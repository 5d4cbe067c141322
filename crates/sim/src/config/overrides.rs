//! Overrides of an experiment's keys, and which text is to blame for what is wrong with it.

use serde::Deserialize;

use super::{ConfigError, SimConfig};

/// The key and the value of an override; Err says how one is written.
pub fn key_and_value(text: &str) -> Result<(&str, &str), String> {
    text.split_once('=').ok_or("write key=value, as in workload.outstanding=20".into())
}

/// The experiment of this text with these overrides, or what is wrong with it. Err for an override
/// that is none.
pub(super) fn read(
    text: &str,
    overrides: &[String],
) -> Result<Result<SimConfig, toml::de::Error>, ConfigError> {
    // From the text, errors have lines.
    if overrides.is_empty() {
        return Ok(toml::from_str(text));
    }
    let mut table: toml::Table = match toml::from_str(text) {
        Ok(table) => table,
        Err(error) => return Ok(Err(error)),
    };
    for text in overrides {
        apply(&mut table, text)
            .map_err(|message| ConfigError::Override { text: text.clone(), message })?;
    }
    Ok(SimConfig::deserialize(table))
}

fn apply(table: &mut toml::Table, text: &str) -> Result<(), String> {
    let (key, value) = key_and_value(text)?;
    let value = format!("v = {value}")
        .parse::<toml::Table>()
        .map_or_else(|_| toml::Value::String(value.into()), |mut t| t.remove("v").expect("v"));
    let mut parts: Vec<&str> = key.trim().split('.').collect();
    let last = parts.pop().filter(|last| !last.is_empty()).ok_or("the key is empty")?;
    let mut at = table;
    for part in parts {
        let entry = at.entry(part).or_insert_with(|| toml::Value::Table(toml::Table::new()));
        at = entry.as_table_mut().ok_or(format!("`{part}` is a value and has no keys"))?;
    }
    at.insert(last.into(), value);
    Ok(())
}

/// Those of the overrides without which the fault would not be there, as they were given; all when
/// it takes none of them alone. None when the fault is there without any, or is not there at all.
/// `fault` says what is wrong with some of the overrides.
pub(super) fn to_blame(
    overrides: &[String],
    fault: impl Fn(&[String]) -> Option<String>,
) -> Option<String> {
    let found = fault(overrides)?;
    let is_there = |overrides: &[String]| fault(overrides).as_ref() == Some(&found);
    if is_there(&[]) {
        return None;
    }
    let is_needed = |&number: &usize| {
        let mut others = overrides.to_vec();
        others.remove(number);
        !is_there(&others)
    };
    let needed: Vec<usize> = (0..overrides.len()).filter(is_needed).collect();
    let named = |number: usize| format!("--set {}", overrides[number]);
    let names: Vec<String> = match needed.is_empty() {
        true => (0..overrides.len()).map(named).collect(),
        false => needed.into_iter().map(named).collect(),
    };
    Some(names.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blamed(overrides: &[&str], fault: impl Fn(&[String]) -> Option<String>) -> Option<String> {
        let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
        to_blame(&overrides, fault)
    }

    fn has(overrides: &[String], text: &str) -> bool {
        overrides.iter().any(|override_| override_ == text)
    }

    #[test]
    fn an_override_is_to_blame_for_what_is_not_there_without_it() {
        let fault = |set: &[String]| has(set, "b=2").then(|| "b".to_owned());
        assert_eq!(blamed(&["a=1", "b=2", "c=3"], fault).unwrap(), "--set b=2");
        assert_eq!(blamed(&["a=1", "c=3"], fault), None);
        let both = |set: &[String]| (has(set, "a=1") && has(set, "c=3")).then(String::new);
        assert_eq!(blamed(&["a=1", "b=2", "c=3"], both).unwrap(), "--set a=1 --set c=3");
        let either = |set: &[String]| (has(set, "a=1") || has(set, "b=2")).then(String::new);
        assert_eq!(blamed(&["a=1", "b=2"], either).unwrap(), "--set a=1 --set b=2");
    }

    #[test]
    fn the_file_is_to_blame_for_what_is_there_without_any_override() {
        assert_eq!(blamed(&["a=1"], |_| Some("file".into())), None);
        let other = |set: &[String]| Some(if set.is_empty() { "file" } else { "set" }.to_owned());
        assert_eq!(blamed(&["a=1"], other).unwrap(), "--set a=1");
    }
}
