//! From a policy's description to the policy.

use super::Policy;
use super::asatf::Asatf;
use super::clook::Clook;
use super::fcfs::Fcfs;
use super::look::Look;
use super::sptf::Sptf;
use super::sptf_sw::SptfSw;
use super::sstf::Sstf;
use super::sstf_lw::SstfLw;
use crate::spec::policy::{ParsePolicyError, PolicySpec};

impl PolicySpec {
    /// A policy without requests. Err names the parameter that is out of range, or a scheduler of
    /// Linux, which [`BlockLayer`](super::linux::BlockLayer) builds.
    pub fn build(&self) -> Result<Box<dyn Policy>, ParsePolicyError> {
        if *self != Self::SPTF_SW_WITHOUT_LIMIT {
            self.check()?;
        }
        Ok(match *self {
            PolicySpec::Fcfs => Box::new(Fcfs::default()),
            PolicySpec::Look => Box::new(Look::default()),
            PolicySpec::Clook => Box::new(Clook::default()),
            PolicySpec::Sstf => Box::new(Sstf::default()),
            PolicySpec::Sptf => Box::new(Sptf::default()),
            PolicySpec::SptfSw { window } => Box::new(SptfSw::new(window)),
            PolicySpec::SstfLw { latency_weight } => Box::new(SstfLw::new(latency_weight)),
            PolicySpec::Asatf { age_factor } => Box::new(Asatf::new(age_factor)),
            PolicySpec::LinuxNone
            | PolicySpec::MqDeadline(_)
            | PolicySpec::Kyber(_)
            | PolicySpec::Bfq(_) => {
                return Err(ParsePolicyError::InFrontOnly { name: self.row().name.into() });
            }
        })
    }
}
