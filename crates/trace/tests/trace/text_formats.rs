//! Text formats on small traces made by hand: recognised, read exactly, and each field refused
//! when it is wrong.

use crate::common::{completed, lenient, malformed, reader, record, records, widened};
use freewheel_trace::{
    Format, OpenOptions, REQUEST_BLOCKS_MAX, Record, TraceError, TraceInfo, TraceReader,
};
use freewheel_units::Op;

const CSV_HEADER: &str = "arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns\n";

/// Checks for each line that exactly this field of it is complained about.
fn assert_faults(format: Format, header: &str, faults: &[(&str, &str)]) {
    for (line, field) in faults {
        let malformed = malformed(format!("{header}{line}\n").as_bytes(), format);
        assert_eq!(malformed.field, *field, "{line}: {malformed}");
        assert_eq!((malformed.record, malformed.file.as_str()), (1, "trace"));
        assert_eq!(malformed.line, Some(1 + header.lines().count() as u64), "{line}");
        assert_eq!(malformed.offset_bytes, Some(header.len() as u64), "{line}");
    }
}

#[test]
fn freewheel_csv_keeps_operations_and_zero() {
    let text =
        format!("{CSV_HEADER}5,R,4096,512,0,9\n7,W,0,1000,1,7\n8,F,0,0,0,\n9,T,512,512,0,\n");
    let want = [
        completed(record(5, Op::Read, 0, 8, 1), 9),
        Record { fua: true, ..widened(completed(record(7, Op::Write, 0, 0, 2), 7)) },
        record(8, Op::Flush, 0, 0, 0),
        record(9, Op::Trim, 0, 1, 1),
    ];
    assert_eq!(records(text.as_bytes(), Format::FreewheelCsv), want);
}

#[test]
fn freewheel_csv_wrong_fields_named() {
    let beyond_2_to_64 = "18446744073709551616";
    assert_faults(
        Format::FreewheelCsv,
        CSV_HEADER,
        &[
            ("x,R,0,512,0,9", "arrival_ns"),
            ("-1,R,0,512,0,9", "arrival_ns"),
            (&format!("{beyond_2_to_64},R,0,512,0,"), "arrival_ns"),
            ("5,r,0,512,0,9", "op"),
            ("5,R,1e3,512,0,9", "offset_bytes"),
            ("5,R,18446744073709551615,512,0,9", "offset_bytes"),
            ("5,R,0,,0,9", "length_bytes"),
            ("5,R,0,0,0,9", "length_bytes"),
            (&format!("5,R,0,{},0,9", (REQUEST_BLOCKS_MAX + 1) * 512), "length_bytes"),
            ("5,T,0,0,0,9", "length_bytes"),
            ("5,R,0,512,2,9", "fua"),
            ("5,R,0,512,0,4", "complete_ns"),
            ("5,R,0,512,0,4x", "complete_ns"),
            ("5,R,0,512,0", "complete_ns"),
            ("5,R,0,512,0,9,1", "line"),
            ("5", "op"),
        ],
    );
}

#[test]
fn disksim_ascii_keeps_times() {
    let text = b"13.191135\t30\t0\t5\t1\n 20.5 7 576560 6 18 \n";
    let want =
        [record(13_191_135, Op::Read, 30, 0, 5), record(20_500_000, Op::Write, 7, 576_560, 6)];
    assert_eq!(records(text, Format::DisksimAscii), want);
}

#[test]
fn disksim_ascii_wrong_fields_named() {
    assert_faults(
        Format::DisksimAscii,
        "",
        &[
            ("one 0 0 8 1", "arrival_ms"),
            ("18446744073710 0 0 8 1", "arrival_ms"),
            ("1.0 4294967296 0 8 1", "device"),
            ("1.0 0 -8 8 1", "block"),
            ("1.0 0 36028797018963968 8 1", "block"),
            ("1.0 0 0 0 1", "blocks"),
            ("1.0 0 0 4294967297 1", "blocks"),
            ("1.0 0 0 8 read", "flags"),
            ("1.0 0 0 8", "flags"),
            ("1.0 0 0 8 1 1", "line"),
        ],
    );
}

#[test]
fn disksim_with_whole_times_must_be_named() {
    let nanoseconds = b"938513000 4 264719034 16 0\n938828000 3 197570570 16 0\n";
    assert_eq!(Format::detect(nanoseconds), Some(Format::Mqsim));
    let (records, skipped) = lenient(nanoseconds, Format::DisksimAscii);
    assert_eq!((records.len(), skipped), (2, 0));
}

#[test]
fn heimdall_told_from_disksim_by_blocks() {
    let heimdall = b"0.000 0 200626176 4096 0\n223.412 2 3159347200 36864 1\n";
    let want =
        [record(0, Op::Write, 0, 391_848, 8), record(223_412_000, Op::Read, 2, 6_170_600, 72)];
    assert_eq!(records(heimdall, Format::HeimdallText), want);
    let disksim = b"0.000 0 512 8 0\n223.412 2 1024 512 1\n";
    assert_eq!(Format::detect(disksim), Some(Format::DisksimAscii));
}

#[test]
fn heimdall_text_wrong_fields_named() {
    assert_faults(
        Format::HeimdallText,
        "",
        &[
            ("now 0 0 512 1", "arrival_ms"),
            ("1.0 disk 0 512 1", "device"),
            ("1.0 0 0x10 512 1", "offset"),
            ("1.0 0 0 0 1", "size"),
            ("1.0 0 0 512 2", "is_read"),
        ],
    );
}

#[test]
fn msr_csv_read_relative_to_first() {
    let text = b"128166372003061629,usr,0,Read,7014609920,24576,41286\r\n\
                 128166372003061639,usr,1,write,512,100,3\r\n";
    let want = [
        completed(record(0, Op::Read, 0, 13_700_410, 48), 4_128_600),
        widened(completed(record(1_000, Op::Write, 1, 1, 1), 1_300)),
    ];
    assert_eq!(records(text, Format::MsrCsv), want);
}

#[test]
fn msr_csv_hosts_become_devices() {
    let text = b"Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n\
                 128166372003061629,usr,1,Read,0,512,0\n\
                 128166372003061630,prn,1,Read,0,512,0\n\
                 128166372003061631,usr,1,Read,0,512,0\n";
    let devices: Vec<_> = records(text, Format::MsrCsv).iter().map(|r| r.device).collect();
    assert_eq!(devices, [1, 65_537, 1]);
}

#[test]
fn msr_csv_wrong_fields_named() {
    assert_faults(
        Format::MsrCsv,
        "",
        &[
            ("-,usr,0,Read,0,512,1", "Timestamp"),
            ("200000000000000000,usr,0,Read,0,512,1", "Timestamp"),
            ("1,usr,65536,Read,0,512,1", "DiskNumber"),
            ("1,usr,0,Erase,0,512,1", "Type"),
            ("1,usr,0,Read,,512,1", "Offset"),
            ("1,usr,0,Read,0,0,1", "Size"),
            ("1,usr,0,Read,0,512,184467440737095516", "ResponseTime"),
            ("1,usr,0,Read,0,512", "ResponseTime"),
            ("1,usr,0,Read,0,512,1,1", "line"),
        ],
    );
}

#[test]
fn calendar_times_sorted_from_earliest() {
    let text = b"1000,h,0,Read,0,512,0\n1020,h,0,Read,0,512,0\n1010,h,0,Read,0,512,0\n\
                 990,h,0,Read,0,512,0\n";
    let mut reader = reader(text, Some(Format::MsrCsv), false);
    let arrivals: Vec<_> = reader.by_ref().map(|r| r.unwrap().arrival.ns()).collect();
    assert_eq!(arrivals, [0, 1_000, 2_000, 3_000]);
    let survey = reader.survey(&mut |_| {}).unwrap();
    assert_eq!((survey.moved_requests, survey.moved_ns_max), (2, 3_000));
}

#[test]
fn spc_read_in_blocks_and_seconds() {
    let text = b"0,20941264,8192,W,0.551706\n1,20939840,100,r,0.554041,extra\n";
    let want = [
        record(0, Op::Write, 0, 20_941_264, 16),
        widened(record(2_335_000, Op::Read, 1, 20_939_840, 1)),
    ];
    assert_eq!(records(text, Format::Spc), want);
}

#[test]
fn spc_wrong_fields_named() {
    assert_faults(
        Format::Spc,
        "",
        &[
            ("a,0,512,r,0.1", "ASU"),
            ("0,36028797018963968,512,r,0.1", "LBA"),
            ("0,0,0,r,0.1", "Size"),
            ("0,0,512,x,0.1", "Opcode"),
            ("0,0,512,r,soon", "Timestamp"),
            ("0,0,512,r", "Timestamp"),
        ],
    );
}

#[test]
fn comments_and_blanks_are_no_records() {
    let text = b"# made by hand\n\n0,0,512,r,1.0\n   \n# end\n0,x,512,r,2.0\n";
    let malformed = malformed(text, Format::Spc);
    assert_eq!((malformed.record, malformed.line), (2, Some(6)));
    assert_eq!(malformed.offset_bytes, Some(40));
}

#[test]
fn dirty_trace_recognised_and_dirt_counted() {
    let text = b"0,0,512,r,1.0\n0,0,512,?,1.5\n0,8,512,w,2.0\nend of trace";
    assert_eq!(Format::detect(text), Some(Format::Spc));
    let (records, skipped) = lenient(text, Format::Spc);
    assert_eq!((records.len(), skipped), (2, 2));
}

#[test]
fn overlong_line_is_one_malformed_record() {
    let mut text = b"0,0,512,r,1.0\n".to_vec();
    text.extend(vec![b'9'; 1 << 20]);
    text.extend(b"\n0,8,512,w,2.0\n");
    let (records, skipped) = lenient(&text, Format::Spc);
    assert_eq!((records.len(), skipped), (2, 1));
    let malformed = malformed(&text, Format::Spc);
    assert_eq!((malformed.field, malformed.record, malformed.offset_bytes), ("line", 2, Some(14)));
    assert_eq!(malformed.line, Some(2));
    assert!(malformed.value.len() < 50);
}

/// A text format: the header that it needs, one good record and one that is wrong.
struct Sample {
    format: Format,
    header: &'static str,
    good: &'static str,
    bad: &'static str,
}

const fn sample(format: Format, good: &'static str, bad: &'static str) -> Sample {
    Sample { format, header: "", good, bad }
}

const SAMPLES: [Sample; 28] = [
    sample(Format::FreewheelCsv, "5,R,4096,512,0,9", "5,R,x,512,0,9"),
    sample(Format::MsrCsv, "128166372003061629,h,0,Read,512,512,9", "x,h,0,Read,512,512,9"),
    sample(Format::Spc, "0,8,512,r,1.5", "0,8,512,r,soon"),
    sample(Format::HeimdallText, "1.5 0 512 512 1", "1.5 0 512 512 2"),
    sample(Format::DisksimAscii, "1.5 0 3 8 1", "1.5 0 3 8 z"),
    sample(Format::DisksimValidate, "R Miss 16 8 1000.5 1.5", "X Miss 16 8 1000.5 1.5"),
    sample(Format::Systor17, "1.5,0.1,R,0,512,512", "1.5,0.1,X,0,512,512"),
    sample(Format::AlibabaCsv, "1,R,512,512,9", "1,T,512,512,9"),
    sample(Format::FlashnetCsv, "0.5,84,0,512,512,0.6,512", "0.5,84,3,512,512,0.6,512"),
    sample(Format::TencentCsv, "9,8,8,0,1", "9,8,8,2,1"),
    sample(Format::TencentBytesCsv, "9,4096,4096,0,1", "9,4096,4096,2,1"),
    sample(Format::Mqsim, "1000 0 3 8 1", "1000 0 3 8 2"),
    sample(Format::ArcLis, "7 1 0 0", "7 one 0 0"),
    sample(Format::FioIologV2, "sdb read 512 512", "sdb scan 512 512"),
    sample(Format::FioIolog, "5 sdb read 512 512", "5 sdb scan 512 512"),
    sample(Format::Blkparse, "8,0 1 1 0.5 9 Q R 8 + 8 [dd]", "8,0 1 1 0.5 9 Q R 8 + x [dd]"),
    sample(
        Format::XperfCsv,
        "DiskRead, 9, a.exe ( 7), 8, 0xf0, 0x1000, 0x200, 5, 0",
        "DiskRead, 9, a.exe ( 7), 8, 0xf0, 0x1000, 0x200, x, 0",
    ),
    sample(Format::FiuText, "1 2 a 8 8 R 8 0", "1 2 a 8 8 T 8 0"),
    sample(Format::K5cloudCsv, "1,1.5,R,0,512", "1,1.5,T,0,512"),
    sample(Format::LirsTrc, "8", "*8"),
    sample(Format::LibcachesimTxt, "8", "*8"),
    sample(Format::LibcachesimCsv, "1,8,512", "1,x,512"),
    sample(Format::Biosnoop, "0.1 a b 7 sdb R 8 512 0.5", "0.1 a b 7 sdb X 8 512 0.5"),
    sample(
        Format::Ftrace,
        "dd-7 [001] 0.5: block_rq_issue: 8,0 R 512 () 8 + 1 [dd]",
        "dd-7 [001] 0.5: block_rq_issue: 8,0 R 512 () 8 + x [dd]",
    ),
    sample(Format::FioLatLog, "1, 9000, 0, 512, 512, 0", "1, 9000, 3, 512, 512, 0"),
    Sample {
        format: Format::WpaCsv,
        header: "IO Type,Init Time (s),Size (B),Offset\n",
        good: "Read,1.5,512,0x0",
        bad: "Purge,1.5,512,0x0",
    },
    Sample {
        format: Format::HfplayerCsv,
        header: "#ELAPSED_USECS.D,CMD.S,LBA.I,NBLKS.I\n",
        good: "1.5,RD_IN,8,8",
        bad: "1.5,TUR,8,8",
    },
    Sample {
        format: Format::ThesiosCsv,
        header: "filename,file_offset,op_type,request_io_size_bytes,start_time\n",
        good: "a,0,READ,512,1.5",
        bad: "a,0,ERASE,512,1.5",
    },
];

#[test]
fn text_formats_name_file_and_line() {
    let others = Format::ALL.len() - SAMPLES.len();
    assert_eq!(others, 6, "a text format is missing: the others are binary");
    for Sample { format, header, good, bad } in SAMPLES {
        let text = format!("# a comment\r\n\n{header}{good}\r\n{good}\n{bad}\n{good}\n");
        let error = reader(text.as_bytes(), Some(format), false).find_map(Result::err).unwrap();
        let text = error.to_string();
        let line = 5 + header.lines().count();
        let says = format!("trace: line {line} (record 3, byte ");
        assert!(text.starts_with(&says), "{format}: {text}");
    }
}

#[test]
fn byte_order_mark_at_start_ignored() {
    for Sample { format, header, good, bad } in SAMPLES {
        let headers =
            if format == Format::FreewheelCsv { vec![header, CSV_HEADER] } else { vec![header] };
        for header in headers {
            let text = format!("{header}{good}\n{good}\n");
            let marked = format!("\u{feff}{text}");
            let read = |text: &str| -> Vec<Record> {
                reader(text.as_bytes(), Some(format), false).map(Result::unwrap).collect()
            };
            assert_eq!(read(&marked), read(&text), "{format}");
            assert_eq!(Format::detect(marked.as_bytes()), Format::detect(text.as_bytes()));
        }
        let text = format!("\u{feff}{header}{good}\n{bad}\n");
        let error = malformed(text.as_bytes(), format);
        let offset = (3 + header.len() + good.len() + 1) as u64;
        let line = 2 + header.lines().count() as u64;
        assert_eq!((error.line, error.offset_bytes), (Some(line), Some(offset)), "{format}");
    }
}

#[test]
fn byte_order_mark_elsewhere_malformed() {
    let error =
        malformed("5,R,4096,512,0,9\n\u{feff}6,R,4096,512,0,9\n".as_bytes(), Format::FreewheelCsv);
    assert_eq!((error.field, error.line), ("arrival_ns", Some(2)));
}

#[test]
fn packed_file_named_by_kind() {
    let csv = format!("{CSV_HEADER}5,R,4096,512,0,9\n");
    let mut tar = b"trace.csv".to_vec();
    tar.resize(257, 0);
    tar.extend(b"ustar\x0000");
    tar.resize(512, 0);
    tar.extend(csv.repeat(40).into_bytes());
    assert!(Format::detect(&tar).is_some(), "else it would be no trap");
    let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 1).unwrap();
    for (bytes, is) in [
        (tar.clone(), "a tar archive"),
        (zstd(&tar), "a tar archive"),
        (b"PK\x03\x04 and so on".to_vec(), "a zip archive"),
        (b"BZh91AY&SY".to_vec(), "compressed by bzip2"),
        (b"\xfd7zXZ\0".to_vec(), "compressed by xz"),
        (zstd(&zstd(csv.as_bytes())), "compressed twice"),
    ] {
        let options = OpenOptions { format: None, lenient: true, ..OpenOptions::default() };
        let error = TraceReader::from_reader("t", std::io::Cursor::new(bytes), &options).err();
        let says = format!("t: is {is}: unpack it and give the trace itself");
        assert!(
            error.as_ref().is_some_and(|e| e.to_string().starts_with(&says)),
            "{is}: {error:?}"
        );
    }
}

#[test]
fn empty_and_utf_16_traces_named() {
    let refused = |bytes: &'static [u8]| {
        let options = OpenOptions::default();
        TraceReader::from_reader("trace", bytes, &options).err().unwrap()
    };
    let empty = refused(b"");
    assert!(matches!(empty, TraceError::Empty { .. }), "{empty}");
    assert_eq!(empty.to_string(), "trace: is empty: it holds no requests");
    for bytes in [&b"\xff\xfe0\0,\0"[..], b"\xfe\xff\x000\0,"] {
        let error = refused(bytes).to_string();
        assert!(
            error.contains("a text in UTF-16") && error.contains("save it as UTF-8"),
            "{error}"
        );
    }
}

#[test]
fn widened_counted_over_kept_records() {
    let good = "5,R,4096,512,0,9\n";
    let cut = "6,R,1000,512,0,9\n";
    let skipped = "7,R,1000,512,0,6\n";
    let text = format!("{CSV_HEADER}{good}{cut}{skipped}");
    let (records, passed_over) = lenient(text.as_bytes(), Format::FreewheelCsv);
    assert_eq!(records.iter().map(|record| record.widened).collect::<Vec<_>>(), [false, true]);
    assert_eq!(passed_over, 1);
    let info = TraceInfo::scan(&mut reader(text.as_bytes(), None, true)).unwrap();
    assert_eq!((info.requests, info.widened, info.skipped), (2, 1, 1));
}

#[test]
fn malformed_record_knows_likely_format() {
    let text = format!("{CSV_HEADER}5,R,4096,512,0,9\n");
    let as_msr = malformed(text.as_bytes(), Format::MsrCsv);
    assert_eq!((as_msr.format, as_msr.looks_like), (Format::MsrCsv, Some(Format::FreewheelCsv)));
    let bad = malformed(format!("{text}x\n").as_bytes(), Format::FreewheelCsv);
    assert_eq!((bad.looks_like, bad.compression), (Some(bad.format), None));
}
