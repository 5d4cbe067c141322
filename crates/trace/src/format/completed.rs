//! Arrivals of formats that log when a request completed and how long it took.
//!
//! The first requests of such a trace may have arrived before its zero. So its times are moved a day
//! later, and the reader makes them relative to the first record.

use crate::fault::Fault;
use crate::scan::Token;
use freewheel_units::SimTime;

/// Longest time between the arrival of a request and the zero of its trace: a day.
const LEAD_NS: u64 = 86_400_000_000_000;

/// Arrival and end of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stay {
    pub arrival: SimTime,
    pub completion: SimTime,
}

/// The stay of a request that completed at `completion` on the clock of its trace, after the time
/// `response`; `field` is to blame where that cannot be.
#[inline]
pub(super) fn stay(completion: SimTime, response: SimTime, field: Token) -> Result<Stay, Fault> {
    let end = completion.ns().checked_add(LEAD_NS);
    let end = end.ok_or_else(|| field.fault("the request would complete past 2^64 ns"))?;
    let Some(begin) = end.checked_sub(response.ns()) else {
        return Err(field.fault("the request would arrive more than a day before the trace began"));
    };
    Ok(Stay { arrival: SimTime::from_ns(begin), completion: SimTime::from_ns(end) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrival_up_to_day_before_zero() {
        let field = Token { name: "latency", text: b"" };
        let stay = |completion, response| {
            super::stay(SimTime::from_ns(completion), SimTime::from_ns(response), field)
        };
        let early = stay(5, LEAD_NS + 5).unwrap();
        assert_eq!((early.arrival.ns(), early.completion.ns()), (0, LEAD_NS + 5));
        assert_eq!(stay(5, LEAD_NS + 6).unwrap_err().field, "latency");
        assert_eq!(stay(u64::MAX, 0).unwrap_err().field, "latency");
    }
}
