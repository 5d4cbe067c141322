//! Turns between clients: none waits behind all the requests of another.
//!
//! Start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996) between clients, as far as a policy that
//! goes by positions can be left its choice: of all that waits while no client is ahead of another that
//! waits by more than a lead; of what the others want while one is. A sweep (LOOK, C-LOOK) begins anew
//! whenever that happens.

use std::collections::BTreeMap;

use freewheel_units::Blocks;

/// Who wants a request. Requests of one client wait for each other as the policy has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Client(pub u64);

/// By how many requests of one block a client may be ahead of one that waits. The fewer, the sooner a
/// client with one request is served beside one with hundreds; the more, the better a policy can choose
/// among the requests of several. Assumed.
const LEAD_REQUESTS: u64 = 4;

/// What clients that had something waiting of late have been given.
#[derive(Debug)]
pub(super) struct Turns {
    lanes: BTreeMap<Client, Lane>,
    /// Of a request beside its blocks, in blocks: a turn's, which is about what it takes to get there.
    request: Blocks,
    /// What one that has always been waiting would have been given in fair shares (the virtual time of
    /// Demers, Keshav and Shenker, SIGCOMM 1989), and no less than the one behind. Who comes begins
    /// there: nobody saves up, and those that come again and again as others gain nothing by it.
    virtual_time: Blocks,
}

#[derive(Debug, Default)]
struct Lane {
    /// Requests that have not been picked.
    waiting: u64,
    /// Given so far, as if it had always been there.
    given: Blocks,
}

impl Turns {
    /// On a drive whose longest tracks have so many blocks.
    pub fn new(track: Blocks) -> Self {
        Self { lanes: BTreeMap::new(), request: track, virtual_time: Blocks::ZERO }
    }

    /// A client has one more request.
    pub fn arrived(&mut self, client: Client) {
        let lane = self.lanes.entry(client).or_default();
        if lane.waiting == 0 {
            lane.given = lane.given.max(self.virtual_time);
        }
        lane.waiting += 1;
    }

    /// What others may have been given at most to be picked from; `None` while everybody may.
    pub fn limit(&self) -> Option<Limit> {
        let lead = Blocks::new(LEAD_REQUESTS * self.request.get());
        let limit = Limit(self.behind()? + lead);
        let is_held = |lane: &Lane| lane.waiting > 0 && lane.given > limit.0;
        self.lanes.values().any(is_held).then_some(limit)
    }

    /// Whether a client may be picked from.
    pub fn may_go(&self, client: Client, limit: Limit) -> bool {
        self.lanes.get(&client).is_some_and(|lane| lane.given <= limit.0)
    }

    /// A request of a client, of so many blocks, has been picked.
    pub fn picked(&mut self, client: Client, blocks: u32) {
        let cost = self.request + Blocks::new(blocks.into());
        let sharing = self.lanes.values().filter(|lane| lane.waiting > 0).count() as u64;
        let behind = self.behind().expect("somebody waits");
        let share = Blocks::new(cost.get() / sharing);
        self.virtual_time = self.virtual_time.max(behind) + share;
        let lane = self.lanes.get_mut(&client).expect("it has something waiting");
        lane.waiting -= 1;
        lane.given += cost;
        let virtual_time = self.virtual_time;
        self.lanes.retain(|_, lane| lane.waiting > 0 || lane.given > virtual_time);
    }

    /// What the one behind of those that wait has been given.
    fn behind(&self) -> Option<Blocks> {
        self.lanes.values().filter(|lane| lane.waiting > 0).map(|lane| lane.given).min()
    }
}

/// What a client may have been given at most to be picked from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limit(Blocks);

#[cfg(test)]
mod tests {
    use freewheel_units::Prng;

    use super::*;

    const TRACK: u64 = 1000;

    /// A client keeps `depth` requests waiting, another one if `beside`; each pick goes to the first
    /// whenever it may. How many of its own are picked between two of the other's.
    fn picks_between(depth: u64, beside: bool) -> Vec<u64> {
        let (flood, victim) = (Client(1), Client(2));
        let mut turns = Turns::new(Blocks::new(TRACK));
        (0..depth).for_each(|_| turns.arrived(flood));
        let (mut between, mut of_flood) = (Vec::new(), 0);
        for _ in 0..1000 {
            if beside && turns.lanes.get(&victim).is_none_or(|lane| lane.waiting == 0) {
                turns.arrived(victim);
            }
            let may_go = turns.limit().is_none_or(|limit| turns.may_go(flood, limit));
            turns.picked(if may_go { flood } else { victim }, 1);
            if may_go {
                of_flood += 1;
                turns.arrived(flood);
            } else {
                between.push(std::mem::take(&mut of_flood));
            }
        }
        between
    }

    #[test]
    fn one_alone_is_never_held_back() {
        assert_eq!(picks_between(256, false), Vec::<u64>::new());
    }

    #[test]
    fn who_has_one_request_at_a_time_waits_for_a_lead_at_first_and_soon_goes_by_turns() {
        for depth in [1, 256] {
            let between = picks_between(depth, true);
            assert_eq!(between[0], LEAD_REQUESTS, "{depth}");
            assert!(
                between[1..].iter().all(|&picks| picks < LEAD_REQUESTS),
                "{depth}: {between:?}"
            );
            assert!(between[8..].iter().all(|&picks| picks == 1), "{depth}: {between:?}");
        }
    }

    #[test]
    fn those_who_come_again_and_again_as_others_leave_the_rest_its_share() {
        let steady = Client(0);
        let mut turns = Turns::new(Blocks::new(TRACK));
        (0..16).for_each(|_| turns.arrived(steady));
        let mut comers: Vec<u64> = (1..=3).collect();
        comers.iter().for_each(|&number| turns.arrived(Client(number)));
        let (mut next, mut of_steady) = (4, 0);
        for _ in 0..4000 {
            let comer = Client(comers[0]);
            let may_go = turns.limit().is_none_or(|limit| turns.may_go(comer, limit));
            if may_go {
                turns.picked(comer, 1);
                comers.remove(0);
                comers.push(next);
                turns.arrived(Client(next));
                next += 1;
            } else {
                turns.picked(steady, 1);
                turns.arrived(steady);
                of_steady += 1;
            }
            assert!(turns.lanes.len() < 20, "who has gone is forgotten");
        }
        assert!((800..1200).contains(&of_steady), "{of_steady} of 4000 among four");
    }

    #[test]
    fn who_was_away_has_saved_up_nothing() {
        let (early, late) = (Client(1), Client(2));
        let mut turns = Turns::new(Blocks::new(TRACK));
        turns.arrived(early);
        for _ in 0..1000 {
            turns.arrived(early);
            turns.picked(early, 1);
        }
        (0..1000).for_each(|_| turns.arrived(late));
        let mut in_a_row = 0;
        while turns.limit().is_none_or(|limit| turns.may_go(late, limit)) {
            turns.picked(late, 1);
            in_a_row += 1;
        }
        assert_eq!(in_a_row, LEAD_REQUESTS);
    }

    #[test]
    fn long_requests_count_for_more() {
        let (long, short) = (Client(1), Client(2));
        let mut turns = Turns::new(Blocks::new(TRACK));
        let (mut of_long, mut of_short) = (0, 0);
        (0..3000).for_each(|_| [long, short].iter().for_each(|&client| turns.arrived(client)));
        for _ in 0..2000 {
            let may_go = turns.limit().is_none_or(|limit| turns.may_go(long, limit));
            match may_go {
                true => (turns.picked(long, 3 * TRACK as u32), of_long += 1),
                false => (turns.picked(short, 1), of_short += 1),
            };
        }
        let ratio = f64::from(of_short) / f64::from(of_long);
        assert!((3.9..4.1).contains(&ratio), "{ratio}");
    }

    #[test]
    fn whoever_waits_is_never_behind_by_more_than_the_lead_and_a_request_whatever_the_policy_wants()
    {
        let mut prng = Prng::new(1, "turns");
        let mut turns = Turns::new(Blocks::new(TRACK));
        for _ in 0..20_000 {
            if prng.chance(0.5) {
                let clients = 1 + prng.below(5);
                turns.arrived(Client(prng.below(clients)));
            }
            let limit = turns.limit();
            let may_go =
                |turns: &Turns, client| limit.is_none_or(|limit| turns.may_go(client, limit));
            let waiting: Vec<Client> = turns
                .lanes
                .iter()
                .filter(|&(&client, lane)| lane.waiting > 0 && may_go(&turns, client))
                .map(|(&client, _)| client)
                .collect();
            // The policy wants the last of them.
            let Some(&client) = waiting.last() else {
                assert!(turns.behind().is_none(), "somebody may always go");
                continue;
            };
            turns.picked(client, 1 + prng.below(100) as u32);
            let given = |lane: &Lane| lane.given;
            let of_waiting = turns.lanes.values().filter(|lane| lane.waiting > 0);
            let most = of_waiting.map(given).max().unwrap_or_default();
            let behind = turns.behind().unwrap_or(most);
            let lead = Blocks::new((LEAD_REQUESTS + 1) * TRACK + 100);
            assert!(most - behind <= lead, "{turns:?}");
        }
    }
}
