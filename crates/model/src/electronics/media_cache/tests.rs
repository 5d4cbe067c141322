//! The map against a slow one, block by block.

use freewheel_units::{Bytes, Prng};

use super::*;

const BAND: u64 = 64;
const CACHE: u64 = 256;
const DRIVE: u64 = 1024;

fn cache(extents: u32) -> MediaCache {
    MediaCache::new(&MediaCacheSpec {
        band: Bytes::new(BAND * BLOCK_BYTES),
        size: Bytes::new(CACHE * BLOCK_BYTES),
        start: Bytes::new(0),
        extents,
        clean_after_idle: None,
        safe_rewrite: false,
    })
}

/// Each block's newest copy, and each place's block.
struct Slow {
    /// Version of a block, and its place in the cache; None in its band.
    newest: Vec<(u64, Option<u64>)>,
    /// Version that a place holds.
    ring: Vec<u64>,
    version: u64,
}

impl Slow {
    fn check(&self, fast: &MediaCache) {
        for piece in fast.pieces(Lbn::new(0), Lbn::new(DRIVE)) {
            for offset in 0..piece.blocks {
                let block = (piece.start.get() + offset) as usize;
                let (version, place) = self.newest[block];
                assert_eq!(piece.place.map(|place| place + offset), place, "block {block}");
                if let Some(place) = place {
                    assert_eq!(self.ring[place as usize], version, "of block {block}");
                }
            }
        }
        let cached = self.newest.iter().filter(|(_, place)| place.is_some()).count();
        assert_eq!(fast.cached_blocks(), cached as u64);
    }
}

#[test]
fn media_cache_loses_no_block_or_place() {
    let mut cleaned = 0;
    for seed in 0..60 {
        let prng = &mut Prng::new(seed, "media cache");
        let mut fast = cache(if seed % 2 == 0 { 1000 } else { 12 });
        let mut slow = Slow {
            newest: vec![(0, None); DRIVE as usize],
            ring: vec![0; CACHE as usize],
            version: 0,
        };
        for _ in 0..400 {
            let blocks = 1 + prng.below(24);
            let start = match prng.below(4) {
                0 => prng.below(DRIVE / BAND) * BAND,
                _ => prng.below(DRIVE - blocks),
            };
            let (from, to) = (Lbn::new(start), Lbn::new(start + blocks));
            slow.version += 1;
            if fast.goes_straight(from, to) {
                for block in start..start + blocks {
                    slow.newest[block as usize] = (slow.version, None);
                }
                slow.check(&fast);
                continue;
            }
            while !fast.has_room(blocks) {
                let oldest = fast.oldest().expect("a full cache has data");
                let (band, length) = fast.band(oldest, DRIVE);
                assert!(fast.has_any(band, Lbn::new(band.get() + length)), "cleaning helps");
                fast.forget(band.get(), band.get() + length);
                for block in band.get()..band.get() + length {
                    slow.newest[block as usize].1 = None;
                }
                cleaned += 1;
                slow.check(&fast);
            }
            let place = fast.append(from, to);
            for offset in 0..blocks {
                let at = (place + offset) as usize;
                let taken = slow.newest.iter().position(|(_, place)| *place == Some(at as u64));
                let within = |block: usize| (start..start + blocks).contains(&(block as u64));
                assert!(taken.is_none_or(within), "place {at} holds block {taken:?}");
                slow.ring[at] = slow.version;
                slow.newest[(start + offset) as usize] = (slow.version, Some(at as u64));
            }
            slow.check(&fast);
        }
    }
    assert!(cleaned > 1000, "{cleaned}");
}

#[test]
fn oldest_band_cleaned_first_frees_space() {
    let mut cache = cache(1000);
    // Bands 3, 1, 3, 2.
    for start in [200, 70, 210, 130] {
        assert!(!cache.goes_straight(Lbn::new(start), Lbn::new(start + 8)));
        cache.append(Lbn::new(start), Lbn::new(start + 8));
    }
    assert_eq!((cache.cached_blocks(), cache.free), (32, CACHE - 32));
    assert_eq!(cache.oldest(), Some(Lbn::new(200)));
    cache.forget(192, 256);
    // The log's third record is dead, and behind the second.
    assert_eq!((cache.cached_blocks(), cache.free), (16, CACHE - 24));
    assert_eq!(cache.oldest(), Some(Lbn::new(70)));
    cache.forget(64, 128);
    assert_eq!((cache.cached_blocks(), cache.free), (8, CACHE - 8));
}

#[test]
fn writes_from_band_start_go_straight() {
    let mut cache = cache(1000);
    let mut straight = |start: u64, end: u64| cache.goes_straight(Lbn::new(start), Lbn::new(end));
    assert!(straight(64, 80));
    assert!(straight(80, 100));
    assert!(!straight(101, 110));
    assert!(straight(100, 128));
    assert!(!straight(10, 20));
    assert_eq!((cache.work.straight_writes, cache.cached_blocks()), (3, 0));
}
