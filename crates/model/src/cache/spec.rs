//! The registry: every eviction policy by its name.

use std::fmt;
use std::str::FromStr;

use freewheel_units::did_you_mean;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::arc::Arc;
use super::clock::Clock;
use super::eviction::{Eviction, ObjectEviction};
use super::fifo::Fifo;
use super::lfu::Lfu;
use super::lirs::Lirs;
use super::lru::Lru;
use super::s3_fifo::{ByBytes, EachKey, S3Fifo};
use super::sieve::Sieve;
use super::two_q::TwoQ;
use super::w_tiny_lfu::WTinyLfu;

/// Policy that chooses the key that a full cache evicts.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum CachePolicy {
    /// The longest unused one.
    #[default]
    Lru,
    /// Adapts between keys used once and keys used again.
    Arc,
    /// By the distance between the last two uses.
    Lirs,
    /// Keeps keys that are wanted again after they left a queue.
    TwoQ,
    /// A small queue in front of a main one.
    S3Fifo,
    /// A queue with a hand that passes over used keys.
    Sieve,
    /// By frequency of use, behind a small LRU window.
    WTinyLfu,
    /// In order of arrival.
    Fifo,
    /// In order of arrival, with a second chance for used keys.
    Clock,
    /// By frequency of use.
    Lfu,
}

/// A row of the registry.
#[derive(Debug, Clone, Copy)]
pub struct CachePolicyRow {
    /// Name in configurations and on the command line.
    pub name: &'static str,
    /// Name in tables and charts.
    pub title: &'static str,
    /// A line for lists of policies.
    pub summary: &'static str,
    /// The paper that defines it.
    pub source: &'static str,
    /// The policy.
    pub policy: CachePolicy,
    /// True if comparisons try it without being asked.
    pub is_usual: bool,
    build: fn(u32) -> Box<dyn Eviction>,
    /// For objects, with a capacity in bytes; None where the policy is not defined for sizes.
    pub(super) build_for_objects: Option<fn(u64) -> Box<dyn ObjectEviction>>,
}

/// Every eviction policy there is.
pub const POLICIES: &[CachePolicyRow] = &[
    CachePolicyRow {
        name: "lru",
        title: "LRU",
        summary: "evicts the longest unused block",
        source: "Mattson et al., IBM Systems Journal 1970",
        policy: CachePolicy::Lru,
        is_usual: true,
        build: |capacity| Box::new(Lru::new(capacity)),
        build_for_objects: Some(|_| Box::new(Lru::new(u32::MAX))),
    },
    CachePolicyRow {
        name: "arc",
        title: "ARC",
        summary: "two LRU lists, of blocks used once and used again, with shares that adapt",
        source: "Megiddo and Modha, FAST 2003",
        policy: CachePolicy::Arc,
        is_usual: true,
        build: |capacity| Box::new(Arc::new(capacity)),
        build_for_objects: None,
    },
    CachePolicyRow {
        name: "lirs",
        title: "LIRS",
        summary: "keeps blocks whose last two uses lie close together",
        source: "Jiang and Zhang, SIGMETRICS 2002",
        policy: CachePolicy::Lirs,
        is_usual: true,
        build: |capacity| Box::new(Lirs::new(capacity)),
        build_for_objects: None,
    },
    CachePolicyRow {
        name: "2q",
        title: "2Q",
        summary: "keeps blocks that are wanted again after they left a queue",
        source: "Johnson and Shasha, VLDB 1994",
        policy: CachePolicy::TwoQ,
        is_usual: true,
        build: |capacity| Box::new(TwoQ::new(capacity)),
        build_for_objects: None,
    },
    CachePolicyRow {
        name: "s3-fifo",
        title: "S3-FIFO",
        summary: "a small queue filters what enters the main queue",
        source: "Yang et al., SOSP 2023",
        policy: CachePolicy::S3Fifo,
        is_usual: true,
        build: |capacity| Box::new(S3Fifo::<EachKey>::new(capacity.into())),
        build_for_objects: Some(|bytes| Box::new(S3Fifo::<ByBytes>::new(bytes))),
    },
    CachePolicyRow {
        name: "sieve",
        title: "SIEVE",
        summary: "a queue whose hand passes over used blocks and evicts the others",
        source: "Zhang et al., NSDI 2024",
        policy: CachePolicy::Sieve,
        is_usual: true,
        build: |capacity| Box::new(Sieve::new(capacity)),
        build_for_objects: Some(|_| Box::new(Sieve::new(u32::MAX))),
    },
    CachePolicyRow {
        name: "w-tinylfu",
        title: "W-TinyLFU",
        summary: "admits a block if it was used more often than the one it replaces",
        source: "Einziger, Friedman and Manes, ACM Transactions on Storage 2017",
        policy: CachePolicy::WTinyLfu,
        is_usual: true,
        build: |capacity| Box::new(WTinyLfu::new(capacity)),
        build_for_objects: None,
    },
    CachePolicyRow {
        name: "fifo",
        title: "FIFO",
        summary: "evicts the block that came first",
        source: "Belady, IBM Systems Journal 1966",
        policy: CachePolicy::Fifo,
        is_usual: false,
        build: |capacity| Box::new(Fifo::new(capacity)),
        build_for_objects: Some(|_| Box::new(Fifo::new(u32::MAX))),
    },
    CachePolicyRow {
        name: "clock",
        title: "CLOCK",
        summary: "a queue in order of arrival that passes over used blocks once",
        source: "Corbató, MIT Project MAC, 1968",
        policy: CachePolicy::Clock,
        is_usual: false,
        build: |capacity| Box::new(Clock::new(capacity)),
        build_for_objects: Some(|_| Box::new(Clock::new(u32::MAX))),
    },
    CachePolicyRow {
        name: "lfu",
        title: "LFU",
        summary: "evicts the block with the fewest uses since it came",
        source: "Robinson and Devarakonda, SIGMETRICS 1990",
        policy: CachePolicy::Lfu,
        is_usual: false,
        build: |capacity| Box::new(Lfu::new(capacity)),
        build_for_objects: Some(|_| Box::new(Lfu::new(u32::MAX))),
    },
];

/// The policies that comparisons try without being asked, in the order of the registry.
pub fn usual_policies() -> impl Iterator<Item = CachePolicy> {
    POLICIES.iter().filter(|row| row.is_usual).map(|row| row.policy)
}

/// No eviction policy has this name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("no cache policy is called `{name}`: there are {}{}", names().join(", "), did_you_mean(name, names()))]
pub struct ParseCachePolicyError {
    /// The name given.
    pub name: String,
}

fn names() -> Vec<&'static str> {
    POLICIES.iter().map(|row| row.name).collect()
}

impl CachePolicy {
    /// Row of the policy in the registry.
    pub fn row(self) -> &'static CachePolicyRow {
        POLICIES.iter().find(|row| row.policy == self).expect("every policy has a row")
    }

    /// An empty cache; None for one of capacity 0, which stores no key.
    pub(super) fn build(self, capacity: u32) -> Option<Box<dyn Eviction>> {
        (capacity > 0).then(|| (self.row().build)(capacity))
    }
}

impl fmt::Display for CachePolicy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.row().name)
    }
}

impl FromStr for CachePolicy {
    type Err = ParseCachePolicyError;
    /// A name of the registry.
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let row = POLICIES.iter().find(|row| row.name == name);
        row.map(|row| row.policy).ok_or_else(|| ParseCachePolicyError { name: name.into() })
    }
}

impl TryFrom<String> for CachePolicy {
    type Error = ParseCachePolicyError;
    fn try_from(name: String) -> Result<Self, Self::Error> {
        name.parse()
    }
}

impl From<CachePolicy> for String {
    fn from(policy: CachePolicy) -> Self {
        policy.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_policies_parse_and_print_alike() {
        for row in POLICIES {
            assert_eq!(row.name.parse(), Ok(row.policy));
            assert_eq!(row.policy.to_string(), row.name);
            assert_eq!(row.policy.build(3).map(|cache| cache.len()), Some(0));
        }
    }

    #[test]
    fn cache_policy_wrong_name_answered_with_nearest() {
        let message = |text: &str| text.parse::<CachePolicy>().unwrap_err().to_string();
        assert_eq!(
            message("s3fifo"),
            "no cache policy is called `s3fifo`: there are lru, arc, lirs, 2q, s3-fifo, sieve, \
             w-tinylfu, fifo, clock, lfu; did you mean `s3-fifo`?"
        );
        assert!(message("none of these").ends_with("lfu"));
    }
}
