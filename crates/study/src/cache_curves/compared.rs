//! The policies that curves compare: those that ship, Belady's MIN, and those that a caller brings.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use freewheel_model::cache::{CachePolicy, KeyPolicy, POLICIES};
use freewheel_units::did_you_mean;
use serde::{Serialize, Serializer};
use thiserror::Error;

/// Name of MIN.
const BELADY: &str = "belady";

/// A policy whose misses are counted.
#[derive(Debug, Clone, PartialEq)]
pub enum ComparedPolicy {
    /// One that ships.
    Shipped(CachePolicy),
    /// Belady's MIN, which knows the future: a bound, and no policy for a drive.
    Belady,
    /// One that a caller brings. Its misses are counted, without a drive.
    Own(OwnCachePolicy),
}

/// Makes an empty policy for a cache of this capacity.
type Make = dyn Fn(u32) -> Box<dyn KeyPolicy> + Send + Sync;

/// A policy that a caller brings.
#[derive(Clone)]
pub struct OwnCachePolicy {
    name: String,
    make: Arc<Make>,
}

/// No policy has this name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("no cache policy is called `{name}`: there are {} and, as a bound, {BELADY}{}", shipped().join(", "), did_you_mean(name, names()))]
pub struct ParseComparedPolicyError {
    /// The name given.
    pub name: String,
}

fn shipped() -> Vec<&'static str> {
    POLICIES.iter().map(|row| row.name).collect()
}

fn names() -> impl Iterator<Item = &'static str> {
    shipped().into_iter().chain([BELADY])
}

impl ComparedPolicy {
    /// A policy that a caller brings: its name, and what makes an empty one for a cache of so many cache blocks.
    pub fn own(
        name: String,
        make: impl Fn(u32) -> Box<dyn KeyPolicy> + Send + Sync + 'static,
    ) -> Self {
        Self::Own(OwnCachePolicy { name, make: Arc::new(make) })
    }

    /// The policy, if it ships.
    pub fn shipped(&self) -> Option<CachePolicy> {
        match self {
            Self::Shipped(policy) => Some(*policy),
            Self::Belady | Self::Own(_) => None,
        }
    }

    /// Name in tables and charts.
    pub fn title(&self) -> &str {
        match self {
            Self::Shipped(policy) => policy.row().title,
            Self::Belady => "MIN",
            Self::Own(own) => &own.name,
        }
    }

    /// The rule and its source, in a line.
    pub fn summary(&self) -> String {
        match self {
            Self::Shipped(policy) => {
                let row = policy.row();
                format!("{} ({})", row.summary, row.source)
            }
            Self::Belady => "a bound, which knows the future: evicts the block whose next read lies farthest ahead. Over a \
                 whole trace no policy misses fewer cache blocks, if each is whole once it was read (Belady, IBM \
                 Systems Journal 1966)"
                .into(),
            Self::Own(_) => "a policy of the caller".into(),
        }
    }
}

impl OwnCachePolicy {
    /// An empty policy for a cache of `capacity` cache blocks.
    pub(super) fn make(&self, capacity: u32) -> Box<dyn KeyPolicy> {
        (self.make)(capacity)
    }
}

impl From<CachePolicy> for ComparedPolicy {
    fn from(policy: CachePolicy) -> Self {
        Self::Shipped(policy)
    }
}

impl PartialEq<CachePolicy> for ComparedPolicy {
    fn eq(&self, other: &CachePolicy) -> bool {
        self.shipped() == Some(*other)
    }
}

impl PartialEq for OwnCachePolicy {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.make, &other.make)
    }
}

impl fmt::Debug for OwnCachePolicy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("OwnCachePolicy").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Display for ComparedPolicy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shipped(policy) => policy.fmt(out),
            Self::Belady => out.write_str(BELADY),
            Self::Own(own) => out.write_str(&own.name),
        }
    }
}

impl FromStr for ComparedPolicy {
    type Err = ParseComparedPolicyError;
    /// A name of the registry, or `belady`.
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name.parse::<CachePolicy>() {
            Ok(policy) => Ok(policy.into()),
            Err(_) if name == BELADY => Ok(Self::Belady),
            Err(_) => Err(ParseComparedPolicyError { name: name.into() }),
        }
    }
}

impl Serialize for ComparedPolicy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policy_names_round_trip_or_suggest() {
        for name in names() {
            let policy: ComparedPolicy = name.parse().unwrap();
            assert_eq!(
                (policy.to_string(), policy.shipped().is_some()),
                (name.into(), name != BELADY)
            );
        }
        let message = |name: &str| name.parse::<ComparedPolicy>().unwrap_err().to_string();
        assert!(message("beladi").ends_with("lfu and, as a bound, belady; did you mean `belady`?"));
        assert!(message("s3fifo").ends_with("did you mean `s3-fifo`?"));
    }
}
