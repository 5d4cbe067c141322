//! Runs behind a storage system's cache.

use freewheel_model::cache::{OpportunisticSpec, PrefetchSpec, StorageCacheSpec};
use freewheel_model::electronics::spec::SectorFormat;
use freewheel_sim::config::SimConfig;
use freewheel_sim::experiment::Experiment;
use freewheel_sim::source::{Request, Source, SourceError};
use freewheel_sim::{CacheWork, Completion, RunResult, ServiceParts};
use freewheel_units::{Blocks, Bytes, Op, SimDuration, SimTime, VolumeBlock};

fn run(text: &str, overrides: &[&str]) -> (RunResult, Vec<Completion>) {
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).into()).collect();
    let config = SimConfig::parse(text, "test", &overrides).unwrap();
    let mut completions = Vec::new();
    let mut observer = |completion: &Completion| completions.push(*completion);
    let result =
        Experiment::new(config).unwrap().new_run().with_observer(&mut observer).simulate().unwrap();
    (result, completions)
}

const CLOSED: &str = r#"
    drive = "atlas10k"
    scheduler = { policy = "sptf" }
    [workload]
    kind = "closed"
    outstanding = 12
    requests = 3000
    pattern = { read_share = 0.6, size = "8KiB" }
"#;

/// A cache that is just a queue.
const NO_CACHE: [&str; 2] = ["cache.size=0B", "cache.queue_depth=4096"];

#[test]
fn cache_of_size_zero_changes_nothing() {
    let policies = ["fcfs", "sptf", "clook", "asatf"];
    for (seed, policy) in policies.into_iter().enumerate() {
        for electronics in ["electronics=false", "electronics=true"] {
            let policy = format!("scheduler.policy={policy}");
            let seed = format!("seed={seed}");
            let plain = [policy.as_str(), electronics, seed.as_str()];
            let (bare, expected) = run(CLOSED, &plain);
            let (cached, completions) = run(CLOSED, &[&plain[..], &NO_CACHE[..]].concat());
            assert_eq!(bare.result_hash, cached.result_hash, "{policy} {electronics}");
            let ends = |list: &[Completion]| -> Vec<_> {
                list.iter().map(|c| (c.request.tag, c.arrival, c.end)).collect()
            };
            assert_eq!(ends(&completions), ends(&expected), "{policy} {electronics}");
            let work = cached.cache.unwrap();
            assert_eq!((work.reads, work.writes), (work.read_misses, work.write_misses));
        }
    }
}

/// Section 4 of tr03, technique by technique.
#[test]
fn tr03_systems_match_paper_tables() {
    let poor = StorageCacheSpec::resource_poor();
    let mib = |size: u64| Bytes::new(size << 20);
    let idle = OpportunisticSpec {
        read_ahead: Bytes::from_kib(128),
        free_blocks: true,
        just_in_time_seek: false,
    };
    assert_eq!((poor.size, poor.prefetch_buffer, poor.queue_depth), (mib(8), None, 8));
    assert_eq!(poor.prefetch, PrefetchSpec::ReadAhead { amount: Bytes::from_kib(32) });
    let rich = StorageCacheSpec::resource_rich(Bytes::new(4_096_000_000));
    assert_eq!((rich.size, rich.prefetch_buffer), (Bytes::new(40_960_000), Some(mib(8))));
    assert_eq!(rich.prefetch, PrefetchSpec::conditional(Bytes::from_kib(8)));
    assert_eq!([poor.opportunistic, rich.opportunistic], [idle; 2]);
    let [few, many] = [poor, rich].map(|cache| cache.write_buffer.unwrap());
    assert_eq!((few.size, few.max_age), (mib(4), Some(SimDuration::from_secs(30))));
    assert_eq!(
        (many.size, many.max_age),
        (Bytes::new(4_096_000), Some(SimDuration::from_secs(3600)))
    );
    for buffer in [few, many] {
        assert_eq!((buffer.low_mark, buffer.high_mark, buffer.volatile), (0.2, 0.8, false));
    }
}

#[test]
fn tr03_systems_speed_random_requests() {
    let mean = |cache: Option<StorageCacheSpec>| {
        let mut config = SimConfig::parse(CLOSED, "test", &["electronics=false".into()]).unwrap();
        config.cache = cache;
        Experiment::new(config).unwrap().run().unwrap().response.mean_ns
    };
    let (poor, rich) = (
        StorageCacheSpec::resource_poor(),
        StorageCacheSpec::resource_rich(Bytes::new(9_100_000_000)),
    );
    let bare = mean(None);
    // Two of five are writes, which the buffers answer at once as long as they have room.
    for system in [poor, rich] {
        let share = mean(Some(system)) / bare;
        assert!((0.3..0.98).contains(&share), "{share}");
    }
}

/// A closed client that thinks 20 ms, unless told otherwise, and then asks for the next of its requests.
struct Client {
    requests: Vec<(Op, u64)>,
    asked: usize,
    next: Option<SimTime>,
    thinks: SimDuration,
}

impl Client {
    fn new(requests: Vec<(Op, u64)>) -> Self {
        let thinks = SimDuration::from_ms(20);
        Self { requests, asked: 0, next: Some(SimTime::ZERO), thinks }
    }
}

impl Source for Client {
    fn next_arrival(&mut self) -> Result<Option<SimTime>, SourceError> {
        Ok(self.next.filter(|_| self.asked < self.requests.len()))
    }

    fn take(&mut self) -> Request {
        let (op, start) = self.requests[self.asked];
        self.next = None;
        self.asked += 1;
        let (start, blocks) = (VolumeBlock::new(start), Blocks::new(8));
        Request { op, start, blocks, fua: false, tag: self.asked as u64 }
    }

    fn completed(&mut self, _: u64, now: SimTime) {
        self.next = Some(now + self.thinks);
    }

    fn progress(&self) -> (u64, u64) {
        (self.asked as u64, self.requests.len() as u64)
    }
}

fn serve(requests: &[(Op, u64)], overrides: &[&str]) -> (CacheWork, RunResult) {
    let overrides = [&["electronics=false"], overrides].concat();
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).into()).collect();
    let config = SimConfig::parse(CLOSED, "test", &overrides).unwrap();
    let mut client = Client::new(requests.to_vec());
    let experiment = Experiment::new(config).unwrap();
    let result = experiment.new_run().simulate_source(&mut client).unwrap();
    assert_eq!(result.requests, requests.len() as u64, "every request is answered");
    (result.cache.unwrap(), result)
}

#[test]
fn service_parts_add_up_to_head_time() {
    let (result, _) = run(CLOSED, &["cache.size=1MiB", "electronics=false"]);
    let work = result.cache.unwrap();
    let total = |parts: ServiceParts| parts.seek_ns + parts.rotate_ns + parts.transfer_ns;
    assert_eq!(total(work.read_head), work.read_service_ns);
    assert_eq!(total(work.write_head), work.write_service_ns);
    let seeks = u128::from(work.read_head.seek_ns + work.write_head.seek_ns);
    assert_eq!(seeks, result.head_time.seek_ns);
    assert!(work.read_head.rotate_ns > 0 && work.write_head.transfer_ns > 0);
}

#[test]
fn cache_hit_takes_no_time_or_arm() {
    let requests: Vec<_> = (0..200).map(|n| (Op::Read, n % 100 * 10_000)).collect();
    let (work, result) = serve(&requests, &["cache.size=1MiB"]);
    assert_eq!(work.read_misses, 100);
    let (none, without) = serve(&requests, &["cache.size=0B"]);
    assert_eq!(none.read_misses, 200);
    let share = work.read_service_ns as f64 / none.read_service_ns as f64;
    assert!((0.47..0.53).contains(&share), "half of the reads need the arm: {share}");
    assert!(result.read_response.mean_ns < 0.6 * without.read_response.mean_ns);
}

#[test]
fn large_write_buffer_answers_at_once() {
    let requests: Vec<_> = (0..300).map(|n| (Op::Write, n * 10_000)).collect();
    let (work, result) = serve(&requests, &["cache.write_buffer.size=64MiB"]);
    assert_eq!(result.write_response.max_ns, 0, "no write waited");
    // 300 writes of 20 ms each pass in 6 s, and none is 30 s old.
    assert_eq!((work.write_misses, work.stalled_writes, work.destages), (300, 0, 0));
    assert_eq!(work.at_risk_max_bytes, 300 * 4096);
    let aged = ["cache.write_buffer.size=64MiB", "cache.write_buffer.max_age=1s"];
    let (work, _) = serve(&requests, &aged);
    assert!((240..=250).contains(&work.destages), "{work:?}");
    assert!(work.at_risk_max_bytes <= 52 * 4096, "about a second of writes: {work:?}");
}

#[test]
fn buffered_writes_at_risk_until_end() {
    let requests = [(Op::Write, 0), (Op::Read, 1_000_000)];
    let (work, result) = serve(&requests, &["cache.write_buffer.size=64MiB"]);
    assert!(result.elapsed_ns > 20_000_000, "the read comes after 20 ms");
    assert_eq!(work.at_risk_byte_ns, 4096 * u128::from(result.elapsed_ns));
}

#[test]
fn trimmed_blocks_neither_destaged_nor_hit() {
    let trimmed = |op: Op| {
        let each = |n: u64| [(op, n * 10_000), (Op::Trim, n * 10_000), (op, n * 10_000 + 5_000)];
        let requests: Vec<_> = (0..100).flat_map(each).collect();
        let more = (0..100).map(|n| (Op::Read, n * 10_000));
        let requests: Vec<_> = requests.into_iter().chain(more).collect();
        for drives in ["array.drives=1", "array.drives=2"] {
            let overrides = [
                drives,
                "cache.size=8MiB",
                "cache.write_buffer.size=8MiB",
                "cache.write_buffer.max_age=1s",
            ];
            let (work, _) = serve(&requests, &overrides);
            if op == Op::Read {
                assert_eq!(work.read_misses, 300, "{drives}: {work:?}");
            } else {
                // The last second of the others is still in the buffer.
                assert!((90..=100).contains(&work.destages), "{drives}: {work:?}");
            }
        }
    };
    trimmed(Op::Read);
    trimmed(Op::Write);
}

#[test]
fn destage_stays_within_maximum() {
    let requests: Vec<_> = (0..400).map(|n| (Op::Write, n * 8)).collect();
    let destages = |maximum: &str| {
        let overrides = ["cache.write_buffer.max_age=7s", maximum];
        serve(&requests, &overrides).0.destages
    };
    let of = |maximum| destages(&format!("cache.write_buffer.destage_maximum={maximum}"));
    // The run of 8 s destages from 7 s on. 16 writes are 64 KiB, and the next are due after 320 ms.
    assert_eq!(["64KiB", "1MiB"].map(of), [4, 1]);
}

#[test]
fn small_write_buffer_delays_burst() {
    let overrides = ["electronics=false", "cache.size=0B", "cache.write_buffer.size=256KiB"];
    let (result, completions) = run(CLOSED, &overrides);
    let work = result.cache.unwrap();
    assert_eq!(completions.len(), 3000);
    assert!(work.stalled_writes > 0 && work.destages > 500, "{work:?}");
    assert!(result.write_response.max_ns > 0 && work.at_risk_max_bytes <= 256 << 10);
}

#[test]
fn prefetching_serves_sequential_reader() {
    let requests: Vec<_> = (0..400).map(|n| (Op::Read, 1_024_000 + n * 8)).collect();
    let misses = |overrides: &[&str]| serve(&requests, overrides).0.read_misses;
    assert_eq!(misses(&["cache.size=8MiB"]), 400);
    let kind = |text: &str| misses(&["cache.size=8MiB", text]);
    // Units of 64 KiB hold 16 reads, read-ahead of 32 KiB 8 more reads.
    assert_eq!(kind("cache.prefetch={ kind = 'large-fetch-unit', unit = '64KiB' }"), 25);
    assert_eq!(kind("cache.prefetch={ kind = 'read-ahead', amount = '32KiB' }"), 45);
    assert!(kind("cache.prefetch={ kind = 'conditional', segment = '8KiB' }") <= 12);
    // Two reads show the stream, and no other misses.
    assert_eq!(kind("cache.prefetch={ kind = 'amp' }"), 2);
    // Idle time reads on behind each miss, to 128 KiB.
    assert_eq!(kind("cache.opportunistic.read_ahead=128KiB"), 13);
}

#[test]
fn prefetched_blocks_help_only_sequential_reader() {
    let sequential: Vec<_> = (0..400).map(|n| (Op::Read, 1_024_000 + n * 8)).collect();
    let random: Vec<_> = (0..400).map(|n| (Op::Read, n * 7_919 % 400 * 40_000)).collect();
    let worth = |requests: &[(Op, u64)], kind: &str| {
        let (work, _) = serve(requests, &["cache.size=256KiB", kind]);
        let prefetch = work.prefetch;
        let all = [prefetch.with_reads, prefetch.idle, prefetch.free_blocks];
        let [used] =
            all.into_iter().filter(|worth| worth.brought_bytes > 0).collect::<Vec<_>>()[..]
        else {
            panic!("one kind alone: {prefetch:?}")
        };
        (used, work)
    };
    for kind in [
        "cache.prefetch={ kind = 'large-fetch-unit', unit = '64KiB' }",
        "cache.prefetch={ kind = 'read-ahead', amount = '32KiB' }",
        "cache.prefetch={ kind = 'conditional', segment = '8KiB' }",
        "cache.opportunistic.read_ahead=128KiB",
    ] {
        let (good, work) = worth(&sequential, kind);
        assert!(good.used_bytes * 100 > good.brought_bytes * 85, "{kind}: {good:?}");
        assert_eq!(good.used_bytes + work.demand_bytes, 400 * 4096, "{kind}: {work:?}");
        assert!(good.wasted_bytes == 0 && good.disk_ns > 0, "{kind}: {good:?}");
        let (bad, _) = worth(&random, kind);
        assert_eq!(bad.used_bytes, 0, "{kind}: {bad:?}");
        let there = bad.brought_bytes - bad.wasted_bytes;
        assert!(bad.wasted_bytes > 0 && there <= 256 << 10, "{kind}: {bad:?}");
        assert!(bad.disk_ns > good.disk_ns, "{kind}: {bad:?}");
    }
    // Blocks that pass behind a read are of no use to a reader that moves on, and cost no time.
    let (free, _) = worth(&sequential, "cache.opportunistic.free_blocks=true");
    assert_eq!((free.disk_ns, free.late_reads), (0, 0));
}

#[test]
fn amp_senseless_parameters_refused() {
    for (key, value, words) in [
        ("initial", "'2KiB'", "at least 4KiB"),
        ("maximum", "'16KiB'", "at least `initial`"),
        ("streams", "0", "1 to 4096"),
    ] {
        let text = format!("cache.prefetch={{ kind = 'amp', {key} = {value} }}");
        let config = SimConfig::parse(CLOSED, "test", &[text]).unwrap();
        let error = Experiment::new(config).unwrap_err().to_string();
        assert!(error.contains(&format!("prefetch.{key}")) && error.contains(words), "{error}");
    }
}

fn error_of(overrides: &[&str]) -> String {
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).into()).collect();
    let config = SimConfig::parse(CLOSED, "test", &overrides).unwrap();
    Experiment::new(config).expect_err("an error").to_string()
}

#[test]
fn cache_senseless_values_refused() {
    const CONDITIONAL: &str = "{ kind = 'conditional', segment = '8KiB', maximum = ";
    let conditional = |maximum: &str| format!("prefetch={CONDITIONAL}'{maximum}' }}");
    for (set, key, words) in [
        ("size=1KiB".into(), "size", "one block of 4KiB"),
        ("prefetch_buffer=0B".into(), "prefetch_buffer", "leave `prefetch_buffer` out"),
        ("write_buffer.size=2KiB".into(), "write_buffer.size", "one block of 4KiB"),
        ("write_buffer.max_age=4000000000s".into(), "write_buffer.max_age", "leave it out"),
        (
            "write_buffer.destage_maximum=2KiB".into(),
            "write_buffer.destage_maximum",
            "`block_size`",
        ),
        ("write_buffer.destage_maximum=2TiB".into(), "write_buffer.destage_maximum", "to 1GiB"),
        ("prefetch={ kind = 'read-ahead', amount = '2TiB' }".into(), "prefetch.amount", "to 1GiB"),
        ("prefetch={ kind = 'read-ahead', amount = '0B' }".into(), "prefetch.amount", "from 512B"),
        ("prefetch={ kind = 'read-ahead', amount = '700B' }".into(), "prefetch.amount", "512B"),
        ("prefetch={ kind = 'large-fetch-unit', unit = '2TiB' }".into(), "prefetch.unit", "1GiB"),
        ("prefetch={ kind = 'amp', maximum = '2TiB' }".into(), "prefetch.maximum", "to 1GiB"),
        (conditional("2TiB"), "prefetch.maximum", "to 1GiB"),
        (conditional("100B"), "prefetch.maximum", "from 512B"),
        ("opportunistic.read_ahead=2TiB".into(), "opportunistic.read_ahead", "to 1GiB"),
        ("opportunistic.read_ahead=100B".into(), "opportunistic.read_ahead", "from 512B"),
    ] {
        let error = error_of(&[&format!("cache.{set}")]);
        let named = error.contains(&format!("`{key}`")) && error.starts_with("cache: ");
        assert!(named && error.contains(words), "{set}: {error}");
    }
    let error = error_of(&["drive=\"ultrastar-hc620-14tb\"", "cache.write_buffer.size=4MiB"]);
    assert!(error.contains("`write_buffer`") && error.contains("host-managed"), "{error}");
}

#[test]
fn cache_keeps_4kn_sectors_whole() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("drive.toml");
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../../drives/exos-7e8-8tb.toml");
    let text = std::fs::read_to_string(shipped).unwrap();
    let native =
        text.replacen("[electronics.", "[electronics]\nsector = \"4kn\"\n[electronics.", 1);
    std::fs::write(&file, native).unwrap();
    let drive = format!("drive={:?}", file.display().to_string());
    for (set, key) in [
        ("block_size=512B", "block_size"),
        ("opportunistic.read_ahead=6KiB", "opportunistic.read_ahead"),
        ("prefetch={ kind = 'read-ahead', amount = '6KiB' }", "prefetch.amount"),
        ("prefetch={ kind = 'large-fetch-unit', unit = '6KiB' }", "prefetch.unit"),
    ] {
        let error = error_of(&[&drive, &format!("cache.{set}")]);
        let named = error.starts_with(&format!("cache: `{key}` is "));
        assert!(named && error.contains("4Kn takes whole sectors"), "{set}: {error}");
    }
    let whole = format!("cache.prefetch={}", "{ kind = 'read-ahead', amount = '8KiB' }");
    assert!(Experiment::new(SimConfig::parse(CLOSED, "test", &[drive, whole]).unwrap()).is_ok());
}

#[test]
fn blocks_passing_before_read_are_free() {
    // The second read lies on the same track, right before the first.
    let requests: Vec<_> = (0..100)
        .flat_map(|n| [(Op::Read, n * 150_000 + 200), (Op::Read, n * 150_000 + 192)])
        .collect();
    let free = ["cache.size=8MiB", "cache.opportunistic.free_blocks=true"];
    let (work, with) = serve(&requests, &free);
    let (_, without) = serve(&requests, &["cache.size=8MiB"]);
    assert!(work.read_misses < 120, "{work:?}");
    assert!(with.elapsed_ns < without.elapsed_ns);
}

#[test]
fn large_sectors_pass_free_only_whole() {
    let requests: Vec<_> = (0..200).map(|n| (Op::Read, n * 7_654_320)).collect();
    // A head reads on only right behind a read, so that client does not think.
    let thinks = [("free_blocks", 20), ("just_in_time_seek", 0)];
    for (free, thinks_ms) in thinks {
        let overrides = [
            "drive=\"exos-7e8-8tb\"".into(),
            "cache.size=8MiB".into(),
            format!("cache.opportunistic.{free}=true"),
        ];
        let mut experiment =
            Experiment::new(SimConfig::parse(CLOSED, "test", &overrides).unwrap()).unwrap();
        assert!(experiment.has_electronics());
        experiment.spec.electronics.sector = SectorFormat::Emulated512;
        let thinks = SimDuration::from_ms(thinks_ms);
        let mut client = Client { thinks, ..Client::new(requests.clone()) };
        let result = experiment.new_run().simulate_source(&mut client).unwrap();
        let bytes = result.cache.unwrap().opportunistic_bytes;
        assert!(bytes > 1 << 20 && bytes.is_multiple_of(4096), "{free}: {bytes}");
    }
}
