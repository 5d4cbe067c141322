//! Monitor of predictions: the share of commands that ended as predicted.

use std::fmt;

/// Commands that are judged together: what disturbs the host for a second or two does not count.
const COMMANDS: u32 = 1000;

/// A command that ends this near to its prediction met it: on the drive of fast02 section 5.2 three of
/// four commands did.
const NEAR_NS: u64 = 150_000;

/// Completed commands of clients that met their prediction.
#[derive(Debug, Clone, Copy, Default)]
pub struct PredictionMonitor {
    commands: u32,
    predicted: u32,
    /// Share of the last [`COMMANDS`] before, in percent.
    percent: Option<u32>,
}

/// Too few commands of a drive meet their prediction for its gaps to be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoorPrediction {
    percent: u32,
}

impl fmt::Display for PoorPrediction {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "only {} % of the last {COMMANDS} commands of clients ended within {} us of their prediction, so \
             little can be read in gaps. Check that the drive file describes this very drive (`freewheel \
             extract` writes one) and that the write cache is off (`hdparm -W0`). Predictions also fail on \
             a busy host, on a bus slower than the media, on a device that is no disk, and for sequential \
             requests, which a buffer answers",
            self.percent,
            NEAR_NS / 1000
        )
    }
}

impl PredictionMonitor {
    /// Counts a completed command of a client, by its error if it had a prediction.
    pub fn came_back(&mut self, error_ns: Option<i64>) {
        self.commands += 1;
        self.predicted += u32::from(error_ns.is_some_and(|error| error.unsigned_abs() <= NEAR_NS));
        if self.commands == COMMANDS {
            let percent = Some(self.predicted * 100 / COMMANDS);
            *self = Self { percent, ..Self::default() };
        }
    }

    /// The finding that fewer than half of the last commands met their prediction.
    pub fn poor_prediction(&self) -> Option<PoorPrediction> {
        self.percent.filter(|&percent| percent < 50).map(|percent| PoorPrediction { percent })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prediction_is_poor_below_half_met() {
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
        assert!(
            few.poor_prediction().unwrap().to_string().contains("49 % of the last 1000 commands")
        );
        (0..COMMANDS).for_each(|_| few.came_back(Some(0)));
        assert_eq!(few.poor_prediction(), None, "of the last commands");
    }
}
