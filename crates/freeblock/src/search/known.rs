//! The best so far, which another has to beat.

/// The best so far, which another has to beat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Known {
    pub worth: u64,
    /// Of what is worth as much, only what leaves more time on its track is better: what takes less
    /// extra seek. [`Known::FIRST`] where the first found counts.
    pub room: u64,
    /// Of what leaves as much time too, only what lies on a lower cylinder is better.
    pub cylinder: u32,
}

impl Known {
    /// Room that nothing exceeds.
    pub const FIRST: u64 = u64::MAX;

    /// What is worth no more than this is not better.
    pub fn floor(self) -> u64 {
        self.worth.saturating_sub(u64::from(self.room < Self::FIRST))
    }

    /// What is to be beaten where the best is enough if nothing is better by more than this part of it, as
    /// a power of two.
    pub fn with_slack(self, slack_log2: Option<u32>) -> Self {
        slack_log2.map_or(self, |log2| {
            let worth = self.worth.saturating_add(self.worth >> log2);
            Self { worth, room: Self::FIRST, ..self }
        })
    }

    /// Whether something worth at most `worth` on tracks with at most this room, on this cylinder or
    /// above, may be better.
    #[inline]
    pub fn may_lose_to(self, worth: u64, room: u64, cylinder: u32) -> bool {
        let equal = worth == self.worth && worth > 0;
        let as_near = room == self.room && cylinder < self.cylinder;
        worth > self.worth || equal && (room > self.room || as_near)
    }
}
