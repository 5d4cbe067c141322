//! `freewheel plan` as a person runs it.

use super::run::{Bench, document, finish, run, stdout};

const JBOD: &str = "examples/jbod.toml";

/// Fails with this code, with an empty stdout, and says these texts.
fn refused(code: i32, args: &[&str], texts: &[&str]) {
    let ran = run(&[&["plan"], args].concat());
    assert_eq!((ran.code, &*ran.stdout), (code, ""), "{args:?}: {}", ran.stderr);
    for text in texts {
        assert!(ran.stderr.contains(text), "{args:?}: `{text}` is not in: {}", ran.stderr);
    }
}

/// Writes a file and gives its path.
fn write(bench: &Bench, name: &str, text: &str) -> String {
    std::fs::create_dir_all(std::path::Path::new(&bench.at(name)).parent().unwrap()).unwrap();
    bench.put(name, text);
    bench.at(name)
}

#[test]
fn jbod_gives_moves_page_and_commands() {
    let bench = Bench::new("");
    let out = bench.at("out");
    let text = stdout(&["plan", "place", JBOD, "--requests", "5000", "--out", &out]);
    assert!(text.starts_with("Move 8 files"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() < 160), "{text}");
    for words in ["1. home", "overload disk bay-11", "then pays back in"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let page = std::fs::read_to_string(bench.at("out/plan.html")).unwrap();
    assert!(page.contains("Plan for jbod.toml") && page.contains("marker-end"));
    let commands = std::fs::read_to_string(bench.at("out/moves.sh")).unwrap();
    let first = "move 1 '/mnt/bay-01' 'home' '/mnt/bay-12'\n# rm -r -- '/mnt/bay-01/home'\n";
    assert!(commands.contains(first), "{commands}");
}

#[test]
fn plan_repeats_and_compares_other_disks() {
    let bench = Bench::new("");
    let out = bench.at("out");
    let what_if = ["--add-disk", "exos-x24-24tb", "--replace", "bay-05=mg11-24tb"];
    let args =
        [&["plan", "place", JBOD, "--json", "--requests", "5000", "--out", &out], &what_if[..]]
            .concat();
    let json = document(&args);
    assert_eq!(json, document(&args));
    let mean = |outcome: &serde_json::Value| outcome["simulated"]["response_s"].as_f64().unwrap();
    assert!(mean(&json["after"]) < 0.6 * mean(&json["before"]));
    assert_eq!(json["equal_bytes"]["simulated"], serde_json::Value::Null);
    let what_if = json["what_if"].as_array().unwrap();
    assert_eq!(what_if[1]["name"], "with bay-05 as mg11-24tb");
    assert!(what_if.iter().all(|outcome| mean(outcome) < mean(&json["before"])));
    let gains: f64 =
        json["moves"].as_array().unwrap().iter().map(|it| it["gain_s"].as_f64().unwrap()).sum();
    let models = |outcome: &str| json[outcome]["response_s"].as_f64().unwrap();
    assert!((gains / (models("before") - models("after")) - 1.0).abs() < 1e-6);
}

#[test]
fn new_files_placed_balanced_disks_unchanged() {
    let bench = Bench::new("");
    let disks =
        "[[disks]]\nname = \"a\"\ndrive = \"tr96\"\n[[disks]]\nname = \"b\"\ndrive = \"tr96\"\n";
    let file = |name: &str, disk: &str| {
        format!(
            "[[files]]\nname = \"{name}\"\nsize = \"90MB\"\nrequest = \"8KiB\"\nrate = 9\n{disk}"
        )
    };
    let out = bench.at("out");
    let place = |text: String| {
        let snapshot = write(&bench, "few.toml", &text);
        stdout(&["plan", "place", &snapshot, "--requests", "2000", "--out", &out])
    };
    let new = place(format!("{disks}{}{}", file("x", "disk = \"a\"\n"), file("y", "")));
    assert!(new.contains("Put 1 new file") && new.contains("y         b"), "{new}");
    let even = format!("{disks}{}{}", file("x", "disk = \"a\"\n"), file("y", "disk = \"b\"\n"));
    let even = place(even);
    assert!(even.starts_with("Leave the files where they are"), "{even}");
    // Each file alone could be served.
    let heavy = |name: &str| file(name, "disk = \"a\"\n").replace("rate = 9", "rate = 35");
    let heavy = place(format!("{disks}{}{}{}", heavy("x"), heavy("y"), heavy("z")));
    assert!(heavy.contains("add disks: disk a cannot serve"), "{heavy}");
}

#[test]
fn snapshot_errors_name_file_line_key() {
    let bench = Bench::new("");
    let disk = "[[disks]]\nname = \"a\"\ndrive = \"tr96\"\n";
    let snapshot = |text: &str| write(&bench, "wrong.toml", &format!("{disk}{text}"));
    let file = "[[files]]\nname = \"x\"\nsize = \"9MB\"\nrate = 1\n";
    let wrong = |text: &str, texts: &[&str]| {
        refused(1, &["place", &snapshot(text)], &[&["wrong.toml"], texts].concat());
    };
    wrong(&format!("{file}disk = \"b\"\n"), &["line 8", "files[0].disk", "called `b`"]);
    wrong("[[files]]\nname = \"x\"\nsize = \"9\"\nrate = 1\n", &["line 6", "size", "has no unit"]);
    wrong(&format!("{file}speed = 3\n"), &["line 8", "no key `files[0].speed`"]);
    let full = file.replace("9MB", "9GB").replace("rate", "request = \"8KiB\"\nrate");
    wrong(&format!("{full}disk = \"a\"\n"), &["line 1", "disks[0].size", "9.00 GB", "correct"]);
    let idle = file.replace("rate = 1", "rate = 0");
    wrong(&format!("{idle}disk = \"a\"\n"), &["no file has a rate above 0"]);
    write(&bench, "files.csv", "name,size,rate,disk\nx,9MB,1,a\ny,9MB,often,a\n");
    let with_csv = write(&bench, "csv.toml", &format!("files_csv = \"files.csv\"\n{disk}"));
    refused(1, &["place", &with_csv], &["files.csv", "line 3: rate: is \"often\"", "as 12.5"]);
    let csv = |text: &str, texts: &[&str]| {
        write(&bench, "files.csv", text);
        refused(1, &["place", &with_csv], &[&["files.csv"], texts].concat());
    };
    csv("name,rate\nx,1\n", &["line 1: there is no column `size`"]);
    csv("name,size,rate\n", &["names no files"]);
    csv("name,size,rate,raeds\nx,9MB,1,1\n", &["line 1: there is no column `raeds`", "`reads`"]);
    csv("name,size,rate\nx,9MiBB,1\n", &["line 2: size: ", "MiBB"]);
    csv("name,size,rate,reads\nx,9MB,1,70%\n", &["line 2: reads: is \"70%\"", "as 0.7"]);
    csv("name,size,rate\nx,9MB,1,a\n", &["line 2: it has 4 fields", "names 3 columns"]);
    csv("name,size,rate,disk\n\n../x,9MB,1,a\n", &["line 3: name", "leads out of its disk"]);
    csv("name,size,rate,disk\na/x,9MB,1,a\n/a/./x,9MB,1,a\n", &["line 3: name", "is there twice"]);
    for name in [".", "/./", "//"] {
        csv(&format!("name,size,rate,disk\n{name},9MB,1,a\n"), &["line 2: name", "names no file"]);
    }
    refused(1, &["place", &bench.at("files.csv")], &["a CSV file holds files alone", "files_csv"]);
    std::fs::remove_file(bench.at("files.csv")).unwrap();
    refused(
        1,
        &["place", &with_csv],
        &["csv.toml: line 1: files_csv", "files.csv", "no such file"],
    );
    let whole = file.replace("9MB", "3TB");
    wrong(&whole, &["files[0].request: is missing", "3.00 TB", "256KiB"]);
    // A fault in the document does not turn it into a trace.
    let broken = snapshot(&format!("{file}rate = = 2\n"));
    for verb in ["place", "stripe"] {
        refused(1, &[verb, &broken], &["wrong.toml", "line 8"]);
    }
    let unknown = "[[disks]]\nname = \"z\"\ndrive = \"exos-x24\"\n";
    wrong(&format!("{unknown}{file}"), &["line 6", "disks[1].drive", "did you mean"]);
}

#[test]
fn file_of_other_kind_named_with_verb() {
    refused(1, &["place", "examples/replay.toml"], &["is an experiment", "freewheel sim"]);
    refused(1, &["place", "drives/tr96.toml"], &["is a drive file", "`drive` of a disk"]);
    refused(1, &["place", "examples/jbot.toml"], &["no such file", "did you mean `jbod.toml`"]);
    let wrong = ["place", JBOD, "--replace", "bay-1=tr96"];
    refused(1, &wrong, &["no disk is called `bay-1`", "did you mean `bay-"]);
    refused(2, &["place", JBOD, "--keep-free", "5"], &["--keep-free", "below 100%"]);
    refused(1, &["stripe", JBOD], &["unlike", "--drive and --disks"]);
    refused(1, &["stripe", "data/recorded/pgbench-ext4.csv.zst"], &["give --disks"]);
    let unfit = |args: &[&str], option: &str| {
        refused(2, args, &[&format!("{option} has no effect here"), "leave"]);
    };
    unfit(&["place", JBOD, "--drive", "tr96"], "--drive");
    unfit(&["place", JBOD, "--fragment", "1MiB"], "--fragment");
    unfit(&["stripe", JBOD, "--no-electronics"], "--no-electronics");
    unfit(
        &["stripe", "data/recorded/pgbench-ext4.csv.zst", "--disks", "2", "--requests", "2000"],
        "--requests",
    );
    let added = ["place", JBOD, "--add-disk", "nosuch"];
    refused(1, &added, &["--add-disk nosuch: ", "nosuch"]);
}

/// Device 0 is asked for in 40 fragments ten times as often as device 1 in one.
#[test]
fn trace_planned_with_disk_per_device() {
    let bench = Bench::new("");
    let line = |number: u64| {
        let (device, fragment) = if number % 10 == 9 { (1, 0) } else { (0, number % 40) };
        let block = (fragment << 17) + (number << 3);
        format!("{}.000000\t{device}\t{block}\t8\t1\n", number * 9)
    };
    let text: String = (0..2000).map(line).collect();
    let trace = write(&bench, "two.trace", &text);
    let out = bench.at("out");
    let args = ["plan", "place", &trace, "--drive", "atlas10k", "--requests", "2000", "--json"];
    let json = document(&[&args[..], &["--out", &out]].concat());
    assert_eq!(json["disks"][0]["name"], "device 0");
    assert_eq!(json["moves"][0]["from"], "device 0");
    let busy = |outcome: &str| json[outcome]["disks"][0]["busy"].as_f64().unwrap();
    assert!(busy("after") < 0.8 * busy("before"), "{} {}", busy("before"), busy("after"));
}

#[test]
fn stripes_planned_for_files_and_trace() {
    let bench = Bench::new("");
    let out = bench.at("out");
    let files = ["plan", "stripe", JBOD, "--disks", "6", "--drive", "exos-x24-24tb"];
    let text = stdout(&[&files[..], &["--requests", "3000", "--out", &out]].concat());
    assert!(text.contains("Take stripe units of") && text.contains("own stripe unit"), "{text}");
    let trace = ["plan", "stripe", "data/recorded/pgbench-ext4.csv.zst", "--disks", "8", "--json"];
    let json = document(&[&trace[..], &["--out", &out]].concat());
    let simulated = json["units"][0]["simulated_s"].as_f64().unwrap();
    assert!(simulated > 0.0 && json["best"].is_string(), "{json}");
    // Chen's formula by Little's law: requests present with the unit to take. Its unit is a row here, too.
    let (chen, units) = (&json["chen"], json["units"].as_array().unwrap());
    let of = |unit: &serde_json::Value| {
        units.iter().find(|row| row["unit"] == *unit).unwrap()["simulated_s"].as_f64().unwrap()
    };
    let present = json["rate"].as_f64().unwrap() * of(&json["take"]["unit"]);
    assert!((chen["present"].as_f64().unwrap() / present - 1.0).abs() < 1e-9, "{json}");
    assert_eq!(chen["simulated_s"].as_f64().unwrap(), of(&chen["unit"]));
    assert!(std::fs::read_to_string(bench.at("out/stripes.html")).unwrap().contains("polyline"));
    let heavy = stdout(&[&files[..], &["--load", "9", "--out", &out]].concat());
    assert!(heavy.contains("Add disks"), "{heavy}");
    // Six disks that are 64 % busy serve no load twice as high.
    assert!(text.contains("No unit serves 2 times the load: add disks for that."), "{text}");
    assert!(text.contains("no unit serves 1.68 times"), "{text}");
}

/// Recommendation of a plan for a recording on eight disks, and its document.
fn taken(bench: &Bench, trace: &str, more: &[&str]) -> (String, serde_json::Value) {
    let out = bench.at("out");
    let args = ["plan", "stripe", trace, "--disks", "8", "--json", "--out", &out];
    let json = document(&[&args[..], more].concat());
    (json["take"]["unit"].as_str().unwrap_or("none").to_owned(), json)
}

/// Two sequential streams of large requests. Units of 128 KiB put two disks to work on each, which is the fastest at
/// this load.
fn two_streams(bench: &Bench) -> String {
    let line = |number: u64| {
        let (stream, op) = (number % 2, if number.is_multiple_of(2) { "W" } else { "R" });
        let offset = (number / 2) * 262_144 + stream * 10_240_000_000;
        format!("{},{op},{offset},262144,0,\n", number * 9_000_000)
    };
    let head = "arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns\n".to_owned();
    write(bench, "streams.csv", &(head + &(0..800).map(line).collect::<String>()))
}

#[test]
fn stripe_unit_keeps_headroom_tells_crossover_load() {
    let bench = Bench::new("");
    let trace = two_streams(&bench);
    let three = ["--headroom", "3"];
    let (unit, json) = taken(&bench, &trace, &three);
    assert_eq!((&json["best"], &*unit), (&"128KiB".into(), "256KiB"), "{json}");
    let load = &json["higher_loads"][0];
    assert_eq!(load["factor"], 3.0);
    let number = |list: &str, unit: usize| load[list][unit].as_f64().unwrap();
    assert!(number("simulated_s", 5) > 1.1 * number("simulated_s", 6), "{load}");
    assert!(number("busy_at_worst", 5) > number("busy_at_worst", 6), "{load}");
    assert_eq!(taken(&bench, &trace, &["--headroom", "1"]).0, "128KiB");
    // Where the advice turns, a plan with that headroom takes the other unit.
    let (_, json) = taken(&bench, &trace, &["--headroom", "1.5"]);
    let turns = &json["take"]["turns"];
    let at = turns["at"].as_f64().unwrap().to_string();
    assert_eq!(taken(&bench, &trace, &["--headroom", &at]).0, turns["to"].as_str().unwrap());
    for more in [["--replay", "arrivals"], ["--seed", "7"]] {
        let more = [&three[..], &more[..]].concat();
        assert_eq!(taken(&bench, &trace, &more).0, unit, "{more:?}");
    }
    let plan = ["plan", "stripe", &trace, "--disks", "8", "--out", &bench.at("out")];
    let said = stdout(&[&plan[..], &three[..]].concat());
    for words in [
        "Take stripe units of 256 KiB",
        "With 128 KiB it would be 0.42 ms now, and 0.72 ms then.",
        "256 KiB holds up to",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let wrong = ["stripe", &trace, "--disks", "8", "--headroom", "0.5"];
    refused(2, &wrong, &["--headroom", "1 to 1000"]);
}

#[test]
fn shingled_disk_is_warned_of() {
    let bench = Bench::new("");
    let disks = "[[disks]]\nname = \"smr\"\ndrive = \"ultrastar-hc620-14tb\"\n";
    let file = "[[files]]\nname = \"x\"\nsize = \"9MB\"\nrate = 1\ndisk = \"smr\"\n";
    let snapshot = write(&bench, "smr.toml", &format!("{disks}{file}"));
    let args = ["plan", "place", &snapshot, "--requests", "1000", "--out", &bench.at("out")];
    let text = stdout(&args);
    assert!(text.contains("Shingled: smr"), "{text}");
}

/// A log of 400 requests in 200 s, nine of ten to the first of ten files.
fn web_log() -> String {
    let line = |number: u32| {
        let (minute, second) = (number / 120, number / 2 % 60);
        let path = if number % 10 == 9 { number / 10 % 9 } else { 9 };
        format!(
            "a - - [01/Aug/1995:00:{minute:02}:{second:02} -0400] \"GET /{path}.html HTTP/1.0\" 200 90000\n"
        )
    };
    (0..400).map(line).collect()
}

#[test]
fn web_log_files_get_disks_and_stripes() {
    let bench = Bench::new("");
    let (log, out) = (write(&bench, "access.log", &web_log()), bench.at("out"));
    refused(2, &["place", &log], &["does not say how many disks", "give --disks"]);
    let place =
        ["plan", "place", &log, "--disks", "3", "--drive", "tr96", "--load", "20", "--json"];
    let json = document(&[&place[..], &["--requests", "3000", "--out", &out]].concat());
    let placed = json["placed"].as_array().unwrap();
    assert_eq!((placed.len(), json["disks"].as_array().unwrap().len()), (10, 3));
    // The hot file has its own disk.
    let disk = |name: &str| {
        placed.iter().find(|it| it["file"] == name).map(|it| it["disk"].as_str().unwrap()).unwrap()
    };
    let beside = (0..9).filter(|number| disk(&format!("/{number}.html")) == disk("/9.html"));
    assert_eq!(beside.count(), 0);
    let stripe = ["plan", "stripe", &log, "--disks", "3", "--drive", "tr96", "--out", &out];
    let text = stdout(&[&stripe[..], &["--requests", "2000"]].concat());
    assert!(text.contains("Take stripe units of"), "{text}");
    refused(2, &["stripe", &log, "--disks", "3", "--scale"], &["--scale has no effect here"]);
}

/// The plan of a log for two disks, as a document and as text.
fn of_log(bench: &Bench, name: &str, text: &str) -> (serde_json::Value, String) {
    let (log, out) = (write(bench, name, text), bench.at("out"));
    let args = ["plan", "place", &log, "--disks", "2", "--drive", "atlas10k", "--requests", "1000"];
    let args = [&args[..], &["--out", &out]].concat();
    (document(&[&args[..], &["--json"]].concat()), stdout(&args))
}

/// Names of the new files.
fn placed(plan: &serde_json::Value) -> Vec<String> {
    let placed = plan["placed"].as_array().unwrap().iter();
    placed.map(|new| new["file"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn paths_of_two_sites_are_distinct() {
    let bench = Bench::new("");
    let line = |site: &str, second: u32, bytes: u32| {
        format!(
            "{site}:443 192.0.2.{second} - - [18/Oct/2022:09:29:4{second} +0000] \"GET / HTTP/1.1\" 200 {bytes} \"-\" \"x\"\n"
        )
    };
    let lines =
        [line("one.example", 3, 3783), line("two.example", 4, 91541), line("one.example", 5, 3783)];
    let (plan, said) = of_log(&bench, "other_vhosts_access.log", &lines.concat());
    assert_eq!(placed(&plan), ["one.example /", "two.example /"]);
    assert!(said.contains("Files of 2 sites are told apart: one.example, two.example."), "{said}");
    let used = |disk: usize| plan["after"]["disks"][disk]["used"].as_str().unwrap().to_owned();
    let mut used = [used(0), used(1)];
    used.sort();
    assert_eq!(used, ["4KiB", "91648B"], "{plan}");
}

#[test]
fn answers_of_impossible_sizes_break_format() {
    let bench = Bench::new("");
    let line = |second: u32, bytes: u64| {
        format!("a - - [18/Oct/2022:09:29:4{second} +0000] \"GET /a HTTP/1.1\" 200 {bytes}\n")
    };
    let text = [line(0, 900), line(1, u64::MAX), line(2, u64::MAX), line(3, 900)].concat();
    let (plan, said) = of_log(&bench, "access.log", &text);
    assert_eq!(placed(&plan), ["/a"]);
    assert!(said.contains("2 lines that break the format"), "{said}");
}

#[test]
fn partial_answers_make_sizes_lower_bounds() {
    let bench = Bench::new("");
    let line = |second: u32, path: &str, answer: &str| {
        format!(
            "192.0.2.1 - - [18/Oct/2022:09:29:4{second} +0000] \"GET {path} HTTP/1.1\" {answer}\n"
        )
    };
    let part = |second: u32| line(second, "/film.mp4", "206 1048576");
    let page = |second: u32| line(second, "/index.html", "200 3783");
    let text = [page(0), part(1), part(2), part(3), page(4)].concat();
    let (plan, said) = of_log(&bench, "access.log", &text);
    assert_eq!(placed(&plan), ["/index.html", "/film.mp4"]);
    assert_eq!(
        (&plan["part_answers"]["answers"], &plan["part_answers"]["files"]),
        (&3.into(), &1.into())
    );
    assert_eq!(plan["rate"], 5.0 / 4.0);
    assert!(
        said.contains("3 answers 206 are parts of files") && said.contains("lower bound"),
        "{said}"
    );
    assert!(!said.contains("Left out"), "{said}");
}

#[test]
fn iis_and_json_logs_planned_with_gaps() {
    let bench = Bench::new("");
    let w3c = "#Fields: date time cs-method cs-uri-stem c-ip sc-status sc-bytes\n\
               2024-01-05 00:00:01 GET /a.zip 198.51.100.2 200 1048576\n\
               2024-01-05 00:00:03 GET /b.zip 198.51.100.2 200 2048\n";
    let json = |at: &str, name: &str, size: u32| {
        format!(
            "{{\"ts\":{at},\"request\":{{\"method\":\"GET\",\"host\":\"site.example\",\"uri\":\"/{name}.zip\"}},\"size\":{size},\"status\":200}}\n"
        )
    };
    let json = json("1704412801.5", "a", 1_048_576) + &json("1704412803.5", "b", 2048);
    for (name, text) in [("u_ex.log", w3c), ("caddy.log", &json)] {
        let (plan, _) = of_log(&bench, name, text);
        assert_eq!(
            (placed(&plan), &plan["rate"]),
            (vec!["/a.zip".into(), "/b.zip".into()], &1.0.into())
        );
    }
    let without_bytes = write(&bench, "few.log", &w3c.replace("sc-bytes", "sc-win32-status"));
    let lacks = ["W3C Extended Log File Format", "does not name sc-bytes"];
    refused(
        1,
        &["place", &without_bytes, "--disks", "2"],
        &[&["is no web log"], &lacks[..]].concat(),
    );
    refused(1, &["place", &without_bytes], &lacks);
    let other = write(&bench, "other.log", "a b c d e f g\nh i j k l m n\n");
    refused(1, &["place", &other, "--disks", "2"], &["is no web log: it should be in Common"]);
}

/// A trace of devices, each with its number, requests, first arrival and time between them in ms.
fn of_devices(bench: &Bench, devices: &[(u32, u64, u64, u64)]) -> String {
    let mut lines: Vec<(u64, String)> = Vec::new();
    for &(device, requests, first_ms, step_ms) in devices {
        let at = |number: u64| first_ms + number * step_ms;
        let line = |number: u64| format!("{}.000000\t{device}\t{}\t8\t1\n", at(number), number * 8);
        lines.extend((0..requests).map(|number| (at(number), line(number))));
    }
    lines.sort_by_key(|(at, _)| *at);
    let text: String = lines.into_iter().map(|(_, line)| line).collect();
    write(bench, "fleet.trace", &text)
}

#[test]
fn loads_are_of_common_device_time() {
    let bench = Bench::new("");
    let out = bench.at("out");
    // One in 300 ms over 11.7 s, and one in 15 ms over 1.5 s: that one is half busy.
    let fleet = of_devices(&bench, &[(3, 40, 0, 300), (19, 100, 500, 15)]);
    let plan = |more: &[&str]| {
        let args = ["plan", "place", &fleet, "--drive", "atlas10k", "--requests", "1000"];
        let args = [&args[..], &["--out", &out], more].concat();
        (document(&[&args[..], &["--json"]].concat()), stdout(&args))
    };
    let busy = |json: &serde_json::Value| {
        let disks = json["before"]["disks"].as_array().unwrap().iter();
        disks.map(|disk| disk["busy"].as_f64().unwrap()).collect::<Vec<_>>()
    };
    let (alone, said) = plan(&["--device", "19"]);
    assert!(busy(&alone)[0] > 0.3 && !said.contains("Loads are means"), "{said}");
    let (common, said) = plan(&[]);
    assert_eq!(busy(&common)[1], busy(&alone)[0], "{said}");
    assert_eq!(common["load_times"]["common_s"], serde_json::json!([0.5, 1.485]));
    for words in [
        "Loads are means over the 1.5 s that all devices have in common, 13 % of the 11.7 s",
        "Fewer than 20 requests in that time tell no load: device 3.",
        "requests within",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let (own, said) = plan(&["--load-time", "own"]);
    assert!(said.contains("own time, 1.5 s to 11.7 s"), "{said}");
    assert_eq!(busy(&own)[1], busy(&alone)[0]);
    let (whole, said) = plan(&["--load-time", "whole"]);
    assert!(busy(&whole)[1] < 0.2 * busy(&alone)[0], "{said}");
    assert!(said.contains("before its first request and after its last"), "{said}");
    refused(2, &["place", JBOD, "--load-time", "own"], &["--load-time has no effect here"]);
    // The common time is known at the end alone, and a pipe is read once.
    let piped = |more: &str| {
        let shell = format!(
            "cat '{fleet}' | \"$0\" plan place /dev/stdin --drive atlas10k --requests 1000 --out '{out}' {more}"
        );
        let mut command = std::process::Command::new("sh");
        finish(command.args(["-c", &shell, env!("CARGO_BIN_EXE_freewheel")]).output().unwrap())
    };
    let refused = piped("");
    assert!(refused.stderr.contains("is a pipe") && refused.stderr.contains("--load-time whole"));
    assert_eq!(piped("--load-time whole").code, 0);
}

#[test]
fn devices_without_common_time_are_refused() {
    let bench = Bench::new("");
    let place = |trace: &str| {
        let args = ["place", trace, "--drive", "atlas10k", "--requests", "1000"];
        [&args[..], &["--out", &bench.at("out")]].concat().iter().map(|it| it.to_string()).collect()
    };
    let apart = of_devices(&bench, &[(3, 200, 0, 10), (19, 100, 9000, 10)]);
    let args: Vec<String> = place(&apart);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let says = ["device 3 has its last request after 1.99 s", "device 19 its first after 9 s"];
    refused(1, &args, &[&says[..], &["50 %", "--device", "--load-time own"]].concat());
    let even = of_devices(&bench, &[(0, 200, 0, 100), (1, 200, 50, 100)]);
    let args: Vec<String> = place(&even);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let said = stdout(&[&["plan"], &args[..]].concat());
    assert!(!said.contains("Loads are means") && !said.contains("requests within"), "{said}");
}

/// The emptiest disk has room for the file that would even out most, but not in one piece.
#[test]
fn equal_bytes_plan_handles_fragmented_room() {
    let bench = Bench::new("");
    let disks = [("a", 1000), ("b", 1000), ("c", 2400), ("e", 3100)];
    let files = [
        ("a", 100),
        ("a", 600),
        ("a", 120),
        ("b", 50),
        ("c", 650),
        ("c", 650),
        ("c", 650),
        ("e", 930),
    ];
    let disk = |(name, size): (&str, u32)| {
        format!("[[disks]]\nname = \"{name}\"\ndrive = \"exos-x24-24tb\"\nsize = \"{size}GB\"\n")
    };
    let file = |(number, (disk, size)): (usize, (&str, u32))| {
        format!(
            "[[files]]\nname = \"{number}\"\nsize = \"{size}GB\"\nrequest = \"8KiB\"\nrate = 1\ndisk = \"{disk}\"\n"
        )
    };
    let disks: String = disks.into_iter().map(disk).collect();
    let files: String = files.into_iter().enumerate().map(file).collect();
    let snapshot = write(&bench, "pieces.toml", &(disks + &files));
    let args =
        ["plan", "place", &snapshot, "--requests", "1000", "--out", &bench.at("out"), "--json"];
    let json = document(&args);
    assert!(json["equal_bytes"]["moves"].as_u64().unwrap() >= 1, "{json}");
}

#[test]
fn plan_names_unmendable_hides_nothing() {
    let bench = Bench::new("");
    let disk =
        |name: &str, more: &str| format!("[[disks]]\nname = \"{name}\"\ndrive = \"tr96\"\n{more}");
    let file = |name: &str, rate: f64, disk: &str| {
        format!(
            "[[files]]\nname = \"{name}\"\nsize = \"9MB\"\nrequest = \"8KiB\"\nrate = {rate}\ndisk = \"{disk}\"\n"
        )
    };
    let plan = |text: &str| {
        let snapshot = write(&bench, "hopeless.toml", text);
        stdout(&["plan", "place", &snapshot, "--requests", "3000", "--out", &bench.at("out")])
    };
    let disks: String = ["a", "b", "c"].iter().map(|name| disk(name, "")).collect();
    let warm: String = (0..10).map(|number| file(&format!("warm {number}"), 6.0, "b")).collect();
    let text = plan(&[disks.clone(), file("db", 4000.0, "a"), warm.clone()].concat());
    assert!(text.starts_with("Move ") && text.contains("db alone asks more than any"), "{text}");
    assert!(text.contains("to c") || text.contains("b     c"), "{text}");
    // All requests are in the headline: 60 are served, and 4,000 wait.
    let headline = text.lines().next().unwrap();
    assert!(headline.contains("then 60.0 requests a second have a mean response of"), "{headline}");
    assert!(headline.contains("4,000 of 4,060 requests a second wait without end"), "{headline}");
    let text = plan(&[disks.clone(), file("db", 4000.0, "a")].concat());
    assert!(text.starts_with("db alone asks more than any of these disks can serve"), "{text}");
    // What lies beside it goes elsewhere.
    let beside: String = (0..10).map(|number| file(&format!("warm {number}"), 6.0, "a")).collect();
    let text = plan(&[disks, file("db", 4000.0, "a"), beside].concat());
    let headline = text.lines().next().unwrap();
    assert!(headline.starts_with("Move 10 files"), "{headline}");
    assert!(headline.contains("4,000 of 4,060 requests a second wait without end"), "{headline}");
    assert!(text.contains("an endless wait") && text.contains("where it is now"), "{text}");
    // Of what lies beside it, `warm` finds no room.
    let disk_of = |name: &str| disk(name, "size = \"512MB\"\n");
    let sized =
        |name: &str, size: &str, rate: f64, disk: &str| file(name, rate, disk).replace("9MB", size);
    let full = [
        disk_of("a") + &disk_of("b") + &disk_of("c"),
        sized("db", "100MB", 4000.0, "a"),
        sized("warm", "300MB", 6.0, "a"),
        sized("small", "50MB", 6.0, "a"),
        sized("b1", "260MB", 6.0, "b") + &sized("c1", "260MB", 6.0, "c"),
    ];
    let text = plan(&full.concat());
    assert!(text.contains("no disk has room for warm"), "{text}");
    // Another file of the same name on the target.
    let disks = disk("a", "path = \"/mnt/a\"\n") + &disk("b", "path = \"/mnt/b\"\n");
    let twins = [
        file("db", 15.0, "a"),
        file("mail", 14.0, "a"),
        file("db", 0.0, "b"),
        file("mail", 0.0, "b"),
    ];
    let text = plan(&(disks + &twins.concat()));
    assert!(text.contains("rename one of them before the move"), "{text}");
    let commands = std::fs::read_to_string(bench.at("out/moves.sh")).unwrap();
    assert!(commands.contains("\ntaken 1 "), "{commands}");
    let same = disk("a", "path = \"/mnt/a\"\n") + &disk("b", "path = \"/mnt/a\"\n");
    let snapshot = write(&bench, "same.toml", &(same + &file("x", 1.0, "a")));
    refused(1, &["place", &snapshot], &["line 8", "disks[1].path", "`a` is mounted there"]);
}
