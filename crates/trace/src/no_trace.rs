//! Files that people take for traces, and that are none: what each is, and which recording has requests.
//!
//! Goals: the answer to a file that holds sums, pictures or programs says so, and names the command that
//! records a trace on that system. Non-goals: reading them.
//!
//! To add one: a line in [`KINDS`] and a line in the test.

use crate::scan::whole_number;
use crate::source::whole_lines;
use freewheel_units::BLOCK_BYTES;

/// A file that is no trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoTrace {
    /// Kind of the file, after "but".
    pub is: &'static str,
    pub way_out: &'static str,
}

/// Test of a file's first bytes, and message about that kind.
type Kind = (fn(&[u8]) -> bool, NoTrace);

const ON_LINUX: &str = "record the requests themselves: `blktrace -d /dev/sdb -w 60 -o - | freewheel study -`, or \
                        the other ways of docs/guide/traces-recording.md";
const ON_WINDOWS: &str = "record the disk's events: `xperf -on PROC_THREAD+LOADER+DISK_IO+DISK_IO_INIT`, `xperf -d \
                          disk.etl`, then `xperf -i disk.etl -o disk.csv -a dumper`";
const WITH_FIO: &str =
    "let fio log its requests: `--write_iolog=FILE`, or `--write_lat_log=NAME --log_offset=1`";
const FETCH_AGAIN: &str = "give the trace itself; if this was downloaded, download it again";
const AS_OWN_CSV: &str =
    "write a CSV with the header arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns from it";
const AS_OBJECTS: &str = "for caches, write a CSV with the header time,obj_id,obj_size from it";
const BLOCK_EVENTS: &str = "print events of the block layer: `perf record -a -e block:block_bio_queue,\
                            block:block_rq_issue,block:block_rq_complete`, then `perf script`; or those of \
                            /sys/kernel/tracing/events/block";

const fn kind(begins: fn(&[u8]) -> bool, is: &'static str, way_out: &'static str) -> Kind {
    (begins, NoTrace { is, way_out })
}

/// The surest mark first.
const KINDS: &[Kind] = &[
    kind(|head| head.starts_with(b"\x7fELF"), "a program (ELF)", FETCH_AGAIN),
    kind(|head| head.starts_with(b"%PDF-"), "a PDF document", FETCH_AGAIN),
    kind(is_html, "an HTML page", FETCH_AGAIN),
    kind(is_pcap, "packets of a network (pcap)", ON_LINUX),
    kind(
        |head| head.starts_with(b"version https://git-lfs."),
        "a pointer of Git LFS, which stands for the file",
        "fetch the file itself: `git lfs pull`",
    ),
    kind(
        |head| head.starts_with(b"PERFILE2"),
        "the binary data of perf",
        "print its events of the block layer: `perf script -i FILE > trace.txt`",
    ),
    kind(
        |head| head.starts_with(b"\x17\x08\x44tracing"),
        "the binary data of trace-cmd",
        "print its events of the block layer: `trace-cmd report -i FILE > trace.txt`",
    ),
    kind(
        |head| has(head, b"\"fio version\"") || begins_line(head, b"3;fio-"),
        "the summary of a fio run",
        WITH_FIO,
    ),
    kind(
        |head| has(head, b": (groupid=") || has(head, b": (g=0): rw="),
        "the summary of a fio run",
        WITH_FIO,
    ),
    kind(
        |head| begins_line(head, b"[global]") || begins_line(head, b"ioengine="),
        "a job file of fio, which asks for requests",
        "run the job with `--write_iolog=FILE`, and give that file",
    ),
    kind(
        is_log_of_averages,
        "looks like fio's log of averages, without the size and place of each request",
        "leave out --log_avg_msec, and log offsets: `--write_lat_log=NAME --log_offset=1`",
    ),
    kind(
        |head| most_lines(head, is_log_of_fio),
        "looks like fio's log of latencies, bandwidth or IOPS without offsets",
        "log offsets too: `--write_lat_log=NAME --log_offset=1`; or `--write_iolog=FILE`",
    ),
    kind(
        |head| most_lines(head, is_histogram_of_fio),
        "looks like fio's log of latency histograms",
        WITH_FIO,
    ),
    kind(
        |head| begins_line(head, b"Device") && (has(head, b"r/s") || has(head, b"kB_read/s")),
        "the statistics of iostat, which are sums over time",
        ON_LINUX,
    ),
    kind(
        |head| begins_line(head, b"procs ") && has(head, b"memory"),
        "the statistics of vmstat, which are sums over time",
        ON_LINUX,
    ),
    kind(
        |head| begins_line(head, b"Linux ") && (has(head, b"DEV ") || has(head, b"%user")),
        "the statistics of sar, which are sums over time",
        ON_LINUX,
    ),
    kind(|head| most_lines(head, is_diskstats), "/proc/diskstats: counters of disks", ON_LINUX),
    kind(
        |head| begins_line(head, b"smartctl ") || has(head, b"\"smartctl\""),
        "what smartctl says of a disk's health",
        ON_LINUX,
    ),
    kind(
        |head| has(head, b"==================== All Devices"),
        "the summary that btt makes of a blktrace",
        "give the files of blktrace themselves, as sdb.blktrace.0",
    ),
    kind(
        |head| begins_line(head, b"TIME(ms)") && has(head, b"LAT(ms)"),
        "the output of bpftrace's biosnoop, without the place of each request",
        "run the biosnoop of BCC (`biosnoop-bpfcc -Q`), or the script of \
         docs/guide/traces-recording.md",
    ),
    kind(
        |head| has(head, b": count     distribution") || has(head, b"|@@@"),
        "a histogram of a BPF program",
        "run `biosnoop-bpfcc -Q`, which prints each request, or another way of \
         docs/guide/traces-recording.md",
    ),
    kind(
        |head| begins_line(head, b"COMM ") && has(head, b"LATms"),
        "the output of iosnoop, without the time of each request",
        "run `biosnoop-bpfcc -Q`, or another way of docs/guide/traces-recording.md",
    ),
    kind(
        |head| has(head, b"worldGroupID") || begins_line(head, b"Histogram: "),
        "a histogram of vscsiStats",
        "record the commands: `vscsiStats -s -t -w WORLD -i HANDLE`; or run blktrace in the guest",
    ),
    kind(
        |head| most_lines(head, is_strace),
        "the system calls of a program (strace), not the requests of a disk",
        ON_LINUX,
    ),
    kind(
        |head| begins_line(head, b"\"Time of Day\",\"Process Name\""),
        "the events of Process Monitor: calls to files, not the requests of a disk",
        ON_WINDOWS,
    ),
    kind(|head| has_first(head, b"(PDH-CSV"), "counters of Windows (perfmon)", ON_WINDOWS),
    kind(
        |head| has(head, b"io_offset io_size op_time") || most_lines(head, is_baleen),
        "looks like a Baleen trace: requests for parts of stored blocks, which say no place on a disk",
        AS_OBJECTS,
    ),
    kind(
        |head| most_lines(head, is_blkparse_of_ones_own),
        "looks like blkparse's output in a format of one's own (-f)",
        "run blkparse without -f, or give the files of blktrace themselves",
    ),
    kind(
        |head| most_lines(head, is_camelab),
        "looks like a trace of CAMELab: time, R or W, block and length, in units that it does not say",
        AS_OWN_CSV,
    ),
    kind(
        |head| most_lines(head, is_event_of_perf),
        "looks like events of perf or ftrace, without those of the block layer",
        BLOCK_EVENTS,
    ),
];

/// Kind of a file that begins with `head` and that no format recognises.
pub(crate) fn recognise(head: &[u8]) -> Option<NoTrace> {
    KINDS.iter().find(|(begins, _)| begins(head)).map(|&(_, says)| says)
}

/// True if this is fio's log of averages, whose lines may also be read as Tencent's.
pub(crate) fn is_log_of_averages(head: &[u8]) -> bool {
    most_lines(head, is_average_of_fio)
}

fn has(head: &[u8], part: &[u8]) -> bool {
    head.windows(part.len()).any(|window| window == part)
}

/// True if the first line has `part`.
fn has_first(head: &[u8], part: &[u8]) -> bool {
    head.split(|&byte| byte == b'\n').next().is_some_and(|line| has(line, part))
}

fn begins_line(head: &[u8], begin: &[u8]) -> bool {
    whole_lines(head).any(|line| line.starts_with(begin))
}

fn most_lines(head: &[u8], is: fn(&[u8]) -> bool) -> bool {
    let count = whole_lines(head).count();
    let found = whole_lines(head).filter(|line| is(line)).count();
    found > 0 && found * 2 >= count
}

fn is_html(head: &[u8]) -> bool {
    let begin = head.trim_ascii_start();
    let begin = begin[..begin.len().min(15)].to_ascii_lowercase();
    [&b"<!doctype html"[..], b"<html", b"<head"].iter().any(|tag| begin.starts_with(tag))
}

fn is_pcap(head: &[u8]) -> bool {
    let magics: [&[u8]; 5] = [
        b"\xd4\xc3\xb2\xa1",
        b"\xa1\xb2\xc3\xd4",
        b"\x4d\x3c\xb2\xa1",
        b"\xa1\xb2\x3c\x4d",
        b"\x0a\x0d\x0d\x0a",
    ];
    magics.iter().any(|magic| head.starts_with(magic))
}

/// The numbers between commas; `None` where a field is something else.
fn comma_numbers(line: &[u8]) -> Option<Vec<u64>> {
    line.split(|&byte| byte == b',').map(|field| whole_number(field.trim_ascii())).collect()
}

/// `time, value, direction, size`, and a priority that may be there. Sizes are whole blocks.
fn is_log_of_fio(line: &[u8]) -> bool {
    let priority = has(line, b", 0x").then(|| line.rsplitn(2, |&byte| byte == b',').nth(1));
    let numbers = comma_numbers(priority.flatten().unwrap_or(line)).unwrap_or_default();
    // A log of IOPS has the value 1, also with offsets.
    let is_entry = matches!(
        numbers[..],
        [_, _, 0..=2, size] | [_, _, 0..=2, size, _] | [_, 1, 0..=2, size, _, ..]
            if size > 0 && size.is_multiple_of(BLOCK_BYTES)
    );
    has(line, b", ") && is_entry
}

/// True for fio's log of averages with the size 0, and an offset of 0 that may be there.
fn is_average_of_fio(line: &[u8]) -> bool {
    let numbers = comma_numbers(line).unwrap_or_default();
    has(line, b", ") && matches!(numbers[..], [_, _, 0..=2, 0] | [_, _, 0..=2, 0, 0..=1, ..])
}

/// `time, direction, size`, and more than a hundred counts.
fn is_histogram_of_fio(line: &[u8]) -> bool {
    comma_numbers(line).is_some_and(|numbers| numbers.len() > 20 && numbers[1] <= 2)
}

fn words(line: &[u8]) -> Vec<&[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect()
}

fn is_number(word: &&[u8]) -> bool {
    whole_number(word).is_some()
}

/// Major and minor number, name, and at least eleven counters.
fn is_diskstats(line: &[u8]) -> bool {
    let words = words(line);
    words.len() >= 14
        && !is_number(&words[2])
        && words.iter().filter(|word| is_number(word)).count() == words.len() - 1
}

fn is_strace(line: &[u8]) -> bool {
    let calls: [&[u8]; 8] = [
        b"openat(",
        b"pread64(",
        b"pwrite64(",
        b"read(",
        b"write(",
        b"execve(",
        b"lseek(",
        b"close(",
    ];
    calls.iter().any(|call| has(line, call)) && has(line, b") = ")
}

/// Block, offset, size, time with a fraction, operation, and three to six more.
fn is_baleen(line: &[u8]) -> bool {
    let words = words(line);
    (8..=11).contains(&words.len())
        && words.iter().all(|word| word.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.'))
        && words[3].contains(&b'.')
        && words[..3].iter().all(is_number)
}

/// A device, or a time, an action of blkparse and letters of a kind, in an order that is not its own.
fn is_blkparse_of_ones_own(line: &[u8]) -> bool {
    let words = words(line);
    let is_kind = |word: &&[u8]| {
        word.first().is_some_and(|first| b"RWDFN".contains(first))
            && word.iter().all(|letter| b"RWDFNSMAB".contains(letter))
    };
    let action =
        words.iter().position(|word| matches!(word, [b'Q' | b'G' | b'I' | b'D' | b'C' | b'M']));
    let mut others = words.iter().enumerate().filter(|(at, _)| Some(*at) != action);
    action.is_some() && words.iter().any(is_number) && others.any(|(_, word)| is_kind(word))
}

/// Time, R or W, block, blocks.
fn is_camelab(line: &[u8]) -> bool {
    let words = words(line);
    let is_time = |word: &[u8]| word.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
    words.len() >= 4
        && is_time(words[0])
        && matches!(words[1], b"R" | b"W" | b"r" | b"w" | b"Read" | b"Write")
        && words[2..4].iter().all(is_number)
}

/// A processor in brackets, a time with a colon, and a name.
fn is_event_of_perf(line: &[u8]) -> bool {
    let words = words(line);
    let is_processor = |word: &[u8]| {
        word.strip_prefix(b"[")
            .and_then(|word| word.strip_suffix(b"]"))
            .is_some_and(|word| is_number(&word))
    };
    let at = words.iter().position(|word| is_processor(word));
    at.is_some_and(|at| words[at + 1..].iter().any(|word| word.ends_with(b":")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;

    /// Beginnings of such files, with a word of each message and of the way out.
    const SAMPLES: &[(&str, &str, &str)] = &[
        ("\x7fELF\x02\x01\x01", "ELF", "the trace itself"),
        ("%PDF-1.5\n", "PDF", "the trace itself"),
        ("\n<!DOCTYPE HTML>\n<html><head>", "HTML", "download it again"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "Git LFS", "git lfs pull"),
        ("PERFILE2\x68\x00", "perf", "perf script"),
        ("\x17\x08\x44tracing6\x00", "trace-cmd", "trace-cmd report"),
        ("{\n  \"fio version\" : \"fio-3.36\",\n", "a fio run", "--write_iolog"),
        ("3;fio-3.36;job;0;0;10;20\n", "a fio run", "--log_offset=1"),
        ("job: (g=0): rw=randread, bs=(R) 4096B-4096B\nfio-3.36\n", "a fio run", "--log_offset=1"),
        ("[global]\nioengine=libaio\n[job]\nrw=read\n", "a job file", "--write_iolog"),
        ("1, 250000, 0, 4096, 0\n2, 9000, 1, 512, 1\n", "without offsets", "--log_offset=1"),
        ("1, 250000, 0, 4096\n2, 9000, 1, 512\n", "without offsets", "--log_offset=1"),
        ("1, 250000, 0, 4096, 0x4001\n2, 9, 1, 512, 0x0000\n", "without offsets", "--log_offset=1"),
        ("1, 1, 0, 4096, 8192, 0\n2, 1, 1, 512, 0, 0\n", "IOPS", "--write_lat_log"),
        ("500, 2500, 0, 0, 0\n1000, 90, 1, 0, 0\n", "averages", "--log_avg_msec"),
        ("500, 2500, 0, 0, 0, 0\n1000, 90, 1, 0, 0, 0\n", "averages", "--log_avg_msec"),
        (
            "Linux 6.1.0 (host) \t05/11/26\n\nDevice            r/s     rkB/s\nsda  1.0  2.0\n",
            "iostat",
            "blktrace",
        ),
        (
            "Device   tps    kB_read/s    kB_wrtn/s\nsda   1.00   2.00   3.00\n",
            "iostat",
            "blktrace",
        ),
        ("procs -----------memory---------- ---swap--\n r  b   swpd\n", "vmstat", "blktrace"),
        ("Linux 6.1.0 (host)\n\n12:00:01  DEV  tps\n12:00:02  sda  1.0\n", "sar", "blktrace"),
        ("   8       0 sda 1 2 3 4 5 6 7 8 9 10 11\n", "/proc/diskstats", "blktrace"),
        ("smartctl 7.3 2022-02-28 r5338\n", "smartctl", "blktrace"),
        ("==================== All Devices ====================\n", "btt", "sdb.blktrace.0"),
        ("TIME(ms)     COMM             PID    LAT(ms)\n611  bash  1179  4\n", "bpftrace", "BCC"),
        (
            "     usecs           : count     distribution\n  0 -> 1 : 0 |  |\n",
            "histogram",
            "biosnoop",
        ),
        ("@usecs:\n[256, 512)   2 |@@@@@@    |\n", "histogram", "biosnoop"),
        (
            "COMM     PID    TYPE DEV  BLOCK  BYTES   LATms\nsuper 1809 W 8,1 5 4096 1.3\n",
            "iosnoop",
            "biosnoop",
        ),
        (
            "Histogram: IO lengths of commands,virtual machine worldGroupID : 7\n",
            "vscsiStats",
            "-t -w",
        ),
        ("1234 pread64(3, \"a\", 4096, 0) = 4096\n", "strace", "blktrace"),
        ("\"Time of Day\",\"Process Name\",\"PID\"\n", "Process Monitor", "xperf"),
        ("\"(PDH-CSV 4.0) (UTC)(0)\",\"\\\\HOST\\Disk\"\n", "perfmon", "xperf"),
        ("# block_id io_offset io_size op_time op_name\n", "Baleen", "obj_id"),
        ("7001 0 4096 1570000000.25 2 1 5 9\n7002 8 90 1570000001.5 1 1 5 9\n", "Baleen", "obj_id"),
        ("8,16 0.000001 Q WS 2048 8\n8,16 0.000009 C WS 2048 8\n", "-f", "without -f"),
        ("0.000001 R 2048 8\n0.000009 W 4096 8\n", "CAMELab", "arrival_ns"),
        ("bash  77 [001] 10.5: sched:sched_switch: prev=a\n", "block layer", "perf record"),
    ];

    #[test]
    fn non_traces_told_by_name() {
        for (head, is, way_out) in SAMPLES {
            assert_eq!(Format::detect(head.as_bytes()), None, "{head}");
            let Some(found) = recognise(head.as_bytes()) else { panic!("{head}") };
            assert!(found.is.contains(is), "{head}: {}", found.is);
            assert!(found.way_out.contains(way_out), "{head}: {}", found.way_out);
        }
        let bins = vec!["0"; 100].join(", ");
        let histogram = recognise(format!("1000, 0, 4096, {bins}\n").as_bytes()).unwrap();
        assert!(histogram.is.contains("histograms"));
        assert!(recognise(b"\xd4\xc3\xb2\xa1\x02\x00").unwrap().is.contains("pcap"));
    }

    #[test]
    fn other_files_are_not_called_anything() {
        for head in
            ["", "hello, world\n", "1,2,3,4,5\n", "time,lba,sectors\n1,2,3\n", "drive = 7\n"]
        {
            assert_eq!(recognise(head.as_bytes()), None, "{head}");
        }
    }
}
