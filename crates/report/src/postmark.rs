//! PostMark as the load of an experiment: its passes, and the cautions that they call for.

use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::sched::PolicySpec;
use freewheel_sim::RunResult;
use freewheel_sim::config::{PostmarkCleaner, SimConfig};
use freewheel_sim::{PassResult, PostmarkResult};
use freewheel_units::grouped;
use maud::{Markup, html};

use crate::bars::{self, PassBar};
use crate::finding::{Confidence, Cost, Finding, Topic, Unit};
use crate::numbers::{per_second, percent, seconds};
use crate::page::{section, table};

/// The cautions that its result calls for.
pub(crate) fn postmark_cautions(
    config: &SimConfig,
    spec: &DriveSpec,
    result: &RunResult,
) -> Vec<Finding> {
    let Some(came) = &result.postmark else { return Vec::new() };
    let all = [subtracted(came), few_gaps(config, spec, came), no_choice(config)];
    all.into_iter().flatten().collect()
}

/// Finding about a run with cleaning subtracted: the numbers that are those of the run that cleans.
fn subtracted(came: &PostmarkResult) -> Option<Finding> {
    let headline = "This run cleans like `cleaner = \"original\"`; only the times of its passes leave cleaning out.";
    (came.cleaner == PostmarkCleaner::Ideal).then(|| {
        Finding::new(Topic::IdealCleaner, Confidence::Given, headline)
            .detail("Transactions a second and the time of a pass are those of IDEAL (osdi00 section 5.2).")
            .detail("Requests, response times, stages, the time of the whole run, the cleaned segments and the hash are those of the run that cleans.")
    })
}

/// The process has cleaned for want of gaps that the drive keeps for itself.
fn few_gaps(config: &SimConfig, spec: &DriveSpec, came: &PostmarkResult) -> Option<Finding> {
    let last = came.passes.last().filter(|_| came.cleaner == PostmarkCleaner::Freeblock)?;
    let keeps =
        spec.electronics.buffer.as_ref().is_some_and(|buffer| buffer.keep_free_blocks_before);
    let headline = format!(
        "The gaps brought {} of the blocks that cleaning copied, and the process read the others: the drive keeps rotational latency for its own buffer.",
        percent(free_share(last))
    );
    (config.electronics && keeps && last.copied_blocks > 0).then(|| {
        Finding::new(Topic::CleanerGaps, Confidence::Simulated, headline)
            .number("blocks from gaps", free_share(last), Unit::Share)
            .cost(Cost::Setting)
            .action("Set `keep_free_blocks_before = false` in the experiment and compare the transactions a second.")
            .detail("The drive reads the blocks that pass before those asked for (`keep_free_blocks_before` in its file), so its head cannot read elsewhere.")
            .detail("Without that the buffer serves fewer reads, which costs some drives more than cleaning in gaps saves.")
            .detail("`electronics = false` is the paper's setting, without buffer or bus.")
    })
}

/// Part of the copied blocks that freeblock reads brought.
fn free_share(pass: &PassResult) -> f64 {
    pass.free_copied_blocks as f64 / (pass.free_copied_blocks + pass.copied_blocks) as f64
}

/// A policy without a choice.
fn no_choice(config: &SimConfig) -> Option<Finding> {
    let headline = format!(
        "`scheduler` is {} and makes no difference here: PostMark's one process waits for each request before it sends the next.",
        config.scheduler.title()
    );
    (config.scheduler != PolicySpec::Fcfs).then(|| {
        Finding::new(Topic::NoChoice, Confidence::Given, headline)
            .detail("Every policy gives the same result: there is never more than one request to choose from.")
    })
}

/// A row for each pass under headings that say what is counted, and in which unit.
pub type PassTable = ([&'static str; 6], Vec<Vec<String>>);

/// Tables of the passes: time, and segments that were cleaned.
pub fn pass_tables(came: &PostmarkResult) -> [PassTable; 2] {
    let times_head = [
        "PostMark",
        "log in use",
        "transactions/s",
        "elapsed, s",
        "reads of cleaning, s",
        "copies of cleaning, s",
    ];
    let counts_head = [
        "cleaning",
        "segments written",
        "segments cleaned by the process",
        "segments given to free reads",
        "live blocks read by the process",
        "live blocks read free",
    ];
    [
        (
            times_head,
            (1..)
                .zip(&came.passes)
                .map(|(number, pass)| {
                    vec![
                        name(number),
                        percent(pass.utilisation),
                        per_second(pass.transactions_per_second),
                        seconds(pass.elapsed_ns as f64),
                        seconds(pass.cleaning_read_ns as f64),
                        seconds(pass.cleaning_copy_ns as f64),
                    ]
                })
                .collect(),
        ),
        (
            counts_head,
            (1..)
                .zip(&came.passes)
                .map(|(number, pass)| {
                    vec![
                        name(number),
                        grouped(pass.segments_written),
                        grouped(pass.segments_cleaned),
                        grouped(pass.segments_targeted),
                        grouped(pass.copied_blocks),
                        grouped(pass.free_copied_blocks),
                    ]
                })
                .collect(),
        ),
    ]
}

fn name(number: usize) -> String {
    format!("pass {number}")
}

/// The section of its passes; empty where it was not the workload.
pub(crate) fn passes(result: &RunResult) -> Markup {
    let Some(came) = &result.postmark else { return html! {} };
    let is_subtracted = came.cleaner == PostmarkCleaner::Ideal;
    let bars: Vec<PassBar> = (1..)
        .zip(&came.passes)
        .map(|(number, pass)| bar(name(number), pass, is_subtracted))
        .collect();
    section(
        "PostMark",
        &html! {
            (bars::passes(&bars))
            @for (head, rows) in pass_tables(came) { (table(&head, &rows)) }
            p.note {
                (grouped(came.files)) " files before the first transaction; the last pass counts. " (cleans(came.cleaner))
            }
        },
    )
}

/// Bar of a pass's time.
fn bar(label: String, pass: &PassResult, is_subtracted: bool) -> PassBar {
    let [elapsed, reading, copying] =
        [pass.elapsed_ns, pass.cleaning_read_ns, pass.cleaning_copy_ns].map(|ns| ns as f64 / 1e9);
    let cleaning = if is_subtracted { [0.0, 0.0] } else { [reading, copying] };
    PassBar {
        label,
        work: elapsed - cleaning.iter().sum::<f64>(),
        reading: cleaning[0],
        copying: cleaning[1],
        note: format!("{} transactions/s", per_second(pass.transactions_per_second)),
    }
}

/// Who cleaned, and what the columns of cleaning mean then.
const fn cleans(cleaner: PostmarkCleaner) -> &'static str {
    match cleaner {
        PostmarkCleaner::Original => "The process cleans by itself.",
        PostmarkCleaner::Freeblock => {
            "Freeblock reads in the gaps of its requests bring the blocks that it copies; where they do not keep up, it reads them itself."
        }
        PostmarkCleaner::Ideal => {
            "Cleaning, whose times and counts are in the tables, is subtracted from the elapsed time."
        }
    }
}
