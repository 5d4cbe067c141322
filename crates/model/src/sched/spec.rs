//! The registry: every policy by its name.

use std::fmt;
use std::str::FromStr;

use freewheel_units::did_you_mean;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::Policy;
use super::asatf::Asatf;
use super::clook::Clook;
use super::fcfs::Fcfs;
use super::look::Look;
use super::sptf::Sptf;
use super::sptf_sw::SptfSw;
use super::sstf::Sstf;
use super::sstf_lw::SstfLw;

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
        /// n as a fraction, 0.4 for 40 %.
        window: f64,
    },
    /// Shortest seek time less W times the rotational latency.
    SstfLw {
        /// W.
        worth: f64,
    },
    /// Shortest positioning time less W times the time waited.
    Asatf {
        /// W.
        age_factor: f64,
    },
}

/// A policy as a table of a configuration. An enum with a tag would take unknown keys beside
/// policies that have no parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PolicySpec")]
struct PolicyTable {
    /// Name of the policy: fcfs, look (or scan), clook (or c-look), sstf, sstf-lw, sptf, sptf-sw, asatf.
    policy: String,
    /// Of sptf-sw: n as a fraction, 0.4 for 40 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    window: Option<f64>,
    /// Of sstf-lw: what a unit of rotational latency is worth in seek time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    worth: Option<f64>,
    /// Of asatf: W.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    age_factor: Option<f64>,
}

impl TryFrom<PolicyTable> for PolicySpec {
    type Error = ParsePolicyError;
    fn try_from(table: PolicyTable) -> Result<Self, Self::Error> {
        let mut spec: PolicySpec = table.policy.parse()?;
        let unused = |key: &str, value: f64| ParsePolicyError::Parameter {
            name: table.policy.clone(),
            value: format!("{key} = {value}"),
            allowed: "it has no such parameter",
        };
        for (key, given) in
            [("window", table.window), ("worth", table.worth), ("age_factor", table.age_factor)]
        {
            let Some(given) = given else { continue };
            match (&mut spec, key) {
                (PolicySpec::SptfSw { window: value }, "window")
                | (PolicySpec::SstfLw { worth: value }, "worth")
                | (PolicySpec::Asatf { age_factor: value }, "age_factor") => *value = given,
                _ => return Err(unused(key, given)),
            }
        }
        spec.check().map(|()| spec)
    }
}

impl From<PolicySpec> for PolicyTable {
    fn from(spec: PolicySpec) -> Self {
        let mut table =
            Self { policy: spec.row().name.into(), window: None, worth: None, age_factor: None };
        match spec {
            PolicySpec::SptfSw { window } => table.window = Some(window),
            PolicySpec::SstfLw { worth } => table.worth = Some(worth),
            PolicySpec::Asatf { age_factor } => table.age_factor = Some(age_factor),
            _ => {}
        }
        table
    }
}

/// osdi00 section 3.3 recommends 40 %.
const fn default_window() -> f64 {
    0.4
}

/// A nanosecond of latency for one of seek.
const fn default_worth() -> f64 {
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
    /// What it does, in a line.
    pub summary: &'static str,
    /// The policy with its usual parameters.
    pub usual: PolicySpec,
}

/// Every policy there is.
pub const POLICIES: &[PolicyRow] = &[
    PolicyRow {
        name: "fcfs",
        alias: None,
        title: "FCFS",
        summary: "first come, first served",
        usual: PolicySpec::Fcfs,
    },
    PolicyRow {
        name: "look",
        alias: Some("scan"),
        title: "LOOK",
        summary: "the elevator, up and down through the addresses",
        usual: PolicySpec::Look,
    },
    PolicyRow {
        name: "clook",
        alias: Some("c-look"),
        title: "C-LOOK",
        summary: "upwards through the addresses, then back to the lowest",
        usual: PolicySpec::Clook,
    },
    PolicyRow {
        name: "sstf",
        alias: None,
        title: "SSTF",
        summary: "shortest seek time first",
        usual: PolicySpec::Sstf,
    },
    PolicyRow {
        name: "sstf-lw",
        alias: None,
        title: "SSTF-LW W=1",
        summary: "shortest seek time less W times the rotational latency, for freeblock work",
        usual: PolicySpec::SstfLw { worth: default_worth() },
    },
    PolicyRow {
        name: "sptf",
        alias: None,
        title: "SPTF",
        summary: "shortest positioning time (seek and rotation) first",
        usual: PolicySpec::Sptf,
    },
    PolicyRow {
        name: "sptf-sw",
        alias: None,
        title: "SPTF-SW40%",
        summary: "shortest seek among those within n % of the shortest positioning time",
        usual: PolicySpec::SptfSw { window: default_window() },
    },
    PolicyRow {
        name: "asatf",
        alias: None,
        title: "ASATF",
        summary: "shortest positioning time less W times the time waited",
        usual: PolicySpec::Asatf { age_factor: default_age_factor() },
    },
];

/// No policy has this name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParsePolicyError {
    /// The name is not in the registry.
    #[error("no policy is called `{name}`: there are {}{}", names().join(", "), did_you_mean(name, names()))]
    Unknown {
        /// The name given.
        name: String,
    },
    /// The parameter behind the colon is not a number that fits.
    #[error("`{value}` is not a parameter of {name}: {allowed}")]
    Parameter {
        /// The policy.
        name: String,
        /// The text behind the colon.
        value: String,
        /// What is allowed.
        allowed: &'static str,
    },
}

fn names() -> Vec<&'static str> {
    POLICIES.iter().map(|row| row.name).collect()
}

/// Ten times the shortest positioning time: nobody means more, but many who write 40 mean 40 %.
const WINDOW_MAX: f64 = 10.0;
/// Beyond it seek time hardly matters any more.
const WORTH_MAX: f64 = 1000.0;
const AGE_FACTOR_MAX: f64 = 1_048_576.0;

impl PolicySpec {
    /// The end of the continuum from SPTF to SSTF, for experiments; it has no text form.
    pub const SPTF_SW_WITHOUT_LIMIT: Self = Self::SptfSw { window: f64::INFINITY };

    /// A policy with nothing waiting. Err names the parameter that is out of range.
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
            PolicySpec::SstfLw { worth } => Box::new(SstfLw::new(worth)),
            PolicySpec::Asatf { age_factor } => Box::new(Asatf::new(age_factor)),
        })
    }

    fn check(&self) -> Result<(), ParsePolicyError> {
        let error = |value: f64, allowed| ParsePolicyError::Parameter {
            name: self.row().name.into(),
            value: value.to_string(),
            allowed,
        };
        match *self {
            PolicySpec::SptfSw { window } if !(0.0..=WINDOW_MAX).contains(&window) => Err(error(
                window,
                "a fraction of 0 to 10, as 0.4 for 40 %; without limit it is sstf",
            )),
            PolicySpec::SstfLw { worth } if !(0.0..=WORTH_MAX).contains(&worth) => {
                Err(error(worth, "a factor of 0 to 1000; 1 counts latency as much as seek time"))
            }
            PolicySpec::Asatf { age_factor } if !(0.0..=AGE_FACTOR_MAX).contains(&age_factor) => {
                Err(error(age_factor, "a factor of at least 0, as 0.01"))
            }
            _ => Ok(()),
        }
    }

    /// Its row in the registry.
    pub fn row(&self) -> &'static PolicyRow {
        let same =
            |row: &&PolicyRow| std::mem::discriminant(&row.usual) == std::mem::discriminant(self);
        POLICIES.iter().find(same).expect("every policy has a row")
    }

    /// Name for tables and charts, with its parameter.
    pub fn title(&self) -> String {
        match *self {
            PolicySpec::SptfSw { window } => {
                // Through thousandths of a per cent, so that 0.07 does not print as 7.000000001.
                format!("SPTF-SW{}%", (window * 100_000.0).round() / 1000.0)
            }
            PolicySpec::SstfLw { worth } => format!("SSTF-LW W={worth}"),
            PolicySpec::Asatf { age_factor } => format!("ASATF W={age_factor}"),
            _ => self.row().title.into(),
        }
    }
}

impl fmt::Display for PolicySpec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            PolicySpec::SptfSw { window } => write!(out, "sptf-sw:{window}"),
            PolicySpec::SstfLw { worth } => write!(out, "sstf-lw:{worth}"),
            PolicySpec::Asatf { age_factor } => write!(out, "asatf:{age_factor}"),
            _ => out.write_str(self.row().name),
        }
    }
}

impl FromStr for PolicySpec {
    type Err = ParsePolicyError;
    /// A name of the registry, with a parameter behind a colon where it has one: `sptf-sw:0.4`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, parameter) = text.split_once(':').map_or((text, None), |(n, p)| (n, Some(p)));
        let unknown = || ParsePolicyError::Unknown { name: name.into() };
        let row = POLICIES
            .iter()
            .find(|row| row.name == name || row.alias == Some(name))
            .ok_or_else(unknown)?;
        let Some(value) = parameter else { return Ok(row.usual) };
        let error = |allowed| ParsePolicyError::Parameter {
            name: name.into(),
            value: value.into(),
            allowed,
        };
        let number = value.parse::<f64>().map_err(|_| error("a number is needed"))?;
        let spec = match row.usual {
            PolicySpec::SptfSw { .. } => PolicySpec::SptfSw { window: number },
            PolicySpec::SstfLw { .. } => PolicySpec::SstfLw { worth: number },
            PolicySpec::Asatf { .. } => PolicySpec::Asatf { age_factor: number },
            _ => return Err(error("it has none")),
        };
        spec.check().map(|()| spec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_is_found_by_its_name_and_prints_as_it_reads() {
        for row in POLICIES {
            let spec: PolicySpec = row.name.parse().unwrap();
            assert_eq!(spec, row.usual);
            assert_eq!(spec.to_string().parse(), Ok(spec));
        }
        assert_eq!("scan".parse(), Ok(PolicySpec::Look));
    }

    #[test]
    fn a_wrong_name_or_parameter_is_answered_with_what_is_allowed() {
        let message = |text: &str| text.parse::<PolicySpec>().unwrap_err().to_string();
        assert!(message("sptff").contains("sptf-sw"));
        assert!(message("fcfs:3").contains("it has none"));
        assert!(message("sptf-sw:-1").contains("0.4"));
        assert!(message("sptf-sw:40").contains("0.4 for 40 %"));
        assert!(message("sstf-lw:-1").contains("0 to 1000"));
        assert!(message("asatf:x").contains("number"));
    }
}
