//! Fair shares of clients: no client waits until all requests of another are done.
//!
//! Start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996) between clients, and between the
//! connections of each client. It restricts a policy as little as possible. While no client is ahead of
//! a waiting one by more than a lead, the policy picks among all requests; otherwise among those of the
//! clients that are not ahead. A sweep (LOOK, C-LOOK) begins anew after each restricted pick.

use std::collections::BTreeMap;

use freewheel_units::Blocks;

/// Owner of a request. The policy alone orders the requests of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Client {
    /// Number of the owner: all connections of an owner share one turn.
    pub peer: u64,
    /// Number of the connection among the peer's.
    pub connection: u64,
}

impl Client {
    /// A peer with one connection.
    pub const fn alone(number: u64) -> Self {
        Self { peer: number, connection: number }
    }
}

/// Lead of a client over one that waits, in requests of one block. With a short lead, a client with one
/// request is served soon beside one with hundreds. With a long lead, the policy can choose among the
/// requests of several clients. Assumed.
const LEAD_REQUESTS: u64 = 4;

/// Service that the clients with waiting requests have received.
#[derive(Debug)]
pub(crate) struct FairQueue {
    peers: Lanes,
    /// Lanes of each peer's connections.
    connections: BTreeMap<u64, Lanes>,
    /// Cost of a request in addition to its blocks: one turn, which is about its positioning time.
    request: Blocks,
}

/// Flows that share service with each other.
#[derive(Debug, Default)]
struct Lanes {
    flows: BTreeMap<u64, Flow>,
    /// Service of a flow that had always been waiting (the virtual time of Demers, Keshav and Shenker,
    /// SIGCOMM 1989), and at least that of the waiting flow with the least. A new flow begins there: it
    /// saves no service while it is away, and a client gains none by reconnecting again and again.
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
    /// For a drive whose longest track has `track` blocks.
    pub fn new(track: Blocks) -> Self {
        Self { peers: Lanes::default(), connections: BTreeMap::new(), request: track }
    }

    /// A client has one more request.
    pub fn arrived(&mut self, client: Client) {
        self.peers.arrived(client.peer);
        self.connections.entry(client.peer).or_default().arrived(client.connection);
    }

    /// Service that others may have had at most to be picked from; `None` while all may.
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

    /// True if a client may be picked from. Somebody who waits always may.
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

    /// The most service that a flow may have to be picked from; `None` while no flow exceeds it.
    fn limit(&self, lead: Blocks) -> Option<Blocks> {
        let limit = self.behind()? + lead;
        self.flows.values().any(|flow| flow.waiting > 0 && flow.given > limit).then_some(limit)
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

    /// Service of the least served client that waits.
    fn behind(&self) -> Option<Blocks> {
        self.flows.values().filter(|flow| flow.waiting > 0).map(|flow| flow.given).min()
    }
}

/// Service that a client may have had at most to be picked from.
#[derive(Debug, Clone)]
pub(crate) struct Limit {
    peers: Option<Blocks>,
    /// Limit within each peer of whose connections one is ahead.
    connections: BTreeMap<u64, Blocks>,
}

#[cfg(test)]
mod tests {
    use freewheel_units::Prng;

    use super::*;

    const TRACK: u64 = 1000;
    const ONE: Blocks = Blocks::new(1);

    /// One client keeps `depth` requests waiting, and a second one if `beside`; each pick goes to the first
    /// client when it may. Returns the picks of the first between two picks of the second.
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
    fn single_client_is_never_held_back() {
        assert_eq!(picks_between(256, false), Vec::<u64>::new());
    }

    #[test]
    fn client_of_one_request_leads_then_alternates() {
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
    fn reconnecting_clients_leave_others_share() {
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

    /// Number of 4000 picks that each client gets: all of them have requests waiting all the time, and the
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
    fn connections_of_peer_divide_one_share() {
        let many = (0..16).map(|connection| Client { peer: 1, connection });
        let clients: Vec<Client> = many.chain([Client::alone(2)]).collect();
        let shares = shares(&clients);
        assert!(shares[16].abs_diff(2000) <= LEAD_REQUESTS, "{shares:?}");
        let of_one_peer = &shares[..16];
        assert!(of_one_peer.iter().all(|&of| of.abs_diff(125) <= LEAD_REQUESTS), "{shares:?}");
    }

    #[test]
    fn absent_client_saves_no_service() {
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
            if may_go {
                (turns.picked(long, Blocks::new(3 * TRACK)), of_long += 1)
            } else {
                (turns.picked(short, ONE), of_short += 1)
            };
        }
        let ratio = f64::from(of_short) / f64::from(of_long);
        assert!((3.9..4.1).contains(&ratio), "{ratio}");
    }

    #[test]
    fn waiting_client_lag_is_bounded() {
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
