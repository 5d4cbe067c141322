//! Misses on a real trace, against those that libCacheSim counts.

use std::path::Path;

use freewheel_model::cache::{CachePolicy, KeyCache};

/// The keys of `cloudPhysicsIO.oracleGeneral.bin.zst`, in order: records of 24 bytes, the key at 4.
pub fn keys() -> Vec<u64> {
    let name = "../../../shared/data/traces/cloudPhysicsIO.oracleGeneral.bin.zst";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let file = std::fs::File::open(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let bytes = zstd::decode_all(file).unwrap();
    let key = |record: &[u8]| u64::from_le_bytes(record[4..12].try_into().unwrap());
    bytes.chunks_exact(24).map(key).collect()
}

#[test]
fn probe() {
    let keys = keys();
    for row in freewheel_model::cache::POLICIES {
        for size in [
            1u32, 2, 5, 10, 15, 20, 25, 64, 100, 500, 1000, 1024, 2048, 4096, 5000, 10000, 20000,
            40000,
        ] {
            println!(
                "{} {} {}",
                row.name,
                size,
                keys.len() as u64 - KeyCache::new(row.policy, size).process_all(&keys)
            );
        }
    }
    let _: CachePolicy;
}
