//! `freewheel emulate`: a modelled drive that answers when a real one would.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::Args;
use freewheel::drives::{self, DriveIdentity};
use freewheel::emulation::{Emulation, EmulationOptions, PowerSwitch, Replies, Syncs};
use freewheel::files::{Others, open_own};
use freewheel::serving::{self, Address, Served, Server, Service};
use freewheel::{Drive, DriveSpec};
use serde::Serialize;

use crate::failure::Failure;
use crate::verbs::emulated::{BehaviourArgs, DriveSource};
use crate::verbs::free_space;
use crate::verbs::listen::{self, ListenArgs, Operator};
use crate::{file, output};

/// Serve a drive that exists in arithmetic only over NBD; it answers when the real one would
#[derive(Args)]
#[command(after_help = "\
Examples:
  freewheel emulate atlas10k --socket /tmp/disk
  freewheel emulate exos-x24-24tb --listen 127.0.0.1:10809 --seek-jitter 50us --bad 4096-4103
  freewheel emulate atlas10k tr96 --socket /tmp/disks --store /var/tmp/disks
  freewheel emulate atlas10k --socket /tmp/disk --store /var/tmp/disk --volatile-cache
  freewheel emulate atlas10k --listen 0.0.0.0:10809 --tls-certificates /etc/pki/nbd --tls-verify-peer

Then, from another terminal:
  nbdinfo 'nbd+unix:///?socket=/tmp/disk'
  qemu-img bench -c 200 -d 4 -f raw 'nbd+unix:///?socket=/tmp/disk'
  nbd-client -unix /tmp/disk /dev/nbd0
  nbdinfo --list 'nbd+unix:///?socket=/tmp/disks'

It runs until Ctrl-C or SIGTERM, answers what is in flight, and says how late its replies were. With
--store answered writes survive the end of this process, and what was flushed or written with FUA
survives a crash of the machine. With --volatile-cache unflushed writes survive neither, and SIGUSR1
cuts the power of the drives.")]
pub struct EmulateArgs {
    /// Name of a shipped drive (see `freewheel drive list`), or path of a drive file; of several, each
    /// is an export by its drive's name, the first one also without a name, and all have the behaviour
    /// given, each with the next seed
    #[arg(value_name = "DRIVE", required = true)]
    drives: Vec<String>,
    #[command(flatten)]
    listen: ListenArgs,
    /// Keep the data in this sparse file, which is made with the drive's size if there is none; of
    /// several drives in this folder, each in NAME.img; gone at the end if not given
    #[arg(long, value_name = "PATH")]
    store: Option<PathBuf>,
    /// Lose or reorder written data that are neither flushed nor forced (FUA), by the seed, when this
    /// process is killed or gets SIGUSR1, which cuts all connections and serves again
    #[arg(long)]
    volatile_cache: bool,
    /// A further export of the first drive, whose clients' commands have a mark for the drive's queue:
    /// NAME=high-priority (NCQ priority), or NAME=limit:1 (Command Duration Limit of that number)
    #[arg(long, value_name = "NAME=MARK")]
    marked: Vec<String>,
    #[command(flatten)]
    behaviour: BehaviourArgs,
    /// Print one JSON document at the end instead of a table; the line at the start goes to stderr
    #[arg(long)]
    json: bool,
}

/// All that is known in the end.
#[derive(Serialize)]
struct Document {
    drives: Vec<DriveOutput>,
    connections: Served,
    power_cuts: u64,
}

/// Properties of a drive.
#[derive(Serialize)]
struct DriveOutput {
    drive: DriveIdentity,
    realtime_priority: bool,
    #[serde(flatten)]
    answered: Answered,
}

/// The requests of clients.
#[derive(Serialize)]
struct Answered {
    requests: u64,
    #[serde(flatten)]
    replies: Replies,
    syncs: Syncs,
}

/// Drives that no client has used: if they are dropped, the files that were made for them go as well.
struct Unused(Vec<Arc<Emulation>>);

impl Drop for Unused {
    fn drop(&mut self) {
        self.0.iter().for_each(|emulation| emulation.discard_store());
    }
}

/// A drive that is emulated.
struct Emulated {
    spec: DriveSpec,
    drive: Drive,
    store: Option<PathBuf>,
    emulation: Arc<Emulation>,
}

impl EmulateArgs {
    pub fn run(self) -> Result<(), Failure> {
        let drives = self.load()?;
        serving::check_resources()?;
        let stores = self.stores(&drives)?;
        let operator = self.listen.operator()?;
        let switch = if self.volatile_cache { Some(power_switch()?) } else { None };
        let mut unused = Unused(Vec::new());
        let emulated = self.start(drives, stores, &mut unused)?;
        // Now with all that it needs without clients.
        serving::check_resources()?.iter().for_each(|text| operator.say(text));
        let mut services: Vec<Arc<dyn Service>> =
            emulated.iter().map(|of| Arc::clone(&of.emulation) as Arc<dyn Service>).collect();
        for given in &self.marked {
            let marked = emulated[0].emulation.marked(given)?;
            let name = marked.export().name;
            if services.iter().any(|other| other.export().name == name) {
                return Err(Failure::wrong_use(format!(
                    "--marked {given}: another export is named {name}: choose another name"
                )));
            }
            services.push(marked);
        }
        let server = self.listen.bind(services, &operator)?;
        operator.announce(first_line(&emulated, &server), self.json)?;
        unused.0.clear();
        let served = match switch {
            Some(switch) => serve_with_power_cuts(server, &operator, &switch, &emulated),
            None => operator.serve(server).map(|served| (served, 0)),
        };
        // Every drive is finished, also if the server or another drive failed: each may hold unflushed data.
        let answered: Vec<Result<Answered, Failure>> =
            emulated.iter().map(Emulated::finish).collect();
        let (connections, power_cuts) = served?;
        let answered = answered.into_iter().collect::<Result<Vec<Answered>, Failure>>()?;
        operator.print_last(self.last_lines(&emulated, answered, connections, power_cuts)?)
    }

    /// Starts the drives, each with its store.
    fn start(
        &self,
        drives: Vec<(DriveSpec, Drive)>,
        stores: Vec<Option<PathBuf>>,
        unused: &mut Unused,
    ) -> Result<Vec<Emulated>, Failure> {
        let seeds = self.behaviour.seed..;
        let each = self.drives.iter().zip(drives).zip(stores.into_iter().zip(seeds));
        let started = each.map(|((name, (spec, drive)), (store, seed))| {
            let (behaviour, bad) =
                self.behaviour.of(DriveSource::Options, (&spec, &drive, name))?;
            let path = store.clone();
            let options = EmulationOptions {
                behaviour,
                bad,
                seed,
                store,
                volatile_cache: self.volatile_cache,
            };
            let emulation = Arc::new(Emulation::start(&spec, name, options)?);
            unused.0.push(Arc::clone(&emulation));
            if let Some(path) = &path {
                note_others(path);
                let place = format!("{} is", path.display());
                free_space::note(emulation.room(), &place, free_space::WRITES_FAIL);
            }
            Ok(Emulated { spec, drive, store: path, emulation })
        });
        started.collect()
    }

    /// The files of the drives, no two of one name.
    fn load(&self) -> Result<Vec<(DriveSpec, Drive)>, Failure> {
        let mut loaded: Vec<(DriveSpec, Drive)> = Vec::new();
        for given in &self.drives {
            let (spec, drive) = drives::load(given)?;
            let name = &spec.name;
            if let Some(at) = loaded.iter().position(|(other, _)| other.name == *name) {
                return Err(Failure::wrong_use(format!(
                    "{} and {given} are both named {name}, and clients tell exports apart by that: give \
                     one of them another `name` in a copy of its file (freewheel drive show {given} \
                     --toml)",
                    self.drives[at]
                )));
            }
            loaded.push((spec, drive));
        }
        Ok(loaded)
    }

    /// Files with the data of each drive.
    fn stores(&self, drives: &[(DriveSpec, Drive)]) -> Result<Vec<Option<PathBuf>>, Failure> {
        let Some(store) = &self.store else { return Ok(vec![None; drives.len()]) };
        if drives.len() == 1 {
            return Ok(vec![Some(store.clone())]);
        }
        if !store.is_dir() {
            let path = store.display();
            return Err(Failure::wrong_use(format!(
                "--store {path}: that is no folder, and several drives need one, in which each has its \
                 NAME.img: mkdir {path}, or give another"
            )));
        }
        let files = self.drives.iter().zip(drives).map(|(given, (spec, _))| {
            let name = format!("{}.img", spec.name);
            file::ensure_plain_name(&spec.name, ".img").map_err(|why| {
                Failure::wrong_use(format!(
                    "{given}: its `name` {:?} cannot name a file in --store: {why}; give it another \
                     `name`",
                    spec.name
                ))
            })?;
            Ok(Some(store.join(name)))
        });
        files.collect()
    }

    fn last_lines(
        &self,
        emulated: &[Emulated],
        answered: Vec<Answered>,
        connections: Served,
        power_cuts: u64,
    ) -> Result<String, Failure> {
        if self.json {
            let drives = emulated.iter().zip(answered).map(|(of, answered)| DriveOutput {
                drive: DriveIdentity::new(&of.spec, &of.drive),
                realtime_priority: of.emulation.has_realtime_priority(),
                answered,
            });
            let drives = drives.collect();
            return output::document(&Document { drives, connections, power_cuts });
        }
        let tables = emulated.iter().zip(answered).map(|(of, answered)| {
            let name = if emulated.len() == 1 { "replies" } else { &of.spec.name };
            answered.replies.tables(name) + &answered.syncs.text() + "\n"
        });
        let Served { connections, refused, broken } = connections;
        let cuts =
            if self.volatile_cache { format!(", {power_cuts} power cuts") } else { String::new() };
        Ok(format!(
            "{}{connections} connections, {broken} of them broken, {refused} more refused{cuts}\n",
            tables.collect::<String>()
        ))
    }
}

/// That it listens, and how to connect.
fn first_line(emulated: &[Emulated], server: &Server) -> String {
    let uri = listen::uri(server);
    let mut named = uri.clone();
    let (list, choose) = match emulated {
        [.., last] if emulated.len() > 1 => {
            named.export.clone_from(&last.spec.name);
            ("--list ", format!(" -N {}", shell_word(&last.spec.name)))
        }
        _ => ("", String::new()),
    };
    let clients = match server.address() {
        _ if uri.tls => format!("nbdinfo {list}'{uri}', with the client's certificates in DIR"),
        Address::Unix(path) => format!(
            "nbdinfo {list}'{uri}', qemu-img info '{named}', or nbd-client -unix {} /dev/nbd0{choose}",
            path.display()
        ),
        Address::Tcp(at) => format!(
            "nbdinfo {list}'{uri}', qemu-img info '{named}', or nbd-client {} {} /dev/nbd0{choose}",
            at.ip(),
            at.port()
        ),
    };
    let priority = if emulated.iter().all(|of| of.emulation.has_realtime_priority()) {
        "real-time priority"
    } else {
        "ordinary priority: SCHED_FIFO is not permitted"
    };
    let drives: Vec<String> = emulated.iter().map(ToString::to_string).collect();
    format!("{} at {uri} ({priority}): {clients}\n", drives.join(", "))
}

/// Remarks on a store that is not this user's alone.
fn note_others(store: &Path) {
    // A link is the user's own way to a file elsewhere.
    let path = store.canonicalize();
    let opened = path.and_then(|path| open_own(&path, false, Others::Nothing));
    if let Err(why) = opened.map_err(|error| error.into_inner())
        && let Some(why) = why
    {
        output::note(&format!(
            "{}: {why}: the drive's data are in it; a new file is yours alone",
            store.display()
        ));
    }
}

/// A word of a command line, in quotes where it has other characters than those of usual names.
fn shell_word(text: &str) -> String {
    match !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    {
        true => text.into(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

impl Emulated {
    /// Ends the drive when all requests are answered.
    fn finish(&self) -> Result<Answered, Failure> {
        let ended = self.emulation.finish();
        let ended = ended.map_err(|error| {
            let store = self.store.as_ref().map(|store| format!("{}: ", store.display()));
            Failure::failed(format!("{}{}: {error}", store.unwrap_or_default(), self.spec.name))
        })?;
        let (device, syncs) = (ended.device, ended.syncs);
        Ok(Answered {
            requests: device.requests,
            replies: Replies::new(&device.lateness, &device.handing),
            syncs: Syncs::new(syncs.requests, &syncs.late),
        })
    }
}

/// A switch that `SIGUSR1` uses from now on.
fn power_switch() -> Result<PowerSwitch, Failure> {
    let switch = PowerSwitch::new().and_then(|switch| switch.on_signal().map(|()| switch));
    switch.map_err(|error| Failure::failed(format!("signals: {error}")))
}

/// Serves until the stop. Prints each power cut on stderr, and returns their number.
fn serve_with_power_cuts(
    server: Server,
    operator: &Operator,
    switch: &PowerSwitch,
    emulated: &[Emulated],
) -> Result<(Served, u64), Failure> {
    let drives: Vec<Arc<Emulation>> = emulated.iter().map(|of| Arc::clone(&of.emulation)).collect();
    let (count, address) = (AtomicU64::new(0), server.address().clone());
    let served = switch.serve(server, &operator.stop, &drives, |cuts| {
        let number = count.fetch_add(1, Ordering::Relaxed) + 1;
        for (of, cut) in emulated.iter().zip(cuts) {
            let name = &of.spec.name;
            operator.say(&match cut {
                Ok(cut) => format!(
                    "power cut {number}: {name} kept {} of the {} that were not flushed",
                    cut.kept.human(),
                    cut.cached.human()
                ),
                Err(error) => format!("power cut {number}: {name}: {error}"),
            });
        }
    });
    let served = served.map_err(|error| Failure::failed(format!("{address}: {error}")))?;
    Ok((served, count.into_inner()))
}

impl fmt::Display for Emulated {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DriveSpec { name, model, .. } = &self.spec;
        let size = self.drive.total_blocks().bytes().capacity();
        write!(out, "{name} ({model}, {size})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_word_quotes_names() {
        for (name, word) in [
            ("atlas10k", "atlas10k"),
            ("", "''"),
            ("my drive", "'my drive'"),
            ("x; reboot", "'x; reboot'"),
            ("$(reboot)", "'$(reboot)'"),
            ("it's", r"'it'\''s'"),
        ] {
            assert_eq!(shell_word(name), word);
        }
    }
}
