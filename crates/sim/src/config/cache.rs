//! Checks of a storage system's cache in front of each drive, in an experiment.

use freewheel_model::cache::{CachePreset, PrefetchSpec, StorageCacheSpec, WriteBufferSpec};
use freewheel_units::{BLOCK_BYTES, Bytes};

use super::workload::SPAN_MAX;
use crate::toml_faults::check_whole;

/// Most blocks of 512 bytes in a cache block: the bits of a word.
const CACHE_BLOCK_MAX: u64 = 64;
/// Most of one prefetch or destage. A disk reads it in several seconds.
const AMOUNT_MAX: Bytes = Bytes::new(1 << 30);

/// Err names key, value, and what is allowed.
pub(crate) fn check_cache_spec(cache: &StorageCacheSpec) -> Result<(), String> {
    if let (Some(used), None | Some(CachePreset::Tr03Poor)) = (cache.storage_used, cache.preset) {
        return Err(format!(
            "`storage_used` is {used}, and only `preset = \"tr03-rich\"` takes shares of it: leave it out"
        ));
    }
    let unit = cache.block_size.get();
    if unit == 0 || !unit.is_multiple_of(BLOCK_BYTES) || unit > CACHE_BLOCK_MAX * BLOCK_BYTES {
        return Err(format!(
            "`block_size` is {}: multiples of 512B up to 32KiB are allowed",
            cache.block_size
        ));
    }
    if !(1..=StorageCacheSpec::QUEUE_DEPTH_MAX).contains(&cache.queue_depth) {
        let depth = cache.queue_depth;
        return Err(format!(
            "`queue_depth` is {depth}: 1 to {} requests are allowed",
            StorageCacheSpec::QUEUE_DEPTH_MAX
        ));
    }
    let memories = [Some(cache.size), cache.prefetch_buffer, cache.write_buffer.map(|w| w.size)];
    for (key, size) in ["size", "prefetch_buffer", "write_buffer.size"].iter().zip(memories) {
        let Some(size) = size else { continue };
        // Only the read cache may be absent in spite of its key.
        let is_absent = *key == "size" && size == Bytes::ZERO;
        if size.get() < unit && !is_absent {
            return Err(format!(
                "`{key}` is {size}: at least one block of {} is needed, or leave `{key}` out",
                cache.block_size
            ));
        }
        if size.get() / unit >= u64::from(u32::MAX) {
            return Err(format!("`{key}` is {size}: fewer than 2^32 cache blocks are allowed"));
        }
    }
    check_prefetch(&cache.prefetch)?;
    if cache.opportunistic.read_ahead > Bytes::ZERO {
        check_amount("opportunistic.read_ahead", cache.opportunistic.read_ahead)?;
    }
    cache.write_buffer.map_or(Ok(()), |buffer| check_buffer(&buffer, cache.block_size))
}

/// Err when the drive's sectors, of `least` bytes, would be split.
pub(crate) fn check_cache_sectors(cache: &StorageCacheSpec, least: Bytes) -> Result<(), String> {
    check_whole("block_size", cache.block_size, least)?;
    check_whole("opportunistic.read_ahead", cache.opportunistic.read_ahead, least)?;
    let amounts = amounts(&cache.prefetch);
    amounts.iter().try_for_each(|(key, value)| check_whole(key, *value, least))
}

/// Amounts to fetch, by keys.
fn amounts(prefetch: &PrefetchSpec) -> Vec<(&'static str, Bytes)> {
    match *prefetch {
        PrefetchSpec::Off => Vec::new(),
        PrefetchSpec::LargeFetchUnit { unit } => vec![("prefetch.unit", unit)],
        PrefetchSpec::ReadAhead { amount } => vec![("prefetch.amount", amount)],
        PrefetchSpec::Conditional { segment, maximum, .. } => {
            vec![("prefetch.segment", segment), ("prefetch.maximum", maximum)]
        }
        PrefetchSpec::Amp { initial, maximum, .. } => {
            vec![("prefetch.initial", initial), ("prefetch.maximum", maximum)]
        }
    }
}

fn check_prefetch(prefetch: &PrefetchSpec) -> Result<(), String> {
    amounts(prefetch).iter().try_for_each(|(key, value)| check_amount(key, *value))?;
    match *prefetch {
        PrefetchSpec::Amp { initial, maximum, streams } => check_amp(initial, maximum, streams),
        _ => Ok(()),
    }
}

/// Err unless some whole blocks may be moved at once.
fn check_amount(key: &str, value: Bytes) -> Result<(), String> {
    let is_whole = value.get().is_multiple_of(BLOCK_BYTES);
    if value == Bytes::ZERO || value > AMOUNT_MAX || !is_whole {
        return Err(format!(
            "`{key}` is {value}: multiples of 512B from 512B to {AMOUNT_MAX} are allowed"
        ));
    }
    Ok(())
}

/// Streams are searched one by one, so there may not be many.
const STREAMS_MAX: u32 = 4096;

fn check_amp(initial: Bytes, maximum: Bytes, streams: u32) -> Result<(), String> {
    if initial.get() < 4096 {
        return Err(format!("`prefetch.initial` is {initial}: at least 4KiB are needed"));
    }
    if maximum < initial {
        return Err(format!(
            "`prefetch.maximum` is {maximum}: at least `initial`, {initial}, is needed"
        ));
    }
    if !(1..=STREAMS_MAX).contains(&streams) {
        return Err(format!("`prefetch.streams` is {streams}: 1 to {STREAMS_MAX} are allowed"));
    }
    Ok(())
}

fn check_buffer(buffer: &WriteBufferSpec, block_size: Bytes) -> Result<(), String> {
    let WriteBufferSpec { high_mark, low_mark, destage_maximum, .. } = buffer;
    if !(0.0..=1.0).contains(high_mark) {
        return Err(format!("`write_buffer.high_mark` is {high_mark}: 0 to 1 is allowed"));
    }
    if !(0.0..=*high_mark).contains(low_mark) {
        return Err(format!(
            "`write_buffer.low_mark` is {low_mark}: 0 to `high_mark`, {high_mark}, is allowed"
        ));
    }
    if let Some(age) = buffer.max_age.filter(|age| *age > SPAN_MAX) {
        return Err(format!(
            "`write_buffer.max_age` is {age}: at most {SPAN_MAX} can be simulated; leave it out for no limit"
        ));
    }
    if *destage_maximum < block_size {
        return Err(format!(
            "`write_buffer.destage_maximum` is {destage_maximum}: at least `block_size`, {block_size}, is needed"
        ));
    }
    if buffer.destages == Some(0) {
        return Err("`write_buffer.destages` is 0: at least 1 is needed".into());
    }
    check_amount("write_buffer.destage_maximum", *destage_maximum)
}
