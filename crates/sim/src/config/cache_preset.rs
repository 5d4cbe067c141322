//! The storage systems of tr03 by name: their values stand for the keys of `[cache]` that are not given.
//!
//! They are filled in before the document becomes a configuration, so that a result names every value.

use freewheel_model::cache::{CachePreset, StorageCacheSpec};
use freewheel_units::Bytes;
use toml::{Table, Value};

use crate::toml_faults::{Fault, fault_of_key};

/// Gives `[cache]` the values of its preset where it has none of its own. An unknown name stays, for the
/// reader of the document to refuse.
pub(super) fn fill_in(root: &mut Value, text: Option<&str>) -> Result<(), Fault> {
    let Some(cache) = root.get_mut("cache").and_then(Value::as_table_mut) else { return Ok(()) };
    let preset = cache.get("preset").cloned().and_then(|name| name.try_into().ok());
    let Some(preset) = preset else { return Ok(()) };
    let config = match preset {
        CachePreset::Tr03Poor => StorageCacheSpec::resource_poor(),
        CachePreset::Tr03Rich => match storage_used(cache) {
            Some(used) => StorageCacheSpec::resource_rich(used),
            // Its sizes give way to those of the document.
            None if has_sizes(cache) => StorageCacheSpec::resource_rich(Bytes::ZERO),
            None => {
                let says = "`cache.preset` is \"tr03-rich\", whose memory is a share of the storage in use: give `cache.storage_used`, or `cache.size` and `cache.write_buffer.size`";
                return Err(fault_of_key("cache", "preset", text, says.into()));
            }
        },
    };
    let values = Table::try_from(config).expect("a configuration is a table");
    values.into_iter().for_each(|(key, value)| fill(cache, key, value));
    Ok(())
}

/// The storage in use, where the document says it. What is no size counts, for the reader to refuse.
fn storage_used(cache: &Table) -> Option<Bytes> {
    cache.get("storage_used").map(|used| used.clone().try_into().unwrap_or(Bytes::ZERO))
}

fn has_sizes(cache: &Table) -> bool {
    let of_buffer = cache.get("write_buffer").and_then(|buffer| buffer.get("size"));
    cache.contains_key("size") && of_buffer.is_some()
}

/// A value of the preset goes where the document has none. Tables are filled key by key, but for one whose
/// `kind` the document gives: the other keys belong to the kind.
fn fill(table: &mut Table, key: String, value: Value) {
    match (table.get_mut(&key), value) {
        (None, value) => drop(table.insert(key, value)),
        (Some(Value::Table(given)), Value::Table(values)) if !given.contains_key("kind") => {
            values.into_iter().for_each(|(key, value)| fill(given, key, value));
        }
        (Some(_), _) => {}
    }
}

#[cfg(test)]
mod tests {
    use freewheel_model::cache::{OpportunisticSpec, PrefetchSpec};
    use freewheel_units::SimDuration;

    use super::super::{SimConfig, check_cache_spec};
    use super::*;

    const DISK: &str = "[workload]\nkind = \"closed\"\n";

    fn cache(keys: &str) -> StorageCacheSpec {
        let text = format!("{DISK}[cache]\n{keys}\n");
        SimConfig::parse(&text, "test", &[]).unwrap().cache.unwrap()
    }

    #[test]
    fn cache_preset_alone_matches_paper() {
        let poor = CachePreset::Tr03Poor;
        let expected = StorageCacheSpec { preset: Some(poor), ..StorageCacheSpec::resource_poor() };
        assert_eq!(cache("preset = \"tr03-poor\""), expected);
        let used = Bytes::new(4000 << 20);
        let expected = StorageCacheSpec {
            preset: Some(CachePreset::Tr03Rich),
            storage_used: Some(used),
            ..StorageCacheSpec::resource_rich(used)
        };
        assert_eq!(cache("preset = \"tr03-rich\"\nstorage_used = \"4000MiB\""), expected);
        let overridden = format!("{DISK}[cache]\npreset = \"tr03-rich\"");
        let set = ["cache.storage_used=4000MiB".into()];
        let config = SimConfig::parse(&overridden, "test", &set).unwrap();
        assert_eq!(config.cache, Some(expected));
    }

    #[test]
    fn cache_preset_values_overridden_by_keys() {
        let cache = cache(
            "preset = \"tr03-poor\"\nsize = \"2MiB\"\nopportunistic.just_in_time_seek = true\n\
             write_buffer.max_age = \"1h\"\nprefetch = { kind = \"off\" }",
        );
        assert_eq!((cache.size, cache.prefetch), (Bytes::new(2 << 20), PrefetchSpec::Off));
        let late = OpportunisticSpec { just_in_time_seek: true, ..OpportunisticSpec::tr03() };
        assert_eq!(cache.opportunistic, late);
        let buffer = cache.write_buffer.unwrap();
        assert_eq!(
            (buffer.size, buffer.max_age),
            (Bytes::new(4 << 20), Some(SimDuration::from_secs(3600)))
        );
        let segment = cache_of_segment();
        assert_eq!(segment, PrefetchSpec::conditional(Bytes::from_kib(16)));
    }

    fn cache_of_segment() -> PrefetchSpec {
        cache(
            "preset = \"tr03-rich\"\nprefetch.segment = \"16KiB\"\nsize = \"1MiB\"\n\
             write_buffer.size = \"1MiB\"",
        )
        .prefetch
    }

    #[test]
    fn cache_preset_unknown_or_unsized_refused() {
        let error = |keys: &str| {
            let text = format!("{DISK}[cache]\n{keys}\n");
            let config = SimConfig::parse(&text, "test", &[]);
            let config = config.map_err(|error| error.to_string());
            config
                .and_then(|config| check_cache_spec(&config.cache.unwrap()))
                .expect_err("what is wrong must be said")
        };
        let unknown = error("preset = \"tr03-small\"");
        for part in ["line 4", "`cache.preset`", "tr03-small", "tr03-poor", "tr03-rich"] {
            assert!(unknown.contains(part), "{unknown}");
        }
        let without = error("preset = \"tr03-rich\"\nsize = \"1MiB\"");
        for part in ["line 4", "`cache.preset`", "`cache.storage_used`", "write_buffer.size"] {
            assert!(without.contains(part), "{without}");
        }
        let useless = error("preset = \"tr03-poor\"\nstorage_used = \"1GiB\"");
        assert!(useless.contains("`storage_used` is 1GiB") && useless.contains("leave it out"));
    }
}
