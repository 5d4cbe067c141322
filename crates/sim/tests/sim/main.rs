//! Tests of the public interface, one binary for all: linking takes longer than most of them.
#![allow(missing_docs)]

mod background;
mod busy;
mod cached;
mod cached_mixture;
mod commands;
mod common;
mod disksim_agreement;
mod ends;
mod engine;
mod files;
mod files_workload;
mod fleet;
mod foreground_untouched;
mod free_backup;
mod free_cleaning;
mod free_writes;
mod fua;
mod gap_destages;
mod gap_price;
mod key_table;
mod keys;
mod late_seeks;
mod limited_in_firmware;
mod linux;
mod measured;
mod media_cache;
mod outside;
mod own_policies;
mod postmark;
mod replayed;
mod scaled;
mod served;
mod uses;
mod zoned;
