//! Experiments with files on the disks of an array.

use std::io::Write;

use freewheel_array::files::CoolingResult;
use freewheel_sim::config::SimConfig;
use freewheel_sim::experiment::Experiment;
use freewheel_sim::{Completion, RunResult};
use freewheel_units::Bytes;

const CLASSES: &str = r#"
[[workload.classes]]
name = "small"
files = 300
size = "64KiB"
request = "8KiB"
share = 3
reads = 0.5
hot = { files = 0.3, requests = 0.7 }
[[workload.classes]]
name = "large"
files = 40
size = "1MiB"
sizes = "exponential"
"#;

/// Keys of the experiment, of its array and of its workload.
fn config(keys: &str, array: &str, workload: &str, classes: &str) -> String {
    format!(
        "drive = \"tr96\"\nwarm_up = 0.2\nscheduler.policy = \"fcfs\"\n{keys}\n[array]\n{array}\n\
         [workload]\nkind = \"files\"\n{workload}\n{classes}"
    )
}

fn run(text: &str) -> RunResult {
    let config = SimConfig::parse(text, "files", &[]).unwrap();
    Experiment::new(config).unwrap().run().unwrap()
}

fn wrong(text: &str) -> String {
    let config = SimConfig::parse(text, "files", &[]).unwrap();
    Experiment::new(config).unwrap_err().to_string()
}

#[test]
fn classes_disks_and_slices_add_up() {
    let text = config(
        "slices = 2",
        "drives = 4",
        "rate = 60\nrequests = 5000\nplacement = \"random\"",
        CLASSES,
    );
    let result = run(&text);
    assert_eq!(result, run(&text));
    let files = result.files.as_ref().unwrap();
    let [small, large] = &files.classes[..] else { panic!("{files:?}") };
    assert_eq!((small.files, large.files), (300, 40));
    assert_eq!((result.requests, small.response.count + large.response.count), (4000, 4000));
    // Three of four requests go to the small files, and they are the shorter ones.
    assert!((2850..3150).contains(&small.response.count), "{}", small.response.count);
    assert!(small.response.p50_ns < large.response.p50_ns);
    let sum =
        |of: &freewheel_array::files::ClassResult| of.response.mean_ns * of.response.count as f64;
    let mean_ns = (sum(small) + sum(large)) / 4000.0;
    assert!((mean_ns / result.response.mean_ns - 1.0).abs() < 1e-9);
    assert_eq!((result.disks.len(), files.filled.len(), result.slices.len()), (4, 4, 2));
    let busy: f64 = result.disks.iter().map(|disk| disk.utilisation).sum::<f64>() / 4.0;
    assert!((busy / result.utilisation - 1.0).abs() < 1e-9);
    // Little's law: what is at the disks is what responses add up to.
    let queue: f64 = result.disks.iter().map(|disk| disk.queue_mean).sum();
    let expected = result.requests_per_second * result.response.mean_ns / 1e9;
    assert!((queue / expected - 1.0).abs() < 0.05, "{queue} {expected}");
}

#[test]
fn hot_files_get_requested_share() {
    let hot = CLASSES.replace("hot = { files = 0.3, requests = 0.7 }", "");
    let heats = |classes: &str| {
        let workload = "rate = 20\nrequests = 4000\nplacement = \"round-robin\"";
        let result = run(&config("", "drives = 300", workload, classes));
        let mut pieces: Vec<f64> = result.disks.iter().map(|disk| disk.pieces_per_second).collect();
        pieces.sort_by(|a, b| b.total_cmp(a));
        pieces[..90].iter().sum::<f64>() / pieces.iter().sum::<f64>()
    };
    // About one file of the small class a disk; the large class adds to 40 of them.
    let (skewed, even) = (heats(CLASSES), heats(&hot));
    assert!((0.62..0.78).contains(&skewed) && even < 0.52, "{skewed} {even}");
}

#[test]
fn stripes_spread_file_and_shorten_reads() {
    let large = "[[workload.classes]]\nfiles = 40\nsize = \"1MiB\"\n";
    let mean = |stripes: &str| {
        let workload = format!("rate = 4\nrequests = 2000\nstripes = {stripes}");
        run(&config("", "drives = 8", &workload, large)).response.mean_ns
    };
    let (whole, unit, best) = (mean("\"whole\""), mean("{ unit = \"128KiB\" }"), mean("\"best\""));
    assert!(unit < 0.6 * whole && best < 0.6 * whole, "{whole} {unit} {best}");
}

#[test]
fn placement_by_heat_beats_equal_bytes() {
    // The hot class has the small files.
    let classes = "[[workload.classes]]\nfiles = 8\nsize = \"1MiB\"\nrequest = \"8KiB\"\nshare = 9\n\
        [[workload.classes]]\nfiles = 24\nsize = \"30MiB\"\nrequest = \"8KiB\"\nshare = 1\n";
    let hottest = |placement: &str| {
        let workload = format!("rate = 100\nrequests = 4000\nplacement = \"{placement}\"");
        let result = run(&config("", "drives = 5", &workload, classes));
        result.disks.iter().map(|disk| disk.utilisation).fold(0.0, f64::max)
    };
    assert!(hottest("heat") < 0.8 * hottest("equal-bytes"));
}

#[test]
fn files_combine_with_drive_features() {
    let workload = "rate = 60\nrequests = 3000\nmore_disks = [{ drive = \"atlas10k\", count = 2 }]";
    let plain = run(&config("", "drives = 2", workload, CLASSES));
    // The faster drives, though equally loaded, are less busy.
    let busy = |result: &RunResult, disk: usize| result.disks[disk].utilisation;
    assert!(busy(&plain, 2) + busy(&plain, 3) < 0.8 * (busy(&plain, 0) + busy(&plain, 1)));
    let atlas = |keys: &str, tables: &str| {
        let text = config(keys, "drives = 2", "rate = 60\nrequests = 3000", CLASSES);
        run(&(text.replace("drive = \"tr96\"", "drive = \"atlas10k\"") + tables))
    };
    let bare = atlas("electronics = false", "");
    assert!(atlas("", "").buffer_reads > 0);
    let cached = atlas("electronics = false", "[cache]\nsize = \"64MiB\"\n");
    assert!(cached.response.mean_ns < 0.9 * bare.response.mean_ns, "{:?}", cached.response);
    let free = "[freeblock]\ntasks = [{ kind = \"scan\" }]\n";
    let text = config("electronics = false", "drives = 2", "rate = 60\nrequests = 3000", CLASSES);
    let text = text.replace("warm_up = 0.2\n", "").replace("tr96", "atlas10k");
    let (without, with) = (run(&text), run(&(text.clone() + free)));
    assert_eq!(with.requests_hash.unwrap(), without.result_hash);
    assert!(with.background.len() == 2 && with.free.is_some());
}

#[test]
fn cooling_moves_hot_files_without_requests() {
    // Round robin puts the hot files of two classes on two disks of four.
    let classes = "[[workload.classes]]\nfiles = 400\nsize = \"64KiB\"\nrequest = \"8KiB\"\nreads = 0.5\n\
        hot = { files = 0.02, requests = 0.9 }\n";
    let run = |cooling: &str| {
        let workload = "rate = 110\nrequests = 12000\nplacement = \"round-robin\"";
        run(&config("", "drives = 4", workload, &format!("{classes}{cooling}")))
    };
    let (without, with) = (run(""), run("[workload.cooling]\nevery = 50\n"));
    let cooling = with.files.as_ref().unwrap().cooling.as_ref().unwrap();
    assert!(cooling.moves > 0 && cooling.bytes.get() == cooling.moves * 65536, "{cooling:?}");
    assert_eq!((with.requests, without.requests), (9600, 9600));
    assert!(
        with.response.mean_ns < 0.9 * without.response.mean_ns,
        "{} {}",
        with.response.mean_ns,
        without.response.mean_ns
    );
}

#[test]
fn hot_files_outermost_shorten_seeks() {
    // 400 files fill most of the disks, and 60 of them get most requests.
    let class = |files: u32, share: f64| {
        format!(
            "[[workload.classes]]\nfiles = {files}\nsize = \"3MiB\"\nrequest = \"8KiB\"\nshare = {share}\n"
        )
    };
    let classes = class(60, 0.9) + &class(340, 0.1);
    let run = |order: &str| {
        let workload = format!("rate = 40\nrequests = 4000\nplacement = \"round-robin\"\n{order}");
        run(&config("", "drives = 4", &workload, &classes))
    };
    let (placed, outermost) = (run(""), run("order = \"hottest-outermost\""));
    let seek = |result: &RunResult| result.stages.seek_ns as f64;
    assert!(seek(&outermost) < 0.85 * seek(&placed), "{} {}", seek(&outermost), seek(&placed));
    assert!(outermost.response.mean_ns < placed.response.mean_ns);
}

#[test]
fn copies_first_skip_overloaded_queue() {
    // The hot files are on one disk of four, which cannot serve them.
    let classes = "[[workload.classes]]\nfiles = 400\nsize = \"64KiB\"\nrequest = \"8KiB\"\n\
        hot = { files = 0.02, requests = 0.9 }\n";
    let run = |keys: &str| {
        let workload = "rate = 200\nrequests = 12000\nplacement = \"round-robin\"";
        let cooling = format!("{classes}[workload.cooling]\nevery = 50\n{keys}");
        let result = run(&config("", "drives = 4", workload, &cooling));
        (result.files.unwrap().cooling.unwrap(), result.response.mean_ns)
    };
    let (last, first) = (run(""), run("copies_first = true\n"));
    assert!(
        first.0.copying_ns / first.0.moves < last.0.copying_ns / last.0.moves / 2,
        "{last:?} {first:?}"
    );
    assert!(first.0.moves > last.0.moves, "{last:?} {first:?}");
}

#[test]
fn daemon_looks_while_clients_idle() {
    // One request in ten seconds.
    let run = |every: &str| {
        let cooling = format!("{CLASSES}[workload.cooling]\n{every}");
        run(&config("", "drives = 2", "rate = 0.1\nrequests = 30", &cooling))
    };
    let steps = |result: &RunResult| result.files.as_ref().unwrap().cooling.as_ref().unwrap().steps;
    let by_default = run("");
    let seconds = (by_default.warm_up_ns + by_default.elapsed_ns) / 1_000_000_000;
    assert!(seconds > 100 && steps(&by_default).abs_diff(seconds) <= 1, "{seconds}");
    assert_eq!(steps(&run("every = \"10s\"\n")).abs_diff(seconds / 10), 0);
    assert_eq!(steps(&run("every = 10\n")), 3);
}

#[test]
fn web_log_replayed_with_own_times() {
    let mut log = tempfile::Builder::new().suffix(".log").tempfile().unwrap();
    for number in 0..100 {
        writeln!(
            log,
            "a - - [01/Aug/1995:00:00:{:02} -0400] \"GET /{} HTTP/1.0\" 200 {}",
            number / 2,
            number % 7,
            5000 + number % 7
        )
        .unwrap();
    }
    let workload = |speedup: u32| {
        format!("log = {:?}\narrival_speedup = {speedup}", log.path().display().to_string())
    };
    let slow = run(&config("", "drives = 2", &workload(1), ""));
    let fast = run(&config("", "drives = 2", &workload(10), ""));
    assert_eq!((slow.requests, fast.requests), (80, 80));
    assert!((slow.elapsed_ns as f64 / fast.elapsed_ns as f64 - 10.0).abs() < 0.3);
    assert_eq!(slow.files.unwrap().classes[0].files, 7);
}

#[test]
fn concurrent_moves_bring_more_extents() {
    let classes = "[[workload.classes]]\nfiles = 400\nsize = \"64KiB\"\nrequest = \"8KiB\"\n\
        hot = { files = 0.3, requests = 0.7 }\n";
    let cooling = |moves: u32| {
        let workload = "rate = 150\nrequests = 9000\nplacement = \"round-robin\"";
        let cooling = format!(
            "{classes}[workload.cooling]\nevery = \"200ms\"\nrule = \"target-stays-cooler\"\n\
             waits = false\nrate = \"40KB\"\nmoves = {moves}\n"
        );
        run(&config("", "drives = 8", workload, &cooling)).files.unwrap().cooling.unwrap()
    };
    // A copy takes 1.6 s, and a look comes five times a second.
    let (one, four) = (cooling(1), cooling(4));
    assert_eq!(one.at_once, 1);
    assert!((2..=4).contains(&four.at_once), "{four:?}");
    assert!(2 * four.moves > 3 * one.moves, "{one:?} {four:?}");
}

/// Completions of all requests, and the cooling: 36 files on four disks, of which a fifth is hot, among large
/// ones.
fn completions(size: &str, cooling: &str) -> (Vec<(u64, u64)>, Option<CoolingResult>) {
    completions_of(16_000, size, cooling)
}

fn completions_of(
    requests: u32,
    size: &str,
    cooling: &str,
) -> (Vec<(u64, u64)>, Option<CoolingResult>) {
    let classes = format!(
        "[[workload.classes]]\nfiles = 36\nsize = \"{size}\"\nrequest = \"4KiB\"\nreads = 0.7\n\
         share = 0.5\nhot = {{ files = 0.2, requests = 0.8 }}\n\
         [[workload.classes]]\nfiles = 200\nsize = \"1MB\"\nrequest = \"4KiB\"\nshare = 0.5\n{cooling}"
    );
    let text = config(
        "electronics = false",
        "drives = 4",
        &format!("rate = 400\nrequests = {requests}\nplacement = \"round-robin\""),
        &classes,
    );
    let text = text.replace("warm_up = 0.2\n", "").replace("tr96", "atlas10k");
    let config = SimConfig::parse(&text, "files", &[]).unwrap();
    let mut all = Vec::new();
    let mut see = |done: &Completion| all.push((done.request.tag, done.end.ns()));
    let experiment = Experiment::new(config).unwrap();
    let result = experiment.new_run().with_observer(&mut see).simulate().unwrap();
    all.sort_unstable();
    (all, result.files.unwrap().cooling)
}

const GAPS: &str = "[workload.cooling]\nevery = \"100ms\"\nwaits = false\ncopies = \"gaps\"\n";

#[test]
fn copies_in_gaps_delay_no_request() {
    let (without, _) = completions("20MB", "");
    // In 40 s no file of 20 MB is copied.
    let (with, cooling) = completions("20MB", GAPS);
    let cooling = cooling.unwrap();
    assert_eq!((cooling.moves, cooling.unfinished), (0, 1), "{cooling:?}");
    assert_eq!(with, without);
    let by_requests = GAPS.replace("gaps", "requests");
    assert_ne!(completions("20MB", &by_requests).0, without);
    // Small files are copied, and more of them where idle time helps.
    let moves = |more: &str| {
        let (all, cooling) = completions("200KB", &format!("{GAPS}{more}"));
        assert_eq!(all.len(), 16_000);
        let cooling = cooling.unwrap();
        assert_eq!(cooling.held_writes, 0);
        cooling.moves
    };
    let (alone, idle) = (moves(""), moves("idle_after = \"1ms\"\n"));
    assert!(alone > 0 && idle > alone, "{alone} {idle}");
}

#[test]
fn copies_in_outside_gaps_delay_little() {
    let mean = |cooling: &str| {
        let (all, cooling) = completions_of(30_000, "200KB", &format!("{cooling}[host]\n"));
        let sum: u64 = all.iter().map(|(_, end)| end).sum();
        (sum / all.len() as u64, cooling)
    };
    let (without, _) = mean("");
    let (in_gaps, cooling) = mean(GAPS);
    let cooling = cooling.unwrap();
    assert!(cooling.moves > 0 && cooling.held_writes == 0, "{cooling:?}");
    // Of 10 ms and more; what has moved is even served earlier.
    assert!(in_gaps < without + 100_000, "{in_gaps} {without}");
}

#[test]
fn copies_in_gaps_name_exclusions() {
    let says = |keys: &str, tables: &str, text: &str| {
        let classes = format!("{CLASSES}{GAPS}{tables}");
        let text_of =
            config(keys, "drives = 2", "rate = 10", &classes).replace("warm_up = 0.2\n", "");
        let said = wrong(&text_of.replace("\"tr96\"", "\"atlas10k\""));
        assert!(said.contains(text), "`{text}` is not in: {said}");
    };
    says("", "", "needs `electronics = false`, or `host`");
    let bare = "electronics = false";
    says(bare, "[freeblock]\ntasks = [{}]\n", "want the same gaps");
    says(bare, "[cache]\nsize = \"1MiB\"\n", "`cache` and `cooling.copies = \"gaps\"`");
}

#[test]
fn files_conflicting_keys_refused() {
    let rate = "rate = 10";
    let says = |keys: &str, array: &str, workload: &str, classes: &str, text: &str| {
        let said = wrong(&config(keys, array, workload, classes));
        assert!(said.contains(text), "`{text}` is not in: {said}");
    };
    says("", "", rate, "", "there are no files");
    says("", "", "", CLASSES, "`rate` is missing");
    says("", "", "rate = 0", CLASSES, "`rate` is 0");
    says("", "layout = \"independent\"", rate, CLASSES, "files lie on all drives");
    says("", "", "rate = 10\nlog = \"x.log\"", CLASSES, "exclude each other");
    says("", "", "rate = 10\nalign = \"100B\"", CLASSES, "`align` is");
    let none = CLASSES.replace("files = 300", "files = 0");
    says("", "", rate, &none, "`classes[0].files` is 0");
    let huge = CLASSES.replace("1MiB", "9GiB");
    says("", "", rate, &huge, "class `large`");
    let new = CLASSES.replace("share = 3", "share = 3\nnew_files = -1.0");
    says("", "", rate, &new, "`classes[0].new_files` is -1: 0 to");
    says(
        "",
        "",
        "rate = 10\nnew_heat = \"known\"",
        CLASSES,
        "`new_heat` is for `placement = \"heat\"`",
    );
    let swapped = CLASSES.replace("files = 0.3, requests = 0.7", "files = 0.7, requests = 0.3");
    says("", "", rate, &swapped, "classes[0].hot");
    let cooled = format!("{CLASSES}[workload.cooling]\nevery = 0\n");
    says("", "", rate, &cooled, "`cooling.every` is 0");
    let often = format!("{CLASSES}[workload.cooling]\nevery = \"1us\"\n");
    says("", "", rate, &often, "`cooling.every` is 1us");
    for (key, text) in [
        ("waits_factor = 0.5", "`cooling.waits_factor` is 0.5: a number of 1 or more"),
        ("waits_arrivals = 0", "`cooling.waits_arrivals` is 0: at least 1"),
        ("candidates = 0", "`cooling.candidates` is 0: at least 1"),
        ("moves = 0", "`cooling.moves` is 0: 1 to 64"),
        ("idle_after = \"1s\"", "`cooling.idle_after` is for `copies = \"gaps\"`: leave it out"),
        ("copies = \"gaps\"\nrate = \"1MB\"", "`cooling.rate` is for `copies = \"requests\"`"),
        ("copies = \"gaps\"\ncopies_first = true", "`cooling.copies_first` is for"),
        ("copies = \"gaps\"\nidle_after = \"2h\"", "`cooling.idle_after` is 2h: at most an hour"),
    ] {
        says("", "", rate, &format!("{CLASSES}[workload.cooling]\n{key}\n"), text);
    }
    let zoned = "rate = 10\nmore_disks = [{ drive = \"ultrastar-hc620-14tb\", count = 1 }]";
    says("", "", zoned, CLASSES, "`more_disks[0].drive` is ultrastar-hc620-14tb: a host-managed");
    says("", "", "rate = 100000\nstripes = \"best\"", CLASSES, "however files are cut");
}

#[test]
fn class_wrong_key_named_with_line() {
    let says = |classes: &str, texts: &[&str]| {
        let text = config("", "", "rate = 10", classes);
        let said = SimConfig::parse(&text, "files", &[]).unwrap_err().to_string();
        texts.iter().for_each(|text| assert!(said.contains(text), "`{text}` is not in: {said}"));
    };
    let missing = CLASSES.replace("files = 0.3, requests = 0.7", "files = 0.3");
    says(&missing, &["line 18", "`workload.classes[0].hot.requests` is missing"]);
    let unknown = CLASSES.replace("\"exponential\"", "\"normal\"");
    says(&unknown, &["line 23", "workload.classes[1].sizes", "`constant` or `exponential`"]);
    let drive = "rate = 10\nmore_disks = [{ drive = \"atlas1k\", count = 1 }]";
    let said = wrong(&config("", "", drive, CLASSES));
    assert!(said.contains("`more_disks[0].drive`") && said.contains("atlas10k"), "{said}");
}

#[test]
fn drift_moves_hot_set_and_cooling() {
    // A tenth of 400 files gets most requests; every ten seconds all change their shares.
    let classes = "[[workload.classes]]\nfiles = 400\nsize = \"64KiB\"\nrequest = \"8KiB\"\n\
        hot = { files = 0.1, requests = 0.6 }\n";
    let run = |drift: &str, cooling: &str| {
        let workload = format!("rate = 140\nrequests = 18000\nplacement = \"heat\"\n{drift}");
        run(&config("", "drives = 4", &workload, &format!("{classes}{cooling}")))
    };
    let drift = "drift = { every = \"10s\", files = 1.0 }";
    // Without drift the placement by heat stays good, and with it now this disk is hot, now that one.
    let (still, drifting) = (run("", ""), run(drift, ""));
    assert_eq!(still.requests, drifting.requests);
    let mean = |result: &RunResult| result.response.mean_ns / 1e6;
    assert!(mean(&still) < 0.95 * mean(&drifting), "{} {}", mean(&still), mean(&drifting));
    let moves = |result: &RunResult| result.files.as_ref().unwrap().cooling.as_ref().unwrap().moves;
    let cooling =
        "[workload.cooling]\nevery = \"1s\"\nrule = \"target-stays-cooler\"\nwaits = false\n";
    let (few, many) = (run("", cooling), run(drift, cooling));
    assert!(2 * moves(&many) > 3 * moves(&few), "{} {}", moves(&many), moves(&few));
}

#[test]
fn stripes_by_chen_coarsen_with_concurrency() {
    let large = "[[workload.classes]]\nfiles = 40\nsize = \"1MiB\"\n";
    let pieces = |chen: u32| {
        let workload = format!("rate = 4\nrequests = 1000\nstripes = {{ chen = {chen} }}");
        let result = run(&config("", "drives = 8", &workload, large));
        result.disks.iter().map(|disk| disk.pieces_per_second).sum::<f64>()
    };
    assert!(pieces(2) > pieces(64), "{} {}", pieces(2), pieces(64));
    let alone = config("", "drives = 8", "rate = 4\nstripes = { chen = 1 }", large);
    assert!(wrong(&alone).contains("`stripes.chen` is 1"));
}

#[test]
fn fragments_move_to_disks_of_file() {
    // Each file lies on all disks, so no extent has another disk to go to.
    let classes = "[[workload.classes]]\nfiles = 60\nsize = \"256KiB\"\nrequest = \"8KiB\"\n\
        hot = { files = 0.02, requests = 0.95 }\n";
    let moves = |unit: &str| {
        let workload = "rate = 120\nrequests = 12000\nstripes = { unit = \"64KiB\" }";
        let cooling = format!(
            "[workload.cooling]\nevery = 50\nrule = \"target-stays-cooler\"\nwaits = false\nunit = \"{unit}\"\n"
        );
        let result = run(&config("", "drives = 4", workload, &format!("{classes}{cooling}")));
        result.files.unwrap().cooling.unwrap().moves
    };
    assert_eq!(moves("extents"), 0);
    assert!(moves("fragments") > 0);
}

#[test]
fn drift_out_of_range_or_log_refused() {
    for (drift, says) in [
        ("{ every = \"1us\", files = 0.1 }", "`drift.every` is 1us"),
        ("{ every = \"1s\", files = 0.0 }", "`drift.files` is 0: a share as 0.1 is needed"),
        (
            "{ every = \"1s\", files = 1.0, changes_max = 0 }",
            "`drift.changes_max` is 0: at least 1",
        ),
    ] {
        let text = config("", "drives = 2", &format!("rate = 4\ndrift = {drift}"), CLASSES);
        assert!(wrong(&text).contains(says), "{}", wrong(&text));
    }
}

#[test]
fn cooling_default_worsens_no_placement() {
    let classes = "[[workload.classes]]\nfiles = 400\nsize = \"64KiB\"\nrequest = \"8KiB\"\nreads = 0.5\n\
        hot = { files = 0.3, requests = 0.7 }\n";
    for placement in ["heat", "equal-bytes", "round-robin", "random"] {
        for rate in [40, 160] {
            let mean = |cooling: &str| {
                let workload =
                    format!("rate = {rate}\nrequests = 12000\nplacement = \"{placement}\"");
                let text = config("", "drives = 4", &workload, &format!("{classes}{cooling}"));
                run(&text).response.mean_ns
            };
            let (without, with) = (mean(""), mean("[workload.cooling]\n"));
            assert!(with <= 1.01 * without, "{placement} at {rate}: {with} {without}");
        }
    }
}

#[test]
fn results_print_chosen_stripes() {
    let classes = "[[workload.classes]]\nfiles = 40\nsize = \"1MiB\"\n\
        [[workload.classes]]\nfiles = 40\nsize = \"256KiB\"\nsizes = \"exponential\"\n";
    let stripes = |key: &str| {
        let workload = format!("rate = 4\nrequests = 200\n{key}");
        let files = run(&config("", "drives = 8", &workload, classes)).files.unwrap();
        files.classes.iter().map(|class| class.stripes).collect::<Vec<_>>()
    };
    assert_eq!(stripes(""), [None, None]);
    let [Some(large), Some(small)] = stripes("stripes = { unit = \"64KiB\" }")[..] else {
        panic!()
    };
    assert_eq!([large.unit_min, large.unit_max], [Bytes::from_kib(64); 2]);
    assert_eq!((large.width_min, large.width_max), (8, 8));
    assert_eq!([small.unit_min, small.unit_max], [Bytes::from_kib(64); 2]);
    assert!(small.width_min < small.width_max, "{small:?}");
    // Equation 1 by hand: the unit grows with the root of the requests at a time less one.
    let unit = |chen: u32| {
        let [Some(large), _] = stripes(&format!("stripes = {{ chen = {chen} }}"))[..] else {
            panic!()
        };
        assert_eq!(large.unit_min, large.unit_max);
        large.unit_max.get() as f64
    };
    assert!((unit(17) / unit(5) - 2.0).abs() < 0.05, "{} {}", unit(17), unit(5));
    let [Some(best), _] = stripes("stripes = \"best\"")[..] else { panic!() };
    assert!(best.width_max > 1 && best.unit_max.get() < 1 << 20, "{best:?}");
}

#[test]
fn results_count_hot_set_changes() {
    let drift = |key: &str| {
        let workload = format!("rate = 10\nrequests = 1000\n{key}");
        run(&config("", "drives = 2", &workload, CLASSES)).files.unwrap().drift
    };
    assert_eq!(drift(""), None);
    // About 100 s with a change in each: 30 of 300 files, and 4 of 40.
    let some = drift("drift = { every = \"1s\", files = 0.1 }").unwrap();
    assert!((90..110).contains(&some.changes), "{some:?}");
    assert_eq!(some.files, 34 * some.changes);
    // Ten changes come between two requests on average, and one of them is made.
    let all = drift("drift = { every = \"10ms\", files = 0.1 }").unwrap();
    let one = drift("drift = { every = \"10ms\", files = 0.1, changes_max = 1 }").unwrap();
    assert!(all.changes > 8 * one.changes && one.changes <= 1000, "{all:?} {one:?}");
}

#[test]
fn choice_with_wrong_value_count_explained() {
    let says = |workload: &str, cooling: &str, text: &str| {
        let text_of =
            config("", "", &format!("rate = 10\n{workload}"), &format!("{CLASSES}{cooling}"));
        let meant = cooling.lines().last().unwrap_or(workload);
        let line = 1 + text_of.lines().position(|line| line == meant).unwrap();
        let said = SimConfig::parse(&text_of, "files", &[]).unwrap_err().to_string();
        assert!(
            said.contains(&format!("line {line}: `workload.{text}")),
            "`{text}` is not in: {said}"
        );
    };
    says(
        "stripes = \"chen\"",
        "",
        "stripes` is \"chen\" alone: write { chen = ... } with a number",
    );
    says("stripes = \"unit\"", "", "stripes` is \"unit\" alone: write { unit = ... } with a size");
    says(
        "stripes = { best = 2 }",
        "",
        "stripes` is a table: \"best\" takes no value, so write it alone",
    );
    let rule = |rule: &str| format!("[workload.cooling]\nrule = {rule}\n");
    let variance =
        "cooling.rule` is \"variance\" alone: write { variance = ... } with a length of time";
    says("", &rule("\"variance\""), variance);
    let cooler =
        "cooling.rule` is a table: \"target-stays-cooler\" takes no value, so write it alone";
    says("", &rule("{ target-stays-cooler = \"1h\" }"), cooler);
}

#[test]
fn created_files_take_deleted_places() {
    let classes = |new: &str| {
        format!(
            "[[workload.classes]]\nname = \"mail\"\nfiles = 300\nsize = \"64KiB\"\nsizes = \"exponential\"\n\
             request = \"8KiB\"\nhot = {{ files = 0.3, requests = 0.7 }}\n{new}\n\
             [[workload.classes]]\nfiles = 40\nsize = \"1MiB\"\nshare = 0.1\n"
        )
    };
    let run = |new: &str, workload: &str, cooling: &str| {
        let workload = format!("rate = 60\nrequests = 6000\n{workload}");
        run(&config("", "drives = 4", &workload, &format!("{}{cooling}", classes(new))))
    };
    let without = run("", "", "");
    assert_eq!(without.files.as_ref().unwrap().new_files, None);
    let seconds = 6000.0 / 65.0;
    for placement in ["heat", "round-robin", "random", "equal-bytes"] {
        let keys = format!("placement = \"{placement}\"");
        let result = run("new_files = 5", &keys, "");
        assert_eq!(result, run("new_files = 5", &keys, ""));
        let files = result.files.unwrap();
        let new = files.new_files.unwrap();
        // Poisson: within four deviations. The mean size of 64 KiB has one of the same size.
        assert!(
            (new.created as f64 - 5.0 * seconds).abs() < 4.0 * (5.0 * seconds).sqrt(),
            "{new:?}"
        );
        let mean = new.bytes.get() as f64 / new.created as f64 / 65536.0;
        assert!((mean - 1.0).abs() < 4.0 / (new.created as f64).sqrt(), "{mean}");
        assert_eq!((new.deleted, new.without_room), (new.created, 0));
        // Every request counts, those that write new files among them, and no room is lost.
        let counts: u64 = files.classes.iter().map(|class| class.response.count).sum();
        assert_eq!(counts, 4800);
        let before: f64 = without.files.as_ref().unwrap().filled.iter().sum();
        let after: f64 = files.filled.iter().sum();
        assert!((after / before - 1.0).abs() < 0.1, "{before} {after}");
    }
    // Copies and deletions go together: a file that is being copied goes after its copy.
    let cooling = "[workload.cooling]\nevery = 10\nrule = \"target-stays-cooler\"\nwaits = false\nmoves = 2\n";
    let keys = "placement = \"round-robin\"\ndrift = { every = \"5s\", files = 0.5 }";
    let files = run("new_files = 20", keys, cooling).files.unwrap();
    let (new, cooling) = (files.new_files.unwrap(), files.cooling.unwrap());
    assert!(cooling.moves > 5 && new.created > 1000, "{cooling:?} {new:?}");
    assert!((0..=2).contains(&(new.created - new.deleted)), "{new:?}");
}

#[test]
fn new_files_without_room_overwrite_old() {
    // A disk of 565 MB has one file of 300 MB, and no room for another one.
    let classes =
        "[[workload.classes]]\nfiles = 3\nsize = \"SIZE\"\nrequest = \"8KiB\"\nnew_files = 0.1\n";
    let new = |size: &str| {
        let text =
            config("", "drives = 3", "rate = 10\nrequests = 500", &classes.replace("SIZE", size));
        run(&text).files.unwrap().new_files.unwrap()
    };
    let (large, small) = (new("300MB"), new("3MB"));
    assert!(large.created == 0 && large.without_room > 0, "{large:?}");
    assert!(small.without_room == 0 && small.created > 0, "{small:?}");
}

#[test]
fn rates_change_at_their_times() {
    let seconds = |rates: &str| {
        let workload = format!("rate = 50\nrequests = 4000\n{rates}");
        let small = "[[workload.classes]]\nfiles = 100\nsize = \"64KiB\"\nrequest = \"4KiB\"\n";
        let text = config("", "drives = 8", &workload, small).replace("warm_up = 0.2", "");
        run(&text).elapsed_ns as f64 / 1e9
    };
    // 50 a second; or for 40 s, and then 20 a second.
    assert!((seconds("") / 80.0 - 1.0).abs() < 0.06, "{}", seconds(""));
    let later = seconds("rates = [{ from = \"40s\", rate = 20 }]");
    assert!((later / 140.0 - 1.0).abs() < 0.06, "{later}");
}

#[test]
fn stripes_follow_growing_load_at_cost() {
    let classes = "[[workload.classes]]\nfiles = 200\nsize = \"260KB\"\nsizes = \"exponential\"\nreads = 0.7\n";
    let run = |workload: &str| {
        let workload = format!(
            "rate = 5\nrequests = 9000\nstripes = \"best\"\nrates = [{{ from = \"60s\", rate = 80 }}]\n{workload}"
        );
        let text = config("slices = 4", "drives = 16", &workload, classes);
        run(&text.replace("warm_up = 0.2", ""))
    };
    let restriped = |result: &RunResult| result.files.as_ref().unwrap().restriping.unwrap();
    let without = run("");
    assert!(without.files.as_ref().unwrap().restriping.is_none());
    // A change of the response that does not occur: the load is looked at, and nothing changes.
    let never = run("restriping = { every = \"10s\", least_change = \"1h\" }");
    assert!(restriped(&never).checks > 5 && restriped(&never).files == 0);
    assert_eq!(never.result_hash, without.result_hash);
    let with = run("restriping = { every = \"10s\", files = 200 }");
    let work = restriped(&with);
    assert!(work.files > 100 && work.copying_ns > 0 && work.without_room == 0, "{work:?}");
    // First the copies make queues longer, and then wide stripes no longer do.
    let mean = |result: &RunResult, part: usize| result.slices[part].reads.response_ns_mean / 1e6;
    assert!(mean(&with, 1) > mean(&without, 1), "{} {}", mean(&with, 1), mean(&without, 1));
    assert!(mean(&with, 3) < 0.6 * mean(&without, 3), "{} {}", mean(&with, 3), mean(&without, 3));
    // Files have one layout each, whatever they went through.
    let filled = |result: &RunResult| result.files.as_ref().unwrap().filled.iter().sum::<f64>();
    assert!(work.unfinished > 0 || (filled(&with) / filled(&without) - 1.0).abs() < 1e-9);
}

#[test]
fn restriping_and_rates_out_of_range_refused() {
    let says = |workload: &str, tables: &str, text: &str| {
        let workload = format!("rate = 10\n{workload}");
        let said = wrong(&config("", "drives = 2", &workload, &format!("{CLASSES}{tables}")));
        assert!(said.contains(text), "`{text}` is not in: {said}");
    };
    says("rates = [{ from = \"1s\", rate = 0 }]", "", "`rates[0].rate` is 0");
    let twice = "rates = [{ from = \"2s\", rate = 1 }, { from = \"2s\", rate = 2 }]";
    says(twice, "", "`rates[1].from` is 2s: a later time");
    says("restriping = { every = \"1us\" }", "", "`restriping.every` is 1us");
    says("restriping = { files = 0 }", "", "`restriping.files` is 0");
    says("restriping = { piece = \"1B\" }", "", "`restriping.piece` is 1B: at least");
    says(
        "restriping = {}",
        "[workload.cooling]\n",
        "`restriping` and `cooling` exclude each other",
    );
    says("restriping = {}", "[cache.write_buffer]\n", "`restriping` and `cache.write_buffer`");
}
