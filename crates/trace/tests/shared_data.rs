//! Public traces that may not be in the repository, against `../shared/data/README.md`.
//! Skipped, with a line that says so, where the folder is absent.

use std::path::{Path, PathBuf};

use freewheel_trace::{Format, OpenOptions, TraceInfo, TraceReader, characterize};

const HP: &str = "hplajw-1week-1992.srt.zst";
const VSCSI: &str = "cloudPhysicsIO.vscsi.zst";
const DISKSIM: &str = "disksim-ascii.trace.zst";
const HEIMDALL: &str = "heimdall-msr.cut.per_10k.rw_20_80.105.trace.zst";

/// The trace of this name, or `None` after saying that the test is skipped.
fn shared(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/traces");
    if !folder.is_dir() {
        println!("skipped: {} is absent, so {name} is not tested", folder.display());
        return None;
    }
    Some(folder.join(name))
}

fn info(name: &str) -> Option<TraceInfo> {
    let mut reader = TraceReader::open(&shared(name)?, &OpenOptions::default()).unwrap();
    Some(TraceInfo::scan(&mut reader).unwrap())
}

#[test]
fn hp_srt_of_hplajw_has_its_requests_of_a_week_on_two_disks() {
    let Some(info) = info(HP) else { return };
    assert_eq!((info.format, info.requests), (Format::HpSrt, 44_519));
    // 603064.588892 s, a little less than seven days; completions are recorded.
    assert_eq!(info.span_ns, 603_064_588_892_000);
    assert!(info.has_completions);
    assert_eq!(info.devices.keys().copied().collect::<Vec<_>>(), [0, 1]);
    // Disk 0 has 1449 cylinders of 904 sectors of 256 bytes, so 654,948 blocks of 512.
    assert!(info.devices[&0].end_block <= 654_948);
}

#[test]
fn hp_srt_of_hplajw_has_believable_response_times() {
    let Some(path) = shared(HP) else { return };
    let mut reader = TraceReader::open(&path, &OpenOptions::default()).unwrap();
    let response = characterize(&mut reader).unwrap().response;
    let read_ms = response.read.unwrap().mean_ns / 1e6;
    assert!((5.0..100.0).contains(&read_ms), "{read_ms} ms");
}

#[test]
fn vscsi_of_cloud_physics_has_its_requests_of_two_hours() {
    let Some(info) = info(VSCSI) else { return };
    assert_eq!((info.format, info.requests), (Format::Vscsi, 113_872));
    assert_eq!((info.reads, info.writes), (46_974, 66_898));
    assert_eq!(info.span_ns, 7_200_089_885_000);
}

#[test]
fn disksim_ascii_has_its_requests_on_14_disks() {
    let Some(info) = info(DISKSIM) else { return };
    assert_eq!((info.format, info.requests), (Format::DisksimAscii, 100_000));
    assert_eq!((info.reads, info.devices.len()), (79_634, 14));
    // From 13.191135 ms to 1532949.045363 ms.
    assert_eq!(info.span_ns, 1_532_935_854_228);
    let hottest = info.devices.values().map(|device| device.requests).max().unwrap();
    assert!((hottest as f64 / (100_000.0 / 14.0) - 2.8).abs() < 0.05, "{hottest}");
}

#[test]
fn a_heimdall_cut_is_told_from_disksim_and_read_in_bytes() {
    let Some(info) = info(HEIMDALL) else { return };
    assert_eq!((info.format, info.requests), (Format::HeimdallText, 10_000));
    assert_eq!((info.reads, info.span_ns), (2_020, 242_904_693_000));
}

#[test]
fn formats_that_are_not_block_traces_of_ours_are_refused_and_not_guessed() {
    for name in [
        "apress-blktrace.txt.zst",
        "arc-OLTP.lis.zst",
        "flashnet-tencent.rw_60_40.490.trace.zst",
        "mqsim-tpcc-small.trace.zst",
    ] {
        let Some(path) = shared(name) else { return };
        let error = TraceReader::open(&path, &OpenOptions::default()).err().unwrap().to_string();
        assert!(error.contains("its format was not recognised"), "{error}");
    }
}
