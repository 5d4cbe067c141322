//! The importer on small texts: every seek type, every sparing scheme, G4 trees, malformed files.

use crate::common::G4 as Tables;
use freewheel_disksim::{ImportCause, ImportError, Imported, Parameter, import};
use freewheel_model::drive::Drive;
use freewheel_model::drive::spec::{CurveSpec, Mapping};
use freewheel_model::electronics::spec::WriteCache;
use freewheel_model::sched::PolicySpec;
use freewheel_units::{Lbn, Op, Prng, SimDuration};

const CONSTANT: &str = "Seek type = constant, Constant seek time = 2.5";

/// A drive of 2 surfaces and 4 cylinders with this layout.
fn model(seek: &str, settle: &str, layout: &str) -> String {
    format!(
        "dm_disk SMALL {{\n\
         Number of data surfaces = 2,\n\
         Number of cylinders = 4,\n\
         Block count = 80,\n\
         Mechanical Model = dm_mech_g1 {{\n\
         Access time type = trackSwitchPlusRotation,\n\
         {seek},\n\
         Add. write settling delay = {settle},\n\
         Head switch time = 0.5,\n\
         Rotation speed (in rpms) = 10000,\n\
         Percent error in rpms = 0.0 }},\n\
         Layout Model = {layout}\n\
         }} # end\n"
    )
}

/// One zone of 8 tracks of 10 blocks.
fn g1(scheme: u32, spares: u32, slips: &str, defects: &str) -> String {
    format!(
        "dm_layout_g1 {{ LBN-to-PBN mapping scheme = 0, Sparing scheme used = {scheme},\n\
         Rangesize for sparing = 2, Zones = [ dm_layout_g1_zone {{ # the only one\n\
         First cylinder number = 0, Last cylinder number = 3, Blocks per track = 10,\n\
         Offset of first block = 1.0, Empty space at zone front = 0,\n\
         Skew for track switch = 2.5, Skew for cylinder switch = 3,\n\
         Number of spares = {spares}, slips = [ {slips} ], defects = [ {defects} ], }}, ] }}"
    )
}

fn read(text: &str) -> Result<Imported, ImportError> {
    import(&[("small.model", text)], &|name| {
        (name == "small.seek").then(|| "Seek distances measured: 2\n1, 1.5\n3, 2.5, 0.1\n".into())
    })
}

fn imported(text: &str) -> Imported {
    read(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn seek_times(seek: &str) -> [f64; 3] {
    let imported = imported(&model(seek, "0.25", &g1(9, 1, "", "")));
    let drive = Drive::build(&imported.spec).unwrap();
    [1, 2, 3].map(|distance| drive.seek().time_ns(Op::Read, distance, false) as f64 / 1e6)
}

#[test]
fn seek_types_follow_formulas() {
    assert_eq!(seek_times(CONSTANT), [2.5, 2.5, 2.5]);
    let points =
        "Single cylinder seek time = 1.0, Average seek time = 2.0, Full strobe seek time = 3.0";
    // A third of 4 cylinders is 1, so the line goes from one cylinder to all.
    assert_eq!(seek_times(&format!("Seek type = linear, {points}")), [1.0, 2.0, 3.0]);
    let [single, _, full] = seek_times(&format!("Seek type = curve, {points}"));
    assert!((single - 1.0).abs() < 1e-6 && (2.5..3.1).contains(&full), "{single} {full}");
    let hpl = "HPL seek equation values = [ 3, 1.0, 1.0, 2.0, 0.5, 1.25 ]";
    let root = 2.414_214;
    assert_eq!(seek_times(&format!("Seek type = hpl, {hpl}")), [1.25, root, 3.5]);
    let without = hpl.replace("1.25", "-1");
    assert_eq!(seek_times(&format!("Seek type = hpl, {without}")), [2.0, root, 3.5]);
    let ten = "First ten seek times = [1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2.0]";
    assert_eq!(seek_times(&format!("Seek type = hplplus10, {hpl}, {ten}")), [1.1, 1.2, 1.3]);
    let file = "Seek type = extracted, Full seek curve = small.seek";
    assert_eq!(seek_times(file), [1.5, 2.0, 2.5]);
}

#[test]
fn negative_settling_delay_lowers_write_curve() {
    let imported = imported(&model(CONSTANT, "-0.5", &g1(9, 1, "", "")));
    let drive = Drive::build(&imported.spec).unwrap();
    assert_eq!(drive.seek().time_ns(Op::Read, 2, false), 2_500_000);
    assert_eq!(drive.seek().time_ns(Op::Write, 2, false), 2_000_000);
    let settling = |lost: &&Parameter| lost.name == "Add. write settling delay";
    let lost = imported.not_represented.iter().find(settling).unwrap();
    assert_eq!(lost.value, "-0.5");
}

/// Sector counted from the start of the zone for every LBN.
fn positions(layout: &str) -> Vec<u32> {
    let imported = imported(&model(CONSTANT, "0", layout));
    let drive = Drive::build(&imported.spec).unwrap();
    let place = |lbn| drive.layout().locate(Lbn::new(lbn));
    let position = |lbn| place(lbn).cylinder * 20 + place(lbn).surface * 10 + place(lbn).sector;
    (0..drive.blocks().get()).map(position).collect()
}

/// All positions but these.
fn without(left_out: impl Fn(u32) -> bool) -> Vec<u32> {
    (0..80).filter(|position| !left_out(*position)).collect()
}

#[test]
fn sparing_schemes_leave_out_spares_and_slips() {
    assert_eq!(positions(&g1(0, 3, "5", "")), without(|_| false), "0: no sparing");
    let scheme = |number, spares, slips| positions(&g1(number, spares, slips, ""));
    assert_eq!(scheme(1, 2, ""), without(|p| p >= 60), "1: two tracks");
    assert_eq!(scheme(1, 2, "3"), without(|p| p / 10 == 3 || p >= 70), "1: track 3 slipped");
    assert_eq!(
        scheme(2, 3, "5"),
        without(|p| if p < 20 { p == 5 || p >= 18 } else { p % 20 >= 17 })
    );
    assert_eq!(scheme(3, 1, "15"), without(|p| if p / 10 == 1 { p == 15 } else { p % 10 == 9 }));
    // A slip to the end of the zone leaves the spares where they are.
    assert_eq!(scheme(4, 2, "5"), without(|p| p % 20 >= 18 || p == 5));
    assert_eq!(scheme(5, 2, ""), without(|p| p % 20 < 2));
    assert_eq!(scheme(6, 2, "5"), without(|p| p % 20 < 2 || p == 5));
    assert_eq!(scheme(7, 4, "5"), without(|p| p == 5), "7: no spares, slips to the end");
    assert_eq!(scheme(8, 3, "5"), without(|p| if p < 40 { p == 5 || p >= 38 } else { p >= 77 }));
    assert_eq!(scheme(9, 3, "5"), without(|p| p == 5 || p >= 78));
    assert_eq!(
        scheme(10, 3, "5"),
        without(|p| p == 5 || p >= 77),
        "10: less data, not less spares"
    );
}

/// By how many sectors more than without slips each track of the zone is turned.
fn turned_by_slips(scheme: u32, spares: u32) -> [u32; 8] {
    let starts = |slips: &str| {
        let imported = imported(&model(CONSTANT, "0", &g1(scheme, spares, slips, "")));
        assert!(!imported.not_represented.iter().any(|lost| lost.name == "slips"));
        let drive = Drive::build(&imported.spec).unwrap();
        [0, 1, 2, 3, 4, 5, 6, 7]
            .map(|track| drive.layout().track_start(track / 2, track % 2).unwrap())
    };
    let (with, without) = (starts("5, 25"), starts(""));
    let sectors = |track: usize| ((with[track] - without[track]).turns() * 10.0).round() as u32;
    [0, 1, 2, 3, 4, 5, 6, 7].map(sectors)
}

#[test]
fn slips_turn_later_tracks_like_disksim() {
    for scheme in [2, 4, 6] {
        assert_eq!(turned_by_slips(scheme, 2), [0, 0, 1, 1, 2, 2, 2, 2], "{scheme}");
    }
    assert_eq!(turned_by_slips(3, 1), [0, 1, 1, 2, 2, 2, 2, 2]);
    for scheme in [7, 8, 9, 10] {
        assert_eq!(turned_by_slips(scheme, 2), [0; 8], "{scheme}");
    }
}

#[test]
fn slips_in_serpentine_cylinders_are_listed() {
    let layout = g1(3, 1, "5", "").replace("scheme = 0", "scheme = 1");
    let imported = imported(&model(CONSTANT, "0", &layout));
    let lost = imported.not_represented.iter().find(|lost| lost.name == "slips").unwrap();
    assert!(lost.why.contains("in the order of heads"), "{}", lost.why);
}

#[test]
fn remapped_sectors_stand_at_spares() {
    let sector = positions(&g1(9, 3, "", "7, 78, 9, 9"));
    assert_eq!((sector[7], sector[9]), (78, 9));
    let track = positions(&g1(1, 2, "", "2, 7"));
    assert_eq!((track[19], track[20], track[29], track[30]), (19, 70, 79, 30));
}

#[test]
fn skews_are_exact_parts_of_turn() {
    let zone = imported(&model(CONSTANT, "0", &g1(9, 1, "", ""))).spec.zones.remove(0);
    let shown = |zone: &freewheel_model::drive::spec::ZoneSpec| {
        [zone.first_block, zone.track_skew, zone.cylinder_skew].map(|turn| turn.to_string())
    };
    assert_eq!(shown(&zone), ["1/10", "1/4", "3/10"]);
    let turns = g1(9, 1, "", "").replace("Rangesize", "Skew units = revolutions, Rangesize");
    let zone = imported(&model(CONSTANT, "0", &turns)).spec.zones.remove(0);
    assert_eq!(shown(&zone), ["0/1", "1/2", "0/1"]);
}

/// Two surfaces, cylinders filled one by one: a G4 tree of one index a cylinder.
const G4: &str = "dm_layout_g4 { TP = [ 0, 9, 10, 0, 7, 8, ], IDX = [\n\
    [ 0, 0, 0.0, 10, 1, 0.0, 10, 1, TRACK, 0, 0,\n\
      10, 0, 0.2, 10, 1, 0.0, 10, 1, TRACK, 0, 1 ],\n\
    [ 0, 0, 0.0, 8, 1, 0.0, 8, 1, TRACK, 1, 0,\n\
      8, 0, 0.2, 8, 1, 0.0, 8, 1, TRACK, 1, 1 ],\n\
    [ 0, 0, 0.0, 20, 1, 0.5, 40, 2, IDX, 0,\n\
      40, 2, 0.0, 16, 1, 0.5, 32, 2, IDX, 1 ] ],\n\
    Slips = [], Remaps = [] }";

#[test]
fn g4_tree_filling_by_cylinder_is_exact() {
    let imported = imported(&model(CONSTANT, "0", G4));
    let spec = &imported.spec;
    assert_eq!((spec.mapping, spec.zones.len()), (Mapping::Cylinder, 2));
    assert_eq!(spec.zones[1].first_cylinder, 2);
    let drive = Drive::build(spec).unwrap();
    assert_eq!(drive.blocks().get(), 72);
    (0..72).for_each(|lbn| Tables::new(G4).check(&drive, lbn));
    // The second cylinder begins half a turn on: 0.2 for the head and 0.3 for the rest.
    let degrees = |cylinder, surface| {
        let start = drive.layout().track_start(cylinder, surface).unwrap();
        (f64::from(start.steps()) * 360.0 / 2f64.powi(32)).round()
    };
    assert_eq!(
        [degrees(0, 0), degrees(0, 1), degrees(1, 0), degrees(1, 1)],
        [0.0, 72.0, 180.0, 252.0]
    );
    assert!(!imported.not_represented.iter().any(|lost| lost.name == "IDX"));
}

#[test]
fn g4_tree_beyond_zones_is_refused() {
    let fails = |from: &str, to: &str| {
        assert!(G4.contains(from), "{from}");
        read(&model(CONSTANT, "0", &G4.replace(from, to))).unwrap_err().to_string()
    };
    let error = fails("Slips = []", "Slips = [3, 1, 5]");
    assert!(error.starts_with("small.model:19: `Slips` has 3 numbers"), "{error}");
    let error = fails("TRACK, 0, 1 ]", "TRACK, 0, 0 ]");
    assert!(error.contains("small.model:13: head 0 has blocks twice on cylinder 0"), "{error}");
    let error = fails(
        "10, 0, 0.2, 10, 1, 0.0, 10, 1, TRACK, 0, 1 ]",
        "10, 1, 0.2, 10, 1, 0.0, 10, 1, TRACK, 0, 1 ]",
    );
    assert!(error.contains("`IDX` has no track on head 1 of cylinder 0"), "{error}");
    let error = fails("40, 2, 0.0", "41, 2, 0.0");
    assert!(error.starts_with("small.model:15: the run begins at LBN 41"), "{error}");
    assert!(fails("IDX, 1 ]", "IDX, 2 ]").contains("nest deeper than 16"));
    assert!(fails("IDX, 1 ]", "IDX ]").contains("ends early"));
    assert!(fails("40, 2, IDX", "40, 3, IDX").contains("not equally many steps"));
    assert!(fails("TP = [ 0,", "TP = [ 12,").contains("a track from sector 12 to 9"));
}

#[test]
fn g4_slip_leaves_block_out() {
    let place = |slips: &str, lbn: u64| {
        let text = G4.replace("Slips = []", &format!("Slips = [ {slips} ]"));
        let drive = Drive::build(&imported(&model(CONSTANT, "0", &text)).spec).unwrap();
        let at = drive.layout().locate(Lbn::new(lbn));
        (drive.blocks().get(), at.cylinder, at.surface, at.sector)
    };
    // The tree has 10 blocks on a track, 20 on a cylinder, 72 in all.
    assert_eq!(place("3, 1", 2), (71, 0, 0, 2));
    assert_eq!(place("3, 1", 3), (71, 0, 0, 4));
    assert_eq!(place("3, 1", 70), (71, 3, 1, 7));
    assert_eq!(
        place("0, 2, 9, 3", 7),
        (67, 0, 1, 2),
        "the second slip begins at block 9 of the tree"
    );
    assert_eq!(place("3, 2, 4, 1", 3), (69, 0, 0, 6), "a slip within another comes behind it");
    assert_eq!(place("71, 5", 70), (71, 3, 1, 6), "the tree ends before the slip does");
}

#[test]
fn impossible_slips_are_listed_or_reordered() {
    let read = |slips: &str| {
        let text = G4.replace("Slips = []", &format!("Slips = [ {slips} ]"));
        imported(&model(CONSTANT, "0", &text))
    };
    let negative = read("3, 1, 40, -1");
    assert_eq!(negative.spec.zones[0].slips, [3]);
    let lost = negative.not_represented.iter().find(|lost| lost.name == "Slips").unwrap();
    assert!(lost.why.contains("two blocks one place"), "{}", lost.why);
    let turned = read("30, 1, 3, 1");
    assert_eq!(turned.spec.zones[0].slips, [3, 30]);
    assert!(turned.notes.iter().any(|note| note.contains("does not ascend")));
    assert!(!read("3, 1, 30, 1").notes.iter().any(|note| note.contains("does not ascend")));
}

#[test]
fn heads_of_different_densities_are_named() {
    let uneven = G4.replace("TRACK, 0, 1 ]", "TRACK, 1, 1 ]").replace(
        "10, 0, 0.2, 10, 1, 0.0, 10, 1, TRACK, 1, 1 ]",
        "10, 0, 0.2, 8, 1, 0.0, 8, 1, TRACK, 1, 1 ]",
    );
    let uneven = uneven
        .replace("0, 0, 0.0, 20, 1, 0.5, 40, 2, IDX, 0", "0, 0, 0.0, 18, 1, 0.5, 36, 2, IDX, 0")
        .replace("40, 2, 0.0, 16, 1, 0.5, 32, 2, IDX, 1", "36, 2, 0.0, 16, 1, 0.5, 32, 2, IDX, 1");
    let error = read(&model(CONSTANT, "0", &uneven)).unwrap_err();
    assert_eq!(error.cause, ImportCause::UnevenHeads);
    assert!(
        error.message.starts_with(
            "heads have different blocks per track on cylinders 0 to 1: head 0 has 10, head 1 has 8;"
        ),
        "{error}"
    );
}

/// Two heads of 20 cylinders and 100 sectors a track, one inwards and one outwards.
fn two_heads(second_skew: &str) -> String {
    let layout = format!(
        "dm_layout_g4 {{ TP = [ 0, 99, 100 ], IDX = [\n\
         [ 0, 0, 0.0, 100, 1, 0.14, 2000, 20, TRACK, 0, 0,\n\
         2000, 19, 0.8, 100, 1, {second_skew}, 2000, -20, TRACK, 0, 1 ],\n\
         [ 0, 0, 0.0, 4000, 20, 0.6, 8000, 40, IDX, 0 ] ] }}"
    );
    model(CONSTANT, "0", &layout).replace("cylinders = 4", "cylinders = 40")
}

#[test]
fn head_skews_within_millionths_are_averaged() {
    let measured = imported(&two_heads("0.140003"));
    let zone = &measured.spec.zones[0];
    assert_eq!(zone.cylinder_skew.to_string(), "140001500/1000000000");
    // 19 cylinders at 1.5 millionths: 28.5 millionths of 100 sectors.
    let note = "1 of 1 zones: skews that differ by up to 1.500 millionths of a turn from their mean are \
                taken for that mean; a track begins at most 0.0029 sectors from its angle in the file";
    assert!(measured.notes.iter().any(|found| found == note), "{:?}", measured.notes);
    let exact = imported(&two_heads("0.14"));
    assert_eq!(exact.spec.zones[0].cylinder_skew.to_string(), "140000000/1000000000");
    assert!(!exact.notes.iter().any(|found| found.contains("mean")));
}

#[test]
fn head_skews_within_half_sector_are_averaged() {
    // 19 cylinders at half the difference of 0.0005 are 0.475 sectors, of 0.00053 more than half.
    assert!(read(&two_heads("0.1405")).is_ok());
    let error = read(&two_heads("0.14053")).unwrap_err();
    assert_eq!(error.cause, ImportCause::Unrepresentable);
    assert!(error.message.contains("differ by up to 0.000265 turns"), "{error}");
    assert!(error.message.contains("0.5 sectors, from their place"), "{error}");
    assert!(!error.message.contains("missing"), "{error}");
}

#[test]
fn zone_beyond_stated_cylinders_is_noted() {
    let layout = g1(9, 1, "", "").replace("Last cylinder number = 3", "Last cylinder number = 4");
    let imported = imported(&model(CONSTANT, "0", &layout));
    assert_eq!((imported.spec.cylinders, imported.spec.zones[0].last_cylinder), (5, 4));
    let note = "small.model:3: `Number of cylinders` is 4, but a zone ends at cylinder 4, counted from 0: \
                5 cylinders are taken, as the zones hold the blocks";
    assert!(imported.notes.iter().any(|found| found == note), "{:?}", imported.notes);
}

#[test]
fn values_outside_range_are_listed() {
    let imported = imported(&disk(
        "Number of buffer segments = 2, Segment size (in blks) = 8,\
         Read-ahead over requested = -1, Fast write level = 7, Combine seq writes = 2,\
         Buffer continuous read = -3",
    ));
    let why = |name: &str| {
        let lost = imported.not_represented.iter().find(|lost| lost.name == name);
        lost.unwrap_or_else(|| panic!("{name}")).why.clone()
    };
    let buffer = imported.spec.electronics.buffer.as_ref().unwrap();
    assert!(!buffer.keep_requested && buffer.combine_sequential_writes);
    assert_eq!(buffer.write_cache, WriteCache::On);
    assert!(why("Read-ahead over requested").contains("goes when the read is complete"));
    assert_eq!(why("Fast write level"), "0 to 2 is expected; 2 is taken");
    assert_eq!(why("Combine seq writes"), "0 to 1 is expected; 1 is taken");
    assert_eq!(why("Buffer continuous read"), "0 to 4 is expected; 0 is taken");
}

#[test]
fn missing_files_are_all_named() {
    let parv = "source a.diskspecs\nsource b.diskspecs\n";
    let specs = "disksim_disk D { Model = source a.model }";
    let model = model("Seek type = extracted, Full seek curve = a.seek", "0", "source a.layout");
    let given = [("x.parv", parv), ("a.diskspecs", specs), ("a.model", &*model)];
    let error = import(&given, &|_| None).unwrap_err();
    let ImportCause::Missing { names } = &error.cause else { panic!("{error}") };
    assert_eq!(names, &["a.layout", "a.seek", "b.diskspecs"]);
    assert_eq!(
        error.to_string(),
        "a.model:12: `a.layout` is needed and neither among the given files nor found beside them; \
         also missing: `a.seek`, `b.diskspecs`"
    );
    // A curve that the seek type does not use is not missed.
    let other =
        model.replace("Seek type = extracted", "Seek type = constant, Constant seek time = 1");
    let error = import(&[("a.model", &*other)], &|_| None).unwrap_err();
    assert_eq!(error.cause, ImportCause::Missing { names: vec!["a.layout".into()] });
}

#[test]
fn file_of_other_kind_holds_no_drive() {
    let cause = |text: &str| import(&[("x.parv", text)], &|_| None).unwrap_err().cause;
    assert_eq!(cause("0.0 R 5 8\n1.0 W 6 8\n"), ImportCause::NoDrive);
    assert_eq!(cause("disksim_global G { Init Seed = 42 }"), ImportCause::NoDrive);
    assert_eq!(cause("disksim_global G { Init Seed 42 }"), ImportCause::Malformed);
}

/// Cylinders of bands and of the drive, surfaces, and which orders are serpentine.
struct Bands {
    width: i64,
    cylinders: i64,
    surfaces: i64,
    cylinders_turn: bool,
    surfaces_turn: bool,
}

impl Bands {
    fn random(prng: &mut Prng) -> Self {
        let width = 1 + prng.below(5) as i64;
        Self {
            width,
            cylinders: width * prng.below(5) as i64 + 1 + prng.below(width as u64) as i64,
            surfaces: 1 + prng.below(4) as i64,
            cylinders_turn: prng.chance(0.5),
            surfaces_turn: prng.chance(0.5),
        }
    }

    /// A G4 tree with one run a head and band on tracks of 1 spare and 9 sectors of data, with a
    /// different skew after every band.
    fn tree(&self, prng: &mut Prng) -> String {
        let mut micro = || prng.below(1_000_000) as i64;
        let (each, head_skew) = (micro(), micro());
        let (mut runs, mut lbn, mut at) = (Vec::new(), 0, micro());
        for (band, first) in (0..self.cylinders).step_by(self.width as usize).enumerate() {
            let width = self.width.min(self.cylinders - first);
            for nth in 0..self.surfaces {
                let head =
                    if self.surfaces_turn && band % 2 == 1 { self.surfaces - 1 - nth } else { nth };
                let (from, sign) = if self.cylinders_turn && nth % 2 == 1 {
                    (first + width - 1, -1)
                } else {
                    (first, 1)
                };
                let (turns, lbns) = (at as f64 / 1e6, 9 * width);
                runs.push(format!(
                    "{lbn}, {from}, {turns:.6}, 9, 1, {:.6}, {lbns}, {}, TRACK, 0, {head}",
                    each as f64 / 1e6,
                    sign * width
                ));
                lbn += lbns;
                let skew = if nth + 1 < self.surfaces { head_skew } else { micro() };
                at = (at + (width - 1) * each + skew) % 1_000_000;
            }
        }
        format!(
            "dm_layout_g4 {{ TP = [ 1, 9, 10 ], IDX = [ [ {} ],\n\
             [ 0, 0, 0.25, {lbn}, {n}, 0.0, {lbn}, {n}, IDX, 0 ] ] }}",
            runs.join(",\n"),
            n = self.cylinders
        )
    }
}

#[test]
fn g4_tree_in_bands_places_by_tables() {
    let mut prng = Prng::new(1, "bands");
    for _ in 0..300 {
        let bands = Bands::random(&mut prng);
        let tree = bands.tree(&mut prng);
        let text = model(CONSTANT, "0", &tree)
            .replace("surfaces = 2", &format!("surfaces = {}", bands.surfaces))
            .replace("cylinders = 4", &format!("cylinders = {}", bands.cylinders));
        let imported = imported(&text);
        assert!(!imported.not_represented.iter().any(|lost| lost.name == "IDX"), "{tree}");
        let drive = Drive::build(&imported.spec).unwrap();
        let tables = Tables::new(&tree);
        assert_eq!(drive.blocks().get() as i64, tables.blocks());
        (0..drive.blocks().get()).for_each(|lbn| tables.check(&drive, lbn));
    }
}

#[test]
fn g4_order_without_mapping_is_listed() {
    // The heads of the first zone the other way round.
    let turned = G4
        .replacen("TRACK, 0, 0,", "TRACK, 0, 9,", 1)
        .replacen("TRACK, 0, 1 ]", "TRACK, 0, 0 ]", 1)
        .replacen("TRACK, 0, 9,", "TRACK, 0, 1,", 1);
    let imported = imported(&model(CONSTANT, "0", &turned));
    let lost = imported.not_represented.iter().find(|lost| lost.name == "IDX").unwrap();
    assert!(lost.why.contains("up to 0 cylinders from its place"), "{}", lost.why);
    assert_eq!(imported.spec.mapping, Mapping::Cylinder);
    assert_eq!(Drive::build(&imported.spec).unwrap().blocks().get(), 72);
}

/// A disk with the electronics around a model.
fn disk(parameters: &str) -> String {
    let model = model(CONSTANT, "0", &g1(9, 1, "", "")).replace(" # end", "");
    format!("disksim_disk D {{ Model = {model}, {parameters} }}\ninstantiate [ d0 .. d3 ] as D\n")
}

#[test]
fn electronics_are_scaled_or_listed() {
    let text = disk(
        "Per-request overhead time = 0.1, Time scale for overheads = 2.0,\n\
         Bulk sector transfer time = -0.015, Fast write level = 1, Immediate buffer read = 1,\n\
         Number of buffer segments = 4, Maximum number of write segments = 2,\n\
         Segment size (in blks) = 64, Read hit over. after write = 0.3,\n\
         High (read) water mark = 1.0, Set watermark by reqsize = 1, Preseeking level = 2,\n\
         Hold bus entire read xfer = 0, Something new = [ 1, 2 ],\n\
         Scheduler = disksim_ioqueue { Scheduling policy = 4, Sequential stream scheme = 3 }",
    );
    let imported = imported(&text);
    let (spec, electronics) = (&imported.spec, &imported.spec.electronics);
    assert_eq!(spec.overhead.read, SimDuration::from_us(200));
    assert!(spec.zero_latency.read && !spec.zero_latency.write);
    assert_eq!(electronics.buffer.as_ref().unwrap().write_cache, WriteCache::Sequential);
    let overheads = electronics.overheads.unwrap();
    // 0.1 ms of every request and 0.3 ms of this kind, both twice.
    assert_eq!(overheads.read_hit.after_write, SimDuration::from_us(800));
    assert_eq!(electronics.bus.unwrap().read_water_mark, 100);
    assert_eq!(electronics.queue.unwrap().scheduler, PolicySpec::Sstf);
    let lost: Vec<&str> = imported.not_represented.iter().map(|lost| lost.name.as_str()).collect();
    for name in [
        "Bulk sector transfer time",
        "Preseeking level",
        "Something new",
        "Scheduler: Sequential stream scheme",
    ] {
        assert!(lost.contains(&name), "{name} in {lost:?}");
    }
    assert!(!lost.contains(&"Hold bus entire read xfer"));
}

#[test]
fn bus_slower_than_media_is_host_bus() {
    let with_bus = |ms: &str| imported(&disk(&format!("Bulk sector transfer time = {ms}")));
    // A turn of 10 ms passes 9 blocks.
    let slow = with_bus(
        "2.0, Number of buffer segments = 4, Segment size (in blks) = 64, \
         Enable caching in buffer = 1, Buffer continuous read = 3",
    );
    let host = slow.spec.measured_on.expect("a bus slower than the media is the host's");
    assert_eq!(host.bus.block_time, SimDuration::from_ms(2));
    assert_eq!(slow.spec.electronics.bus.unwrap().block_time, SimDuration::ZERO);
    assert!(slow.notes.iter().any(|note| note.contains("electronics.bus.block_time")));
    let source = |key: &str| slow.spec.source_of(key).unwrap();
    assert!(source("electronics.bus").starts_with("assumed"), "{}", source("electronics.bus"));
    assert!(source("measured_on.bus").contains("DiskSim"), "{}", source("measured_on.bus"));
    // Sequential reads on a bus that takes no time ask for what is just being read ahead.
    assert!(slow.spec.electronics.buffer.as_ref().unwrap().almost_hits);
    assert_eq!(host.almost_hits, Some(false));
    assert!(source("electronics.buffer.almost_hits").starts_with("assumed"));
    let fast = with_bus("0.5");
    assert_eq!(fast.spec.measured_on, None);
    assert_eq!(fast.spec.electronics.bus.unwrap().block_time, SimDuration::from_us(500));
    // The same rule as that of `drive show`.
    let drive = Drive::build(&slow.spec).unwrap();
    assert!(drive.limit_of_bus(host.bus).is_some());
    assert_eq!(drive.limit_of_bus(fast.spec.electronics.bus.unwrap()), None);
}

#[test]
fn unknown_policy_becomes_first_come_first_served() {
    let imported = imported(&disk(
        "Max queue length = 8, Scheduler = disksim_ioqueue { Scheduling policy = 14 }",
    ));
    let queue = imported.spec.electronics.queue.unwrap();
    assert_eq!((queue.depth, queue.scheduler), (8, PolicySpec::Fcfs));
    assert!(
        imported.not_represented.iter().any(|lost| lost.name == "Scheduler: Scheduling policy")
    );
}

/// Every parameter with a number of DiskSim 4.0's `disksim_disk`, without those that [`disk`] sets
/// to make a difference.
const DISK_KEYS: &str = "Per-request overhead time, Time scale for overheads, \
    Bulk sector transfer time, Hold bus entire read xfer, Hold bus entire write xfer, \
    Allow almost read hits, Allow sneaky full read hits, Allow sneaky partial read hits, \
    Allow sneaky intermediate read hits, Allow read hits on write data, Allow write prebuffering, \
    Preseeking level, Never disconnect, Print stats, Avg sectors per cylinder, Max queue length, \
    Number of buffer segments, Maximum number of write segments, Segment size (in blks), \
    Use separate write segment, Low (write) water mark, High (read) water mark, \
    Set watermark by reqsize, Calc sector by sector, Enable caching in buffer, \
    Buffer continuous read, Minimum read-ahead (blks), Maximum read-ahead (blks), \
    Read-ahead over requested, Read-ahead on idle hit, Read any free blocks, Fast write level, \
    Immediate buffer read, Immediate buffer write, Combine seq writes, Stop prefetch in sector, \
    Disconnect write if seek, Write hit stop prefetch, Read directly to buffer, \
    Immed transfer partial hit, Read hit over. after read, Read hit over. after write, \
    Read miss over. after read, Read miss over. after write, Write hit over. after read, \
    Write hit over. after write, Write miss over. after read, Write miss over. after write, \
    Read completion overhead, Write completion overhead, Data preparation overhead, \
    First reselect overhead, Other reselect overhead, Read disconnect afterread, \
    Read disconnect afterwrite, Write disconnect overhead, Extra write disconnect, \
    Extradisc command overhead, Extradisc disconnect overhead, Extradisc inter-disconnect delay, \
    Extradisc 2nd disconnect overhead, Extradisc seek delta, Minimum seek delay";

#[test]
fn disk_parameters_change_drive_or_are_listed() {
    let base = "Number of buffer segments = 4, Segment size (in blks) = 64,\
                Per-request overhead time = 0.5";
    let plain = imported(&disk(base)).spec;
    for key in DISK_KEYS.split(", ") {
        let counts = |value: &str| {
            // Values that cannot be, as segments of no size, are refused and not dropped.
            let Ok(imported) = read(&disk(&format!("{base}, {key} = {value}"))) else {
                return false;
            };
            let listed = imported
                .not_represented
                .iter()
                .any(|lost| lost.name == key && lost.value == value && !lost.why.contains("knows"));
            listed || imported.spec != plain
        };
        assert!(counts("1") || counts("0") || counts("2"), "{key}");
    }
}

#[test]
fn data_preparation_follows_read_reselection() {
    let spec =
        imported(&disk("First reselect overhead = 0.3, Data preparation overhead = 0.02")).spec;
    assert_eq!(spec.electronics.bus.unwrap().reconnect, SimDuration::from_us(320));
}

#[test]
fn mapping_schemes_number_tracks_like_disksim() {
    let second_cylinder = |scheme: u32| {
        let layout = g1(0, 0, "", "").replace("scheme = 0", &format!("scheme = {scheme}"));
        let moved = layout.replace("First cylinder number = 0", "First cylinder number = 1");
        let drive = Drive::build(&imported(&model(CONSTANT, "0", &moved)).spec).unwrap();
        [0, 20].map(|lbn| drive.layout().locate(Lbn::new(lbn)).surface)
    };
    // The zone begins at cylinder 1: 1 counts the cylinders of the zone, 2 those of the drive.
    assert_eq!(
        [second_cylinder(0), second_cylinder(1), second_cylinder(2)],
        [[0, 0], [0, 1], [1, 0]]
    );
}

#[test]
fn sourced_files_are_found_by_resolver() {
    let layout = g1(9, 1, "", "");
    let model = model(CONSTANT, "0", "source dir/small.layout");
    let parv = "disksim_global G { Init Seed = 42 }\nsource small.diskspecs\n\
                topology disksim_iodriver driver0 [ disksim_disk d0 [] ]\n";
    let specs = "disksim_disk D { Model = source small.model, Max queue length = 1, }";
    let files =
        [("small.model", model.as_str()), ("small.parv", parv), ("a/small.layout", &layout)];
    let imported =
        import(&files, &|name| (name == "small.diskspecs").then(|| specs.into())).unwrap();
    assert_eq!((imported.spec.name.as_str(), imported.spec.model.as_str()), ("small", "SMALL"));
    assert!(
        imported.notes.iter().any(|note| note.starts_with("1 parameters are not about the drive"))
    );
    let error = import(&files, &|_| None).unwrap_err();
    assert_eq!((error.file.as_str(), error.line), ("small.parv", 2));
    assert!(error.message.contains("small.diskspecs"));
}

#[test]
fn drive_of_other_type_inherits_values() {
    let base =
        disk("Fast write level = 2, Number of buffer segments = 3, Segment size (in blks) = 8");
    let text = format!("{base}\nD E {{ Fast write level = 0 }}\ninstantiate [ x ] as E");
    let text = text.replace("instantiate [ d0 .. d3 ] as D", "");
    let buffer = imported(&text).spec.electronics.buffer.unwrap();
    assert_eq!((buffer.segments, buffer.write_cache), (3, WriteCache::Off));
}

#[test]
fn malformed_files_are_refused_with_line() {
    let good = model(CONSTANT, "0", &g1(9, 1, "", ""));
    let fails = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        read(&good.replace(from, to)).unwrap_err().to_string()
    };
    for (from, to, expected) in [
        (
            "cylinders = 4,",
            "cylinders 4,",
            "small.model:3: expected `=` behind `Number of cylinders 4`",
        ),
        (
            "cylinders = 4,",
            "cylinders = four,",
            "small.model:3: `Number of cylinders` takes a number",
        ),
        ("cylinders = 4,", "cylinders = 4", "small.model:4: expected `,` or `}`, found `=`"),
        ("cylinders = 4,", "cylinders = ,", "small.model:3: expected a value, found `,`"),
        (
            "Number of data surfaces = 2",
            "Heads = 2",
            "small.model:1: `dm_disk` needs `Number of data",
        ),
        ("constant,", "quick,", "small.model:7: `Seek type` is `quick`"),
        ("# end", "] ", "small.model:18: expected a block"),
        (
            "used = 9",
            "used = 11",
            "small.model:12: `Sparing scheme used` is 11; a whole number from 0 to 10",
        ),
        (
            "slips = [  ]",
            "slips = [ 80 ]",
            "small.model:17: `slips` is 80; a whole number from 0 to 79",
        ),
        ("defects = [  ]", "defects = [ 3 ]", "small.model:17: `defects` has 1 numbers"),
        ("= 10000", "= 0", "must exceed zero"),
        ("dm_mech_g1", "dm_mech_g9", "small.model:5: a mechanical model `dm_mech_g9`"),
        ("= 10000", "= 1", "do not make a drive: `rotation_period`"),
    ] {
        let error = fails(from, to);
        assert!(error.contains(expected), "{to}: {error}");
    }
    let seek = "Seek type = extracted, Full seek curve = other.seek";
    let error = read(&model(seek, "0", &g1(9, 1, "", ""))).unwrap_err().to_string();
    assert!(error.starts_with("small.model:7: `other.seek` is needed"), "{error}");
    let bad =
        [("small.model", &*model(seek, "0", &g1(9, 1, "", ""))), ("other.seek", "1, 2.0\n5 3\n")];
    let error = import(&bad, &|_| None).unwrap_err().to_string();
    assert_eq!(error, "other.seek:2: expected `CYLINDERS, MS`, found `5 3`");
    let deep = format!("x y {{ a = {}", "[".repeat(100_000));
    assert!(read(&deep).unwrap_err().message.contains("deeper than 64"));
    let circle = import(&[("a.parv", "source a.parv")], &|_| None).unwrap_err().to_string();
    assert!(circle.contains("nested deeper"), "{circle}");
    assert!(read("").unwrap_err().to_string().contains("no block `disksim_disk`"));
}

#[test]
fn file_sourced_endlessly_is_refused() {
    let words = "a, ".repeat(5000);
    let model = format!("x y {{ a = [ {} ] }}", "source words, ".repeat(250));
    let error = import(&[("x.model", &model), ("words", &words)], &|_| None).unwrap_err();
    assert_eq!(error.message, "more than 2000000 words");
}

/// Bytes and whole pieces of `text` changed at random.
fn mutated(text: &str, prng: &mut Prng) -> String {
    const PIECES: [&str; 14] = [
        "{",
        "}",
        "[",
        "]",
        ",",
        "=",
        "#",
        "-1",
        "0",
        "99999999999999999999",
        "1e18",
        "source x",
        "0.5",
        "\u{fc}",
    ];
    let mut words: Vec<&str> = text.split_inclusive([' ', '\n']).collect();
    for _ in 0..=prng.below(3) {
        let at = prng.below(words.len() as u64) as usize;
        match prng.below(3) {
            0 => words[at] = PIECES[prng.below(PIECES.len() as u64) as usize],
            1 => words.truncate(at.max(1)),
            _ => {
                let other = words[prng.below(words.len() as u64) as usize];
                words[at] = other;
            }
        }
    }
    words.concat()
}

#[test]
fn importer_never_panics_on_mutated_text() {
    let electronics =
        disk("Number of buffer segments = 4, Segment size (in blks) = 64, Max queue length = 2");
    let track_slips = model(
        "Seek type = hpl, HPL seek equation values = [ 3, 1.0, 1.0, 2.0, 0.5, 1.25 ]",
        "-0.1",
        &g1(1, 2, "3", "2, 7"),
    );
    let seeds = [
        electronics,
        track_slips,
        model(CONSTANT, "0", G4),
        model(CONSTANT, "0", &g1(6, 2, "5", "")),
    ];
    let mut prng = Prng::new(1, "mutations");
    let mut drives = 0;
    for round in 0..20_000 {
        let text = mutated(&seeds[round % seeds.len()], &mut prng);
        drives += usize::from(read(&text).is_ok());
    }
    assert!((100..19_000).contains(&drives), "{drives} of the mutated texts are drives");
}

#[test]
fn extracted_curve_stays_table() {
    let seek = "Seek type = extracted, Full seek curve = small.seek";
    let imported = imported(&model(seek, "0", &g1(9, 1, "", "")));
    let points = vec![(1, 1.5), (3, 2.5)];
    assert_eq!(imported.spec.seek.read, CurveSpec::Table { cylinders_ms: points });
    assert!(imported.notes.iter().any(|note| note.contains("standard deviations in 1 lines")));
}

#[test]
fn unused_file_is_named() {
    let model = model(CONSTANT, "0", &g1(9, 1, "", ""));
    let specs = "disksim_disk D { Model = source small.model }";
    let stranger = model.replace("dm_disk SMALL", "dm_disk STRANGER");
    assert_ne!(stranger, model);
    let files = [
        ("small.model", model.as_str()),
        ("small.diskspecs", specs),
        ("other.model", stranger.as_str()),
        ("other.seek", "Seek distances measured: 1\n1, 1.0\n"),
    ];
    let notes = import(&files, &|_| None).unwrap().notes.join("\n");
    assert!(notes.contains("other.model: the `dm_disk` STRANGER"), "{notes}");
    assert!(notes.contains("other.seek: given, but no file refers to it"), "{notes}");
}

#[test]
fn disconnect_before_write_and_least_seek_imported() {
    let times = "Extradisc command overhead = 0.6, Extradisc disconnect overhead = 0.05, \
                 Extradisc inter-disconnect delay = 0.4, Extradisc 2nd disconnect overhead = 0.1, \
                 Extradisc seek delta = 0.25, Minimum seek delay = 0.7, Time scale for overheads = 2.0";
    let start = |flag: u32| {
        let text = disk(&format!("Extra write disconnect = {flag}, {times}"));
        let imported = imported(&text);
        let lost: Vec<String> = imported
            .not_represented
            .iter()
            .filter(|lost| lost.why.starts_with("without effect"))
            .map(|lost| lost.name.clone())
            .collect();
        (imported.spec.electronics.write_start.unwrap(), lost)
    };
    let us = freewheel_units::SimDuration::from_us;
    let (twice, lost) = start(1);
    let extra = twice.extra_disconnect.unwrap();
    // Command, seek delta and second disconnect; command, first disconnect and the delay. The scale is of
    // overheads alone.
    assert_eq!((extra.movement_after, extra.data_after), (us(1900), us(2100)));
    assert_eq!((twice.seek_at_least, lost.len()), (us(700), 0));
    let (once, lost) = start(0);
    assert_eq!((once.extra_disconnect, once.seek_at_least), (None, us(700)));
    assert_eq!(lost.len(), 5, "{lost:?}");
}
