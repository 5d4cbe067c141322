//! A request of a trace, as the real drive served it and as ours did.

use freewheel_model::electronics::{DriveUnit, Served};
use freewheel_model::sched::{CommandMark, Waiting};
use freewheel_units::{Blocks, Lbn, Op, SimDuration, SimTime};

/// A request of the trace.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub op: Op,
    pub start: Lbn,
    pub blocks: u32,
    pub fua: bool,
    pub arrival: SimTime,
    pub completion: SimTime,
}

impl Request {
    /// Measured response time of the request.
    pub(super) fn measured(&self) -> SimDuration {
        self.completion - self.arrival
    }
}

/// A request and how our drive served it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exchange {
    pub request: Request,
    pub served: Served,
    /// Our response time.
    pub simulated: SimDuration,
}

impl Exchange {
    /// Ours less measured.
    pub(super) fn error_ms(&self) -> f64 {
        self.simulated.as_ms_f64() - self.request.measured().as_ms_f64()
    }
}

/// Serves every request as long after our completion of the one before as in the trace.
pub(super) fn replay(mut unit: DriveUnit, requests: &[Request]) -> Vec<Exchange> {
    let mut now = SimTime::ZERO;
    let mut before: Option<SimTime> = None;
    let mut exchanges = Vec::with_capacity(requests.len());
    for request in requests {
        now += before.map_or(SimDuration::ZERO, |before| request.arrival - before);
        let Request { op, start, blocks, fua, .. } = *request;
        let target = unit.drive().target(start, Blocks::new(blocks.into()), op);
        let served = unit.serve_alone(&Waiting {
            target,
            arrival: now,
            sequence: 0,
            fua,
            mark: CommandMark::None,
        });
        exchanges.push(Exchange { request: *request, served, simulated: served.end - now });
        now = served.end;
        before = Some(request.completion);
    }
    exchanges
}

/// Requests with every gap taken for the one behind its request, that is, before the next one. Before the
/// second request there is none: it would be in a record before the first.
pub(super) fn with_gaps_one_later(requests: &[Request]) -> Vec<Request> {
    let mut later: Vec<Request> = requests.iter().take(1).copied().collect();
    let mut before = SimDuration::ZERO;
    for pair in requests.windows(2) {
        let arrival = later[later.len() - 1].completion + before;
        later.push(Request { arrival, completion: arrival + pair[1].measured(), ..pair[1] });
        before = pair[1].arrival - pair[0].completion;
    }
    later
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_move_to_next_request() {
        let request = |arrival, completion| Request {
            op: Op::Read,
            start: Lbn::new(0),
            blocks: 1,
            fua: false,
            arrival: SimTime::from_ns(arrival),
            completion: SimTime::from_ns(completion),
        };
        let all = [request(0, 10), request(15, 18), request(25, 29), request(40, 41)];
        let later = with_gaps_one_later(&all);
        let times = later.iter().map(|of| (of.arrival.ns(), of.completion.ns()));
        // Gaps of 5, 7 and 11 ns: none, 5 and 7.
        assert_eq!(times.collect::<Vec<_>>(), [(0, 10), (10, 13), (18, 22), (29, 30)]);
        assert!(with_gaps_one_later(&[]).is_empty());
    }
}
