//! G4 layouts at random: zones, bands, nested patterns, slips, spares and the noise of measured
//! skews. The oracle enumerates the blocks of the tree one by one.

use crate::common::G4 as Tables;
use freewheel_disksim::{ImportError, Imported, import};
use freewheel_model::drive::Drive;
use freewheel_units::{Lbn, Prng};

/// A model around a layout.
fn model(surfaces: i64, cylinders: i64, layout: &str) -> String {
    format!(
        "dm_disk SMALL {{\n\
         Number of data surfaces = {surfaces},\n\
         Number of cylinders = {cylinders},\n\
         Mechanical Model = dm_mech_g1 {{\n\
         Access time type = trackSwitchPlusRotation,\n\
         Seek type = constant, Constant seek time = 2.5,\n\
         Add. write settling delay = 0, Head switch time = 0.5,\n\
         Rotation speed (in rpms) = 10000, Percent error in rpms = 0.0 }},\n\
         Layout Model = {layout}\n\
         }}\n"
    )
}

fn read(surfaces: i64, cylinders: i64, layout: &str) -> Result<Imported, ImportError> {
    import(&[("small.model", &model(surfaces, cylinders, layout))], &|_| None)
}

/// In which order LBNs run over the tracks of a drive.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Order {
    Cylinders,
    /// Every other cylinder from the last head to the first.
    Serpentine,
    /// Bands of this width, every other head outwards or not.
    Bands {
        width: i64,
        turns: bool,
    },
}

/// An index of the tree as text, and how much one instance of it covers.
#[derive(Clone, Copy)]
struct Pattern {
    index: usize,
    lbns: i64,
    cylinders: i64,
    /// Millionths of a turn to the next instance.
    advance: i64,
}

/// A tree under construction.
struct Tree<'p> {
    prng: &'p mut Prng,
    surfaces: i64,
    order: Order,
    /// Millionths of a turn by which measured angles are off at most.
    noise: i64,
    tracks: Vec<[i64; 3]>,
    indices: Vec<String>,
}

impl Tree<'_> {
    fn up_to(&mut self, most: i64) -> i64 {
        self.prng.below(most as u64 + 1) as i64
    }

    fn measured(&mut self, micro: i64) -> String {
        let noise = self.up_to(2 * self.noise) - self.noise;
        format!("{:.6}", (micro + noise) as f64 / 1e6)
    }

    /// Kinds of tracks with the same number of sectors: the first, and how many.
    fn kinds(&mut self) -> (i64, i64) {
        let (first, sectors) = (self.tracks.len() as i64, 4 + self.up_to(16));
        let count = 1 + self.up_to(2);
        for _ in 0..count {
            let (low, behind) = (self.up_to(2) * self.up_to(1), self.up_to(2) * self.up_to(1));
            self.tracks.push([low, sectors - 1 - behind.min(sectors - 2 - low), sectors]);
        }
        (first, count)
    }

    /// Tracks of one cylinder, of two, or of a band.
    fn leaf(&mut self) -> Pattern {
        let (first, count) = self.kinds();
        let (head_skew, each) = (self.up_to(999_999), self.up_to(999_999));
        let (width, bands) = match self.order {
            Order::Cylinders => (1, 1),
            Order::Serpentine => (1, 2),
            Order::Bands { width, .. } => (width, 1),
        };
        let (mut entries, mut lbn, mut at) = (Vec::new(), 0, 0);
        for band in 0..bands {
            for nth in 0..self.surfaces {
                let head = if band == 1 { self.surfaces - 1 - nth } else { nth };
                let outwards =
                    matches!(self.order, Order::Bands { turns: true, .. }) && nth % 2 == 1;
                let (from, sign) = if outwards { (width - 1, -1) } else { (band, 1) };
                let kind = first + self.up_to(count - 1);
                let [low, high, sectors] = self.tracks[kind as usize];
                let data = high - low + 1;
                // The angle is that of the first sector with data.
                let angle = at + low * 1_000_000 / sectors;
                let (angle, each_shown) = (self.measured(angle), self.measured(each));
                entries.push(format!(
                    "{lbn}, {from}, {angle}, {data}, 1, {each_shown}, {}, {}, TRACK, {kind}, {head}",
                    data * width,
                    sign * width
                ));
                lbn += data * width;
                at += (width - 1) * each + head_skew;
            }
        }
        // Cylinders of a zone are one skew apart; half the advance is that of one.
        let advance = if bands == 2 { at } else { self.up_to(999_999) };
        self.push(&entries, lbn, width * bands, advance)
    }

    fn push(&mut self, entries: &[String], lbns: i64, cylinders: i64, advance: i64) -> Pattern {
        self.indices.push(format!("[ {} ]", entries.join(",\n")));
        Pattern { index: self.indices.len() - 1, lbns, cylinders, advance }
    }

    /// An entry that repeats a pattern, behind this many instances of it.
    fn repeat(&self, of: Pattern, [lbn, cylinder, angle]: [i64; 3], times: i64) -> String {
        format!(
            "{lbn}, {cylinder}, {:.6}, {}, {}, {:.6}, {}, {}, IDX, {}",
            angle as f64 / 1e6,
            of.lbns,
            of.cylinders,
            of.advance as f64 / 1e6,
            of.lbns * times,
            of.cylinders * times,
            of.index
        )
    }

    /// A pattern of one or two entries, each of which repeats the inner one.
    fn around(&mut self, inner: Pattern) -> Pattern {
        let first = 1 + self.up_to(2);
        let mut entries = vec![self.repeat(inner, [0, 0, 0], first)];
        let mut times = first;
        if self.prng.chance(0.5) {
            let at = [inner.lbns * times, inner.cylinders * times, inner.advance * times];
            entries.push(self.repeat(inner, at, 2));
            times += 2;
        }
        let [lbns, cylinders, advance] =
            [inner.lbns, inner.cylinders, inner.advance].map(|each| each * times);
        self.push(&entries, lbns, cylinders, advance)
    }

    /// Zones one after the other, and the cylinders and blocks they have.
    fn root(&mut self, zones: i64) -> (i64, i64) {
        let (mut entries, mut lbn, mut cylinder) = (Vec::new(), 0, 0);
        for _ in 0..zones {
            let mut pattern = self.leaf();
            for _ in 0..self.up_to(2) {
                pattern = self.around(pattern);
            }
            let times = 1 + self.up_to(2);
            let angle = self.up_to(999_999);
            entries.push(self.repeat(pattern, [lbn, cylinder, angle], times));
            lbn += pattern.lbns * times;
            cylinder += pattern.cylinders * times;
        }
        self.push(&entries, lbn, cylinder, 0);
        (cylinder, lbn)
    }

    fn slips(&mut self, blocks: i64) -> String {
        let mut pairs: Vec<(i64, i64)> =
            (0..self.up_to(5)).map(|_| (self.up_to(blocks), 1 + self.up_to(2))).collect();
        pairs.sort_unstable();
        let pairs: Vec<String> = pairs.iter().map(|(at, n)| format!("{at}, {n}")).collect();
        pairs.join(",\n")
    }

    fn text(&mut self, slips: &str) -> String {
        let tracks: Vec<String> =
            self.tracks.iter().map(|[low, high, all]| format!("{low}, {high}, {all}")).collect();
        format!(
            "dm_layout_g4 {{ TP = [ {} ],\nIDX = [ {} ],\nSlips = [ {slips} ], Remaps = [] }}",
            tracks.join(", "),
            self.indices.join(",\n")
        )
    }
}

struct Layout {
    surfaces: i64,
    cylinders: i64,
    text: String,
}

fn random(prng: &mut Prng, noise: i64) -> Layout {
    let width = 1 + prng.below(5) as i64;
    let order = match prng.below(3) {
        0 => Order::Cylinders,
        1 => Order::Serpentine,
        _ => Order::Bands { width, turns: prng.chance(0.5) },
    };
    let surfaces = 1 + prng.below(4) as i64;
    let mut tree = Tree { prng, surfaces, order, noise, tracks: Vec::new(), indices: Vec::new() };
    let zones = 1 + tree.up_to(3);
    let (cylinders, blocks) = tree.root(zones);
    // At most 15 blocks are slipped; some must remain.
    let slips = if blocks > 15 { tree.slips(blocks) } else { String::new() };
    Layout { surfaces, cylinders, text: tree.text(&slips) }
}

/// Compares block by block. Returns the farthest that a block is from its angle, in sectors.
fn compare(layout: &Layout, imported: &Imported) -> f64 {
    assert!(!imported.not_represented.iter().any(|lost| lost.name == "IDX"), "{}", layout.text);
    let drive = Drive::build(&imported.spec).unwrap_or_else(|e| panic!("{e}\n{}", layout.text));
    let blocks = Tables::new(&layout.text).blocks_one_by_one();
    assert_eq!(drive.blocks().get(), blocks.len() as u64, "{}", layout.text);
    let mut farthest = 0.0f64;
    for (lbn, block) in blocks.iter().enumerate() {
        let apart = block.apart(&drive, lbn as u64);
        let place = drive.layout().locate(Lbn::new(lbn as u64));
        assert_eq!(drive.layout().lbn_at(place), Some(Lbn::new(lbn as u64)));
        let zone =
            &drive.layout().zones()[drive.layout().zone_at(place.cylinder, place.surface).unwrap()];
        farthest = farthest.max(apart * f64::from(zone.blocks_per_track()));
    }
    farthest
}

/// The skews of single heads differ by up to this many millionths of a turn.
const NOISE: i64 = 5;

#[test]
fn g4_measured_skews_are_averaged_with_bound() {
    let mut prng = Prng::new(1, "measured");
    let mut averaged = 0;
    for _ in 0..1_000 {
        let layout = random(&mut prng, NOISE);
        let imported = read(layout.surfaces, layout.cylinders, &layout.text)
            .unwrap_or_else(|error| panic!("{error}\n{}", layout.text));
        let apart = compare(&layout, &imported);
        let note = imported.notes.iter().find(|note| note.contains("from their mean"));
        let Some(note) = note else {
            assert!(apart < 1e-4, "{apart} sectors\n{}", layout.text);
            continue;
        };
        let said = note.split("at most ").nth(1).unwrap().split(' ').next().unwrap();
        let said: f64 = said.parse().unwrap();
        assert!((said - apart).abs() < 1e-4, "{apart} sectors, not {said}\n{}", layout.text);
        averaged += 1;
    }
    assert!(averaged > 500, "{averaged}");
}

#[test]
fn g4_tree_places_blocks_as_enumerated() {
    let mut prng = Prng::new(1, "trees");
    for _ in 0..1_000 {
        let layout = random(&mut prng, 0);
        let imported = read(layout.surfaces, layout.cylinders, &layout.text)
            .unwrap_or_else(|error| panic!("{error}\n{}", layout.text));
        let apart = compare(&layout, &imported);
        // Angles have six decimals, and fronts are fractions of a track.
        assert!(apart < 1e-4, "{apart} sectors\n{}", layout.text);
    }
}

#[test]
fn track_drift_by_whole_turns_is_found() {
    // Over the band the heads part by two turns, so the last tracks are one turn from their mean.
    let layout = "dm_layout_g4 { TP = [ 0, 9, 10 ], IDX = [ [ \
        0, 0, 0.0, 10, 1, 0.00001, 1000010, 100001, TRACK, 0, 0, \
        1000010, 0, 0.0, 10, 1, 0.00003, 1000010, 100001, TRACK, 0, 1 ] ], \
        Slips = [], Remaps = [] }";
    let error = read(2, 100_001, layout).unwrap_err().to_string();
    assert!(error.contains("would begin 0.500000 turns, 5.0 sectors, from their place"), "{error}");
}
