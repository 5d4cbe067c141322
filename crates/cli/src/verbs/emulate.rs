//! `freewheel emulate`: a modelled drive that answers when a real one would.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use freewheel::live::emulate::{Account, Emulation, Options, Priority};
use freewheel::live::nbd::{Address, Served, Server, Service};
use freewheel::model::drive::Drive;
use freewheel::model::drive::spec::DriveSpec;
use freewheel::model::onboard::spec::WriteCache;
use freewheel::model::stats::Summary;
use freewheel::sim::black_box::{Activity, Habits, SpindleDrift};
use freewheel::sim::library;
use freewheel::units::SimDuration;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::table::Table;
use crate::verbs::drive::DriveIdentity;
use crate::verbs::emulated::{BadRange, bad_blocks};
use crate::verbs::listen::{self, ListenArgs};
use crate::{number, output};

/// Serve a drive that exists in arithmetic only over NBD; it answers when the real one would
#[derive(Args)]
#[command(after_help = "\
Examples:
  freewheel emulate atlas10k --socket /tmp/disk
  freewheel emulate exos-x24-24tb --listen 127.0.0.1:10809 --seek-jitter 50us --bad 4096-4103
  freewheel emulate atlas10k --listen 0.0.0.0:10809 --tls-certificates /etc/pki/nbd --tls-verify-peer

Then, from another terminal:
  nbdinfo 'nbd+unix:///?socket=/tmp/disk'
  qemu-img bench -c 200 -d 4 -f raw 'nbd+unix:///?socket=/tmp/disk'
  nbd-client -unix /tmp/disk /dev/nbd0

It runs until Ctrl-C or SIGTERM, answers what is in flight, and says how late its replies were. The
data are in the page cache when a write is answered: they survive the end of this process, not that
of the machine.")]
pub struct EmulateArgs {
    /// Name of a shipped drive (see `freewheel drive list`), or path of a drive file
    drive: String,
    #[command(flatten)]
    listen: ListenArgs,
    /// Keep the data in this sparse file, which is made with the drive's size if there is none; gone
    /// at the end if not given
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
    /// Commands the drive holds at once, instead of its own number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    queue_depth: Option<u32>,
    /// Seeks take up to so much more or less than the curve says, as 50us
    #[arg(long, value_name = "TIME")]
    seek_jitter: Option<SimDuration>,
    /// And over all cylinders up to so much; between, it grows with the distance
    #[arg(long, value_name = "TIME")]
    seek_jitter_far: Option<SimDuration>,
    /// And inward, over any distance, up to so much
    #[arg(long, value_name = "TIME")]
    seek_jitter_inward: Option<SimDuration>,
    /// Replies are under way for up to so long, evenly, as 20us
    #[arg(long, value_name = "TIME", default_value = "0us")]
    reply_jitter: SimDuration,
    /// And for up to so much longer for each block of 512 bytes
    #[arg(long, value_name = "TIME", default_value = "0us")]
    reply_jitter_a_block: SimDuration,
    /// The spindle's speed wanders, from so much slower than the drive's file says to so much faster
    /// in so long and back, as 2.5ppm/30min
    #[arg(long, value_name = "PPM/TIME")]
    spindle_drift: Option<SpindleDrift>,
    /// The drive does something of its own every EVERY in the mean, for LASTS, as 60s/100ms
    #[arg(long, value_name = "EVERY/LASTS")]
    activity: Option<OwnActivity>,
    /// Whether writes are answered when the drive's buffer has them, instead of what it does
    #[arg(long, value_name = "STATE")]
    write_cache: Option<Cache>,
    /// Blocks of 512 bytes that cannot be read until they are written; may be given several times
    #[arg(long, value_name = "LBN[-LBN]")]
    bad: Vec<BadRange>,
    /// How long the drive tries to read a bad block; drives in arrays are often set to 7s
    #[arg(long, value_name = "TIME", default_value = "7s")]
    recovery: SimDuration,
    /// Seed of every random stream
    #[arg(long, default_value_t = 1, value_parser = super::seed())]
    seed: u64,
    /// Print one JSON document at the end instead of a table; the line at the start goes to stderr
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Cache {
    /// When the buffer has them
    On,
    /// When they are on the media
    Off,
}

/// `EVERY/LASTS`.
#[derive(Clone, Copy)]
struct OwnActivity(Activity);

impl FromStr for OwnActivity {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (every, lasts) = text.split_once('/').ok_or("give EVERY/LASTS, as 60s/100ms")?;
        let time = |text: &str| text.parse::<SimDuration>().map_err(|error| error.to_string());
        let activity = Activity { every: time(every)?, lasts: time(lasts)? };
        let habits = Habits { activity: Some(activity), ..Habits::default() };
        habits.check().map_err(|error| error.to_string())?;
        Ok(Self(activity))
    }
}

/// All that is known in the end.
#[derive(Serialize)]
struct Document {
    drive: DriveIdentity,
    realtime_priority: bool,
    requests: u64,
    #[serde(flatten)]
    replies: Replies,
    connections: Served,
}

/// When the drive's replies were given, in what the verb prints.
#[derive(Serialize, Deserialize)]
pub struct Replies {
    /// From the time of a reply until the drive hands it over.
    lateness: Summary,
    /// How long that takes.
    handing: Summary,
}

impl Replies {
    /// The heads of [`Self::rows`] below a name for the table.
    pub fn heads(name: &str) -> [&str; 7] {
        [name, "count", "median", "90 %", "99 %", "99.9 %", "most"]
    }

    /// A row for each of the two: its name, and its times.
    pub fn rows(&self) -> [[String; 7]; 2] {
        let us = |ns: u64| format!("{:.1} us", ns as f64 / 1e3);
        [("late by", self.lateness), ("handed over in", self.handing)].map(|(name, times)| {
            let Summary { count, p50_ns, p90_ns, p99_ns, p999_ns, max_ns, .. } = times;
            let [p50, p90, p99, p999, most] = [p50_ns, p90_ns, p99_ns, p999_ns, max_ns].map(us);
            [name.to_owned(), count.to_string(), p50, p90, p99, p999, most]
        })
    }
}

impl EmulateArgs {
    pub fn run(self) -> Result<(), Failure> {
        let (spec, drive) = library::drive(&self.drive)?;
        if matches!(self.write_cache, Some(Cache::On)) && spec.onboard.buffer.is_none() {
            return Err(Failure::wrong_use(format!(
                "--write-cache on: {} has no buffer that could hold writes; leave it out",
                self.drive
            )));
        }
        let options = self.options(&drive)?;
        let stop = listen::stop()?;
        let emulation = Arc::new(Emulation::start(&spec, &self.drive, options)?);
        let service: Arc<dyn Service> = Arc::clone(&emulation) as Arc<dyn Service>;
        let server = self.listen.bind(service)?;
        self.announce(&spec, &drive, &server, &emulation)?;
        let served = listen::serve(server, &stop)?;
        let account = emulation.device().finish();
        let account = account.ok_or_else(|| Failure::failed("the drive's thread has failed"))?;
        self.print(&spec, &drive, &emulation, served, &account)
    }

    fn options(&self, drive: &Drive) -> Result<Options, Failure> {
        let habits = Habits {
            seek_jitter: self.seek_jitter,
            seek_jitter_far: self.seek_jitter_far,
            seek_jitter_inward: self.seek_jitter_inward,
            reply_jitter: self.reply_jitter,
            reply_jitter_a_block: self.reply_jitter_a_block,
            spindle_drift: self.spindle_drift,
            activity: self.activity.map(|own| own.0),
            queue_depth: self.queue_depth,
            write_cache: self.write_cache.map(|cache| match cache {
                Cache::On => WriteCache::On,
                Cache::Off => WriteCache::Off,
            }),
        };
        let bad = bad_blocks("--bad ", &self.bad, self.recovery, (drive, &self.drive))?;
        Ok(Options { habits, bad, seed: self.seed, store: self.store.clone() })
    }

    /// Says that it listens, and how to connect.
    fn announce(
        &self,
        spec: &DriveSpec,
        drive: &Drive,
        server: &Server,
        emulation: &Emulation,
    ) -> Result<(), Failure> {
        let uri = listen::uri(server);
        let clients = match server.address() {
            _ if uri.tls => format!("nbdinfo '{uri}', with the client's certificates in DIR"),
            Address::Unix(path) => format!(
                "nbdinfo '{uri}', qemu-img info '{uri}', or nbd-client -unix {} /dev/nbd0",
                path.display()
            ),
            Address::Tcp(at) => format!(
                "nbdinfo '{uri}', qemu-img info '{uri}', or nbd-client {} {} /dev/nbd0",
                at.ip(),
                at.port()
            ),
        };
        let priority = match emulation.device().priority() {
            Priority::Realtime => "real-time priority",
            Priority::Ordinary => "ordinary priority: SCHED_FIFO is not permitted",
        };
        let text = format!(
            "{} ({}, {}) at {uri} ({priority}): {clients}\n",
            spec.name,
            spec.model,
            number::capacity(drive.total_blocks().bytes().get()),
        );
        listen::announce(&text, self.json)
    }

    fn print(
        &self,
        spec: &DriveSpec,
        drive: &Drive,
        emulation: &Emulation,
        connections: Served,
        account: &Account,
    ) -> Result<(), Failure> {
        let replies =
            Replies { lateness: account.lateness.summary(), handing: account.handing.summary() };
        if !self.json {
            return output::print(&text(&replies, &connections));
        }
        output::print_document(&Document {
            drive: DriveIdentity::new(spec, drive),
            realtime_priority: emulation.device().priority() == Priority::Realtime,
            requests: account.requests,
            replies,
            connections,
        })
    }
}

fn text(replies: &Replies, connections: &Served) -> String {
    let Served { connections, refused, broken } = connections;
    let mut table = Table::new("lrrrrrr");
    table.row(Replies::heads("replies"));
    replies.rows().into_iter().for_each(|row| table.row(row));
    format!("{table}{connections} connections, {broken} of them broken, {refused} more refused\n")
}
