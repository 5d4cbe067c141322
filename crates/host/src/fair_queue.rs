//! Turns between clients: none waits behind all the requests of another.
//!
//! Start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996) between those who connect, and between
//! the connections of each, as far as a policy that goes by positions can be left its choice: of all that
//! waits while nobody is ahead of another that waits by more than a lead; of what the others want while
//! one is. A sweep (LOOK, C-LOOK) begins anew whenever that happens.

use std::collections::BTreeMap;

use freewheel_units::Blocks;

/// Who wants a request. Requests of one connection wait for each other as the policy has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Client {
    /// Whose connection it is: however many somebody has, they share one turn.
    pub peer: u64,
    /// Which of the peer's it is.
    pub connection: u64,
}

impl Client {
    /// A peer with one connection.
    pub const fn alone(number: u64) -> Self {
        Self { peer: number, connection: number }
    }
}

/// By how many requests of one block a client may be ahead of one that waits. The fewer, the sooner a
/// client with one request is served beside one with hundreds; the more, the better a policy can choose
/// among the requests of several. Assumed.
const LEAD_REQUESTS: u64 = 4;

/// What clients that had something waiting of late have been given.
#[derive(Debug)]
pub(crate) struct FairQueue {
    peers: Lanes,
    /// Of each peer that has a lane.
    connections: BTreeMap<u64, Lanes>,
    /// Of a request beside its blocks: a turn's, which is about what it takes to get there.
    request: Blocks,
}

/// Those who take turns with each other.
#[derive(Debug, Default)]
struct Lanes {
    flows: BTreeMap<u64, Flow>,
    /// What one that has always been waiting would have been given in fair shares (the virtual time of
    /// Demers, Keshav and Shenker, SIGCOMM 1989), and no less than the one behind. Who comes begins
    /// there: nobody saves up, and those that come again and again as others gain nothing by it.
    virtual_time: Blocks,
}

#[derive(Debug, Default)]
struct Flow {
    /// Requests that have not been picked.
    waiting: u64,
    /// So far, as if it had always been there.
    given: Blocks,
}

impl FairQueue {
    /// On a drive whose longest tracks have so many blocks.
    pub fn new(track: Blocks) -> Self {
        Self { peers: Lanes::default(), connections: BTreeMap::new(), request: track }
    }

    /// A client has one more request.
    pub fn arrived(&mut self, client: Client) {
        self.peers.arrived(client.peer);
        self.connections.entry(client.peer).or_default().arrived(client.connection);
    }

    /// What others may have been given at most to be picked from; `None` while everybody may.
    pub fn limit(&self) -> Option<Limit> {
        let lead = Blocks::new(LEAD_REQUESTS * self.request.get());
        let connections = self.connections.iter();
        let limit = Limit {
            peers: self.peers.limit(lead),
            connections: connections
                .filter_map(|(&peer, flows)| Some((peer, flows.limit(lead)?)))
                .collect(),
        };
        (limit.peers.is_some() || !limit.connections.is_empty()).then_some(limit)
    }

    /// Whether a client may be picked from. Somebody who waits always may.
    pub fn may_go(&self, client: Client, limit: &Limit) -> bool {
        let Client { peer, connection } = client;
        let of_peer = limit.connections.get(&peer);
        limit.peers.is_none_or(|limit| self.peers.is_within(peer, limit))
            && of_peer.is_none_or(|&limit| self.connections[&peer].is_within(connection, limit))
    }

    /// A client does not want one of its requests any more.
    pub fn withdrawn(&mut self, client: Client) {
        self.peers.withdrawn(client.peer);
        if let Some(connections) = self.connections.get_mut(&client.peer) {
            connections.withdrawn(client.connection);
        }
        self.connections.retain(|peer, _| self.peers.flows.contains_key(peer));
    }

    /// A request of a client has been picked.
    pub fn picked(&mut self, client: Client, blocks: Blocks) {
        let cost = self.request + blocks;
        self.peers.picked(client.peer, cost);
        let connections = self.connections.get_mut(&client.peer);
        connections.expect("it has something waiting").picked(client.connection, cost);
        self.connections.retain(|peer, _| self.peers.flows.contains_key(peer));
    }
}

impl Lanes {
    fn arrived(&mut self, who: u64) {
        let flow = self.flows.entry(who).or_default();
        if flow.waiting == 0 {
            flow.given = flow.given.max(self.virtual_time);
        }
        flow.waiting += 1;
    }

    /// `None` while nobody is ahead by more than the lead.
    fn limit(&self, lead: Blocks) -> Option<Blocks> {
        let limit = self.behind()? + lead;
        let is_held = |flow: &Flow| flow.waiting > 0 && flow.given > limit;
        self.flows.values().any(is_held).then_some(limit)
    }

    fn is_within(&self, who: u64, limit: Blocks) -> bool {
        self.flows.get(&who).is_some_and(|flow| flow.given <= limit)
    }

    fn picked(&mut self, who: u64, cost: Blocks) {
        let sharing = self.flows.values().filter(|flow| flow.waiting > 0).count() as u64;
        let behind = self.behind().expect("somebody waits");
        let share = Blocks::new(cost.get() / sharing);
        self.virtual_time = self.virtual_time.max(behind) + share;
        let flow = self.flows.get_mut(&who).expect("it has something waiting");
        flow.waiting -= 1;
        flow.given += cost;
        let virtual_time = self.virtual_time;
        self.flows.retain(|_, flow| flow.waiting > 0 || flow.given > virtual_time);
    }

    fn withdrawn(&mut self, who: u64) {
        if let Some(flow) = self.flows.get_mut(&who) {
            flow.waiting -= 1;
        }
        let virtual_time = self.virtual_time;
        self.flows.retain(|_, flow| flow.waiting > 0 || flow.given > virtual_time);
    }

    /// What the one behind of those that wait has been given.
    fn behind(&self) -> Option<Blocks> {
        self.flows.values().filter(|flow| flow.waiting > 0).map(|flow| flow.given).min()
    }
}

/// What a client may have been given at most to be picked from.
#[derive(Debug, Clone)]
pub(crate) struct Limit {
    peers: Option<Blocks>,
    /// Of peers of whose connections one is ahead.
    connections: BTreeMap<u64, Blocks>,
}

#[cfg(test)]
mod tests {
    use freewheel_units::Prng;

    use super::*;

    const TRACK: u64 = 1000;
    const ONE: Blocks = Blocks::new(1);

    /// A client keeps `depth` requests waiting, another one if `beside`; each pick goes to the first
    /// whenever it may. How many of its own are picked between two of the other's.
    fn picks_between(depth: u64, beside: bool) -> Vec<u64> {
        let (flood, victim) = (Client::alone(1), Client::alone(2));
        let mut turns = FairQueue::new(Blocks::new(TRACK));
        (0..depth).for_each(|_| turns.arrived(flood));
        let (mut between, mut of_flood) = (Vec::new(), 0);
        for _ in 0..1000 {
            if beside && turns.peers.flows.get(&victim.peer).is_none_or(|flow| flow.waiting == 0) {
                turns.arrived(victim);
            }
            let may_go = turns.limit().is_none_or(|limit| turns.may_go(flood, &limit));
            turns.picked(if may_go { flood } else { victim }, ONE);
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
        let steady = Client::alone(0);
        let mut turns = FairQueue::new(Blocks::new(TRACK));
        (0..16).for_each(|_| turns.arrived(steady));
        let mut comers: Vec<u64> = (1..=3).collect();
        comers.iter().for_each(|&number| turns.arrived(Client::alone(number)));
        let (mut next, mut of_steady) = (4, 0);
        for _ in 0..4000 {
            let comer = Client::alone(comers[0]);
            let may_go = turns.limit().is_none_or(|limit| turns.may_go(comer, &limit));
            if may_go {
                turns.picked(comer, ONE);
                comers.remove(0);
                comers.push(next);
                turns.arrived(Client::alone(next));
                next += 1;
            } else {
                turns.picked(steady, ONE);
                turns.arrived(steady);
                of_steady += 1;
            }
            assert!(turns.peers.flows.len() < 20, "who has gone is forgotten");
        }
        assert!((800..1200).contains(&of_steady), "{of_steady} of 4000 among four");
    }

    /// Of 4000 picks, how many go to whom: all of them have something waiting all the time, and the
    /// policy wants the first that may go.
    fn shares(clients: &[Client]) -> Vec<u64> {
        let mut turns = FairQueue::new(Blocks::new(TRACK));
        let mut of = vec![0; clients.len()];
        clients.iter().chain(clients).for_each(|&client| turns.arrived(client));
        for _ in 0..4000 {
            let limit = turns.limit();
            let may_go =
                |&client: &Client| limit.as_ref().is_none_or(|limit| turns.may_go(client, limit));
            let at = clients.iter().position(may_go).expect("somebody may always go");
            turns.picked(clients[at], ONE);
            turns.arrived(clients[at]);
            of[at] += 1;
        }
        of
    }

    #[test]
    fn sixteen_connections_of_one_peer_have_the_share_of_one_and_divide_it_evenly() {
        let many = (0..16).map(|connection| Client { peer: 1, connection });
        let clients: Vec<Client> = many.chain([Client::alone(2)]).collect();
        let shares = shares(&clients);
        assert!(shares[16].abs_diff(2000) <= LEAD_REQUESTS, "{shares:?}");
        let of_one_peer = &shares[..16];
        assert!(of_one_peer.iter().all(|&of| of.abs_diff(125) <= LEAD_REQUESTS), "{shares:?}");
    }

    #[test]
    fn who_was_away_has_saved_up_nothing() {
        let (early, late) = (Client::alone(1), Client::alone(2));
        let mut turns = FairQueue::new(Blocks::new(TRACK));
        turns.arrived(early);
        for _ in 0..1000 {
            turns.arrived(early);
            turns.picked(early, ONE);
        }
        (0..1000).for_each(|_| turns.arrived(late));
        let mut in_a_row = 0;
        while turns.limit().is_none_or(|limit| turns.may_go(late, &limit)) {
            turns.picked(late, ONE);
            in_a_row += 1;
        }
        assert_eq!(in_a_row, LEAD_REQUESTS);
    }

    #[test]
    fn long_requests_count_for_more() {
        let (long, short) = (Client::alone(1), Client::alone(2));
        let mut turns = FairQueue::new(Blocks::new(TRACK));
        let (mut of_long, mut of_short) = (0, 0);
        (0..3000).for_each(|_| [long, short].iter().for_each(|&client| turns.arrived(client)));
        for _ in 0..2000 {
            let may_go = turns.limit().is_none_or(|limit| turns.may_go(long, &limit));
            match may_go {
                true => (turns.picked(long, Blocks::new(3 * TRACK)), of_long += 1),
                false => (turns.picked(short, ONE), of_short += 1),
            };
        }
        let ratio = f64::from(of_short) / f64::from(of_long);
        assert!((3.9..4.1).contains(&ratio), "{ratio}");
    }

    #[test]
    fn whoever_waits_is_never_behind_by_more_than_the_lead_and_a_request_whatever_the_policy_wants()
    {
        let mut prng = Prng::new(1, "turns");
        let mut turns = FairQueue::new(Blocks::new(TRACK));
        for _ in 0..20_000 {
            if prng.chance(0.5) {
                let peers = 1 + prng.below(4);
                let (peer, connection) = (prng.below(peers), prng.below(3));
                turns.arrived(Client { peer, connection });
            }
            let limit = turns.limit();
            let may_go = |turns: &FairQueue, client| {
                limit.as_ref().is_none_or(|limit| turns.may_go(client, limit))
            };
            let flows = turns.connections.iter().flat_map(|(&peer, connections)| {
                let waiting = connections.flows.iter().filter(|(_, flow)| flow.waiting > 0);
                waiting.map(move |(&connection, _)| Client { peer, connection })
            });
            let waiting: Vec<Client> = flows.filter(|&client| may_go(&turns, client)).collect();
            // The policy wants the last of them.
            let Some(&client) = waiting.last() else {
                assert!(turns.peers.behind().is_none(), "somebody may always go");
                continue;
            };
            turns.picked(client, Blocks::new(1 + prng.below(100)));
            for flows in turns.connections.values().chain([&turns.peers]) {
                let of_waiting = flows.flows.values().filter(|flow| flow.waiting > 0);
                let most = of_waiting.map(|flow| flow.given).max().unwrap_or(Blocks::ZERO);
                let behind = flows.behind().unwrap_or(most);
                let by = (most - behind).get();
                assert!(by <= (LEAD_REQUESTS + 1) * TRACK + 100, "{turns:?}");
            }
        }
    }
}
