//! `freewheel plan` as a person runs it.

use super::run::{Bench, document, run, stdout};

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
fn a_jbod_gives_moves_a_page_and_commands() {
    let bench = Bench::new("");
    let out = bench.at("out");
    let text = stdout(&["plan", "place", JBOD, "--requests", "5000", "--out", &out]);
    assert!(text.starts_with("Move 4 files"), "{text}");
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
fn the_plan_is_the_same_in_every_run_and_says_what_other_disks_would_do() {
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
fn new_files_get_a_disk_and_balanced_disks_stay_as_they_are() {
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
fn what_is_wrong_in_a_snapshot_is_said_with_file_line_key_and_way_out() {
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
fn another_kind_of_file_is_named_with_the_verb_that_takes_it() {
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
fn a_trace_is_planned_with_a_disk_for_each_device() {
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
fn stripes_are_planned_for_files_and_for_a_trace() {
    let bench = Bench::new("");
    let out = bench.at("out");
    let files = ["plan", "stripe", JBOD, "--disks", "6", "--drive", "exos-x24-24tb"];
    let text = stdout(&[&files[..], &["--requests", "3000", "--out", &out]].concat());
    assert!(text.contains("Take stripe units of") && text.contains("own stripe unit"), "{text}");
    let trace = ["plan", "stripe", "data/recorded/pgbench-ext4.csv.zst", "--disks", "8", "--json"];
    let json = document(&[&trace[..], &["--out", &out]].concat());
    let simulated = json["units"][0]["simulated_s"].as_f64().unwrap();
    assert!(simulated > 0.0 && json["best"].is_string(), "{json}");
    assert!(std::fs::read_to_string(bench.at("out/stripes.html")).unwrap().contains("polyline"));
    let heavy = stdout(&[&files[..], &["--load", "9", "--out", &out]].concat());
    assert!(heavy.contains("Add disks"), "{heavy}");
}

#[test]
fn a_shingled_disk_is_warned_of() {
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
fn the_files_of_a_web_log_get_disks_and_stripes() {
    let bench = Bench::new("");
    let (log, out) = (write(&bench, "access.log", &web_log()), bench.at("out"));
    refused(2, &["place", &log], &["does not say how many disks", "give --disks"]);
    let place =
        ["plan", "place", &log, "--disks", "3", "--drive", "tr96", "--load", "20", "--json"];
    let json = document(&[&place[..], &["--requests", "3000", "--out", &out]].concat());
    let placed = json["placed"].as_array().unwrap();
    assert_eq!((placed.len(), json["disks"].as_array().unwrap().len()), (10, 3));
    // The hot file has a disk of its own.
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

/// Runs the commands of a plan with a `mountpoint` that knows only mounted folders and an `rsync` that
/// copies.
fn run_moves(bench: &Bench, from: &str) -> (bool, String) {
    let ran = std::process::Command::new("sh")
        .args([&bench.at("out/moves.sh"), from])
        .env("PATH", format!("{}:/usr/bin:/bin", bench.at("stubs")))
        .output()
        .unwrap();
    let said = [ran.stdout, ran.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (ran.status.success(), said.concat())
}

fn stub(bench: &Bench, name: &str, script: &str) {
    use std::os::unix::fs::PermissionsExt;
    let path = write(bench, &format!("stubs/{name}"), &format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// Disk b is full until its archive has gone to a; then one of the two hot files of a fits.
#[test]
fn the_commands_stop_where_a_disk_is_not_mounted_a_name_is_taken_or_an_original_is_in_the_way() {
    let bench = Bench::new("");
    let disk = |name: &str| {
        let path = bench.at(name);
        format!(
            "[[disks]]\nname = \"{name}\"\ndrive = \"tr96\"\nsize = \"512MB\"\npath = \"{path}\"\n"
        )
    };
    let file = |name: &str, size: u32, rate: f64, disk: &str| {
        format!(
            "[[files]]\nname = \"{name}\"\nsize = \"{size}MB\"\nrequest = \"8KiB\"\nrate = {rate}\ndisk = \"{disk}\"\n"
        )
    };
    let files = [
        file("hot one", 150, 20.0, "a"),
        file("hot two", 150, 20.0, "a"),
        file("archive", 150, 0.01, "b"),
        file("still", 280, 1.0, "b"),
    ];
    let text = [disk("a"), disk("b"), files.concat()].concat();
    let snapshot = write(&bench, "full.toml", &text);
    let args =
        ["plan", "place", &snapshot, "--requests", "2000", "--out", &bench.at("out"), "--json"];
    let moves = document(&args)["moves"].clone();
    assert_eq!((&moves[0]["file"], &moves[0]["makes_room"]), (&"archive".into(), &true.into()));
    let hot = moves[1]["file"].as_str().unwrap();
    for name in ["a/hot one", "a/hot two", "b/archive", "b/still"] {
        write(&bench, name, name);
    }
    stub(&bench, "mountpoint", "test -e \"$3/mounted\"");
    // The source is DISK/./FILE.
    stub(&bench, "rsync", "cp \"$3\" \"$4\"");
    let (is_done, said) = run_moves(&bench, "1");
    assert!(!is_done && said.contains("is not mounted"), "{said}");
    assert!(!std::path::Path::new(&bench.at("a/archive")).exists());
    write(&bench, "a/mounted", "");
    write(&bench, "b/mounted", "");
    let (is_done, said) = run_moves(&bench, "1");
    assert!(!is_done && said.contains("move 1 copied"), "{said}");
    assert!(said.contains("needs the room of") && said.contains("sh moves.sh 2"), "{said}");
    let (is_done, said) = run_moves(&bench, "1");
    assert!(
        !is_done && said.contains("is there. If it is this copy and complete, run: sh moves.sh 2"),
        "{said}"
    );
    std::fs::remove_file(bench.at("b/archive")).unwrap();
    let (is_done, said) = run_moves(&bench, "2");
    assert!(is_done && said.contains("move 2 copied"), "{said}");
    let moved = std::fs::read_to_string(bench.at(&format!("b/{hot}"))).unwrap();
    assert_eq!(moved, format!("a/{hot}"));
}

/// The emptiest disk has room for the file that would even out most, but not in one piece.
#[test]
fn equal_bytes_are_worked_out_on_disks_whose_room_is_in_pieces() {
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
fn what_no_move_can_mend_is_named_and_hides_nothing_else() {
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
    let text = plan(&[disks, file("db", 4000.0, "a")].concat());
    assert!(text.starts_with("db alone asks more than any of these disks can serve"), "{text}");
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
    assert!(commands.contains("has another"), "{commands}");
    let same = disk("a", "path = \"/mnt/a\"\n") + &disk("b", "path = \"/mnt/a\"\n");
    let snapshot = write(&bench, "same.toml", &(same + &file("x", 1.0, "a")));
    refused(1, &["place", &snapshot], &["line 8", "disks[1].path", "`a` is mounted there"]);
}
