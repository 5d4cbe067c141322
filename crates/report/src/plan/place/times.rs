//! Over which time the loads of a trace's devices are means, in sentences.

use freewheel_array::plan::{DiskTime, LoadTime, LoadTimes, REQUESTS_TELL};
use freewheel_study::plan::PlacePlan;
use freewheel_units::grouped;

use crate::numbers::{percent, span};

/// A device whose time is shorter than this share of the trace's is worth a word.
const SHARE: f64 = 0.9;
/// Disks that a sentence names.
const NAMED: usize = 3;

/// True if devices have their requests in different times.
pub(super) fn differ(times: &LoadTimes) -> bool {
    times.disks.iter().any(|disk| disk.span_s < SHARE * times.whole_s)
}

/// Over which time the loads are means, and whose loads are not known well. Empty where all devices have
/// the same time.
pub(super) fn load_times(plan: &PlacePlan) -> Vec<String> {
    let Some(times) = plan.load_times.as_ref().filter(|times| differ(times)) else {
        return Vec::new();
    };
    let few = grouped(REQUESTS_TELL);
    let mut says =
        vec![which(times, named(&|disk| disk.span_s < SHARE * times.whole_s, plan, times))];
    if let Some(which) = named(&|disk| !disk.tells_time, plan, times) {
        says.push(format!(
            "Fewer than {few} requests do not tell when a device was recorded, and so it counts as recorded all the time: {which}."
        ));
    }
    if let Some(which) =
        named(&|disk| disk.tells_time && disk.requests < REQUESTS_TELL, plan, times)
    {
        says.push(format!("Fewer than {few} requests in that time tell no load: {which}."));
    }
    says
}

fn named(
    is_meant: &dyn Fn(&DiskTime) -> bool,
    plan: &PlacePlan,
    times: &LoadTimes,
) -> Option<String> {
    let all = plan.disks.iter().zip(&times.disks).filter(|(_, time)| is_meant(time));
    names(&all.map(|(disk, _)| &*disk.name).collect::<Vec<_>>())
}

fn which(times: &LoadTimes, short: Option<String>) -> String {
    let whole = span(times.whole_s);
    match (times.time, times.common_s) {
        (LoadTime::Common, Some((_, common_s))) => format!(
            "Loads are means over the {} that all devices have in common, {} of the {whole} in all. `--load-time own` takes each device over its own time, `--load-time whole` all over the {whole}.",
            span(common_s),
            percent(common_s / times.whole_s),
        ),
        (LoadTime::Own, _) => {
            let told = times.disks.iter().filter(|disk| disk.tells_time);
            let spans: Vec<f64> = told.map(|disk| disk.span_s).collect();
            let [shortest, longest] =
                [f64::min, f64::max].map(|of| spans.iter().copied().reduce(of).unwrap_or_default());
            format!(
                "Each load is the mean over the device's own time, {} to {}. Such loads may never have come together.",
                span(shortest),
                span(longest)
            )
        }
        _ => format!(
            "Loads are means over the {whole} in all: a device counts as idle before its first request and after its last. Shorter times have {}.",
            short.unwrap_or_default()
        ),
    }
}

/// "device 3, device 4 and 12 others"; none without one.
fn names(names: &[&str]) -> Option<String> {
    let others = names.len().saturating_sub(NAMED);
    let first = &names[..names.len().min(NAMED)];
    match (first, others) {
        ([], _) => None,
        (_, 0) => Some(first.join(", ")),
        (_, count) => Some(format!("{} and {} others", first.join(", "), grouped(count as u64))),
    }
}
