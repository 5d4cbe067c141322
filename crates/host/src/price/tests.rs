//! Prices of gaps on a drive whose buffer is known: the last reads' tracks, oldest out first.

use std::collections::VecDeque;

use freewheel_model::drive::spec::ByOp;
use freewheel_units::Prng;

use super::*;

/// Segments of the buffer.
const SEGMENTS: usize = 16;

fn atlas10k() -> Drive {
    let spec = toml::from_str(include_str!("../../../../drives/atlas10k.toml")).unwrap();
    Drive::build(&spec).unwrap().with_overhead(ByOp::default())
}

/// Contents of the drive's buffer, which the prices do not see.
#[derive(Default)]
struct Buffer {
    segments: VecDeque<(u64, u64)>,
}

impl Buffer {
    fn has(&self, start: u64) -> bool {
        self.segments.iter().any(|&(from, to)| (from..to).contains(&start))
    }

    fn keep(&mut self, from: u64, to: u64) {
        self.segments.truncate(SEGMENTS - 1);
        self.segments.push_front((from, to));
    }
}

const HALF_A_TURN: SimDuration = SimDuration::from_ms(3);
const MISS: SimDuration = SimDuration::from_ms(6);

/// A client's read of 8 blocks; a gap that is taken keeps nothing before it. Whether it was a hit, and its
/// loss.
fn read(
    prices: &mut GapPrices,
    buffer: &mut Buffer,
    drive: &Drive,
    (start, is_taken): (u64, bool),
) -> (bool, LostHits) {
    let block = Lbn::new(start);
    let track = drive.layout().track_bounds(block).0.get();
    let is_hit = buffer.has(start);
    if is_taken {
        prices.gap_filled();
        prices.sent(false);
        buffer.keep(0, 0);
    }
    let is_hit = is_hit && buffer.has(start);
    let sighting = prices.read_sent(drive, (block, 8), HALF_A_TURN, is_taken);
    prices.sent(true);
    if !is_hit {
        let before = (start - start.min(150)).max(track);
        buffer.keep(if is_taken { start } else { before }, start + 8);
    }
    let later_than_hit = if is_hit { SimDuration::ZERO } else { MISS };
    let end = ReadEnd { is_hit, is_behind_free: is_taken, later_than_hit };
    (is_hit, prices.read_came_back(&sighting, &end))
}

/// Reads each track backwards, 16 blocks at a time.
fn backwards(number: u64) -> impl Iterator<Item = u64> {
    (0..number).map(|at| 5_000_000 + at / 8 * 334 + 160 - at % 8 * 16)
}

#[test]
fn gaps_before_later_read_tracks_are_dear() {
    let drive = atlas10k();
    let (mut prices, mut buffer) = (GapPrices::new(&drive), Buffer::default());
    let mut prng = Prng::new(1, "reads");
    let mut hits = 0;
    for start in backwards(4000) {
        hits += u32::from(read(&mut prices, &mut buffer, &drive, (start, false)).0);
        let apart = 10_000_000 + prng.below(5_000_000);
        read(&mut prices, &mut buffer, &drive, (apart, false));
    }
    assert!(hits > 3000, "{hits}");
    let dear = prices.expected_ns(Some((Lbn::new(5_000_000 + 500 * 334 + 160), HALF_A_TURN)));
    let cheap = prices.expected_ns(Some((Lbn::new(12_345_678), HALF_A_TURN)));
    assert!(dear > 3e6, "{dear} ns: several hits would be lost");
    assert!(cheap < 3e5, "{cheap} ns");
    assert!(prices.expected_ns(None) < 1e3, "before a write nothing is kept");
}

#[test]
fn gap_before_buffer_hit_is_dear() {
    let drive = atlas10k();
    let (mut prices, mut buffer) = (GapPrices::new(&drive), Buffer::default());
    backwards(4003).for_each(|start| {
        read(&mut prices, &mut buffer, &drive, (start, false));
    });
    let next = Lbn::new(backwards(4004).last().unwrap());
    let until_due = SimDuration::from_ms(5);
    assert!(prices.expected_ns(Some((next, until_due))) > 4.5e6);
}

/// The truth is a second run of the same reads without free work.
#[test]
fn lost_hits_match_run_without_free_work() {
    for taken_share in [0.1, 0.3, 0.8] {
        let drive = atlas10k();
        let run = |share: f64| {
            let (mut prices, mut buffer) = (GapPrices::new(&drive), Buffer::default());
            let mut prng = Prng::new(2, "gaps");
            let (mut hits, mut lost) = (0.0, 0.0);
            for at in 0..20_000 {
                // Five streams, each backwards on a track.
                let (stream, step) = (at % 5, at / 5);
                let start = 1_000_000 * (stream + 1) + step / 8 * 334 + 160 - step % 8 * 16;
                let is_taken = prng.chance(share);
                let (is_hit, of_it) = read(&mut prices, &mut buffer, &drive, (start, is_taken));
                hits += f64::from(u8::from(is_hit));
                lost += of_it.number;
            }
            (hits, lost)
        };
        let ((alone, none), (with, lost)) = (run(0.0), run(taken_share));
        assert!(none < alone / 200.0, "{none} lost without free work");
        let ratio = lost / (alone - with);
        assert!((0.7..1.4).contains(&ratio), "{taken_share}: {lost} lost of {}", alone - with);
    }
}

#[test]
fn drive_without_buffer_loses_nothing() {
    let drive = atlas10k();
    let mut prices = GapPrices::new(&drive);
    let mut lost = 0.0;
    for (at, start) in backwards(5000).enumerate() {
        let is_taken = at % 2 == 0;
        let block = Lbn::new(start);
        let sighting = prices.read_sent(&drive, (block, 8), HALF_A_TURN, is_taken);
        prices.sent(true);
        let end = ReadEnd { is_hit: false, is_behind_free: is_taken, later_than_hit: MISS };
        lost += prices.read_came_back(&sighting, &end).number;
    }
    assert!(lost < 50.0, "{lost} of 5000 reads");
}
