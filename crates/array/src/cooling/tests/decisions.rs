//! Steps of the daemon, and what moves cost.

use freewheel_units::{Blocks, Bytes, Lbn, Prng, SimDuration, SimTime};
use proptest::prelude::*;

use crate::cooling::*;
use crate::heat::{DiskHeats, Fragment, HeadTimeCost, HeatAmount, HeatSpec, HeatTable, History};
use crate::partition::{DiskModel, DiskUse};
use crate::placement::{Extent, ExtentId, FileId, Place, Placement};
use crate::space::SpaceStatus;
use freewheel_model::drive::Drive;

const SPEC: CoolingSpec = CoolingSpec {
    threshold: 0.05,
    queue_veto: false,
    unit: CoolingUnit::Extents,
    candidates_max: u32::MAX,
    sources_max: 1,
    waits_factor: 1.5,
};

/// An extent, the disk to put it on, and its heat; None for an unknown one.
#[derive(Debug, Clone, Copy)]
struct Put {
    file: u32,
    disk: u32,
    blocks: u64,
    heat: Option<u32>,
}

fn put(file: u32, disk: u32, blocks: u64, heat: u32) -> Put {
    Put { file, disk, blocks, heat: Some(heat) }
}

struct Array {
    placement: Placement,
    heats: DiskHeats,
}

/// Extents number 0 and up; each with heat was accessed twice, a second apart.
fn array(disks: u32, capacity: u64, puts: &[Put]) -> Array {
    let mut placement = Placement::new(disks, Blocks::new(capacity));
    let spec =
        HeatSpec { accesses: 2, accesses_min: 2, history: History::Accesses, extents_max: 1000 };
    let mut heats = DiskHeats::new(HeatTable::new(spec), disks);
    for (number, put) in puts.iter().enumerate() {
        let blocks = Blocks::new(put.blocks);
        let Some(place) = placement.reserve(put.disk, blocks) else { continue };
        let id = ExtentId(number as u32);
        placement.insert(id, Extent { file: FileId(put.file), blocks, place });
        if let Some(heat) = put.heat {
            // 2 R / 1 s.
            for second in [1, 2] {
                let at = SimTime::ZERO + SimDuration::from_secs(second);
                heats.record(&placement, id, at, f64::from(heat) / 2.0);
            }
        }
    }
    Array { placement, heats }
}

impl Array {
    fn step(&self, spec: CoolingSpec, queues: &[u32]) -> Result<CoolingMove, Refusal> {
        self.step_beside(spec, queues, &[])
    }

    fn step_beside(
        &self,
        spec: CoolingSpec,
        queues: &[u32],
        taken: &[bool],
    ) -> Result<CoolingMove, Refusal> {
        let Self { placement, heats } = self;
        let view = CoolingView { placement, heats, queues, present: &[], taken };
        CoolingDaemon::new(spec).step(&view, &Worth::TargetStaysCooler)
    }

    fn carry_out(&mut self, wanted: &CoolingMove) {
        let blocks = self.placement.extent(wanted.extent).blocks;
        let to = self.placement.reserve(wanted.to, blocks).unwrap();
        let from = self.placement.relocate(wanted.extent, to);
        self.placement.release(from, blocks);
        self.heats.moved(wanted.extent, wanted.from, wanted.to);
    }
}

#[test]
fn cooling_moves_hottest_extent_to_coolest_disk() {
    let array = array(
        3,
        100,
        &[put(0, 0, 10, 30), put(1, 0, 2, 20), put(2, 0, 5, 10), put(1, 2, 5, 3), put(3, 1, 5, 8)],
    );
    // 60, 8, 3. Extent 1 has temperature 10; disk 2 is the coolest and holds its file.
    let wanted = array.step(SPEC, &[9, 0, 0]).unwrap();
    assert_eq!(wanted, CoolingMove { extent: ExtentId(1), from: 0, to: 1, heat: 20.0 });
    // As fragments the hottest goes, and to any other disk.
    let fragments = CoolingSpec { unit: CoolingUnit::Fragments, ..SPEC };
    let wanted = array.step(fragments, &[0; 3]).unwrap();
    assert_eq!(wanted, CoolingMove { extent: ExtentId(0), from: 0, to: 2, heat: 30.0 });
}

#[test]
fn refusals_have_reasons() {
    let hot = |heat| array(2, 20, &[put(0, 0, 10, heat), put(1, 0, 10, 1), put(2, 1, 10, 10)]);
    let balanced = array(2, 20, &[put(0, 0, 10, 21), put(1, 1, 10, 20)]);
    assert_eq!(balanced.step(SPEC, &[0, 0]), Err(Refusal::Balanced));
    let veto = CoolingSpec { queue_veto: true, ..SPEC };
    assert_eq!(hot(20).step(veto, &[1, 0]), Err(Refusal::SourceQueued));
    assert!(hot(20).step(veto, &[0, 1]).is_ok());
    // 20 would make the target 30, hotter than the 21 of the source: the next extent, of 1, may move.
    assert_eq!(hot(20).step(SPEC, &[0, 0]).unwrap().extent, ExtentId(1));
    let first_only = CoolingSpec { candidates_max: 1, ..SPEC };
    assert_eq!(hot(20).step(first_only, &[0, 0]), Err(Refusal::TargetTooHot));
    let no_room = array(2, 20, &[put(0, 0, 10, 20), put(2, 1, 15, 1)]);
    assert_eq!(no_room.step(SPEC, &[0, 0]), Err(Refusal::NoTarget));
    let everywhere = array(2, 20, &[put(0, 0, 10, 20), put(0, 1, 5, 1)]);
    assert_eq!(everywhere.step(SPEC, &[0, 0]), Err(Refusal::NoTarget));
    let mut unknown = array(2, 20, &[put(0, 0, 10, 20)]);
    unknown.heats.forget(&unknown.placement, ExtentId(0));
    assert_eq!(unknown.step(SPEC, &[0, 0]), Err(Refusal::Balanced));
    let mut cold = array(2, 20, &[put(0, 0, 10, 20)]);
    let extent = cold.placement.remove(ExtentId(0));
    cold.placement.reserve_at(extent.place, extent.blocks);
    assert_eq!(cold.step(SPEC, &[0, 0]), Err(Refusal::NoCandidate));
}

#[test]
fn disks_without_waits_keep_extents() {
    let array = array(3, 20, &[put(0, 0, 10, 20), put(1, 0, 10, 1), put(2, 1, 10, 10)]);
    let step = |present: &[f64]| {
        let view = CoolingView {
            placement: &array.placement,
            heats: &array.heats,
            queues: &[0; 3],
            present,
            taken: &[],
        };
        CoolingDaemon::new(SPEC).step(&view, &Worth::TargetStaysCooler)
    };
    // Disk 0 is the hottest, and no move helps clients where they do not wait.
    assert_eq!(step(&[1.0, 3.0, 1.0]), Err(Refusal::NoWait));
    assert_eq!(step(&[1.0, 1.0, 1.0]), Err(Refusal::NoWait));
    // Disk 2 is the coolest, but clients wait there.
    assert_eq!(step(&[9.0, 1.0, 6.0]).unwrap().to, 1);
    assert_eq!(step(&[9.0, 1.0, 1.0]).unwrap().to, 2);
}

#[test]
fn steps_are_counted_by_their_outcome() {
    let array = array(2, 20, &[put(0, 0, 10, 20), put(1, 0, 10, 1), put(2, 1, 10, 10)]);
    let mut daemon = CoolingDaemon::new(CoolingSpec { queue_veto: true, ..SPEC });
    for queue in [0, 3, 0, 5, 1] {
        let queues = [queue, 0];
        let view = CoolingView {
            placement: &array.placement,
            heats: &array.heats,
            queues: &queues,
            present: &[],
            taken: &[],
        };
        _ = daemon.step(&view, &Worth::TargetStaysCooler);
    }
    let counts = daemon.counts();
    assert_eq!((counts.steps, counts.moves), (5, 2));
    assert_eq!(counts.refusals, [(Refusal::SourceQueued, 3)].into());
}

/// Figure 5 word for word but for step 5: every extent in order, every disk in order. Disks that are `taken`
/// have no part in it, and so many of the others are sources as the settings say.
fn figure_5(array: &Array, spec: &CoolingSpec, taken: &[bool]) -> Option<CoolingMove> {
    let heats = array.heats.of_disks();
    let by_heat = |a: &u32, b: &u32| heats[*a as usize].total_cmp(&heats[*b as usize]);
    let mut disks: Vec<u32> = (0..heats.len() as u32).collect();
    disks.sort_by(by_heat);
    disks.retain(|&disk| !taken[disk as usize]);
    let mean = heats.iter().sum::<f64>() / heats.len() as f64;
    for number in 0..spec.sources_max as usize {
        let source = *disks.iter().rev().nth(number)?;
        if heats[source as usize] <= mean * (1.0 + spec.threshold) {
            return None;
        }
        if let Some(wanted) = figure_5_from(array, spec, source, &disks) {
            return Some(wanted);
        }
    }
    None
}

fn figure_5_from(
    array: &Array,
    spec: &CoolingSpec,
    source: u32,
    disks: &[u32],
) -> Option<CoolingMove> {
    let heats = array.heats.of_disks();
    let heat_of = |id: &ExtentId| array.heats.table().heat(*id).unwrap_or(0.0);
    let size_of = |id: &ExtentId| array.placement.extent(*id).blocks.get() as f64;
    let is_fragment = spec.unit == CoolingUnit::Fragments;
    let rank = |id: &ExtentId| if is_fragment { heat_of(id) } else { heat_of(id) / size_of(id) };
    let mut extents: Vec<ExtentId> = array.placement.on_disk(source).collect();
    extents.sort_by(|a, b| rank(b).total_cmp(&rank(a)).then(a.cmp(b)));
    for extent in extents.into_iter().filter(|id| heat_of(id) > 0.0) {
        let known = *array.placement.extent(extent);
        let on = |disk: u32| {
            let others = array.placement.extents();
            others.filter(|(_, e)| e.file == known.file && e.place.disk == disk).count()
        };
        for &target in disks.iter().filter(|&&target| target != source) {
            let is_free = array.placement.status(target, known.blocks) == SpaceStatus::Free;
            if is_free && (is_fragment || on(target) == 0) {
                if heats[target as usize] + heat_of(&extent) < heats[source as usize] {
                    let heat = heat_of(&extent);
                    return Some(CoolingMove { extent, from: source, to: target, heat });
                }
                break;
            }
        }
    }
    None
}

#[test]
fn fragments_divide_hot_spot() {
    // 100, 20 and 0: the extent of heat 90 as a whole only carries the hot spot to disk 2.
    let mut array = array(3, 100, &[put(0, 0, 30, 90), put(1, 0, 10, 10), put(0, 1, 5, 20)]);
    let whole = CoolingSpec { candidates_max: 1, ..SPEC };
    assert_eq!(array.step(whole, &[0; 3]).unwrap().to, 2);
    let placement = &mut array.placement;
    let before = placement.extent(ExtentId(0)).place;
    let ids = placement.split(ExtentId(0), Blocks::new(12), ExtentId(10));
    assert_eq!(ids, [ExtentId(0), ExtentId(10), ExtentId(11)]);
    assert_eq!(placement.faults(), Vec::<String>::new());
    let parts: Vec<(u64, u64)> = ids
        .iter()
        .map(|id| placement.extent(*id))
        .map(|part| (part.place.start.get() - before.start.get(), part.blocks.get()))
        .collect();
    assert_eq!(parts, [(0, 12), (12, 12), (24, 6)]);
    let fragment = |id: &ExtentId| Fragment { extent: *id, blocks: placement.extent(*id).blocks };
    let fragments: Vec<Fragment> = ids.iter().map(fragment).collect();
    array.heats.change(&array.placement, |table| _ = table.split(ExtentId(0), &fragments));
    assert_eq!(array.heats.of_disks(), [100.0, 20.0, 0.0]);
    // 36, 36 and 18 instead of 90: 64, 20, 36, then 28, 56, 36, then 48, 36, 36, then 38, 46, 36.
    let spec = CoolingSpec { unit: CoolingUnit::Fragments, ..SPEC };
    let mut moved = Vec::new();
    while let Ok(wanted) = array.step(spec, &[0; 3]) {
        array.carry_out(&wanted);
        moved.push((wanted.extent.0, wanted.to));
    }
    assert_eq!(moved, [(0, 2), (10, 1), (2, 0), (1, 1)]);
    assert_eq!(array.heats.of_disks(), [38.0, 46.0, 36.0]);
    // Fragment 10 went to a disk that held an extent of its file, as extents never do.
    assert_eq!(array.placement.extent(ExtentId(10)).place.disk, 1);
}

fn any_puts() -> impl Strategy<Value = Vec<Put>> {
    let put = (0u32..12, 0u32..4, 1u64..12, prop::option::weighted(0.8, 1u32..60));
    let put = put.prop_map(|(file, disk, blocks, heat)| Put { file, disk, blocks, heat });
    prop::collection::vec(put, 1..25)
}

proptest! {
    #[test]
    fn steps_follow_figure_5_until_best(puts in any_puts(), fragments: bool) {
        let unit = if fragments { CoolingUnit::Fragments } else { CoolingUnit::Extents };
        let spec = CoolingSpec { unit, ..SPEC };
        let mut array = array(4, 60, &puts);
        let mut variance = heat_variance(array.heats.of_disks());
        let mut moves = 0;
        loop {
            let found = array.step(spec, &[0; 4]).ok();
            prop_assert_eq!(found, figure_5(&array, &spec, &[false; 4]));
            let Some(wanted) = found else { break };
            array.carry_out(&wanted);
            prop_assert_eq!(array.placement.faults(), Vec::<String>::new());
            // The check of the target is that the variance falls, so moves come to an end.
            let after = heat_variance(array.heats.of_disks());
            prop_assert!(after < variance, "{} {}", after, variance);
            variance = after;
            moves += 1;
            prop_assert!(moves < 1000);
        }
    }
}

proptest! {
    #[test]
    fn steps_avoid_disks_of_running_moves(
        puts in any_puts(), fragments: bool, sources_max in 1u32..5,
        taken in prop::array::uniform4(prop::bool::weighted(0.2))
    ) {
        let unit = if fragments { CoolingUnit::Fragments } else { CoolingUnit::Extents };
        let spec = CoolingSpec { unit, sources_max, ..SPEC };
        let array = array(4, 60, &puts);
        let found = array.step_beside(spec, &[0; 4], &taken).ok();
        prop_assert_eq!(found, figure_5(&array, &spec, &taken));
        let is_taken = |disk: u32| taken[disk as usize];
        prop_assert!(found.is_none_or(|wanted| !is_taken(wanted.from) && !is_taken(wanted.to)));
    }
}

fn paper_disk() -> DiskModel {
    let text = include_str!("../../../../../drives/tr96.toml");
    let drive = Drive::build(&toml::from_str(text).unwrap()).unwrap();
    let usage = DiskUse { filled_share: 0.5, read_share: 0.7, block: Bytes::new(1024) };
    DiskModel::of(&drive, &usage)
}

#[test]
fn variance_is_mean_squared_distance() {
    assert_eq!(heat_variance(&[1.0, 3.0, 5.0]), 8.0 / 3.0);
    assert_eq!(heat_variance(&[2.0, 2.0]), 0.0);
}

#[test]
fn phases_last_for_waits_and_service() {
    let disk = paper_disk();
    let disks = [disk.clone(), disk.clone()];
    let loads = [DiskLoad { rate: 20.0, blocks: 70.0 }, DiskLoad { rate: 60.0, blocks: 70.0 }];
    let (block_size, piece) = (Blocks::new(2), Blocks::new(70));
    let costs =
        MoveCosts { disks: &disks, block_size, loads: &loads, piece, amount: HeatAmount::Blocks };
    let phase = costs.phase(0, Blocks::new(150));
    // Three pieces of 50 blocks, 25 KB each, and 150 blocks of heat over that time.
    let service = disk.service(35.0);
    let wait = 20.0 * service.second / (2.0 * (1.0 - 20.0 * service.mean));
    let expected = 3.0 * (wait + disk.service(25.0).mean);
    assert!((phase.duration_s - expected).abs() < 1e-9, "{} {expected}", phase.duration_s);
    assert!((phase.heat * phase.duration_s - 150.0).abs() < 1e-9);
    // 60 commands of 30 ms a second are too many: as if there were 95 % of what the disk serves.
    let most = 0.95 / service.mean;
    let loads = [loads[0], DiskLoad { rate: most, ..loads[0] }];
    let busiest = MoveCosts { loads: &loads, ..costs };
    assert_eq!(costs.phase(1, Blocks::new(150)), busiest.phase(1, Blocks::new(150)));
    assert!(costs.phase(1, Blocks::new(150)).duration_s > 3.0 * phase.duration_s);
    let amount = HeatAmount::HeadTime(HeadTimeCost::of(&disk, block_size));
    let busy = MoveCosts { amount, ..costs }.phase(0, Blocks::new(150));
    let head_s =
        3.0 * disk.latency_s() + 75.0 / 35.0 * (60.0 / 4400.0 + disk.symbols().crossing_s());
    assert!((busy.heat * busy.duration_s - head_s).abs() < 1e-6);
}

/// Variance over time, summed up instant by instant.
fn simulated_gain(
    heats: &[f64],
    considered: &Considered,
    horizon_s: f64,
    costs: &MoveCosts<'_>,
) -> f64 {
    let (from, to) = (considered.from as usize, considered.to as usize);
    let read = costs.phase(considered.from, considered.blocks);
    let write = costs.phase(considered.to, considered.blocks);
    let moving_s = read.duration_s + write.duration_s;
    let (steps, mut saved) = (20_000, 0.0);
    for step in 0..steps {
        let width = (moving_s + horizon_s) / f64::from(steps);
        let now = (f64::from(step) + 0.5) * width;
        let mut moved = heats.to_vec();
        if now < read.duration_s {
            moved[from] += read.heat;
        } else if now < moving_s {
            moved[to] += write.heat;
        } else {
            moved[from] -= considered.heat;
            moved[to] += considered.heat;
        }
        saved += (heat_variance(heats) - heat_variance(&moved)) * width;
    }
    saved
}

#[test]
fn gain_of_move_is_variance_over_time() {
    let disks = [paper_disk(), paper_disk(), paper_disk()];
    let loads = [DiskLoad { rate: 25.0, blocks: 20.0 }; 3];
    let (block_size, piece) = (Blocks::new(2), Blocks::new(64));
    let costs =
        MoveCosts { disks: &disks, block_size, loads: &loads, piece, amount: HeatAmount::Blocks };
    let prng = &mut Prng::new(9, "gains");
    let (mut paid, mut lost) = (0, 0);
    for _ in 0..40 {
        let heats: Vec<f64> = (0..3).map(|_| 2000.0 * prng.unit()).collect();
        let blocks = Blocks::new(1 + prng.below(300));
        let considered = Considered { from: 0, to: 2, blocks, heat: heats[0] * prng.unit() };
        let gain = variance_gain(&heats, &considered, 20.0, &costs);
        let simulated = simulated_gain(&heats, &considered, 20.0, &costs);
        let scale = 20.0 * (heat_variance(&heats) + considered.heat * considered.heat) + 1e4;
        assert!((gain - simulated).abs() < 2e-3 * scale, "{gain} {simulated}");
        if gain > 0.0 { paid += 1 } else { lost += 1 }
    }
    assert!(paid > 5 && lost > 5, "{paid} {lost}");
}

#[test]
fn large_lukewarm_extent_pays_slowly() {
    let disks = [paper_disk(), paper_disk()];
    let loads = [DiskLoad { rate: 20.0, blocks: 20.0 }, DiskLoad { rate: 5.0, blocks: 20.0 }];
    let (block_size, piece) = (Blocks::new(2), Blocks::new(64));
    let costs =
        MoveCosts { disks: &disks, block_size, loads: &loads, piece, amount: HeatAmount::Blocks };
    let array = array(2, 200_000, &[put(0, 0, 90_000, 60), put(1, 0, 10, 300), put(2, 1, 10, 100)]);
    let step = |horizon_s| {
        let view = CoolingView {
            placement: &array.placement,
            heats: &array.heats,
            queues: &[0, 0],
            present: &[],
            taken: &[],
        };
        let worth = Worth::Variance { horizon_s, costs: &costs };
        CoolingDaemon::new(SPEC).step(&view, &worth).map(|wanted| wanted.extent)
    };
    // Extent 1 would only change places with the hottest disk; extent 0 takes minutes to move.
    assert_eq!(step(60.0), Err(Refusal::NotWorthIt));
    assert_eq!(step(36_000.0), Ok(ExtentId(0)));
    let place = |start| Place { disk: 0, start: Lbn::new(start) };
    assert_eq!(array.placement.extent(ExtentId(1)).place, place(90_000));
}
