//! Drives with hidden parameters, extracted and compared afterwards.
#![allow(missing_docs)]

mod blind;
mod checks;
mod hidden;
mod layouts;
mod library;
mod no_disk;
mod progress;
mod spindle;
mod track_map;
mod trouble;
mod validate;
