//! Rates at which traces are read, by format: a million generated requests each, from a file in the page
//! cache.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use freewheel_trace::{Format, OpenOptions, TraceReader};
use freewheel_units::Prng;

use crate::case::RUNS;
use crate::long::{Folder, SPACING_NS, requests};

/// Requests of each trace.
pub const RECORDS: u64 = 1_000_000;

/// One format for each way of reading: tables, columns by name, events to pair, fixed binary records.
pub const FORMATS: [Format; 16] = [
    Format::Parquet,
    Format::FreewheelCsv,
    Format::MsrCsv,
    Format::Spc,
    Format::AlibabaCsv,
    Format::TencentCsv,
    Format::Systor17,
    Format::K5cloudCsv,
    Format::FiuText,
    Format::HeimdallText,
    Format::DisksimAscii,
    Format::FioIolog,
    Format::Blkparse,
    Format::Blktrace,
    Format::ArcLis,
    Format::OracleGeneral,
];

/// A format's measured reading.
pub struct Reading {
    /// Records a second of every run, ascending.
    pub rates: Vec<f64>,
    /// Bytes of the file.
    pub bytes: u64,
    /// Hash of times, places and sizes of all records, equal in every run.
    pub hash: String,
}

/// Writes a trace of [`RECORDS`] requests and reads it [`RUNS`] times. Panics on failure.
pub fn measure(format: Format) -> Reading {
    let folder = Folder::new();
    let path = match format {
        Format::Parquet => folder.trace(RECORDS),
        _ => {
            let path = folder.path("trace");
            write(format, &path).expect("room for the trace");
            path
        }
    };
    let bytes = fs::metadata(&path).expect("the written trace").len();
    let mut runs: Vec<(f64, u64)> = (0..RUNS).map(|_| read(format, &path)).collect();
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let hash = runs[0].1;
    assert!(runs.iter().all(|run| run.1 == hash), "{}: runs differ", format.name());
    let rates = runs.into_iter().map(|(rate, _)| rate).collect();
    Reading { rates, bytes, hash: format!("{hash:016x}") }
}

/// Records a second, and a hash of their times, places and sizes.
fn read(format: Format, path: &Path) -> (f64, u64) {
    let start = Instant::now();
    let options = OpenOptions { format: Some(format), ..OpenOptions::default() };
    let reader = TraceReader::open(path, &options).expect("a written trace");
    let (mut records, mut hash) = (0u64, 0u64);
    for record in reader {
        let record = record.expect("a valid record");
        let word = record.arrival.ns() ^ record.start.get() << 20 ^ record.blocks.get();
        hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        records += 1;
    }
    assert_eq!(records, RECORDS, "{}", format.name());
    (records as f64 / start.elapsed().as_secs_f64(), hash)
}

/// A request as the formats print it.
struct Request {
    number: u64,
    ns: u64,
    is_read: bool,
    sector: u64,
}

/// Blocks of 512 B of every request.
const SECTORS: u64 = 8;

fn write(format: Format, path: &Path) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    let mut prng = Prng::new(1, "long trace");
    head(format, &mut out)?;
    for (number, (is_read, start)) in (0..).zip(requests(&mut prng).take(RECORDS as usize)) {
        let request = Request { number, ns: number * SPACING_NS, is_read, sector: start.get() };
        match format {
            Format::Blktrace | Format::OracleGeneral => binary(format, &request, &mut out)?,
            _ => text(format, &request, &mut out)?,
        }
    }
    out.flush()
}

fn head(format: Format, out: &mut impl Write) -> std::io::Result<()> {
    match format {
        Format::FreewheelCsv => {
            writeln!(out, "arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns")
        }
        Format::Systor17 => writeln!(out, "Timestamp,Response,IOType,LUN,Offset,Size"),
        Format::FioIolog => writeln!(out, "fio version 3 iolog\n0 /dev/sdb add\n0 /dev/sdb open"),
        _ => Ok(()),
    }
}

fn text(format: Format, request: &Request, out: &mut impl Write) -> std::io::Result<()> {
    let &Request { number, ns, is_read, sector } = request;
    let (offset, length, us) = (sector * 512, SECTORS * 512, ns / 1_000);
    let (seconds, fraction) = (ns / 1_000_000_000, ns % 1_000_000_000);
    let letter = if is_read { 'R' } else { 'W' };
    match format {
        Format::FreewheelCsv => {
            writeln!(out, "{ns},{letter},{offset},{length},0,{}", ns + 4_600_000)
        }
        Format::MsrCsv => {
            let (ticks, word) = (ns / 100, if is_read { "Read" } else { "Write" });
            writeln!(
                out,
                "{},usr,0,{word},{offset},{length},41286",
                128_166_372_003_061_629 + ticks
            )
        }
        Format::Spc => {
            writeln!(out, "0,{sector},{length},{letter},{seconds}.{:06}", us % 1_000_000)
        }
        Format::AlibabaCsv => {
            writeln!(out, "419,{letter},{offset},{length},{}", 1_577_808_144_000_000 + us)
        }
        Format::TencentCsv => {
            let time = 1_538_323_200 + seconds;
            writeln!(out, "{time},{sector},{SECTORS},{},1063", u8::from(!is_read))
        }
        Format::Systor17 => {
            let time = 1_456_095_145 + seconds;
            writeln!(out, "{time}.{fraction:09},0.000806000,{letter},0,{offset},{length}")
        }
        Format::K5cloudCsv => {
            let time = 1_504_191_600 + seconds;
            writeln!(out, "3,{time}.{:06},{letter},{offset},{length}", us % 1_000_000)
        }
        Format::FiuText => writeln!(
            out,
            "{} 3082 tar {sector} {SECTORS} {letter} 8 2 1f0e3dad99908345f7439f8ffabdffc4",
            71_000_000_000_000 + ns
        ),
        Format::HeimdallText => {
            writeln!(
                out,
                "{}.{:03} 0 {offset} {length} {}",
                us / 1_000,
                us % 1_000,
                u8::from(is_read)
            )
        }
        Format::DisksimAscii => {
            let ms = us / 1_000;
            writeln!(out, "{ms}.{:03}\t0\t{sector}\t{SECTORS}\t{}", us % 1_000, u8::from(is_read))
        }
        Format::FioIolog => {
            let word = if is_read { "read" } else { "write" };
            writeln!(out, "{us} /dev/sdb {word} {offset} {length}")
        }
        Format::Blkparse => blkparse(request, letter, out),
        Format::ArcLis => writeln!(out, "{} 1 0 {number}", sector / SECTORS),
        _ => unreachable!("{}: no lines", format.name()),
    }
}

fn blkparse(request: &Request, letter: char, out: &mut impl Write) -> std::io::Result<()> {
    let &Request { number, ns, sector, .. } = request;
    for (event, late) in [('Q', 0), ('C', 4_600_000)] {
        let (whole, part) = ((ns + late) / 1_000_000_000, (ns + late) % 1_000_000_000);
        writeln!(
            out,
            "  8,16   5 {number:>8} {whole:>5}.{part:09} 18615  {event}   {letter} {sector} + {SECTORS} [java]"
        )?;
    }
    Ok(())
}

fn binary(format: Format, request: &Request, out: &mut impl Write) -> std::io::Result<()> {
    let &Request { number, ns, is_read, sector } = request;
    if format == Format::OracleGeneral {
        out.write_all(&u32::try_from(ns / 1_000_000_000).expect("some hours").to_le_bytes())?;
        out.write_all(&(sector / SECTORS).to_le_bytes())?;
        out.write_all(&4096u32.to_le_bytes())?;
        return out.write_all(&(-1i64).to_le_bytes());
    }
    // Queued and completed, as `struct blk_io_trace`.
    let direction = if is_read { 1u32 } else { 2 };
    for (action, late) in
        [(1 | (direction | 1 << 4) << 16, 0), (8 | (direction | 1 << 7) << 16, 4_600_000)]
    {
        out.write_all(&0x6561_7407u32.to_le_bytes())?;
        out.write_all(&(number as u32).to_le_bytes())?;
        out.write_all(&(ns + late).to_le_bytes())?;
        out.write_all(&sector.to_le_bytes())?;
        for word in [4096u32, action, 18_615, 8 << 20 | 16, 5, 0] {
            out.write_all(&word.to_le_bytes())?;
        }
    }
    Ok(())
}
