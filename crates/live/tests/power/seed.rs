//! All of a seed: the disk, and the lives of the server on it.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use freewheel_freeblock::Rule;
use freewheel_host::{PredictionSpec, PredictiveScheduler};
use freewheel_live::serve::backend::Abilities;
use freewheel_live::serve::{export, host_scheduler, usual_block};
use freewheel_model::drive::Drive;
use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::sched::PolicySpec;
use freewheel_sim::black_box::{BadBlocks, Behaviour, EmulatedDrive};
use freewheel_sim::library;
use freewheel_units::{Prng, SimDuration, SimTime};
use tokio::sync::broadcast;

use crate::checker::{Checker, Violation};
use crate::device::{Character, Disk};
use crate::faults::{Fault, Wrapped};
use crate::life::{Life, Plan};
use crate::server::{Machine, Shared, Virtual};
use crate::summary::Summary;

const NAME: &str = "small";

/// Two surfaces of few cylinders: 1.4 MB.
fn drive() -> &'static (DriveSpec, Arc<Drive>) {
    static DRIVE: OnceLock<(DriveSpec, Arc<Drive>)> = OnceLock::new();
    DRIVE.get_or_init(|| {
        let mut spec = library::spec("atlas10k").expect("it is in the library");
        spec.electronics = Default::default();
        (spec.surfaces, spec.cylinders) = (2, 4);
        spec.zones.truncate(1);
        (spec.zones[0].last_cylinder, spec.zones[0].spares) = (3, 0);
        spec.zones[0].slips.clear();
        let drive = Arc::new(library::build(&spec, NAME).expect("a valid drive"));
        (spec, drive)
    })
}

fn character(prng: &mut Prng, blocks: u64) -> Character {
    let sector_bytes = if prng.chance(0.3) { 4096 } else { 512 };
    let physical_bytes = if prng.chance(0.5) { 4096 } else { sector_bytes };
    let fua = prng.chance(0.5);
    let abilities = Abilities {
        sector_bytes,
        physical_bytes,
        flush: prng.chance(0.9) || !fua,
        fua,
        trim: prng.chance(0.6),
        write_zeroes: prng.chance(0.5),
        write_zeroes_kept: prng.chance(0.5),
    };
    let torn = if prng.chance(0.5) { 512 } else { physical_bytes };
    let bad = if prng.chance(0.2) { 1 + prng.below(4) } else { 0 };
    let bad: BTreeSet<u64> = (0..bad).map(|_| prng.below(blocks)).collect();
    Character {
        abilities,
        torn_sectors: u64::from(torn.max(sector_bytes) / 512),
        errors: if prng.chance(0.2) { 0.03 } else { 0.0 },
        failed_flushes: if prng.chance(0.2) { 0.15 } else { 0.0 },
        refuses: prng.chance(0.1),
        bad,
    }
}

fn plan(prng: &mut Prng, blocks: u64, sector: u64) -> Plan {
    let hot = 16 + prng.below(200);
    let from = prng.below(blocks - hot) / 8 * 8;
    let pick = |prng: &mut Prng, of: [u64; 3]| of[prng.below(3) as usize];
    let floods = prng.chance(0.015);
    Plan {
        requests: 10 + prng.below(if floods { 30 } else { 70 }),
        floods,
        connections: 1 + prng.below(4),
        depth: if floods { 16 } else { pick(prng, [1, 4, 16]) },
        hot: (from, from + hot.next_multiple_of(8)),
        sector,
        long: if prng.chance(0.3) { 0.08 } else { 0.0 },
        think_us: pick(prng, [0, 3000, 20_000]),
        way_us: pick(prng, [0, 100, 3000]),
        in_peace: prng.chance(0.3),
        finishes: prng.chance(0.3),
        goes: prng.chance(0.02),
        tasks: prng.chance(0.6),
        cut: if prng.chance(0.4) { 0.04 } else { 0.0 },
    }
}

/// Runs a seed with a planted fault, if any. Err for a broken rule.
pub fn run(
    seed: u64,
    fault: Option<Fault>,
    summary: &mut Summary,
    trace: bool,
) -> Result<(), Violation> {
    let mut prng = Prng::new(seed, "power cuts");
    let blocks = drive().1.blocks().get();
    let character = character(&mut prng, blocks);
    let disk = Disk::new(character, vec![0; blocks as usize], Prng::new(seed, "disk"));
    let mut wrapped = Wrapped::new(disk, fault, Prng::new(seed, "planted faults"));
    let mut checker = Checker::new(wrapped.disk.media.clone(), 0);
    let result = (0..1 + prng.below(3)).try_for_each(|_| {
        let (number, first) = (wrapped.disk.media.clone(), checker.next_value());
        checker = Checker::new(number, first);
        let abilities = wrapped.disk.character.abilities;
        let plan = plan(&mut prng, blocks, abilities.sector_blocks().into());
        if trace {
            println!("power on: {:?}\n{plan:?}", wrapped.disk.character);
        }
        one_life(plan, &mut wrapped, &mut checker, &mut prng, summary, trace)?;
        summary.cuts += 1;
        wrapped.power_cut();
        checker.after_cut(&wrapped.disk.media)
    });
    summary.seeds += 1;
    summary.happened(&wrapped.disk.happened);
    result
}

fn one_life(
    plan: Plan,
    wrapped: &mut Wrapped,
    checker: &mut Checker,
    prng: &mut Prng,
    summary: &mut Summary,
    trace: bool,
) -> Result<(), Violation> {
    let (spec, drive) = drive();
    let seed = prng.next_u64();
    let mechanics = prng.chance(0.5).then(|| {
        let behaviour = Behaviour { queue_depth: Some(32), ..Behaviour::default() };
        let bad = BadBlocks::new([], SimDuration::ZERO);
        EmulatedDrive::new(spec, NAME, &behaviour, bad, seed).expect("a valid drive")
    });
    wrapped.disk.start(mechanics);
    let abilities = wrapped.disk.character.abilities;
    let policy = if prng.chance(0.5) { PolicySpec::Sptf } else { PolicySpec::Fcfs };
    let scheduler =
        PredictiveScheduler::new(drive, SimDuration::ZERO, policy, PredictionSpec::default())
            .expect("a valid policy");
    let usual = usual_block(drive, abilities.sector_blocks());
    let rule = if prng.chance(0.5) { Rule::Paths } else { Rule::Greedy };
    let (scheduler, _) = host_scheduler(scheduler, rule, usual, abilities);
    let look = SimDuration::from_ns([0, 100, 2000][prng.below(3) as usize]);
    let nothing = Wrapped::new(
        Disk::new(wrapped.disk.character.clone(), Vec::new(), Prng::new(0, "")),
        None,
        Prng::new(0, ""),
    );
    let shared = Rc::new(RefCell::new(Shared {
        disk: std::mem::replace(wrapped, nothing),
        now: SimTime::ZERO,
        look,
        inbox: VecDeque::new(),
        answers: Vec::new(),
        has_told_failure: false,
        is_promised_after_failure: false,
        is_traced: trace,
        commands: 0,
    }));
    let (news, _) = broadcast::channel(1);
    let surroundings = Virtual(Rc::clone(&shared));
    let machine =
        Machine::new(surroundings, (scheduler, drive.blocks()), (news, Box::new(|_| {})), seed);
    let export = export(NAME.into(), drive.blocks(), abilities);
    let prngs = (Prng::new(seed, "clients"), Prng::new(seed, "planted faults"));
    let before = std::mem::replace(checker, Checker::new(Vec::new(), 0));
    let world = (Rc::clone(&shared), machine);
    let mut life = Life::new(plan, export, world, before, prngs, (summary, trace));
    let result = life.run();
    *checker = life.end();
    let mut shared = shared.borrow_mut();
    summary.commands += shared.commands;
    let nothing = Wrapped::new(
        Disk::new(shared.disk.disk.character.clone(), Vec::new(), Prng::new(0, "")),
        None,
        Prng::new(0, ""),
    );
    *wrapped = std::mem::replace(&mut shared.disk, nothing);
    result
}
