//! Formats that tools of an operating system write, on small traces made by hand: recognised, read exactly,
//! and each field refused when it is wrong.

use crate::common::{
    assert_faults, completed, corpus, lenient, malformed, record, records, widened,
};
use freewheel_trace::{Format, Record};
use freewheel_units::Op;

#[test]
fn xperf_csv_counts_back_to_arrival() {
    let want = [
        completed(record(0, Op::Write, 1, 1, 1), 6_900_000),
        completed(record(4_800_000, Op::Read, 0, 0x3c5a_1e00 / 512, 16), 9_400_000),
        completed(record(10_400_000, Op::Flush, 1, 0, 0), 11_900_000),
    ];
    assert_eq!(records(&corpus("xperf_csv/clean"), Format::XperfCsv), want);
}

#[test]
fn xperf_csv_read_without_column_names() {
    let want = [
        completed(record(0, Op::Write, 3, 0x6c_0055_6e00 / 512, 128), 250_000),
        completed(record(250_000, Op::Read, 3, 0x6c_0056_6e00 / 512, 8), 350_000),
    ];
    assert_eq!(records(&corpus("xperf_csv/clean_cut"), Format::XperfCsv), want);
    let want = [
        completed(record(0, Op::Read, 4, 8, 8), 50_000),
        completed(record(130_000, Op::Flush, 4, 0, 0), 150_000),
    ];
    assert_eq!(records(&corpus("xperf_csv/clean_cpu"), Format::XperfCsv), want);
}

#[test]
fn xperf_csv_wrong_fields_named() {
    assert_faults(
        Format::XperfCsv,
        "",
        &[
            ("7, 5", "event"),
            ("DiskRead, x, a (1), 2, 0x1, 0x0, 0x200, 5, 0", "TimeStamp"),
            ("DiskRead, 9, a (1), 2, 0x1, 0x0, 0x200, x, 0", "ElapsedTime"),
            ("DiskRead, 9, a (1), 2, 0x1, 0x0, 0x200, 86400000010, 0", "ElapsedTime"),
            ("DiskRead, 9, a (1), 2, 0x1, , 0x200, 5, 0", "ByteOffset"),
            ("DiskRead, 9, a (1), 2, 0x1, 0x0, 0x0, 5, 0", "IOSize"),
            ("DiskRead, 9, a (1), 2, 0x1, 0x0, 0x200, 5, x", "DiskNum"),
            ("DiskFlush, 9, a (1), 2, 0x1, 5", "DiskNum"),
        ],
    );
    let header = malformed(b"DiskRead, TimeStamp, ElapsedTime\n", Format::XperfCsv);
    assert!(header.to_string().contains("lacks: DiskNum, ByteOffset, IOSize"), "{header}");
}

#[test]
fn wpa_csv_read_by_column_names() {
    let want = [
        completed(record(0, Op::Write, 1, 1, 1), 6_900_000),
        completed(record(4_800_100, Op::Read, 0, 0x3c5a_1e00 / 512, 16), 9_400_100),
        completed(record(10_400_000, Op::Flush, 1, 0, 0), 11_900_000),
    ];
    assert_eq!(records(&corpus("wpa_csv/clean"), Format::WpaCsv), want);
}

#[test]
fn wpa_csv_read_in_other_locales() {
    let want = [
        completed(record(0, Op::Read, 0, 8, 8), 1_234_500),
        completed(record(1_000_000_100_000, Op::Write, 2, 16, 1), 1_000_000_199_500),
    ];
    assert_eq!(records(&corpus("wpa_csv/clean_semicolons"), Format::WpaCsv), want);
    let want = [widened(record(0, Op::Read, 0, 16, 2)), record(750_000, Op::Write, 0, 0, 8)];
    assert_eq!(records(&corpus("wpa_csv/clean_tabs"), Format::WpaCsv), want);
    // A last place of ten microseconds leaves a completion twice as much.
    let rounded = b"IO Type,Init Time (s),Complete Time (s),IO Time (us),Size,Offset\n\
        Read,0.50000,0.60000,100019.5,512,0\n";
    let want = [completed(record(0, Op::Read, 0, 0, 1), 100_000_000)];
    assert_eq!(records(rounded, Format::WpaCsv), want);
    // Latin-1 has another byte for the sign of micro.
    let latin = b"IO Type,Init Time (\xb5s),Size,Offset\nRead,1.5,512,0\nRead,2.5,512,0\n";
    assert_eq!(records(latin, Format::WpaCsv)[1].arrival.ns(), 1_000);
}

#[test]
fn wpa_csv_wrong_fields_named() {
    assert_faults(
        Format::WpaCsv,
        "IO Type,Init Time (s),Complete Time (s),Size (B),Min Offset,Disk,Count\n",
        &[
            ("Purge,0.5,0.6,512,0x0,0,1", "IO Type"),
            ("Read,\"0,5\",0.6,512,0x0,0,1", "Init Time"),
            ("Read,0.5,0.4,512,0x0,0,1", "Complete Time"),
            ("Read,0.5,0.6,\"5,12\",0x0,0,1", "Size"),
            ("Read,0.5,0.6,512,0xg,0,1", "Min Offset"),
            ("Read,0.5,0.6,512,0x0,x,1", "Disk"),
            ("Read,0.5,0.6,512,0x0,0,2", "Count"),
            ("Read,0.5,0.6,512,0x0,0", "Count"),
        ],
    );
    assert_faults(
        Format::WpaCsv,
        "IO Type,Init Time (s),Complete Time (s),IO Time (us),Size (B),Min Offset\n",
        &[
            ("Read,0.500000,0.600000,100,512,0x0", "IO Time"),
            ("Read,0.500000,0.600000,\"100,000,000\",512,0x0", "IO Time"),
            ("Read,0.50000,0.60000,100020.5,512,0x0", "IO Time"),
        ],
    );
    for (header, says) in [
        ("IO Type,Size (B)", "lacks: Init Time, Min Offset"),
        ("IO Type,Init Time (h),Size (B),Offset", "times are read in (s), (ms) or (us)"),
        ("IO Type,Init Time (s),Size (MB),Offset", "sizes are read in bytes"),
    ] {
        let fault = malformed(format!("{header}\nRead,1,1,1\n").as_bytes(), Format::WpaCsv);
        assert!(fault.record == 0 && fault.to_string().contains(says), "{fault}");
    }
}

#[test]
fn biosnoop_counts_back_to_arrival() {
    let want = [
        completed(record(0, Op::Read, 1, 23_092_432, 128), 1_610_000),
        completed(record(932_000, Op::Write, 0, 23_092_560, 8), 1_432_000),
        completed(record(1_661_000, Op::Flush, 0, 0, 0), 2_901_000),
        completed(record(2_930_000, Op::Read, 0, 23_115_128, 1), 3_020_000),
    ];
    assert_eq!(records(&corpus("biosnoop/clean"), Format::Biosnoop), want);
}

#[test]
fn biosnoop_queue_arrives_when_inserted() {
    let forced = completed(record(1_410_000, Op::Write, 0, 4096, 1), 1_460_000);
    let want = [
        completed(record(0, Op::Write, 0, 2048, 8), 560_000),
        completed(record(960_000, Op::Flush, 0, 0, 0), 1_160_000),
        Record { fua: true, ..forced },
        completed(record(1_460_000, Op::Trim, 0, 0, 2048), 1_560_000),
    ];
    assert_eq!(records(&corpus("biosnoop/clean_queue"), Format::Biosnoop), want);
    let want = [
        completed(record(0, Op::Read, 0, 8, 8), 560_000),
        completed(record(400_000, Op::Read, 0, 16, 8), 660_000),
    ];
    assert_eq!(records(&corpus("biosnoop/clean_pattern"), Format::Biosnoop), want);
}

#[test]
fn biosnoop_flush_without_disk_takes_first() {
    let text = b"0.1 a 7 sdb R 8 512 0.5\n0.2 ?  0   W 0 0 0.25\n0.3 b 7 sdb W 8 512 0.5\n";
    let flush = &records(text, Format::Biosnoop)[1];
    assert_eq!((flush.op, flush.device, flush.arrival.ns()), (Op::Flush, 0, 100_250_000));
}

#[test]
fn biosnoop_wrong_fields_named() {
    assert_faults(
        Format::Biosnoop,
        "",
        &[
            ("x a 1 sdb R 8 4096 0.5", "TIME(s)"),
            ("0.1 a x sdb R 8 4096 0.5", "PID"),
            ("0.1 1 sdb R 8 4096 0.5", "COMM"),
            ("0.1 ? 0 R 0 4096 0.5", "DISK"),
            ("0.1 a 1 sdb X 8 4096 0.5", "T"),
            ("0.1 a 1 sdb R x 4096 0.5", "SECTOR"),
            ("0.1 a 1 sdb R 8 0 0.5", "BYTES"),
            ("0.1 a 1 sdb R 8 4096 x", "LAT(ms)"),
            ("0.1 a 1 sdb R 8 4096 86400101.0", "LAT(ms)"),
            ("0.1 a 1 sdb R 8 4096 x.5 1.0", "QUE(ms)"),
            ("0.1 4096 0.5", "T"),
            ("0.1 a 1 sdb R 8 4096", "LAT(ms)"),
        ],
    );
}

/// 8,16 in Linux.
const SDB: u32 = 8 << 20 | 16;

#[test]
fn ftrace_pairs_completions_and_skips_others() {
    let want = [
        completed(record(0, Op::Read, SDB, 144, 256), 357_000),
        completed(record(400_000, Op::Flush, SDB, 0, 0), 450_000),
        Record { fua: true, ..completed(record(400_000, Op::Write, SDB, 4096, 8), 700_000) },
    ];
    assert_eq!(records(&corpus("ftrace/clean"), Format::Ftrace), want);
}

#[test]
fn ftrace_without_queued_uses_inserted_or_issued() {
    for (sample, done_ns) in [("ftrace/clean_trace_cmd", 347_000), ("ftrace/clean_perf", 347_000)] {
        let want = [completed(record(0, Op::Read, SDB, 144, 256), done_ns)];
        assert_eq!(records(&corpus(sample), Format::Ftrace), want, "{sample}");
    }
}

#[test]
fn ftrace_wrong_fields_named() {
    let line = |time: &str, rest: &str| format!("dd-77 [001] {time}: block_rq_issue: {rest}");
    for (line, field) in [
        (line("x", "8,16 R 512 () 144 + 1 [dd]"), "time"),
        (line("1.5", "8 R 512 () 144 + 1 [dd]"), "device"),
        (line("1.5", "8,16 r 512 () 144 + 1 [dd]"), "rwbs"),
        (line("1.5", "8,16 R 512 () x + 1 [dd]"), "block"),
        (line("1.5", "8,16 R 512 () 144"), "+"),
        (line("1.5", "8,16 R 512 () 144 + x [dd]"), "blocks"),
        (line("1.5", "8,16 R 512 () 144 + 1 dd"), "process name or error"),
        ("CPU:1 [LOST 12 EVENTS]".into(), "line"),
        ("nothing".into(), "line"),
    ] {
        assert_faults(Format::Ftrace, "", &[(&line, field)]);
    }
    let lost = malformed(b"CPU:1 [LOST 12 EVENTS]\n", Format::Ftrace).to_string();
    assert!(lost.contains("record again with a larger buffer"), "{lost}");
    assert_eq!(lenient(&corpus("ftrace/dirty"), Format::Ftrace).1, 8);
}

#[test]
fn fio_lat_log_counts_back_to_arrival() {
    let want = [
        completed(record(0, Op::Write, 0, 2048, 128), 1_100_000),
        completed(record(850_000, Op::Read, 0, 16, 8), 1_100_000),
        completed(record(2_600_000, Op::Trim, 0, 0, 2048), 3_100_000),
    ];
    assert_eq!(records(&corpus("fio_lat_log/clean"), Format::FioLatLog), want);
    let want = [
        completed(record(0, Op::Read, 0, 16, 8), 250_000),
        completed(record(950_000, Op::Write, 0, 0, 1), 1_250_000),
    ];
    assert_eq!(records(&corpus("fio_lat_log/clean_old"), Format::FioLatLog), want);
}

#[test]
fn fio_lat_log_unlike_columns_not_recognised() {
    let log = |line: [&str; 3]| line.join("\n") + "\n";
    for (text, is) in [
        (["1, 250000, 0, 4096, 8192, 0", "1, 900000, 1, 512, 0, 0", "2, 5, 0, 512, 512, 0"], true),
        // Sizes and offsets that are no blocks.
        (["1, 250000, 0, 40, 8192, 0", "1, 900000, 1, 51, 0, 0", "2, 5, 0, 51, 512, 0"], false),
        (["1, 250000, 0, 4096, 8190, 0", "1, 900000, 1, 512, 7, 0", "2, 5, 0, 512, 5, 0"], false),
        // Latencies, then offsets, that are all the same.
        (["1, 2500, 0, 4096, 8192, 0", "1, 2500, 1, 512, 0, 0", "2, 2500, 0, 512, 512, 0"], false),
        (
            ["1, 250000, 0, 4096, 512, 0", "1, 900000, 1, 512, 512, 0", "2, 5, 0, 512, 512, 0"],
            false,
        ),
        // Requests before the log, and times that fall.
        (
            ["1, 2500000, 0, 4096, 8192, 0", "1, 9000000, 1, 512, 0, 0", "2, 5, 0, 512, 512, 0"],
            false,
        ),
        (["9, 250000, 0, 4096, 8192, 0", "4, 900000, 1, 512, 0, 0", "2, 5, 0, 512, 512, 0"], false),
    ] {
        let found = Format::detect(log(text).as_bytes());
        assert_eq!(found, is.then_some(Format::FioLatLog), "{text:?}");
    }
}

#[test]
fn fio_lat_log_issue_times_are_nanoseconds() {
    let want = [
        completed(record(0, Op::Write, 0, 2048, 128), 1_100_000),
        completed(record(200_300, Op::Read, 0, 16, 8), 450_300),
    ];
    assert_eq!(records(&corpus("fio_lat_log/clean_issue"), Format::FioLatLog), want);
}

#[test]
fn fio_lat_log_wrong_fields_named() {
    assert_faults(
        Format::FioLatLog,
        "",
        &[
            ("x, 250000, 0, 4096, 8192, 0", "time"),
            ("1, x, 0, 4096, 8192, 0", "latency"),
            ("1, 86400001000001, 0, 4096, 8192, 0", "latency"),
            ("1, 250000, 3, 4096, 8192, 0", "direction"),
            ("1, 250000, 0, 0, 0, 0", "size"),
            ("1, 250000, 0, 4096", "offset"),
            ("1, 250000, 0, 4096, 8192, 0xg", "priority"),
            ("1, 250000, 0, 4096, 8192, 0, x", "issue"),
            ("1, 250000, 0, 4096, 8192, 0, 1, 1", "line"),
        ],
    );
}

#[test]
fn fio_log_without_offsets_is_no_trace() {
    for text in [
        "1, 250000, 0, 4096, 0\n2, 300000, 1, 512, 1\n",
        "1, 250000, 0, 4096\n2, 300000, 1, 512\n",
        "1, 250000, 0, 4096, 0x0000\n2, 300000, 1, 512, 0x0000\n",
        "500, 250000, 0, 0, 0, 0\n1000, 300000, 1, 0, 0, 0\n",
    ] {
        assert_eq!(Format::detect(text.as_bytes()), None, "{text}");
    }
}
