//! The curves of caches in words, as a page and as a document.

use std::io::Write;

use freewheel_report::CacheReport;
use freewheel_sim::config::TraceWorkload;
use freewheel_study::{
    CacheCurvesOptions, CacheSize, MissFit, PowerLaw, ResponseRuns, cache_curves,
};
use freewheel_units::{Bytes, Prng};

fn report(options: &CacheCurvesOptions) -> CacheReport {
    CacheReport::new(cache_curves(options, &|_| {}).unwrap())
}

fn options(file: &str) -> CacheCurvesOptions {
    let trace = TraceWorkload { file: file.into(), ..TraceWorkload::default() };
    CacheCurvesOptions::new(trace, "exos-x24-24tb")
}

const PGBENCH: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/recorded/pgbench-ext4.csv.zst");

/// Reads of these cache blocks, 20 ms apart, and what `change` makes of the options.
fn of_reads(
    blocks: impl Iterator<Item = u64>,
    change: impl Fn(&mut CacheCurvesOptions),
) -> CacheReport {
    of_reads_apart(20_000_000, blocks, change)
}

fn of_reads_apart(
    gap_ns: u64,
    blocks: impl Iterator<Item = u64>,
    change: impl Fn(&mut CacheCurvesOptions),
) -> CacheReport {
    let mut text = String::from("arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns\n");
    for (at, block) in (0u64..).zip(blocks) {
        text += &format!("{},R,{},4096,0,\n", at * gap_ns, block * 4096);
    }
    let mut file = tempfile::Builder::new().suffix(".csv").tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let mut options = options(file.path().to_str().unwrap());
    options.policies.truncate(1);
    change(&mut options);
    report(&options)
}

fn kib(count: u64) -> CacheSize {
    CacheSize::Memory(Bytes::from_kib(count))
}

#[test]
fn cache_report_of_recorded_load() {
    let text = report(&options(PGBENCH)).text();
    assert!(text.lines().count() < 25, "{text}");
    insta::assert_snapshot!("caches", text);
}

#[test]
fn cache_report_states_lru_exponent() {
    let law = PowerLaw {
        factor: 80.0,
        offset_mib: -2.0,
        exponent: -0.3187,
        exponent_error: 0.0021,
        distance: 0.4,
    };
    let mut curves = of_reads((0..400).map(|at| at % 50), |_| {}).curves;
    // A loop misses everything below its length.
    assert_eq!(curves.lru_fit, Some(MissFit::Flat));
    let said = |curves| {
        let report = CacheReport::new(curves);
        [report.text(), report.html(), serde_json::to_string(&report).unwrap()]
    };
    curves.lru_fit = Some(MissFit::PowerLaw(law));
    let law = said(curves);
    let sentence = "LRU's misses follow a power law of the size: exponent -0.319 \u{b1} 0.002.";
    assert!(law.iter().all(|said| said.contains(sentence)), "{law:?}");
    assert!(law[2].contains("\"exponent\":-0.3187"), "{}", law[2]);
    let flat = said(of_reads((0..400).map(|at| at % 50), |_| {}).curves);
    assert!(flat.iter().all(|said| said.contains("they fall by less than 1 point")), "{flat:?}");
}

#[test]
fn cache_report_unrepeated_reads_need_none() {
    let report = of_reads((0..400).map(|at| at * 1000), |_| {});
    let words = &report.conclusions;
    assert!(words.headline.starts_with("No cache of up to 2 MiB lowers"), "{words:?}");
    assert!(!words.details.iter().any(|detail| detail.contains("halve")), "{words:?}");
}

#[test]
fn cache_report_loop_needs_all_memory() {
    let of = |sizes: &[u64]| {
        let change = |options: &mut CacheCurvesOptions| {
            options.sizes = sizes.iter().copied().map(kib).collect();
            options.responses = ResponseRuns::None;
        };
        of_reads((0..4_000).map(|at| at % 100), change).conclusions.headline
    };
    let cut = "400 KiB of LRU cut the share of reads that miss by 100 % (100.0 % -> 0.0 %)";
    assert_eq!(of(&[40, 400]), format!("{cut}; that holds the whole footprint."));
    assert!(of(&[40, 396]).starts_with("No cache of up to 396 KiB lowers"), "{}", of(&[40, 396]));
}

#[test]
fn cache_report_small_gains_say_so() {
    // Of four reads one comes again, 16 to 4,096 reads later.
    let mut prng = Prng::new(3, "caches");
    let block = move |at: u64| match at % 4 {
        3 => at.saturating_sub(16 << prng.below(9)),
        _ => at,
    };
    let report = of_reads((0..20_000).map(block), |options| {
        options.sizes = [16, 64, 256, 1024, 4096, 16_384].map(kib).into();
        options.responses = ResponseRuns::None;
    });
    let headline = &report.conclusions.headline;
    assert!(headline.ends_with("in small steps: no doubling gains 5 %."), "{headline}");
    assert!(headline.starts_with("16 MiB of LRU cut"), "{headline}");
}

#[test]
fn cache_report_falling_curve_asks_larger_sizes() {
    let mut prng = Prng::new(5, "caches");
    let report = of_reads((0..20_000).map(|_| prng.below(5_000)), |options| {
        options.sizes = [1024, 2048, 4096].map(kib).into();
        options.responses = ResponseRuns::None;
    });
    let headline = &report.conclusions.headline;
    assert!(headline.ends_with("gained 5 % or more, so try larger sizes."), "{headline}");
}

#[test]
fn cache_report_sample_shows_error() {
    let mut options = options(PGBENCH);
    options.sample = Some("20%".parse().unwrap());
    options.responses = ResponseRuns::None;
    let report = report(&options);
    let text = report.text();
    assert!(text.contains("from a sample of 20%") && text.contains(" ±"), "{text}");
    let json = serde_json::to_value(&report).unwrap();
    let first = &json["curves"][0]["miss_ratios"][0];
    assert!(first.get("requests").is_none() && first["standard_error"].is_number(), "{first}");
    assert!(!report.html().contains("Misses by byte"));
}

#[test]
fn cache_report_page_has_four_pictures() {
    let report = report(&options(PGBENCH));
    let html = report.html();
    assert_eq!(html.matches("<svg").count(), 4);
    for title in ["reads that miss, %", "bytes that miss, %", "mean, ms", "99th percentile, ms"] {
        assert!(html.contains(&format!("<figcaption>{title}</figcaption>")), "{title}");
    }
    // Seven policies twice, LRU and the best other twice.
    assert_eq!(html.matches("<polyline").count(), 2 * 7 + 2 * 2);
    assert!(!html.contains("href") && !html.contains("src="), "{html}");
    assert!(html.contains("prefers-color-scheme: dark"));
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["responses"]["kind"], "simulated");
    assert_eq!(json["advice"]["measure"], "mean-read-response-ns");
    assert_eq!(json["headline"], report.conclusions.headline);
}

#[test]
fn cache_report_untimed_trace_lacks_responses() {
    let mut file = tempfile::Builder::new().suffix(".lis").tempfile().unwrap();
    let lines: String = (0..300).map(|at| format!("{} 1 0 {at}\n", at * 7 % 50)).collect();
    file.write_all(lines.as_bytes()).unwrap();
    let report = report(&options(file.path().to_str().unwrap()));
    let why = "No response times: the trace, in the format arc-lis, has no times";
    assert!(report.text().contains(why) && report.html().contains(why), "{}", report.text());
    assert_eq!(report.html().matches("<svg").count(), 1, "by byte is as by request");
}

#[test]
fn cache_report_few_reads_no_advice() {
    let text = of_reads((0..100).map(|at| at % 7), |_| {}).text();
    assert!(text.contains("Only 57 reads count: a hint, no advice."), "{text}");
}

#[test]
fn cache_report_names_drive_falling_behind() {
    let far = |at: u64| at * 7_919 % 1_000_003;
    let queue = "The drive without a cache cannot keep up";
    let text = |gap_ns| of_reads_apart(gap_ns, (0..2_000).map(far), |_| {}).text();
    assert!(text(200_000).contains(queue), "{}", text(200_000));
    assert!(!text(50_000_000).contains(queue), "{}", text(50_000_000));
}
