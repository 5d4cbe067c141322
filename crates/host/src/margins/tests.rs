//! Margins in a closed loop: they decide what slack movements have.

use freewheel_units::Prng;
use proptest::prelude::*;

use super::*;
use freewheel_model::drive::SeekDirection;

const PERIOD: SimDuration = SimDuration::from_ms(6);
const BUDGET: u32 = 5000;

fn us(us: u64) -> SimDuration {
    SimDuration::from_us(us)
}

/// A drive whose seeks are off by up to `jitter_us` of them either way: cylinders inward, or less than
/// none outward.
struct Loop {
    learner: Learner,
    prng: Prng,
    jitter_us: fn(i32) -> u64,
    free: u64,
    late: u64,
}

impl Loop {
    fn new(seed: u64, jitter_us: fn(i32) -> u64) -> Self {
        let learner = Learner::new(PERIOD, us(300), BUDGET);
        Self { learner, prng: Prng::new(seed, "loop"), jitter_us, free: 0, late: 0 }
    }

    /// Requests with a gap before each. If free work is allowed, the gap has a piece of it `by` cylinders
    /// inward, planned with its margin as slack and up to a sector more.
    fn run(&mut self, requests: u64, by: i32) {
        let [from, to] = way(by);
        for _ in 0..requests {
            let jitter_ns = (self.jitter_us)(by) * 1000;
            let late = |prng: &mut Prng, slack: SimDuration| {
                prng.below(2 * jitter_ns + 1) > jitter_ns + slack.ns()
            };
            self.learner.worked(PERIOD + us(2500));
            let slack = us(self.prng.below(6000));
            let is_late = late(&mut self.prng, slack);
            let alone = Movement { op: Op::Read, from, to, slack, is_late };
            self.learner.moved(&alone);
            if !self.learner.may_risk() {
                continue;
            }
            self.learner.news();
            let slack = self.margin(by) + us(self.prng.below(18));
            let is_late = late(&mut self.prng, slack);
            self.learner.moved(&Movement { slack, is_late, ..alone });
            if is_late {
                self.learner.delayed(PERIOD);
            }
            self.free += 1;
            self.late += u64::from(is_late);
        }
    }

    fn margin(&self, by: i32) -> SimDuration {
        let [from, to] = way(by);
        self.learner.margins.of(Op::Read, seek_class(from, to))
    }
}

/// A movement inward by this number of cylinders.
fn way(by: i32) -> [u32; 2] {
    let from = 30_000;
    [from, from + by].map(|cylinder| u32::try_from(cylinder).expect("a cylinder"))
}

#[test]
fn margins_begin_at_initial_values() {
    let of = Loop::new(1, |_| 0);
    let (margin, bin) = (of.margin(100), PERIOD / BINS_A_TURN);
    assert!(margin >= us(300) && margin <= us(300) + bin, "{margin}");
}

#[test]
fn margins_shrink_to_drives_need() {
    for jitter in [|_| 0, |_| 50, |_| 150] as [fn(i32) -> u64; 3] {
        let mut of = Loop::new(1, jitter);
        of.run(20_000, 100);
        let (margin, jitter) = (of.margin(100), us(jitter(100)));
        assert!(margin <= jitter + us(12), "{margin} for {jitter}");
        assert!(margin + us(20) >= jitter, "{margin} for {jitter}");
        assert!(of.free > 19_000, "{} with free work", of.free);
    }
}

#[test]
fn seek_kinds_have_own_margins() {
    let mut of = Loop::new(1, |by| if by < 64 { 20 } else { 200 });
    for _ in 0..400 {
        of.run(50, 10);
        of.run(50, 1000);
    }
    let (near, far) = (of.margin(10), of.margin(1000));
    assert!(near < us(40) && far > us(150), "{near}, {far}");
}

#[test]
fn directions_have_own_margins_within_budget() {
    let mut of = Loop::new(1, |by| if by > 0 { 200 } else { 30 });
    let mut late = [0; 2];
    for _ in 0..800 {
        for (late, by) in late.iter_mut().zip([1000, -1000]) {
            let before = of.late;
            of.run(25, by);
            *late += of.late - before;
        }
    }
    let (inward, outward) = (of.margin(1000), of.margin(-1000));
    assert!(outward < us(60) && inward > us(150), "{inward} inward, {outward} outward");
    let earned = (PERIOD + us(2500)).ns() * 20_000 * u64::from(BUDGET) / 1_000_000 / PERIOD.ns();
    assert!(late.iter().all(|&late| late <= earned), "{late:?} late, {earned} paid for each");
}

#[test]
fn direction_begins_with_other_directions_margin() {
    let mut of = Loop::new(1, |_| 50);
    of.run(20_000, 1000);
    // So is a movement of the same kind but for its direction.
    let margins = [of.margin(1000), of.margin(-1000)];
    assert!(margins.iter().all(|margin| *margin < us(70)), "{margins:?}");
    // A handful of movements in this direction changes little.
    of.run(20, -1000);
    let after = of.margin(-1000);
    assert!(after < us(80), "{after} after a few, {margins:?} before");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..Default::default() })]

    #[test]
    fn budget_is_held_on_any_drive(
        seed: u64, ways in prop::collection::vec(-20_000..20_000i32, 1..6)
    ) {
        let shapes: [fn(i32) -> u64; 5] = [
            |_| 40,
            |by| u64::from(by.unsigned_abs()) / 50,
            |_| 400,
            |by| 5 + u64::from(by.unsigned_abs() % 7) * 90,
            // More than the longest margin.
            |_| 1500,
        ];
        let mut of = Loop::new(seed, shapes[(seed % 5) as usize]);
        for number in 0..40 {
            of.run(100, ways[number % ways.len()]);
        }
        let worked = (PERIOD + us(2500)) * 4000;
        let earned = worked.ns() * u64::from(BUDGET) / 1_000_000 / PERIOD.ns();
        prop_assert!(of.late <= earned + 17, "{} late, {earned} paid for", of.late);
        prop_assert!(of.free > 50, "{} with free work", of.free);
    }
}

#[test]
fn margins_recover_after_burst_of_surprises() {
    let mut of = Loop::new(1, |_| 50);
    of.run(20_000, 100);
    let usual = of.margin(100);
    // Every movement is late, with any slack.
    for tried in 0..1000 {
        of.learner.worked(PERIOD);
        if !of.learner.may_risk() {
            assert!(tried <= 17, "{tried} of a burst");
            break;
        }
        of.learner.news();
        let slack = of.margin(100);
        let [from, to] = way(100);
        of.learner.moved(&Movement { op: Op::Read, from, to, slack, is_late: true });
        of.learner.delayed(PERIOD);
    }
    assert!(!of.learner.may_risk(), "all that was saved is spent");
    let free = of.free;
    of.run(10_000, 100);
    let (margin, free) = (of.margin(100), of.free - free);
    assert!(free > 9000, "{free} with free work after it");
    assert!(margin <= usual + us(18), "{margin} after, {usual} before");
}

#[test]
fn margins_in_use_are_those_of_plans() {
    let mut of = Loop::new(7, |_| 60);
    of.run(3000, -40);
    of.run(500, 0);
    let [of_heads, of_seeks] = of.learner.in_use()[..] else { panic!("two kinds of movements") };
    let kind = |of: &MarginInUse| (of.op, of.direction, of.cylinders_min, of.cylinders_max);
    assert_eq!(kind(&of_heads), (Op::Read, None, 0, 0));
    assert_eq!(kind(&of_seeks), (Op::Read, Some(SeekDirection::Outward), 32, 63));
    for (learned, by) in [(of_heads, 0), (of_seeks, -40)] {
        assert_eq!(learned.margin_ns, of.margin(by).ns());
    }
    // Each free one, and an eighth of those that had their slack by chance.
    let (movements, late) =
        (of_heads.movements + of_seeks.movements, of_heads.late + of_seeks.late);
    assert!((of.free..of.free + 3500 / 4).contains(&movements), "{movements} of {}", of.free);
    assert!((of.late..of.late + 60).contains(&late), "{late}, of free ones {}", of.late);
    let mut both = vec![of_seeks];
    let shorter = MarginInUse { margin_ns: 1, ..of_seeks };
    MarginInUse::add(&mut both, &[of_heads, shorter]);
    let [first, second] = both[..] else { panic!("still two") };
    assert_eq!(first, of_heads);
    assert_eq!(
        second,
        MarginInUse { movements: 2 * of_seeks.movements, late: 2 * of_seeks.late, ..of_seeks }
    );
}

#[test]
fn free_work_resumes_once_delay_is_earned() {
    let spec = PredictionSpec { budget: 1e-6, ..PredictionSpec::default() };
    let mut learner = Learner::for_spec(&spec, PERIOD).unwrap();
    learner.delayed(PERIOD * 5);
    assert!(!learner.may_risk());
    learner.worked(PERIOD * 2_000_000);
    assert!(learner.may_risk());
}
