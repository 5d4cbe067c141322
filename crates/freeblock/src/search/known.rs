//! The best so far, which another has to beat.

/// Worth, room and place of the best so far. Another is better if it is worth more; of equal worth if it
/// leaves more room; of equal room if it lies on a lower cylinder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Known {
    pub worth: u64,
    /// Time in ns on its track: the more, the less extra seek. [`Known::FIRST`] where of equal worth the
    /// first found counts.
    pub room: u64,
    pub cylinder: u32,
}

impl Known {
    pub const NONE: Self = Self { worth: 0, room: 0, cylinder: 0 };

    /// More room than any track has.
    pub const FIRST: u64 = u64::MAX;

    /// Worth at or below this is not better.
    pub fn floor(self) -> u64 {
        // Equal worth with more room is better, so it is not below the floor.
        self.worth.saturating_sub(u64::from(self.room < Self::FIRST))
    }

    /// Raises the worth to beat by `worth >> slack_log2`, if there is a slack.
    pub fn with_slack(self, slack_log2: Option<u32>) -> Self {
        slack_log2.map_or(self, |log2| {
            let worth = self.worth.saturating_add(self.worth >> log2);
            Self { worth, room: Self::FIRST, ..self }
        })
    }

    /// Raises the worth to beat by a part of it in units of 2^-16; all stays with no part.
    pub fn raised(self, part: u64) -> Self {
        if part == 0 {
            return self;
        }
        let more = (u128::from(self.worth) * u128::from(part)) >> 16;
        let worth = self.worth.saturating_add(u64::try_from(more).unwrap_or(u64::MAX));
        Self { worth, room: Self::FIRST, ..self }
    }

    /// True if a track of at most `worth` and `room`, on `cylinder` or above, may be better.
    #[inline]
    pub fn may_lose_to(self, worth: u64, room: u64, cylinder: u32) -> bool {
        let equal = worth == self.worth && worth > 0;
        let as_near = room == self.room && cylinder < self.cylinder;
        worth > self.worth || equal && (room > self.room || as_near)
    }
}
