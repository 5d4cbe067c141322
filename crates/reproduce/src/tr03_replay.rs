//! Whether a replay by dependence gives a trace's arrivals back (tr03 sections 3.1 and 3.2).

use freewheel_sim::config::ConfigError;
use freewheel_sim::fidelity::replay_fidelity;
use freewheel_units::four_digits;

use super::tr03::{Bench, Expected, with_traces};
use super::tr03_traces::{Class, TraceHere};
use super::{Context, Outcome, Row};

/// Every request takes its recorded time, as on the traced drive: each trace whose completions are recorded.
pub(super) fn replay(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    with_traces(context, |bench| {
        let mut rows = Vec::new();
        // It has no chance in it, and needs the whole trace.
        if context.sample > 0 {
            return Ok(Outcome { rows, figures: Vec::new() });
        }
        for trace in bench.traces.iter().filter(|trace| {
            matches!(trace.class, Class::Personal | Class::Server) && trace.info.tells_dependence()
        }) {
            rows.extend(rows_of(bench, trace)?);
        }
        Ok(Outcome { rows, figures: Vec::new() })
    })
}

fn rows_of(bench: &Bench<'_>, trace: &TraceHere) -> Result<[Row; 2], ConfigError> {
    let fidelity = replay_fidelity(&trace.workload, &trace.info, &mut |_, _| {})?;
    let held = fidelity.delayed_by_window;
    let note = format!(
        "{} of {} requests entered the full window late; with all that follow from them, {} % arrive up to {} ms late",
        fidelity.entered_late,
        fidelity.requests,
        four_digits(100.0 * held.requests as f64 / fidelity.requests.max(1) as f64),
        four_digits(held.max_ns as f64 / 1e6)
    );
    let label = trace.label();
    let quantity = format!("{label}: requests at their traced times, to the nanosecond");
    let exact = Expected { paper: [100.0; 2], band: [99.0, 100.0] };
    let late = format!("{label}: no other request than those that the window of 64 delays is late");
    Ok([
        bench
            .single_in(
                &quantity,
                "%",
                exact,
                100.0 * fidelity.exact as f64 / fidelity.requests.max(1) as f64,
            )
            .also(&note),
        bench.holds(&late, fidelity.displaced.requests == 0),
    ])
}
