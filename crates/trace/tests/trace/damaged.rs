//! Compressed traces that are cut off or damaged: told where, and read up to there when asked.

use std::fs;
use std::io::{Cursor, Read, Write};

use crate::common::{hp_header, hp_record, record, vscsi_v1};
use flate2::write::GzEncoder;
use freewheel_trace::{
    Compression, ConvertOptions, Damaged, Format, OpenOptions, Record, TraceError, TraceInfo,
    TraceReader, characterize, convert,
};
use freewheel_units::Op;

const RECORDS: u64 = 60_000;
/// More than a decompressor holds back: a block of zstd and what is handed out at a time.
const HELD_BACK_BYTES: usize = 300 << 10;

/// Numbers without a pattern, so that they take room when compressed.
fn noise(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40
}

fn text() -> Vec<u8> {
    let line = |n| format!("0,{},512,r,{n}.5\n", noise(n));
    (0..RECORDS).flat_map(|n| line(n).into_bytes()).collect()
}

fn binary() -> Vec<u8> {
    (0..RECORDS).flat_map(|n| vscsi_v1(0x28, 512, noise(n), n)).collect()
}

fn hp() -> Vec<u8> {
    let records = (0..RECORDS).map(|n| hp_record(n as u32, 0, 1, 512, noise(n) as u32, 1));
    hp_header(256).into_iter().chain(records.flatten()).collect()
}

fn compress(bytes: &[u8], compression: Compression) -> Vec<u8> {
    match compression {
        Compression::Zstd => zstd::encode_all(bytes, 1).unwrap(),
        Compression::Gzip => {
            let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
    }
}

const COMPRESSIONS: [Compression; 2] = [Compression::Gzip, Compression::Zstd];

fn open(bytes: &[u8], lenient: bool) -> Result<TraceReader, TraceError> {
    let options = OpenOptions { lenient, ..OpenOptions::default() };
    TraceReader::from_reader("trace", Cursor::new(bytes.to_vec()), &options)
}

/// The records before the damage, read strictly, and the damage.
fn strict(bytes: &[u8]) -> (Vec<Record>, Damaged) {
    let mut records = Vec::new();
    for result in open(bytes, false).unwrap() {
        match result {
            Ok(record) => records.push(record),
            Err(TraceError::Damaged(damaged)) => return (records, *damaged),
            Err(error) => panic!("{error}"),
        }
    }
    panic!("no damage was found");
}

/// Reads the bytes leniently: without an error, and without skipped records.
fn lenient(bytes: &[u8]) -> (Vec<Record>, Damaged) {
    let mut reader = open(bytes, true).unwrap();
    assert_eq!(reader.damaged(), None, "not known before it is met");
    let records = reader.by_ref().map(Result::unwrap).collect();
    assert_eq!(reader.skipped(), 0, "{:?}", reader.first_skipped());
    (records, reader.damaged().unwrap())
}

/// The records of a whole trace.
fn whole(bytes: &[u8]) -> Vec<Record> {
    open(bytes, false).unwrap().map(Result::unwrap).collect()
}

#[test]
fn cut_trace_read_to_last_record() {
    for trace in [text(), binary(), hp()] {
        let all = whole(&trace);
        assert_eq!(all.len() as u64, RECORDS);
        for compression in COMPRESSIONS {
            let compressed = compress(&trace, compression);
            for cut in [compressed.len() - 1, compressed.len() / 2] {
                let (records, damaged) = lenient(&compressed[..cut]);
                assert!(all.starts_with(&records), "{compression}: a record is made up");
                assert_eq!(damaged.records, records.len() as u64);
                assert_eq!(damaged.damage.offset_bytes, cut as u64, "{compression}");
                assert!(damaged.damage.is_cut_off && damaged.damage.compression == compression);
                let expected = trace.len() as f64 * cut as f64 / compressed.len() as f64;
                let record_bytes = trace.len() / all.len();
                let missing = expected as usize / record_bytes
                    - records.len().min(expected as usize / record_bytes);
                assert!(
                    missing * record_bytes < HELD_BACK_BYTES,
                    "{compression}: {missing} missing"
                );
                let (before, error) = strict(&compressed[..cut]);
                assert!(records.starts_with(&before), "{compression}");
                assert_eq!(error.damage, damaged.damage, "{compression}");
            }
        }
    }
}

#[test]
fn trace_read_up_to_wrong_bytes() {
    let trace = text();
    let all = whole(&trace);
    for compression in COMPRESSIONS {
        let mut compressed = compress(&trace, compression);
        let at = compressed.len() * 3 / 4;
        // Longer than a block of zstd, whose beginning has a pattern that no other bytes have.
        compressed[at..at + (80 << 10)].fill(0xff);
        let mut reader = open(&compressed, true).unwrap();
        let records: Vec<Record> = reader.by_ref().map(Result::unwrap).collect();
        let damaged = reader.damaged().unwrap();
        let damage = &damaged.damage;
        assert!(!damage.is_cut_off, "{damage}");
        assert!(records.len() > all.len() / 2, "{compression}: {} read", records.len());
        assert!(records.len() < all.len());
        assert_eq!(damaged.records, records.len() as u64 + reader.skipped());
        let distance = damage.offset_bytes.abs_diff(at as u64);
        assert!(distance <= 212 << 10, "{compression}: {distance} B from the damage");
        let (_, error) = strict(&compressed);
        assert_eq!(error.damage.compression, compression);
    }
}

#[test]
fn checksum_wrong_at_end_means_all_doubtful() {
    let mut compressed = compress(b"0,0,512,r,1.0\n0,8,512,r,2.0\n", Compression::Gzip);
    let checksum = compressed.len() - 8;
    compressed[checksum] ^= 1;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.gz");
    fs::write(&path, &compressed).unwrap();
    let options = OpenOptions { lenient: true, ..OpenOptions::default() };
    let mut reader = TraceReader::open(&path, &options).unwrap();
    assert_eq!(reader.by_ref().count(), 2);
    let damage = reader.damaged().unwrap().damage;
    assert_eq!(damage.consequence(), "what was read may be wrong", "{damage}");
}

/// Two members: the first one's checksum is wrong, so that the second one is left out.
#[test]
fn checksum_wrong_early_drops_rest() {
    let mut compressed = compress(b"0,0,512,r,1.0\n0,8,512,r,2.0\n", Compression::Gzip);
    let checksum = compressed.len() - 8;
    compressed[checksum] ^= 1;
    compressed.extend(compress(b"0,16,512,r,3.0\n", Compression::Gzip));
    let (records, damaged) = lenient(&compressed);
    assert_eq!(records.len(), 2);
    let says = "what was read may be wrong, and the rest is left out";
    assert_eq!(damaged.damage.consequence(), says, "{}", damaged.damage);
}

#[test]
fn character_of_damaged_trace_has_damage() {
    let compressed = compress(&text(), Compression::Gzip);
    let mut reader = open(&compressed[..compressed.len() / 2], true).unwrap();
    let info = characterize(&mut reader).unwrap().info;
    assert!(info.damage.is_some_and(|damage| damage.is_cut_off));
}

/// Bits flipped in the compressed bytes may decompress to other text.
#[test]
fn malformed_record_in_damage_tells_compression() {
    let compressed = compress(&text(), Compression::Gzip);
    let error_of = |at: usize| {
        let mut flipped = compressed.clone();
        flipped[at] ^= 1;
        open(&flipped, false).unwrap().find_map(Result::err).unwrap()
    };
    let malformed =
        (0..50).map(|n| compressed.len() / 2 + n * 97).find_map(|at| match error_of(at) {
            TraceError::Malformed(malformed) => Some(malformed),
            TraceError::Damaged(_) => None,
            error => panic!("{error}"),
        });
    assert_eq!(malformed.unwrap().compression, Some(Compression::Gzip));
}

#[test]
fn damage_told_with_offset_and_records() {
    let trace = b"0,0,512,r,1.0\n0,8,512,r,2.0\n0,16,512,r,3.0\n";
    for (compression, name) in [(Compression::Gzip, "gzip"), (Compression::Zstd, "zstd")] {
        let compressed = compress(trace, compression);
        // zstd delivers only whole blocks, so this input has two frames.
        let two = [&compressed[..], &compressed[..compressed.len() - 3]].concat();
        let (records, damaged) = strict(&two);
        let text = damaged.to_string();
        let says = format!(
            "trace: its {name} data break off at byte {}, where the file ends; {} records come before that",
            two.len(),
            records.len()
        );
        assert_eq!(text, says);
    }
}

#[test]
fn unreadable_file_is_always_error() {
    for bytes in
        [&b"\x1f\x8b\x08 but no more of gzip than this"[..], b"\x28\xb5\x2f\xfd", b"\x1f\x8b"]
    {
        for lenient in [false, true] {
            let Err(error) = open(bytes, lenient) else { panic!("{bytes:?}") };
            let TraceError::Damaged(damaged) = error else { panic!("{error}") };
            assert_eq!(damaged.records, 0);
            assert!(damaged.to_string().ends_with("; no record comes before that"), "{damaged}");
        }
    }
}

#[test]
fn named_format_does_not_hide_damage() {
    let options = OpenOptions { format: Some(Format::Spc), ..OpenOptions::default() };
    let reader = TraceReader::from_reader("t", &b"\x1f\x8b\x08 no gzip at all"[..], &options);
    let error = reader.unwrap().find_map(Result::err).unwrap();
    assert!(matches!(error, TraceError::Damaged(_)), "{error}");
}

/// A disk that fails is no damage of the stream.
struct Failing<R>(R, usize);

impl<R: Read> Read for Failing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.1 == 0 {
            return Err(std::io::Error::other("the disk fails"));
        }
        let end = buffer.len().min(self.1);
        let count = self.0.read(&mut buffer[..end])?;
        self.1 -= count;
        Ok(count)
    }
}

#[test]
fn failing_disk_is_always_error() {
    for compression in COMPRESSIONS {
        let compressed = compress(&text(), compression);
        for lenient in [false, true] {
            let half = compressed.len() / 2;
            let stream = Failing(Cursor::new(compressed.clone()), half);
            let options = OpenOptions { lenient, ..OpenOptions::default() };
            let error = TraceReader::from_reader("t", stream, &options).unwrap_err();
            assert!(matches!(error, TraceError::Io { .. }), "{error}");
            assert!(error.to_string().contains("the disk fails"), "{error}");
        }
    }
}

#[test]
fn lenient_conversion_without_records_refused() {
    let folder = tempfile::tempdir().unwrap();
    let [input, output] = ["in.csv.gz", "out.csv"].map(|name| folder.path().join(name));
    let header = "arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns\n";
    let open =
        OpenOptions { format: Some(Format::FreewheelCsv), lenient: true, ..OpenOptions::default() };
    let convert = |bytes: &[u8]| {
        fs::write(&input, bytes).unwrap();
        convert(&input, &output, &ConvertOptions { open, device: None }, |_| {})
    };
    let damaged = compress(header.as_bytes(), Compression::Gzip);
    let error = convert(&damaged[..damaged.len() - 4]).unwrap_err();
    assert!(matches!(&error, TraceError::Damaged(damaged) if damaged.records == 0), "{error}");
    let error = convert(format!("{header}x\ny\n").as_bytes()).unwrap_err();
    assert!(matches!(&error, TraceError::NothingRead { skipped: 2, .. }), "{error}");
    let error = convert(header.as_bytes()).unwrap_err();
    assert!(matches!(&error, TraceError::NoRequests { .. }), "{error}");
    assert!(!output.exists());
}

#[test]
fn damaged_file_conversion_tells_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let [input, output] = ["in.csv.zst", "out.csv"].map(|name| folder.path().join(name));
    let compressed = compress(&text(), Compression::Zstd);
    fs::write(&input, &compressed[..compressed.len() / 2]).unwrap();
    assert!(convert(&input, &output, &ConvertOptions::default(), |_| {}).is_err());
    assert!(!output.exists());
    let open = OpenOptions { lenient: true, ..OpenOptions::default() };
    let options = ConvertOptions { open, device: None };
    let converted = convert(&input, &output, &options, |_| {}).unwrap();
    let damaged = converted.damaged.unwrap();
    assert_eq!(damaged.records, converted.records);
    assert_eq!(damaged.damage.file_bytes, compressed.len() as u64 / 2);
    let mut reader = TraceReader::open(&input, &open).unwrap();
    let info = TraceInfo::scan(&mut reader).unwrap();
    assert_eq!((info.requests, info.damage), (converted.records, Some(damaged.damage)));
    let first = TraceReader::open(&output, &open).unwrap().next().unwrap().unwrap();
    assert_eq!(first, record(0, Op::Read, 0, noise(0), 1));
}
