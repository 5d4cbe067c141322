//! `disksim_disk`: buffer, overheads, bus and queue.

use freewheel_model::drive::Drive;
use freewheel_model::drive::spec::{ByOp, DriveSpec, MeasuringHost};
use freewheel_model::electronics::spec::{
    AfterOp, BufferSpec, BusSpec, ElectronicsSpec, ExtraDisconnectSpec, OverheadSpec,
    QUEUE_DEPTH_MAX, QueueSpec, ReadAhead, SEGMENTS_MAX, WriteCache, WriteStartSpec,
};
use freewheel_model::sched::PolicySpec;
use freewheel_units::SimDuration;

use crate::error::ImportError;
use crate::fields::{Fields, Leftover, Report, block};
use crate::mechanics::source as source_text;
use crate::number::Decimal;
use crate::parse::Block;

/// Properties of a drive's electronics that Freewheel's lack, with the value for "off".
const LEFTOVERS: &[Leftover] = &[
    off("Hold bus entire read xfer", "the bus is let go while the media lag behind"),
    off("Hold bus entire write xfer", "the bus is let go while the media lag behind"),
    off("Allow sneaky partial read hits", ONLY_WHOLE),
    off("Allow sneaky intermediate read hits", ONLY_WHOLE),
    off("Allow write prebuffering", "waiting writes do not fill the buffer out of turn"),
    off("Preseeking level", "the arm does not set out before the request before is complete"),
    off("Low (write) water mark", "writes fill the buffer without waiting for the media"),
    off("Set watermark by reqsize", "of writes there is no water mark"),
    off("Stop prefetch in sector", "reading ahead stops between sectors"),
    off("Disconnect write if seek", "a write lets go of the bus when its data are across"),
    Leftover {
        key: "Immed transfer partial hit",
        off: Some(1),
        why: "what the buffer has of a read is sent at once",
    },
    Leftover {
        key: "Calc sector by sector",
        off: Some(1),
        why: "transfers are always computed by the sector, as DiskSim 4.0 does for any value",
    },
    Leftover {
        key: "Read directly to buffer",
        off: Some(1),
        why: "sectors are read into the buffer without another in between",
    },
    Leftover {
        key: "Avg sectors per cylinder",
        off: None,
        why: "a hint for schedulers outside the drive; the zones say it exactly",
    },
    Leftover { key: "Print stats", off: None, why: "asks for output, not about the drive" },
];
const ONLY_WHOLE: &str = "only a request that the buffer serves whole is served out of turn";

const fn off(key: &'static str, why: &'static str) -> Leftover {
    Leftover { key, off: Some(0), why }
}

/// Adds the electronics of a `disksim_disk` block to the drive.
///
/// `hosts` is the slowest bus around the disk: reads, and writes.
pub(crate) fn add(
    source: &Block,
    hosts: ByOp<SimDuration>,
    drive: &mut DriveSpec,
    report: &mut Report,
) -> Result<(), ImportError> {
    let mut fields = Fields::new(source);
    fields.get("Model");
    let scale = fields.number("Time scale for overheads")?.map_or(Decimal::ONE, |(scale, _)| scale);
    let each = fields.time("Per-request overhead time", scale, report)?;
    drive.overhead = ByOp { read: each, write: each };
    drive.zero_latency = ByOp {
        read: immediate(&mut fields, "Immediate buffer read", report)?,
        write: immediate(&mut fields, "Immediate buffer write", report)?,
    };
    drive.electronics = ElectronicsSpec {
        overheads: Some(overheads(&mut fields, scale, each, report)?),
        bus: Some(bus(&mut fields, hosts, scale, report)?),
        buffer: buffer(&mut fields, report)?,
        queue: queue(&mut fields, report)?,
        write_start: write_start(&mut fields, scale, report)?,
        ..ElectronicsSpec::default()
    };
    fields.finish(LEFTOVERS, report);
    for key in ["zero_latency", "overhead", "electronics"] {
        drive.sources.insert(key.into(), source_text(&source.at.file));
    }
    if drive.electronics.buffer.is_some() {
        let text = "derived: what DiskSim 4.0 does with such reads";
        drive.sources.insert("electronics.buffer.partial_hits".into(), text.into());
    }
    Ok(())
}

/// A bus slower than the media is no drive's interface: DiskSim's drives were measured over a host's
/// bus of 5 MB/s. Such a bus goes to `measured_on`; the drive's own is not in the parameters.
pub(crate) fn separate_host_bus(
    spec: &mut DriveSpec,
    drive: &Drive,
    source: &Block,
    report: &mut Report,
) {
    let Some(bus) = spec.electronics.bus else { return };
    let Some(limit) = drive.limit_of_bus(bus) else { return };
    spec.electronics.bus =
        Some(BusSpec { block_time: SimDuration::ZERO, write_block_time: None, ..bus });
    let almost_hits = spec.electronics.buffer.as_mut().and_then(assume_almost_hits);
    spec.measured_on = Some(MeasuringHost { bus, almost_hits });
    let sources = [
        ("measured_on", source_text(&source.at.file)),
        ("electronics.bus", NO_INTERFACE.to_owned()),
    ];
    spec.sources.extend(sources.map(|(key, text)| (key.to_owned(), text)));
    report.note(format!(
        "the bus of {:.1} MB/s is slower than the media ({:.1} MB/s) and was the host's on which the drive was measured: `measured_on` has it, for `drive validate`. Set `electronics.bus.block_time` to the drive's own interface; until then data take no time on it",
        limit.bus_bytes_per_second / 1e6,
        limit.media_bytes_per_second / 1e6
    ));
    if almost_hits.is_some() {
        spec.sources.insert("electronics.buffer.almost_hits".into(), ALMOST_HITS.into());
        report.note("reads of what is just being read ahead are assumed to be served by the buffer, against `Allow almost read hits`: on a fast bus each sequential read would lose a turn. `measured_on` has the value of the parameters");
    }
}

const NO_INTERFACE: &str =
    "assumed: the interface is not in the parameters; data take no time on the bus";
const ALMOST_HITS: &str = "assumed: with the measured value (false) each sequential read on the drive's own bus would lose a turn";

/// Sets `almost_hits` of a buffer that reads ahead. Returns the earlier value if that changes it.
fn assume_almost_hits(buffer: &mut BufferSpec) -> Option<bool> {
    let is_new = buffer.read_ahead != ReadAhead::None && !buffer.almost_hits;
    buffer.almost_hits |= is_new;
    is_new.then_some(false)
}

fn immediate(fields: &mut Fields<'_>, key: &str, report: &mut Report) -> Result<bool, ImportError> {
    let level = fields.level(key, 2, report)?.unwrap_or(0);
    if level == 2 {
        report.lost(fields.need(key)?, "level 2 is taken for level 1");
    }
    Ok(level > 0)
}

/// Command overheads, `each` of them longer by the time that every request takes.
fn overheads(
    fields: &mut Fields<'_>,
    scale: Decimal,
    each: SimDuration,
    report: &mut Report,
) -> Result<OverheadSpec, ImportError> {
    let mut time = |key: &str| fields.time(key, scale, report);
    let mut after = |what: &str| -> Result<AfterOp, ImportError> {
        Ok(AfterOp {
            after_read: each + time(&format!("{what} over. after read"))?,
            after_write: each + time(&format!("{what} over. after write"))?,
        })
    };
    Ok(OverheadSpec {
        read_hit: after("Read hit")?,
        read_miss: after("Read miss")?,
        write_hit: after("Write hit")?,
        write_miss: after("Write miss")?,
        read_completion: fields.time("Read completion overhead", scale, report)?,
        write_completion: fields.time("Write completion overhead", scale, report)?,
    })
}

/// Beginning of writes that do not follow on the write before: the least seek, and the disconnect before their
/// data.
fn write_start(
    fields: &mut Fields<'_>,
    scale: Decimal,
    report: &mut Report,
) -> Result<Option<WriteStartSpec>, ImportError> {
    const TIMES: [&str; 5] = [
        "Extradisc command overhead",
        "Extradisc seek delta",
        "Extradisc disconnect overhead",
        "Extradisc inter-disconnect delay",
        "Extradisc 2nd disconnect overhead",
    ];
    let is_twice = fields.flag("Extra write disconnect", report)?;
    let mut times = [SimDuration::ZERO; 5];
    for (time, key) in times.iter_mut().zip(TIMES) {
        *time = fields.time(key, scale, report)?;
        if !is_twice && *time > SimDuration::ZERO {
            report.lost(fields.need(key)?, "without effect: `Extra write disconnect` is 0");
        }
    }
    let [command, seek_delta, disconnect, between, second] = times;
    // As after one disconnect, the movement begins when the bus is let go.
    let movement_after = command + seek_delta + second;
    let data_after = (command + disconnect + between).max(movement_after);
    let extra = ExtraDisconnectSpec { movement_after, data_after };
    let start = WriteStartSpec {
        seek_at_least: fields.time("Minimum seek delay", Decimal::ONE, report)?,
        extra_disconnect: is_twice.then_some(extra),
    };
    Ok((start != WriteStartSpec::default()).then_some(start))
}

/// Times of a block on the buses of the files, the longest of each kind: a block crosses all of them at once.
pub(crate) fn buses(
    blocks: &[Block],
    report: &mut Report,
) -> Result<ByOp<SimDuration>, ImportError> {
    let mut longest = ByOp::<SimDuration>::default();
    for block in blocks.iter().filter(|block| block.kind == "disksim_bus") {
        let mut fields = Fields::new(block);
        let [read, write] = ["Read block transfer time", "Write block transfer time"]
            .map(|key| fields.time(key, Decimal::ONE, report));
        longest = ByOp { read: longest.read.max(read?), write: longest.write.max(write?) };
    }
    Ok(longest)
}

fn bus(
    fields: &mut Fields<'_>,
    hosts: ByOp<SimDuration>,
    scale: Decimal,
    report: &mut Report,
) -> Result<BusSpec, ImportError> {
    // Only reads come back to the bus, and always with data, which the drive prepares after it has the bus.
    let reconnect = fields.time("First reselect overhead", scale, report)?;
    let preparation = fields.time("Data preparation overhead", scale, report)?;
    if let Some(param) = fields.get("Other reselect overhead")
        && fields.time("Other reselect overhead", scale, report)? != reconnect
    {
        report.lost(param, "the data of a read are across at once: it reselects only once");
    }
    // A block takes as long as on the slowest.
    let own = fields.time("Bulk sector transfer time", Decimal::ONE, report)?;
    let (block_time, written) = (own.max(hosts.read), own.max(hosts.write));
    Ok(BusSpec {
        block_time,
        write_block_time: (written != block_time).then_some(written),
        arbitration: SimDuration::ZERO,
        reconnect: reconnect + preparation,
        read_disconnect: AfterOp {
            after_read: fields.time("Read disconnect afterread", scale, report)?,
            after_write: fields.time("Read disconnect afterwrite", scale, report)?,
        },
        write_disconnect: fields.time("Write disconnect overhead", scale, report)?,
        read_water_mark: read_water_mark(fields, report)?,
        hold: fields.flag("Never disconnect", report)?,
    })
}

/// The high water mark by the request's size; as DiskSim has it, of a segment otherwise.
fn read_water_mark(fields: &mut Fields<'_>, report: &mut Report) -> Result<u32, ImportError> {
    let Some((mark, param)) = fields.number("High (read) water mark")? else { return Ok(0) };
    if !fields.flag("Set watermark by reqsize", report)? && !mark.is_zero() {
        report
            .lost(param, "a read takes the bus with a part of its own blocks, not of a segment's");
        return Ok(0);
    }
    Ok((mark.f64() * 100.0).clamp(0.0, 100.0).round() as u32)
}

/// The commands that the drive holds; None where that is one.
fn queue(fields: &mut Fields<'_>, report: &mut Report) -> Result<Option<QueueSpec>, ImportError> {
    let depth = fields.level("Max queue length", QUEUE_DEPTH_MAX, report)?.unwrap_or(1).max(1);
    let hits_out_of_turn = fields.flag("Allow sneaky full read hits", report)?;
    let scheduler = match fields.get("Scheduler") {
        Some(param) => scheduler(block(&param.value, "Scheduler")?, report)?,
        None => PolicySpec::Fcfs,
    };
    let queue = QueueSpec { depth, scheduler, hits_out_of_turn, ..QueueSpec::default() };
    Ok((queue != QueueSpec::default()).then_some(queue))
}

const SCHEDULER: &str = "the drive's own scheduling has no such rule";
const SCHEDULER_LEFTOVERS: &[Leftover] = &[
    off("Write initiation delay", "policies know the drive's times"),
    off("Read initiation delay", "policies know the drive's times"),
    off("Sequential stream scheme", SCHEDULER),
    off("Maximum concat size", SCHEDULER),
    off("Overlapping request scheme", SCHEDULER),
    off("Sequential stream diff maximum", SCHEDULER),
    off("Scheduling timeout scheme", SCHEDULER),
    off("Timeout time/weight", SCHEDULER),
    off("Timeout scheduling", SCHEDULER),
    off("Scheduling priority scheme", SCHEDULER),
    off("Priority scheduling", SCHEDULER),
    off("Cylinder mapping strategy", "policies know the exact layout"),
];

/// The drive's own scheduler.
fn scheduler(source: &Block, report: &mut Report) -> Result<PolicySpec, ImportError> {
    let mut fields = Fields::new(source);
    let number = fields.need_whole("Scheduling policy", u32::MAX)?;
    let first = report.not_represented.len();
    let scheduler = policy(number).unwrap_or_else(|| {
        let param = fields.need("Scheduling policy").expect("it was there");
        report.lost(param, "a policy without a counterpart: first come, first served is used");
        PolicySpec::Fcfs
    });
    fields.finish(SCHEDULER_LEFTOVERS, report);
    for parameter in &mut report.not_represented[first..] {
        parameter.name = format!("Scheduler: {}", parameter.name);
    }
    Ok(scheduler)
}

/// The policy of this number in DiskSim. Elevators and shortest seek exist by block number (2 to 4) and
/// by cylinder (5 to 7). Shortest positioning time exists with exact positions (8) only.
fn policy(number: u32) -> Option<PolicySpec> {
    Some(match number {
        1 => PolicySpec::Fcfs,
        2 | 5 => PolicySpec::Look,
        3 | 6 => PolicySpec::Clook,
        4 | 7 => PolicySpec::Sstf,
        8 => PolicySpec::Sptf,
        _ => return None,
    })
}

/// Keys that have no meaning for a drive without a cache.
const BUFFER_KEYS: &[&str] = &[
    "Segment size (in blks)",
    "Maximum number of write segments",
    "Buffer continuous read",
    "Maximum read-ahead (blks)",
    "Read any free blocks",
    "Allow read hits on write data",
    "Fast write level",
    "Combine seq writes",
    "Write hit stop prefetch",
    "Use separate write segment",
    "Minimum read-ahead (blks)",
    "Allow almost read hits",
    "Read-ahead over requested",
    "Read-ahead on idle hit",
];

fn buffer(fields: &mut Fields<'_>, report: &mut Report) -> Result<Option<BufferSpec>, ImportError> {
    let segments = fields.level("Number of buffer segments", SEGMENTS_MAX, report)?.unwrap_or(0);
    let caching = fields.level("Enable caching in buffer", 2, report)?.unwrap_or(1);
    if segments == 0 || caching == 0 {
        for key in BUFFER_KEYS {
            if let Some(param) = fields.get(key) {
                report.lost(param, "the drive does not cache");
            }
        }
        return Ok(None);
    }
    if caching == 2 {
        report.lost(fields.need("Enable caching in buffer")?, "2 is taken for 1");
    }
    let segment_blocks = fields.need_whole("Segment size (in blks)", u32::MAX)?;
    let most = fields.level("Maximum read-ahead (blks)", u32::MAX, report)?.unwrap_or(0);
    let least = fields.level("Minimum read-ahead (blks)", u32::MAX, report)?.unwrap_or(0);
    let separate_write_segments =
        fields.flag("Use separate write segment", report)? && segments > 1;
    let keep_requested = keep_requested(fields, report)?;
    Ok(Some(BufferSpec {
        segments,
        segment_blocks,
        write_segments: write_segments(fields, segments, separate_write_segments, report)?,
        separate_write_segments,
        read_ahead: read_ahead(fields, report)?,
        read_ahead_max_blocks: most,
        read_ahead_min_blocks: least,
        keep_requested,
        read_ahead_on_hit: fields.flag("Read-ahead on idle hit", report)?,
        partial_hits: true,
        almost_hits: fields.flag("Allow almost read hits", report)?,
        keep_free_blocks_before: fields.flag("Read any free blocks", report)?,
        read_hits_on_written: fields.flag("Allow read hits on write data", report)?,
        write_cache: write_cache(fields, report)?,
        combine_sequential_writes: fields.flag("Combine seq writes", report)?,
        write_stops_read_ahead: fields.flag("Write hit stop prefetch", report)?,
        destage_after_idle: SimDuration::ZERO,
        dirty: None,
    }))
}

fn write_segments(
    fields: &mut Fields<'_>,
    segments: u32,
    is_separate: bool,
    report: &mut Report,
) -> Result<u32, ImportError> {
    let key = "Maximum number of write segments";
    let given = fields.level(key, SEGMENTS_MAX, report)?.unwrap_or(1);
    let used = given.clamp(1, if is_separate { 1 } else { segments });
    if used != given {
        let why = if is_separate {
            "a separate segment for writes is the only one with writes".into()
        } else {
            format!("1 to all segments may hold writes; {used} is used")
        };
        report.lost(fields.need(key)?, why);
    }
    Ok(used)
}

/// True if what a read asked for stays in the buffer until the segment is used anew: `Read-ahead over
/// requested` is 0. With 1 reading ahead may replace it, with -1 it goes when the read is complete.
fn keep_requested(fields: &mut Fields<'_>, report: &mut Report) -> Result<bool, ImportError> {
    let key = "Read-ahead over requested";
    if let Some((over, param)) = fields.number(key)?
        && over.f64() == -1.0
    {
        let why = "what a read asked for stays in the buffer until reading ahead replaces it, as for 1; \
                   with -1 it goes when the read is complete";
        report.lost(param, why);
        return Ok(false);
    }
    Ok(!fields.flag(key, report)?)
}

fn read_ahead(fields: &mut Fields<'_>, report: &mut Report) -> Result<ReadAhead, ImportError> {
    Ok(match fields.level("Buffer continuous read", 4, report)?.unwrap_or(0) {
        0 => ReadAhead::None,
        1 => ReadAhead::Track,
        2 => ReadAhead::Cylinder,
        3 => ReadAhead::Segment,
        _ => ReadAhead::Adaptive,
    })
}

fn write_cache(fields: &mut Fields<'_>, report: &mut Report) -> Result<WriteCache, ImportError> {
    Ok(match fields.level("Fast write level", 2, report)?.unwrap_or(0) {
        0 => WriteCache::Off,
        1 => WriteCache::Sequential,
        _ => WriteCache::On,
    })
}
