//! The media of a drive with a media cache: where reads and writes go, and when bands are cleaned.
//!
//! The cache's tracks are taken to lie on the cylinders of the addresses from
//! [`MediaCacheSpec::start`](crate::spec::media_cache::MediaCacheSpec::start) on, beside the blocks there.

use freewheel_units::{BLOCK_BYTES, Blocks, Lbn, Op, SimDuration, SimTime};

use super::DriveUnit;
use crate::drive::{Access, Actuator, Exact, Latency, Target};
use crate::electronics::buffer::behind;
use crate::electronics::media_cache::{MediaCache, MediaCacheWork, PlacedRun};
use crate::spec::media_cache::MediaCacheSpec;

/// The media cache of a drive, and its keys.
#[derive(Debug, Clone)]
pub(super) struct Shingled {
    spec: MediaCacheSpec,
    cache: MediaCache,
}

impl Shingled {
    pub fn new(spec: &MediaCacheSpec) -> Self {
        Self { spec: *spec, cache: MediaCache::new(spec) }
    }

    pub fn spec(&self) -> MediaCacheSpec {
        self.spec
    }

    /// True if any of these blocks is in the cache.
    pub fn has_any(&self, start: Lbn, end: Lbn) -> bool {
        self.cache.has_any(start, end)
    }

    /// Address on whose cylinder a place of the cache lies.
    fn beside(&self, place: u64) -> Lbn {
        Lbn::new(self.spec.start.get() / BLOCK_BYTES + place)
    }
}

impl DriveUnit {
    /// Sums of the media cache so far; None of a drive without one.
    pub fn media_cache_work(&self) -> Option<MediaCacheWork> {
        let cache = &self.shingled.as_ref()?.cache;
        let cached_bytes = cache.cached_blocks() * BLOCK_BYTES;
        Some(MediaCacheWork { cached_bytes, ..cache.work })
    }

    /// True if any of these blocks is in the media cache, so that the head does not pass it on the way.
    pub(super) fn is_moved(&self, start: Lbn, end: Lbn) -> bool {
        self.shingled.as_ref().is_some_and(|shingled| shingled.has_any(start, end))
    }

    /// [`Self::visit_place`] wherever the media cache has the blocks, or puts them.
    #[cold]
    pub(super) fn visit_shingled(
        &mut self,
        begin: SimTime,
        target: &Target,
        latency: Latency,
        actuator: &mut impl Actuator,
    ) -> Access {
        let (start, end) = (target.start, behind(target.start, target.blocks));
        if target.op != Op::Write {
            // The newest data of a range may lie in several places: band, cache, and band again.
            let pieces = self.shingled_state().cache.pieces(start, end);
            return self.visit_pieces(begin, &pieces, latency, actuator);
        }
        let blocks = u64::from(target.blocks);
        let cache = &mut self.shingled_state().cache;
        if cache.goes_straight(start, end) {
            return self.visit_place(begin, target, latency, actuator);
        }
        // A write larger than the whole ring goes to its band, and makes older copies in the ring void.
        if !cache.is_possible(blocks) {
            cache.forget(start.get(), end.get());
            return self.visit_place(begin, target, latency, actuator);
        }
        let mut at = begin;
        // The ring is cleaned from its oldest data on, as it can only be reused in order.
        while !self.shingled_state().cache.has_room(blocks) {
            self.shingled_state().cache.work.bands_waited_for += 1;
            self.clean_oldest_band(at);
            at = self.media.free;
        }
        let shingled = self.shingled_state();
        let place = shingled.cache.append(start, end);
        let there = shingled.beside(place);
        // The write goes to the end of the ring, wherever its addresses are.
        let there = self.drive.target(there, Blocks::new(blocks), Op::Write);
        let access = self.visit_place(at, &there, latency, actuator);
        // The write waits for the bands before it, as it would for an arm elsewhere.
        Access { seek: access.seek + (at - begin), ..access }
    }

    /// Reads one piece after the other.
    fn visit_pieces(
        &mut self,
        begin: SimTime,
        pieces: &[PlacedRun],
        latency: Latency,
        actuator: &mut impl Actuator,
    ) -> Access {
        let mut sum = Access { end: self.media.head, ..Access::default() };
        for piece in pieces {
            let start = match piece.place {
                Some(place) => self.shingled_state().beside(place),
                None => piece.start,
            };
            let target = self.drive.target(start, Blocks::new(piece.blocks), Op::Read);
            // Each piece begins where and when the one before has left the head.
            let access = self.visit_place(begin + sum.total(), &target, latency, actuator);
            sum.seek += access.seek;
            sum.rotate += access.rotate;
            sum.transfer += access.transfer;
            sum.end = access.end;
        }
        sum
    }

    /// Empties the media cache band by band in the idle time until now.
    pub(super) fn clean_in_idle_time(&mut self) {
        let Some(after) =
            self.shingled.as_deref().and_then(|shingled| shingled.spec.clean_after_idle)
        else {
            return;
        };
        while self.nothing_is_dirty() && self.shingled_state().cache.oldest().is_some() {
            // Each cleaned band moves the head, so idleness is looked at again before the next one.
            let begin = self.media.free.max(self.idle_from + after);
            if begin >= self.now {
                break;
            }
            self.clean_oldest_band(begin);
            self.busy.own_work(begin, self.media.free);
        }
    }

    /// Rewrites the band of the oldest data in the cache from `begin` on.
    fn clean_oldest_band(&mut self, begin: SimTime) {
        self.stop_reading_on(begin);
        let drive_blocks = self.drive.blocks().get();
        let Shingled { spec, cache } = self.shingled_state();
        let Some(oldest) = cache.oldest() else { return };
        let (spec, (band, length)) = (*spec, cache.band(oldest, drive_blocks));
        let end = Lbn::new(band.get() + length);
        let mut moved = cache.pieces(band, end);
        moved.retain(|piece| piece.place.is_some());
        // In the order of the ring: the arm passes over it once.
        moved.sort_unstable_by_key(|piece| piece.place);
        cache.forget(band.get(), end.get());
        cache.work.bands_cleaned += 1;
        self.media.free = begin;
        let whole = PlacedRun { start: band, blocks: length, place: None };
        self.visit_pieces(begin, &[&[whole][..], &moved].concat(), Latency::Used, &mut Exact);
        // A power cut during the rewrite must not lose the band: the drive writes a copy first.
        let scratch = spec.safe_rewrite.then(|| Lbn::new(spec.start.get() / BLOCK_BYTES));
        for place in scratch.into_iter().chain([band]) {
            let target = self.drive.target(place, Blocks::new(length), Op::Write);
            self.visit_place(self.media.free, &target, Latency::Used, &mut Exact);
        }
        let took: SimDuration = self.media.free - begin;
        self.shingled_state().cache.work.cleaning_ns += took.ns();
    }

    fn shingled_state(&mut self) -> &mut Shingled {
        self.shingled.as_mut().expect("it has a media cache")
    }
}
