//! Misses of caches whose objects have sizes of their own, as a cache simulator counts them.
//!
//! Every use counts, in the order of the file: there are no times, no warm-up and no drive. Memory is 24 bytes a use
//! while the trace is read and 16 afterwards, and for MIN those of [`KnownFuture`].

use freewheel_model::cache::{CachePolicy, KnownFuture, ObjectCache, POLICIES};
use freewheel_sim::config::{ConfigError, TraceWorkload, open};
use freewheel_trace::{ObjectUse, TraceError, TraceReader};
use rayon::prelude::*;
use serde::Serialize;
use thiserror::Error;

use super::compared::ComparedPolicy;
use super::progress::{CacheProgress, CacheProgressSink};
use super::sizes::{CACHE_BLOCK_BYTES, CacheSize, ladder};

/// Options of the curves.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ObjectCurvesOptions {
    /// The trace, and the one device or tenant of it that counts. Nothing is replayed.
    pub trace: TraceWorkload,
    /// Policies to compare.
    pub policies: Vec<ComparedPolicy>,
    /// Sizes of the caches; a ladder from 1 MiB to the bytes of all objects where there are none.
    pub sizes: Vec<CacheSize>,
}

/// Misses of caches of objects.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct ObjectCurves {
    /// Version of this document's shape.
    pub schema_version: u32,
    /// Version of the program.
    pub version: &'static str,
    pub options: ObjectCurvesOptions,
    pub uses: u64,
    /// Bytes that they ask for.
    pub used_bytes: u64,
    pub objects: u64,
    /// Bytes of these, each with the size of its first use.
    pub footprint_bytes: u64,
    /// Sizes of the caches, ascending.
    pub sizes_bytes: Vec<u64>,
    /// Misses of each policy.
    pub curves: Vec<ObjectCurve>,
}

/// Misses of one policy.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct ObjectCurve {
    pub policy: ComparedPolicy,
    pub title: String,
    /// One for each size.
    pub points: Vec<ObjectMisses>,
}

/// Misses of one cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ObjectMisses {
    /// Memory of the cache.
    pub size_bytes: u64,
    /// Uses that missed.
    pub misses: u64,
    /// Bytes that they asked for.
    pub missed_bytes: u64,
}

/// Reason why there are no curves of objects.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum ObjectCurvesError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The trace uses no object.
    #[error("{file}: no object is read or written{device}")]
    NoUses {
        file: String,
        /// The device that was asked for, in words.
        device: String,
    },
    /// A policy does not know sizes.
    #[error("the cache policy {policy} is not defined for objects of unlike sizes: there are {}", of_objects().join(", "))]
    Policy { policy: ComparedPolicy },
}

fn is_of_objects(policy: CachePolicy) -> bool {
    ObjectCache::new(policy, 1).is_some()
}

/// Names of the policies that are defined for sizes.
fn of_objects() -> Vec<String> {
    ObjectCurvesOptions::all_policies().iter().map(ToString::to_string).collect()
}

impl ObjectCurvesOptions {
    /// Every policy that is defined for sizes, with MIN.
    pub fn new(trace: TraceWorkload) -> Self {
        Self { trace, policies: Self::all_policies(), sizes: Vec::new() }
    }

    fn all_policies() -> Vec<ComparedPolicy> {
        let shipped = POLICIES.iter().map(|row| row.policy).filter(|policy| is_of_objects(*policy));
        shipped.map(ComparedPolicy::from).chain([ComparedPolicy::Belady]).collect()
    }

    fn check(&self) -> Result<(), ObjectCurvesError> {
        let all = Self::all_policies();
        match self.policies.iter().find(|policy| !all.contains(policy)) {
            Some(policy) => Err(ObjectCurvesError::Policy { policy: policy.clone() }),
            None => Ok(()),
        }
    }
}

impl From<TraceError> for ObjectCurvesError {
    fn from(error: TraceError) -> Self {
        Self::Config(error.into())
    }
}

/// Counts the misses of caches of objects. The result does not depend on the number of threads.
pub fn object_curves(
    options: &ObjectCurvesOptions,
    progress: CacheProgressSink<'_>,
) -> Result<ObjectCurves, ObjectCurvesError> {
    options.check()?;
    let uses = Uses::read(options, progress)?;
    let sizes_bytes = if options.sizes.is_empty() {
        ladder(uses.footprint_bytes).iter().map(|&b| u64::from(b) * CACHE_BLOCK_BYTES).collect()
    } else {
        let bytes = options.sizes.iter().map(|size| size.bytes(uses.footprint_bytes).max(1));
        let mut all: Vec<u64> = bytes.collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    let total = options.policies.len() as u64;
    let curves = (0..)
        .zip(&options.policies)
        .map(|(done, policy)| {
            progress(CacheProgress::Counting { done, total });
            let points = uses.points(policy, &sizes_bytes);
            ObjectCurve { policy: policy.clone(), title: policy.title().to_owned(), points }
        })
        .collect();
    progress(CacheProgress::Counting { done: total, total });
    Ok(ObjectCurves {
        schema_version: 1,
        version: env!("CARGO_PKG_VERSION"),
        options: ObjectCurvesOptions { trace: options.trace.shown(), ..options.clone() },
        uses: uses.keys.len() as u64,
        used_bytes: uses.bytes.iter().sum(),
        objects: uses.objects,
        footprint_bytes: uses.footprint_bytes,
        sizes_bytes,
        curves,
    })
}

/// Uses of a trace, with objects numbered from 0 on.
struct Uses {
    keys: Vec<u64>,
    bytes: Vec<u64>,
    objects: u64,
    footprint_bytes: u64,
}

impl Uses {
    fn read(
        options: &ObjectCurvesOptions,
        progress: CacheProgressSink<'_>,
    ) -> Result<Self, ObjectCurvesError> {
        let mut all: Vec<ObjectUse> = Vec::new();
        let trace = &options.trace;
        let report = &mut |reader: &TraceReader| {
            let (done, total) = (reader.compressed_bytes_read(), reader.compressed_bytes_total());
            progress(CacheProgress::Reading { done, total });
        };
        // Without a seed's effect, as no time counts.
        open(trace, 1)?.objects(
            |of| {
                if trace.device.is_none_or(|device| device == of.device) {
                    all.push(of);
                }
            },
            report,
        )?;
        if all.is_empty() {
            let device = trace.device.map(|device| format!(" of device {device}"));
            let (file, device) = (trace.file.display().to_string(), device.unwrap_or_default());
            return Err(ObjectCurvesError::NoUses { file, device });
        }
        Ok(Self::of(&all))
    }

    fn of(all: &[ObjectUse]) -> Self {
        let mut order: Vec<u64> = (0..all.len() as u64).collect();
        order.sort_unstable_by_key(|&at| (object(at, all), at));
        let (mut keys, mut objects, mut footprint_bytes) = (vec![0; all.len()], 0, 0);
        for same in order.chunk_by(|&a, &b| object(a, all) == object(b, all)) {
            same.iter().for_each(|&at| keys[at as usize] = objects);
            footprint_bytes += all[same[0] as usize].bytes;
            objects += 1;
        }
        let bytes = all.iter().map(|of| of.bytes).collect();
        Self { keys, bytes, objects, footprint_bytes }
    }

    /// Misses of a policy at each size, on all cores.
    fn points(&self, policy: &ComparedPolicy, sizes: &[u64]) -> Vec<ObjectMisses> {
        match policy.shipped() {
            Some(policy) => sizes.par_iter().map(|&size| self.simulated(policy, size)).collect(),
            None => {
                let future = KnownFuture::new(&self.keys);
                sizes.par_iter().map(|&size| self.best_possible(&future, size)).collect()
            }
        }
    }

    fn simulated(&self, policy: CachePolicy, size_bytes: u64) -> ObjectMisses {
        let mut cache = ObjectCache::new(policy, size_bytes).expect("checked before");
        let mut all = ObjectMisses { size_bytes, misses: 0, missed_bytes: 0 };
        for (&key, &bytes) in self.keys.iter().zip(&self.bytes) {
            if !cache.process(key, bytes) {
                all.add(bytes);
            }
        }
        all
    }

    fn best_possible(&self, future: &KnownFuture, size_bytes: u64) -> ObjectMisses {
        let mut all = ObjectMisses { size_bytes, misses: 0, missed_bytes: 0 };
        future.run(
            size_bytes,
            |at| self.bytes[at],
            |at, is_hit| {
                if !is_hit {
                    all.add(self.bytes[at]);
                }
            },
        );
        all
    }
}

fn object(at: u64, all: &[ObjectUse]) -> (u32, u64) {
    (all[at as usize].device, all[at as usize].number)
}

impl ObjectMisses {
    fn add(&mut self, bytes: u64) {
        self.misses += 1;
        self.missed_bytes += bytes;
    }
}
