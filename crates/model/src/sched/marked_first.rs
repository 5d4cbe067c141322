//! Requests with priority before all others.

use super::{CommandMark, Fcfs, Moment, Policy, Waiting};

/// Another policy, behind requests of high priority, which are served in order of arrival.
pub struct MarkedFirst {
    marked: Fcfs,
    others: Box<dyn Policy>,
}

impl MarkedFirst {
    /// Before `others`.
    pub fn new(others: Box<dyn Policy>) -> Self {
        Self { marked: Fcfs::default(), others }
    }
}

impl Policy for MarkedFirst {
    fn push(&mut self, waiting: Waiting) {
        match waiting.mark {
            CommandMark::HighPriority => self.marked.push(waiting),
            _ => self.others.push(waiting),
        }
    }

    fn pick(&mut self, moment: &Moment<'_>) -> Option<Waiting> {
        self.marked.pick(moment).or_else(|| self.others.pick(moment))
    }

    fn take(&mut self, sequence: u64) -> Option<Waiting> {
        self.marked.take(sequence).or_else(|| self.others.take(sequence))
    }

    fn len(&self) -> usize {
        self.marked.len() + self.others.len()
    }
}

#[cfg(test)]
mod tests {
    use freewheel_units::{Blocks, Lbn, Op, SimTime};

    use super::*;
    use crate::drive::{Drive, Position};
    use crate::sched::PolicySpec;

    #[test]
    fn marked_requests_go_before_earlier_ones() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../drives/tr96.toml");
        let spec = toml::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        let drive = Drive::build(&spec).unwrap();
        let target = drive.target(Lbn::new(0), Blocks::new(8), Op::Read);
        let mut policy = MarkedFirst::new(PolicySpec::Fcfs.build().unwrap());
        let marks =
            [(0, CommandMark::None), (1, CommandMark::HighPriority), (2, CommandMark::None)];
        for (sequence, mark) in marks.into_iter().chain([(3, CommandMark::HighPriority)]) {
            let arrival = SimTime::from_ns(sequence);
            policy.push(Waiting { target, arrival, sequence, fua: false, mark });
        }
        assert_eq!((policy.len(), policy.take(3).map(|taken| taken.sequence)), (4, Some(3)));
        let head = Position::default();
        let moment = Moment { now: SimTime::ZERO, head, drive: &drive };
        let order = std::iter::from_fn(|| policy.pick(&moment)).map(|next| next.sequence);
        assert_eq!(order.collect::<Vec<_>>(), [1, 0, 2]);
    }
}
