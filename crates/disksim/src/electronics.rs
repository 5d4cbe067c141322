//! `disksim_disk`: buffer, overheads, bus and queue.

use freewheel_model::drive::spec::{ByOp, DriveSpec};
use freewheel_model::onboard::spec::{
    AfterOp, BufferSpec, BusSpec, OnboardSpec, OverheadSpec, ReadAhead, WriteCache,
};
use freewheel_units::SimDuration;

use crate::error::ImportError;
use crate::fields::{Fields, Leftover, Report, block};
use crate::mechanics::source as source_text;
use crate::number::Decimal;
use crate::parse::Block;

const SEGMENTS_MAX: u32 = 1 << 20;

/// What a drive's electronics may say beside what Freewheel's do, with the value for "off".
const LEFTOVERS: &[Leftover] = &[
    off("Use separate write segment", "any segment may hold written data"),
    off("Minimum read-ahead (blks)", "a waiting command ends reading ahead"),
    off("Allow almost read hits", "a block that is being read ahead is no hit yet"),
    off("Hold bus entire read xfer", "the bus is let go while the media lag behind"),
    off("Hold bus entire write xfer", "the bus is let go while the media lag behind"),
    off("Allow sneaky full read hits", "waiting requests do not use the buffer out of turn"),
    off("Allow sneaky partial read hits", "waiting requests do not use the buffer out of turn"),
    off(
        "Allow sneaky intermediate read hits",
        "waiting requests do not use the buffer out of turn",
    ),
    off("Allow write prebuffering", "waiting writes do not fill the buffer out of turn"),
    off("Preseeking level", "the arm does not set out before the request before is complete"),
    off("Low (write) water mark", "writes fill the buffer without waiting for the media"),
    off("Set watermark by reqsize", "there are no water marks"),
    off("Read-ahead over requested", "reading ahead does not take the place of requested data"),
    off("Read-ahead on idle hit", "a request that the buffer serves does not start reading ahead"),
    off("Stop prefetch in sector", "reading ahead stops between sectors"),
    off("Disconnect write if seek", "a write lets go of the bus when its data are across"),
    off("Data preparation overhead", NO_TIME),
    off("Extra write disconnect", "writes let go of the bus once"),
    off("Extradisc command overhead", NO_TIME),
    off("Extradisc disconnect overhead", NO_TIME),
    off("Extradisc inter-disconnect delay", NO_TIME),
    off("Extradisc 2nd disconnect overhead", NO_TIME),
    off("Extradisc seek delta", NO_TIME),
    off("Minimum seek delay", NO_TIME),
    Leftover {
        key: "Immed transfer partial hit",
        off: Some(1),
        why: "what the buffer has of a read is sent at once",
    },
    Leftover {
        key: "Calc sector by sector",
        off: Some(1),
        why: "transfers are always computed by the sector, as DiskSim 4.0 does whatever it says",
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
const NO_TIME: &str = "electronics have no such time";

const fn off(key: &'static str, why: &'static str) -> Leftover {
    Leftover { key, off: Some(0), why }
}

/// Adds the electronics of a `disksim_disk` block to the drive.
pub(crate) fn add(
    source: &Block,
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
    drive.onboard = OnboardSpec {
        overheads: Some(overheads(&mut fields, scale, each, report)?),
        bus: Some(bus(&mut fields, scale, report)?),
        buffer: buffer(&mut fields, report)?,
    };
    queue(&mut fields, report)?;
    fields.finish(LEFTOVERS, report);
    for key in ["zero_latency", "overhead", "onboard"] {
        drive.sources.insert(key.into(), source_text(&source.at.file));
    }
    Ok(())
}

fn immediate(fields: &mut Fields<'_>, key: &str, report: &mut Report) -> Result<bool, ImportError> {
    let level = fields.whole(key, 2u32)?.unwrap_or(0);
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

fn bus(
    fields: &mut Fields<'_>,
    scale: Decimal,
    report: &mut Report,
) -> Result<BusSpec, ImportError> {
    let block_time = fields.time("Bulk sector transfer time", Decimal::ONE, report)?;
    let reconnect = fields.time("First reselect overhead", scale, report)?;
    let disconnect = fields.time("Read disconnect afterread", scale, report)?;
    for (key, kept, chosen) in [
        ("Other reselect overhead", "First reselect overhead", reconnect),
        ("Read disconnect afterwrite", "Read disconnect afterread", disconnect),
        ("Write disconnect overhead", "Read disconnect afterread", disconnect),
    ] {
        let Some(param) = fields.get(key) else { continue };
        if fields.time(key, scale, report)? != chosen {
            report.lost(param, format!("one time for all; that of `{kept}` is taken"));
        }
    }
    let store_and_forward = waits_for_all(fields, report)?;
    let mut bus = BusSpec {
        block_time,
        arbitration: SimDuration::ZERO,
        reconnect,
        disconnect,
        store_and_forward,
    };
    if fields.flag("Never disconnect")? {
        report.lost(
            fields.need("Never disconnect")?,
            "times to let go of the bus and to get it back are zero, but it can be let go",
        );
        (bus.reconnect, bus.disconnect) = (SimDuration::ZERO, SimDuration::ZERO);
    }
    Ok(bus)
}

/// Whether a read takes the bus only when all of it is in the buffer: a high water mark of 1 by
/// the request's size.
fn waits_for_all(fields: &mut Fields<'_>, report: &mut Report) -> Result<bool, ImportError> {
    let Some((mark, param)) = fields.number("High (read) water mark")? else { return Ok(false) };
    let by_request = fields.flag("Set watermark by reqsize")?;
    let all = mark.f64() == 1.0 && by_request;
    if !mark.is_zero() && !all {
        report
            .lost(param, "a read takes the bus with its first block or with its last, not between");
    }
    Ok(all)
}

/// A drive holds one command. Of several it could choose by a policy of its own.
fn queue(fields: &mut Fields<'_>, report: &mut Report) -> Result<(), ImportError> {
    let depth = fields.whole("Max queue length", u32::MAX)?.unwrap_or(1);
    if depth != 1 {
        report.lost(fields.need("Max queue length")?, "a drive holds one command at a time");
    }
    match fields.get("Scheduler") {
        Some(param) => scheduler(block(&param.value, "Scheduler")?, depth, report),
        None => Ok(()),
    }
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

/// The drive's own scheduler: `Scheduling policy` 1 is first come, first served, and of one command
/// there is nothing to choose.
fn scheduler(source: &Block, depth: u32, report: &mut Report) -> Result<(), ImportError> {
    let mut fields = Fields::new(source);
    let policy = fields.need_whole("Scheduling policy", u32::MAX)?;
    let first = report.not_represented.len();
    if policy != 1 {
        let name = policy_name(policy);
        let why = if depth == 1 { "of one command there is nothing to choose" } else { SCHEDULER };
        report.lost(fields.need("Scheduling policy")?, format!("{name}: {why}"));
    }
    fields.finish(SCHEDULER_LEFTOVERS, report);
    for parameter in &mut report.not_represented[first..] {
        parameter.name = format!("Scheduler: {}", parameter.name);
    }
    Ok(())
}

/// What Freewheel calls DiskSim's policy of this number. Elevators and shortest seek exist by block
/// number (2 to 4) and by cylinder (5 to 7).
fn policy_name(number: u32) -> &'static str {
    match number {
        1 => "fcfs",
        2 | 5 => "look",
        3 | 6 => "clook",
        4 | 7 => "sstf",
        8 => "sptf",
        _ => "a policy without a counterpart",
    }
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
];

fn buffer(fields: &mut Fields<'_>, report: &mut Report) -> Result<Option<BufferSpec>, ImportError> {
    let segments = fields.whole("Number of buffer segments", SEGMENTS_MAX)?.unwrap_or(0);
    let caching = fields.whole("Enable caching in buffer", 2u32)?.unwrap_or(1);
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
    let most = fields.whole("Maximum read-ahead (blks)", u32::MAX)?.unwrap_or(0);
    Ok(Some(BufferSpec {
        segments,
        segment_blocks,
        write_segments: write_segments(fields, segments, report)?,
        read_ahead: read_ahead(fields)?,
        read_ahead_max_blocks: most,
        keep_free_blocks_before: fields.flag("Read any free blocks")?,
        read_hits_on_written: fields.flag("Allow read hits on write data")?,
        write_cache: write_cache(fields)?,
        combine_sequential_writes: fields.flag("Combine seq writes")?,
        write_stops_read_ahead: fields.flag("Write hit stop prefetch")?,
        destage_after_idle: SimDuration::ZERO,
    }))
}

fn write_segments(
    fields: &mut Fields<'_>,
    segments: u32,
    report: &mut Report,
) -> Result<u32, ImportError> {
    let key = "Maximum number of write segments";
    let given = fields.whole(key, SEGMENTS_MAX)?.unwrap_or(1);
    let used = given.clamp(1, segments);
    if used != given {
        report
            .lost(fields.need(key)?, format!("1 to all segments may hold writes; {used} is used"));
    }
    Ok(used)
}

fn read_ahead(fields: &mut Fields<'_>) -> Result<ReadAhead, ImportError> {
    Ok(match fields.whole("Buffer continuous read", 4u32)?.unwrap_or(0) {
        0 => ReadAhead::None,
        1 => ReadAhead::Track,
        2 => ReadAhead::Cylinder,
        3 => ReadAhead::Segment,
        _ => ReadAhead::Adaptive,
    })
}

fn write_cache(fields: &mut Fields<'_>) -> Result<WriteCache, ImportError> {
    Ok(match fields.whole("Fast write level", 2u32)?.unwrap_or(0) {
        0 => WriteCache::Off,
        1 => WriteCache::Sequential,
        _ => WriteCache::On,
    })
}
