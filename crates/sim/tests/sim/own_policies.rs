//! Policies of a caller in place of the configured ones.

use std::collections::VecDeque;

use freewheel_model::cache::KeyPolicy;
use freewheel_model::sched::{Fcfs, Policy};
use freewheel_sim::config::SimConfig;
use freewheel_sim::experiment::Experiment;

fn experiment(more: &str) -> Experiment {
    let text = format!(
        "drive = \"atlas10k\"\nworkload = {{ kind = \"closed\", outstanding = 8, requests = 400 }}\n{more}"
    );
    Experiment::new(SimConfig::parse(&text, "test", &[]).unwrap()).unwrap()
}

fn in_order() -> Box<dyn Policy> {
    Box::<Fcfs>::default()
}

fn hash(experiment: &Experiment) -> String {
    experiment.run().unwrap().result_hash
}

#[test]
fn own_policy_decides_on_arms_and_clones() {
    for more in ["", "electronics = false", "array = { drives = 2, stripe_unit = \"64KiB\" }"] {
        let sptf = experiment(&format!("scheduler = {{ policy = \"sptf\" }}\n{more}"));
        let own = sptf.clone().with_policy("mine".into(), |_| in_order()).unwrap();
        assert_eq!(own.own_policy(), Some("mine"));
        let fcfs = hash(&experiment(&format!("scheduler = {{ policy = \"fcfs\" }}\n{more}")));
        assert_eq!((hash(&own), hash(&own.clone())), (fcfs.clone(), fcfs), "{more}");
        assert_ne!(hash(&own), hash(&sptf), "{more}");
        // Another configuration has its own policy.
        assert_eq!(hash(&own.with_config(own.config.clone()).unwrap()), hash(&sptf));
    }
}

#[test]
fn own_policy_refused_where_others_decide() {
    let refused = |more: &str| {
        let own = experiment(more).with_policy("mine".into(), |_| in_order());
        own.map(drop).unwrap_err().to_string()
    };
    let linux = refused("scheduler = { policy = \"mq-deadline\" }");
    assert!(linux.contains("mine") && linux.contains("mq-deadline"), "{linux}");
    let host = refused("host = {}");
    assert!(host.contains("mine") && host.contains("leave `host` out"), "{host}");
}

/// First in, first out.
#[derive(Debug)]
struct Fifo(VecDeque<u64>, usize);

impl KeyPolicy for Fifo {
    fn hit(&mut self, _: u64) {}

    fn admit(&mut self, key: u64) -> Option<u64> {
        let evicted = if self.0.len() == self.1 { self.0.pop_front() } else { None };
        self.0.push_back(key);
        evicted
    }

    fn remove(&mut self, key: u64) {
        self.0.retain(|other| *other != key);
    }
}

#[test]
fn own_cache_policy_evicts_read_cache() {
    // Requests stay close to each other, so that blocks are read again.
    let with = |policy: &str| {
        let text = format!(
            "drive = \"atlas10k\"\ncache = {{ size = \"256KiB\", policy = \"{policy}\" }}\n\
             [workload]\nkind = \"closed\"\noutstanding = 4\nrequests = 3000\n\
             pattern = {{ size = \"4KiB\", local_share = 1.0, local_sd = \"256KiB\" }}\n"
        );
        Experiment::new(SimConfig::parse(&text, "test", &[]).unwrap()).unwrap()
    };
    let [fifo, lru] = ["fifo", "lru"].map(with);
    assert_ne!(hash(&fifo), hash(&lru), "no block is read again");
    let make = |capacity: u32| -> Box<dyn KeyPolicy> {
        Box::new(Fifo(VecDeque::new(), capacity as usize))
    };
    let own = lru.clone().with_cache_policy("mine".into(), make).unwrap();
    assert_eq!((hash(&own), own.own_cache_policy()), (hash(&fifo), Some("mine")));
    let without = experiment("").with_cache_policy("mine".into(), make);
    assert!(without.map(drop).unwrap_err().to_string().contains("give a table `cache`"));
}
