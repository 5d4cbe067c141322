//! Finding a drive's parameters by timing it, and holding a drive file against measured times.

use std::collections::VecDeque;

use freewheel_extract::Extraction;
use freewheel_sim::config::TraceWorkload;

use crate::Error;

pub use freewheel_extract::validate::{
    FioValidation, GapReading, RateValidation, Validation, ValidationFit, is_fio, is_rates,
};
pub use freewheel_extract::{
    ExtractOptions, ExtractProgress, Journal, JournalEntry, JournalHead, TrackMap, TrackMerge,
};
pub use freewheel_live::black_box::RealDrive;
pub use freewheel_report::{merged_tracks_text, tracks_html, validation_html};
pub use freewheel_sim::black_box::{BlackBox, VirtualDrive};

/// Finds the parameters of a drive by timing reads of it.
///
/// The drive should be idle otherwise: tens of minutes for a drive of 10,000 cylinders, hours for one of
/// today, seconds in virtual time.
///
/// ```no_run
/// use freewheel::extract;
/// use freewheel::extraction::{ExtractOptions, Journal, RealDrive};
/// use freewheel::serving::Claim;
///
/// let mut drive = RealDrive::open("/dev/sdx".as_ref(), Claim::Read, |_| {})?;
/// let options = ExtractOptions { name: "my-drive".into(), seed: 1, writes: false, surfaces: false };
/// let found = extract(&mut drive, &options, Journal::default(), &|_| {})?;
/// println!("{} commands, {} surfaces", found.commands, found.spec.surfaces);
/// # Ok::<(), freewheel::Error>(())
/// ```
pub fn extract(
    drive: &mut dyn BlackBox,
    options: &ExtractOptions,
    journal: Journal<'_>,
    progress: ExtractProgress<'_>,
) -> Result<Extraction, Error> {
    Ok(freewheel_extract::extract(drive, options, journal, progress)?)
}

/// Finds the tracks of a drive alone, also where its surfaces differ in density. The drive should be idle
/// otherwise.
pub fn track_map(
    drive: &mut dyn BlackBox,
    options: &ExtractOptions,
    journal: Journal<'_>,
    progress: ExtractProgress<'_>,
) -> Result<TrackMap, Error> {
    Ok(freewheel_extract::track_map(drive, options, journal, progress)?)
}

/// The commands and answers in the text of a journal that begins with this head.
pub fn read_journal(text: &str, head: &JournalHead) -> Result<VecDeque<JournalEntry>, Error> {
    Ok(freewheel_extract::read_journal(text, head)?)
}

/// Sends the requests of a measured trace to a drive, each as long after the completion of the one
/// before as in the trace, and compares the response times.
///
/// `gaps` says to which request each gap belongs; None leaves that to the spindle's phase.
pub fn validate(
    drive: &str,
    trace: &TraceWorkload,
    gaps: Option<GapReading>,
) -> Result<Validation, Error> {
    Ok(freewheel_extract::validate::validate(drive, trace, gaps)?)
}

/// Looks for values of the drive with which the first half of a measured trace comes nearer, and judges
/// them on the second half.
pub fn fit_to_measured(
    drive: &str,
    trace: &TraceWorkload,
    gaps: Option<GapReading>,
) -> Result<ValidationFit, Error> {
    Ok(freewheel_extract::validate::fit(drive, trace, gaps)?)
}

/// Runs the random jobs of fio's JSON output, whose text is given, on a drive, and says where both part.
pub fn validate_fio(drive: &str, file: &str, text: &str) -> Result<FioValidation, Error> {
    Ok(freewheel_extract::validate::validate_fio(drive, file, text)?)
}

/// Compares the sequential rates that a text has, of ddrescue or as a series of accesses, with those of a
/// drive by zone.
pub fn validate_rates(drive: &str, file: &str, text: &str) -> Result<RateValidation, Error> {
    Ok(freewheel_extract::validate::validate_rates(drive, file, text)?)
}
