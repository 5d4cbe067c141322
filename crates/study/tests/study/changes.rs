//! Changes that must help a load, and results that are the runs' own.

use std::io::Write;

use freewheel_model::cache::CachePolicy;
use freewheel_model::drive::spec::Turn;
use freewheel_sim::Completion;
use freewheel_sim::config::{SimConfig, TraceWorkload, Workload};
use freewheel_sim::experiment::Experiment;
use freewheel_sim::source::ReplayMode;
use freewheel_study::changes::{Change, Changes, Goal, PREFETCH_CACHE, Part, Tried, Variant};
use freewheel_study::{
    CACHE_DEPTH, CacheCurvesOptions, CacheSize, Responses, Study, StudyOptions, cache_curves, study,
};
use freewheel_units::{Op, Prng};

/// 2,000 reads and writes of a region of 6 MiB, 20 ms apart: far less than the drive can serve.
fn trace() -> tempfile::NamedTempFile {
    let mut prng = Prng::new(1, "changes");
    let mut file = tempfile::Builder::new().suffix(".csv").tempfile().unwrap();
    writeln!(file, "arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns").unwrap();
    for at in 0..2000_u64 {
        let op = if prng.below(3) == 0 { "W" } else { "R" };
        writeln!(file, "{},{op},{},4096,0,", at * 20_000_000, prng.below(1536) * 4096).unwrap();
    }
    file
}

fn studied(file: &tempfile::NamedTempFile) -> Study {
    let trace = TraceWorkload { file: file.path().into(), ..TraceWorkload::default() };
    let options = StudyOptions { scrub: false, ..StudyOptions::new(trace, "atlas10k") };
    study(&options, &|_| {}).unwrap()
}

fn best_of(changes: &Changes, part: Part) -> f64 {
    let tried = changes.tried.iter().find(|tried| tried.change.part() == part);
    tried.expect("each part has changes").effect.mean
}

#[test]
fn changes_help_more_together() {
    let file = trace();
    let changes = studied(&file).changes.unwrap();
    // The region is read again and again, so after the warm-up most reads hit.
    assert!(best_of(&changes, Part::ReadCache) < -0.3, "{}", best_of(&changes, Part::ReadCache));
    assert!(best_of(&changes, Part::WriteBuffer) < -0.1);
    let together = changes.together.as_ref().unwrap();
    assert!(together.steps.len() >= 2);
    // 6 MiB are touched: no cache is larger than what holds them, but for the one of prefetching.
    let sizes = changes.tried.iter().filter_map(|tried| match tried.change {
        Change::ReadCache { size, .. } => Some(size),
        _ => None,
    });
    assert!(sizes.clone().count() >= 2 && sizes.clone().all(|size| size <= PREFETCH_CACHE));
    let alone = changes.tried.iter().find(|tried| tried.change.part() != Part::Drives).unwrap();
    assert!(together.effect.mean < alone.effect.mean - 0.02);
    let means: Vec<f64> = changes.tried.iter().map(|tried| tried.surest(Goal::Mean)).collect();
    assert!(means.is_sorted(), "the surest is first: {means:?}");
}

/// 3,000 reads in bursts of 300, of which many wait: there, what a cache may take at once decides.
fn bursts() -> tempfile::NamedTempFile {
    let mut prng = Prng::new(1, "bursts");
    let mut file = tempfile::Builder::new().suffix(".csv").tempfile().unwrap();
    writeln!(file, "arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns").unwrap();
    for at in 0..3000_u64 {
        let arrival = at / 300 * 6_000_000_000 + at % 300 * 1_000_000;
        writeln!(file, "{arrival},R,{},4096,0,", prng.below(1536) * 4096).unwrap();
    }
    file
}

#[test]
fn changes_cache_gain_matches_cache_curves() {
    let file = bursts();
    let trace = || TraceWorkload { file: file.path().into(), ..TraceWorkload::default() };
    let both = |depth: u32| {
        let options = StudyOptions {
            scrub: false,
            cache_depth: depth,
            ..StudyOptions::new(trace(), "atlas10k")
        };
        let changes = study(&options, &|_| {}).unwrap().changes.unwrap();
        let sized = changes.tried.iter().find_map(|tried| match tried.change {
            Change::ReadCache { size, policy: CachePolicy::Lru } => Some((size, tried)),
            _ => None,
        });
        let (size, tried) = sized.unwrap();
        let curves = CacheCurvesOptions {
            policies: vec![CachePolicy::Lru.into()],
            sizes: vec![CacheSize::Memory(size)],
            cache_depth: depth,
            ..CacheCurvesOptions::new(trace(), "atlas10k")
        };
        let curves = cache_curves(&curves, &|_| {}).unwrap();
        let Responses::Simulated(simulated) = curves.responses else { panic!("no drive") };
        let point = simulated.policies[0].points[0];
        assert_eq!(
            (point.all, point.reads),
            (tried.measured.response, tried.measured.read_response)
        );
        assert_eq!(simulated.without_cache.all, changes.today.response, "depth {depth}");
        tried.measured.response.mean_ns
    };
    let (usual, narrow) = (both(CACHE_DEPTH), both(8));
    assert!(narrow > 1.5 * usual, "hits wait before a cache of 8: {narrow} and {usual} ns");
}

#[test]
fn changes_replays_mirror_each_other() {
    let file = bursts();
    let under = |replay| {
        let trace = TraceWorkload { file: file.path().into(), replay, ..TraceWorkload::default() };
        let options = StudyOptions { scrub: false, ..StudyOptions::new(trace, "atlas10k") };
        study(&options, &|_| {}).unwrap()
    };
    let (arrivals, dependent) = (under(ReplayMode::Arrivals), under(ReplayMode::Dependent));
    assert!(!arrivals.dependent_replay && dependent.dependent_replay);
    let inferred = |study: &Study| study.other_replay.as_ref().unwrap().inferred_completions.len();
    assert_eq!([inferred(&arrivals), inferred(&dependent)], [1, 0]);
    let reference = &arrivals.other_replay.as_ref().unwrap().inferred_completions[0];
    assert_eq!(reference.drive, "atlas10k", "the drive of the study stands in");
    for (one, other) in arrivals.runs.iter().zip(&dependent.runs) {
        assert_eq!(one.other_replay, Some(other.result.response));
        assert_eq!(other.other_replay, Some(one.result.response));
    }
    let [one, other] = [&arrivals, &dependent].map(|study| study.changes.as_ref().unwrap());
    let mut differ = 0;
    for tried in &one.tried {
        let same = other.tried.iter().find(|other| other.title == tried.title).unwrap();
        assert_eq!(tried.other_replay, Some(same.effect), "{}", tried.title);
        assert_eq!(same.other_replay, Some(tried.effect), "{}", tried.title);
        differ += u32::from((tried.effect.mean - same.effect.mean).abs() > 0.1);
    }
    assert!(differ > 3, "the replays are not the same thing twice");
}

#[test]
fn changes_prefetch_compared_at_same_memory() {
    // Each place of 8 GB is read twice, a hundred reads apart: too far for the drive's buffer.
    let mut prng = Prng::new(1, "twice");
    let mut file = tempfile::Builder::new().suffix(".csv").tempfile().unwrap();
    writeln!(file, "arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns").unwrap();
    let places: Vec<u64> = (0..1000).map(|_| prng.below(1 << 17) * 65_536).collect();
    let twice = places.chunks(100).flat_map(|some| some.iter().chain(some));
    for (at, place) in (0_u64..).zip(twice) {
        writeln!(file, "{},R,{place},4096,0,", at * 40_000_000).unwrap();
    }
    let changes = studied(&file).changes.unwrap();
    let cache = PREFETCH_CACHE.human();
    let find = |title: &str| changes.tried.iter().find(|tried| tried.title == title).unwrap();
    let control = find(&format!("Read cache, {cache}, LRU"));
    assert!(control.effect.mean < -0.3, "the cache itself helps a lot");
    let prefetches: Vec<&Tried> =
        changes.tried.iter().filter(|tried| tried.change.part() == Part::Prefetch).collect();
    assert!(prefetches.len() > 3);
    for tried in prefetches {
        assert_eq!(tried.control.as_ref(), Some(&control.title));
        let (old, new) = (control.measured.response.mean_ns, tried.measured.response.mean_ns);
        assert_eq!(tried.effect.mean, (new - old) / old, "{}", tried.title);
        assert!(tried.effect.mean > -0.02, "nothing follows on a read: {}", tried.title);
    }
}

#[test]
fn changes_responses_match_run_after_warm_up() {
    let file = trace();
    let study = studied(&file);
    let changes = study.changes.as_ref().unwrap();
    // The drive has no queue, so the baseline is FCFS.
    assert!(!study.baseline().own_queue);
    let trace = TraceWorkload { file: file.path().into(), ..TraceWorkload::default() };
    let text = "workload = { kind = \"trace\", file = \"\" }\ndrive = \"atlas10k\"";
    let mut config = SimConfig::parse(text, "test", &[]).unwrap();
    config.workload = Workload::Trace(trace);
    let mut all = Vec::new();
    let mut observe = |completion: &Completion| {
        if matches!(completion.request.op, Op::Read | Op::Write) {
            all.push((completion.request.tag, completion.response().ns()));
        }
    };
    Experiment::new(config).unwrap().new_run().with_observer(&mut observe).simulate().unwrap();
    all.retain(|&(tag, _)| tag >= changes.warm_up_requests);
    let sum: u64 = all.iter().map(|&(_, response)| response).sum();
    let by_slice: u128 = changes.today.by_slice.iter().map(|slice| slice.sum_ns).sum();
    assert_eq!((u128::from(sum), all.len() as u64), (by_slice, changes.today.response.count));
    assert_eq!(changes.today.response.mean_ns, sum as f64 / all.len() as f64);
}

#[test]
fn changes_today_covers_measured_requests() {
    // The first requests were answered after 1 ms and the others after 5 ms.
    let slow_from = 860;
    let mut prng = Prng::new(1, "one today");
    let mut file = tempfile::Builder::new().suffix(".csv").tempfile().unwrap();
    writeln!(file, "arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns").unwrap();
    for at in 0..2000_u64 {
        let arrival = at * 20_000_000;
        let response = if at < slow_from { 1_000_000 } else { 5_000_000 };
        let place = if at < slow_from { 0 } else { prng.below(1 << 20) };
        writeln!(file, "{arrival},R,{},4096,0,{}", place * 4096, arrival + response).unwrap();
    }
    let study = studied(&file);
    let (today, changes) = (study.baseline(), study.changes.as_ref().unwrap());
    let result = &today.result;
    assert_eq!(result.response, changes.today.response);
    assert_eq!(result.read_response, changes.today.read_response);
    assert_eq!(Goal::Throughput.ns(result), changes.today.drive_time_ns);
    assert!(study.runs.iter().all(|run| run.result.warm_up_requests == slow_from));
    let part = study.measured;
    assert_eq!((part.warm_up_requests, part.requests), (slow_from, result.response.count));
    assert_eq!(part.recorded_mean_ns(), Some(5e6));
    assert_eq!(part.span_ns, (2000 - 1 - slow_from) * 20_000_000);
    // Of the whole it is another one.
    let trace = TraceWorkload { file: file.path().into(), ..TraceWorkload::default() };
    let options = StudyOptions { scrub: false, changes: false, ..study.options.clone() };
    let whole = self::study(&StudyOptions { trace, ..options }, &|_| {}).unwrap();
    assert_eq!(whole.measured.warm_up_requests, 0);
    assert!(whole.baseline().result.response.mean_ns < 0.8 * result.response.mean_ns);
}

#[test]
fn changes_assumed_values_moved_for_goal() {
    let file = trace();
    let most = |goal| {
        let trace = TraceWorkload { file: file.path().into(), ..TraceWorkload::default() };
        let options = StudyOptions { scrub: false, goal, ..StudyOptions::new(trace, "atlas10k") };
        study(&options, &|_| {}).unwrap().assumed_values.unwrap().moved
    };
    let (mean, p99) = (most(Goal::Mean), most(Goal::P99Reads));
    assert_eq!(mean.len(), p99.len());
    let changes = |of: &[freewheel_study::MovedValue]| {
        let all = of.iter().map(|value| (value.key, value.changes.clone()));
        all.collect::<std::collections::BTreeMap<_, _>>()
    };
    assert_ne!(changes(&mean), changes(&p99));
    assert!(p99.iter().map(|value| value.most()).is_sorted_by(|a, b| a >= b));
}

#[test]
fn changes_first_rerun_from_other_start() {
    let file = trace();
    let changes = studied(&file).changes.unwrap();
    let start = Variant::Start { percent: 50 };
    assert!(changes.variants.contains(&start), "{:?}", changes.variants);
    let ranking = changes.ranking();
    let first = ranking[0];
    let control = changes.tried.iter().find(|tried| Some(tried.change) == first.change.control());
    let old = control.map_or(&changes.today_config, |control| &control.config);
    let checked = changes.tried.iter().filter(|tried| !tried.variants.is_empty()).count();
    assert_eq!(checked, ranking.len().min(5));
    let mean = |config: &SimConfig| {
        let experiment = Experiment::new(config.clone()).unwrap();
        let mut spec = experiment.spec.clone();
        for zone in &mut spec.zones {
            let (numerator, denominator) = zone.first_block.ratio();
            let half = (2 * numerator + denominator) % (2 * denominator);
            zone.first_block = Turn::from_ratio(half, 2 * denominator).unwrap();
        }
        experiment.on_drive(spec).unwrap().run().unwrap().response.mean_ns
    };
    let (old, new) = (mean(old), mean(&first.config));
    let there = first.variants.iter().find(|of| of.variant == start).unwrap();
    assert_eq!(there.effect.mean, (new - old) / old);
    assert_ne!(there.effect.mean, first.effect.mean, "another angle gives another result");
}

#[test]
fn changes_match_lone_experiments() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/recorded/sqlite-ext4.csv.zst");
    let trace = TraceWorkload { file: file.into(), ..TraceWorkload::default() };
    let options = StudyOptions { scrub: false, ..StudyOptions::new(trace, "exos-x24-24tb") };
    let study = study(&StudyOptions { policies: Vec::new(), ..options }, &|_| {}).unwrap();
    let changes = study.changes.as_ref().unwrap();
    let ranking = changes.ranking();
    let recommended = [ranking[0], ranking[ranking.len() - 1]];
    let together = changes.together.as_ref().unwrap();
    let all = recommended.map(|tried| (&tried.config, &tried.measured)).into_iter();
    let today = (&changes.today_config, &changes.today);
    for (config, measured) in all.chain([today, (&together.config, &together.measured)]) {
        // Through the text of a file, as a user runs it.
        let text = toml::to_string(config).unwrap();
        let config = SimConfig::parse(&text, "test", &[]).unwrap();
        let run = Experiment::new(config).unwrap().run().unwrap();
        assert_eq!(run.response, measured.response, "{text}");
        assert_eq!(run.read_response, measured.read_response, "{text}");
    }
}

#[test]
fn changes_goal_ranks_by_own_quantity() {
    let file = trace();
    let trace = TraceWorkload { file: file.path().into(), ..TraceWorkload::default() };
    for goal in [Goal::P99Reads, Goal::Throughput] {
        let options =
            StudyOptions { scrub: false, goal, ..StudyOptions::new(trace.clone(), "atlas10k") };
        let changes = study(&options, &|_| {}).unwrap().changes.unwrap();
        let value = |tried: &Tried| match goal {
            Goal::P99Reads => tried.effect.reads_p99,
            _ => tried.effect.drive_time,
        };
        assert!(changes.tried.iter().all(|tried| tried.effect.of(goal) == value(tried)));
        let surest: Vec<f64> = changes.tried.iter().map(|tried| tried.surest(goal)).collect();
        assert!(surest.is_sorted(), "{surest:?}");
    }
}

#[test]
fn changes_host_managed_excludes_write_buffers() {
    let mut file = tempfile::Builder::new().suffix(".csv").tempfile().unwrap();
    writeln!(file, "arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns").unwrap();
    let mut prng = Prng::new(1, "zones");
    for at in 0..300_u64 {
        writeln!(file, "{},R,{},4096,0,", at * 20_000_000, prng.below(1 << 20) * 4096).unwrap();
    }
    let trace = TraceWorkload { file: file.path().into(), ..TraceWorkload::default() };
    let options = StudyOptions { scrub: false, ..StudyOptions::new(trace, "ultrastar-hc620-14tb") };
    let changes = study(&options, &|_| {}).unwrap().changes.unwrap();
    assert!(changes.tried.iter().all(|tried| tried.change.part() != Part::WriteBuffer));
    assert!(changes.tried.len() > 10);
}

#[test]
fn changes_bare_mechanics_compared_with_other_drive() {
    let file = trace();
    let trace = TraceWorkload { file: file.path().into(), ..TraceWorkload::default() };
    let options = StudyOptions {
        scrub: false,
        electronics: false,
        goal: Goal::Throughput,
        ..StudyOptions::new(trace, "exos-x24-24tb")
    };
    let changes = study(&options, &|_| {}).unwrap().changes.unwrap();
    assert!(matches!(changes.variants[0], Variant::OtherDrive { .. }), "{:?}", changes.variants);
    let drive_time = |drives: u32| {
        let is_it = |tried: &&Tried| matches!(tried.change, Change::Stripe { drives: of, .. } if of == drives);
        changes.tried.iter().find(is_it).unwrap().effect.drive_time
    };
    assert!(drive_time(2) < -0.4 && drive_time(8) < -0.8, "{} {}", drive_time(2), drive_time(8));
}
