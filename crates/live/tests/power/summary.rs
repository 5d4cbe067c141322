//! Counts of events in all seeds, so that a reader sees that every path was taken.

use std::fmt;

use freewheel_live::serve::{Status, TaskKind};

use crate::checker::{Change, Changing};
use crate::device::{Happened, SECTOR};

#[derive(Debug, Clone, Default)]
pub struct Summary {
    pub seeds: u64,
    pub cuts: u64,
    pub peaceful: u64,
    pub finished: u64,
    pub gone: u64,
    pub searches: u64,
    pub connections: u64,
    pub cut_connections: u64,
    pub left: u64,
    pub reads: u64,
    pub bytes_read: u64,
    pub writes: u64,
    pub bytes_written: u64,
    pub fua: u64,
    pub trims: u64,
    pub zeroes: u64,
    pub flushes: u64,
    pub flushes_refused: u64,
    pub errors: u64,
    pub scrubs: u64,
    pub scans: u64,
    pub scans_done: u64,
    pub backups: u64,
    pub backups_done: u64,
    pub backups_aborted: u64,
    pub backups_continued: u64,
    pub backups_promoted: u64,
    pub copied: u64,
    pub unreadable: u64,
    pub free_blocks: u64,
    pub scrubbed_blocks: u64,
    pub refreshes: u64,
    pub written_in_gaps: u64,
    pub refreshed: u64,
    pub superseded: u64,
    pub busy: u64,
    pub commands: u64,
    pub device: Happened,
}

impl Summary {
    /// A request that changes sectors was answered.
    pub fn changed(&mut self, asked: &Changing, is_done: bool) {
        if !is_done {
            return;
        }
        match asked.change {
            Change::Write => {
                self.writes += 1;
                self.bytes_written += (asked.to - asked.from) * SECTOR as u64;
            }
            Change::Trim => self.trims += 1,
            Change::Zeroes => self.zeroes += 1,
            Change::Before => {}
        }
        self.fua += u64::from(asked.fua);
    }

    /// Work of a server by its end.
    pub fn served(&mut self, status: &Status) {
        self.free_blocks += status.account.free_blocks;
        self.searches += status.decisions.effort.decisions;
        self.written_in_gaps += status.account.free_written_blocks;
        for refresh in status.tasks.iter().filter_map(|task| task.refresh.as_ref()) {
            self.refreshes += 1;
            self.refreshed += refresh.refreshed.get();
            self.superseded += refresh.superseded.get();
            self.busy += refresh.busy.get();
        }
        let scrubs = status.tasks.iter().filter(|task| task.order.kind == TaskKind::Scrub);
        for scrub in scrubs {
            self.scrubs += 1;
            self.scrubbed_blocks += scrub.delivered.get();
        }
    }

    /// Each count, with its name.
    pub fn counts(&self) -> Vec<(&'static str, u64)> {
        let Happened { failed_flushes, failed_reads, failed_writes, .. } = self.device;
        let Happened { device_flushes, device_fua, refused_erasures, .. } = self.device;
        vec![
            ("seeds", self.seeds),
            ("power cuts", self.cuts),
            ("cuts after a peaceful end", self.peaceful),
            ("servers that were told to finish", self.finished),
            ("devices that went", self.gone),
            ("torn writes", self.device.torn_writes),
            ("sectors lost by cuts", self.device.lost_sectors),
            ("connections", self.connections),
            ("connections cut", self.cut_connections),
            ("connections closed in order", self.left),
            ("reads answered", self.reads),
            ("bytes read", self.bytes_read),
            ("writes acknowledged", self.writes),
            ("bytes written", self.bytes_written),
            ("changes with FUA acknowledged", self.fua),
            ("TRIM acknowledged", self.trims),
            ("WRITE_ZEROES acknowledged", self.zeroes),
            ("FLUSH acknowledged", self.flushes),
            ("FLUSH refused", self.flushes_refused),
            ("requests with an error", self.errors),
            ("commands to the disk", self.commands),
            ("flushes of the disk", device_flushes),
            ("flushes that failed at the disk", failed_flushes),
            ("writes with FUA at the disk", device_fua),
            ("erasures at the disk", self.device.trims + self.device.zeroes),
            ("erasures refused by the disk", refused_erasures),
            ("reads that failed at the disk", failed_reads),
            ("writes that failed at the disk", failed_writes),
            ("scrubs", self.scrubs),
            ("blocks scrubbed", self.scrubbed_blocks),
            ("searches for free work", self.searches),
            ("blocks read in gaps", self.free_blocks - self.written_in_gaps),
            ("refreshes", self.refreshes),
            ("blocks written in gaps", self.written_in_gaps),
            ("blocks rewritten and read back", self.refreshed),
            ("blocks that clients refreshed", self.superseded),
            ("blocks left because clients wrote parts of them", self.busy),
            ("scans begun", self.scans),
            ("scans finished", self.scans_done),
            ("backups begun", self.backups),
            ("backups finished", self.backups_done),
            ("backups aborted", self.backups_aborted),
            ("backups continued", self.backups_continued),
            ("backups promoted", self.backups_promoted),
            ("blocks copied before a write", self.copied),
            ("unreadable blocks in backups", self.unreadable),
        ]
    }

    /// Adds what happened at a disk.
    pub fn happened(&mut self, more: &Happened) {
        let sum = &mut self.device;
        sum.failed_flushes += more.failed_flushes;
        sum.failed_reads += more.failed_reads;
        sum.failed_writes += more.failed_writes;
        sum.refused_erasures += more.refused_erasures;
        sum.device_flushes += more.device_flushes;
        sum.device_fua += more.device_fua;
        sum.trims += more.trims;
        sum.zeroes += more.zeroes;
        sum.lost_sectors += more.lost_sectors;
        sum.torn_writes += more.torn_writes;
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, count) in self.counts() {
            writeln!(f, "  {count:>12} {name}")?;
        }
        Ok(())
    }
}
