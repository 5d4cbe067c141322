//! A G4 layout resolved block by block, straight from the text of its file.
#![allow(missing_docs, dead_code)] // Each test file uses its own part.

use freewheel_model::drive::Drive;
use freewheel_units::{Angle, Lbn};

/// The tables of a `dm_layout_g4`.
pub struct G4 {
    /// First and last sector with data, sectors in all.
    tracks: Vec<[i64; 3]>,
    indices: Vec<Vec<Entry>>,
    /// Block of the tree, and how many from there on hold no data.
    slips: Vec<[i64; 2]>,
}

struct Entry {
    lbn: i64,
    cylinder: i64,
    turns: f64,
    lbns_each: i64,
    cylinders_each: i64,
    turns_each: f64,
    lbns: i64,
    cylinders: i64,
    /// Kind of track and head, or none and an index.
    head: Option<i64>,
    child: usize,
}

/// Place of a block.
pub struct Found {
    pub cylinder: i64,
    pub head: i64,
    pub sector: i64,
    /// Angle at which the block begins, whole turns and all.
    pub turns: f64,
}

impl G4 {
    pub fn new(layout: &str) -> Self {
        let lines = layout.lines().map(|line| line.split('#').next().unwrap());
        let text: String = lines.collect::<Vec<_>>().join(" ");
        let (text, others) = text.split_once("Slips").unwrap_or((&text, ""));
        let slips = others.split(']').next().unwrap();
        let slips: Vec<i64> = items(slips).filter_map(|item| item.parse().ok()).collect();
        let (tracks, rest) = text.split_once("IDX").unwrap();
        let numbers: Vec<i64> =
            items(tracks.split_once('[').unwrap().1).filter_map(|item| item.parse().ok()).collect();
        let lists = rest.split_once('[').unwrap().1.split(']');
        let indices = lists.map_while(|list| {
            let entries: Vec<&str> = items(list.split_once('[')?.1).collect();
            Some(entries)
        });
        Self {
            tracks: numbers.chunks(3).map(|kind| kind.try_into().unwrap()).collect(),
            indices: indices
                .map(|index| entries(&index))
                .filter(|index| !index.is_empty())
                .collect(),
            slips: slips.chunks(2).map(|pair| pair.try_into().unwrap()).collect(),
        }
    }

    /// Every block of the drive, by enumerating those of the tree from the first to the last and
    /// leaving out the slipped ones.
    pub fn blocks_one_by_one(&self) -> Vec<Found> {
        let mut blocks = Vec::new();
        self.enumerate(self.indices.last().unwrap(), 0, 0.0, &mut blocks);
        let mut slips: Vec<[i64; 2]> = self.slips.clone();
        slips.sort_by_key(|pair| pair[0]);
        let (mut due, mut left_out) = (slips.iter().peekable(), 0);
        let mut kept = Vec::new();
        for (number, block) in blocks.into_iter().enumerate() {
            while let Some([_, count]) = due.next_if(|pair| pair[0] <= number as i64) {
                left_out += count;
            }
            if left_out > 0 {
                left_out -= 1;
            } else {
                kept.push(block);
            }
        }
        kept
    }

    fn enumerate(&self, index: &[Entry], cylinder: i64, turns: f64, out: &mut Vec<Found>) {
        for entry in index {
            for time in 0..entry.lbns / entry.lbns_each {
                let moved = time * entry.cylinders_each * entry.cylinders.signum();
                let cylinder = cylinder + entry.cylinder + moved;
                let turns = turns + entry.turns + time as f64 * entry.turns_each;
                let Some(head) = entry.head else {
                    self.enumerate(&self.indices[entry.child], cylinder, turns, out);
                    continue;
                };
                let [first, last, sectors] = self.tracks[entry.child];
                out.extend((first..=last).map(|sector| Found {
                    cylinder,
                    head,
                    sector,
                    turns: turns + (sector - first) as f64 / sectors as f64,
                }));
            }
        }
    }

    pub fn blocks(&self) -> i64 {
        let last = self.indices.last().and_then(|root| root.last()).unwrap();
        last.lbn + last.lbns
    }

    /// Follows the tables from the root down.
    pub fn resolve(&self, lbn: i64) -> Found {
        let (mut cylinder, mut turns, mut rest) = (0, 0.0, lbn);
        let mut index = self.indices.last().unwrap();
        loop {
            let covers = |entry: &&Entry| (entry.lbn..entry.lbn + entry.lbns).contains(&rest);
            let entry = index.iter().find(covers).unwrap();
            let times = (rest - entry.lbn) / entry.lbns_each;
            rest = (rest - entry.lbn) % entry.lbns_each;
            cylinder += entry.cylinder + times * entry.cylinders_each * entry.cylinders.signum();
            turns += entry.turns + times as f64 * entry.turns_each;
            if let Some(head) = entry.head {
                let [first, _, sectors] = self.tracks[entry.child];
                turns += rest as f64 / sectors as f64;
                return Found { cylinder, head, sector: first + rest, turns };
            }
            index = &self.indices[entry.child];
        }
    }

    /// Asserts that the drive has the block where the tables have it.
    pub fn check(&self, drive: &Drive, lbn: u64) {
        let apart = self.resolve(lbn as i64).apart(drive, lbn);
        assert!(apart < 2e-9, "lbn {lbn}: {apart} turns from its angle");
    }
}

impl Found {
    /// Asserts that the drive has the block on this cylinder, head and sector. Returns how many turns
    /// it is from this angle there.
    pub fn apart(&self, drive: &Drive, lbn: u64) -> f64 {
        let layout = drive.layout();
        let place = layout.locate(Lbn::new(lbn));
        assert_eq!(
            (place.cylinder.into(), place.surface.into(), place.sector.into()),
            (self.cylinder, self.head, self.sector),
            "lbn {lbn}"
        );
        let zone = &layout.zones()[layout.zone_at(place.cylinder, place.surface).unwrap()];
        let start = layout.track_start(place.cylinder, place.surface).unwrap();
        let sectors = u64::from(zone.blocks_per_track());
        let ours = (start + Angle::from_ratio(place.sector.into(), sectors)).turns();
        let apart = (ours - self.turns).rem_euclid(1.0);
        apart.min(1.0 - apart)
    }
}

fn items(list: &str) -> impl Iterator<Item = &str> {
    list.split([',', ' ', '\t', '[', ']', '=']).filter(|item| !item.is_empty())
}

fn entries(mut items: &[&str]) -> Vec<Entry> {
    let mut entries = Vec::new();
    while items.len() >= 10 {
        let whole = |at: usize| items[at].parse::<i64>().unwrap();
        let turns = |at: usize| items[at].parse::<f64>().unwrap();
        let head = (items[8] == "TRACK").then(|| whole(10));
        entries.push(Entry {
            lbn: whole(0),
            cylinder: whole(1),
            turns: turns(2),
            lbns_each: whole(3),
            cylinders_each: whole(4),
            turns_each: turns(5),
            lbns: whole(6),
            cylinders: whole(7),
            head,
            child: whole(9) as usize,
        });
        items = &items[if head.is_some() { 11 } else { 10 }..];
    }
    entries
}
