//! Policies that a caller brings in place of the configured ones.

use std::fmt;
use std::sync::Arc;

use freewheel_model::cache::KeyPolicy;
use freewheel_model::drive::Drive;
use freewheel_model::sched::Policy;

use super::Experiment;
use crate::config::ConfigError;

/// Makes a policy for an arm with this drive.
type MakePolicy = Arc<dyn Fn(&Arc<Drive>) -> Box<dyn Policy> + Send + Sync>;
/// Makes a policy for a read cache of so many cache blocks.
type MakeCachePolicy = Arc<dyn Fn(u32) -> Box<dyn KeyPolicy> + Send + Sync>;

/// Policies that a caller brings, with their names.
#[derive(Clone, Default)]
pub(super) struct OwnPolicies {
    pub scheduler: Option<(String, MakePolicy)>,
    pub cache: Option<(String, MakeCachePolicy)>,
}

impl fmt::Debug for OwnPolicies {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheduler = self.scheduler.as_ref().map(|(name, _)| name);
        let cache = self.cache.as_ref().map(|(name, _)| name);
        out.debug_struct("OwnPolicies")
            .field("scheduler", &scheduler)
            .field("cache", &cache)
            .finish()
    }
}

impl Experiment {
    /// The experiment with a scheduling policy of the caller's, called `name`, in place of the configured one:
    /// `make` makes one for each arm, given the drive that the policy sees. Runs of it use that policy, and so do
    /// clones. Experiments that are made out of it with another configuration use the configured one.
    ///
    /// Errors: a configuration in which something else decides.
    pub fn with_policy(
        mut self,
        name: String,
        make: impl Fn(&Arc<Drive>) -> Box<dyn Policy> + Send + Sync + 'static,
    ) -> Result<Self, ConfigError> {
        let scheduler = self.config.scheduler;
        let other = match (&self.config.host, scheduler.is_linux()) {
            (Some(_), _) => {
                Some("`host` is given, and its scheduler decides: leave `host` out".into())
            }
            (None, true) => Some(format!(
                "`scheduler.policy` is {}, and Linux's block layer decides: write another one, as fcfs",
                scheduler
            )),
            (None, false) => None,
        };
        if let Some(why) = other {
            let message = format!("the policy {name} would have no effect, as {why}");
            return Err(ConfigError::WithoutEffect { message });
        }
        self.own.scheduler = Some((name, Arc::new(make)));
        Ok(self)
    }

    /// The experiment with a policy of the caller's, called `name`, that evicts cache blocks from the read cache of
    /// `[cache]`: `make` makes one for each arm, given the cache's capacity in cache blocks. Keys are numbers of
    /// cache blocks of the arm.
    ///
    /// Errors: a configuration without a read cache.
    pub fn with_cache_policy(
        mut self,
        name: String,
        make: impl Fn(u32) -> Box<dyn KeyPolicy> + Send + Sync + 'static,
    ) -> Result<Self, ConfigError> {
        if self.config.cache.is_none() {
            let message = format!(
                "the cache policy {name} would have no effect, as the experiment has no cache: give a table `cache`"
            );
            return Err(ConfigError::WithoutEffect { message });
        }
        self.own.cache = Some((name, Arc::new(make)));
        Ok(self)
    }

    /// Name of the caller's scheduling policy, if there is one.
    pub fn own_policy(&self) -> Option<&str> {
        self.own.scheduler.as_ref().map(|(name, _)| &**name)
    }

    /// Name of the caller's cache policy, if there is one.
    pub fn own_cache_policy(&self) -> Option<&str> {
        self.own.cache.as_ref().map(|(name, _)| &**name)
    }
}
