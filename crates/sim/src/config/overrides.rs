//! Overrides of an experiment's keys, and which text is to blame for what is wrong with it.

use freewheel_array::config::FilesWorkload;
use freewheel_model::sched::{PARAMETERS, PolicySpec};

use super::{ConfigError, SimConfig, cache_preset};
use crate::toml_faults::{self, Fault, TaggedTable};

/// The key and the value of an override; Err says how one is written.
pub fn key_and_value(text: &str) -> Result<(&str, &str), String> {
    text.split_once('=').ok_or("write key=value, as in workload.outstanding=20".into())
}

/// The workload whose keys go deepest.
const FILES: TaggedTable = TaggedTable { key: "workload", tag: "kind", name: "files" };

/// The experiment of this text with these overrides, or what is wrong with it. Err for an override
/// that is none.
pub(crate) fn read(
    text: &str,
    overrides: &[String],
) -> Result<Result<SimConfig, Fault>, ConfigError> {
    let mut root = match toml_faults::parse(text) {
        Ok(root) => root,
        Err(fault) => return Ok(Err(fault)),
    };
    for text in overrides {
        apply(&mut root, text, overrides)
            .map_err(|message| ConfigError::Override { text: text.clone(), message })?;
    }
    // From the text alone, errors have lines.
    let text = overrides.is_empty().then_some(text);
    if let Err(fault) = cache_preset::fill_in(&mut root, text) {
        return Ok(Err(fault));
    }
    Ok(toml_faults::interpret(&root, text).map_err(|fault| {
        toml_faults::fault_of::<FilesWorkload>(&root, text, &FILES).unwrap_or(fault)
    }))
}

/// Takes those parameters out of the file's scheduler that another policy does not have, and no
/// override brings in.
fn drop_parameters_of_another_policy(
    root: &mut toml::Value,
    another: &str,
    overrides: &[String],
) -> Option<()> {
    let scheduler = root.get_mut("scheduler")?.as_table_mut()?;
    if policy(scheduler.get("policy")?.as_str()?) != policy(another) {
        for parameter in PARAMETERS {
            if !bring(overrides, &["scheduler", parameter]) {
                scheduler.remove(parameter);
            }
        }
    }
    Some(())
}

/// The name of a policy, by whichever name and with whichever parameter it is called.
fn policy(text: &str) -> &str {
    text.parse::<PolicySpec>().map_or(text, |spec| spec.row().name)
}

fn apply(root: &mut toml::Value, text: &str, overrides: &[String]) -> Result<(), String> {
    let (key, value) = key_and_value(text)?;
    let parts = parts(key.trim())?;
    if value.trim().is_empty() {
        return remove(root, &parts);
    }
    let value = format!("v = {value}")
        .parse::<toml::Table>()
        .map_or_else(|_| toml::Value::String(value.into()), |mut t| t.remove("v").expect("v"));
    if let (["scheduler", "policy"], Some(another)) = (&*parts, value.as_str()) {
        drop_parameters_of_another_policy(root, another, overrides);
    }
    let mut at = root;
    for (number, part) in parts.iter().enumerate() {
        at = entry(at, &parts[..number], part, parts.get(number + 1))?;
    }
    *at = value;
    Ok(())
}

/// Takes away the value that the parts lead to, so that its default holds.
fn remove(root: &mut toml::Value, parts: &[&str]) -> Result<(), String> {
    let (last, before) = parts.split_last().expect("a key has a part");
    let parent = before.iter().try_fold(root, |value, part| match part.parse::<usize>() {
        Ok(number) => value.get_mut(number),
        Err(_) => value.get_mut(*part),
    });
    let removed = match (parent, last.parse::<usize>()) {
        (Some(toml::Value::Array(list)), Ok(number)) if number < list.len() => {
            Some(list.remove(number))
        }
        (Some(toml::Value::Table(table)), _) => table.remove(*last),
        _ => None,
    };
    let key = parts.join(".");
    removed.map(drop).ok_or_else(|| {
        format!("KEY= removes a key of the experiment, and `{key}` is not in it: leave this out")
    })
}

/// True if one of the overrides has brought in the value of this key, alone or with a table it is in.
pub(crate) fn bring(overrides: &[String], key: &[&str]) -> bool {
    overrides.iter().any(|text| brings(text, key) == Some(true))
}

fn brings(text: &str, key: &[&str]) -> Option<bool> {
    let (of, _) = key_and_value(text).ok()?;
    Some(key.starts_with(&parts(of.trim()).ok()?))
}

/// True if one of the overrides has brought in a value within the table of this key.
fn bring_within(overrides: &[String], key: &[&str]) -> bool {
    let brings = |text: &String| {
        let (of, _) = key_and_value(text).ok()?;
        Some(parts(of.trim()).ok()?.starts_with(key))
    };
    overrides.iter().any(|text| brings(text) == Some(true))
}

/// The parts of a key: names of tables, and numbers of entries of lists, as `beside.0` or
/// `beside[0]`.
fn parts(key: &str) -> Result<Vec<&str>, String> {
    let mut parts = Vec::new();
    for part in key.split('.') {
        let (name, numbers) = part.split_at(part.find('[').unwrap_or(part.len()));
        parts.push(name);
        if !numbers.is_empty() {
            let inside = numbers.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
            let inside = inside.ok_or_else(|| {
                format!("`{part}`: write an entry of a list as {name}[0] or {name}.0")
            })?;
            parts.extend(inside.split("]["));
        }
    }
    if parts.iter().any(|part| part.is_empty()) {
        let empty = if key.is_empty() { "the key" } else { "a part of the key" };
        return Err(format!("{empty} is empty"));
    }
    Ok(parts)
}

/// Value of `part` in `at`, to which the parts before it have led. A missing key is created, an entry of a
/// list is not.
fn entry<'v>(
    at: &'v mut toml::Value,
    before: &[&str],
    part: &str,
    next: Option<&&str>,
) -> Result<&'v mut toml::Value, String> {
    match at {
        toml::Value::Table(table) => {
            let is_number = next.is_some_and(|next| next.parse::<usize>().is_ok());
            if is_number && !table.contains_key(part) {
                let whole = [before, &[part]].concat();
                return Err(format!("there is no list `{part}`: {}", list_at(&whole)));
            }
            Ok(table.entry(part).or_insert_with(|| toml::Value::Table(toml::Table::new())))
        }
        toml::Value::Array(list) => {
            let (name, count) = (before.last().copied().unwrap_or_default(), list.len());
            let found = part.parse().ok().and_then(|number: usize| list.get_mut(number));
            found.ok_or_else(|| {
                let there = match count {
                    0 => "is an empty list".to_owned(),
                    1 => "is a list with the entry 0 alone".to_owned(),
                    _ => format!("is a list with the entries 0 to {}", count - 1),
                };
                format!("`{name}` {there}, and `{part}` is none of them: {}", list_at(before))
            })
        }
        _ => {
            let name = before.last().copied().unwrap_or_default();
            Err(format!("`{name}` is a value and has no keys"))
        }
    }
}

fn list_at(parts: &[&str]) -> String {
    format!("`{}=[{{ ... }}]` sets the whole list", parts.join("."))
}

/// Fault with a way out. For a key in the file that an override has left without a meaning, it tells how to
/// remove the key: the keys of a table often depend on one of them.
pub(crate) fn with_way_out(says: String, overrides: &[String]) -> String {
    let unknown = says.strip_prefix("there is no key `").and_then(|rest| rest.split_once('`'));
    match unknown.and_then(|(key, _)| Some((key, parts(key).ok()?))) {
        Some((key, parts)) if !bring(overrides, &parts) && !bring_within(overrides, &parts) => {
            format!("{says}; the file has it: --set {key}= removes it")
        }
        _ => says,
    }
}

/// Overrides, as they were given, without which the fault would not be there; all when no single one is to
/// blame. None when the fault is there without any, or is not there at all. `fault` says what is wrong with
/// some of the overrides.
pub(crate) fn to_blame(
    overrides: &[String],
    fault: impl Fn(&[String]) -> Option<String>,
) -> Option<String> {
    let found = fault(overrides)?;
    let is_there = |overrides: &[String]| fault(overrides).as_ref() == Some(&found);
    if is_there(&[]) {
        return None;
    }
    let needed: Vec<usize> = (0..overrides.len())
        .filter(|&number| {
            let mut others = overrides.to_vec();
            others.remove(number);
            !is_there(&others)
        })
        .collect();
    let names: Vec<String> = if needed.is_empty() {
        (0..overrides.len()).map(|number| named(number, overrides)).collect()
    } else {
        needed.into_iter().map(|number| named(number, overrides)).collect()
    };
    Some(names.join(" "))
}

fn named(number: usize, overrides: &[String]) -> String {
    format!("--set {}", overrides[number])
}

#[cfg(test)]
mod tests {
    use freewheel_freeblock::tasks::TaskKind;

    use super::*;

    fn blamed(overrides: &[&str], fault: impl Fn(&[String]) -> Option<String>) -> Option<String> {
        let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
        to_blame(&overrides, fault)
    }

    fn has(overrides: &[String], text: &str) -> bool {
        overrides.iter().any(|override_| override_ == text)
    }

    const LIST: &str = "workload.kind = 'closed'\n[[freeblock.tasks]]\n[[freeblock.tasks]]\n";

    #[test]
    fn override_reaches_list_entry_by_number() {
        let sets = ["freeblock.tasks.0.share=3", "freeblock.tasks[1].kind=scrub"];
        let config = SimConfig::parse(LIST, "test", &sets.map(str::to_owned)).unwrap();
        let freeblock = config.freeblock.unwrap();
        let shares: Vec<Option<u32>> = freeblock.tasks.iter().map(|task| task.share).collect();
        assert_eq!(shares, [Some(3), None]);
        assert_eq!(freeblock.tasks[1].kind, TaskKind::Scrub);
        let whole = "freeblock.tasks[0]={ block_size = '8KiB' }".to_owned();
        let config = SimConfig::parse(LIST, "test", &[whole]).unwrap();
        assert_eq!(config.freeblock.unwrap().tasks[0].block().get(), 8192);
    }

    #[test]
    fn override_of_missing_entry_refused() {
        let whole = "`freeblock.tasks=[{ ... }]` sets the whole list";
        for (text, key, says) in [
            (LIST, "freeblock.tasks.2.share", "a list with the entries 0 to 1, and `2` is none"),
            (LIST, "freeblock.tasks.share", "`tasks` is a list with the entries 0 to 1"),
            ("workload.kind = 'closed'", "freeblock.tasks[0].share", "there is no list `tasks`"),
        ] {
            let error = SimConfig::parse(text, "test", &[format!("{key}=1")]).unwrap_err();
            let error = error.to_string();
            assert!(error.starts_with(&format!("--set {key}=1: ")), "{error}");
            assert!(error.contains(says) && error.contains(whole), "{error}");
        }
        for (key, says) in [
            ("freeblock.tasks[0.share", "`tasks[0`: write an entry of a list as tasks[0]"),
            ("", "the key is empty"),
            ("freeblock..share", "a part of the key is empty"),
            ("workload.kind.0", "`kind` is a value and has no keys"),
        ] {
            let error = SimConfig::parse(LIST, "test", &[format!("{key}=1")]).unwrap_err();
            assert!(error.to_string().contains(says), "{error}");
        }
    }

    #[test]
    fn blame_falls_on_override_causing_fault() {
        let fault = |set: &[String]| has(set, "b=2").then(|| "b".to_owned());
        assert_eq!(blamed(&["a=1", "b=2", "c=3"], fault).unwrap(), "--set b=2");
        assert_eq!(blamed(&["a=1", "c=3"], fault), None);
        let both = |set: &[String]| (has(set, "a=1") && has(set, "c=3")).then(String::new);
        assert_eq!(blamed(&["a=1", "b=2", "c=3"], both).unwrap(), "--set a=1 --set c=3");
        let either = |set: &[String]| (has(set, "a=1") || has(set, "b=2")).then(String::new);
        assert_eq!(blamed(&["a=1", "b=2"], either).unwrap(), "--set a=1 --set b=2");
    }

    #[test]
    fn blame_falls_on_file_without_overrides() {
        assert_eq!(blamed(&["a=1"], |_| Some("file".into())), None);
        let other = |set: &[String]| Some(if set.is_empty() { "file" } else { "set" }.to_owned());
        assert_eq!(blamed(&["a=1"], other).unwrap(), "--set a=1");
    }

    const ASATF: &str =
        "workload.kind = 'closed'\n[scheduler]\npolicy = 'asatf'\nage_factor = 0.5\n";

    fn scheduler(overrides: &[&str]) -> Result<String, String> {
        let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
        let config = SimConfig::parse(ASATF, "test", &overrides);
        config.map(|config| config.scheduler.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn policy_override_drops_old_parameters() {
        assert_eq!(scheduler(&["scheduler.policy=fcfs"]).unwrap(), "fcfs");
        assert_eq!(scheduler(&["scheduler.policy='sptf-sw:60%'"]).unwrap(), "sptf-sw:0.6");
        let window = ["scheduler.window=0.6", "scheduler.policy=sptf-sw"];
        assert_eq!(scheduler(&window).unwrap(), "sptf-sw:0.6");
        // The same policy keeps them.
        assert_eq!(scheduler(&["scheduler.policy=asatf"]).unwrap(), "asatf:0.5");
    }

    #[test]
    fn policy_override_with_foreign_parameter_refused() {
        let refused = scheduler(&["scheduler.policy=fcfs", "scheduler.age_factor=2"]).unwrap_err();
        assert!(refused.contains("`age_factor = 2` is not a parameter of fcfs"), "{refused}");
    }

    #[test]
    fn meaningless_file_key_refused_with_removal() {
        let text = "workload = { kind = 'trace', file = 'a.csv' }";
        let closed = "workload.kind=closed".to_owned();
        let error = SimConfig::parse(text, "test", std::slice::from_ref(&closed)).unwrap_err();
        let error = error.to_string();
        assert!(error.starts_with("--set workload.kind=closed: there is no key `workload.file`"));
        assert!(error.ends_with("; the file has it: --set workload.file= removes it"), "{error}");
        assert!(SimConfig::parse(text, "test", &[closed, "workload.file=".into()]).is_ok());
        let own = SimConfig::parse(text, "test", &["workload.fle=a".to_owned()]).unwrap_err();
        assert!(!own.to_string().contains("removes it"), "{own}");
        let table = SimConfig::parse(text, "test", &["foo.bar=1".to_owned()]).unwrap_err();
        let table = table.to_string();
        assert!(table.starts_with("--set foo.bar=1: there is no key `foo`"), "{table}");
        assert!(!table.contains("the file has it"), "{table}");
    }

    #[test]
    fn override_empty_removes_key() {
        assert_eq!(scheduler(&["scheduler.age_factor="]).unwrap(), "asatf:0.01");
        let both = ["scheduler.policy=fcfs", "scheduler.age_factor="];
        assert_eq!(scheduler(&both).unwrap(), "fcfs");
        assert_eq!(scheduler(&["scheduler="]).unwrap(), "fcfs");
        let list = ["freeblock.tasks[0]=".to_owned()];
        let config = SimConfig::parse(LIST, "test", &list).unwrap();
        assert_eq!(config.freeblock.unwrap().tasks.len(), 1);
        for key in ["scheduler.age_facto", "freeblock.tasks.0", "seed.x"] {
            let error = scheduler(&[&format!("{key}=")]).unwrap_err();
            let says = format!("--set {key}=: KEY= removes a key of the experiment, and `{key}`");
            assert!(error.starts_with(&says), "{error}");
        }
    }
}
