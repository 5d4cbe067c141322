//! Random electronics.

use freewheel_model::electronics::spec::{
    AfterOp, BufferSpec, BusSpec, ElectronicsSpec, OverheadSpec, QueueSpec, ReadAhead,
    SectorFormat, WriteCache,
};
use freewheel_model::sched::PolicySpec;
use freewheel_units::{Prng, SimDuration};

pub const POLICIES: [PolicySpec; 8] = [
    PolicySpec::Fcfs,
    PolicySpec::Look,
    PolicySpec::Clook,
    PolicySpec::Sstf,
    PolicySpec::SstfLw { latency_weight: 0.5 },
    PolicySpec::Sptf,
    PolicySpec::SptfSw { window: 0.3 },
    PolicySpec::Asatf { age_factor: 0.1 },
];

pub fn up_to_us(prng: &mut Prng, most: u64) -> SimDuration {
    if prng.chance(0.5) { SimDuration::from_us(prng.below(most)) } else { SimDuration::ZERO }
}

fn any_after(prng: &mut Prng) -> AfterOp {
    AfterOp { after_read: up_to_us(prng, 300), after_write: up_to_us(prng, 300) }
}

pub fn any_electronics(prng: &mut Prng) -> ElectronicsSpec {
    ElectronicsSpec {
        buffer: prng.chance(0.8).then(|| any_buffer(prng)),
        overheads: prng.chance(0.5).then(|| any_overheads(prng)),
        bus: prng.chance(0.7).then(|| any_bus(prng)),
        read_write_switch: up_to_us(prng, 500),
        write_start: None,
        queue: prng.chance(0.7).then(|| QueueSpec {
            depth: 1 + prng.below(8) as u32,
            scheduler: POLICIES[prng.below(POLICIES.len() as u64) as usize],
            hits_out_of_turn: prng.chance(0.5),
            ..QueueSpec::default()
        }),
        duration_limits: None,
        media_cache: None,
        // Tracks of any number of blocks hold no whole larger sectors.
        sector: SectorFormat::Native512,
    }
}

pub fn any_buffer(prng: &mut Prng) -> BufferSpec {
    let caches = [WriteCache::Off, WriteCache::Sequential, WriteCache::On];
    let separate = prng.chance(0.3);
    let segments = 1 + u32::from(separate) + prng.below(5) as u32;
    BufferSpec {
        segments,
        segment_blocks: 1 + prng.below(120) as u32,
        write_segments: 1 + prng.below(u64::from(segments - u32::from(separate))) as u32,
        separate_write_segments: separate,
        read_ahead: ReadAhead::ALL[prng.below(6) as usize],
        read_ahead_max_blocks: if prng.chance(0.3) { prng.below(60) as u32 } else { 0 },
        read_ahead_min_blocks: if prng.chance(0.3) { prng.below(40) as u32 } else { 0 },
        keep_requested: prng.chance(0.5),
        read_ahead_on_hit: prng.chance(0.5),
        partial_hits: prng.chance(0.5),
        almost_hits: prng.chance(0.5),
        keep_free_blocks_before: prng.chance(0.5),
        read_hits_on_written: prng.chance(0.5),
        write_cache: caches[prng.below(3) as usize],
        combine_sequential_writes: prng.chance(0.5),
        write_stops_read_ahead: prng.chance(0.5),
        destage_after_idle: up_to_us(prng, 20_000),
        dirty: None,
    }
}

pub fn any_overheads(prng: &mut Prng) -> OverheadSpec {
    OverheadSpec {
        read_hit: any_after(prng),
        read_miss: any_after(prng),
        write_hit: any_after(prng),
        write_miss: any_after(prng),
        read_completion: up_to_us(prng, 100),
        write_completion: up_to_us(prng, 100),
    }
}

pub fn any_bus(prng: &mut Prng) -> BusSpec {
    BusSpec {
        block_time: up_to_us(prng, 120),
        arbitration: up_to_us(prng, 100),
        reconnect: up_to_us(prng, 100),
        read_disconnect: any_after(prng),
        write_disconnect: up_to_us(prng, 100),
        write_block_time: prng.chance(0.3).then(|| up_to_us(prng, 120)),
        read_water_mark: if prng.chance(0.3) { prng.below(101) as u32 } else { 0 },
        hold: prng.chance(0.3),
    }
}
