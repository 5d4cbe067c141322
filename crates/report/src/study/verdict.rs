//! Effect of a change on the goal, in words, and reasons to look at it twice.

use freewheel_study::Study;
use freewheel_study::changes::{Changes, Combination, Effect, Goal, NOTICEABLE, Tried};

use super::signed;

pub(super) fn effects(tried: &Tried) -> impl Iterator<Item = &Effect> {
    std::iter::once(&tried.effect).chain(&tried.other_replay)
}

fn is_within_noise(tried: &Tried, goal: Goal) -> bool {
    effects(tried).all(|effect| effect.of(goal).abs() < NOTICEABLE)
}

/// Effect of a change on the goal, by the replay under which it does less good.
pub(super) enum Verdict {
    Better,
    Same,
    Worse,
}

pub(super) fn verdict(tried: &Tried, goal: Goal) -> Verdict {
    match tried.surest(goal) {
        _ if is_within_noise(tried, goal) => Verdict::Same,
        change if change < 0.0 => Verdict::Better,
        change if change < NOTICEABLE => Verdict::Same,
        _ => Verdict::Worse,
    }
}

/// The change of the goal; of both replays where they differ.
pub(super) fn range(tried: &Tried, goal: Goal) -> String {
    if is_within_noise(tried, goal) {
        "within noise".into()
    } else {
        range_of(tried, |effect| effect.of(goal))
    }
}

/// The change of a quantity; of both replays where they differ.
pub(super) fn range_of(tried: &Tried, of: impl Fn(&Effect) -> f64) -> String {
    let (least, most) = (
        effects(tried).map(&of).fold(f64::INFINITY, f64::min),
        effects(tried).map(&of).fold(f64::NEG_INFINITY, f64::max),
    );
    if most - least < NOTICEABLE { signed(of(&tried.effect)) } else { between(least, most) }
}

/// Two changes. A unit that both have stands once.
pub(super) fn between(least: f64, most: f64) -> String {
    let (least, most) = (signed(least), signed(most));
    if least == most {
        return least;
    }
    let shared = if most.ends_with(" %") { least.trim_end_matches(" %") } else { &least };
    format!("{shared} to {most}")
}

/// Reason why a change should be looked at twice.
pub(super) fn warnings(tried: &Tried, goal: Goal) -> Vec<String> {
    let mut words = Vec::new();
    if tried.turns(goal) {
        words.push("turns with the replay".to_owned());
    }
    words.extend(tried.turning_variants(goal).map(|variant| format!("turns {}", variant.words())));
    let disputed = effects(tried).filter(|effect| effect.is_disputed(goal));
    let against = disputed.map(|effect| {
        if effect.of(goal) < 0.0 { effect.spread(goal).1 } else { effect.spread(goal).0 }
    });
    if let Some(worst) = against.max_by(|a, b| a.abs().total_cmp(&b.abs())) {
        words.push(format!("slices disagree, up to {}", signed(worst)));
    }
    let mean = effects(tried).map(|effect| effect.mean).fold(f64::NEG_INFINITY, f64::max);
    if goal != Goal::Mean && mean >= NOTICEABLE {
        words.push(format!("mean up to {}", signed(mean)));
    }
    let paid = || effects(tried).filter(|effect| effect.is_paid_by_tail(goal));
    let most = |tail: fn(&Effect) -> f64| paid().map(tail).fold(0.0, f64::max);
    let (all, reads) = (most(|effect| effect.p99), most(|effect| effect.reads_p99));
    if paid().next().is_some() {
        words.push(if reads > all {
            format!("p99 of reads up to {}", signed(reads))
        } else {
            format!("p99 up to {}", signed(all))
        });
    }
    words
}

/// Reason why the best together should be looked at twice: the same as of single changes.
pub(super) fn warnings_together(
    study: &Study,
    changes: &Changes,
    together: &Combination,
) -> Vec<String> {
    let turns = together.turning_variants(changes.goal);
    let turns = turns.map(|variant| format!("turns {}", variant.words()));
    turns.chain(longer(study, changes.goal, together)).collect()
}

/// Quantities that become longer. What does so under the other replay alone says so.
pub(super) fn longer(study: &Study, goal: Goal, together: &Combination) -> Vec<String> {
    let other = together.other_replay.as_ref().zip(study.other_replay.as_ref());
    let longer = |name: &str, of: fn(&Effect) -> f64| {
        let own = of(&together.effect);
        let other = other.map(|(effect, replay)| (of(effect), replay.words()));
        match other.filter(|(other, _)| *other >= NOTICEABLE && own < NOTICEABLE) {
            Some((other, words)) => {
                Some(format!("{name} {} ({} {words})", signed(own), signed(other)))
            }
            None => (own >= NOTICEABLE).then(|| format!("{name} {}", signed(own))),
        }
    };
    let worse = [
        longer("mean response", |effect| effect.mean).filter(|_| goal != Goal::Mean),
        longer("p99", |effect| effect.p99),
        longer("p99 of reads", |effect| effect.reads_p99).filter(|_| goal != Goal::P99Reads),
        longer("longest response", |effect| effect.longest),
    ];
    worse.into_iter().flatten().collect()
}
