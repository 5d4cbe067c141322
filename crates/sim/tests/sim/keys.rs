//! Every key of an experiment acts, or is in a list that says when it does.
//!
//! A key without an effect makes a sweep of equal results. So each key of the schema is changed here in a small
//! experiment in which it should act, and the outcomes differ.

use std::collections::BTreeSet;
use std::path::Path;

use freewheel_sim::config::SimConfig;
use freewheel_sim::experiment::Experiment;
use serde_json::Value;

use crate::key_table::{ACTING, IDLE};

/// Outcome of an experiment: the hash of its result, or the reason for none. Panics where it cannot be
/// read: then a change would be none of the result.
fn outcome(text: &str, overrides: &[String]) -> Result<String, String> {
    let config = SimConfig::parse(text, "keys", overrides);
    let config = config.unwrap_or_else(|error| panic!("{overrides:?}: {error}\n{text}"));
    let run = || Experiment::new(config)?.run();
    run().map(|result| result.result_hash).map_err(|error| error.to_string())
}

/// The traces and the log that experiments name, in a folder of their own.
fn write_inputs(folder: &Path) {
    let put = |name: &str, text: String| std::fs::write(folder.join(name), text).unwrap();
    let csv =
        |lines: String| format!("arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns\n{lines}");
    let recorded = |number: u64, op: &str| {
        let (at, block) = (number * 7_000_000 + number * number % 3000, number * 7919 % 100_000);
        let bytes = 4096 * (1 + number % 5);
        format!("{at},{op},{},{bytes},0,{}\n", block * 4096, at + 5_000_000)
    };
    let mixed = |number: u64| recorded(number, if number.is_multiple_of(3) { "W" } else { "R" });
    put("full.csv", csv((0..200).map(mixed).collect()));
    put("other.csv", csv((0..200).map(|number| recorded(number, "R")).collect()));
    put("broken.csv", csv((0..50).map(mixed).collect::<String>() + "no record\n"));
    let disks = |ms: u64| {
        let line = |number: u64| {
            format!("{}.000 {} {} 8 1\n", number * ms, number % 2, number * 7919 % 100_000 * 8)
        };
        (0..200).map(line).collect::<String>()
    };
    put("disks.trace", disks(6));
    // A clock of whole milliseconds with several requests in each, and one that goes back.
    let coarse =
        |number: u64| format!("{},R,{},4096,0,\n", number / 4 * 100_000_000, number * 409_600);
    put("coarse.csv", csv((0..200).map(coarse).collect()));
    let back = |number: u64| {
        let at = number % 100 * 9_000_000 + number;
        format!("{at},R,{},4096,0,\n", number * 409_600)
    };
    put("back.csv", csv((0..200).map(back).collect()));
    let streams = |number: u64| {
        let offset = number / 3 * 16_384 + number % 3 * 99_999_744;
        format!("{},R,{offset},16384,0,\n", number * 9_000_000)
    };
    put("streams.csv", csv((0..300).map(streams).collect()));
    let descending = |number: u64| {
        let (at, offset) =
            (number / 30 * 150_000_000 + number % 30 * 1000, (400 - number / 2) * 16_384);
        format!("{at},R,{},16384,0,\n", number % 2 * 899_997_696 + offset)
    };
    put("descending.csv", csv((0..300).map(descending).collect()));
    let writes = |number: u64| format!("{},W,{},65536,0,\n", number * 9_000_000, number * 65_536);
    put("writes.csv", csv((0..60).map(writes).collect()));
    write_others(folder, &put);
}

/// Logs, objects of a cache simulator, and a trace that names hits of a cache.
fn write_others(folder: &Path, put: &dyn Fn(&str, String)) {
    for (name, bytes) in [("web.log", 9000), ("other.log", 99_000)] {
        let line = |number: u32| {
            let (second, path) = (number / 4, number % 10);
            format!(
                "a - - [01/Aug/1995:00:00:{second:02} -0400] \"GET /{path}.html HTTP/1.0\" 200 {}\n",
                bytes + path * 1000
            )
        };
        put(name, (0..200).map(line).collect());
    }
    // Objects of 4 KiB with the numbers 0 to 99, which would overlap as blocks.
    let object = |number: u32| {
        let number = number % 100;
        let [time, size] = [number, 4096].map(u32::to_le_bytes);
        [&time[..], &u64::from(number).to_le_bytes(), &size, &(-1i64).to_le_bytes()].concat()
    };
    let objects: Vec<u8> = (0..200).flat_map(object).collect();
    std::fs::write(folder.join("objects.bin"), objects).unwrap();
    // Two requests each that become one command.
    let merged = |number: u32| {
        let (block, at) = (number * 7919 % 90_000 * 16, |ms: u32| {
            format!("8,0 1 {} {:.6}", number * 4 + ms + 1, f64::from(number * 20 + ms) / 1000.0)
        });
        format!(
            "{} 9 Q W {block} + 8 [a]\n{} 9 Q W {} + 8 [a]\n{} 9 M W {} + 8 [a]\n{} 9 D W {block} + 16 [a]\n\
             {} 0 C W {block} + 16 [0]\n",
            at(0),
            at(1),
            block + 8,
            at(1),
            block + 8,
            at(2),
            at(9)
        )
    };
    put("layers.txt", (0..60).map(merged).collect());
    let columns = "filename,file_offset,application,c_time,io_zone,redundancy_type,op_type,service_class,\
                   from_flash_cache,cache_hit,request_io_size_bytes,disk_io_size_bytes,response_io_size_bytes,\
                   start_time,disk_time,simulated_disk_start_time,simulated_latency\n";
    let thesios = |number: u32| {
        let (hit, disk) = (number % 2, 65_536 * (1 - number % 2));
        let at = f64::from(number) * 0.01;
        format!(
            "f{number},0,app,1,COLD,ERASURE_CODED,READ,OTHER,0,{hit},65536,{disk},65536,{at:.6},0.005,{at:.6},0.006\n"
        )
    };
    put("hits.csv", columns.to_owned() + &(0..60).map(thesios).collect::<String>());
}

/// A base with the paths of its inputs in the place of their names.
fn with_inputs(text: &str, folder: &Path) -> String {
    text.replace("IN/", &format!("{}/", folder.display()))
}

/// `a.b` of `a.b=1`. A list is given whole: then the key in it that changes comes first, as `a.b: a=[{b=1}]`.
fn key_and_set(row: &str) -> (&str, &str) {
    match row.split_once(": ") {
        Some((key, set)) => (key, set),
        None => (row.split_once('=').expect("a key and a value").0, row),
    }
}

#[test]
fn acting_keys_change_outcome() {
    let folder = tempfile::tempdir().unwrap();
    write_inputs(folder.path());
    let mut same = Vec::new();
    for (text, rows) in ACTING {
        let text = with_inputs(text, folder.path());
        let before = outcome(&text, &[]);
        for row in *rows {
            let (key, set) = key_and_set(row);
            if outcome(&text, &[with_inputs(set, folder.path())]) == before {
                same.push((key, set, before.clone()));
            }
        }
    }
    assert!(same.is_empty(), "without effect: {same:#?}");
}

#[test]
fn idle_keys_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    write_inputs(folder.path());
    for (text, row, when) in IDLE {
        assert!(when.len() > 20, "{row}: when does it act?");
        let text = with_inputs(text, folder.path());
        let (key, set) = key_and_set(row);
        let before = outcome(&text, &[]);
        assert!(before.is_ok(), "{key}: {before:?}");
        assert_eq!(outcome(&text, &[with_inputs(set, folder.path())]), before, "{key} acts: {set}");
    }
}

/// Keys that a run says are without effect.
fn notes(text: &str, overrides: &[&str]) -> Vec<&'static str> {
    let overrides: Vec<String> = overrides.iter().map(|&it| it.to_owned()).collect();
    let experiment = Experiment::new(SimConfig::parse(text, "keys", &overrides).unwrap()).unwrap();
    let result = experiment.run().unwrap();
    experiment.without_effect(&result).into_iter().map(|note| note.key).collect()
}

const CLOSED: &str = "workload = { kind = \"closed\", outstanding = 8, requests = 60 }";

#[test]
fn result_names_idle_keys() {
    let bare = format!("drive = \"atlas10k\"\nelectronics = false\n{CLOSED}");
    let whole = format!("drive = \"atlas10k\"\n{CLOSED}");
    let cases: [(&str, &[&str], &str); 9] = [
        (&bare, &["queue_depth=1"], "queue_depth"),
        (&bare, &["keep_free_blocks_before=false"], "keep_free_blocks_before"),
        (&whole, &["array.stripe_unit=\"4KiB\""], "array.stripe_unit"),
        (
            &whole,
            &["workload.think_time_distribution=\"exponential\""],
            "workload.think_time_distribution",
        ),
        (&whole, &["workload.pattern.local_sd=\"64KiB\""], "workload.pattern.local_sd"),
        (&bare, &["workload.pattern.fua_share=0.5"], "workload.pattern.fua_share"),
        (&whole, &["host.scheduler.budget=0.1"], "host.scheduler.budget"),
        (&whole, &["host.behaviour.queue_depth=9"], "host.behaviour.queue_depth"),
        (
            &whole,
            &["host.behaviour.seek_jitter_shape=\"normal\""],
            "host.behaviour.seek_jitter_shape",
        ),
    ];
    for (text, overrides, key) in cases {
        assert_eq!(notes(text, overrides), [key], "{overrides:?}");
    }
    for text in [&bare, &whole] {
        assert!(notes(text, &[]).is_empty(), "{text}");
    }
    assert!(
        notes(&whole, &["queue_depth=1", "array.drives=2", "array.stripe_unit=\"4KiB\""])
            .is_empty()
    );
}

#[test]
fn policy_before_deep_drive_noted_idle() {
    let depth = |depth: u32| format!("queue_depth={depth}");
    let note = |at_drive: u32, outstanding: u32| {
        let outstanding = format!("workload.outstanding={outstanding}");
        notes(CLOSED, &["scheduler.policy=\"sptf\"", &depth(at_drive), &outstanding])
    };
    assert_eq!(note(8, 8), ["scheduler"]);
    assert_eq!(note(1, 1), ["scheduler"]);
    assert!(note(7, 8).is_empty());
    assert!(notes(CLOSED, &[&depth(8)]).is_empty(), "nobody asked for a policy");
    // Requests that come one by one: the policy leaves everything as it is.
    let folder = tempfile::tempdir().unwrap();
    write_inputs(folder.path());
    let trace = with_inputs(
        "queue_depth = 32\nworkload = { kind = \"trace\", file = \"IN/full.csv\" }",
        folder.path(),
    );
    let policy = |name: &str| format!("scheduler.policy=\"{name}\"");
    assert_eq!(notes(&trace, &[&policy("sptf")]), ["scheduler"]);
    assert_eq!(outcome(&trace, &[policy("sptf")]), outcome(&trace, &[policy("clook")]));
}

#[test]
fn key_for_missing_thing_refused() {
    let says = |text: &str, set: &str| {
        let config = SimConfig::parse(text, "keys", &[set.to_owned()]).unwrap();
        Experiment::check(&config).unwrap_err().to_string()
    };
    let bare = format!("drive = \"atlas10k\"\nelectronics = false\n{CLOSED}");
    let refused = says(&bare, "queue_depth=8");
    assert!(refused.starts_with("`queue_depth` is 8: without effect"), "{refused}");
    assert!(refused.ends_with("or give `electronics = true`"), "{refused}");
    let without_file = says(&format!("drive = \"tr96\"\n{CLOSED}"), "queue_depth=8");
    assert!(without_file.contains("the file of tr96 describes no electronics"), "{without_file}");
    let kept = says(&bare, "keep_free_blocks_before=true");
    assert!(kept.starts_with("`keep_free_blocks_before` is true: without effect"), "{kept}");
    let outside = says(&format!("host = {{}}\n{CLOSED}"), "queue_depth=1");
    assert!(outside.contains("`host.scheduler.queue_depth`"), "{outside}");
}

/// Adds the paths of all keys below `node`, without numbers of lists.
fn keys_below<'a>(
    node: &'a Value,
    schema: &'a Value,
    (path, seen): (&str, &[&'a str]),
    keys: &mut BTreeSet<String>,
) -> bool {
    let mut seen = seen.to_vec();
    let mut node = node;
    while let Some(name) = node["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        if seen.contains(&name) {
            return true;
        }
        seen.push(name);
        node = &schema["$defs"][name];
    }
    let mut has_keys = false;
    for kind in ["anyOf", "oneOf", "allOf"] {
        for part in node[kind].as_array().into_iter().flatten() {
            has_keys |= keys_below(part, schema, (path, &seen), keys);
        }
    }
    if node["items"].is_object() {
        has_keys |= keys_below(&node["items"], schema, (path, &seen), keys);
    }
    for (name, value) in node["properties"].as_object().into_iter().flatten() {
        has_keys = true;
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        if !keys_below(value, schema, (&path, &seen), keys) {
            keys.insert(path);
        }
    }
    has_keys
}

#[test]
fn schema_keys_all_listed() {
    let schema = serde_json::to_value(schemars::schema_for!(SimConfig)).unwrap();
    let mut keys = BTreeSet::new();
    keys_below(&schema, &schema, ("", &[]), &mut keys);
    // A policy has the same parameters inside the drive.
    keys.retain(|key| !key.starts_with("host.behaviour.queue_policy.") || key.ends_with(".policy"));
    let acting = ACTING.iter().flat_map(|(_, rows)| rows.iter().map(|row| key_and_set(row).0));
    let idle = IDLE.iter().map(|(_, row, _)| key_and_set(row).0);
    let listed: BTreeSet<String> = acting.chain(idle).map(str::to_owned).collect();
    let is_listed =
        |key: &String| listed.iter().any(|it| it == key || it.starts_with(&format!("{key}.")));
    let missing: Vec<&String> = keys.iter().filter(|key| !is_listed(key)).collect();
    assert!(missing.is_empty(), "in no list: {missing:#?}");
    assert!(keys.len() > 150, "{}", keys.len());
    let unknown: Vec<&String> = listed
        .iter()
        .filter(|it| {
            !keys.iter().any(|key| {
                key == *it
                    || it.starts_with(&format!("{key}."))
                    || key.starts_with(&format!("{it}."))
            })
        })
        .collect();
    assert!(unknown.is_empty(), "no keys of the schema: {unknown:#?}");
}
