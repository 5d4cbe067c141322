//! Three damaged files of every trace format: the answer names the file, the record, the field and the way
//! out.

use std::collections::BTreeSet;
use std::path::Path;

use super::run::{Bench, SMALL_TRACE, run, stdout};

/// Damage to a sound trace.
enum Damage {
    /// The file ends in the middle of its last record.
    Cut,
    /// The line of this number, from 1, becomes another.
    Line(usize, &'static str),
    /// Bytes at an offset become others.
    Bytes(usize, &'static [u8]),
}

use Damage::{Bytes, Cut, Line};

/// A damage, and what the answer says of the place: the record, and the field with the value found.
struct Case(Damage, &'static str, &'static str);

/// A format, a sound sample of its fuzz corpus, and its cases.
struct Row(&'static str, &'static str, [Case; 3]);

const LONG: &[u8] = &[0xff; 8];

const ROWS: &[Row] = &[
    Row(
        "alibaba-csv",
        "alibaba_csv/clean",
        [
            Case(Cut, "(record 3, ", "timestamp is ``"),
            Case(Line(2, "1,X,0,512,5"), "line 2 (record 2, ", "opcode is `X`"),
            Case(Line(3, "1,R,-8,512,5"), "line 3 (record 3, ", "offset is `-8`"),
        ],
    ),
    Row(
        "arc-lis",
        "arc_lis/clean",
        [
            Case(Cut, "(record 3, ", "number is ``"),
            Case(Line(2, "here"), "line 2 (record 2, ", "start is `here`"),
            Case(Line(3, "5 99999999999999999999999 0 7"), "line 3 (record 3, ", "count is `9999"),
        ],
    ),
    Row(
        "blkparse",
        "blkparse/clean",
        [
            Case(
                Line(2, "  8,16   5        2     0.000001850 186"),
                "line 2 (record 2, ",
                "action is ``",
            ),
            Case(Line(2, "here"), "line 2 (record 2, ", "device is `here`"),
            Case(
                Line(2, "8,16 5 2 x 18615 Q R 144 + 256 [java]"),
                "line 2 (record 2, ",
                "time is `x`",
            ),
        ],
    ),
    Row(
        "blktrace",
        "blktrace/v7",
        [
            Case(Cut, "record 8 at byte 344", "event is `"),
            Case(Bytes(344, &[0; 4]), "record 8 at byte 344", "magic is `\\x00\\x00\\x00\\x00`"),
            Case(Bytes(196, &[0xff; 12]), "record 4 at byte 152", "event is `"),
        ],
    ),
    Row(
        "disksim-ascii",
        "disksim_ascii/clean",
        [
            Case(Cut, "(record 4, ", "flags is ``"),
            Case(Line(2, "here 0 5 8 1"), "line 2 (record 2, ", "arrival_ms is `here`"),
            Case(Line(4, "9.5 0 5 0 1"), "line 4 (record 4, ", "blocks is `0`"),
        ],
    ),
    Row(
        "disksim-validate",
        "disksim_validate/plain",
        [
            Case(Cut, "(record 3, ", "delay_us is ``"),
            Case(Line(2, "X Hit 800 8 607.5 0.0"), "line 2 (record 2, ", "op is `X`"),
            Case(
                Line(3, "R Miss 1234600 16 -5 36016.0"),
                "line 3 (record 3, ",
                "measured_us is `-5`",
            ),
        ],
    ),
    Row(
        "fio-iolog",
        "fio_iolog/clean",
        [
            Case(Cut, "line 8 (record 5, ", "action is ``"),
            Case(Line(8, "here and there"), "line 8 (record 5, ", "timestamp is `here`"),
            Case(Line(8, "5 /dev/sdb read 0 -1"), "line 8 (record 5, ", "length is `-1`"),
        ],
    ),
    Row(
        "fio-iolog-v2",
        "fio_iolog_v2/clean",
        [
            Case(Cut, "line 8 (record 4, ", "action is ``"),
            Case(Line(4, "/dev/sdb here 61440 4096"), "line 4 (record 1, ", "action is `here`"),
            Case(Line(6, "/dev/sdb write 774144 x"), "line 6 (record 2, ", "length is `x`"),
        ],
    ),
    Row(
        "flashnet-csv",
        "flashnet_csv/clean",
        [
            Case(Cut, "line 2 (record 2, ", "size_after_replay is ``"),
            Case(Line(1, "here"), "line 1 (record 1, ", "ts_record is `here`"),
            Case(Line(2, "1.5,100,2,4096,0,1,1"), "line 2 (record 2, ", "io_type is `2`"),
        ],
    ),
    Row(
        "freewheel-csv",
        "freewheel_csv/clean",
        [
            Case(Cut, "line 5 (record 4, ", "complete_ns is ``"),
            Case(Line(3, "here"), "line 3 (record 2, ", "arrival_ns is `here`"),
            Case(Line(4, "5,X,0,512,0,9"), "line 4 (record 3, ", "op is `X`"),
        ],
    ),
    Row(
        "heimdall-text",
        "heimdall_text/clean",
        [
            Case(Cut, "line 3 (record 3, ", "is_read is ``"),
            Case(Line(2, "here 0 0 512 1"), "line 2 (record 2, ", "arrival_ms is `here`"),
            Case(Line(3, "5.5 0 0 512 7"), "line 3 (record 3, ", "is_read is `7`"),
        ],
    ),
    Row(
        "hfplayer-csv",
        "hfplayer_csv/clean",
        [
            Case(Cut, "line 3 (record 2, ", "LATENCY_USECS.D is ``"),
            Case(Line(2, "here"), "line 2 (record 1, ", "ELAPSED_USECS.D is `"),
            Case(Line(1, "#A,ELAPSED_USECS.D"), "", "header is `"),
        ],
    ),
    Row(
        "biosnoop",
        "biosnoop/clean",
        [
            Case(Cut, "(record 4, ", "LAT(ms) is `512`"),
            Case(Line(2, "0.1 a 7 sdb X 8 512 0.5"), "line 2 (record 1, ", "T is `X`"),
            Case(Line(3, "here"), "line 3 (record 2, ", "LAT(ms) is `here`"),
        ],
    ),
    Row(
        "fio-lat-log",
        "fio_lat_log/clean",
        [
            Case(Cut, "(record 3, ", "priority is ``"),
            Case(Line(2, "1, 9000, 7, 512, 0, 0"), "line 2 (record 2, ", "direction is `7`"),
            Case(Line(1, "1, 9000, 0, 0, 0, 0"), "line 1 (record 1, ", "size is `0`"),
        ],
    ),
    Row(
        "fiu-text",
        "fiu_text/clean",
        [
            Case(Cut, "(record 3, ", "major is `W`"),
            Case(Line(2, "1 2 a 8 8 T 8 0"), "line 2 (record 2, ", "operation is `T`"),
            Case(Line(1, "now 2 a 8 8 R 8 0"), "line 1 (record 1, ", "time is `now`"),
        ],
    ),
    Row(
        "ftrace",
        "ftrace/clean",
        [
            Case(Cut, "(record 10, ", "process name or error is ``"),
            Case(Line(7, "here"), "line 7 (record 1, ", "line is `here`"),
            Case(
                Line(8, "dd-7 [1] 9: block_rq_issue: 8,16 R 512 () 1 + x [dd]"),
                "line 8 ",
                "blocks is `x`",
            ),
        ],
    ),
    Row(
        "k5cloud-csv",
        "k5cloud_csv/clean",
        [
            Case(Cut, "(record 3, ", "size is ``"),
            Case(Line(2, "1,1.5,X,0,512"), "line 2 (record 2, ", "operation is `X`"),
            Case(Line(3, "1,1.5,R,-8,512"), "line 3 (record 3, ", "offset is `-8`"),
        ],
    ),
    Row(
        "libcachesim-csv",
        "libcachesim_csv/clean",
        [
            Case(Cut, "(record 3, ", "obj_id is ``"),
            Case(Line(2, "soon,512,a,7"), "line 2 (record 1, ", "time is `soon`"),
            Case(Line(3, "5,512,b,key"), "line 3 (record 2, ", "obj_id is `key`"),
        ],
    ),
    Row(
        "libcachesim-txt",
        "libcachesim_txt/clean",
        [
            Case(Line(1, "x"), "line 1 (record 1, ", "obj_id is `x`"),
            Case(Line(2, "-1"), "line 2 (record 2, ", "obj_id is `-1`"),
            Case(Line(3, "4 2"), "line 3 (record 3, ", "obj_id is `4 2`"),
        ],
    ),
    Row(
        "lirs-trc",
        "lirs_trc/clean",
        [
            Case(Line(1, "x"), "line 1 (record 1, ", "page is `x`"),
            Case(Line(2, "**"), "line 2 (record 2, ", "page is `**`"),
            Case(
                Line(3, "2305843009213693952"),
                "line 3 (record 2, ",
                "page is `2305843009213693952`",
            ),
        ],
    ),
    Row(
        "wpa-csv",
        "wpa_csv/clean",
        [
            Case(Line(2, "1,a,Read,1,0.5"), "line 2 (record 1, ", "Complete Time is ``"),
            Case(
                Line(2, "1,a,Read,7,0.5,0.6,1,1,512,0x0,0,0,N"),
                "line 2 (record 1, ",
                "Count is `7`",
            ),
            Case(
                Line(3, "1,a,Read,1,0.5,0.4,1,1,512,0x0,0,0,N"),
                "line 3 (record 2, ",
                "Complete Time is `",
            ),
        ],
    ),
    Row(
        "xperf-csv",
        "xperf_csv/clean",
        [
            Case(
                Line(9, "DiskRead, 9500, a (1), 2, 0x1, 0x0"),
                "line 9 (record 1, ",
                "IOSize is ``",
            ),
            Case(
                Line(10, "DiskWrite, now, a (1), 2, 0x1, 0x0, 0x200, 5, 0"),
                "line 10 (record 2, ",
                "TimeStamp is `now`",
            ),
            Case(
                Line(11, "DiskFlush, 9, a (1), 2, 0x1, 5, C"),
                "line 11 (record 3, ",
                "DiskNum is `C`",
            ),
        ],
    ),
    Row(
        "hp-srt",
        "hp_srt/clean",
        [
            Case(Cut, "record 4 at byte 279", "record is `"),
            Case(Bytes(223, &[0xff; 4]), "record 3 at byte 223", "record is `\\xff\\xff\\xff\\xff"),
            Case(Bytes(251, &[0xff; 4]), "record 3 at byte 223", "sector is `-1`"),
        ],
    ),
    Row(
        "lcs",
        "lcs/v2",
        [
            Case(Cut, "record 5 at byte ", "record is `"),
            Case(Bytes(8236, LONG), "record 2 at byte 8220", "op is `255`"),
            Case(Bytes(0, LONG), "", "start_magic is `\\xff"),
        ],
    ),
    Row(
        "mqsim",
        "mqsim/clean",
        [
            Case(Cut, "line 80 (record 80, ", "type is ``"),
            Case(Line(2, "here 0 5 8 1"), "line 2 (record 2, ", "arrival_ns is `here`"),
            Case(Line(80, "9000 0 5 8 2"), "line 80 (record 80, ", "type is `2`"),
        ],
    ),
    Row(
        "msr-csv",
        "msr_csv/clean",
        [
            Case(Cut, "line 4 (record 3, ", "ResponseTime is ``"),
            Case(Line(3, "here"), "line 3 (record 2, ", "Timestamp is `here`"),
            Case(
                Line(4, "128166372003061629,hm,0,Erase,0,512,9"),
                "line 4 (record 3, ",
                "Type is `Erase`",
            ),
        ],
    ),
    Row(
        "oracle-general",
        // The short form has no field in which a number is wrong.
        "oracle_general/with_op",
        [
            Case(Cut, "record 3 at byte 54", "record is `"),
            Case(Bytes(43, &[0xff]), "record 2 at byte 27", "op is `255`"),
            Case(Bytes(70, &[0xff]), "record 3 at byte 54", "op is `255`"),
        ],
    ),
    Row(
        "parquet",
        "parquet/clean",
        [
            Case(Cut, "its index at the end of the file", "copy the file again"),
            Case(Bytes(30, LONG), "behind record 0", "column `arrival_ns`"),
            Case(Bytes(300, LONG), "behind record 0", "column `start_block`"),
        ],
    ),
    Row(
        "spc",
        "spc/clean",
        [
            Case(Line(3, "1,20939840,100,r"), "line 3 (record 3, ", "Timestamp is ``"),
            Case(Line(2, "here"), "line 2 (record 2, ", "ASU is `here`"),
            Case(Line(3, "1,20939840,0,r,0.5"), "line 3 (record 3, ", "Size is `0`"),
        ],
    ),
    Row(
        "systor17",
        "systor17/clean",
        [
            Case(Cut, "line 4 (record 3, ", "Size is ``"),
            Case(Line(3, "here"), "line 3 (record 2, ", "Timestamp is `here`"),
            Case(Line(4, "1455592000.5,0.001,Z,0,0,512"), "line 4 (record 3, ", "IOType is `Z`"),
        ],
    ),
    Row(
        "tencent-bytes-csv",
        "tencent_bytes_csv/clean",
        [
            Case(Cut, "line 6 (record 6, ", "VolumeID is ``"),
            Case(Line(2, "here"), "line 2 (record 2, ", "Timestamp is `here`"),
            Case(Line(3, "1538323200,0,512,9,1063"), "line 3 (record 3, ", "IOType is `9`"),
        ],
    ),
    Row(
        "tencent-csv",
        "tencent_csv/clean",
        [
            Case(Cut, "line 4 (record 4, ", "VolumeID is ``"),
            Case(Line(2, "here"), "line 2 (record 2, ", "Timestamp is `here`"),
            Case(Line(3, "1538323200,0,0,0,1063"), "line 3 (record 3, ", "Size is `0`"),
        ],
    ),
    Row(
        "thesios-csv",
        "thesios_csv/clean",
        [
            Case(Cut, "line 3 (record 2, ", "simulated_latency is ``"),
            Case(Line(2, "here"), "line 2 (record 1, ", "line is ``"),
            Case(Line(1, "filename,op_type"), "", "header is `"),
        ],
    ),
    Row(
        "vscsi",
        "vscsi/v1",
        [
            Case(Cut, "record 4 at byte 96", "record is `"),
            Case(Bytes(44, &[0xff; 2]), "record 2 at byte 32", "cmd is `65535`"),
            Case(Bytes(36, &[0; 4]), "record 2 at byte 32", "len is `0`"),
        ],
    ),
];

fn sample(name: &str) -> Vec<u8> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    std::fs::read(corpus.join(name)).unwrap()
}

fn damaged(mut bytes: Vec<u8>, damage: &Damage, is_text: bool) -> Vec<u8> {
    match damage {
        Cut if is_text => {
            let end = bytes.trim_ascii_end().len();
            let separator = |byte: &u8| matches!(byte, b',' | b' ' | b'\t');
            let last = bytes[..end].iter().rposition(separator).unwrap();
            bytes.truncate(last);
        }
        Cut => bytes.truncate(bytes.len() - 3),
        Line(number, text) => {
            let mut lines: Vec<&[u8]> = bytes.split(|&byte| byte == b'\n').collect();
            lines[number - 1] = text.as_bytes();
            bytes = lines.join(&b'\n');
        }
        Bytes(at, others) => bytes[*at..][..others.len()].copy_from_slice(others),
    }
    bytes
}

/// Ways out that the answers name.
const WAYS_OUT: [&str; 6] = [
    "mend that record",
    "copy or record the file again",
    "copy the file again",
    "leave --format out",
    "change its first line",
    "--lenient",
];

#[test]
fn damaged_files_answered_with_place_and_help() {
    let bench = Bench::new(SMALL_TRACE);
    let mut failed = Vec::new();
    for Row(format, sound, cases) in ROWS {
        let bytes = sample(sound);
        let is_text = std::str::from_utf8(&bytes).is_ok() && !bytes.contains(&0);
        let info = |file: &str| run(&["trace", "info", "--format", format, file]);
        let file = bench.at(&format!("{format}.trace"));
        std::fs::write(&file, &bytes).unwrap();
        assert_eq!(info(&file).code, 0, "{format}: the sample is sound");
        for (number, Case(damage, place, field)) in cases.iter().enumerate() {
            std::fs::write(&file, damaged(bytes.clone(), damage, is_text)).unwrap();
            let ran = info(&file);
            let error = &ran.stderr;
            let says = error.contains(&format!("{format}.trace: "))
                && error.contains(place)
                && error.contains(field)
                && WAYS_OUT.iter().any(|way| error.contains(way));
            if ran.code != 1 || !ran.stdout.is_empty() || !says {
                failed.push(format!("{format}, damage {number}: {}: {error}", ran.code));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn formats_each_have_three_damages() {
    let listed: BTreeSet<String> = stdout(&["trace", "formats"])
        .lines()
        .map_while(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect();
    let rows: BTreeSet<String> = ROWS.iter().map(|row| row.0.to_owned()).collect();
    assert_eq!(rows, listed);
}
