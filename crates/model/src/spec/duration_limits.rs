//! Command Duration Limits, as ATA ACS-5 and SCSI SPC-6 define them: descriptors that a command names by
//! number.

use freewheel_units::{Op, SimDuration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Impossible;

/// Most descriptors of an operation. Three bits of a command name one; zero names none.
pub const DURATION_LIMITS_MAX: usize = 7;

/// Longest limit, and longest lead.
const LIMIT_MAX: SimDuration = SimDuration::from_secs(3600);

/// Descriptors of duration limits. A drive with this table looks at the descriptor that a command names.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DurationLimitsSpec {
    /// Descriptors that reads name, from 1 on; at most seven.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<DurationLimit>,
    /// Descriptors that writes name, from 1 on; at most seven.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<DurationLimit>,
    /// A command whose time to wait ends within this long goes before all others. When absent, the longest
    /// seek and a turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lead: Option<SimDuration>,
}

/// A duration limit descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DurationLimit {
    /// Longest time that a command waits in the drive: its inactive time. No limit when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inactive: Option<SimDuration>,
    /// Longest time that the drive works on a command: its active time. No limit when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active: Option<SimDuration>,
    /// Action of the drive at either limit.
    pub policy: LimitPolicy,
}

/// Action of a drive on a command that has reached a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LimitPolicy {
    /// Completes it as soon as it can: the best-effort policy.
    #[default]
    Complete,
    /// Ends it with an error: policy 0xF.
    Abort,
}

impl DurationLimitsSpec {
    /// Descriptor of this number, from 1 on, for commands of an operation; None for zero, and where the table
    /// has no such descriptor.
    pub(crate) fn descriptor(&self, op: Op, number: u8) -> Option<&DurationLimit> {
        let all = if op == Op::Write { &self.write } else { &self.read };
        all.get(usize::from(number).checked_sub(1)?)
    }

    pub(super) fn check(&self) -> Result<(), Impossible> {
        for (key, all) in [
            ("electronics.duration_limits.read", &self.read),
            ("electronics.duration_limits.write", &self.write),
        ] {
            if all.len() > DURATION_LIMITS_MAX {
                let rule = format!("at most {DURATION_LIMITS_MAX} are allowed");
                return Err((key, format!("{} descriptors", all.len()), rule));
            }
            for limit in all {
                check_descriptor(key, limit)?;
            }
        }
        match self.lead.filter(|lead| *lead > LIMIT_MAX) {
            None => Ok(()),
            Some(lead) => {
                let rule = format!("at most {LIMIT_MAX} is allowed");
                Err(("electronics.duration_limits.lead", lead.to_string(), rule))
            }
        }
    }
}

fn check_descriptor(key: &'static str, limit: &DurationLimit) -> Result<(), Impossible> {
    let given = [limit.inactive, limit.active].into_iter().flatten();
    for time in given.clone() {
        if time == SimDuration::ZERO || time > LIMIT_MAX {
            let rule = format!("more than 0 and at most {LIMIT_MAX} is allowed");
            return Err((key, format!("a limit of {time}"), rule));
        }
    }
    if given.count() == 0 {
        let rule = "give `inactive`, `active` or both".into();
        return Err((key, "a descriptor without a limit".into(), rule));
    }
    Ok(())
}
