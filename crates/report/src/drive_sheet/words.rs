//! Properties of a drive, in words: name and text of each part.

use freewheel_model::electronics::spec::{
    AfterOp, BufferSpec, BusSpec, OverheadSpec, QueueSpec, ReadAhead, SectorFormat, WriteCache,
    WriteStartSpec,
};
use freewheel_model::electronics::{DurationLimitsSpec, MediaCacheSpec};
use freewheel_model::zoned::spec::ZonedKind;
use freewheel_units::{BLOCK_BYTES, Blocks, SimDuration, grouped};

use super::{CheckRow, DriveSheet};
use crate::numbers::rate;

type Words = (&'static str, String);

fn write_start(start: &WriteStartSpec) -> Vec<Words> {
    let mut words = Vec::new();
    if start.seek_at_least > SimDuration::ZERO {
        words.push(("movement before a write", format!("at least {}", ms(start.seek_at_least))));
    }
    if let Some(extra) = start.extra_disconnect {
        let [movement, data] = [extra.movement_after, extra.data_after].map(ms);
        words.push((
            "write after a write",
            format!("moves after {movement}, its data come after {data}"),
        ));
    }
    words
}

impl DriveSheet {
    /// Buffer, command overheads, bus and queue. Empty when a drive file has none.
    pub fn electronics_words(&self) -> Vec<Words> {
        let electronics = &self.electronics;
        let mut words = Vec::new();
        words.extend(electronics.buffer.iter().flat_map(buffer));
        words.extend(electronics.overheads.iter().flat_map(overheads));
        words.extend(electronics.bus.iter().map(bus));
        let host = self.measured_on.iter();
        words.extend(host.map(|host| ("bus when it was measured", bus(&host.bus).1)));
        words.extend(electronics.queue.iter().map(queue));
        words.extend(electronics.duration_limits.iter().map(limits));
        words.extend(electronics.media_cache.iter().map(media_cache));
        words.extend(sectors(electronics.sector));
        if electronics.read_write_switch > SimDuration::ZERO {
            words.push(("read to write in a cylinder", ms(electronics.read_write_switch)));
        }
        words.extend(electronics.write_start.iter().flat_map(write_start));
        words
    }

    /// Seek curve beyond the measured distances, in words. None where it does not.
    pub fn seek_table_words(&self) -> Option<String> {
        let longest = self.seek_table_cylinders_max?;
        Some(format!(
            "The drive file's table of seeks ends at {} cylinders; longer ones go straight on from its last two.",
            grouped(u64::from(longest))
        ))
    }

    /// Zones of shingled recording. Empty when the drive has none.
    pub fn shingled_words(&self) -> Vec<Words> {
        let Some(zoned) = &self.zoned else { return Vec::new() };
        let managed = match zoned.kind {
            ZonedKind::HostManaged => "by the host; a write out of order is refused",
            ZonedKind::HostAware => "by the host if it will; any write is taken",
            ZonedKind::DriveManaged => "by the drive; the host sees no zones",
        };
        vec![
            ("managed", managed.into()),
            ("size of a zone", zoned.zone_blocks.bytes().human()),
            ("conventional zones", zoned.conventional_zones.to_string()),
            ("open zones at most", zoned.max_open_zones.to_string()),
        ]
    }

    /// Reason why the model misses what the maker promises: the quantity and the reason.
    pub fn miss_words(&self) -> Vec<(&'static str, String)> {
        let missed = self.self_check.iter().filter(|row| row.ok == Some(false));
        missed.map(|row| (row.title, reason(row))).collect()
    }

    pub(super) fn source_words(&self) -> Vec<(&str, &str)> {
        self.sources.iter().map(|(key, text)| (key.as_str(), text.as_str())).collect()
    }
}

fn reason(row: &CheckRow) -> String {
    match &row.reason {
            Some(reason) => reason.clone(),
            None => "the drive file gives no reason: check its values, or state one under `advertised.known_misses`".into(),
        }
}

fn buffer(spec: &BufferSpec) -> [Words; 3] {
    let segment = u64::from(spec.segment_blocks);
    let written = match &spec.dirty {
        Some(dirty) => format!(
            "at most {} for written data, in at most {} extents, the oldest of {} first",
            dirty.bytes.human(),
            grouped(u64::from(dirty.extents)),
            dirty.age_limit
        ),
        None => format!("at most {} of them for written data", spec.write_segments),
    };
    let segments = format!(
        "{} in {} segments of {}, {written}",
        size(segment * u64::from(spec.segments)),
        spec.segments,
        size(segment),
    );
    let ahead = match spec.read_ahead {
        ReadAhead::None => "no",
        ReadAhead::Track => "to the end of the track",
        ReadAhead::Cylinder => "to the end of the cylinder",
        ReadAhead::Segment => "as far as a segment holds",
        ReadAhead::Adaptive => {
            "to the end of the next track after sequential reads, else of this one"
        }
        ReadAhead::AfterTouching => {
            "to the end of the next track, only after reads that touch the one before"
        }
    };
    let cache = match spec.write_cache {
        WriteCache::Off => "off",
        WriteCache::Sequential if spec.combine_sequential_writes => {
            "one write at a time, and those that follow on it"
        }
        WriteCache::Sequential => "one write at a time",
        WriteCache::On => "on",
    };
    [("buffer", segments), ("reading ahead", ahead.into()), ("write cache", cache.into())]
}

fn size(blocks: u64) -> String {
    Blocks::new(blocks).bytes().human()
}

fn overheads(spec: &OverheadSpec) -> [Words; 2] {
    [
        ("read command", both(spec.read_hit, spec.read_miss, spec.read_completion)),
        ("write command", both(spec.write_hit, spec.write_miss, spec.write_completion)),
    ]
}

fn both(hit: AfterOp, miss: AfterOp, completion: SimDuration) -> String {
    let end = if completion == SimDuration::ZERO {
        String::new()
    } else {
        format!(", and {} at its end", ms(completion))
    };
    format!("{} with the buffer, {} with the media{end}", after(hit), after(miss))
}

/// Sectors of the media, where they are no blocks.
fn sectors(format: SectorFormat) -> Option<Words> {
    let text = match format {
        SectorFormat::Native512 => return None,
        SectorFormat::Emulated512 => "4 KiB, which answer to blocks of 512 B (512e)",
        SectorFormat::Native4096 => "4 KiB, asked for in whole ones (4Kn)",
    };
    Some(("sectors", text.into()))
}

/// The time, or both where they differ.
fn after(times: AfterOp) -> String {
    if times.after_read == times.after_write {
        ms(times.after_read)
    } else {
        format!("{} ({} after a write)", ms(times.after_read), ms(times.after_write))
    }
}

fn ms(time: SimDuration) -> String {
    super::ms(time.ns())
}

fn bus(spec: &BusSpec) -> Words {
    let block = spec.block_time;
    if *spec == BusSpec::default() {
        return ("bus", "takes no time".into());
    }
    if block == SimDuration::ZERO {
        return ("bus", "data take no time, getting hold of it does".into());
    }
    let per_second = BLOCK_BYTES as f64 / block.as_secs_f64();
    ("bus", format!("{}, {} ns a block", rate(per_second), block.ns()))
}

fn media_cache(spec: &MediaCacheSpec) -> Words {
    let cleaning = match spec.clean_after_idle {
        Some(idle) => format!("emptied after {idle} of idle time"),
        None => "emptied when it is full".into(),
    };
    ("media cache", format!("{}, bands of {}; {cleaning}", spec.size.human(), spec.band.human()))
}

/// The number of descriptors, as a host may set up others.
fn limits(spec: &DurationLimitsSpec) -> Words {
    let (reads, writes) = (spec.read.len(), spec.write.len());
    ("duration limits", format!("{reads} descriptors of reads, {writes} of writes"))
}

fn queue(spec: &QueueSpec) -> Words {
    let hits = if spec.hits_out_of_turn { "; reads from the buffer out of turn" } else { "" };
    let streams = spec.streams_first.map_or_else(String::new, |limit| {
        format!("; sequential streams first, until another command has waited for {limit}")
    });
    let high = spec.high_priority_first.map_or_else(String::new, |limit| {
        format!("; high priority first, until another command has waited for {limit}")
    });
    let order = spec.scheduler.title();
    ("command queue", format!("{} commands, {order}{hits}{streams}{high}", spec.depth))
}
