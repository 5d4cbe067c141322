//! Binary formats on small traces made by hand, whole and damaged.

use crate::common::{
    completed, hp_header, hp_record, hp_words, lenient, malformed, record, records, vscsi_v1,
    vscsi_v2, widened,
};
use freewheel_trace::{Format, TraceError};
use freewheel_units::Op;

const READ: u16 = 0x28;
const WRITE: u16 = 0x2a;

fn hp_trace(records: &[Vec<u8>]) -> Vec<u8> {
    [hp_header(256), records.concat()].concat()
}

#[test]
fn hp_srt_read_by_disk_and_sector() {
    let two = [hp_record(10, 5, 100, 4096, 1056, 0x1b), hp_record(11, 4, 30, 1024, 3, 0x10a)];
    // Sector 3 of 256 bytes and 1024 bytes: the second half of block 1 to the first of block 3.
    let want = [
        completed(record(0, Op::Read, 1, 528, 8), 100_000),
        widened(completed(record(999_999_000, Op::Write, 1, 1, 3), 1_000_029_000)),
    ];
    assert_eq!(records(&hp_trace(&two), Format::HpSrt), want);
    let large_sectors = [hp_header(2048), two[0].clone()].concat();
    assert_eq!(records(&large_sectors, Format::HpSrt)[0].start.get(), 1056 * 4);
}

#[test]
fn hp_srt_older_version_lacks_queue_length() {
    let old = hp_words(&[52, 0x0003_0001, 0, 0, 9, 10, 512, 2, 0x100, 4, 0, 1, 0]);
    let records = records(&hp_trace(&[old.clone(), old]), Format::HpSrt);
    assert_eq!(records, [completed(record(0, Op::Read, 1, 1, 1), 10_000); 2]);
}

#[test]
fn hp_srt_wrong_fields_named() {
    let faults = [
        (hp_record(u32::MAX, 0, 1, 512, 0, 0), "sec"),
        (hp_record(0, 1_000_000, 1, 512, 0, 0), "usec"),
        (hp_record(0, 0, u32::MAX, 512, 0, 0), "stop"),
        (hp_record(0, 0, 1, 0, 0, 0), "bytes"),
        (hp_record(0, 0, 1, 512, u32::MAX, 0), "sector"),
        (hp_words(&[60, 0x0004_0002, 0, 0, 9, 10, 512, 2, 0, 4, 0, 1, 0, 1, 0]), "id"),
        (hp_words(&[64; 16]), "record"),
    ];
    for (bytes, field) in faults {
        let malformed = malformed(&hp_trace(&[bytes]), Format::HpSrt);
        assert_eq!(malformed.field, field, "{malformed}");
        assert_eq!(malformed.offset_bytes, Some(hp_header(256).len() as u64));
    }
}

#[test]
fn hp_srt_continues_after_damage() {
    let good = || hp_record(1, 0, 1, 512, 2, 1);
    let bytes = hp_trace(&[good(), b"thirteen bytes".to_vec(), good(), good()]);
    let (records, skipped) = lenient(&bytes, Format::HpSrt);
    assert_eq!((records.len(), skipped), (3, 1));
}

#[test]
fn hp_srt_without_header_end_refused() {
    let options = freewheel_trace::OpenOptions::default();
    let bytes = &b"$$TR_IOREC-1.3\nversion = 1.3;\n"[..];
    let error = freewheel_trace::TraceReader::from_reader("t", bytes, &options).unwrap_err();
    assert!(matches!(error, TraceError::Malformed(malformed) if malformed.field == "header"));
}

#[test]
fn vscsi_versions_recognised_and_read_relative() {
    for make in [vscsi_v1, vscsi_v2] {
        let bytes =
            [make(WRITE, 512, 42, 1_000), make(READ, 6656, 7, 1_250), make(0x35, 0, 0, 1_300)];
        let want = [
            record(0, Op::Write, 0, 42, 1),
            record(250_000, Op::Read, 0, 7, 13),
            record(300_000, Op::Flush, 0, 0, 0),
        ];
        assert_eq!(records(&bytes.concat(), Format::Vscsi), want);
    }
}

#[test]
fn vscsi_wrong_fields_named() {
    let mut other_version = vscsi_v1(READ, 512, 0, 0);
    other_version[15] = 2;
    let faults = [
        (vscsi_v1(0x12, 512, 0, 0), "cmd"),
        (vscsi_v1(READ, 0, 0, 0), "len"),
        (vscsi_v1(READ, 512, u64::MAX, 0), "lbn"),
        (vscsi_v1(READ, 512, 0, u64::MAX), "ts"),
        (other_version, "ver"),
    ];
    for (bytes, field) in faults {
        let trace = [vscsi_v1(READ, 512, 0, 0), bytes].concat();
        let malformed = malformed(&trace, Format::Vscsi);
        assert_eq!((malformed.field, malformed.record), (field, 2), "{malformed}");
        assert_eq!(malformed.offset_bytes, Some(32));
    }
}

#[test]
fn record_cut_off_counts_as_skipped() {
    let hp = [hp_record(1, 0, 1, 512, 2, 1), hp_record(1, 0, 1, 512, 2, 1)];
    let vscsi = [vscsi_v1(READ, 512, 0, 0), vscsi_v1(READ, 512, 0, 0)];
    let traces = [(hp_trace(&hp), Format::HpSrt), (vscsi.concat(), Format::Vscsi)];
    for (whole, format) in traces {
        for cut in [1, 20, 31] {
            let bytes = &whole[..whole.len() - cut];
            let (records, skipped) = lenient(bytes, format);
            assert_eq!((records.len(), skipped), (1, 1), "{format} less {cut}");
            assert!(malformed(bytes, format).reason.contains("ends within"));
        }
    }
}

#[test]
fn compressed_trace_recognised_under_any_name() {
    let bytes = [vscsi_v1(READ, 512, 0, 0), vscsi_v1(READ, 512, 1, 0)].concat();
    let compressed = zstd::encode_all(&bytes[..], 1).unwrap();
    assert_eq!(records(&compressed, Format::Vscsi).len(), 2);
}
