//! Keys of an experiment without an effect in it.
//!
//! A key without an effect makes a sweep of equal results. Where it can only be a mistake, the experiment is
//! refused. Where it says what happens anyway, or acts in the same file under another setting, the result says
//! that it is without effect.

use freewheel_array::config::CopiesConfig;
use freewheel_host::PredictionSpec;
use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::electronics::spec::WriteCache;
use freewheel_model::sched::PolicySpec;
use freewheel_units::{SimDuration, grouped};
use serde::Serialize;

use super::{
    ArrayConfig, ConfigError, HostConfig, Layout, SimConfig, ThinkTimeDistribution, Workload,
};
use crate::black_box::Behaviour;
use crate::source::PatternSpec;

/// A key that is given without an effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WithoutEffect {
    /// Path of the key in the experiment.
    pub key: &'static str,
    /// Reason, and the condition under which the key acts.
    pub why: String,
}

fn idle(key: &'static str, why: impl Into<String>) -> WithoutEffect {
    WithoutEffect { key, why: why.into() }
}

/// Reason why a drive has no electronics in an experiment.
fn bare(config: &SimConfig) -> String {
    if config.electronics {
        format!("the file of {} describes no electronics", config.drive)
    } else {
        "with `electronics = false` requests meet the bare mechanics".into()
    }
}

/// Err for a key that asks for what the experiment does not have.
pub(crate) fn check_effect(config: &SimConfig, spec: &DriveSpec) -> Result<(), ConfigError> {
    let has_electronics = config.has_electronics(spec);
    if let (Some(depth), Some(_)) = (config.queue_depth, &config.host) {
        return wrong(format!(
            "`queue_depth` is {depth}: without effect, as with `host` at most `host.scheduler.queue_depth` commands are at the drive: give that"
        ));
    }
    // At 1 it says what mechanics without a queue do.
    if let Some(depth) = config.queue_depth.filter(|depth| *depth > 1 && !has_electronics) {
        return wrong(format!(
            "`queue_depth` is {depth}: without effect, as {}, one at a time: leave it out, or {}",
            bare(config),
            way_out(config)
        ));
    }
    if config.keep_free_blocks_before == Some(true) && !has_buffer(config, spec) {
        return wrong(format!(
            "`keep_free_blocks_before` is true: without effect, as {}: leave it out, or {}",
            bufferless(config, spec),
            way_out(config)
        ));
    }
    let asks_for_cache = config.write_cache.is_some_and(|cache| cache != WriteCache::Off);
    if asks_for_cache && !has_buffer(config, spec) {
        return wrong(format!(
            "`write_cache` is on: without effect, as {}: leave it out, or {}",
            bufferless(config, spec),
            way_out(config)
        ));
    }
    Ok(())
}

fn wrong<T>(message: String) -> Result<T, ConfigError> {
    Err(ConfigError::WithoutEffect { message })
}

/// Reason why a drive has no buffer in an experiment.
fn bufferless(config: &SimConfig, spec: &DriveSpec) -> String {
    if config.has_electronics(spec) { "the drive has no buffer".into() } else { bare(config) }
}

/// Change that gives an experiment electronics.
fn way_out(config: &SimConfig) -> &'static str {
    if config.electronics { "name another drive" } else { "give `electronics = true`" }
}

fn has_buffer(config: &SimConfig, spec: &DriveSpec) -> bool {
    config.has_electronics(spec) && spec.electronics.buffer.is_some()
}

impl SimConfig {
    /// The given keys without an effect in a run on `arms` arms with this number of requests outstanding at
    /// most. A key with its default value counts as not given.
    pub(crate) fn without_effect(
        &self,
        spec: &DriveSpec,
        arms: u32,
        outstanding_max: u64,
    ) -> Vec<WithoutEffect> {
        let mut all = Vec::new();
        all.extend(self.of_electronics(spec));
        all.extend(self.of_policy(spec, outstanding_max));
        all.extend(self.of_array(arms));
        all.extend(self.of_workload(spec));
        let has_free_work = self.freeblock.is_some() || self.copies_in_gaps();
        all.extend(self.host.iter().flat_map(|host| of_host(host, spec, has_free_work)));
        all
    }

    fn copies_in_gaps(&self) -> bool {
        let Workload::Files(workload) = &self.workload else { return false };
        workload.cooling.is_some_and(|cooling| cooling.copies == CopiesConfig::Gaps)
    }

    fn of_electronics(&self, spec: &DriveSpec) -> Vec<WithoutEffect> {
        let mut all = Vec::new();
        if self.queue_depth == Some(1) && !self.has_electronics(spec) {
            let why = format!("{}, one at a time", bare(self));
            all.push(idle("queue_depth", why));
        }
        if self.keep_free_blocks_before == Some(false) && !has_buffer(self, spec) {
            all.push(idle("keep_free_blocks_before", bufferless(self, spec)));
        }
        if self.write_cache == Some(WriteCache::Off) && !has_buffer(self, spec) {
            all.push(idle("write_cache", bufferless(self, spec)));
        }
        all
    }

    /// A policy that never had two requests to choose from. Background work, a cache and a host scheduler have
    /// queues of their own, files have a queue for each disk, and schedulers of Linux do more than choose.
    fn of_policy(&self, spec: &DriveSpec, outstanding_max: u64) -> Option<WithoutEffect> {
        let has_other_queue =
            self.freeblock.is_some() || self.cache.is_some() || self.host.is_some();
        let is_choice = self.scheduler != PolicySpec::Fcfs && !self.scheduler.is_linux();
        let is_files = matches!(self.workload, Workload::Files(_));
        let depth = if self.has_electronics(spec) {
            spec.electronics.queue.unwrap_or_default().depth
        } else {
            1
        };
        if !is_choice || has_other_queue || is_files || outstanding_max > u64::from(depth) {
            return None;
        }
        let [most, takes] = [outstanding_max, depth.into()].map(grouped);
        Some(idle(
            "scheduler",
            match depth {
                1 => {
                    "at most one request was outstanding: give a load under which some wait".into()
                }
                _ => format!(
                    "at most {most} requests were outstanding, and the drive's own queue takes {takes}: it chooses, and the policy orders at most those that come in one instant; with `queue_depth = 1` the policy decides alone"
                ),
            },
        ))
    }

    fn of_array(&self, arms: u32) -> Vec<WithoutEffect> {
        let ArrayConfig { layout, drives, stripe_unit, spindles, .. } = self.array;
        if matches!(self.workload, Workload::Files(_)) {
            return Vec::new();
        }
        let usual = ArrayConfig::default();
        let mut all = Vec::new();
        let why = match layout {
            Layout::Independent => Some("independent drives are not striped"),
            Layout::Striped if arms == 1 => Some("one drive is not striped: give `array.drives`"),
            Layout::Striped => None,
        };
        if stripe_unit != usual.stripe_unit {
            all.extend(why.map(|why| idle("array.stripe_unit", why)));
        }
        let why = match layout {
            Layout::Independent => Some("no request goes over several independent drives"),
            Layout::Striped if drives.unwrap_or(1) == 1 => {
                Some("one drive has one spindle: give `array.drives`")
            }
            Layout::Striped => None,
        };
        if spindles != usual.spindles {
            all.extend(why.map(|why| idle("array.spindles", why)));
        }
        all
    }

    fn of_workload(&self, spec: &DriveSpec) -> Vec<WithoutEffect> {
        let mut all = Vec::new();
        if let Workload::Closed { think_time, think_time_distribution, .. } = &self.workload
            && *think_time == SimDuration::ZERO
            && *think_time_distribution != ThinkTimeDistribution::default()
        {
            all.push(idle("workload.think_time_distribution", "`think_time` is 0"));
        }
        let (Workload::Closed { pattern, .. } | Workload::Open { pattern, .. }) = &self.workload
        else {
            return all;
        };
        let usual = PatternSpec::default();
        if pattern.local_share == 0.0 && pattern.local_sd != usual.local_sd {
            all.push(idle("workload.pattern.local_sd", "`local_share` is 0"));
        }
        let memory = self.host.is_some() || self.cache.is_some() || self.write_cache(spec);
        if pattern.fua_share > 0.0 && !memory {
            let why = "no memory holds writes, and so all are on the media when they are done";
            all.push(idle("workload.pattern.fua_share", why));
        }
        all
    }

    /// True if the drive reports writes done before they are on the media.
    fn write_cache(&self, spec: &DriveSpec) -> bool {
        let buffer = spec.electronics.buffer.as_ref();
        self.has_electronics(spec)
            && buffer.is_some_and(|buffer| buffer.write_cache != WriteCache::Off)
    }
}

fn of_host(host: &HostConfig, spec: &DriveSpec, has_free_work: bool) -> Vec<WithoutEffect> {
    let usual = PredictionSpec::default();
    let PredictionSpec { budget, conservatism, lead_time, off_share, off_slot, .. } =
        host.scheduler;
    let of_free_work = [
        ("host.scheduler.budget", budget != usual.budget),
        ("host.scheduler.conservatism", conservatism != usual.conservatism),
        ("host.scheduler.lead_time", lead_time != usual.lead_time),
        ("host.scheduler.off_share", off_share != usual.off_share),
        ("host.scheduler.off_slot", off_slot != usual.off_slot),
    ];
    let given = of_free_work.into_iter().filter(|(_, is_given)| *is_given && !has_free_work);
    let why = "it is for free work in gaps, and there is no `freeblock`";
    let mut all: Vec<WithoutEffect> = given.map(|(key, _)| idle(key, why)).collect();
    if host.behaviour.queue_depth.is_some() {
        let why = "at most `host.scheduler.queue_depth` commands are at the drive, which takes as many anyway";
        all.push(idle("host.behaviour.queue_depth", why));
    }
    let Behaviour { seek_jitter, seek_jitter_far, seek_jitter_inward, seek_jitter_shape, .. } =
        host.behaviour;
    let given = [seek_jitter, seek_jitter_far, seek_jitter_inward];
    let has_jitter = spec.seek.tolerance != SimDuration::ZERO
        || given.into_iter().any(|jitter| jitter.is_some());
    if seek_jitter_shape != Behaviour::default().seek_jitter_shape && !has_jitter {
        let why = "no `seek_jitter` is given";
        all.push(idle("host.behaviour.seek_jitter_shape", why));
    }
    all
}
