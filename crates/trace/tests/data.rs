//! Public traces and a log that may not be redistributed.
#![allow(missing_docs)]

use std::path::{Path, PathBuf};

use freewheel_testkit::data;
use freewheel_trace::{
    Format, Layer, OpenOptions, Record, TraceInfo, TraceReader, WebLog, characterize,
};
use freewheel_units::Op;

const HP: &str = "hplajw-1week-1992.srt.zst";
const VSCSI: &str = "cloudPhysicsIO.vscsi.zst";
const DISKSIM: &str = "disksim-ascii.trace.zst";
const HEIMDALL: &str = "heimdall-msr.cut.per_10k.rw_20_80.105.trace.zst";

fn trace(name: &str) -> PathBuf {
    data::file(&format!("traces/{name}"))
}

fn open(path: &Path) -> TraceReader {
    TraceReader::open(path, &OpenOptions::default()).unwrap()
}

fn info(name: &str) -> TraceInfo {
    TraceInfo::scan(&mut open(&trace(name))).unwrap()
}

#[test]
fn hp_srt_hplajw_covers_week_two_disks() {
    let info = info(HP);
    assert_eq!((info.format, info.requests), (Format::HpSrt, 44_519));
    // 603064.588892 s, a little less than seven days; completions are recorded.
    assert_eq!(info.span_ns, 603_064_588_892_000);
    assert!(info.has_completions);
    assert_eq!(info.devices.keys().copied().collect::<Vec<_>>(), [0, 1]);
    // Disk 0 has 1449 cylinders of 904 sectors of 256 bytes, so 654,948 blocks of 512.
    assert!(info.devices[&0].end_block <= 654_948);
}

#[test]
fn hp_srt_hplajw_responses_are_believable() {
    let mut reader = open(&trace(HP));
    let response = characterize(&mut reader).unwrap().response;
    let read_ms = response.read.unwrap().mean_ns / 1e6;
    assert!((5.0..100.0).contains(&read_ms), "{read_ms} ms");
}

#[test]
fn vscsi_cloud_physics_covers_two_hours() {
    let info = info(VSCSI);
    assert_eq!((info.format, info.requests), (Format::Vscsi, 113_872));
    assert_eq!((info.reads, info.writes), (46_974, 66_898));
    assert_eq!(info.span_ns, 7_200_089_885_000);
}

#[test]
fn disksim_ascii_covers_14_disks() {
    let info = info(DISKSIM);
    assert_eq!((info.format, info.requests), (Format::DisksimAscii, 100_000));
    assert_eq!((info.reads, info.devices.len()), (79_634, 14));
    // From 13.191135 ms to 1532949.045363 ms.
    assert_eq!(info.span_ns, 1_532_935_854_228);
    let hottest = info.devices.values().map(|device| device.requests).max().unwrap();
    assert!((hottest as f64 / (100_000.0 / 14.0) - 2.8).abs() < 0.05, "{hottest}");
}

#[test]
fn heimdall_cut_read_in_bytes() {
    let info = info(HEIMDALL);
    assert_eq!((info.format, info.requests), (Format::HeimdallText, 10_000));
    assert_eq!((info.reads, info.span_ns), (2_020, 242_904_693_000));
}

#[test]
fn blkparse_apress_has_requests_and_completions() {
    let file = trace("apress-blktrace.txt.zst");
    // Of 15,524 requests the recorded system issued 522, each with all that was merged into it.
    assert_eq!(open(&file).count(), 522);
    let options = OpenOptions { layer: Layer::Queued, ..OpenOptions::default() };
    let mut reader = TraceReader::open(&file, &options).unwrap();
    assert_eq!(reader.format(), Format::Blkparse);
    let records: Vec<Record> = reader.by_ref().map(Result::unwrap).collect();
    // Counted by a program that looks at every block alone.
    assert_eq!(records.len(), 15_524);
    assert_eq!(records.iter().filter(|record| record.op == Op::Read).count(), 80);
    assert_eq!(records.iter().filter(|record| record.completion.is_some()).count(), 7_710);
    let response = |record: &Record| Some((record.completion? - record.arrival).ns());
    assert_eq!(records.iter().filter_map(response).sum::<u64>(), 710_538_099_521);
}

#[test]
fn systor17_delivered_by_arrival_with_responses() {
    let mut reader = open(&trace("systor17-999.csv.gz"));
    assert_eq!(reader.format(), Format::Systor17);
    let records: Vec<Record> = reader.by_ref().map(Result::unwrap).collect();
    assert_eq!(records.len(), 999);
    assert!(records.is_sorted_by_key(|record| record.arrival));
    let response = |record: &Record| (record.completion.unwrap() - record.arrival).ns();
    assert_eq!(records.iter().map(response).sum::<u64>(), 3_858_071_000);
    assert_eq!(records.last().unwrap().arrival.ns(), 2_447_767_000);
}

#[test]
fn traces_of_hfplayer_have_latencies() {
    for (name, requests, reads, span_ns, bytes) in [
        ("hfplayer-scrub-512MB-Q1.csv.zst", 500, 84, 176_381_884, 2_048_000),
        ("hfplayer-small-tpch.csv.zst", 780, 0, 924_965_213, 38_334_464),
        ("hfplayer-synthetic.csv.zst", 32_768, 0, 407_908_716, 134_217_728),
    ] {
        let info = info(name);
        assert_eq!(
            (info.format, info.requests, info.reads),
            (Format::HfplayerCsv, requests, reads)
        );
        assert_eq!((info.span_ns, info.bytes), (span_ns, bytes), "{name}");
        assert!(info.has_completions);
    }
}

#[test]
fn flashnet_csv_tencent_has_latencies() {
    let info = info("flashnet-tencent.rw_60_40.490.trace.zst");
    assert_eq!((info.format, info.requests, info.reads), (Format::FlashnetCsv, 50_000, 30_012));
    assert_eq!((info.span_ns, info.has_completions), (147_000_000_000, true));
}

#[test]
fn mqsim_told_from_disksim_by_microseconds() {
    let info = info("mqsim-tpcc-small.trace.zst");
    assert_eq!((info.format, info.requests, info.reads), (Format::Mqsim, 6_999, 4_381));
    assert_eq!((info.span_ns, info.devices.len()), (136_489_000, 16));
}

#[test]
fn arc_lis_oltp_has_expected_pages() {
    let info = info("arc-OLTP.lis.zst");
    assert_eq!((info.format, info.requests, info.span_ns), (Format::ArcLis, 914_145, 0));
    assert_eq!(info.footprint_bytes, Some(186_880 * 4096));
}

#[test]
fn oracle_general_places_match_vscsi() {
    let oracle = open(&trace("cloudPhysicsIO.oracleGeneral.bin.zst"));
    let vscsi = open(&trace(VSCSI));
    assert_eq!(oracle.format(), Format::OracleGeneral);
    // Its converter gave an object that comes again one size.
    let place = |record: Result<Record, _>| record.unwrap().start;
    assert!(oracle.map(place).eq(vscsi.map(place)));
}

#[test]
fn combined_log_read_to_end() {
    let log = WebLog::open(&data::file("weblogs/apache-combined-2015.log.gz"), false).unwrap();
    let left_out = log.left_out;
    let others = left_out.other_methods + left_out.other_statuses + left_out.without_bytes;
    assert_eq!(log.requests.len() as u64 + others, 10_000);
}
