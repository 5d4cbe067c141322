//! Events of Linux's block layer, as blkparse prints them and as blktrace writes them.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use crate::common::{completed, lenient, malformed, record, records};
use freewheel_trace::{
    Format, Layer, LayerCounts, OpenOptions, Record, TraceError, TraceInfo, TraceReader,
};
use freewheel_units::Op;
use proptest::prelude::*;

/// 8,16 in Linux.
const SDB: u32 = 8 << 20 | 16;

fn corpus(sample: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    fs::read(folder.join(sample)).unwrap()
}

/// One event, in both notations.
#[derive(Debug, Clone)]
struct Event {
    ns: u64,
    /// Q, M, F, I, D or C.
    action: char,
    /// R, W, D, and `F` before or after.
    kind: String,
    start: u64,
    blocks: u64,
}

fn event(ns: u64, action: char, kind: &str, start: u64, blocks: u64) -> Event {
    Event { ns, action, kind: kind.into(), start, blocks }
}

impl Event {
    fn text(&self, sequence: usize) -> String {
        let Self { ns, action, kind, start, blocks } = self;
        let (s, ns) = (ns / 1_000_000_000, ns % 1_000_000_000);
        let place = match (blocks, action) {
            (0, 'C') => "0 [0]".to_owned(),
            (0, _) => "[dd]".to_owned(),
            (_, 'C') => format!("{start} + {blocks} [0]"),
            _ => format!("{start} + {blocks} [dd]"),
        };
        format!("  8,16   1 {sequence:8} {s:5}.{ns:09} {:5}  {action} {kind:>3} {place}\n", 77)
    }

    fn action_word(&self) -> u64 {
        let act = match self.action {
            'Q' => 1 | 1 << 20,
            'M' => 2 | 1 << 20,
            'F' => 3 | 1 << 20,
            'I' => 12 | 1 << 20,
            'D' => 7 | 1 << 22,
            _ => 8 | 1 << 23,
        };
        let rest = self.kind.trim_start_matches('F');
        let op = match rest.chars().next() {
            Some('W') => 1 << 17,
            Some('D') => 1 << 17 | 1 << 29,
            _ => 1 << 16,
        };
        let flush = u64::from(self.kind.starts_with('F')) << 18;
        let fua = u64::from(rest.ends_with('F')) << 31;
        act | op | flush | fua
    }

    fn v7(&self, sequence: usize) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend([0x6561_7407, sequence as u32].iter().flat_map(|word| word.to_le_bytes()));
        out.extend([self.ns + 5_000, self.start].iter().flat_map(|long| long.to_le_bytes()));
        let words = [self.blocks as u32 * 512, self.action_word() as u32, 77, SDB, 1];
        out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        out.extend([0, 0, 3, 0, b'p', b'd', b'u']);
        out
    }

    fn v8(&self, sequence: usize) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend([0x6561_7408, sequence as u32].iter().flat_map(|word| word.to_le_bytes()));
        out.extend([self.ns + 5_000, self.start].iter().flat_map(|long| long.to_le_bytes()));
        out.extend([self.blocks as u32 * 512, 77].iter().flat_map(|word| word.to_le_bytes()));
        out.extend(self.action_word().to_le_bytes());
        out.extend([SDB, 1].iter().flat_map(|word| word.to_le_bytes()));
        out.extend([0; 16]);
        out
    }
}

fn write(events: &[Event], one: impl Fn(&Event, usize) -> Vec<u8>) -> Vec<u8> {
    events.iter().enumerate().flat_map(|(sequence, event)| one(event, sequence + 1)).collect()
}

fn read(bytes: &[u8], format: Format) -> Vec<Record> {
    let options = OpenOptions { format: Some(format), ..OpenOptions::default() };
    let reader = TraceReader::from_reader("t", Cursor::new(bytes.to_vec()), &options).unwrap();
    let records: Result<Vec<Record>, TraceError> = reader.collect();
    match records {
        Err(TraceError::NoRequests { .. }) => Vec::new(),
        records => records.unwrap(),
    }
}

#[test]
fn blkparse_pairs_completions_and_skips_summary() {
    let want = [
        completed(record(1_850, Op::Read, SDB, 144, 256), 356_669),
        completed(record(100_000, Op::Flush, SDB, 0, 0), 150_000),
        Record { fua: true, ..completed(record(100_000, Op::Write, SDB, 4096, 8), 400_000) },
    ];
    assert_eq!(records(&corpus("blkparse/clean"), Format::Blkparse), want);
}

#[test]
fn blktrace_versions_and_orders_agree() {
    let want = [
        completed(record(0, Op::Read, SDB, 144, 256), 2_000),
        completed(record(1_500, Op::Flush, SDB, 0, 0), 1_900),
        Record { fua: true, ..completed(record(1_500, Op::Write, SDB, 4096, 8), 3_000) },
    ];
    for sample in ["v7", "v8", "big_endian"] {
        let bytes = corpus(&format!("blktrace/{sample}"));
        assert_eq!(records(&bytes, Format::Blktrace), want, "{sample}");
    }
}

#[test]
fn blkparse_wrong_fields_named() {
    let faults = [
        ("8x 1 1 0.5 9 Q R 8 + 8 [dd]", "device"),
        ("8,1048576 1 1 0.5 9 Q R 8 + 8 [dd]", "device"),
        ("8,0 x 1 0.5 9 Q R 8 + 8 [dd]", "cpu"),
        ("8,0 1 x 0.5 9 Q R 8 + 8 [dd]", "sequence"),
        ("8,0 1 1 soon 9 Q R 8 + 8 [dd]", "time"),
        ("8,0 1 1 0.5 x Q R 8 + 8 [dd]", "process"),
        ("8,0 1 1 0.5 9 QQ R 8 + 8 [dd]", "action"),
        ("8,0 1 1 0.5 9 Q r 8 + 8 [dd]", "rwbs"),
        ("8,0 1 1 0.5 9 Q R x + 8 [dd]", "block"),
        ("8,0 1 1 0.5 9 Q R 8 + 0 [dd]", "blocks"),
        ("8,0 1 1 0.5 9 Q R 8", "+"),
        ("8,0 1 1 0.5 9 C R 8 x", "+"),
        ("8,0 1 1 0.5 9", "action"),
    ];
    for (line, field) in faults {
        let malformed = malformed(format!("{line}\n").as_bytes(), Format::Blkparse);
        assert_eq!((malformed.field, malformed.record), (field, 1), "{line}: {malformed}");
    }
}

#[test]
fn blkparse_line_may_lack_process_name() {
    let (with, without) = ("8,0 1 1 0.5 9 Q R 8 + 8 [dd]\n", "8,0 1 2 0.6 9 Q R 16 + 8\n");
    let read = records(without.as_bytes(), Format::Blkparse);
    assert_eq!(read, [record(600_000_000, Op::Read, 8 << 20, 16, 8)]);
    // A line that is cut off could be such a line.
    let malformed = malformed(format!("{with}{without}").as_bytes(), Format::Blkparse);
    assert_eq!((malformed.field, malformed.record), ("process name", 2));
}

#[test]
fn blkparse_joined_recordings_follow_one_another() {
    let recording = "8,0 1 1 0.1 9 Q R 8 + 8 [dd]\n8,0 1 2 0.2 0 C R 8 + 8 [0]\n\
                     CPU1 (8,0):\n Reads Queued: 1, 4KiB\t Writes Queued: 0, 0KiB\n\n\
                     Throughput (R/W): 20KiB/s / 0KiB/s\n";
    let read = records([recording, recording].concat().as_bytes(), Format::Blkparse);
    let once = completed(record(100_000_000, Op::Read, 8 << 20, 8, 8), 200_000_000);
    // The mean time between the two events is 0.1 s.
    let again = completed(record(300_000_000, Op::Read, 8 << 20, 8, 8), 400_000_000);
    assert_eq!(read, [once, again]);
}

#[test]
fn placeless_commands_and_messages_no_requests() {
    let text = "8,0 1 1 0.1 9 D R 36 (12 00 00 00) [smartctl]\n\
                8,0 1 2 0.2 0 C R (12 00) [0]\n\
                8,0 1 3 0.3 9 Q N [dd]\n\
                8,0 1 0 0.4 0 m N cfq9S / insert_request\n\
                8,0 1 4 0.5 9 UT N [swapper] 1\n\
                8,0 1 5 0.6 9 X R 8 / 16 [dd]\n\
                8,0 1 6 0.7 9 Q RA 8 + 8 [dd]\n";
    assert_eq!(
        records(text.as_bytes(), Format::Blkparse),
        [record(700_000_000, Op::Read, 8 << 20, 8, 8)]
    );
}

#[test]
fn blktrace_damage_told_and_reading_continues() {
    let events = [event(0, 'Q', "R", 8, 8), event(10, 'C', "R", 8, 8)];
    let [first, second] = [events[0].v7(1), events[1].v7(2)];
    let damaged = [&first[..], b"some rubbish", &second[..]].concat();
    let error = malformed(&damaged, Format::Blktrace);
    assert_eq!((error.field, error.record, error.offset_bytes), ("magic", 2, Some(51)));
    let (records, skipped) = lenient(&damaged, Format::Blktrace);
    assert_eq!((records.len(), skipped), (1, 1));
    assert!(records[0].completion.is_some());
    for cut in [1, 3, 20, 49] {
        let whole = [&first[..], &second[..]].concat();
        let error = malformed(&whole[..whole.len() - cut], Format::Blktrace);
        assert_eq!((error.field, error.record), ("event", 2), "{error}");
    }
    let far = event(0, 'Q', "W", u64::MAX / 2, 8).v7(1);
    assert_eq!(malformed(&far, Format::Blktrace).field, "sector");
}

#[test]
fn blktrace_processor_files_are_one_trace() {
    let folder = tempfile::tempdir().unwrap();
    // Queued on one processor, completed on the other.
    let here = [event(0, 'Q', "R", 8, 8), event(40, 'C', "W", 64, 8)];
    let there = [event(10, 'Q', "W", 64, 8), event(30, 'C', "R", 8, 8)];
    let [first, second] =
        ["sda.blktrace.0", "sda.blktrace.11"].map(|name| folder.path().join(name));
    fs::write(&first, write(&here, Event::v7)).unwrap();
    fs::write(&second, write(&there, Event::v8)).unwrap();
    fs::write(folder.path().join("sdb.blktrace.0"), b"not of this trace").unwrap();
    let want = [
        completed(record(0, Op::Read, SDB, 8, 8), 30),
        completed(record(10, Op::Write, SDB, 64, 8), 40),
    ];
    for path in [&first, &second] {
        let mut reader = TraceReader::open(path, &OpenOptions::default()).unwrap();
        let records: Vec<Record> = reader.by_ref().map(Result::unwrap).collect();
        assert_eq!(records, want);
        let total =
            [&first, &second].map(|path| path.metadata().unwrap().len()).iter().sum::<u64>();
        assert_eq!(reader.compressed_bytes_total(), total);
    }
}

#[test]
fn interleaved_processor_stream_put_in_order() {
    let queued = |n: u64| event(n * 10, 'Q', "R", n * 8, 8).v7(1);
    let done = |n: u64| event(n * 10 + 5, 'C', "R", n * 8, 8).v7(1);
    // One processor hands over all that was queued, then the other all that completed.
    let stream: Vec<u8> = (0..5000).flat_map(queued).chain((0..5000).flat_map(done)).collect();
    let records = read(&stream, Format::Blktrace);
    assert_eq!(records.len(), 5000);
    let response = |record: &Record| record.completion.map(|done| (done - record.arrival).ns());
    assert!(records.iter().all(|record| response(record) == Some(5)));
}

/// Requests in slots, so that one completion may cover several.
/// A line of ftrace.
fn of_ftrace(event: &Event, _: usize) -> Vec<u8> {
    let Event { ns, action, kind, start, blocks } = event;
    let us = ns / 1_000;
    let name = match action {
        'Q' => "bio_queue",
        'M' => "bio_backmerge",
        'F' => "bio_frontmerge",
        'I' => "rq_insert",
        'D' => "rq_issue",
        _ => "rq_complete",
    };
    let command = if action == &'D' || action == &'I' { "4096 () " } else { "" };
    let end = if action == &'C' { "[0]" } else { "[dd]" };
    let time = format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
    let what = format!("block_{name}: 8,16 {kind} {command}{start} + {blocks} {end}");
    format!("dd-77 [001] d..1 {time}: {what}\n").into_bytes()
}

fn read_layer(bytes: &[u8], format: Format, layer: Layer) -> (Vec<Record>, TraceInfo) {
    let options = OpenOptions { format: Some(format), layer, ..OpenOptions::default() };
    let open = || TraceReader::from_reader("t", Cursor::new(bytes.to_vec()), &options).unwrap();
    let records = open().collect::<Result<Vec<Record>, TraceError>>().unwrap();
    (records, TraceInfo::scan(&mut open()).unwrap())
}

/// Three writes that become one command, and a read beside them.
fn merged_events() -> Vec<Event> {
    vec![
        event(0, 'Q', "W", 1008, 8),
        event(1_000, 'Q', "W", 1016, 8),
        event(1_000, 'M', "W", 1016, 8),
        event(2_000, 'Q', "R", 5000, 8),
        event(3_000, 'I', "W", 1008, 16),
        event(4_000, 'Q', "W", 1000, 8),
        event(4_000, 'F', "W", 1000, 8),
        event(5_000, 'D', "W", 1000, 24),
        event(6_000, 'D', "R", 5000, 8),
        event(9_000, 'C', "W", 1000, 24),
        event(10_000, 'C', "R", 5000, 8),
    ]
}

#[test]
fn block_formats_offer_issued_and_queued() {
    let events = merged_events();
    let write_of =
        |at, start, blocks, end| completed(record(at, Op::Write, SDB, start, blocks), end);
    let read = completed(record(2_000, Op::Read, SDB, 5000, 8), 10_000);
    let issued = vec![write_of(0, 1000, 24, 9_000), read];
    let queued = vec![
        write_of(0, 1008, 8, 9_000),
        write_of(1_000, 1016, 8, 9_000),
        read,
        write_of(4_000, 1000, 8, 9_000),
    ];
    let counts = LayerCounts { queued: 4, merged: 2, issued: 2 };
    let text = write(&events, |event, sequence| event.text(sequence).into_bytes());
    for (bytes, format) in [
        (text, Format::Blkparse),
        (write(&events, Event::v7), Format::Blktrace),
        (write(&events, Event::v8), Format::Blktrace),
        (write(&events, of_ftrace), Format::Ftrace),
    ] {
        for (asked, read, records) in [
            (Layer::Auto, Layer::Issued, &issued),
            (Layer::Issued, Layer::Issued, &issued),
            (Layer::Queued, Layer::Queued, &queued),
        ] {
            let (found, info) = read_layer(&bytes, format, asked);
            assert_eq!(&found, records, "{format} {asked:?}");
            let layers = info.survey.unwrap().layers.unwrap();
            assert_eq!((layers.counts, layers.read), (counts, read), "{format} {asked:?}");
            assert_eq!(info.requests, records.len() as u64);
        }
    }
}

#[test]
fn queued_layer_chosen_when_merges_rare() {
    for (alone, read) in [(98, Layer::Issued), (99, Layer::Queued)] {
        let mut events = Vec::new();
        for at in 0..alone {
            events.push(event(10_000 * at, 'Q', "R", 100_000 + 100 * at, 8));
            events.push(event(10_000 * at + 1_000, 'D', "R", 100_000 + 100 * at, 8));
            events.push(event(10_000 * at + 5_000, 'C', "R", 100_000 + 100 * at, 8));
        }
        let late = 10_000 * alone;
        events.push(event(late, 'Q', "W", 0, 8));
        events.push(event(late, 'Q', "W", 8, 8));
        events.push(event(late, 'M', "W", 8, 8));
        events.push(event(late + 5_000, 'D', "W", 0, 16));
        let text = write(&events, |event, sequence| event.text(sequence).into_bytes());
        let (records, info) = read_layer(&text, Format::Blkparse, Layer::Auto);
        let layers = info.survey.unwrap().layers.unwrap();
        assert_eq!((layers.counts.queued, layers.counts.merged), (alone + 2, 1));
        // 1 of 100, and 1 of 101.
        assert_eq!(layers.read, read);
        let count = if read == Layer::Issued { alone + 1 } else { alone + 2 };
        assert_eq!(records.len() as u64, count);
    }
}

#[test]
fn other_formats_have_no_layers() {
    let csv = b"arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns\n0,R,4096,512,0,\n";
    let options = OpenOptions {
        format: Some(Format::FreewheelCsv),
        layer: Layer::Issued,
        ..OpenOptions::default()
    };
    let error = TraceReader::from_reader("t", Cursor::new(csv.to_vec()), &options).err();
    assert!(matches!(error, Some(TraceError::FixedLayer { .. })), "{error:?}");
    let (records, info) = read_layer(csv, Format::FreewheelCsv, Layer::default());
    assert_eq!(records.len(), 1);
    assert!(info.survey.unwrap().layers.is_none());
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let kinds = prop::sample::select(vec!["R", "W", "WF", "DS", "FWF", "F"]);
    let one = (prop::sample::select(vec!['Q', 'D', 'C']), kinds, 0u64..6, 1u64..4, 0u64..1000);
    prop::collection::vec(one, 1..60).prop_map(|events| {
        let mut time = 0;
        let mut place = |(action, kind, slot, slots, gap): (char, &str, u64, u64, u64)| {
            time += gap;
            let (kind, blocks) = match kind {
                "F" if action == 'Q' => ("FWS", 0),
                "F" => ("FN", 0),
                kind => (kind, slots * 8),
            };
            event(time, action, kind, if blocks == 0 { 0 } else { slot * 8 }, blocks)
        };
        events.into_iter().map(&mut place).collect()
    })
}

proptest! {
    #[test]
    fn blkparse_and_blktrace_versions_agree(events in events()) {
        let text = read(&write(&events, |event, n| event.text(n).into_bytes()), Format::Blkparse);
        let relative = |records: Vec<Record>| -> Vec<Record> {
            let zero = records.first().map_or(0, |record| record.arrival.ns());
            let shift = |time: freewheel_units::SimTime| freewheel_units::SimTime::from_ns(time.ns() - zero);
            let shifted = |record: Record| {
                let completion = record.completion.map(shift);
                Record { arrival: shift(record.arrival), completion, ..record }
            };
            records.into_iter().map(shifted).collect()
        };
        let text = relative(text);
        prop_assert_eq!(&read(&write(&events, Event::v7), Format::Blktrace), &text);
        prop_assert_eq!(&read(&write(&events, Event::v8), Format::Blktrace), &text);
    }
}
