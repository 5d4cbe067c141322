//! `freewheel extract`: what a drive is, found out by timing reads of it.

mod journal;
mod tracks;

use std::path::{Path, PathBuf};
use std::{process, thread};

use clap::Args;
use freewheel::drives::{self, DriveIdentity};
use freewheel::emulation::{Behaviour, SectorFormat, WriteCache};
use freewheel::extraction::{
    BlackBox, ExtractOptions, ExtractProgress, Journal, JournalEntry, JournalHead, RealDrive,
    VirtualDrive,
};
use freewheel::measures::{Text, Unit, grouped};
use freewheel::serving::{Claim, Uri};
use freewheel::{DriveSpec, Error, ErrorKind, Extraction, extract};
use serde::Serialize;

use crate::failure::Failure;
use crate::progress::Bars;
use crate::verbs::choice::choice;
use crate::verbs::control::INTERRUPTED;
use crate::verbs::emulated::{DriveSource, Emulated, SECTORS};
use crate::verbs::extract::journal::JournalFile;
use crate::verbs::listen;
use crate::verbs::target::Target;
use crate::{file, output};

/// Find a drive's parameters by timing reads of it, and write a drive file
///
/// The verb reads single blocks; only with --write does it write. The times of the answers tell rotation,
/// tracks, skews, heads, defects, zones, command overhead, head switch, seek curve, and the buffer's
/// policies. Every value in the file has its method and its uncertainty.
#[derive(Args)]
#[command(after_help = "\
Examples:
  freewheel extract emulated:atlas10k -o found.toml
  freewheel extract 'emulated:atlas10k?seek_jitter=50us&reply_jitter=20us&seed=7' -o found.toml
  freewheel extract /dev/sdX -o my-drive.toml
  freewheel extract 'nbd+unix:///?socket=/tmp/disk' -o my-drive.toml
  freewheel extract /dev/sdX -o my-drive.toml --resume
  freewheel extract /dev/sdX --tracks tracks.csv --page tracks.html
  freewheel extract --merge first.csv second.csv --tracks model.csv
  freewheel drive show ./my-drive.toml

TARGET is a block device, an NBD export, or a drive of this program in virtual time by its name or
file. A real one should do nothing else meanwhile; it takes tens of minutes for a drive of 10,000
cylinders, hours for one of today. Answers are kept in F.toml.journal until the drive's file is
there, so that --resume can go on.")]
pub struct ExtractArgs {
    /// Device to characterise: a block device or file, an NBD export by its URI, or
    /// emulated:NAME[?KEY=VALUE&...], where a key is an option of `freewheel emulate` from
    /// --queue-depth to --seed with _ for -, as emulated:tr96?seek_jitter=50us&bad=4096-4103
    #[arg(value_name = "TARGET", required_unless_present = "merge")]
    target: Option<Target>,
    /// The drive file to write
    #[arg(short, long, value_name = "F.toml", required_unless_present = "tracks")]
    output: Option<PathBuf>,
    /// Find the tracks alone and write them to this table
    #[arg(long, value_name = "F.csv", conflicts_with_all = ["output", "write", "name"])]
    tracks: Option<PathBuf>,
    /// Instead of a target: tables that --tracks wrote of several samples of the same drive. --tracks becomes
    /// the table of what they have in common, without the defects of each
    #[arg(
        long,
        value_name = "F.csv",
        num_args = 2..,
        requires = "tracks",
        conflicts_with_all = ["target", "output", "write", "resume", "sector"]
    )]
    merge: Option<Vec<PathBuf>>,
    /// With --tracks: a page that draws the angle of each track
    #[arg(long, value_name = "F.html", requires = "tracks")]
    page: Option<PathBuf>,
    /// Name of the drive in its file; that of the file if not given
    #[arg(long)]
    name: Option<String>,
    /// Seed of the places that are read
    #[arg(long, default_value_t = 1, value_parser = super::seed)]
    seed: u64,
    /// Time writes as well: blocks all over the drive are read and the same bytes written back. No other
    /// program may write to the drive meanwhile, and a block that is being written when the power fails is
    /// lost. The drive's write cache must be off (hdparm -W0)
    #[arg(long)]
    write: bool,
    /// Go track by track where tracks make no zones of heads or bands, as surfaces differ: hours more
    #[arg(long)]
    surfaces: bool,
    /// With --write: a device that the system or another program has in use, as one that is mounted. Both
    /// write to it, and a block that the other writes between the read and the write of it is lost.
    /// Without it such a device is refused
    #[arg(long, requires = "write")]
    shared_device: bool,
    /// Sectors of the device, where it does not tell them itself, as an export by NBD of a drive of 512e: of
    /// sectors of 4096 bytes whole ones are read
    #[arg(long, value_name = "FORMAT", value_parser = choice(SECTORS))]
    sector: Option<SectorFormat>,
    /// Go on with an extraction that was interrupted, from F.toml.journal
    #[arg(long)]
    resume: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// The way out for a target without rotation.
const NO_DISK: &str = "give a hard disk itself, as /dev/sdX, and not a file, a solid-state drive or a volume behind a cache; \
     with one that is busy, begin anew on a quiet one; emulated:NAME is a drive to try this on \
     (freewheel drive list)";

#[derive(Serialize)]
struct Document<'a> {
    file: &'a Path,
    drive: DriveIdentity,
    #[serde(flatten)]
    extraction: &'a Extraction,
}

impl ExtractArgs {
    pub fn run(self) -> Result<(), Failure> {
        file::ensure_new(self.file())?;
        match (&self.tracks, &self.merge) {
            (Some(table), Some(samples)) => tracks::merge(&self, samples, table),
            (Some(table), None) => tracks::run(&self, table),
            (None, _) => self.drive_file(),
        }
    }

    /// Writes the drive's file.
    fn drive_file(self) -> Result<(), Failure> {
        let found = self.measured(|Measured { drive, journal, progress }| {
            extract(drive, &self.options(), journal, progress)
        })?;
        let text = toml::to_string(&found.spec)
            .map_err(|error| Failure::failed(format!("the drive: {error}")))?;
        let identity = identity(&found.spec)?;
        file::write_together(&[(self.file(), &text)])?;
        self.forget_journal()?;
        if self.json {
            let document = Document { file: self.file(), drive: identity, extraction: &found };
            output::print_document(&document)?;
        } else {
            output::print(&format!("{}drive file: {}\n", found.text(), self.file().display()))?;
        }
        self.is_right(&found)
    }

    /// Path of the output: the drive file, or the table of tracks.
    fn file(&self) -> &Path {
        let file = self.output.as_ref().or(self.tracks.as_ref());
        file.expect("one of them is required")
    }

    fn forget_journal(&self) -> Result<(), Failure> {
        if self.target.as_ref().is_some_and(Target::is_real) {
            journal::remove(self.file())
        } else {
            Ok(())
        }
    }

    /// Result of `measure` for the target.
    fn measured<T>(
        &self,
        measure: impl Fn(Measured<'_, '_>) -> Result<T, Error>,
    ) -> Result<T, Failure> {
        match self.target.as_ref().expect("only samples come without a target") {
            Target::Emulated(target) => self.emulated(target, measure),
            Target::Export(uri) => self.real(connect(uri, self.write)?, measure),
            Target::Device(path) => self.real(self.open(path)?, measure),
        }
    }

    fn open(&self, path: &Path) -> Result<RealDrive, Failure> {
        let claim = match (self.write, self.shared_device) {
            (false, _) => Claim::Read,
            (true, false) => Claim::Exclusive,
            (true, true) => Claim::Shared,
        };
        Ok(RealDrive::open(path, claim, |others| {
            let (path, by) = (path.display(), others.join(", "));
            output::note(&match claim {
                Claim::Shared => format!(
                    "{path} is shared ({by}): blocks that are written there meanwhile may be lost"
                ),
                _ => {
                    format!("{path} is in use ({by}): what else it does makes the times less sure")
                }
            });
        })?)
    }

    /// An error for a file that the drive itself contradicts.
    fn is_right(&self, found: &Extraction) -> Result<(), Failure> {
        let Some(first) = found.misplaced.first() else { return Ok(()) };
        let what = format!(
            "{}: of {} blocks read afterwards {} lie elsewhere than the file says, block {} by {} ns: \
             the drive lays them out in a way that is not understood",
            self.file().display(),
            found.verified,
            found.misplaced.len(),
            first.block,
            first.off_ns.unsigned_abs()
        );
        let help = "do not use the file; if something else kept drive or host busy, begin anew on a quiet one";
        Err(Failure::failed(what).with_help(help))
    }

    fn options(&self) -> ExtractOptions {
        let (seed, writes, surfaces) = (self.seed, self.write, self.surfaces);
        ExtractOptions { name: self.drive_name(), seed, writes, surfaces }
    }

    fn emulated<T>(
        &self,
        target: &Emulated,
        measure: impl Fn(Measured<'_, '_>) -> Result<T, Error>,
    ) -> Result<T, Failure> {
        if self.resume {
            return Err(Failure::wrong_use(
                "--resume: a drive in virtual time takes seconds; begin anew without it",
            ));
        }
        if self.sector.is_some() {
            return Err(Failure::wrong_use(
                "--sector: an emulated drive has the sectors that follow its name, as \
                 emulated:exos-7e8-8tb?sector=512e; leave it out",
            ));
        }
        let Emulated { drive: name, behaviour } = target;
        let seed = behaviour.seed;
        let (truth, model) = drives::load(name)?;
        let (behaviour, bad) = behaviour.of(DriveSource::Keys, (&truth, &model, name))?;
        if self.write && behaviour.write_cache == Some(WriteCache::On) {
            return Err(Failure::wrong_use(
                "--write with write_cache=on: writes tell where the head is only without a write \
                 cache; leave one of them out",
            ));
        }
        // As a host would do it for a real one.
        let write_cache = self.write.then_some(WriteCache::Off).or(behaviour.write_cache);
        let behaviour = Behaviour { write_cache, ..behaviour };
        let mut drive = VirtualDrive::emulating(&truth, name, &behaviour, bad, seed)?;
        Ok(watched(|progress| {
            measure(Measured { drive: &mut drive, journal: Journal::default(), progress })
        })?)
    }

    fn real<T>(
        &self,
        drive: RealDrive,
        measure: impl Fn(Measured<'_, '_>) -> Result<T, Error>,
    ) -> Result<T, Failure> {
        let mut drive = match self.sector {
            Some(sector) => drive.with_sector(sector)?,
            None => drive,
        };
        let head =
            JournalHead { blocks: drive.blocks().get(), seed: self.seed, writes: self.write };
        let mut file = JournalFile::open(self.file(), &head, self.resume)?;
        self.tell_when_interrupted()?;
        let past = std::mem::take(&mut file.past);
        let keep = Box::new(|entry: &JournalEntry| file.keep(entry));
        let journal = Journal { past, keep };
        let found = watched(|progress| measure(Measured { drive: &mut drive, journal, progress }));
        found.map_err(|error| self.failed(error))
    }

    /// On a signal, says how to continue before the verb ends.
    fn tell_when_interrupted(&self) -> Result<(), Failure> {
        let (stop, journal) = (listen::stop()?, journal::path(self.file()));
        thread::spawn(move || {
            stop.wait();
            // When the drive's file is there, it is not.
            if journal.exists() {
                output::note(&goes_on(&journal));
            }
            process::exit(INTERRUPTED);
        });
        Ok(())
    }

    /// Keeps the journal where there is sense in it: it may be hours of answers.
    fn failed(&self, error: Error) -> Failure {
        let path = journal::path(self.file());
        if *error.kind() == ErrorKind::Interrupted {
            return Failure::from(error).with_help(goes_on(&path));
        }
        let path = path.display();
        if *error.kind() == ErrorKind::OtherJournal {
            let help = format!(
                "{path} is left as it is: --resume continues it on its own drive and in its own version; for \
                 this one choose another -o, or remove it"
            );
            return Failure::from(error).with_help(help);
        }
        let help = match error.kind() {
            ErrorKind::NoRotation => NO_DISK,
            _ => "begin anew when drive and host are idle, or with another --seed",
        };
        journal::remove(self.file())
            .map_or_else(|failure| failure, |()| Failure::from(error).with_help(help))
    }

    fn drive_name(&self) -> String {
        self.name.clone().unwrap_or_else(|| {
            self.file().file_stem().unwrap_or_default().to_string_lossy().into_owned()
        })
    }
}

/// A drive to be measured.
struct Measured<'a, 'j> {
    drive: &'a mut dyn BlackBox,
    journal: Journal<'j>,
    progress: ExtractProgress<'a>,
}

/// Shows how far the measuring is.
fn watched<T>(measure: impl FnOnce(ExtractProgress<'_>) -> Result<T, Error>) -> Result<T, Error> {
    let bars = Bars::default();
    measure(&|step| {
        // What the step is at, and what all steps have taken until now.
        let part = if step.part.is_empty() { "" } else { &format!("{}, ", step.part) };
        let (commands, time) =
            (grouped(step.commands), Unit::Seconds.text(step.drive_time.ns() as f64 / 1e9));
        let sent = format!("{part}{commands} commands in {time} of the drive");
        bars.remark(step.name, step.done, step.total, &sent);
    })
}

fn goes_on(journal: &Path) -> String {
    format!("the measurements are in {}; --resume continues from them", journal.display())
}

/// The drive in a few numbers; that it builds is shown by the way.
fn identity(spec: &DriveSpec) -> Result<DriveIdentity, Failure> {
    Ok(DriveIdentity::new(spec, &drives::build(spec, &spec.name)?))
}

fn connect(uri: &Uri, writes: bool) -> Result<RealDrive, Failure> {
    RealDrive::connect(uri, writes).map_err(|error| {
        let error = Error::from(error);
        match error.kind() {
            ErrorKind::ReadOnlyExport => {
                Failure::failed(error).with_help("without --write it is only read")
            }
            _ => error.into(),
        }
    })
}
