//! The unit that Chen's formula gives (tr96 equation 1), beside the plan's choice.

use freewheel_units::Bytes;
use serde::Serialize;

use super::blocks::bytes;
use super::{PlanError, PlanProgressSink, StripeOptions, StripeUnit, Striped};

/// The unit of Chen's formula. It comes from a closed model, in which a fixed number of requests is always
/// present, and knows no other load than that.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ChenUnit {
    /// Requests that are present on average with the unit to take, by Little's law: the formula's requests at
    /// a time.
    pub present: f64,
    /// The unit, a block at least.
    pub unit: Bytes,
    /// Mean response simulated, in seconds; none where the disks cannot serve the load or have no room.
    pub simulated_s: Option<f64>,
    /// Mean response simulated with the headroom, in seconds.
    pub with_headroom_s: Option<f64>,
}

impl Striped {
    /// The formula's unit for the requests that are present with the unit `advised`, and what it costs now
    /// and with the headroom. None where that unit was not simulated.
    pub(super) fn chen(
        &self,
        options: &StripeOptions,
        advised: &StripeUnit,
        progress: PlanProgressSink<'_>,
    ) -> Result<Option<ChenUnit>, PlanError> {
        let Some(response_s) = advised.simulated_s else { return Ok(None) };
        let present = self.load.rate * response_s;
        let exact = self.array.closed_model_unit(self.load.request, present);
        let unit = exact.round().max(1.0) as u64;
        let mean_s = |factor: f64| -> Result<Option<f64>, PlanError> {
            Ok(self.at_load(options, factor, &[unit], progress)?.mean_s(0))
        };
        let simulated_s = mean_s(1.0)?;
        let with_headroom_s = match options.headroom == 1.0 {
            true => simulated_s,
            false => mean_s(options.headroom)?,
        };
        Ok(Some(ChenUnit { present, unit: bytes(unit), simulated_s, with_headroom_s }))
    }
}
