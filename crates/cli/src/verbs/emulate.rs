//! `freewheel emulate`: a modelled drive that answers when a real one would.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use freewheel::live::emulate::{Account, Emulation, Options, Priority};
use freewheel::live::nbd::{Address, Served, Server, Service};
use freewheel::model::drive::Drive;
use freewheel::model::drive::spec::DriveSpec;
use freewheel::sim::library;
use serde::Serialize;

use crate::failure::Failure;
use crate::verbs::drive::DriveIdentity;
use crate::verbs::emulated::{Given, HabitArgs};
use crate::verbs::listen::{self, ListenArgs};
use crate::verbs::replies::Replies;
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
    #[command(flatten)]
    habits: HabitArgs,
    /// Print one JSON document at the end instead of a table; the line at the start goes to stderr
    #[arg(long)]
    json: bool,
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

impl EmulateArgs {
    pub fn run(self) -> Result<(), Failure> {
        let (spec, drive) = library::drive(&self.drive)?;
        let (habits, bad) = self.habits.of(Given::Options, (&spec, &drive, &self.drive))?;
        let options = Options { habits, bad, seed: self.habits.seed, store: self.store.clone() };
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
        let replies = Replies::from(account);
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
    let tables = replies.tables("replies");
    format!(
        "{tables}\n{connections} connections, {broken} of them broken, {refused} more refused\n"
    )
}
