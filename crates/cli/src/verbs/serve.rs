//! `freewheel serve`: a scheduler in front of a device, with free work in the gaps.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use freewheel::control::InWords;
use freewheel::drives::{self, DriveIdentity};
use freewheel::emulation::{Behaviour, EmulationOptions, WriteCache};
use freewheel::measures::{Bytes, SimDuration, Unit};
use freewheel::serving::{
    self, Address, Backend, BackendChannel, CONSERVATISM_MAX, Claim, Conservatism, ControlServer,
    EmulatedBackend, FileBackend, HostConfig, Io, NbdBackend, PredictionSpec, SameTrack, Server,
    ServerReport, Service, Serving, Setup, checked_block_size,
};
use freewheel::{Drive, DriveSpec, PolicySpec};
use serde::Serialize;

use crate::failure::Failure;
use crate::output;
use crate::verbs::choice::{Choice, choice};
use crate::verbs::control;
use crate::verbs::emulated::{DriveSource, Emulated};
use crate::verbs::free_space;
use crate::verbs::listen::{self, ListenArgs, Operator};
use crate::verbs::target::{self, Target};

/// The default. Linux gives a command to a SCSI disk 30 s and tries it six times (`SD_TIMEOUT`,
/// `SD_MAX_RETRIES`): a server in front of one may take 180 s to report an unreadable block.
const TIMEOUT: SimDuration = SimDuration::from_secs(240);

/// Shorter ones call a drive gone that tries to read a bad block.
const TIMEOUT_MIN: SimDuration = SimDuration::from_secs(1);

/// Longer ones are no limit.
const TIMEOUT_MAX: SimDuration = SimDuration::from_secs(86_400);

/// Put a scheduler in front of a drive, over NBD, and use its rotational gaps
#[derive(Args)]
#[command(after_help = "\
Examples:
  freewheel serve emulated:exos-x24-24tb --drive exos-x24-24tb --socket /tmp/disk --scrub
  freewheel serve /dev/sdX --drive my-drive.toml --socket /tmp/disk --scrub
  freewheel serve 'nbds://server/?tls-certificates=DIR' --drive my-drive.toml --socket /tmp/disk

Then, from another terminal:
  fio --name=oltp --ioengine=nbd --uri='nbd+unix:///?socket=/tmp/disk' --rw=randrw --bs=8k --iodepth=10
  freewheel tasks --control /tmp/disk.control
  freewheel backup /backups/disk.img --control /tmp/disk.control

The scheduler sees the device as blocks and as the times at which commands come back, and predicts
the head from the drive's file: that must be the file of this very drive. Switch a real drive's
write cache off (hdparm -W0): the end of a write that is not on the media says nothing about the
head.
It runs until Ctrl-C or SIGTERM, answers what is in flight, and reports predictions and free work. It
ends within 60 s (--stop-within), whatever hangs; a second signal ends it at once.")]
pub struct ServeArgs {
    /// A file, a block device, an NBD export by its URI, or an emulated drive:
    /// emulated:NAME[?KEY=VALUE&...], where a key is an option of `freewheel emulate` from
    /// --queue-depth to --seed with _ for -, as emulated:tr96?seek_jitter=50us&bad=4096-4103. By default
    /// its write cache is off, and it holds two commands
    backend: String,
    /// Name of a shipped drive (see `freewheel drive list`), or path of a drive file: what the device is
    #[arg(long, value_name = "NAME")]
    drive: String,
    #[command(flatten)]
    listen: ListenArgs,
    /// Take commands for background tasks on a Unix socket at this path, which only this user can use;
    /// beside that of --socket if not given, else in $XDG_RUNTIME_DIR, without which it must be given
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
    /// Foreground policy: fcfs, look, clook, sstf, sptf, sptf-sw, sstf-lw or asatf
    #[arg(long, value_name = "NAME", default_value = "sptf-sw")]
    policy: PolicySpec,
    /// Time that a seek to or from free work may take beyond its prediction, or `learned`: for each kind of
    /// seek from the ends of commands
    #[arg(long, value_name = "TIME", default_value_t = PredictionSpec::default().conservatism)]
    conservatism: Conservatism,
    /// Largest delay of clients by free work under learned conservatism, as a share of busy head time
    #[arg(long, value_name = "SHARE", default_value_t = PredictionSpec::default().budget)]
    budget: f64,
    /// Way to read and write a file or a block device; if not given, a block device by uring where the
    /// system allows it, and all else by threads
    #[arg(long, value_name = "HOW", value_parser = choice(IO))]
    io: Option<Io>,
    /// Serve a file or a block device that the system or another program has in use, as one that is mounted:
    /// both may write to it, neither knows what the other has in its cache, and what tasks, scrubs and
    /// backups say may be wrong. Without it such a device is refused
    #[arg(long)]
    shared_device: bool,
    /// Longest time that the NBD server of the backend may owe an answer, without the time of its data on
    /// the network; if not given, 240s, as Linux may try a bad block of a SCSI disk for 180 s
    #[arg(long, value_name = "TIME")]
    timeout: Option<SimDuration>,
    /// Free work on the tracks of foreground requests
    #[arg(long, value_name = "HOW", value_parser = choice(SAME_TRACK), default_value = "merge")]
    same_track: SameTrack,
    /// Read the whole device over and over in the gaps, and list what cannot be read
    #[arg(long)]
    scrub: bool,
    /// Blocks that a scrub reads at once; if not given, about an eighth of a track of the drive, from 4KiB to
    /// 64KiB
    #[arg(long, value_name = "SIZE")]
    block_size: Option<Bytes>,
    /// Print one JSON document at the end instead of a table; the line at the start goes to stderr
    #[arg(long)]
    json: bool,
}

const IO: &[Choice<Io>] = &[
    ("uring", Io::Uring, "By one thread that has a ring of the system's (io_uring)"),
    ("threads", Io::Threads, "By a thread for each command at a time"),
];

const SAME_TRACK: &[Choice<SameTrack>] = &[
    ("merge", SameTrack::Merge, "In one command with the request on the destination track"),
    (
        "distinct",
        SameTrack::Distinct,
        "As commands of their own as well: for drives that do not take them for a sequential stream",
    ),
    ("never", SameTrack::Never, "Not at all"),
];

/// All that is known in the end.
#[derive(Serialize)]
struct Document {
    drive: DriveIdentity,
    #[serde(flatten)]
    server: ServerReport,
}

impl ServeArgs {
    pub fn run(self) -> Result<(), Failure> {
        let (spec, drive) = drives::load(&self.drive)?;
        serving::check(&spec, &self.drive)?;
        serving::check_resources()?;
        let drive = Arc::new(drive);
        let operator = self.listen.operator()?;
        let config = self.host()?;
        if let Some(Err(why)) = self.block_size.map(checked_block_size) {
            return Err(Failure::wrong_use(format!("--block-size {why}")));
        }
        let way = BackendChannel::new();
        let (device, how) = self.device(&way, &operator)?;
        let scheduler = config.scheduler(&spec, &drive, self.policy)?;
        let setup = Setup {
            notice: Box::new(operator.notice()),
            ended: {
                // Without a scheduler every request fails, so the server ends.
                let stop = Arc::clone(&operator.stop);
                Box::new(move || stop.stop())
            },
            ..Setup::new(Arc::clone(&drive), spec.name.clone(), scheduler)
        };
        let sector_blocks = device.abilities().sector_blocks();
        let setup =
            if self.scrub { setup.scrubbing(self.block_size, sector_blocks) } else { setup };
        let serving = Arc::new(Serving::start(setup, device, way)?);
        let service: Arc<dyn Service> = Arc::clone(&serving) as Arc<dyn Service>;
        // Now with all that it needs without clients.
        serving::check_resources()?.iter().for_each(|text| operator.say(text));
        let server = self.listen.bind(vec![service], &operator)?;
        let control = self.control(&server)?;
        let control = ControlServer::start(Arc::clone(&serving), &control, Default::default())
            .map_err(|error| Failure::from(error).of_option("--control"))?;
        let line = self.first_line(&spec, &drive, (how, &serving), (&server, &control));
        operator.announce(line, self.json)?;
        let pieces = self.block_size.filter(|_| self.scrub);
        let pieces = pieces.and_then(|block| control::in_pieces(block, serving.shortest_track()));
        slow_bus(&spec, &drive).iter().chain(&pieces).for_each(|text| operator.say(text));
        let served = operator.serve(server)?;
        let report = serving.finish_within(operator.device_wait());
        drop(control);
        let report = report?;
        let server = ServerReport::new(&report, served);
        let drive = DriveIdentity::new(&spec, &drive);
        operator.print_last(if self.json {
            output::document(&Document { drive, server })?
        } else {
            server.in_words()
        })?;
        match (report.gone, report.failed_flush) {
            (Some(why), _) => Err(Failure::failed(format!("the device is gone: {why}"))),
            (None, Some(why)) => Err(Failure::failed(why.to_string())),
            (None, None) => Ok(()),
        }
    }

    /// Path of the control socket: beside the socket, or where the user's sockets are.
    fn control(&self, server: &Server) -> Result<PathBuf, Failure> {
        if let Some(path) = &self.control {
            return Ok(path.clone());
        }
        match server.address() {
            Address::Unix(path) => {
                let mut path = path.as_os_str().to_owned();
                path.push(".control");
                Ok(path.into())
            }
            Address::Tcp(address) => {
                // In a folder of everybody another user could be there first.
                let folder = std::env::var_os("XDG_RUNTIME_DIR").ok_or_else(|| {
                    Failure::wrong_use(
                        "--control PATH is missing: with --listen the control socket is in \
                         $XDG_RUNTIME_DIR, which is not set",
                    )
                })?;
                let name = format!("freewheel-{}.control", address.port());
                Ok(PathBuf::from(folder).join(name))
            }
        }
    }

    fn host(&self) -> Result<HostConfig, Failure> {
        if let Conservatism::Constant(margin) = self.conservatism
            && margin > CONSERVATISM_MAX
        {
            return Err(Failure::wrong_use(format!(
                "--conservatism {margin}: at most {CONSERVATISM_MAX} is allowed; a margin above a turn uses \
                 up every gap"
            )));
        }
        let scheduler = PredictionSpec {
            conservatism: self.conservatism,
            budget: self.budget,
            same_track: self.same_track,
            ..PredictionSpec::default()
        };
        scheduler
            .check_budget()
            .map_err(|rule| Failure::wrong_use(format!("--budget {}: {rule}", self.budget)))?;
        Ok(HostConfig { scheduler, ..HostConfig::default() })
    }

    /// Device to serve, and words for the way it is read and written.
    fn device(
        &self,
        way: &BackendChannel,
        operator: &Operator,
    ) -> Result<(Arc<dyn Backend>, &'static str), Failure> {
        let target = self.backend.parse();
        let target: Target = target
            .map_err(|error: String| Failure::wrong_use(format!("{}: {error}", self.backend)))?;
        if self.io.is_some() && !matches!(target, Target::Device(_)) {
            return Err(Failure::wrong_use(format!(
                "--io is about files and block devices, and {} is neither: leave it away",
                self.backend
            )));
        }
        if self.shared_device && !matches!(target, Target::Device(_)) {
            return Err(Failure::wrong_use(format!(
                "--shared-device is about files and block devices, and {} is neither: leave it away",
                self.backend
            )));
        }
        if self.timeout.is_some() && !matches!(target, Target::Export(_)) {
            return Err(Failure::wrong_use(format!(
                "--timeout is about NBD servers, and {} is none: leave it away",
                self.backend
            )));
        }
        Ok(match target {
            Target::Device(path) => {
                // Flushes and retries come beside the scheduler's.
                let io = self.io;
                let claim = if self.shared_device { Claim::Shared } else { Claim::Exclusive };
                let file = FileBackend::open(&path, claim, io, at_once() + 2, way.back())?;
                if self.shared_device {
                    output::note(&target::shared(&path, file.other_users()));
                }
                free_space::note(
                    file.room(),
                    &format!("{} is", path.display()),
                    free_space::WRITES_FAIL,
                );
                let file = file.watching(operator.notice()).map_err(|error| {
                    Failure::failed(format!("{}: its watch: {error}", path.display()))
                })?;
                let how = match file.io() {
                    Io::Uring => " by uring",
                    Io::Threads => " by threads",
                };
                (Arc::new(file), how)
            }
            Target::Export(uri) => {
                let longest = Some(self.longest()?);
                let export = NbdBackend::connect(&uri, longest, way.back(), way.gone())?;
                if !export.abilities().flush {
                    output::note(&format!(
                        "{uri}: this server has no FLUSH, so none is offered: what is written may be \
                         lost when its machine fails"
                    ));
                }
                (Arc::new(export), "")
            }
            Target::Emulated(emulated) => (Arc::new(emulated_backend(&emulated, way)?), ""),
        })
    }

    /// Longest time that the backend's server may owe an answer.
    fn longest(&self) -> Result<Duration, Failure> {
        let timeout = self.timeout.unwrap_or(TIMEOUT);
        if !(TIMEOUT_MIN..=TIMEOUT_MAX).contains(&timeout) {
            return Err(Failure::wrong_use(format!(
                "--timeout {timeout}: {TIMEOUT_MIN} to {TIMEOUT_MAX} are allowed"
            )));
        }
        Ok(Duration::from_nanos(timeout.ns()))
    }

    fn first_line(
        &self,
        spec: &DriveSpec,
        drive: &Drive,
        (how, serving): (&str, &Serving),
        (server, control): (&Server, &ControlServer),
    ) -> String {
        let uri = listen::uri(server);
        let size = drive.total_blocks().bytes().capacity();
        let sectors = sectors_in_words(serving);
        let work = if self.scrub { ", scrubbed in its gaps" } else { "" };
        format!(
            "{} as {} ({size}{sectors}){how} at {uri}{work}: nbdinfo '{uri}', qemu-img info '{uri}', or \
             freewheel tasks --control {}\n",
            self.backend,
            spec.name,
            control.path().display()
        )
    }
}

/// Sectors that are not of 512 B.
fn sectors_in_words(serving: &Serving) -> String {
    let sectors = serving.sectors();
    let (logical, physical) =
        (Bytes::new(sectors.logical_bytes.into()), Bytes::new(sectors.physical_bytes.into()));
    if sectors == Default::default() {
        String::new()
    } else {
        format!(", sectors of {logical} logical and {physical} physical")
    }
}

/// Expectation for a drive whose bus is slower than its media.
fn slow_bus(spec: &DriveSpec, drive: &Drive) -> Option<String> {
    let limit = drive.limit_of_bus(spec.electronics.bus?)?;
    Some(format!(
        "by its file the bus of {} moves {} and its media up to {}: when an answer comes says little \
         about where the head is then, so little will be read in gaps",
        spec.name,
        Unit::BytesPerSecond.text(limit.bus_bytes_per_second),
        Unit::BytesPerSecond.text(limit.media_bytes_per_second)
    ))
}

/// Commands that the scheduler has at a device.
fn at_once() -> u32 {
    PredictionSpec::default().queue_depth
}

fn emulated_backend(emulated: &Emulated, way: &BackendChannel) -> Result<EmulatedBackend, Failure> {
    let (spec, drive) = drives::load(&emulated.drive)?;
    let (behaviour, bad) =
        emulated.behaviour.of(DriveSource::Keys, (&spec, &drive, &emulated.drive))?;
    // The settings that make a drive's head predictable.
    let behaviour = Behaviour {
        queue_depth: behaviour.queue_depth.or(Some(at_once())),
        write_cache: behaviour.write_cache.or(Some(WriteCache::Off)),
        ..behaviour
    };
    let seed = emulated.behaviour.seed;
    let options = EmulationOptions { behaviour, bad, seed, ..EmulationOptions::default() };
    Ok(EmulatedBackend::start(&spec, &emulated.drive, options, way.back())?)
}
