//! Times of writes. A block is written with what was read from it a moment ago, so that no data are
//! lost; the drive's write cache must be off.

use freewheel_units::Op;

use super::clock::{Clock, agreeing, fold, mean_angle, signed};
use super::prober::Prober;
use super::seeks::Timer;
use super::ways::Ways;
use super::{ExtractError, Movements, movements_of, no_time, readable};

/// Differences of writes to reads.
#[derive(Debug, Clone)]
pub(super) struct WriteTimes {
    /// Additional time in which the head settles after any movement.
    pub settle_ns: f64,
    /// By distance, settling included.
    pub seeks: Vec<(u32, u64)>,
    /// True if they are those of reads with the settling.
    pub like_reads: bool,
    /// From reading to writing on the same track.
    pub switch_ns: f64,
    /// Command processing and answer of a write after a read, elsewhere.
    pub after_read_ns: f64,
    pub after_write_ns: f64,
    /// Time of a read after a write, elsewhere.
    pub read_after_write_ns: f64,
    /// Time by which a write is answered later in the turn than a read.
    pub late_ns: f64,
    /// Uncertainty of the times of movements.
    pub error_ns: f64,
}

/// Blocks that are written to find out when they are answered.
const TRIED: usize = 24;
/// Part of a turn in which nearly all of them are answered when they come from the media. One of
/// thirty-two would by chance.
const IN_STEP: f64 = 1.0 / 32.0;

/// Makes sure that writes are answered when they are on the media: at the angle at which a read of the
/// same block is, and this many nanoseconds later, as no data go to the host.
pub(super) fn reach_the_media(
    prober: &mut Prober<'_>,
    clock: &mut Clock,
) -> Result<f64, ExtractError> {
    prober.begin("writes", TRIED as u64);
    let mut off = Vec::new();
    while off.len() < TRIED {
        prober.reached(off.len() as u64);
        let block = prober.elsewhere(&[])?;
        let Some(angles) = readable(clock.measure(prober, &[block], 1))? else { continue };
        prober.read_elsewhere(&[block])?;
        let done = prober.write(block)?;
        if clock.times(&done) {
            off.push(clock.angle(done.end) - angles[0]);
        }
    }
    let agreed = agreeing(&off, IN_STEP);
    if agreed.len() * 4 < TRIED * 3 {
        return Err(ExtractError::WriteCache);
    }
    let mean = mean_angle(agreed.iter().map(|&at| fold(off[at])));
    Ok(signed(mean) * clock.period_ns())
}

/// Least lags of changes from one to the other, over the distance of a movement that is known, and
/// on the same track.
struct Changes {
    write_after_read_ns: f64,
    read_after_write_ns: f64,
    write_after_read_at_rest_ns: f64,
}

/// Times writes, on a drive whose reads were timed.
pub(super) fn measure(
    timer: &mut Timer<'_, '_>,
    reads: &Movements,
    ways: Ways<'_>,
) -> Result<WriteTimes, ExtractError> {
    timer.prober.begin("changes to writes", 1);
    let (distance, lag) = reads.known();
    let zones = timer.zones;
    let at_rest =
        timer.least_lag_at_rest_ns(Op::Write, lag, |prober| ways.pair(zones, prober, distance))?;
    let movement = |timer: &mut Timer<'_, '_>, from, to| {
        (timer.from, timer.to) = (from, to);
        ways.seek_lag_ns(timer, distance)
    };
    let changes = Changes {
        write_after_read_ns: movement(timer, Op::Read, Op::Write)?,
        read_after_write_ns: movement(timer, Op::Write, Op::Read)?,
        write_after_read_at_rest_ns: at_rest.ok_or_else(|| no_time("a write after a read"))?,
    };
    (timer.from, timer.to) = (Op::Write, Op::Write);
    let writes = movements_of(timer, ways, "seeks before writes")?;
    let late_ns = timer.write_late_ns;
    Ok(WriteTimes { late_ns, ..differences(reads, &writes, &changes) })
}

fn differences(reads: &Movements, writes: &Movements, changes: &Changes) -> WriteTimes {
    let error_ns = reads.error_ns.max(writes.error_ns);
    // The same movement as after the same, so the difference is processing.
    let after_read_ns = writes.at_rest_ns + changes.write_after_read_ns - writes.known().1;
    let read_after_write_ns = reads.at_rest_ns + changes.read_after_write_ns - reads.known().1;
    let switch_ns = changes.write_after_read_at_rest_ns - after_read_ns;
    let switch_ns = Some(switch_ns).filter(|&ns| ns > error_ns).unwrap_or_default();
    let both = reads.lags.iter().zip(&writes.lags);
    let mut longer: Vec<f64> =
        both.map(|(read, write)| writes.time_ns(write.1) - reads.time_ns(read.1)).collect();
    longer.sort_by(f64::total_cmp);
    let settle_ns = longer[longer.len() / 2].max(0.0);
    let spread = longer[longer.len() - 1] - longer[0];
    WriteTimes {
        settle_ns,
        seeks: writes.seeks(),
        like_reads: spread <= 4.0 * error_ns,
        switch_ns,
        after_read_ns,
        after_write_ns: writes.at_rest_ns,
        read_after_write_ns,
        late_ns: 0.0,
        error_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn movements(at_rest_ns: f64, times: [f64; 3]) -> Movements {
        let lags = [1, 5, 20].into_iter().zip(times.map(|ns| ns + at_rest_ns)).collect();
        Movements { mapping: None, at_rest_ns, switch_lag_ns: None, lags, error_ns: 4000.0 }
    }

    #[test]
    fn head_switch_and_processing_are_told_apart() {
        let reads = movements(100e3, [600e3, 900e3, 1500e3]);
        let writes = movements(150e3, [900e3, 1204e3, 1798e3]);
        let changes = Changes {
            write_after_read_ns: 180e3 + 1204e3,
            read_after_write_ns: 130e3 + 900e3,
            write_after_read_at_rest_ns: 180e3 + 700e3,
        };
        let found = differences(&reads, &writes, &changes);
        assert_eq!((found.settle_ns, found.like_reads), (300e3, true));
        assert_eq!(found.switch_ns, 700e3);
        assert_eq!((found.after_read_ns, found.read_after_write_ns), (180e3, 130e3));
        let other = movements(150e3, [900e3, 1300e3, 2100e3]);
        assert!(!differences(&reads, &other, &changes).like_reads);
    }
}
