//! Random samples of a served drive, by the verb.

use super::control::World;

/// Fills the first half of a drive by a client: the rest is zeros.
fn half_full(options: &str) -> World {
    let world = World::emulated(options);
    let mut client = world.client();
    for at in 0..world.blocks / 128 {
        client.write(at * 64 * 512, &[at as u8 | 1; 64 * 512]);
    }
    world
}

#[test]
fn complete_sample_estimates_zeros_with_interval() {
    let world = half_full("");
    let scan = "scan --promote --sample 20% --block-size 4KiB --sample-unit 8KiB";
    let document = world.json(scan);
    let report = &document["task"]["sample"];
    let drawn = report["drawn"].as_u64().unwrap();
    let population = report["population"].as_u64().unwrap();
    assert_eq!(population, (world.blocks * 512).div_ceil(8192));
    assert_eq!(drawn, (population as f64 * 0.2).round() as u64);
    for tenth in report["tenths"].as_array().unwrap() {
        assert_eq!(tenth["drawn_blocks"], tenth["delivered_blocks"]);
    }
    let zero = &document["sample"]["zero"];
    let [share, low, high] = ["share", "low", "high"].map(|key| zero[key].as_f64().unwrap());
    assert!(low < share && share < high && high - low < 0.2, "{zero}");
    // Five times the standard deviation of such a sample.
    assert!((share - 0.5).abs() < 5.0 * 0.5 / (drawn as f64).sqrt(), "{zero}");
    assert_eq!(document["sample"]["unreadable"]["share"], 0.0);
    assert!(document["sample"]["bias"].is_null());
    let again = world.json(&format!("{scan} --seed 1"));
    assert_eq!(again["sample"], document["sample"], "the same seed draws the same units");
    let other = world.json(&format!("{scan} --seed 2"));
    assert_ne!(other["task"]["sample"]["tenths"], report["tenths"]);
    let ran = world.verb(scan);
    assert!(ran.stdout.contains(" % of the blocks, 95 % interval "), "{}", ran.stdout);
    assert!(!ran.stdout.contains("by place"), "{}", ran.stdout);
}

#[test]
fn timed_out_sample_says_bias() {
    // Reading the bad block again and again takes longer than the sample has.
    let world = half_full("?bad=9000&recovery=2s");
    let scan = "scan --promote --sample 99% --for 2s";
    let ran = world.verb(scan);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let says = ["incomplete", "more than chance explains", "whatever the missing blocks are"];
    for words in says {
        assert!(ran.stdout.contains(words), "{words}: {}", ran.stdout);
    }
    assert!(ran.stdout.contains("unknown: of a tenth of the drive nothing has come"));
    let ran = world.verb("scan --sample 5% --detach --repeat");
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let ran = world.verb("scan --sample 5% --sample-unit 700B");
    assert!(ran.stderr.contains("sample.unit_bytes is 700: a multiple of"), "{}", ran.stderr);
}
