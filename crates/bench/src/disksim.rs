//! DiskSim beside Freewheel, where DiskSim is installed.
//!
//! `DISKSIM` is the path of its program. `DISKSIM_DRIVE` is the path of its file `atlas10k.diskspecs`;
//! the files that it names and `statdefs` are in the same folder. [`Load::parameters`] writes each
//! run's parameters to a temporary folder, so this crate contains no part of DiskSim.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// A closed random workload: 4 KiB, two reads for each write, evenly spread over Atlas 10Ks.
#[derive(Clone, Copy)]
pub struct Load {
    /// Policy of the driver: `fcfs` or `sptf`.
    pub policy: &'static str,
    pub outstanding: usize,
    /// Drives, striped.
    pub drives: usize,
}

/// Requests of a run: enough that loading the drives hardly counts. A run takes DiskSim 5 to 20 s.
const REQUESTS: u64 = 1_000_000;

/// Blocks of 512 B of a drive in DiskSim, and of a stripe unit.
const BLOCKS: u64 = 17_938_986;
const STRIPE: u64 = 128;

/// DiskSim's name for the drive.
const DRIVE: &str = "QUANTUM_TORNADO_validate";

/// DiskSim with its drive.
pub struct Peer {
    program: PathBuf,
    drive: PathBuf,
}

/// The note below a table.
pub fn note(peer: Option<&Peer>) -> String {
    match peer {
        Some(peer) => format!("DiskSim: {}, one run in turn with each row", peer.program.display()),
        None => "DiskSim: not run; DISKSIM=/path/to/disksim and DISKSIM_DRIVE=/path/to/atlas10k.diskspecs \
                 set it beside these"
            .into(),
    }
}

impl Peer {
    /// None without `DISKSIM` in the environment. Panics when it is set without a drive.
    pub fn from_environment() -> Option<Self> {
        match (
            std::env::var_os("DISKSIM").map(PathBuf::from),
            std::env::var_os("DISKSIM_DRIVE").map(PathBuf::from),
        ) {
            (None, _) => None,
            (Some(program), Some(drive)) => {
                Some(Self { program: absolute(program), drive: absolute(drive) })
            }
            (Some(program), None) => panic!(
                "DISKSIM={} also needs DISKSIM_DRIVE=/path/to/atlas10k.diskspecs",
                program.display()
            ),
        }
    }

    /// Simulated requests a second of real time. Panics when DiskSim fails.
    pub fn rate(&self, load: Load) -> f64 {
        let folder = std::env::temp_dir().join(format!("freewheel-bench-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        let (parameters, output) = (folder.join("load.parv"), folder.join("output"));
        self.link_drive_into(&folder);
        let drive = self.drive.file_name().expect("a file has a name").to_string_lossy();
        std::fs::write(&parameters, load.parameters(&drive)).expect("room in the temporary folder");
        let mut command = Command::new(&self.program);
        command.arg(&parameters).arg(&output).args(["ascii", "0", "1"]);
        command.current_dir(&folder);
        command.stdout(Stdio::null());
        let start = Instant::now();
        let status = command.status();
        let seconds = start.elapsed().as_secs_f64();
        std::fs::remove_dir_all(&folder).expect("the temporary folder can be removed");
        match status {
            Ok(status) if status.success() => REQUESTS as f64 / seconds,
            Ok(status) => panic!("{}: {status}", self.program.display()),
            Err(error) => panic!("{}: {error}", self.program.display()),
        }
    }
}

fn absolute(path: PathBuf) -> PathBuf {
    path.canonicalize().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

impl Peer {
    /// Links the drive's files. DiskSim reads only from the folder of its parameters: the drive's
    /// files, which name each other, and `statdefs` beside them.
    fn link_drive_into(&self, folder: &Path) {
        let beside = self.drive.parent().expect("a file has a folder");
        for entry in std::fs::read_dir(beside).expect("a folder that can be read") {
            let entry = entry.expect("a folder that can be read");
            std::os::unix::fs::symlink(entry.path(), folder.join(entry.file_name()))
                .expect("a temporary folder of one's own");
        }
    }
}

impl Load {
    /// One request at a time on one drive.
    pub const ONE: Self = Self { policy: "fcfs", outstanding: 1, drives: 1 };

    /// The workload as DiskSim reads it.
    fn parameters(&self, drive: &str) -> String {
        let policy = match self.policy {
            "fcfs" => 1,
            "sptf" => 8,
            other => panic!("DiskSim's number of {other} is not known here"),
        };
        let each = |text: &dyn Fn(usize) -> String| -> String {
            (0..self.drives).map(text).collect::<Vec<_>>().join(", ")
        };
        let disks = each(&|disk| format!("disk{disk}"));
        let topology = each(&|disk| format!("disksim_disk disk{disk} []"));
        // A single drive is addressed directly, striped ones as the array.
        let (addressing, scheme, unit, device, blocks) = if self.drives == 1 {
            ("Parts", "Asis", BLOCKS, "disk0", BLOCKS)
        } else {
            let all = BLOCKS / STRIPE * STRIPE * self.drives as u64;
            ("Array", "Striped", STRIPE, "org0", all)
        };
        let generator = generator(device, blocks);
        let generators = vec![generator; self.outstanding].join(",\n");
        let statistics = statistics();
        format!(
            "disksim_global Global {{ Init Seed = 42, Real Seed = 42, Stat definition file = statdefs }}\n\
             {statistics}\n\
             disksim_iodriver DRIVER0 {{ type = 1, Constant access time = 0.0, Scheduler = disksim_ioqueue {{\n\
             Scheduling policy = {policy}, Cylinder mapping strategy = 1, Write initiation delay = 0.0,\n\
             Read initiation delay = 0.0, Sequential stream scheme = 0, Maximum concat size = 128,\n\
             Overlapping request scheme = 0, Sequential stream diff maximum = 0, Scheduling timeout scheme = 0,\n\
             Timeout time/weight = 6, Timeout scheduling = 4, Scheduling priority scheme = 0,\n\
             Priority scheduling = 4 }}, Use queueing in subsystem = 0 }}\n\
             disksim_bus BUS0 {{ type = 1, Arbitration type = 1, Arbitration time = 0.0,\n\
             Read block transfer time = 0.0, Write block transfer time = 0.0, Print stats = 0 }}\n\
             disksim_ctlr CTLR0 {{ type = 1, Scale for delays = 0.0, Bulk sector transfer time = 0.0,\n\
             Maximum queue length = 0, Print stats = 0 }}\n\
             source {drive}\n\
             instantiate [ bus0, bus1 ] as BUS0\ninstantiate [ driver0 ] as DRIVER0\n\
             instantiate [ ctlr0 ] as CTLR0\ninstantiate [ {disks} ] as {DRIVE}\n\
             topology disksim_iodriver driver0 [ disksim_bus bus0 [ disksim_ctlr ctlr0 [ disksim_bus bus1 [\n\
             {topology} ] ] ] ]\n\
             disksim_logorg org0 {{ Addressing mode = {addressing}, Distribution scheme = {scheme},\n\
             Redundancy scheme = Noredun, devices = [ {disks} ], Stripe unit = {unit},\n\
             Synch writes for safety = 0, Number of copies = 2, Copy choice on read = 6,\n\
             RMW vs. reconstruct = 0.5, Parity stripe unit = 64, Parity rotation type = 1,\n\
             Time stamp interval = 0.0, Time stamp start time = 60000.0, Time stamp stop time = 10000000000.0,\n\
             Time stamp file name = stamps }}\n\
             disksim_pf Proc {{ Number of processors = 1, Process-Flow Time Scale = 1.0 }}\n\
             disksim_synthio Synthio {{ Number of I/O requests to generate = {REQUESTS},\n\
             Maximum time of trace generated = 10000000000.0, System call/return with each request = 0,\n\
             Think time from call to request = 0.0, Think time from request to return = 0.0,\n\
             Generators = [\n{generators}\n] }}\n"
        )
    }
}

/// DiskSim's statistics: it requires a switch for each, grouped by the part of the system. None is
/// printed.
const STATISTICS: [(&str, &str, &str, &str); 5] = [
    (
        "iodriver stats",
        "disksim_iodriver_stats",
        "driver",
        "size,locality,blocking,interference,queue,crit,idle,intarr,streak,stamp,per-device",
    ),
    ("bus stats", "disksim_bus_stats", "bus", "idle,arbwait"),
    (
        "ctlr stats",
        "disksim_ctlr_stats",
        "controller",
        "cache,size,locality,blocking,interference,queue,crit,idle,intarr,streak,stamp,per-device",
    ),
    (
        "device stats",
        "disksim_device_stats",
        "device",
        "queue,crit,idle,intarr,size,seek,latency,xfer,acctime,interfere,buffer",
    ),
    ("process flow stats", "disksim_pf_stats", "", "per-process,per-CPU,all interrupt,sleep"),
];

/// The block of parameters that switches all statistics off.
fn statistics() -> String {
    format!(
        "disksim_stats Stats {{ {} }}",
        STATISTICS
            .map(|(part, kind, prefix, names)| {
                let switches: Vec<String> = names
                    .split(',')
                    .map(|name| format!("Print {prefix} {name} stats = 0").replace("  ", " "))
                    .collect();
                format!("{part} = {kind} {{ {} }}", switches.join(", "))
            })
            .join(",\n")
    )
}

/// A client with one request outstanding on a device of `blocks` blocks.
fn generator(device: &str, blocks: u64) -> String {
    format!(
        "disksim_synthgen {{ Storage capacity per device = {blocks}, devices = [ {device} ],\n\
         Blocking factor = 8, Probability of sequential access = 0.0, Probability of local access = 0.0,\n\
         Probability of read access = 0.667, Probability of time-critical request = 1.0,\n\
         Probability of time-limited request = 0.0, Time-limited think times = [ normal, 30.0, 100.0 ],\n\
         General inter-arrival times = [ uniform, 0.0, 0.0 ],\n\
         Sequential inter-arrival times = [ uniform, 0.0, 0.0 ],\n\
         Local inter-arrival times = [ uniform, 0.0, 0.0 ], Local distances = [ uniform, 0.0, 0.0 ],\n\
         Sizes = [ uniform, 8.0, 8.0 ] }}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_has_client_per_outstanding_request() {
        let striped =
            Load { outstanding: 20, drives: 32, ..Load::ONE }.parameters("/x/a.diskspecs");
        assert_eq!(striped.matches("disksim_synthgen").count(), 20);
        assert_eq!(striped.matches("disksim_disk disk").count(), 32);
        assert!(striped.contains("Striped") && striped.contains("source /x/a.diskspecs"));
        assert_eq!(striped.matches('{').count(), striped.matches('}').count());
        let sptf = Load { policy: "sptf", ..Load::ONE }.parameters("a");
        assert!(sptf.contains("Scheduling policy = 8") && sptf.contains("Asis"));
    }
}
