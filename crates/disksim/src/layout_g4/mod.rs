//! `dm_layout_g4`: a tree of runs of tracks.
//!
//! `TP` lists kinds of tracks: first and last sector that hold data, sectors in all. `IDX` lists
//! indices, the last is the root. An entry of an index covers a run of LBNs, cylinders and angles
//! by repeating a child, a track on one head or another index:
//!
//! ```text
//!   lbn, cyl, off      where the run begins, within its index; off in turns
//!   len, cyllen, alen  LBNs, cylinders and turns from one repetition to the next
//!   runlen, cylrunlen  LBNs and cylinders of the run, cylinders negative when it runs outwards
//!   TRACK, kind, head  or  IDX, index
//! ```
//!
//! An angle is that of a track's first sector with data. A run that leads outwards still advances the
//! angles in the order of LBNs. Angles are integers of 10^-9 turns. `Slips` lists blocks of the tree
//! that hold no data: `block, count`, ascending.
//!
//! | file | subject |
//! |---|---|
//! | this | the tree, unrolled to runs of tracks on one head |
//! | `pieces` | runs cut where all tracks of some cylinders are complete |
//! | `numbering` | the orders in which a drive file can number tracks |
//! | `skews` | angles to skews, with the error of a measurement averaged |
//! | `unused` | sectors without data to spares and slips |
//! | `zones` | all of these to zones |

mod numbering;
mod pieces;
mod skews;
mod unused;
mod zones;

use std::ops::Range;

use crate::error::{ImportError, Place, wrong};
use crate::fields::{Fields, Report, list, number, text, whole};
use crate::layout_g1::ImportedLayout;
use crate::number::NANO_TURNS as TURN;
use crate::parse::{Block, Param, Value};

const RUNS_MAX: usize = 4_000_000;
const DEPTH_MAX: usize = 16;
const CYLINDERS_MAX: i64 = 4_000_000;
const LBN_MAX: i64 = 1 << 50;

#[derive(Clone, Copy, PartialEq, Eq)]
struct Track {
    sectors: i64,
    front: i64,
    data: i64,
}

impl Track {
    /// Sectors behind those with data.
    fn behind(&self) -> i64 {
        self.sectors - self.front - self.data
    }
}

#[derive(Clone, Copy)]
enum Child {
    Track { kind: usize, head: i64 },
    Index(usize),
}

/// An entry of an index.
struct Entry {
    lbn: i64,
    cylinder: i64,
    angle: i64,
    lbns_each: i64,
    cylinders_each: i64,
    angle_each: i64,
    lbns: i64,
    cylinders: i64,
    child: Child,
    at: Place,
}

/// Tracks on one head, in the order of their LBNs.
struct Run {
    lbn: i64,
    /// Cylinder of the first track; `step` leads to the next.
    cylinder: i64,
    step: i64,
    tracks: i64,
    head: i64,
    kind: usize,
    angle: i64,
    angle_each: i64,
    /// Entry of the root that it comes from, if that is an index.
    part: Option<usize>,
    at: Place,
}

impl Run {
    fn cylinders(&self) -> (i64, i64) {
        let last = self.cylinder + self.step * (self.tracks - 1);
        (self.cylinder.min(last), self.cylinder.max(last))
    }
}

/// Tracks in the order of their LBNs, and the LBNs that hold no data.
struct Media<'a> {
    runs: &'a [Run],
    tracks: &'a [Track],
    surfaces: u32,
    slipped: &'a [Range<i64>],
}

pub(crate) fn layout(
    source: &Block,
    surfaces: u32,
    report: &mut Report,
) -> Result<ImportedLayout, ImportError> {
    let mut fields = Fields::new(source);
    let tracks = tracks(fields.need("TP")?)?;
    let index = fields.need("IDX")?;
    let indices = indices(index, tracks.len())?;
    let slipped = match fields.get("Slips") {
        Some(param) => unused::slipped(param, report)?,
        None => Vec::new(),
    };
    lose_remaps(&mut fields, report)?;
    fields.finish(&[], report);
    let mut tree =
        Tree { tracks: &tracks, indices: &indices, surfaces, runs: Vec::new(), visits: 0 };
    tree.unroll_root(&source.at)?;
    let runs = tree.runs;
    check_lbns(&runs, &tracks)?;
    let media = Media { runs: &runs, tracks: &tracks, surfaces, slipped: &slipped };
    zones::layout(&media, index, report)
}

/// `first, last, sectors` of each kind of track.
fn tracks(param: &Param) -> Result<Vec<Track>, ImportError> {
    let items = list(&param.value, "TP")?;
    if items.is_empty() || items.len() % 3 != 0 {
        let rule = format!("`TP` has {} numbers; three a kind of track are expected", items.len());
        return Err(wrong(&param.value.at, rule));
    }
    items.chunks_exact(3).map(track).collect()
}

fn track(items: &[Value]) -> Result<Track, ImportError> {
    let (low, high, sectors) = (sector(&items[0])?, sector(&items[1])?, sector(&items[2])?);
    if low > high || high >= sectors {
        let rule = format!("a track from sector {low} to {high} of {sectors}");
        return Err(wrong(&items[0].at, rule));
    }
    Ok(Track { sectors, front: low, data: high - low + 1 })
}

fn sector(item: &Value) -> Result<i64, ImportError> {
    Ok(i64::from(whole(item, "TP", 65_536u32)?))
}

fn indices(param: &Param, tracks: usize) -> Result<Vec<Vec<Entry>>, ImportError> {
    let items = list(&param.value, "IDX")?;
    if items.is_empty() {
        return Err(wrong(&param.value.at, "`IDX` is empty; the last index is the root"));
    }
    items.iter().map(|item| entries(item, tracks, items.len())).collect()
}

fn entries(item: &Value, tracks: usize, indices: usize) -> Result<Vec<Entry>, ImportError> {
    let mut rest = list(item, "IDX")?;
    let mut entries = Vec::new();
    while !rest.is_empty() {
        let (entry, length) = entry(rest, &item.at, tracks, indices)?;
        entries.push(entry);
        rest = &rest[length..];
    }
    Ok(entries)
}

/// The first entry of a list, and how many values it takes.
fn entry(
    items: &[Value],
    at: &Place,
    tracks: usize,
    indices: usize,
) -> Result<(Entry, usize), ImportError> {
    let at = items.first().map_or(at, |item| &item.at).clone();
    let get = |index: usize| {
        items.get(index).ok_or_else(|| {
            wrong(&at, "an entry of `IDX` ends early: ten values, eleven for a track")
        })
    };
    let count = |index: usize, max: i64| signed(get(index)?, "IDX", max);
    let angle = |index: usize| Ok(number(get(index)?, "IDX")?.nano_turns(1));
    let below = |index: usize, end: usize| -> Result<usize, ImportError> {
        Ok(whole(get(index)?, "IDX", end.saturating_sub(1) as u64)? as usize)
    };
    let (child, length) = match text(get(8)?, "IDX")? {
        "TRACK" => (Child::Track { kind: below(9, tracks)?, head: count(10, 64)? }, 11),
        "IDX" => (Child::Index(below(9, indices)?), 10),
        other => {
            return Err(wrong(&get(8)?.at, format!("`{other}`: TRACK or IDX is expected")));
        }
    };
    let entry = Entry {
        lbn: count(0, LBN_MAX)?,
        cylinder: count(1, CYLINDERS_MAX)?,
        angle: angle(2)?,
        lbns_each: count(3, LBN_MAX)?,
        cylinders_each: count(4, CYLINDERS_MAX)?,
        angle_each: angle(5)?,
        lbns: count(6, LBN_MAX)?,
        cylinders: count(7, CYLINDERS_MAX)?,
        child,
        at,
    };
    Ok((entry, length))
}

/// A whole number of at most this size either way.
fn signed(value: &Value, key: &str, max: i64) -> Result<i64, ImportError> {
    let number = number(value, key)?;
    let size = number.abs().whole::<u64>().and_then(|size| i64::try_from(size).ok());
    let size = size.filter(|size| *size <= max).ok_or_else(|| {
        let rule =
            format!("`{}` in `{key}`; a whole number up to {max} is expected", value.shown());
        wrong(&value.at, rule)
    })?;
    Ok(if number.is_negative() { -size } else { size })
}

fn lose_remaps(fields: &mut Fields<'_>, report: &mut Report) -> Result<(), ImportError> {
    if let Some(param) = fields.get("Remaps")
        && !list(&param.value, "Remaps")?.is_empty()
    {
        report.lost(param, "these blocks are taken to be where they would be without the defect");
    }
    Ok(())
}

struct Tree<'a> {
    tracks: &'a [Track],
    indices: &'a [Vec<Entry>],
    surfaces: u32,
    runs: Vec<Run>,
    /// Visits to entries; bounded, as nested indices without entries would unroll to no track many
    /// times.
    visits: usize,
}

/// Place where an index begins.
#[derive(Clone, Copy)]
struct Origin {
    lbn: i64,
    cylinder: i64,
    angle: i64,
}

impl Tree<'_> {
    fn unroll_root(&mut self, at: &Place) -> Result<(), ImportError> {
        let root = self.indices.last().ok_or_else(|| wrong(at, "`IDX` is empty"))?;
        let origin = Origin { lbn: 0, cylinder: 0, angle: 0 };
        for (part, entry) in root.iter().enumerate() {
            let part = matches!(entry.child, Child::Index(_)).then_some(part);
            self.unroll(entry, origin, part, 0)?;
        }
        Ok(())
    }

    fn unroll(
        &mut self,
        entry: &Entry,
        origin: Origin,
        part: Option<usize>,
        depth: usize,
    ) -> Result<(), ImportError> {
        if depth > DEPTH_MAX {
            let rule = format!("indices nest deeper than {DEPTH_MAX}");
            return Err(wrong(&entry.at, rule));
        }
        let times = repetitions(entry)?;
        if matches!(entry.child, Child::Index(_)) {
            self.visits = self.visits.saturating_add(times as usize);
        }
        if self.visits > RUNS_MAX {
            return Err(wrong(&entry.at, format!("more than {RUNS_MAX} repetitions of indices")));
        }
        let start = Origin {
            lbn: origin.lbn + entry.lbn,
            cylinder: origin.cylinder + entry.cylinder,
            angle: (origin.angle + entry.angle) % TURN,
        };
        match entry.child {
            Child::Track { kind, head } => self.push(entry, start, times, (kind, head), part),
            Child::Index(index) => {
                let step = entry.cylinders_each * entry.cylinders.signum();
                for time in 0..times {
                    let origin = Origin {
                        lbn: start.lbn + time * entry.lbns_each,
                        cylinder: start.cylinder + time * step,
                        angle: (start.angle + time % TURN * entry.angle_each) % TURN,
                    };
                    for child in &self.indices[index] {
                        self.unroll(child, origin, part, depth + 1)?;
                    }
                }
                Ok(())
            }
        }
    }

    fn push(
        &mut self,
        entry: &Entry,
        start: Origin,
        tracks: i64,
        (kind, head): (usize, i64),
        part: Option<usize>,
    ) -> Result<(), ImportError> {
        let data = self.tracks[kind].data;
        if entry.lbns_each != data {
            let rule = format!("{} LBNs on a track of {data} sectors of data", entry.lbns_each);
            return Err(wrong(&entry.at, rule));
        }
        if !(0..i64::from(self.surfaces)).contains(&head) {
            let rule = format!("head {head} of a drive with {} surfaces", self.surfaces);
            return Err(wrong(&entry.at, rule));
        }
        if self.runs.len() >= RUNS_MAX {
            return Err(wrong(&entry.at, format!("more than {RUNS_MAX} runs of tracks")));
        }
        let run = Run {
            lbn: start.lbn,
            cylinder: start.cylinder,
            step: entry.cylinders_each * entry.cylinders.signum(),
            tracks,
            head,
            kind,
            angle: start.angle,
            angle_each: entry.angle_each,
            part,
            at: entry.at.clone(),
        };
        let (first, last) = run.cylinders();
        if first < 0 || last > CYLINDERS_MAX {
            let rule = format!("the run lies on cylinders {first} to {last}");
            return Err(wrong(&entry.at, rule));
        }
        self.runs.push(run);
        Ok(())
    }
}

/// Number of repetitions of an entry's child: by LBNs and by cylinders alike.
fn repetitions(entry: &Entry) -> Result<i64, ImportError> {
    let lbns = whole_quotient(entry.lbns, entry.lbns_each);
    let cylinders = whole_quotient(entry.cylinders.abs(), entry.cylinders_each);
    match (lbns, cylinders) {
        (Some(lbns), Some(cylinders)) if lbns == cylinders => Ok(lbns),
        _ => {
            let rule = format!(
                "{} LBNs in steps of {} and {} cylinders in steps of {} are not equally many steps",
                entry.lbns, entry.lbns_each, entry.cylinders, entry.cylinders_each
            );
            Err(wrong(&entry.at, rule))
        }
    }
}

fn whole_quotient(all: i64, each: i64) -> Option<i64> {
    (each > 0 && all > 0 && all % each == 0).then(|| all / each)
}

fn check_lbns(runs: &[Run], tracks: &[Track]) -> Result<(), ImportError> {
    let mut next = 0;
    for run in runs {
        if run.lbn != next {
            let rule = format!("the run begins at LBN {}, the one before ends at {next}", run.lbn);
            return Err(wrong(&run.at, rule));
        }
        next += run.tracks * tracks[run.kind].data;
    }
    Ok(())
}
