//! Scrubs whose commands the drive tells from those of clients, in words.

use freewheel_study::{CommandMarks, CommandScrub, PauseBeforeScrub, Study};
use freewheel_units::{Bytes, grouped};

use crate::numbers::{TIME_MAX_S, TOO_LONG, about, whole_ms};

/// Effect of NCQ priority and duration limits; empty where the drive's queue has no choice.
pub(super) fn by_command(study: &Study, cost_of: fn(&PauseBeforeScrub) -> String) -> String {
    let Some(idle) = study.idle_scrub.as_ref().filter(|idle| !idle.by_command.is_empty()) else {
        return String::new();
    };
    let words: Vec<String> =
        idle.by_command.iter().map(|of| in_words(of, &cost_of(&of.scrub))).collect();
    format!(
        "By commands of the host, {} at a time, if the drive looks at their marks: {}. Under CDL its own reads wait for at most 1 s.",
        Bytes::new(idle.run_bytes).human(),
        words.join("; ")
    )
}

fn in_words(of: &CommandScrub, cost: &str) -> String {
    let name = match of.marks {
        CommandMarks::Priority => "by NCQ priority of clients".to_owned(),
        CommandMarks::DurationLimit { inactive_ns } => {
            format!("by CDL with {} for clients", whole_ms(inactive_ns))
        }
    };
    let time = match of.scrub.seconds {
        Some(seconds) if seconds <= TIME_MAX_S => about(seconds),
        Some(_) => TOO_LONG.into(),
        None => "nothing read".into(),
    };
    format!("{name} {time} ({cost}, of {} requests)", grouped(of.scrub.requests))
}
