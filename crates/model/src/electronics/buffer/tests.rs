//! The buffer against one that looks at every segment for every question.

use freewheel_units::Prng;
use proptest::prelude::*;

use super::*;

/// Model of the same rules over a plain list.
struct Plain {
    segments: Vec<Segment>,
    size: u64,
    only_writes: usize,
    uses: u64,
}

impl Plain {
    fn of(buffer: &Buffer) -> Self {
        let Buffer { segments, size, only_writes, uses, .. } = buffer.clone();
        Self { segments, size, only_writes, uses }
    }

    fn may_go(&self, now: SimTime, written: bool) -> impl Iterator<Item = usize> + '_ {
        (0..self.segments.len()).filter(move |&index| {
            let serves = self.only_writes == 0 || written == (index < self.only_writes);
            serves && !self.segments[index].dirty && self.segments[index].media_until <= now
        })
    }

    fn has_room_for_write(&self, now: SimTime, most: usize) -> bool {
        let on_its_way = |s: &&Segment| s.dirty || (s.written && s.media_until > now);
        self.segments.iter().filter(on_its_way).count() < most
            && self.may_go(now, true).next().is_some()
    }

    fn holding(&self, start: Lbn, written_too: bool) -> Option<usize> {
        let holds = |s: &Segment| s.start <= start && start < s.end && (written_too || !s.written);
        let ends = |s: &Segment| s.start < s.end && s.end == start && (written_too || !s.written);
        let first = |is: &dyn Fn(&Segment) -> bool| self.segments.iter().position(is);
        first(&holds).or_else(|| first(&ends))
    }

    fn dirty_near(&self, start: Lbn, end: Lbn) -> Vec<usize> {
        let near = |s: &Segment| s.dirty && s.start <= end && start <= s.end;
        (0..self.segments.len()).filter(|&index| near(&self.segments[index])).collect()
    }

    fn claim(&mut self, now: SimTime, start: Lbn, end: Lbn, written: bool) -> Option<usize> {
        let index = self.may_go(now, written).min_by_key(|&index| self.segments[index].last_use)?;
        self.uses += 1;
        self.segments[index] = Segment {
            start: start.max(Lbn::new(end.get().saturating_sub(self.size))),
            end,
            written,
            dirty: written,
            media_until: now,
            delivered: end,
            last_use: self.uses,
            ..Segment::default()
        };
        Some(index)
    }

    fn forget(&mut self, start: Lbn, end: Lbn, except: Option<usize>) {
        for (index, segment) in self.segments.iter_mut().enumerate() {
            if Some(index) != except && !segment.dirty && segment.overlaps(start, end) {
                segment.end = segment.start;
            }
        }
    }
}

/// Does one thing at random to both.
fn change(buffer: &mut Buffer, plain: &mut Plain, now: SimTime, prng: &mut Prng) {
    let start = Lbn::new(prng.below(100));
    let end = behind(start, 1 + prng.below(10) as u32);
    let index = prng.below(buffer.segments.len() as u64) as usize;
    let segment = buffer.segments[index];
    match prng.below(6) {
        0 => assert_eq!(buffer.claim(now, start, end, true), plain.claim(now, start, end, true)),
        1 => assert_eq!(buffer.claim(now, start, end, false), plain.claim(now, start, end, false)),
        2 => {
            let except = prng.chance(0.5).then_some(index);
            buffer.forget(start, end, except);
            plain.forget(start, end, except);
        }
        3 if segment.dirty => {
            let until = now + SimDuration::from_ns(prng.below(20));
            buffer.destage(index, until);
            (plain.segments[index].dirty, plain.segments[index].media_until) = (false, until);
        }
        4 if segment.dirty && buffer.can_join(index, start, end, true) => {
            buffer.join(index, start, end);
            let joined = &mut plain.segments[index];
            (joined.start, joined.end) = (joined.start.min(start), joined.end.max(end));
            plain.uses += 1;
            joined.last_use = plain.uses;
        }
        5 if !segment.dirty => {
            buffer.extend(index, end);
            buffer.use_segment(index);
            let longer = &mut plain.segments[index];
            longer.end = longer.end.max(end);
            longer.start = longer.start.max(Lbn::new(longer.end.get().saturating_sub(plain.size)));
            plain.uses += 1;
            longer.last_use = plain.uses;
        }
        _ => {}
    }
}

proptest! {
    #[test]
    fn buffer_answers_match_scan_of_segments(seed: u64) {
        let prng = &mut Prng::new(seed, "buffer");
        let segments = 2 + prng.below(8) as u32;
        let spec = BufferSpec {
            segments,
            segment_blocks: 10 + prng.below(20) as u32,
            write_segments: 1 + prng.below(u64::from(segments) - 1) as u32,
            separate_write_segments: prng.chance(0.5),
            ..BufferSpec::default()
        };
        let mut buffer = Buffer::new(&spec);
        let mut plain = Plain::of(&buffer);
        for step in 0..200 {
            // Questions are not in order of time.
            let now = SimTime::from_ns(step + prng.below(20));
            change(&mut buffer, &mut plain, now, prng);
            prop_assert_eq!(&buffer.segments, &plain.segments);
            let start = Lbn::new(prng.below(100));
            let end = behind(start, 1 + prng.below(10) as u32);
            for written_too in [false, true] {
                prop_assert_eq!(
                    buffer.holding(start, written_too), plain.holding(start, written_too)
                );
            }
            let mut near: Vec<usize> = buffer.dirty_near(start, end).collect();
            near.sort_unstable();
            prop_assert_eq!(near, plain.dirty_near(start, end));
            let most = prng.below(u64::from(segments) + 1) as usize;
            prop_assert_eq!(
                buffer.has_room_for_write(now, most), plain.has_room_for_write(now, most)
            );
        }
    }
}
