//! A saved corpus, and seeded random damage to it, for the ordinary tests of fuzzed code.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use freewheel_units::Prng;

/// Limit of the damage to one corpus; the time may end it before.
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

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
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

/// Checks the samples of a target's corpus as they are, and then damaged.
pub fn check_corpus_and_mutations(target: &str, check: impl Fn(&[u8])) {
    let (corpus, started) = (corpus(target), Instant::now());
    corpus.iter().for_each(|sample| check(sample));
    let mut prng = Prng::new(2026, target);
    for _ in 0..MUTATIONS_MAX {
        let mut sample = corpus[below(&mut prng, corpus.len())].clone();
        for _ in 0..=prng.below(4) {
            mutate(&mut sample, &mut prng);
        }
        check(&sample);
        if started.elapsed() > TIME_MAX {
            break;
        }
    }
}
