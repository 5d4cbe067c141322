//! Every parser over its saved fuzz corpus, and over seeded random mutations of it: it never
//! panics, always ends, and what it delivers is within the limits. `cargo fuzz run TARGET` in
//! `fuzz/` goes on from the same corpus with the same checks.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use freewheel_trace::Format;
use freewheel_units::Prng;

#[path = "../../../fuzz/src/lib.rs"]
mod fuzz;

/// What ends first ends the mutations of one parser.
const MUTATIONS_MAX: usize = 20_000;
const TIME_MAX: Duration = Duration::from_secs(1);
const SAMPLE_BYTES_MAX: usize = 8 << 10;
/// Values at which parsers of numbers go wrong.
const NASTY: [&[u8]; 10] = [
    b"18446744073709551615",
    b"18446744073709551616",
    b"-1",
    b"0",
    b".",
    b",",
    b"\n",
    b"\x00\x00\x00\x00",
    b"\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
];

fn corpus(format: Format) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(format.name().replace('-', "_"));
    let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = entries.collect();
    paths.sort();
    assert!(!paths.is_empty(), "no corpus in {}", folder.display());
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

fn below(prng: &mut Prng, bound: usize) -> usize {
    prng.below(bound as u64) as usize
}

/// One random edit: flip a bit, cut, double, or put something nasty in.
fn mutate(bytes: &mut Vec<u8>, prng: &mut Prng) {
    let at = below(prng, bytes.len() + 1);
    let end = at + below(prng, (bytes.len() - at).min(64) + 1);
    match prng.below(5) {
        0 if at < bytes.len() => bytes[at] ^= 1 << prng.below(8),
        1 => bytes.truncate(at),
        2 => drop(bytes.drain(at..end)),
        3 => bytes.extend_from_within(at..end),
        _ => {
            let nasty = NASTY[below(prng, NASTY.len())];
            drop(bytes.splice(at..end, nasty.iter().copied()));
        }
    }
    bytes.truncate(SAMPLE_BYTES_MAX);
}

fn check_corpus_and_mutations(format: Format) {
    let (corpus, started) = (corpus(format), Instant::now());
    corpus.iter().for_each(|sample| fuzz::check(sample, format));
    let mut prng = Prng::new(2026, format.name());
    for _ in 0..MUTATIONS_MAX {
        let mut sample = corpus[below(&mut prng, corpus.len())].clone();
        for _ in 0..=prng.below(4) {
            mutate(&mut sample, &mut prng);
        }
        fuzz::check(&sample, format);
        if started.elapsed() > TIME_MAX {
            break;
        }
    }
}

#[test]
fn every_format_has_a_fuzz_target() {
    let targets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/fuzz_targets");
    for format in Format::ALL {
        let target = targets.join(format!("{}.rs", format.name().replace('-', "_")));
        assert!(target.is_file(), "{} is missing", target.display());
    }
}

#[test]
fn freewheel_csv_survives_damage() {
    check_corpus_and_mutations(Format::FreewheelCsv);
}

#[test]
fn disksim_ascii_survives_damage() {
    check_corpus_and_mutations(Format::DisksimAscii);
}

#[test]
fn disksim_validate_survives_damage() {
    check_corpus_and_mutations(Format::DisksimValidate);
}

#[test]
fn heimdall_text_survives_damage() {
    check_corpus_and_mutations(Format::HeimdallText);
}

#[test]
fn msr_csv_survives_damage() {
    check_corpus_and_mutations(Format::MsrCsv);
}

#[test]
fn spc_survives_damage() {
    check_corpus_and_mutations(Format::Spc);
}

#[test]
fn hp_srt_survives_damage() {
    check_corpus_and_mutations(Format::HpSrt);
}

#[test]
fn vscsi_survives_damage() {
    check_corpus_and_mutations(Format::Vscsi);
}

#[test]
fn parquet_survives_damage() {
    check_corpus_and_mutations(Format::Parquet);
}
