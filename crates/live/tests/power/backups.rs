//! Background tasks: what is asked of the control interface, and what readers of backups take.

use std::collections::{BTreeMap, BTreeSet};

use freewheel_freeblock::tasks::{Extent, TaskKind};
use freewheel_live::serve::backend::{DeviceError, DeviceErrorKind};
use freewheel_live::serve::machine::Message;
use freewheel_live::serve::{Item, Reader, ServedOrder, TaskOrder, TaskParts, TaskState};
use freewheel_units::{SimDuration, SimTime};
use futures_util::FutureExt;

use crate::checker::{Rule, Stamp, Violation, broken};
use crate::device::{SECTOR, values_of};
use crate::faults::Fault;
use crate::life::{Happening, Life};

/// A backup under way.
pub struct Backup {
    pub task: u64,
    /// Or a scan, whose data are as they are.
    pub kind: TaskKind,
    pub began: Stamp,
    /// Beginning in the server's time.
    pub began_at: SimTime,
    pub range: (u64, u64),
    pub block_size: u64,
    pub reader: Option<Reader>,
    pub image: BTreeMap<u64, u64>,
    /// Blocks of an earlier backup that this one continues.
    pub kept: BTreeMap<u64, u64>,
    pub unreadable: BTreeSet<u64>,
    /// Sectors that could not be read when it began.
    pub bad: BTreeSet<u64>,
}

impl Life<'_> {
    pub fn scrub(&mut self) {
        if self.prng.chance(0.6) {
            let all = Extent::new(0, self.export.size / SECTOR as u64);
            let idle_after = self.prng.chance(0.5).then(|| SimDuration::from_ms(2));
            let spec = TaskOrder {
                repeat: true,
                idle_after,
                ..TaskOrder::served(TaskKind::Scrub, all, 8)
            };
            self.machine.create(spec.into()).expect("a valid task");
        }
    }

    /// Blocks are rewritten with their own data, most often where clients write.
    pub fn refresh(&mut self) {
        if self.prng.chance(0.5) {
            return;
        }
        let all = (0, self.export.size / SECTOR as u64);
        let range = if self.prng.chance(0.7) { self.plan.hot } else { all };
        let idle_after = self.prng.chance(0.5).then(|| SimDuration::from_us(self.prng.below(2000)));
        let block_size = [8, 16, 64][self.prng.below(3) as usize];
        let spec = TaskOrder {
            repeat: true,
            idle_after,
            ..TaskOrder::served(
                TaskKind::Refresh,
                Extent::new(range.0, range.1 - range.0),
                block_size,
            )
        };
        let id = self.machine.create(spec.into()).expect("a valid task").id;
        self.tell(|| format!("refresh {id} of {range:?} in {block_size} begins"));
        if self.prng.chance(0.3) {
            self.machine.promote(id).expect("it runs");
        }
    }

    /// Without a fault all blocks read back the same.
    pub fn check_refreshes(&mut self) -> Result<(), Violation> {
        if self.fault().is_some() {
            return Ok(());
        }
        let refreshes = self.machine.status().tasks.into_iter();
        for refresh in refreshes.filter_map(|task| task.refresh) {
            if let Some(extent) = refresh.differing.first() {
                let what = format!("{extent} is said to have read back differently");
                return broken(Rule::Refresh, what);
            }
        }
        Ok(())
    }

    /// The device goes, and no command comes back.
    pub fn gone(&mut self) {
        self.is_gone = true;
        self.summary.gone += 1;
        self.tell(|| "the device goes".into());
        let why = DeviceError { kind: DeviceErrorKind::Gone, message: "pulled out".into() };
        self.shared.borrow_mut().inbox.push_back(Message::Gone(why));
    }

    /// Questions to the control interface.
    pub fn controls(&mut self) {
        if self.is_gone || self.has_ended {
            return;
        }
        let all = self.export.size / SECTOR as u64;
        let whole = (0, all);
        let range = if self.prng.chance(0.5) { self.plan.hot } else { whole };
        let block_size = [8, 16, 64, 128][self.prng.below(4) as usize];
        let range = (range.0 / self.plan.sector * self.plan.sector, range.1);
        let kind = if self.prng.chance(0.2) { TaskKind::Scan } else { TaskKind::Backup };
        let order = TaskOrder {
            idle_after: self
                .prng
                .chance(0.5)
                .then(|| SimDuration::from_us(self.prng.below(20_000))),
            ..TaskOrder::served(kind, Extent::new(range.0, range.1 - range.0), block_size)
        };
        let ordered = ServedOrder { has_reader: true, ..order.into() };
        self.begin_backup(ordered, range, BTreeMap::new());
        let status = self.machine.status();
        assert!(!status.tasks.is_empty());
    }

    pub fn begin_backup(
        &mut self,
        ordered: ServedOrder,
        range: (u64, u64),
        kept: BTreeMap<u64, u64>,
    ) {
        let (block_size, kind) = (ordered.order.size().into(), ordered.order.kind);
        let report = self.machine.create(ordered).expect("a valid task");
        self.tell(|| {
            format!("{} {} of {range:?} in {block_size} is asked for", kind.word(), report.id)
        });
        match kind {
            TaskKind::Scan => self.summary.scans += 1,
            _ => self.summary.backups += 1,
        }
        self.backups.push(Backup {
            task: report.id,
            kind,
            began: 0,
            began_at: SimTime::ZERO,
            range,
            block_size,
            reader: None,
            image: BTreeMap::new(),
            kept,
            unreadable: BTreeSet::new(),
            bad: BTreeSet::new(),
        });
        self.after_us(5000, Happening::Takes);
    }

    /// Another backup begins with the whole blocks that this one has brought.
    pub fn continues(&mut self, backup: &Backup) {
        let (from, to) = backup.range;
        let (mut skip, mut kept): (Vec<Extent>, BTreeMap<u64, u64>) = Default::default();
        let mut first = from;
        while first < to {
            let end = (first + backup.block_size).min(to);
            let sectors = (first..end).filter_map(|lbn| Some((lbn, *backup.image.get(&lbn)?)));
            let sectors: Vec<(u64, u64)> = sectors.collect();
            if sectors.len() as u64 == end - first {
                skip.push(Extent::new(first, end - first));
                kept.extend(sectors);
            }
            first = end;
        }
        let has_more = (kept.len() as u64) < to - from;
        let is_scan = backup.kind == TaskKind::Scan;
        if skip.is_empty() || is_scan || !has_more || self.is_gone || self.has_ended {
            return;
        }
        self.summary.backups_continued += 1;
        let whole = Extent::new(from, to - from);
        let order = TaskOrder {
            idle_after: Some(SimDuration::from_ms(1)),
            ..TaskOrder::served(TaskKind::Backup, whole, backup.block_size as u32)
        };
        let parts = TaskParts { skip, skip_since: backup.began_at, ..TaskParts::default() };
        let ordered = ServedOrder { parts, has_reader: true, ..order.into() };
        self.begin_backup(ordered, backup.range, kept);
    }

    /// Readers take what has come, begin, or give up.
    pub fn takes(&mut self) -> Result<(), Violation> {
        for mut backup in std::mem::take(&mut self.backups) {
            if backup.reader.is_none() {
                // The device may have gone, or the server have ended.
                let reader = self.machine.read(backup.task).ok();
                let Some(reader) = reader.filter(|_| !self.has_ended) else { continue };
                backup.began = self.checker.tick();
                backup.began_at = self.machine.moment().0;
                backup.reader = Some(reader);
                backup.bad = self.shared.borrow().disk.disk.character.bad.clone();
                self.tell(|| format!("backup {} begins", backup.task));
            } else if !self.is_asked()
                && self.prng.chance(0.04)
                && self.machine.abort(backup.task).is_ok()
            {
                self.summary.backups_aborted += 1;
            // Without clients it ends only if it is promoted.
            } else if (self.prng.chance(0.1) || self.is_asked())
                && self.machine.promote(backup.task).is_ok()
            {
                self.summary.backups_promoted += 1;
            }
            // What has ended sends no more.
            if !self.take_items(&mut backup)? && !self.has_ended {
                self.backups.push(backup);
            }
        }
        if !self.backups.is_empty() {
            self.after_us(20_000, Happening::Takes);
        }
        Ok(())
    }

    /// Takes the items of a backup; true when it is over.
    pub fn take_items(&mut self, backup: &mut Backup) -> Result<bool, Violation> {
        loop {
            let reader = backup.reader.as_mut().expect("it has begun");
            match reader.next().now_or_never() {
                None => return Ok(false),
                Some(None) => return Ok(true),
                Some(Some(Item::Data { start, data, .. })) => {
                    let falsified = self.fault() == Some(Fault::CopyBeforeWriteSkipped);
                    let from = start.get();
                    for (lbn, found) in (from..).zip(values_of(&data)) {
                        let found = match falsified {
                            true => self.shared.borrow().disk.disk.current(lbn),
                            false => found,
                        };
                        if backup.image.insert(lbn, found).is_some() {
                            return broken(
                                Rule::Backup,
                                format!("sector {lbn} is twice in a backup"),
                            );
                        }
                    }
                }
                Some(Some(Item::Unreadable(extent))) => {
                    let from = extent.start.get();
                    backup.unreadable.extend(from..from + extent.blocks.get());
                }
                Some(Some(Item::Over(report))) => {
                    self.tell(|| format!("backup {} is {:?}", backup.task, report.state));
                    self.summary.copied += report.copied.get();
                    match report.state {
                        TaskState::Done => self.check_backup(backup)?,
                        TaskState::Aborted if self.prng.chance(0.7) => self.continues(backup),
                        _ => {}
                    }
                    return Ok(true);
                }
            }
        }
    }

    pub fn check_backup(&mut self, backup: &Backup) -> Result<(), Violation> {
        let is_scan = backup.kind == TaskKind::Scan;
        match is_scan {
            true => self.summary.scans_done += 1,
            false => self.summary.backups_done += 1,
        }
        self.summary.unreadable += backup.unreadable.len() as u64;
        for lbn in backup.range.0..backup.range.1 {
            match backup.image.get(&lbn).or_else(|| backup.kept.get(&lbn)) {
                Some(&found) if is_scan => self.checker.scanned(backup.began, lbn, found)?,
                Some(&found) => self.checker.copied(backup.began, lbn, found)?,
                None if backup.unreadable.contains(&lbn) => self.check_unreadable(backup, lbn)?,
                None => {
                    return broken(
                        Rule::Backup,
                        format!("sector {lbn} is not in a finished backup"),
                    );
                }
            }
        }
        Ok(())
    }

    /// No sector is called unreadable that the disk can read, unless it fails by chance.
    fn check_unreadable(&self, backup: &Backup, lbn: u64) -> Result<(), Violation> {
        let fails_by_chance = self.shared.borrow().disk.disk.character.errors > 0.0;
        let first = lbn / self.plan.sector * self.plan.sector;
        let is_bad = backup.bad.range(first..first + self.plan.sector).next().is_some();
        if is_bad || fails_by_chance {
            return Ok(());
        }
        broken(Rule::Backup, format!("sector {lbn} is called unreadable, and is not"))
    }
}
