//! Merging as a search through a list.

use freewheel_model::sched::linux::IoRequest;

/// Most blocks of a merged request.
const MERGED_MAX: u32 = 2560;

fn may_join(a: &IoRequest, b: &IoRequest) -> bool {
    a.op == b.op && !a.fua && !b.fua && a.blocks + b.blocks <= MERGED_MAX
}

/// The oldest of the waiting requests for which this holds.
fn oldest(list: &[IoRequest], is: impl Fn(&IoRequest) -> bool) -> Option<IoRequest> {
    list.iter().copied().filter(|request| is(request)).min_by_key(|request| request.sequence)
}

fn join(list: &mut Vec<IoRequest>, waiting: IoRequest, new: IoRequest) -> IoRequest {
    list.retain(|other| other.sequence != waiting.sequence);
    let older = if waiting.sequence < new.sequence { waiting } else { new };
    let start = waiting.start.min(new.start);
    IoRequest { start, blocks: waiting.blocks + new.blocks, ..older }
}

/// Adds a request to the list, or joins it with one or two that it adjoins.
pub fn arrive(list: &mut Vec<IoRequest>, new: IoRequest, front: bool) {
    let same = |other: &IoRequest| other.op == new.op && !other.fua;
    let before = oldest(list, |other| same(other) && other.end() == new.start);
    let after = oldest(list, |other| same(other) && other.start == new.end());
    let before_joins = before.filter(|before| may_join(before, &new));
    let after_joins = after.filter(|after| front && may_join(after, &new));
    let (mut joined, third) = match (before_joins, after_joins) {
        (Some(before), _) => (join(list, before, new), after),
        (None, Some(after)) => (join(list, after, new), before),
        (None, None) => (new, None),
    };
    if let Some(third) = third.filter(|third| may_join(third, &joined)) {
        joined = join(list, third, joined);
    }
    list.push(joined);
}
