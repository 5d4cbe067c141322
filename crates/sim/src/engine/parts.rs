//! Parts of a run: the end of the warm-up, and the beginnings of slices, by the order of arrival.

use std::collections::VecDeque;

/// Numbers of the arrivals at which parts of a run begin.
#[derive(Debug, Clone)]
pub(crate) struct RunParts {
    arrived: u64,
    /// The arrival at which the next part begins; after the last part a number that no run reaches.
    next: u64,
    later: VecDeque<u64>,
    /// Requests before the first part.
    pub warm_up: u64,
    /// True if results are wanted of each part.
    pub are_slices: bool,
}

impl RunParts {
    /// A run without warm-up, in one part.
    pub(crate) fn whole() -> Self {
        let later = VecDeque::new();
        Self { arrived: 0, next: u64::MAX, later, warm_up: 0, are_slices: false }
    }

    /// A run of this many requests. The share `warm_up` comes before the first of equally long `slices`.
    pub(crate) fn new(requests: u64, warm_up: f64, slices: u32) -> Self {
        let warm_up = (requests as f64 * warm_up) as u64;
        let measured = u128::from(requests - warm_up);
        let mut later: VecDeque<u64> = (0..slices)
            .map(|slice| warm_up + (measured * u128::from(slice) / u128::from(slices)) as u64)
            .collect();
        let next = later.pop_front().unwrap_or(u64::MAX);
        Self { arrived: 0, next, later, warm_up, are_slices: slices > 1 }
    }

    #[inline]
    pub(super) fn arrive(&mut self) {
        self.arrived += 1;
    }

    /// True if the next arrival is the first of a part.
    #[inline]
    pub(super) fn is_next_first(&self) -> bool {
        self.arrived == self.next
    }

    /// The part of the next arrival has begun.
    pub(super) fn begun(&mut self) {
        self.next = self.later.pop_front().unwrap_or(u64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of the arrivals that begin parts, by going through all.
    fn begins(mut parts: RunParts, requests: u64) -> Vec<u64> {
        let mut begins = Vec::new();
        for number in 0..requests {
            while parts.is_next_first() {
                begins.push(number);
                parts.begun();
            }
            parts.arrive();
        }
        begins
    }

    #[test]
    fn slices_divide_rest_after_warm_up() {
        assert!(begins(RunParts::whole(), 10).is_empty());
        assert_eq!(begins(RunParts::new(10, 0.4, 1), 10), [4]);
        assert_eq!(begins(RunParts::new(10, 0.4, 3), 10), [4, 6, 8]);
        assert_eq!(begins(RunParts::new(10, 0.0, 4), 10), [0, 2, 5, 7]);
        // More slices than requests: some are empty.
        assert_eq!(begins(RunParts::new(2, 0.0, 4), 2), [0, 0, 1, 1]);
    }
}
