//! Who may have a connection. There are places for clients that have chosen an export, and others for those
//! that have not. So a client without a certificate never takes the place of one that is being served.

use std::collections::BTreeMap;
use std::fmt::Display;

use super::service::Caller;
use super::stream::{Owner, Peer};

/// The connections that are open, by number.
#[derive(Default)]
pub(super) struct Places(BTreeMap<u64, Open>);

/// A connection that is open.
struct Open {
    peer: Option<Peer>,
    owner: Option<Owner>,
    caller: Caller,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The connection has not chosen an export.
    Undecided,
    /// The connection was closed before it had chosen, and its thread has not ended.
    Displaced,
    /// The connection has chosen an export.
    Decided,
}

/// The place of a connection that has been taken.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    pub caller: Caller,
    /// The undecided connection that has to be closed for it.
    pub displaced: Option<u64>,
}

impl Places {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes a connection. Err with the reason if its peer has all its places, or if too many connections are
    /// still being closed.
    ///
    /// The undecided never keep a newcomer out. Where they have all their places, or one owner has three
    /// quarters, the oldest of them goes. Choosing an export takes a client milliseconds, so only
    /// one that does not want it is old.
    pub fn arrive(
        &mut self,
        number: u64,
        (peer, owner): (Option<Peer>, Option<Owner>),
        connections_max: usize,
    ) -> Result<Arrival, String> {
        if let Some(why) = self.refusal(peer, owner, connections_max) {
            return Err(why);
        }
        if self.0.len() >= 3 * connections_max.max(1) {
            return Err(format!("{} connections are open or being closed", self.0.len()));
        }
        let displaced = self.to_displace(owner, connections_max.max(1));
        if let Some(open) = displaced.and_then(|oldest| self.0.get_mut(&oldest)) {
            open.stage = Stage::Displaced;
        }
        let caller = self.caller(number, peer);
        self.0.insert(number, Open { peer, owner, caller, stage: Stage::Undecided });
        Ok(Arrival { caller, displaced })
    }

    /// The undecided connection to close for a new one: the owner's oldest if the owner is at its share, else
    /// the oldest of all if all places are taken.
    fn to_displace(&self, owner: Option<Owner>, undecided_max: usize) -> Option<u64> {
        let undecided = || self.0.iter().filter(|(_, open)| open.stage == Stage::Undecided);
        let of_owner = || undecided().filter(|(_, open)| open.owner == owner);
        let share = (undecided_max - undecided_max / 4).max(1);
        if of_owner().count() >= share {
            return of_owner().next().map(|(&number, _)| number);
        }
        let is_full = undecided().count() >= undecided_max;
        undecided().next().filter(|_| is_full).map(|(&number, _)| number)
    }

    /// A connection has chosen an export: takes its place, or says why there is none.
    pub fn decide(&mut self, number: u64, connections_max: usize) -> Result<(), String> {
        let Some(open) = self.0.get(&number) else { return Ok(()) };
        if open.stage == Stage::Displaced {
            return Err("it was closed for newer ones before it chose an export".into());
        }
        if let Some(why) = self.refusal(open.peer, open.owner, connections_max) {
            return Err(why);
        }
        if let Some(open) = self.0.get_mut(&number) {
            open.stage = Stage::Decided;
        }
        Ok(())
    }

    /// True if a connection is open.
    pub fn has(&self, number: u64) -> bool {
        self.0.contains_key(&number)
    }

    /// True if a connection has to end for a newer one.
    pub fn is_displaced(&self, number: u64) -> bool {
        self.0.get(&number).is_some_and(|open| open.stage == Stage::Displaced)
    }

    /// Frees the place of a connection.
    pub fn leave(&mut self, number: u64) {
        self.0.remove(&number);
    }

    /// Reason to give a peer no further connection among the decided, if there is one.
    fn refusal(
        &self,
        peer: Option<Peer>,
        owner: Option<Owner>,
        connections_max: usize,
    ) -> Option<String> {
        let decided = || self.0.values().filter(|open| open.stage == Stage::Decided);
        if decided().count() >= connections_max {
            return Some(format!("all {connections_max} connections that there may be are taken"));
        }
        let of_peer = decided().filter(|open| open.peer == peer).count();
        let of_owner = decided().filter(|open| open.owner == owner).count();
        let of_owner_max = (connections_max - connections_max / 4).max(1);
        // A peer without a process number may be many programs, so all of its owner's count together.
        let of_peer_max = match peer {
            Some(Peer::Process(number)) if number != 0 => (connections_max / 2).max(1),
            _ => of_owner_max,
        };
        let says = |who: &dyn Display, most| {
            format!("{who} has {most} connections, all that one client may have")
        };
        let too_many_of_peer = peer.filter(|_| of_peer >= of_peer_max);
        let too_many_of_owner = owner.filter(|_| of_owner >= of_owner_max);
        match (too_many_of_peer, too_many_of_owner) {
            (Some(peer), _) => Some(says(&peer, of_peer_max)),
            (None, Some(owner)) => Some(says(&owner, of_owner_max)),
            (None, None) => None,
        }
    }

    /// A new connection of a peer, which has the number of the first of those that are open.
    fn caller(&self, number: u64, peer: Option<Peer>) -> Caller {
        let first = self.0.values().find(|open| peer.is_some() && open.peer == peer);
        Caller { peer: first.map_or(number, |open| open.caller.peer), connection: number }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(number: u8) -> Peer {
        Peer::Machine([192, 0, 2, number].into())
    }

    fn owner(number: u8) -> Owner {
        Owner::Machine([192, 0, 2, number].into())
    }

    /// Connections of one peer, `count` of them, that have chosen an export.
    fn decided(count: u64, peer: Option<Peer>, owner: Option<Owner>) -> Places {
        let mut places = Places::default();
        for number in 0..count {
            places.arrive(number, (peer, owner), 1000).unwrap();
            places.decide(number, 1000).unwrap();
        }
        places
    }

    #[test]
    fn places_busiest_peer_leaves_room() {
        let says = |why: Option<String>, what: &str| why.is_some_and(|why| why.contains(what));
        let places = decided(6, Some(machine(1)), Some(owner(1)));
        let refusal = |peer, owner| places.refusal(Some(peer), Some(owner), 8);
        assert!(says(refusal(machine(1), owner(1)), "192.0.2.1 has 6"));
        assert_eq!(refusal(machine(2), owner(2)), None);

        // A process has half, a user three quarters, and so has the loopback.
        let process = |number| Peer::Process(number);
        for (count, peer, owner, says_so) in [
            (4, process(7), Owner::User(5), Some("process 7 has 4")),
            (4, process(8), Owner::User(5), None),
            (6, process(8), Owner::User(5), Some("user 5 has 6")),
            (6, process(8), Owner::User(6), None),
            (6, process(8), Owner::Loopback, None),
        ] {
            let places = decided(count, Some(process(7)), Some(Owner::User(5)));
            let why = places.refusal(Some(peer), Some(owner), 8);
            assert_eq!(why.is_some(), says_so.is_some(), "{count} {peer} {owner}");
            assert!(says_so.is_none_or(|what| says(why, what)), "{count} {peer} {owner}");
        }
        let places = decided(6, None, Some(Owner::Loopback));
        let of_loopback = |most| places.refusal(None, Some(Owner::Loopback), most);
        assert!(says(of_loopback(8), "the loopback address has 6"));
        assert!(of_loopback(6).is_some_and(|why| why.starts_with("all 6")));
        let empty = Places::default();
        assert_eq!(empty.refusal(Some(process(1)), Some(Owner::User(1)), 1), None);
    }

    #[test]
    fn places_peers_by_machine_or_loopback_connection() {
        let mut places = Places::default();
        let peers = [Some(1), None, Some(2), Some(1), None].map(|number| number.map(machine));
        let mut number = 0..;
        let peers = peers.map(|peer| {
            let arrived = places.arrive(number.next().unwrap(), (peer, None), 64);
            arrived.unwrap().caller.peer
        });
        assert_eq!(peers, [0, 1, 2, 0, 4]);
    }

    #[test]
    fn places_clients_without_export_block_nobody() {
        let loopback = (None, Some(Owner::Loopback));
        let mut places = Places::default();
        for number in 0..6 {
            assert_eq!(places.arrive(number, loopback, 8).unwrap().displaced, None);
        }
        // Three quarters: from now on the oldest goes, whose thread ends soon after.
        for number in 6..100 {
            let arrived = places.arrive(number, loopback, 8).unwrap();
            assert_eq!(arrived.displaced, Some(number - 6));
            assert!(places.decide(number - 6, 8).is_err(), "it is too late");
            assert!(places.is_displaced(number - 6));
            places.leave(number - 6);
        }
        // Other machines, of which each has its share, displace the oldest of all.
        for number in 100..102 {
            let of = (Some(machine(1)), Some(owner(1)));
            assert_eq!(places.arrive(number, of, 8).unwrap().displaced, None);
        }
        let of = (Some(machine(2)), Some(owner(2)));
        assert_eq!(places.arrive(102, of, 8).unwrap().displaced, Some(94));
        assert_eq!(places.decide(102, 8), Ok(()));
        assert!(!places.is_displaced(102));
    }

    #[test]
    fn places_full_refuse_choosing_client() {
        let mut places = decided(5, None, None);
        let of = |number| (Some(machine(number)), Some(owner(number)));
        places.arrive(5, of(1), 6).unwrap();
        places.arrive(6, of(2), 6).unwrap();
        assert_eq!(places.decide(5, 6), Ok(()));
        assert!(places.decide(6, 6).is_err_and(|why| why.starts_with("all 6")));
        assert!(places.arrive(7, of(3), 6).is_err_and(|why| why.starts_with("all 6")));
        places.leave(5);
        assert_eq!(places.decide(6, 6), Ok(()));
    }

    #[test]
    fn places_bound_closing_connections() {
        let mut places = Places::default();
        let of = (None, Some(Owner::Loopback));
        let taken = (0..100).take_while(|&number| places.arrive(number, of, 8).is_ok()).count();
        assert_eq!(taken, 24);
        places.leave(0);
        assert!(places.arrive(100, of, 8).is_ok());
    }
}
