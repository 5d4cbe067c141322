//! Whether the drive does what is foreseen of it.

use std::fmt;

/// Commands that are judged together: what disturbs the host for a second or two does not count.
const COMMANDS: u32 = 1000;

/// A command that ends so near to its prediction was foreseen: three of four did on the drive of fast02
/// section 5.2.
const NEAR_NS: u64 = 150_000;

/// Of commands for clients that have come back, how many ended where they were foreseen.
#[derive(Debug, Clone, Copy, Default)]
pub struct PredictionMonitor {
    commands: u32,
    predicted: u32,
    /// Of the last [`COMMANDS`] before, in percent.
    percent: Option<u32>,
}

/// Too little of what a drive does is foreseen for its gaps to be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoorPrediction {
    percent: u32,
}

impl fmt::Display for PoorPrediction {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "of the last {COMMANDS} commands for clients {} % ended within {} us of when they were foreseen to, so \
             little can be read in gaps: is the drive's file that of this very drive (`freewheel \
             extract` writes one), and its write cache off (hdparm -W0)? On a host \
             that is busy, of a drive whose bus is slower than its media, of one that is no disk, and \
             of requests in sequence, which a buffer answers, no more can be foreseen",
            self.percent,
            NEAR_NS / 1000
        )
    }
}

impl PredictionMonitor {
    /// A command of a client has come back, off by so much from its prediction, if there was one.
    pub fn came_back(&mut self, error_ns: Option<i64>) {
        self.commands += 1;
        self.predicted += u32::from(error_ns.is_some_and(|error| error.unsigned_abs() <= NEAR_NS));
        if self.commands == COMMANDS {
            let percent = Some(self.predicted * 100 / COMMANDS);
            *self = Self { percent, ..Self::default() };
        }
    }

    /// Less than a half was foreseen of late.
    pub fn poor_prediction(&self) -> Option<PoorPrediction> {
        self.percent.filter(|&percent| percent < 50).map(|percent| PoorPrediction { percent })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_is_foreseen_when_less_than_half_of_many_commands_was() {
        let after = |predicted: u32, of: u32| {
            let mut prediction_monitor = PredictionMonitor::default();
            for number in 0..of {
                let near = if number % 2 == 0 { 149_999 } else { -150_000 };
                let off = [None, Some(150_001), Some(-8_000_000)][number as usize % 3];
                prediction_monitor.came_back(if number < predicted { Some(near) } else { off });
            }
            prediction_monitor
        };
        assert_eq!(after(0, COMMANDS - 1).poor_prediction(), None, "too few to tell");
        assert_eq!(after(COMMANDS / 2, COMMANDS).poor_prediction(), None);
        let mut few = after(COMMANDS / 2 - 1, COMMANDS);
        assert_eq!(few.poor_prediction(), Some(PoorPrediction { percent: 49 }));
        assert!(few.poor_prediction().unwrap().to_string().contains("49 % ended within 150 us"));
        (0..COMMANDS).for_each(|_| few.came_back(Some(0)));
        assert_eq!(few.poor_prediction(), None, "of late");
    }
}
