//! Recognition of formats: each sample as its own format, and texts of other tools as none.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use freewheel_trace::{Format, OpenOptions, TraceReader};

#[test]
fn clean_samples_recognised_as_own_format() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let mut count = 0;
    for format in Format::ALL {
        let folder = corpus.join(format.name().replace('-', "_"));
        for sample in fs::read_dir(&folder).unwrap().map(|sample| sample.unwrap().path()) {
            let name = sample.file_name().unwrap().to_string_lossy().into_owned();
            if name.starts_with("clean") {
                let found = Format::detect(&fs::read(&sample).unwrap());
                assert_eq!(found, Some(format), "{}", sample.display());
                count += 1;
            }
        }
    }
    assert!(count > 30, "{count}");
}

/// Lines of a tool, by their number: about a page.
fn page(line: impl Fn(u64) -> String) -> String {
    (0..40).map(|at| line(at) + "\n").collect()
}

/// A number that jumps about below `limit`.
fn odd(at: u64, limit: u64) -> u64 {
    (at * at * 7_919 + at * 104_729 + 13) % limit
}

/// Texts of other tools: name and text.
fn others() -> Vec<(&'static str, String)> {
    [requests(), sensors(), tables(), dumps(), monitors(), logs()].concat()
}

fn second(at: u64) -> u64 {
    1_700_000_000 + at * 60
}

/// Texts of requests in no known format.
fn requests() -> Vec<(&'static str, String)> {
    vec![
        (
            "an index, and a request in sectors",
            page(|at| format!("{at},{},R,{},8", at * 31, odd(at, 9_999) * 8)),
        ),
        (
            "an index, and a request in bytes",
            page(|at| format!("{at},{}.25,W,{},4096", at, odd(at, 9_999) * 4096)),
        ),
        (
            "an export with a row number and a header",
            format!(
                ",time,lba,size,op\n{}",
                page(|at| format!("{at},{},{},8,R", second(at), odd(at, 9_999)))
            ),
        ),
        (
            "times, blocks and directions with blanks",
            page(|at| format!("{}, {}, {}, 4096, 0", at * 3, odd(at, 1 << 30), at % 2)),
        ),
        (
            "the same with a device",
            page(|at| format!("{}, {}, {}, 4096, 8388624", at * 3, odd(at, 1 << 30), at % 2)),
        ),
        (
            "the same with a device and a queue",
            page(|at| format!("{}, {}, {}, 4096, 0, {}", at * 3, odd(at, 1 << 30), at % 2, at % 8)),
        ),
    ]
}

/// Texts of sensors and counters.
fn sensors() -> Vec<(&'static str, String)> {
    vec![
        (
            "two sensors in whole numbers",
            page(|at| format!("{},{},{}", second(at), 20 + at % 3, 45 + at % 2)),
        ),
        (
            "a pressure in whole numbers",
            page(|at| format!("{},7,{}", second(at), 1000 + odd(at, 30))),
        ),
        (
            "three sensors with fractions",
            page(|at| format!("{},{}.5,{}.25,0", second(at), 20 + at % 3, 45 + at % 2)),
        ),
        (
            "a sensor with a header",
            format!(
                "timestamp,value,size\n{}",
                page(|at| format!("{},{},1", second(at), odd(at, 99)))
            ),
        ),
        (
            "a count of hits by page",
            format!(
                "page,hits,bytes\n{}",
                page(|at| format!("/p{at},{},{}", odd(at, 99), odd(at, 99_999)))
            ),
        ),
        (
            "hits by hour, without header",
            page(|at| format!("{at},{},{}", odd(at, 999), odd(at, 99_999))),
        ),
    ]
}

/// Texts of plain tables of numbers.
fn tables() -> Vec<(&'static str, String)> {
    vec![
        (
            "a table of four numbers",
            page(|at| format!("{at} {} {} {}", odd(at, 99), odd(at, 999), odd(at, 9_999))),
        ),
        (
            "a table of five numbers",
            page(|at| {
                format!("{at} {} {} {} {}", odd(at, 99), odd(at, 999), odd(at, 9_999), odd(at, 7))
            }),
        ),
        (
            "a table of five numbers with a flag",
            page(|at| {
                format!("{at} {} {} {} {}", odd(at, 99), odd(at, 999), odd(at, 9_999), at % 2)
            }),
        ),
        (
            "a table of five fractions with a flag",
            page(|at| {
                format!(
                    "{at}.5 {}.1 {}.2 {}.3 {}",
                    odd(at, 99),
                    odd(at, 999),
                    odd(at, 9_999),
                    at % 2
                )
            }),
        ),
        (
            "five numbers between commas",
            page(|at| {
                format!("{at},{},{},{},{}", odd(at, 99), odd(at, 999), odd(at, 9_999), odd(at, 7))
            }),
        ),
        (
            "five numbers between commas with a flag",
            page(|at| {
                format!("{},{},{},{},{}", second(at), odd(at, 99), odd(at, 999), at % 2, odd(at, 7))
            }),
        ),
        (
            "a sale by the second with a flag",
            page(|at| format!("{},{}.99,{},{}", second(at), odd(at, 99), odd(at, 9), at % 2)),
        ),
        (
            "seven numbers between commas",
            page(|at| {
                format!("{at},{},{},{},{},5,6", odd(at, 99), at % 2, odd(at, 999), odd(at, 9_999))
            }),
        ),
    ]
}

/// Texts of dumps, and of tools that copy or watch.
fn dumps() -> Vec<(&'static str, String)> {
    vec![
        (
            "a dump of SQL",
            "-- MySQL dump 10.13\nCREATE TABLE `io` (`t` int, `lba` bigint);\n\
            INSERT INTO `io` VALUES (1,2048,8,'R'),(2,4096,8,'W');\n"
                .into(),
        ),
        (
            "a dump of PostgreSQL",
            format!(
                "COPY public.io (t, lba, n, op) FROM stdin;\n{}\\.\n",
                page(|at| format!("{at}\t{}\t8\tR", odd(at, 9_999)))
            ),
        ),
        (
            "dd",
            "1024+0 records in\n1024+0 records out\n\
            1073741824 bytes (1.1 GB, 1.0 GiB) copied, 8.14 s, 132 MB/s\n"
                .into(),
        ),
        (
            "dstat as CSV",
            format!(
                "\"Dstat 0.7.4 CSV output\"\n\"Host:\",\"a\",,,,\"User:\",\"b\"\n\"dsk/sda\",,\"io/sda\",\n\
             \"read\",\"writ\",\"read\",\"writ\"\n{}",
                page(|at| format!(
                    "{}.0,{}.0,{}.0,{}.0",
                    odd(at, 9999),
                    odd(at, 999),
                    at % 9,
                    at % 5
                ))
            ),
        ),
        (
            "pidstat",
            format!(
                "Linux 6.1.0 (a) \t05/11/26 \t_x86_64_\t(4 CPU)\n\n\
             # Time        UID      PID   kB_rd/s   kB_wr/s kB_ccwr/s iodelay  Command\n{}",
                page(|at| format!(
                    "{}     0   {at}   {}.00   4.00   0.00   {}  dd",
                    second(at),
                    odd(at, 99),
                    at % 3
                ))
            ),
        ),
    ]
}

/// Texts of tools that watch disks.
fn monitors() -> Vec<(&'static str, String)> {
    vec![
        (
            "atop",
            page(|at| {
                format!(
                    "DSK |  sda | busy {}% | read {} | write {} | MBw/s 1.2 | avio 1.4 ms |",
                    at,
                    at * 3,
                    at
                )
            }),
        ),
        (
            "atop for programs",
            page(|at| {
                format!(
                    "DSK a {} 2026/05/11 10:00:00 60 sda {} {} {} {} {}",
                    second(at),
                    at,
                    at,
                    at * 8,
                    at,
                    at * 8
                )
            }),
        ),
        (
            "nvme smart-log",
            "Smart Log for NVME device:nvme0 namespace-id:ffffffff\n\
            critical_warning\t: 0\ntemperature\t: 34 C\ndata_units_read\t: 1,234,567\n"
                .into(),
        ),
        (
            "nvme list",
            "Node SN Model Namespace Usage Format FW Rev\n\
            /dev/nvme0n1 S1 M1 1 512.11 GB / 512.11 GB 512 B + 0 B 1\n"
                .into(),
        ),
        (
            "lines of JSON",
            page(|at| {
                format!(
                    "{{\"time\":{},\"op\":\"R\",\"lba\":{},\"bytes\":4096}}",
                    second(at),
                    odd(at, 9_999)
                )
            }),
        ),
    ]
}

/// Texts of short logs and lists.
fn logs() -> Vec<(&'static str, String)> {
    vec![
        (
            "iostat by the second",
            page(|at| format!("sda {}.00 {}.00 0.00 0.00 {} {}", at % 9, odd(at, 99), at, at)),
        ),
        (
            "vmstat without header",
            page(|at| {
                format!(
                    "1 0 0 {} 20 30 0 0 {} {} 40 {} 1 1 98 0 0",
                    odd(at, 9_999),
                    at,
                    at % 7,
                    odd(at, 99)
                )
            }),
        ),
        ("a log of gnuplot", page(|at| format!("{at}\t{}.5", odd(at, 99)))),
        (
            "a matrix of ones and zeros",
            page(|at| format!("{} {} {} {}", at % 2, at % 3 / 2, at % 5 / 4, at % 2)),
        ),
        (
            "a time, a letter and two fractions",
            page(|at| format!("{},{}.5,R,{}.5,{}.5", at % 3, at, odd(at, 99), odd(at, 9))),
        ),
        (
            "a list of files with sizes",
            page(|at| {
                format!("-rw-r--r-- 1 root root {} May 11 10:00 file{at}.bin", odd(at, 99_999))
            }),
        ),
        ("du", page(|at| format!("{}\t./folder{at}", odd(at, 99_999)))),
        ("a column of latencies", page(|at| format!("{}", 100 + odd(at, 9_999)))),
        ("a countdown", page(|at| format!("{}", 40 - at))),
        ("points of a curve", page(|at| format!("{at} {}", odd(at, 99)))),
        ("trades", page(|at| format!("{}.5,{}.25,B,{},{}", second(at), odd(at, 99), at, at))),
        ("positions", page(|at| format!("{},52.{},13.{},R", at, odd(at, 99_999), odd(at, 9_999)))),
    ]
}

/// Format as which the file is read without a word of the person; `None` where it is refused, or the person
/// is asked.
fn taken(text: &str) -> Option<Format> {
    let options = OpenOptions::default();
    let reader = TraceReader::from_reader("t", Cursor::new(text.to_owned()), &options);
    reader.ok().map(|reader| reader.format())
}

#[test]
fn other_tools_output_is_no_trace() {
    let wrong: Vec<String> = others()
        .iter()
        .filter_map(|(name, text)| Some(format!("{name} for {}:\n{}", taken(text)?, &text[..99])))
        .collect();
    assert!(wrong.is_empty(), "taken wrongly:\n{}", wrong.join("\n"));
}

#[test]
fn columns_in_sectors_not_recognised() {
    // Each line is read in bytes, and not with its size of 8 sectors.
    for (format, line) in [
        (Format::Spc, "0,TIMES,SIZE,r,NUMBER.5"),
        (Format::AlibabaCsv, "7,R,TIMES,SIZE,NUMBER"),
        (Format::Systor17, "NUMBER.5,0.1,R,0,TIMES,SIZE"),
        (Format::FlashnetCsv, "NUMBER.5,84,0,SIZE,TIMES,0.6,SIZE"),
        (Format::K5cloudCsv, "7,NUMBER.5,R,TIMES,SIZE"),
    ] {
        let trace = |unit: u64| {
            let line = line.replace("SIZE", &(8 * unit).to_string());
            page(|at| {
                let begin = (odd(at, 9_999) * 8 + 1) * unit;
                line.replace("TIMES", &begin.to_string()).replace("NUMBER", &at.to_string())
            })
        };
        assert_eq!(taken(&trace(512)), Some(format));
        assert_eq!(taken(&trace(1)), None, "{format}");
    }
}
