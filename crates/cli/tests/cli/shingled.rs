use super::run::{Bench, document, run, stdout};

const DRIVE: &str = "ultrastar-hc620-14tb";

/// Bench of a drive whose first sequential zone begins at 524 times 256 MiB. Of three writes to the second
/// zone the first is taken, the next leaves a gap and the last leaves the zone; a read lies behind them.
fn bench() -> Bench {
    let at = |offset: u64| 525 * (256 << 20) + offset;
    Bench::new(&format!(
        "arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns\n\
         0,W,{},4096,0,5000000\n10000000,W,{},4096,0,15000000\n\
         20000000,W,{},8192,0,25000000\n30000000,R,{},4096,0,35000000\n\
         40000000,F,0,0,0,45000000\n",
        at(0),
        at(8192),
        at((256 << 20) - 4096),
        at(4096)
    ))
}

fn set(kind: &str, bench: &Bench) -> String {
    let file = super::run::repository().join(format!("drives/{DRIVE}.toml"));
    let text = std::fs::read_to_string(file).unwrap();
    let changed = text.replace("kind = \"host-managed\"", &format!("kind = \"{kind}\""));
    bench.put("drive.toml", &changed);
    format!("drive={}", bench.at("drive.toml"))
}

#[test]
fn host_managed_refusals_counted_by_reason() {
    let bench = bench();
    let (sim, drive) = (bench.at("sim.toml"), set("host-managed", &bench));
    let args = ["sim", &*sim, "--set", &*drive];
    let text = stdout(&args);
    assert!(
        text.contains("requests      5 (1 reads, 1 writes, 1 flushes, 0 trims, 2 refused"),
        "{text}"
    );
    let refused =
        "refused       1 not at the write pointer, 1 over a zone boundary, 0 to a full zone";
    assert!(text.contains(refused), "{text}");
    assert!(text.contains("This host-managed drive would refuse 67 % of the writes"), "{text}");
    let writes = &document(&[&args[..], &["--json"]].concat())["result"]["refused_writes"];
    assert_eq!((&writes["count"], &writes["zone_full"]), (&2.into(), &0.into()));
    assert_eq!(
        (&writes["not_at_write_pointer"], &writes["over_zone_boundary"]),
        (&1.into(), &1.into())
    );
}

#[test]
fn study_begins_with_host_managed_refusals() {
    let bench = bench();
    let (trace, out) = (bench.at("trace.csv"), bench.at("out"));
    let study = document(&["study", &trace, "--drive", DRIVE, "--out", &out, "--json"]);
    assert_eq!(
        study["findings"][0]["headline"],
        "This host-managed drive would refuse 67 % of the writes: 1 are not at the write pointer of \
         their zone, 1 cross the boundary of their zone."
    );
    assert_eq!(study["runs"][0]["result"]["flush_response"]["count"], 1);
}

#[test]
fn study_of_refused_writes_is_whole() {
    let bench = Bench::new(
        "arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns\n0,W,200000000000,4096,0,5000000\n",
    );
    let (trace, out) = (bench.at("trace.csv"), bench.at("out"));
    let study = document(&["study", &trace, "--drive", DRIVE, "--out", &out, "--json"]);
    let headline = study["findings"][0]["headline"].as_str().unwrap();
    let number = &study["findings"][0]["number"];
    assert_eq!((&number["value"], &number["unit"]), (&1.0.into(), &"share".into()));
    let page = std::fs::read_to_string(bench.at("out/report.html")).unwrap();
    assert!(page.contains(headline) && !page.contains("NaN"));
    let (sim, drive) = (bench.at("sim.toml"), set("host-managed", &bench));
    let page = bench.at("sim.html");
    assert_eq!(run(&["sim", &sim, "--set", &drive, "--report", &page]).code, 0);
}

#[test]
fn shingled_unmodelled_parts_always_named() {
    let bench = bench();
    let sim = bench.at("sim.toml");
    for kind in ["host-aware", "drive-managed"] {
        let drive = set(kind, &bench);
        let page = bench.at("sim.html");
        let text = stdout(&["sim", &sim, "--set", &drive, "--report", &page]);
        let caution = format!("This drive is shingled and {kind}; its internal media cache");
        assert!(text.contains(&caution) && !text.contains("refused"), "{text}");
        assert!(std::fs::read_to_string(page).unwrap().contains(&caution));
    }
    let text = stdout(&["sim", "examples/shingled.toml", "--set", &set("host-aware", &bench)]);
    assert!(text.contains("media cache"), "{text}");
}
