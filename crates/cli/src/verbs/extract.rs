//! `freewheel extract`: what a drive is, found out by timing reads of it.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use freewheel::model::drive::spec::DriveSpec;
use freewheel::sim::black_box::{EmulatedDrive, VirtualDrive};
use freewheel::sim::library;
use freewheel::study::{Confidence, ExtractError, ExtractOptions, Extraction, extract};
use serde::Serialize;

use crate::failure::Failure;
use crate::progress::Bars;
use crate::table::Table;
use crate::verbs::drive::DriveIdentity;
use crate::verbs::emulated::{EMULATED, Emulated};
use crate::{file, output};

/// Find out what a drive is by timing reads of it, and write a drive file
///
/// Nothing is asked of the drive but to read single blocks; nothing is written to it. From when the
/// answers come follow rotation, tracks, skews, heads, defects, zones, command overhead, head switch
/// and seek curve, and what the buffer keeps. Every value in the file says how it was found and how
/// much it may be off.
#[derive(Args)]
#[command(after_help = "\
Examples:
  freewheel extract emulated:atlas10k -o found.toml
  freewheel extract 'emulated:atlas10k?seek_jitter=50us&reply_jitter=20us&seed=7' -o found.toml
  freewheel drive show ./found.toml

TARGET is a drive of this program in virtual time, by its name or file. NBD exports and block devices
come next.")]
pub struct ExtractArgs {
    /// What to characterise: emulated:NAME[?seek_jitter=TIME&reply_jitter=TIME&bad=LBN[-LBN]&recovery=TIME&seed=N]
    #[arg(value_name = "TARGET")]
    target: Target,
    /// The drive file to write
    #[arg(short, long, value_name = "F.toml")]
    output: PathBuf,
    /// Name of the drive in its file; that of the file if not given
    #[arg(long)]
    name: Option<String>,
    /// Seed of the places that are read
    #[arg(long, default_value_t = 1, value_parser = super::seed())]
    seed: u64,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// An emulated drive and what makes it hard to foresee.
#[derive(Debug, Clone, PartialEq)]
struct Target(Emulated);

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some(rest) = text.strip_prefix(EMULATED) else {
            return Err("only emulated drives can be extracted so far, as emulated:atlas10k; NBD \
                        exports and block devices come next"
                .into());
        };
        rest.parse().map(Self)
    }
}

#[derive(Serialize)]
struct Document<'a> {
    file: &'a Path,
    drive: DriveIdentity,
    #[serde(flatten)]
    extraction: &'a Extraction,
}

impl ExtractArgs {
    pub fn run(self) -> Result<(), Failure> {
        file::ensure_writable(&self.output)?;
        let Target(emulated) = &self.target;
        let Emulated { drive: name, habits, seed, .. } = emulated;
        let (truth, model) = library::drive(name)?;
        let bad = emulated.bad_blocks(&model)?;
        let mut drive = VirtualDrive::new(EmulatedDrive::new(&truth, name, habits, bad, *seed)?);
        let bars = Bars::default();
        let options = ExtractOptions { name: self.drive_name(), seed: self.seed };
        let found = extract(&mut drive, &options, &|step, done, total| {
            bars.set(step, done, total);
        })?;
        drop(bars);
        let text = toml::to_string(&found.spec)
            .map_err(|error| Failure::failed(format!("the drive: {error}")))?;
        let identity = identity(&found.spec)?;
        file::write_together(&[(&self.output, &text)])?;
        if self.json {
            let document = Document { file: &self.output, drive: identity, extraction: &found };
            return output::print_document(&document);
        }
        output::print(&self.text(&found))
    }

    fn drive_name(&self) -> String {
        let stem = || self.output.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        self.name.clone().unwrap_or_else(stem)
    }

    fn text(&self, found: &Extraction) -> String {
        let mut table = Table::new("llll");
        table.row(["value", "found", "how sure", "how"]);
        for value in &found.values {
            let sure = match value.confidence {
                Confidence::Measured => "measured",
                Confidence::Approximate => "approximate",
                Confidence::Unobservable => "unobservable",
                Confidence::Assumed => "assumed",
            };
            let (key, text) = (value.key.as_str(), value.value.as_str());
            table.row([key, text, sure, value.source.as_str()]);
        }
        let slips: u64 = found.slips.iter().map(|slip| slip.count).sum();
        format!(
            "{table}\n{slips} defects passed over; answers vary by {:.1} us; {} reads in {:.0} s of \
             the drive's time\ndrive file: {}\n",
            found.reply_jitter_ns / 1e3,
            found.commands,
            found.drive_ns as f64 / 1e9,
            self.output.display()
        )
    }
}

/// The drive in a few numbers; that it builds is shown by the way.
fn identity(spec: &DriveSpec) -> Result<DriveIdentity, Failure> {
    Ok(DriveIdentity::new(spec, &library::build(spec, &spec.name)?))
}

impl From<ExtractError> for Failure {
    fn from(error: ExtractError) -> Self {
        Self::failed(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_extracted_is_refused_with_the_way_out() {
        let error = |text: &str| text.parse::<Target>().unwrap_err();
        assert!(error("/dev/sdb").contains("emulated:atlas10k"));
        assert!(error("nbd+unix:///?socket=x").contains("come next"));
        assert!(error("emulated:atlas10k?depth=2").contains("seek_jitter"));
    }
}
