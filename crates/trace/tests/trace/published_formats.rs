//! Formats of published traces and of other people's tools on small traces made by hand: recognised, read
//! exactly, and each field refused when it is wrong.

use std::fs;
use std::path::Path;

use crate::common::{
    assert_faults, completed, corpus, malformed, reader, record, records, widened,
};
use freewheel_trace::{Format, OpenOptions, Record, Timing, TraceError, TraceInfo, TraceReader};
use freewheel_units::Op;

#[test]
fn alibaba_csv_read_in_bytes_and_microseconds() {
    let want = [
        record(0, Op::Write, 419, 8_792_731_648 / 512, 32),
        record(46_000, Op::Read, 725, 59_110_326_272 / 512, 704),
        record(85_000, Op::Read, 12, 350_868_463_616 / 512, 16),
    ];
    assert_eq!(records(&corpus("alibaba_csv/clean"), Format::AlibabaCsv), want);
    assert_faults(
        Format::AlibabaCsv,
        "device_id,opcode,offset,length,timestamp\n",
        &[
            ("4294967296,R,0,512,5", "device_id"),
            ("1,T,0,512,5", "opcode"),
            ("1,R,-1,512,5", "offset"),
            ("1,R,0,0,5", "length"),
            ("1,R,0,512,18446744073709552", "timestamp"),
            ("1,R,0,512", "timestamp"),
            ("1,R,0,512,5,6", "line"),
        ],
    );
}

#[test]
fn tencent_csv_in_sectors_mirrors_in_bytes() {
    // The last record came a second before the others, and is time zero.
    let want = [
        record(0, Op::Write, 1627, 80, 8),
        record(1_000_000_000, Op::Read, 1063, 12_910_952, 128),
        record(1_000_000_000, Op::Write, 1627, 6_338_688, 8),
        record(2_000_000_000, Op::Read, 1360, 1_904_106, 384),
    ];
    assert_eq!(records(&corpus("tencent_csv/clean"), Format::TencentCsv), want);
    let bytes = records(&corpus("tencent_bytes_csv/clean"), Format::TencentBytesCsv);
    assert_eq!(bytes[0], record(0, Op::Read, 1063, 6_610_407_424 / 512, 128));
    for format in [Format::TencentCsv, Format::TencentBytesCsv] {
        assert_faults(
            format,
            "Timestamp,Offset,Size,IOType,VolumeID\n",
            &[
                ("x,8,8,0,1", "Timestamp"),
                ("1,,8,0,1", "Offset"),
                ("1,8,0,0,1", "Size"),
                ("1,8,8,2,1", "IOType"),
                ("1,8,8,0,-1", "VolumeID"),
                ("1,8,8,0", "VolumeID"),
                ("1,8,8,0,1,1", "line"),
            ],
        );
    }
}

#[test]
fn systor17_ordered_by_arrival_with_completions() {
    let want = [
        completed(record(0, Op::Read, 0, 4_256_049_987_072 / 512, 240), 8_044_000),
        record(1_113_000, Op::Write, 3, 3_772_288_305_664 / 512, 114),
        completed(record(6_791_000, Op::Read, 0, 899_056_122_368 / 512, 256), 7_597_000),
    ];
    assert_eq!(records(&corpus("systor17/clean"), Format::Systor17), want);
    assert_faults(
        Format::Systor17,
        "",
        &[
            ("soon,0.1,R,0,0,512", "Timestamp"),
            ("1.5,-1,R,0,0,512", "Response"),
            ("18446744073.5,1,R,0,0,512", "Response"),
            ("1.5,0.1,X,0,0,512", "IOType"),
            ("1.5,0.1,R,a,0,512", "LUN"),
            ("1.5,0.1,R,0,x,512", "Offset"),
            ("1.5,0.1,R,0,0,0", "Size"),
            ("1.5,0.1,R,0,0", "Size"),
        ],
    );
}

const HFPLAYER: &str = "#LATENCY_USECS.D,LUN_SSID.I,CMD.S,LBA.I,NBLKS.I,ELAPSED_USECS.D\n";

#[test]
fn hfplayer_csv_read_by_column_names() {
    let want = [
        completed(record(0, Op::Read, 5, 1_170_210_688, 8), 39_964),
        completed(record(145_714, Op::Write, 5, 1_170_210_800, 8), 165_610),
    ];
    assert_eq!(records(&corpus("hfplayer_csv/clean"), Format::HfplayerCsv), want);
    let other_order = format!("{HFPLAYER}1.5,3,WR_IN,7,9,2.25\n");
    let want = [completed(record(2_250, Op::Write, 3, 7, 9), 3_750)];
    assert_eq!(records(other_order.as_bytes(), Format::HfplayerCsv), want);
    assert_faults(
        Format::HfplayerCsv,
        HFPLAYER,
        &[
            ("x,3,WR_IN,7,9,2.25", "LATENCY_USECS.D"),
            ("1.5,x,WR_IN,7,9,2.25", "LUN_SSID.I"),
            ("1.5,3,TUR,7,9,2.25", "CMD.S"),
            ("1.5,3,WR_IN,-7,9,2.25", "LBA.I"),
            ("1.5,3,WR_IN,7,0,2.25", "NBLKS.I"),
            ("1.5,3,WR_IN,7,9,now", "ELAPSED_USECS.D"),
            ("1.5,3,WR_IN,7,9", "ELAPSED_USECS.D"),
        ],
    );
}

#[test]
fn header_without_columns_names_missing() {
    let hfplayer = malformed(b"ELAPSED_USECS.D,CMD.S\n1.5,RD\n", Format::HfplayerCsv);
    assert!(hfplayer.to_string().contains("lacks: LBA.I, NBLKS.I"), "{hfplayer}");
    let thesios = malformed(b"filename,start_time\na,1\n", Format::ThesiosCsv);
    assert_eq!((thesios.field, thesios.record), ("header", 0));
    let mut lenient = reader(b"filename,start_time\na,1\nb,2\n", Some(Format::ThesiosCsv), true);
    let error = lenient.find_map(Result::err).unwrap();
    assert!(matches!(error, TraceError::NothingRead { skipped: 3, .. }), "{error}");
}

#[test]
fn flashnet_csv_keeps_milliseconds_and_latency() {
    let want = [
        completed(record(0, Op::Write, 0, 90_648_576 / 512, 8), 84_000),
        completed(record(1_000_000_000, Op::Read, 0, 4_923_392 / 512, 128), 1_000_146_000),
    ];
    assert_eq!(records(&corpus("flashnet_csv/clean"), Format::FlashnetCsv), want);
    assert_faults(
        Format::FlashnetCsv,
        "ts_record,latency,io_type,size,offset,ts_submit,size_after_replay\n",
        &[
            ("x,84,0,512,0,0.1,512", "ts_record"),
            ("0.5,x,0,512,0,0.1,512", "latency"),
            ("0.5,84,2,512,0,0.1,512", "io_type"),
            ("0.5,84,0,0,0,0.1,512", "size"),
            ("0.5,84,0,512,x,0.1,512", "offset"),
            ("0.5,84,0,512,0,x,512", "ts_submit"),
            ("0.5,84,0,512,0,0.1", "size_after_replay"),
        ],
    );
}

#[test]
fn arc_lis_read_in_pages_without_times() {
    let want = [
        record(0, Op::Read, 0, 8, 8),
        record(0, Op::Read, 0, 16, 8),
        record(0, Op::Read, 0, 4096, 512),
    ];
    assert_eq!(records(&corpus("arc_lis/clean"), Format::ArcLis), want);
    assert_eq!(Format::ArcLis.timing(), Timing::None);
    assert_faults(
        Format::ArcLis,
        "",
        &[
            ("x 1 0 0", "start"),
            ("2305843009213693952 1 0 0", "start"),
            ("1 0 0 0", "count"),
            ("1 536870912 0 0", "count"),
            ("1 1 - 0", "ignored"),
            ("1 1 0", "number"),
            ("1 1 0 0 0", "line"),
        ],
    );
}

#[test]
fn fiu_text_read_in_nanoseconds_and_blocks() {
    const MAJOR: u32 = 8 << 20;
    let want = [
        record(0, Op::Write, MAJOR, 64, 8),
        record(2_462, Op::Read, MAJOR | 2, 203_193_184, 8),
        record(10_000, Op::Write, MAJOR | 2, 203_193_192, 16),
    ];
    assert_eq!(records(&corpus("fiu_text/clean"), Format::FiuText), want);
    assert_faults(
        Format::FiuText,
        "",
        &[
            ("x 2 a 8 8 R 8 0", "time"),
            ("1 x a 8 8 R 8 0", "pid"),
            ("1 2 8 8 R 8 0", "process"),
            ("1 2 a x 8 R 8 0", "block"),
            ("1 2 a 8 0 R 8 0", "blocks"),
            ("1 2 a 8 8 T 8 0", "operation"),
            ("1 2 a 8 8 R 4096 0", "major"),
            ("1 2 a 8 8 R 8 1048576", "minor"),
            ("1 2 a 8 8 R 8 x", "minor"),
        ],
    );
}

#[test]
fn k5cloud_csv_read_in_seconds_and_bytes() {
    let want = [
        record(0, Op::Read, 3, 16_777_216, 128),
        record(88_000, Op::Write, 17, 14_336, 8),
        widened(record(1_499_957_000, Op::Read, 17, 0, 2)),
    ];
    assert_eq!(records(&corpus("k5cloud_csv/clean"), Format::K5cloudCsv), want);
    assert_faults(
        Format::K5cloudCsv,
        "",
        &[
            ("4294967296,1.5,R,0,512", "volume"),
            ("1,x,R,0,512", "time"),
            ("1,1.5,T,0,512", "operation"),
            ("1,1.5,R,-1,512", "offset"),
            ("1,1.5,R,0,0", "size"),
            ("1,1.5,R,0", "size"),
            ("1,1.5,R,0,512,7", "line"),
        ],
    );
}

#[test]
fn lirs_trc_read_in_pages_without_marks() {
    let want = [
        record(0, Op::Read, 0, 8, 8),
        record(0, Op::Read, 0, 16, 8),
        record(0, Op::Read, 0, 4096, 8),
    ];
    assert_eq!(records(&corpus("lirs_trc/clean"), Format::LirsTrc), want);
    assert_eq!(Format::LirsTrc.timing(), Timing::None);
    let faults = [("**", "page"), ("-3", "page"), ("2305843009213693952", "page"), ("4 5", "page")];
    assert_faults(Format::LirsTrc, "", &faults);
}

#[test]
fn k5cloud_csv_other_units_not_recognised() {
    for text in [
        // A request of 8 sectors, in microseconds.
        "0,12,R,2048,8\n0,968920,W,4096,8\n",
        "0,12.5,R,2048,8\n0,968920.25,W,4096,8\n",
        "0,12,R,1048576,4096\n0,968920,W,2097152,4096\n",
        // A running index in front.
        "0,0.5,R,1048576,4096\n1,0.75,W,2097152,4096\n2,1.5,W,4096,4096\n",
    ] {
        assert_eq!(Format::detect(text.as_bytes()), None, "{text}");
    }
    let text = b"7,0.5,R,1048576,4096\n7,0.75,W,2097152,4096\n2,1.5,W,4096,4096\n";
    assert_eq!(Format::detect(text), Some(Format::K5cloudCsv));
}

/// Arrival and place of each request.
fn places(sample: &str, format: Format) -> Vec<(u64, u64, u64)> {
    let place = |record: Record| (record.arrival.ns(), record.start.get(), record.blocks.get());
    records(&corpus(sample), format).into_iter().map(place).collect()
}

#[test]
fn libcachesim_text_objects_keep_places() {
    for (sample, format, last_ns, second_blocks) in [
        ("libcachesim_txt/clean", Format::LibcachesimTxt, 0, 8),
        ("libcachesim_csv/clean", Format::LibcachesimCsv, 4_000_000_000, 1),
        ("libcachesim_csv/clean_headerless", Format::LibcachesimCsv, 4_000_000_000, 1),
    ] {
        let places = places(sample, format);
        let [first, second, third] = places[..] else { panic!("{sample}: {places:?}") };
        assert_eq!((first.0, first.2, second.2), (0, 8, second_blocks), "{sample}");
        assert_eq!(third, (last_ns, first.1, 8), "{sample}");
        assert_ne!(first.1, second.1, "{sample}");
    }
    assert_eq!(Format::LibcachesimTxt.timing(), Timing::None);
    assert_eq!(Format::LibcachesimCsv.timing(), Timing::Seconds);
}

#[test]
fn libcachesim_text_wrong_fields_named() {
    let faults = [("x", "obj_id"), ("18446744073709551616", "obj_id"), ("1 2", "obj_id")];
    assert_faults(Format::LibcachesimTxt, "", &faults);
    assert_faults(
        Format::LibcachesimCsv,
        "",
        &[
            ("x,1,512", "time"),
            ("4294967296,1,512", "time"),
            ("1,x,512", "obj_id"),
            ("1,1,x", "obj_size"),
            ("1,1", "obj_size"),
            ("1,1,512,x", "next_access_vtime"),
            ("1,1,512,-1,7", "line"),
        ],
    );
    let named = malformed(b"size,key,time\n512,a,1\n", Format::LibcachesimCsv);
    assert_eq!((named.field, named.record), ("key", 1));
}

#[test]
fn libcachesim_csv_keeps_operations_and_fractions() {
    let text =
        b"time,obj_id,obj_size,op\n1.25,7,512,get\n1.5,8,512,SET\n1.5,9,0,get\n2,7,512,delete\n";
    let mut reader = reader(text, None, false);
    let found: Vec<(u64, Op)> = reader
        .by_ref()
        .map(Result::unwrap)
        .map(|record| (record.arrival.ns(), record.op))
        .collect();
    assert_eq!(found, [(0, Op::Read), (250_000_000, Op::Write), (750_000_000, Op::Trim)]);
    assert_eq!((reader.format(), reader.left_out().empty), (Format::LibcachesimCsv, 1));
    // A number may be another tool's: 0 for a read, or for no operation.
    let fault = malformed(b"time,obj_id,obj_size,op\n1,7,512,1\n", Format::LibcachesimCsv);
    assert_eq!(fault.field, "op");
}

#[test]
fn libcachesim_csv_rejects_other_number_columns() {
    // The third column of fio's older logs is a direction: 0, 1 or 2.
    for text in [
        "1, 83456, 0, 4096\n2, 9000, 1, 4096\n",
        "7\n",
        "time,lba,sectors\n1,2,3\n",
        "id,time,size\n1,2,512\n",
        "time,lbn,size,op\n1,2048,8,R\n2,4096,8,W\n",
        // Sensors: a temperature and a humidity, a pressure that changes, a running index.
        "1700000000,21,45\n1700000060,21,45\n1700000120,22,46\n",
        "1700000000,21,1013\n1700000060,21,1014\n1700000120,21,1015\n",
        "1,4096,512\n2,4096,512\n1,4096,512\n",
        "1700000000,1,4096\n1700000001,2,4096\n1700000002,3,4096\n",
    ] {
        assert_eq!(Format::detect(text.as_bytes()), None, "{text}");
    }
}

const THESIOS: &str =
    "start_time,op_type,request_io_size_bytes,x,file_offset,filename,simulated_latency\n";

#[test]
fn thesios_csv_keeps_file_runs_together() {
    let text = format!(
        "{THESIOS}9.5,READ,4096,,0,a,0.25\n9.75,read,4096,,4096,a,0.25\n10,WRITE,512,,0,b,0\n"
    );
    let records = records(text.as_bytes(), Format::ThesiosCsv);
    let [first, second, third] = &records[..] else { panic!("{records:?}") };
    assert_eq!(first.end(), second.start);
    assert_ne!(first.start, third.start);
    // Files begin 64 MiB apart.
    assert!([first, third].iter().all(|record| record.start.get() % (64 << 11) == 0));
    let times = |record: &Record| (record.arrival.ns(), record.completion.unwrap().ns());
    assert_eq!(times(second), (250_000_000, 500_000_000));
    assert_eq!(
        (third.op, third.blocks.get(), times(third)),
        (Op::Write, 1, (500_000_000, 500_000_000))
    );
    assert_eq!(crate::common::records(&corpus("thesios_csv/clean"), Format::ThesiosCsv).len(), 2);
    assert_faults(
        Format::ThesiosCsv,
        THESIOS,
        &[
            ("x,READ,512,,0,a,1", "start_time"),
            ("1.5,ERASE,512,,0,a,1", "op_type"),
            ("1.5,READ,x,,0,a,1", "request_io_size_bytes"),
            ("1.5,READ,512,,18446744073709551615,a,1", "file_offset"),
            ("1.5,READ,512,,0,a,x", "simulated_latency"),
            ("1.5,READ,512,,0", "filename"),
        ],
    );
}

#[test]
fn fio_iolog_has_times_or_pauses() {
    let want = [
        record(174_000, Op::Read, 0, 120, 8),
        record(451_000, Op::Write, 0, 1512, 8),
        record(460_000, Op::Flush, 0, 0, 0),
        record(500_000, Op::Trim, 0, 0, 128),
    ];
    assert_eq!(records(&corpus("fio_iolog/clean"), Format::FioIolog), want);
    let want = [
        record(0, Op::Read, 0, 120, 8),
        record(1_500_000, Op::Write, 0, 1512, 8),
        record(1_500_000, Op::Flush, 0, 0, 0),
    ];
    assert_eq!(records(&corpus("fio_iolog_v2/clean"), Format::FioIologV2), want);
    assert_eq!(Format::FioIologV2.timing(), Timing::None);
    assert_faults(
        Format::FioIolog,
        "fio version 3 iolog\n",
        &[
            ("soon a read 0 512", "timestamp"),
            ("5 a scan 0 512", "action"),
            ("5 a wait 7", "action"),
            ("5 a read x 512", "offset"),
            ("5 a read 0 0", "length"),
            ("5 a read 0", "length"),
            ("5 a read 0 512 1", "line"),
            ("5", "filename"),
        ],
    );
    let pause = malformed(b"fio version 2 iolog\na read 0 512\na wait long\n", Format::FioIologV2);
    assert_eq!((pause.field, pause.line), ("offset", Some(3)));
}

#[test]
fn fio_iolog_files_are_devices_in_order() {
    let text = b"fio version 3 iolog\n1 a add\n2 b add\n3 b read 0 512\n4 a read 0 1000\n";
    let want = [record(3_000, Op::Read, 1, 0, 1), widened(record(4_000, Op::Read, 0, 0, 2))];
    assert_eq!(records(text, Format::FioIolog), want);
}

#[test]
fn mqsim_recognised_by_whole_microseconds() {
    let records = records(&corpus("mqsim/clean"), Format::Mqsim);
    assert_eq!(records.len(), 80);
    assert_eq!(records[1], record(938_532_000, Op::Write, 1, 264_720_011, 16));
    assert_faults(
        Format::Mqsim,
        "",
        &[
            ("1.5 0 0 8 1", "arrival_ns"),
            ("1 x 0 8 1", "device"),
            ("1 0 x 8 1", "block"),
            ("1 0 0 0 1", "blocks"),
            ("1 0 0 8 2", "type"),
            ("1 0 0 8", "type"),
            ("1 0 0 8 1 1", "line"),
        ],
    );
}

/// The question about a trace that fits two formats.
fn question(text: &[u8]) -> (String, [Format; 2]) {
    let opened =
        TraceReader::from_reader("t", std::io::Cursor::new(text.to_vec()), &OpenOptions::default());
    match opened.err() {
        Some(error @ TraceError::UncertainFormat { choices, .. }) => (error.to_string(), choices),
        other => panic!("a question was expected, not {other:?}"),
    }
}

#[test]
fn whole_times_of_plausible_units_asked_about() {
    let line = |time: u64| format!("{time} 4 264719034 16 0\n");
    let few: String = (0..20).map(|n| line(n * 19_000)).collect();
    let fine: String = (0..100).map(|n| line(n * 19_003)).collect();
    let by_the_second: String = (0..100).map(|n| line(n / 9 * 1000)).collect();
    for text in [few, fine, by_the_second] {
        let stream = text.as_bytes();
        let error = TraceReader::from_reader("t", stream, &OpenOptions::default()).unwrap_err();
        let TraceError::UncertainTimeUnit { rates, .. } = &error else { panic!("{error}") };
        assert!(rates.len() > 1, "{error}");
        for rate in rates {
            let time_unit = Some(rate.unit);
            let options = OpenOptions { time_unit, ..OpenOptions::default() };
            let mut reader = TraceReader::from_reader("t", stream, &options).unwrap();
            let info = TraceInfo::scan(&mut reader).unwrap();
            // The rate that was named, by the whole trace.
            let per_second = (info.requests - 1) as f64 / (info.span_ns as f64 / 1e9);
            assert!((per_second / rate.per_second - 1.0).abs() < 1e-9, "{rate:?}: {per_second}");
        }
        // A format that is named has its own unit.
        for format in [Format::Mqsim, Format::DisksimAscii] {
            let lines = text.lines().count();
            assert_eq!(reader(stream, Some(format), false).by_ref().count(), lines);
        }
    }
}

#[test]
fn offsets_fitting_sectors_and_bytes_asked_about() {
    // Too few records; offsets in bytes, but sizes in sectors.
    for text in [
        "5,4096,8192,0,1\n5,8192,512,1,1\n",
        "5,4096,8,0,1\n6,512,8,0,1\n7,0,8,1,2\n8,1024,8,0,2\n",
    ] {
        let (says, choices) = question(text.as_bytes());
        assert!(says.contains("sectors") && says.contains("bytes"), "{says}");
        assert_eq!(choices, [Format::TencentCsv, Format::TencentBytesCsv]);
    }
}

#[test]
fn oracle_general_forms_told_by_next_access() {
    let want = [
        record(0, Op::Read, 0, 42, 8),
        record(0, Op::Read, 0, 50, 1),
        record(4_000_000_000, Op::Read, 0, 42, 8),
    ];
    assert_eq!(records(&corpus("oracle_general/clean"), Format::OracleGeneral), want);
    let want = [
        record(0, Op::Read, 2, 42, 8),
        record(0, Op::Write, 2, 50, 1),
        record(4_000_000_000, Op::Trim, 1, 42, 8),
    ];
    assert_eq!(records(&corpus("oracle_general/with_op"), Format::OracleGeneral), want);
    assert_eq!(Format::OracleGeneral.timing(), Timing::Seconds);
}

#[test]
fn oracle_general_next_access_lies_ahead() {
    let mut bytes = corpus("oracle_general/clean");
    for record in [1, 2] {
        bytes[24 * record + 16..24 * record + 24].copy_from_slice(&1u64.to_le_bytes());
    }
    assert_eq!(Format::detect(&bytes), None);
}

#[test]
fn libcachesim_sizeless_skipped_and_hashes_folded() {
    let [v2, v3, v8] =
        ["lcs/v2", "lcs/v3", "lcs/v8"].map(|name| records(&corpus(name), Format::Lcs));
    let want = [
        record(0, Op::Read, 7, 42, 8),
        record(0, Op::Write, 7, 50, 1),
        record(1_000_000_000, Op::Trim, 8, 42, 8),
        widened(record(30_000_000_000, Op::Write, 9, 0, 2)),
    ];
    assert_eq!(v2, want);
    assert_eq!((v3, v8), (v2.clone(), v2));
    let v1 = records(&corpus("lcs/v1"), Format::Lcs);
    let as_read = want.map(|record| Record { op: Op::Read, device: 0, ..record });
    assert_eq!(v1, as_read);
    assert_eq!(Format::Lcs.timing(), Timing::Seconds);
}

#[test]
fn libcachesim_wrong_fields_named() {
    let lcs = corpus("lcs/v2");
    let with = |at: usize, bytes: &[u8]| {
        let mut changed = lcs.clone();
        changed[at..at + bytes.len()].copy_from_slice(bytes);
        changed
    };
    let header = |bytes: Vec<u8>| {
        let options = OpenOptions { format: Some(Format::Lcs), ..OpenOptions::default() };
        let opened = TraceReader::from_reader("trace", std::io::Cursor::new(bytes), &options);
        match opened.err() {
            Some(TraceError::Malformed(malformed)) => *malformed,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(header(with(0, b"x")).field, "start_magic");
    assert_eq!(header(with(8184, b"x")).field, "end_magic");
    let version = header(with(8, &[9]));
    assert_eq!(version.field, "version");
    assert!(version.reason.contains("oracleGeneral"), "{version}");
    assert_eq!(header(lcs[..8000].to_vec()).field, "header");
    let op = malformed(&with(8192 + 28 + 16, &[15]), Format::Lcs);
    assert_eq!((op.field, op.record, op.offset_bytes), ("op", 2, Some(8220)));
    // A size that no request may have.
    let v3 = corpus("lcs/v3");
    let mut long = v3.clone();
    long[8192 + 12..8192 + 20].copy_from_slice(&(1u64 << 50).to_le_bytes());
    assert_eq!(malformed(&long, Format::Lcs).field, "obj_size");
}

#[test]
fn corpus_samples_recognised_as_own_format() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for format in Format::ALL {
        let folder = folder.join(format.name().replace('-', "_"));
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if !path.file_name().unwrap().to_str().unwrap().starts_with("clean") {
                continue;
            }
            let head = fs::read(&path).unwrap();
            assert_eq!(Format::detect(&head), Some(format), "{}", path.display());
        }
    }
}
