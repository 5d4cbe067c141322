//! Running the program, and small inputs for it.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::Value;

/// Output and exit code of a run.
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// The program, about to be run in the repository's folder.
pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_freewheel"));
    command.args(args).current_dir(repository());
    command
}

pub fn run(args: &[&str]) -> Ran {
    finish(command(args).output().unwrap())
}

/// Runs where no file may have more than `blocks` of 512 B, as on a disk that is full.
pub fn run_with_files_of(blocks: u64, args: &[&str]) -> Ran {
    let limited = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &limited, "sh", env!("CARGO_BIN_EXE_freewheel")]).args(args);
    finish(command.output().unwrap())
}

/// Runs `prepare`, a command of the shell, and then the program in a folder whose file system has room
/// for `bytes` that only it sees; the names of the files there in the end follow on stdout. None where no
/// such file system may be made, which is printed.
pub fn run_with_room_of(bytes: u64, folder: &Path, prepare: &str, args: &[&str]) -> Option<Ran> {
    let mount = format!("mount -t tmpfs -o size={bytes} tmpfs \"$0\"");
    let unshare = |script: &str, args: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-ec", script]).arg(folder);
        command.args(args).output()
    };
    let why = match unshare(&mount, &[]) {
        Ok(output) if output.status.success() => {
            let script =
                format!("{mount}; cd \"$0\"; {prepare}; \"$@\" || code=$?; ls; exit $code");
            let program = [&[env!("CARGO_BIN_EXE_freewheel")], args].concat();
            return Some(finish(unshare(&script, &program).unwrap()));
        }
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    println!("skipped: a file system with little room: unshare: {why}");
    None
}

pub fn finish(output: Output) -> Ran {
    Ran {
        code: output.status.code().expect("an exit code, not a signal"),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs what must succeed, and gives its stdout.
pub fn stdout(args: &[&str]) -> String {
    let ran = run(args);
    assert_eq!(ran.code, 0, "{args:?}: {}", ran.stderr);
    ran.stdout
}

/// Runs what must succeed and print one document with the version of its shape.
pub fn document(args: &[&str]) -> Value {
    let value: Value =
        serde_json::from_str(&stdout(args)).unwrap_or_else(|e| panic!("{args:?}: {e}"));
    assert_eq!(value["schema_version"], 1, "{args:?}");
    value
}

/// A terminal: what a person types goes into the first, and what a program prints comes out of it.
pub fn terminal() -> (File, File) {
    let control = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&control).unwrap();
    unlockpt(&control).unwrap();
    let name = ptsname(&control, Vec::new()).unwrap();
    let terminal = OpenOptions::new().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    (File::from(control), terminal)
}

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A trace of five requests, with completions.
pub const SMALL_TRACE: &str = "\
arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns
0,R,0,4096,0,5000000
1000000,W,409600,8192,0,6000000
2000000,F,0,0,0,7000000
9000000,R,8192,4096,0,12000000
20000000,W,0,4096,0,24000000
";

/// A folder with the small trace and an experiment, `sim.toml`, that replays it.
pub struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    pub fn new(trace: &str) -> Self {
        let bench = Self { folder: tempfile::tempdir().unwrap() };
        bench.put("trace.csv", trace);
        bench.put(
            "sim.toml",
            "drive = \"tr96\"\nworkload = { kind = \"trace\", file = \"trace.csv\" }\n",
        );
        bench
    }

    pub fn put(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    /// The path of a file in it, for an argument.
    pub fn at(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
        let mut names: Vec<String> =
            entries.map(|entry| name(entry).to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}
