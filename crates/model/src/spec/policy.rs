//! The registry: every policy by its name.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use freewheel_units::{SimDuration, did_you_mean};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::linux::{BfqSpec, KyberSpec, MqDeadlineSpec};

/// A policy with its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(with = "PolicyTable")]
#[serde(try_from = "PolicyTable", into = "PolicyTable")]
pub enum PolicySpec {
    /// First come, first served.
    #[default]
    Fcfs,
    /// The elevator: up and down through the addresses.
    Look,
    /// Upwards through the addresses, then back to the lowest.
    Clook,
    /// Shortest seek time first.
    Sstf,
    /// Shortest positioning time first.
    Sptf,
    /// Shortest seek among those within n % of the shortest positioning time.
    SptfSw {
        /// n as a fraction, 0.4 for 40 %; above 1 written in per cent.
        window: f64,
    },
    /// Shortest seek time less W times the rotational latency.
    SstfLw {
        /// W.
        latency_weight: f64,
    },
    /// Shortest positioning time less W times the time waited.
    Asatf {
        /// W.
        age_factor: f64,
    },
    /// Linux in front of the drive, without a scheduler.
    LinuxNone,
    /// Linux in front of the drive, with mq-deadline.
    MqDeadline(MqDeadlineSpec),
    /// Linux in front of the drive, with Kyber.
    Kyber(KyberSpec),
    /// Linux in front of the drive, with BFQ.
    Bfq(BfqSpec),
}

/// A policy as a table of a configuration. An enum with a tag would take unknown keys beside
/// policies that have no parameters.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PolicySpec")]
struct PolicyTable {
    /// Name of the policy: fcfs, look (or scan), clook (or c-look), sstf, sstf-lw, sptf, sptf-sw, asatf; or
    /// of a scheduler of Linux in front of a drive: none, mq-deadline, kyber, bfq.
    policy: String,
    /// Window of sptf-sw, as a fraction of 0 to 1 (0.4 for 40 %) or in per cent ("0%" to "1000%").
    #[serde(default, skip_serializing_if = "Option::is_none")]
    window: Option<Window>,
    /// Weight W of sstf-lw: the seek time that a unit of rotational latency is worth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    latency_weight: Option<f64>,
    /// Weight W of asatf.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    age_factor: Option<f64>,
    /// Age from which mq-deadline serves a read before the sorted order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    read_expire: Option<SimDuration>,
    /// Age from which mq-deadline serves a write before the sorted order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    write_expire: Option<SimDuration>,
    /// Requests of a batch of mq-deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fifo_batch: Option<u32>,
    /// Batches of reads that mq-deadline serves before waiting writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    writes_starved: Option<u32>,
    /// True if mq-deadline lets a request join the one that begins where it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    front_merges: Option<bool>,
    /// Wanted latency of reads under kyber.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    read_latency: Option<SimDuration>,
    /// Wanted latency of writes under kyber.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    write_latency: Option<SimDuration>,
    /// Time that bfq keeps the drive idle for the next sequential read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    slice_idle: Option<SimDuration>,
    /// Longest time that bfq leaves a queue at the drive while others wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout_sync: Option<SimDuration>,
    /// Most blocks of 512 bytes that bfq serves from a queue in a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_budget: Option<u32>,
    /// Requests in scheduler and drive at once, for schedulers of Linux but none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    nr_requests: Option<u32>,
}

impl PolicyTable {
    /// Every parameter that is given, as text by its key.
    fn given(&self) -> impl Iterator<Item = (&'static str, String)> {
        fn text<T: ToString>(value: Option<T>) -> Option<String> {
            value.map(|value| value.to_string())
        }
        let values = [
            self.window.as_ref().map(Window::text),
            text(self.latency_weight),
            text(self.age_factor),
            text(self.read_expire),
            text(self.write_expire),
            text(self.fifo_batch),
            text(self.writes_starved),
            text(self.front_merges),
            text(self.read_latency),
            text(self.write_latency),
            text(self.slice_idle),
            text(self.timeout_sync),
            text(self.max_budget),
            text(self.nr_requests),
        ];
        PARAMETERS.into_iter().zip(values).filter_map(|(key, value)| Some((key, value?)))
    }

    /// The parameters of mq-deadline, with defaults for those that are not given.
    fn mq_deadline(&self, usual: MqDeadlineSpec) -> MqDeadlineSpec {
        MqDeadlineSpec {
            read_expire: self.read_expire.unwrap_or(usual.read_expire),
            write_expire: self.write_expire.unwrap_or(usual.write_expire),
            fifo_batch: self.fifo_batch.unwrap_or(usual.fifo_batch),
            writes_starved: self.writes_starved.unwrap_or(usual.writes_starved),
            front_merges: self.front_merges.unwrap_or(usual.front_merges),
            nr_requests: self.nr_requests,
        }
    }

    /// The parameters of Kyber, with defaults for those that are not given.
    fn kyber(&self, usual: KyberSpec) -> KyberSpec {
        KyberSpec {
            read_latency: self.read_latency.unwrap_or(usual.read_latency),
            write_latency: self.write_latency.unwrap_or(usual.write_latency),
            nr_requests: self.nr_requests,
        }
    }

    /// The parameters of BFQ, with defaults for those that are not given.
    fn bfq(&self, usual: BfqSpec) -> BfqSpec {
        BfqSpec {
            slice_idle: self.slice_idle.unwrap_or(usual.slice_idle),
            timeout_sync: self.timeout_sync.unwrap_or(usual.timeout_sync),
            max_budget: self.max_budget.unwrap_or(usual.max_budget),
            nr_requests: self.nr_requests,
        }
    }
}

/// n of SPTF-SWn% in a configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a fraction of 0 to 1, or a text in per cent as \"40%\", is needed")]
enum Window {
    /// A fraction of 0 to 1.
    Fraction(f64),
    /// In per cent, as "40%".
    Percent(String),
}

impl Window {
    /// Above 1 a number alone might as well be meant in per cent.
    fn new(window: f64) -> Self {
        if window <= 1.0 { Self::Fraction(window) } else { Self::Percent(percent(window)) }
    }

    /// The value of the key, as text.
    fn text(&self) -> String {
        match self {
            Self::Fraction(value) => value.to_string(),
            Self::Percent(text) => text.clone(),
        }
    }
}

impl TryFrom<PolicyTable> for PolicySpec {
    type Error = ParsePolicyError;
    fn try_from(table: PolicyTable) -> Result<Self, Self::Error> {
        let spec: PolicySpec = table.policy.parse()?;
        let own = spec.row().parameters;
        let mut found = match spec {
            Self::MqDeadline(usual) => Self::MqDeadline(table.mq_deadline(usual)),
            Self::Kyber(usual) => Self::Kyber(table.kyber(usual)),
            Self::Bfq(usual) => Self::Bfq(table.bfq(usual)),
            other => other,
        };
        for (key, given) in table.given() {
            if !own.contains(&key) {
                return Err(spec.unused(&format!("{key} = {given}")));
            }
            if !spec.is_linux() {
                found = spec.with_parameter(&given)?;
            }
        }
        found.check().map(|()| found)
    }
}

impl From<PolicySpec> for PolicyTable {
    fn from(spec: PolicySpec) -> Self {
        let table = Self { policy: spec.row().name.into(), ..Self::default() };
        match spec {
            PolicySpec::SptfSw { window } => Self { window: Some(Window::new(window)), ..table },
            PolicySpec::SstfLw { latency_weight } => {
                Self { latency_weight: Some(latency_weight), ..table }
            }
            PolicySpec::Asatf { age_factor } => Self { age_factor: Some(age_factor), ..table },
            PolicySpec::MqDeadline(spec) => Self {
                read_expire: Some(spec.read_expire),
                write_expire: Some(spec.write_expire),
                fifo_batch: Some(spec.fifo_batch),
                writes_starved: Some(spec.writes_starved),
                front_merges: Some(spec.front_merges),
                nr_requests: spec.nr_requests,
                ..table
            },
            PolicySpec::Kyber(spec) => Self {
                read_latency: Some(spec.read_latency),
                write_latency: Some(spec.write_latency),
                nr_requests: spec.nr_requests,
                ..table
            },
            PolicySpec::Bfq(spec) => Self {
                slice_idle: Some(spec.slice_idle),
                timeout_sync: Some(spec.timeout_sync),
                max_budget: Some(spec.max_budget),
                nr_requests: spec.nr_requests,
                ..table
            },
            _ => table,
        }
    }
}

/// osdi00 section 3.3 recommends 40 %.
const fn default_window() -> f64 {
    0.4
}

/// A nanosecond of latency for one of seek.
const fn default_latency_weight() -> f64 {
    1.0
}

/// tr03 section 4.4 settles on 0.01.
const fn default_age_factor() -> f64 {
    0.01
}

/// A row of the registry.
#[derive(Debug, Clone, Copy)]
pub struct PolicyRow {
    /// Name in configurations and on the command line.
    pub name: &'static str,
    /// Another name that people use.
    pub alias: Option<&'static str>,
    /// Name in tables and charts.
    pub title: &'static str,
    /// Effect of the policy, in a line.
    pub summary: &'static str,
    /// Keys of its parameters.
    pub parameters: &'static [&'static str],
    /// The policy with its usual parameters.
    pub usual: PolicySpec,
}

/// Keys of the parameters that policies have.
pub const PARAMETERS: [&str; 14] = [
    "window",
    "latency_weight",
    "age_factor",
    "read_expire",
    "write_expire",
    "fifo_batch",
    "writes_starved",
    "front_merges",
    "read_latency",
    "write_latency",
    "slice_idle",
    "timeout_sync",
    "max_budget",
    "nr_requests",
];

/// Every policy that picks alone, in front of a drive or inside one.
pub const POLICIES: &[PolicyRow] = &[
    PolicyRow {
        name: "fcfs",
        alias: None,
        title: "FCFS",
        summary: "first come, first served",
        parameters: &[],
        usual: PolicySpec::Fcfs,
    },
    PolicyRow {
        name: "look",
        alias: Some("scan"),
        title: "LOOK",
        summary: "the elevator, up and down through the addresses",
        parameters: &[],
        usual: PolicySpec::Look,
    },
    PolicyRow {
        name: "clook",
        alias: Some("c-look"),
        title: "C-LOOK",
        summary: "upwards through the addresses, then back to the lowest",
        parameters: &[],
        usual: PolicySpec::Clook,
    },
    PolicyRow {
        name: "sstf",
        alias: None,
        title: "SSTF",
        summary: "shortest seek time first",
        parameters: &[],
        usual: PolicySpec::Sstf,
    },
    PolicyRow {
        name: "sstf-lw",
        alias: None,
        title: "SSTF-LW W=1",
        summary: "shortest seek time less W times the rotational latency, for freeblock work",
        parameters: &["latency_weight"],
        usual: PolicySpec::SstfLw { latency_weight: default_latency_weight() },
    },
    PolicyRow {
        name: "sptf",
        alias: None,
        title: "SPTF",
        summary: "shortest positioning time (seek and rotation) first",
        parameters: &[],
        usual: PolicySpec::Sptf,
    },
    PolicyRow {
        name: "sptf-sw",
        alias: None,
        title: "SPTF-SW40%",
        summary: "shortest seek among those within n % of the shortest positioning time",
        parameters: &["window"],
        usual: PolicySpec::SptfSw { window: default_window() },
    },
    PolicyRow {
        name: "asatf",
        alias: None,
        title: "ASATF",
        summary: "shortest positioning time less W times the time waited",
        parameters: &["age_factor"],
        usual: PolicySpec::Asatf { age_factor: default_age_factor() },
    },
];

/// Every scheduler of Linux, in front of a drive's own queue.
pub const LINUX_SCHEDULERS: &[PolicyRow] = &[
    PolicyRow {
        name: "none",
        alias: None,
        title: "Linux none",
        summary: "Linux without a scheduler: the drive's queue decides",
        parameters: &[],
        usual: PolicySpec::LinuxNone,
    },
    PolicyRow {
        name: "mq-deadline",
        alias: None,
        title: "Linux mq-deadline",
        summary: "Linux: ascending batches of reads or writes, expired requests first",
        parameters: &[
            "read_expire",
            "write_expire",
            "fifo_batch",
            "writes_starved",
            "front_merges",
            "nr_requests",
        ],
        usual: PolicySpec::MqDeadline(MqDeadlineSpec::USUAL),
    },
    PolicyRow {
        name: "kyber",
        alias: None,
        title: "Linux kyber",
        summary: "Linux: fewer reads or writes at the drive while latencies exceed targets",
        parameters: &["read_latency", "write_latency", "nr_requests"],
        usual: PolicySpec::Kyber(KyberSpec::USUAL),
    },
    PolicyRow {
        name: "bfq",
        alias: None,
        title: "Linux bfq",
        summary: "Linux: reads and asynchronous writes take turns by budgets of blocks",
        parameters: &["slice_idle", "timeout_sync", "max_budget", "nr_requests"],
        usual: PolicySpec::Bfq(BfqSpec::USUAL),
    },
];

/// Every row there is.
fn rows() -> impl Iterator<Item = &'static PolicyRow> {
    POLICIES.iter().chain(LINUX_SCHEDULERS)
}

/// Reason why a policy cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs)]
pub enum ParsePolicyError {
    /// The name is not in the registry.
    #[error("no policy is called `{name}`: there are {}{}", names().join(", "), did_you_mean(name, names()))]
    Unknown { name: String },
    /// The parameter after the colon is not a number that fits.
    #[error("`{value}` is not a parameter of {name}: {allowed}")]
    Parameter {
        name: String,
        /// The text after the colon.
        value: String,
        allowed: Cow<'static, str>,
    },
    /// A scheduler of Linux where one request is picked by its place alone.
    #[error(
        "`{name}` is a scheduler of Linux, which stands in front of a whole drive: here one of {} is needed",
        POLICIES.iter().map(|row| row.name).collect::<Vec<_>>().join(", ")
    )]
    InFrontOnly { name: String },
}

fn names() -> Vec<&'static str> {
    rows().map(|row| row.name).collect()
}

/// Ten times the shortest positioning time: nobody means more.
const WINDOW_MAX: f64 = 10.0;
/// A number without `%` is a fraction: one above 1 may be meant in per cent as well, and is refused.
const FRACTION_MAX: f64 = 1.0;
const WINDOW_ALLOWED: &str =
    "a fraction of 0 to 1, as 0.4, or 0% to 1000%, as 40%; without limit it is sstf";
/// Beyond it seek time hardly matters any more.
const WORTH_MAX: f64 = 1000.0;
const AGE_FACTOR_MAX: f64 = 1_048_576.0;
/// Requests that a queue of the kernel may have: its least, and more than any adapter has tags.
const NR_REQUESTS: std::ops::RangeInclusive<u32> = 4..=65_536;
/// Budgets of BFQ: the least has a block in its 32nd part, and the most are 8 GiB.
const BUDGETS: std::ops::RangeInclusive<u32> = 32..=16_777_216;
/// Longest age or latency of a scheduler of Linux. Assumed: nobody means more.
const LINUX_TIME_MAX: SimDuration = SimDuration::from_secs(3600);

impl PolicySpec {
    /// The end of the continuum from SPTF to SSTF, for experiments; it has no text form.
    pub const SPTF_SW_WITHOUT_LIMIT: Self = Self::SptfSw { window: f64::INFINITY };

    /// Err names the parameter that is out of range.
    pub(crate) fn check(&self) -> Result<(), ParsePolicyError> {
        let error = |value: f64, allowed| self.refused(&value.to_string(), allowed);
        match *self {
            PolicySpec::SptfSw { window } if !(0.0..=WINDOW_MAX).contains(&window) => {
                Err(error(window, WINDOW_ALLOWED))
            }
            PolicySpec::SstfLw { latency_weight }
                if !(0.0..=WORTH_MAX).contains(&latency_weight) =>
            {
                Err(error(
                    latency_weight,
                    "a factor of 0 to 1000; 1 counts latency as much as seek time",
                ))
            }
            PolicySpec::Asatf { age_factor } if !(0.0..=AGE_FACTOR_MAX).contains(&age_factor) => {
                Err(error(age_factor, "a factor of 0 to 1048576, as 0.01"))
            }
            PolicySpec::MqDeadline(spec) => {
                let expiries =
                    [("read_expire", spec.read_expire), ("write_expire", spec.write_expire)];
                self.check_linux(spec.nr_requests, &expiries)
            }
            PolicySpec::Kyber(spec) => {
                let targets =
                    [("read_latency", spec.read_latency), ("write_latency", spec.write_latency)];
                self.check_linux(spec.nr_requests, &targets)
            }
            PolicySpec::Bfq(BfqSpec { max_budget, .. }) if !BUDGETS.contains(&max_budget) => {
                Err(self.refused(
                    &format!("max_budget = {max_budget}"),
                    "32 to 16777216 blocks are allowed",
                ))
            }
            PolicySpec::Bfq(BfqSpec { timeout_sync, .. })
                if timeout_sync < SimDuration::from_ms(1) =>
            {
                Err(self
                    .refused(&format!("timeout_sync = {timeout_sync}"), "at least 1ms is needed"))
            }
            PolicySpec::Bfq(spec) => {
                let times = [("slice_idle", spec.slice_idle), ("timeout_sync", spec.timeout_sync)];
                self.check_linux(spec.nr_requests, &times)
            }
            _ => Ok(()),
        }
    }

    /// Err names a time or number of requests out of range.
    fn check_linux(
        &self,
        nr_requests: Option<u32>,
        times: &[(&str, SimDuration)],
    ) -> Result<(), ParsePolicyError> {
        if let Some(number) = nr_requests.filter(|number| !NR_REQUESTS.contains(number)) {
            let value = format!("nr_requests = {number}");
            return Err(self.refused(&value, "4 to 65536 requests are allowed"));
        }
        match times.iter().find(|(_, time)| *time > LINUX_TIME_MAX) {
            Some((key, time)) => {
                Err(self.refused(&format!("{key} = {time}"), "at most an hour is allowed"))
            }
            None => Ok(()),
        }
    }

    /// True if it is a scheduler of Linux, which stands in front of a whole drive.
    pub fn is_linux(&self) -> bool {
        matches!(self, Self::LinuxNone | Self::MqDeadline(_) | Self::Kyber(_) | Self::Bfq(_))
    }

    fn refused(&self, value: &str, allowed: impl Into<Cow<'static, str>>) -> ParsePolicyError {
        let (name, value) = (self.row().name.into(), value.into());
        ParsePolicyError::Parameter { name, value, allowed: allowed.into() }
    }

    /// Error for a parameter that this policy does not have.
    fn unused(&self, value: &str) -> ParsePolicyError {
        self.refused(
            value,
            match self.row().parameters {
                [] => "it has no parameter".into(),
                [own] => format!("its only parameter is {own}"),
                own => format!("its parameters are keys: {}", own.join(", ")),
            },
        )
    }

    /// The policy with its parameter as this text says.
    fn with_parameter(&self, text: &str) -> Result<Self, ParsePolicyError> {
        if let Self::SptfSw { .. } = self {
            let window = window(text).ok_or_else(|| self.refused(text, WINDOW_ALLOWED))?;
            return Ok(Self::SptfSw { window });
        }
        let number = || text.parse().map_err(|_| self.refused(text, "a number is needed"));
        let spec = match self {
            Self::SstfLw { .. } => Self::SstfLw { latency_weight: number()? },
            Self::Asatf { .. } => Self::Asatf { age_factor: number()? },
            _ => return Err(self.unused(text)),
        };
        spec.check().map(|()| spec)
    }

    /// Row of the policy in the registry.
    pub fn row(&self) -> &'static PolicyRow {
        rows()
            .find(|row| std::mem::discriminant(&row.usual) == std::mem::discriminant(self))
            .expect("every policy has a row")
    }

    /// Name for tables and charts, with its parameter.
    pub fn title(&self) -> String {
        match *self {
            PolicySpec::SptfSw { window } => {
                format!("SPTF-SW{}", percent(window))
            }
            PolicySpec::SstfLw { latency_weight } => format!("SSTF-LW W={latency_weight}"),
            PolicySpec::Asatf { age_factor } => format!("ASATF W={age_factor}"),
            _ => self.row().title.into(),
        }
    }
}

/// The window of `0.4` or `40%`; None for one that is not allowed.
fn window(text: &str) -> Option<f64> {
    let (window, max) = match text.strip_suffix('%') {
        Some(percent) => (number(percent)? / 100.0, WINDOW_MAX),
        None => (number(text)?, FRACTION_MAX),
    };
    (0.0..=max).contains(&window).then_some(window)
}

fn number(text: &str) -> Option<f64> {
    text.trim_end().parse::<f64>().ok()
}

/// `40%` of 0.4.
fn percent(window: f64) -> String {
    // Through billionths of a per cent, so that 0.07 does not print as 7.000000001.
    format!("{}%", (window * 1e11).round() / 1e9)
}

impl fmt::Display for PolicySpec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            PolicySpec::SptfSw { window } => write!(out, "sptf-sw:{}", Window::new(window).text()),
            PolicySpec::SstfLw { latency_weight } => write!(out, "sstf-lw:{latency_weight}"),
            PolicySpec::Asatf { age_factor } => write!(out, "asatf:{age_factor}"),
            _ => out.write_str(self.row().name),
        }
    }
}

impl FromStr for PolicySpec {
    type Err = ParsePolicyError;
    /// A name of the registry, with a parameter behind a colon where it has one: `sptf-sw:0.4` or
    /// `sptf-sw:40%`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, parameter) = text.split_once(':').map_or((text, None), |(n, p)| (n, Some(p)));
        let row = rows()
            .find(|row| row.name == name || row.alias == Some(name))
            .ok_or_else(|| ParsePolicyError::Unknown { name: name.into() })?;
        parameter.map_or(Ok(row.usual), |value| row.usual.with_parameter(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_parse_and_print_alike() {
        for row in rows() {
            let spec: PolicySpec = row.name.parse().unwrap();
            assert_eq!(spec, row.usual);
            assert_eq!(spec.to_string().parse(), Ok(spec));
        }
        assert_eq!("scan".parse(), Ok(PolicySpec::Look));
    }

    #[test]
    fn linux_scheduler_parameters_survive_table() {
        let ms = SimDuration::from_ms;
        let nr_requests = Some(100);
        for spec in [
            PolicySpec::LinuxNone,
            PolicySpec::MqDeadline(MqDeadlineSpec {
                read_expire: ms(1),
                write_expire: ms(2),
                fifo_batch: 3,
                writes_starved: 4,
                front_merges: false,
                nr_requests,
            }),
            PolicySpec::Kyber(KyberSpec { read_latency: ms(1), write_latency: ms(3), nr_requests }),
            PolicySpec::Bfq(BfqSpec {
                slice_idle: ms(1),
                timeout_sync: ms(3),
                max_budget: 64,
                nr_requests,
            }),
        ] {
            let table = PolicyTable::from(spec);
            let given: Vec<&str> = table.given().map(|(key, _)| key).collect();
            assert_eq!(given, spec.row().parameters, "{spec}");
            assert_eq!(PolicySpec::try_from(table), Ok(spec));
        }
        assert_eq!(LINUX_SCHEDULERS.iter().filter(|row| row.usual.is_linux()).count(), 4);
        assert!(!POLICIES.iter().any(|row| row.usual.is_linux()));
    }

    #[test]
    fn policy_errors_answered_with_allowed() {
        let message = |text: &str| text.parse::<PolicySpec>().unwrap_err().to_string();
        assert!(message("sptff").contains("sptf-sw"));
        assert!(message("fcfs:3").contains("it has no parameter"));
        for text in ["-1", "40", "9", "1.01", "1001%", "-1%", "%", "", "x", "inf", "inf%", "NaN"] {
            let says = format!("`{text}` is not a parameter of sptf-sw: {WINDOW_ALLOWED}");
            assert_eq!(message(&format!("sptf-sw:{text}")), says);
        }
        assert!(message("sstf-lw:-1").contains("0 to 1000"));
        assert!(message("asatf:x").contains("number"));
    }

    #[test]
    fn window_is_fraction_or_per_cent() {
        let window = |text: &str| match format!("sptf-sw:{text}").parse() {
            Ok(PolicySpec::SptfSw { window }) => window,
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!([window("0"), window("0.6"), window("1")], [0.0, 0.6, 1.0]);
        assert_eq!([window("60%"), window("60 %"), window("9%")], [0.6, 0.6, 0.09]);
        assert_eq!([window("250%"), window("1000%")], [2.5, 10.0]);
    }

    #[test]
    fn window_large_written_in_per_cent() {
        for (window, text) in [(0.4, "sptf-sw:0.4"), (1.0, "sptf-sw:1"), (2.5, "sptf-sw:250%")] {
            let spec = PolicySpec::SptfSw { window };
            assert_eq!((spec.to_string().as_str(), text.parse()), (text, Ok(spec)));
            let table = PolicyTable::from(spec);
            assert_eq!(PolicySpec::try_from(table), Ok(spec));
        }
    }

    #[test]
    fn parameter_of_other_policy_is_refused() {
        let table = PolicyTable { age_factor: Some(0.5), ..PolicySpec::Fcfs.into() };
        let says = |table: PolicyTable| PolicySpec::try_from(table).unwrap_err().to_string();
        let text = "`age_factor = 0.5` is not a parameter of fcfs: it has no parameter";
        assert_eq!(says(table), text);
        let sptf_sw: PolicySpec = "sptf-sw".parse().unwrap();
        let table = PolicyTable { age_factor: Some(0.5), ..sptf_sw.into() };
        assert!(says(table).ends_with("of sptf-sw: its only parameter is window"));
    }
}
