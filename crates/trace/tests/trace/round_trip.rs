//! Writing and reading back, conversion between files, and the absence of files after a failure.

use std::fs;
use std::path::Path;

use crate::common::record;
use freewheel_trace::{
    ConvertOptions, CsvWriter, DATA_BLOCKS_MAX, Format, OpenOptions, ParquetWriter,
    REQUEST_BLOCKS_MAX, Record, TraceError, TraceInfo, TraceReader, TraceWriter, VOLUME_BLOCKS_MAX,
    convert,
};
use freewheel_units::{Blocks, Op, SimTime, VolumeBlock};
use proptest::prelude::*;

fn write_all(path: &Path, records: &[Record]) -> Result<(), TraceError> {
    let mut writer = TraceWriter::create(path)?;
    for record in records {
        writer.write(record)?;
    }
    writer.finish()
}

fn read_all(path: &Path) -> Vec<Record> {
    let reader = TraceReader::open(path, &OpenOptions::default()).unwrap();
    reader.map(Result::unwrap).collect()
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn any_record(device: impl Strategy<Value = u32>) -> impl Strategy<Value = Record> {
    let ops = prop::sample::select(&[Op::Read, Op::Write, Op::Flush, Op::Trim]);
    let extent = (0..VOLUME_BLOCKS_MAX - (1 << 32), 1..=REQUEST_BLOCKS_MAX);
    let times = (0..1u64 << 62, prop::option::of(0..1u64 << 62));
    let fields = (ops, device, extent, times, any::<bool>());
    fields.prop_map(|(op, device, (start, blocks), (arrival, response), fua)| {
        let (start, blocks) = match op {
            Op::Flush => (0, 0),
            Op::Read | Op::Write => (start, blocks.min(DATA_BLOCKS_MAX)),
            Op::Trim => (start, blocks),
        };
        Record {
            widened: false,
            arrival: SimTime::from_ns(arrival),
            op,
            device,
            start: VolumeBlock::new(start),
            blocks: Blocks::new(blocks),
            completion: response.map(|response| SimTime::from_ns(arrival + response)),
            fua,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn parquet_gives_back_what_was_written(
        mut records in prop::collection::vec(any_record(any::<u32>()), 1..200),
    ) {
        records.sort_by_key(|record| record.arrival);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.parquet");
        write_all(&path, &records).unwrap();
        prop_assert_eq!(read_all(&path), records);
    }

    #[test]
    fn csv_gives_back_what_was_written(
        mut records in prop::collection::vec(any_record(Just(0)), 1..200),
        ending in prop::sample::select(&["csv", "csv.gz", "csv.zst"]),
    ) {
        records.sort_by_key(|record| record.arrival);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("t.{ending}"));
        write_all(&path, &records).unwrap();
        let options = OpenOptions { format: Some(Format::FreewheelCsv), ..OpenOptions::default() };
        let reader = TraceReader::open(&path, &options).unwrap();
        prop_assert_eq!(reader.map(Result::unwrap).collect::<Vec<_>>(), records);
    }
}

#[test]
fn parquet_batches_come_back_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.parquet");
    let make = |n: u64| record(n, Op::Write, n as u32 % 3, n * 8, 8);
    let count = (1 << 20) + 20_000;
    let mut writer = ParquetWriter::create(&path).unwrap();
    (0..count).for_each(|n| writer.write(&make(n)).unwrap());
    writer.finish().unwrap();
    let mut reader = TraceReader::open(&path, &OpenOptions::default()).unwrap();
    let first = reader.next().unwrap().unwrap();
    let (after_first, total) = (reader.compressed_bytes_read(), reader.compressed_bytes_total());
    assert!(0 < after_first && after_first < total, "{after_first} of {total}");
    assert_eq!(first, make(0));
    let mut next = 1;
    for record in reader.by_ref() {
        assert_eq!(record.unwrap(), make(next));
        next += 1;
    }
    assert_eq!((next, reader.compressed_bytes_read()), (count, total));
}

#[test]
fn recorded_description_survives_parquet_and_csv() {
    let input =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/recorded/sqlite-ext4.csv.zst");
    let folder = tempfile::tempdir().unwrap();
    let [parquet, csv] = ["a.parquet", "b.csv.gz"].map(|name| folder.path().join(name));
    let converted = convert(&input, &parquet, &ConvertOptions::default(), |_| {}).unwrap();
    assert_eq!((converted.format, converted.records), (Format::FreewheelCsv, 58_208));
    convert(&parquet, &csv, &ConvertOptions::default(), |_| {}).unwrap();
    let info = |path: &Path| {
        let mut reader = TraceReader::open(path, &OpenOptions::default()).unwrap();
        TraceInfo { format: Format::FreewheelCsv, ..TraceInfo::scan(&mut reader).unwrap() }
    };
    assert_eq!(info(&parquet), info(&input));
    assert_eq!(info(&csv), info(&input));
}

#[test]
fn csv_of_several_devices_needs_choice() {
    let folder = tempfile::tempdir().unwrap();
    let [parquet, csv] = ["a.parquet", "a.csv"].map(|name| folder.path().join(name));
    let records = [1, 2, 1].map(|device| record(0, Op::Read, device, 0, 8));
    write_all(&parquet, &records).unwrap();
    let error =
        convert(&parquet, &csv, &ConvertOptions::default(), |_| {}).unwrap_err().to_string();
    assert!(error.contains("device 1 and device 2") && error.contains("Parquet"), "{error}");
    assert_eq!(names_in(folder.path()), ["a.parquet"]);
    let options = ConvertOptions { device: Some(1), ..ConvertOptions::default() };
    let converted = convert(&parquet, &csv, &options, |_| {}).unwrap();
    assert_eq!((converted.records, converted.other_devices), (2, 1));
    assert_eq!(read_all(&csv).len(), 2);
}

#[test]
fn malformed_record_stops_conversion_leaving_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let [input, output] = ["in.txt", "out.parquet"].map(|name| folder.path().join(name));
    fs::write(&input, "0,0,512,r,1.0\n0,0,512,r,then\n").unwrap();
    assert!(convert(&input, &output, &ConvertOptions::default(), |_| {}).is_err());
    assert_eq!(names_in(folder.path()), ["in.txt"]);
    let open = OpenOptions { lenient: true, ..OpenOptions::default() };
    let options = ConvertOptions { open, device: None };
    let converted = convert(&input, &output, &options, |_| {}).unwrap();
    assert_eq!((converted.records, converted.skipped), (1, 1));
}

#[test]
fn finished_file_replaces_old_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    fs::write(&path, "old").unwrap();
    let mut writer = CsvWriter::create(&path).unwrap();
    writer.write(&record(1, Op::Read, 5, 0, 8)).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"old");
    writer.finish().unwrap();
    assert!(fs::read_to_string(&path).unwrap().ends_with("1,R,0,4096,0,\n"));
    assert_eq!(names_in(folder.path()), ["a.csv"]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let fresh = folder.path().join("fresh");
        fs::write(&fresh, "").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&path), mode(&fresh));
    }
}

#[test]
fn column_overflow_refused_with_record() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = ParquetWriter::create(&folder.path().join("a.parquet")).unwrap();
    writer.write(&record(0, Op::Read, 0, 0, 8)).unwrap();
    let error = writer.write(&record(1 << 63, Op::Read, 0, 0, 8)).unwrap_err().to_string();
    assert!(error.contains("record 2") && error.contains("arrival_ns"), "{error}");
    let mut writer = CsvWriter::create(&folder.path().join("a.csv")).unwrap();
    assert!(writer.write(&record(0, Op::Read, 0, VOLUME_BLOCKS_MAX, 8)).is_err());
}

#[test]
fn missing_device_refused_leaving_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let [input, output] = ["in.parquet", "out.csv"].map(|name| folder.path().join(name));
    write_all(&input, &[record(0, Op::Read, 3, 0, 1), record(1, Op::Read, 5, 0, 1)]).unwrap();
    let options = ConvertOptions { device: Some(4), ..Default::default() };
    let error = convert(&input, &output, &options, |_| {}).unwrap_err().to_string();
    assert!(
        error.ends_with("in.parquet: the trace has no device 4: its devices are 3, 5"),
        "{error}"
    );
    assert_eq!(names_in(folder.path()), ["in.parquet"]);
}

/// As after a copy that was stopped, by a name that promises too much, and compressed once more.
#[test]
fn parquet_unreadable_told_why() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    write_all(&path, &[record(0, Op::Read, 3, 0, 1)]).unwrap();
    let whole = fs::read(&path).unwrap();
    let error = |bytes: &[u8], format| {
        fs::write(&path, bytes).unwrap();
        let options = OpenOptions { format, ..OpenOptions::default() };
        TraceReader::open(&path, &options).err().unwrap().to_string()
    };
    let cut = error(&whole[..whole.len() / 2], None);
    assert!(cut.contains("is cut off or damaged") && cut.contains("copy the file again"), "{cut}");
    let packed = error(&zstd::encode_all(&whole[..], 1).unwrap(), None);
    assert!(packed.ends_with("is a Parquet trace inside of zstd: decompress it first; Parquet is compressed inside already"));
    let other = error(b"0,0,512,r,1.0\n", Some(Format::Parquet));
    assert!(other.contains("begins with `PAR1`: do not name the format"), "{other}");
}

#[test]
fn progress_reported_despite_device_filter() {
    let folder = tempfile::tempdir().unwrap();
    let [input, output] = ["in.parquet", "out.csv"].map(|name| folder.path().join(name));
    let device = |n| if n == 0 { 4 } else { 3 };
    let many: Vec<_> = (0..140_000).map(|n| record(n, Op::Read, device(n), n, 1)).collect();
    write_all(&input, &many).unwrap();
    let (mut reports, options) = (0, ConvertOptions { device: Some(4), ..Default::default() });
    convert(&input, &output, &options, |_| reports += 1).unwrap();
    // Two in each pass.
    assert_eq!(reports, 4);
}

/// The first 30 records of pgbench-ext4 with one completion removed, as pandas and DuckDB wrote them.
/// pandas: columns in another order, one more column, no device, Snappy. DuckDB: all columns nullable,
/// Snappy.
#[test]
fn pandas_and_duckdb_files_read() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let recorded = root.join("data/recorded/pgbench-ext4.csv.zst");
    let reader = TraceReader::open(&recorded, &OpenOptions::default()).unwrap();
    let mut want: Vec<_> = reader.take(30).map(Result::unwrap).collect();
    want[3].completion = None;
    for writer in ["pandas", "duckdb"] {
        assert_eq!(read_all(&root.join("fuzz/corpus/parquet").join(writer)), want, "{writer}");
    }
}

#[test]
fn parquet_non_trace_names_missing_columns() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("broken.parquet");
    fs::write(&path, b"PAR1 but no more").unwrap();
    let error = TraceReader::open(&path, &OpenOptions::default()).err().unwrap();
    assert!(matches!(error, TraceError::Parquet { .. }), "{error}");
}

#[test]
fn parquet_from_stream_refused() {
    let result =
        TraceReader::from_reader("stdin", &b"PAR1............"[..], &OpenOptions::default());
    assert!(matches!(result.err(), Some(TraceError::ParquetNeedsFile { .. })));
}

#[test]
fn missing_file_named() {
    let result = TraceReader::open(Path::new("/no/such/trace.csv"), &OpenOptions::default());
    assert!(result.err().unwrap().to_string().contains("/no/such/trace.csv"));
}

#[test]
fn parquet_fua_column_absent_or_numeric() {
    use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let write = |more: &str, fua: i64| {
        let text = format!(
            "message t {{ required int64 arrival_ns; required binary op (string); required int64 \
             start_block; required int64 blocks; {more} }}"
        );
        let schema = std::sync::Arc::new(parse_message_type(&text).unwrap());
        let file = fs::File::create(&path).unwrap();
        let mut file = SerializedFileWriter::new(file, schema, Default::default()).unwrap();
        let mut group = file.next_row_group().unwrap();
        let mut at = 0;
        while let Some(mut column) = group.next_column().unwrap() {
            match at {
                1 => column
                    .typed::<ByteArrayType>()
                    .write_batch(&[ByteArray::from("write")], None, None)
                    .unwrap(),
                4 if more.contains("int32") => {
                    column.typed::<Int32Type>().write_batch(&[fua as i32], None, None).unwrap()
                }
                4 => column.typed::<Int64Type>().write_batch(&[fua], None, None).unwrap(),
                _ => column.typed::<Int64Type>().write_batch(&[8], None, None).unwrap(),
            };
            column.close().unwrap();
            at += 1;
        }
        group.close().unwrap();
        file.close().unwrap();
    };
    write("", 0);
    let only = Record { arrival: SimTime::from_ns(8), ..record(8, Op::Write, 0, 8, 8) };
    assert_eq!(read_all(&path), [only]);
    // As DuckDB and pandas write it from our CSV.
    for kind in ["required int64 fua;", "required int32 fua;"] {
        for fua in [false, true] {
            write(kind, i64::from(fua));
            assert_eq!(read_all(&path), [Record { fua, ..only }], "{kind}");
        }
        write(kind, 2);
        let mut reader = TraceReader::open(&path, &OpenOptions::default()).unwrap();
        let error = reader.find_map(Result::err).unwrap().to_string();
        assert!(error.ends_with("record 1: fua is `2`: write true or false, or 1 or 0"), "{error}");
    }
}
