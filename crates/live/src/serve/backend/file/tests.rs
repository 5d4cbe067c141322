use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::process::Command;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use freewheel_units::Lbn;
use proptest::prelude::*;
use tempfile::NamedTempFile;

use super::*;

/// Ways that the system has.
fn ways() -> Vec<Io> {
    let file = NamedTempFile::new().unwrap();
    file.as_file().set_len(4096).unwrap();
    match FileBackend::open(file.path(), Claim::Exclusive, Some(Io::Uring), 4, back().0) {
        Ok(_) => vec![Io::Uring, Io::Threads],
        Err(OpenError::NoRing { source, .. }) => {
            uring::skip(&source);
            vec![Io::Threads]
        }
        Err(error) => panic!("{error}"),
    }
}

struct Trial {
    device: FileBackend,
    told: Receiver<BackendCompletion>,
    file: NamedTempFile,
}

fn back() -> (Back, Receiver<BackendCompletion>) {
    let (tell, told) = mpsc::channel();
    let tell = Mutex::new(tell);
    (Arc::new(move |came| tell.lock().unwrap().send(came).unwrap()), told)
}

/// With room for four commands.
fn opened(bytes: u64, io: Io) -> Trial {
    let file = NamedTempFile::new().unwrap();
    file.as_file().set_len(bytes).unwrap();
    let (back, told) = back();
    let device = FileBackend::open(file.path(), Claim::Exclusive, Some(io), 4, back).unwrap();
    Trial { device, told, file }
}

impl Trial {
    fn submit(&self, id: u64, what: DeviceOp, start: u64, data: Vec<u8>) {
        self.device.submit(DeviceCommand { id, what, start: Lbn::new(start), data });
    }

    fn come(&self) -> BackendCompletion {
        self.told.recv_timeout(Duration::from_secs(60)).unwrap()
    }

    fn call(&self, what: DeviceOp, start: u64, data: Vec<u8>) -> Result<Vec<u8>, DeviceError> {
        self.submit(1, what, start, data);
        let came = self.come();
        assert_eq!(came.id, 1);
        came.result
    }
}

const WRITE: DeviceOp = DeviceOp::Write { fua: false };

#[test]
fn written_blocks_read_back_from_file() {
    for io in ways() {
        let trial = opened(1 << 20, io);
        assert_eq!((trial.device.blocks(), trial.device.io()), (Blocks::new(2048), io));
        for (start, blocks) in [(0u64, 1usize), (3, 5), (1001, 64), (2047, 1)] {
            let data: Vec<u8> = (0..blocks * 512).map(|at| (at as u64 * 7 + start) as u8).collect();
            trial.call(WRITE, start, data.clone()).unwrap();
            trial.call(DeviceOp::Flush, 0, Vec::new()).unwrap();
            let read = trial.call(DeviceOp::Read, start, vec![0; blocks * 512]).unwrap();
            assert!(read == data, "{start}, {io:?}");
            let kept = std::fs::read(trial.file.path()).unwrap();
            assert!(kept[start as usize * 512..][..data.len()] == data, "{start}, {io:?}");
        }
    }
}

#[test]
fn file_uses_threads_unless_ring_asked() {
    let file = NamedTempFile::new().unwrap();
    file.as_file().set_len(4096).unwrap();
    let device = FileBackend::open(file.path(), Claim::Exclusive, None, 4, back().0).unwrap();
    assert_eq!(device.io(), Io::Threads);
}

#[test]
fn zeroes_take_no_space_unless_kept() {
    for io in ways() {
        let trial = opened(1 << 20, io);
        let room_after = |what| {
            trial.call(WRITE, 256, vec![7; 1 << 19]).unwrap();
            trial.call(DeviceOp::Flush, 0, Vec::new()).unwrap();
            match trial.call(what, 256, Vec::new()) {
                // A file system that does not know how.
                Err(failed) => assert_eq!(failed.kind, DeviceErrorKind::NotSupported),
                Ok(_) => {
                    let kept = std::fs::read(trial.file.path()).unwrap();
                    assert!(kept[(1 << 17) + 512..(1 << 19) + (1 << 17)].iter().all(|&b| b == 0));
                }
            }
            trial.file.as_file().metadata().unwrap().blocks()
        };
        let blocks = (1 << 19) / 512;
        let kept = room_after(DeviceOp::WriteZeroes { blocks, keep: true });
        assert!(kept >= 1024, "{kept} blocks of 512 B, {io:?}");
        assert!(room_after(DeviceOp::Trim { blocks }) <= kept, "{io:?}");
    }
}

#[test]
fn discard_support_read_from_sysfs() {
    let sysfs = tempfile::tempdir().unwrap();
    let (drive, partition) = (sysfs.path().join("sda"), sysfs.path().join("sda/sda1"));
    std::fs::create_dir_all(drive.join("queue")).unwrap();
    std::fs::create_dir_all(&partition).unwrap();
    assert!(!discards(&drive), "nothing is said");
    for (most, can) in [("0\n", false), ("2147450880\n", true)] {
        std::fs::write(drive.join("queue/discard_max_bytes"), most).unwrap();
        assert_eq!((discards(&drive), discards(&partition)), (can, can), "{most}");
    }
}

/// A loop device for a file, let go at the end.
struct LoopDevice(PathBuf);

impl LoopDevice {
    /// None where no test device may be made; prints the reason.
    fn new(file: &Path, options: &[&str]) -> Option<Self> {
        let made =
            Command::new("losetup").args(options).args(["--find", "--show"]).arg(file).output();
        let why = match made {
            Ok(made) if made.status.success() => {
                return Some(Self(String::from_utf8(made.stdout).unwrap().trim_end().into()));
            }
            Ok(made) => String::from_utf8_lossy(&made.stderr).into_owned(),
            Err(error) => error.to_string(),
        };
        println!("skipped: losetup: {why}");
        None
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let gone = Command::new("losetup").arg("--detach").arg(&self.0).status();
        assert!(gone.is_ok_and(|status| status.success()) || std::thread::panicking());
    }
}

#[test]
fn read_only_device_known_from_sysfs() {
    let sysfs = tempfile::tempdir().unwrap();
    assert!(!is_read_only(sysfs.path()), "nothing is said");
    for (text, is) in [("0\n", false), ("1\n", true)] {
        std::fs::write(sysfs.path().join("ro"), text).unwrap();
        assert_eq!(is_read_only(sysfs.path()), is);
    }
}

#[test]
fn read_only_device_refused_for_writing() {
    let file = NamedTempFile::new().unwrap();
    file.as_file().set_len(1 << 20).unwrap();
    let Some(device) = LoopDevice::new(file.path(), &["--read-only"]) else { return };
    let error = FileBackend::open(&device.0, Claim::Exclusive, None, 1, back().0).err().unwrap();
    assert!(matches!(error, OpenError::ReadOnly { .. }), "{error}");
    let (back, told) = back();
    let trial = Trial {
        device: FileBackend::open(&device.0, Claim::Read, None, 1, back).unwrap(),
        told,
        file,
    };
    assert_eq!(trial.call(DeviceOp::Read, 0, vec![1; 512]), Ok(vec![0; 512]));
}

#[test]
fn device_sectors_read_from_system() {
    let file = NamedTempFile::new().unwrap();
    file.as_file().set_len(1 << 20).unwrap();
    let Some(device) = LoopDevice::new(file.path(), &["--sector-size", "4096"]) else { return };
    let opened = FileBackend::open(&device.0, Claim::Exclusive, None, 1, back().0).unwrap();
    let Abilities { sector_bytes, physical_bytes, .. } = opened.abilities();
    assert_eq!((sector_bytes, physical_bytes), (4096, 4096));
}

/// A loop device of 8 MiB. None where no test device may be made; prints the reason.
fn loop_device() -> Option<(NamedTempFile, LoopDevice)> {
    let file = NamedTempFile::new().unwrap();
    file.as_file().set_len(8 << 20).unwrap();
    let device = LoopDevice::new(file.path(), &[])?;
    Some((file, device))
}

/// Success of a program, and its output.
fn run(program: &str, args: &[&str], path: &Path) -> (bool, String) {
    let ran = Command::new(program).args(args).arg(path).output();
    let ran = ran.unwrap_or_else(|error| panic!("{program}: {error}"));
    (ran.status.success(), String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into())
}

/// A folder at which a device is mounted until the end.
struct Mounted(tempfile::TempDir);

impl Mounted {
    /// None where nothing may be mounted; prints the reason.
    fn new(device: &Path) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let (is_mounted, said) = run("mount", &[device.to_str().unwrap()], folder.path());
        if !is_mounted {
            println!("skipped: mount: {said}");
        }
        is_mounted.then(|| Self(folder))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        assert!(run("umount", &[], self.0.path()).0 || std::thread::panicking());
    }
}

fn claimed(path: &Path, claim: Claim) -> Result<FileBackend, OpenError> {
    FileBackend::open(path, claim, Some(Io::Threads), 1, back().0)
}

/// Value that appears in the end: threads of a device end after it.
fn eventually<T>(there: impl Fn() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(there) = there() {
            return there;
        }
        assert!(Instant::now() < deadline, "it never came");
        std::thread::yield_now();
    }
}

/// A file or device for its only user, once those before it have gone.
fn claimed_after(path: &Path) -> FileBackend {
    eventually(|| claimed(path, Claim::Exclusive).ok())
}

/// Message that refuses a device in use.
fn busy(path: &Path) -> String {
    let error = claimed(path, Claim::Exclusive).err().expect("it is in use");
    assert!(matches!(error, OpenError::Busy { .. }), "{error}");
    let said = error.to_string();
    assert!(said.starts_with(&format!("{}: is in use (", path.display())), "{said}");
    assert!(said.ends_with("with --shared-device"), "{said}");
    said
}

#[test]
fn mounted_device_is_not_served() {
    let Some((_file, device)) = loop_device() else { return };
    let (is_made, said) = run("mkfs.ext4", &["-q"], &device.0);
    assert!(is_made, "{said}");
    let Some(mounted) = Mounted::new(&device.0) else { return };
    let place = format!("mounted at {} (ext4)", mounted.0.path().display());
    assert!(busy(&device.0).contains(&place));
    for claim in [Claim::Shared, Claim::Read] {
        let shared = eventually(|| claimed(&device.0, claim).ok());
        assert_eq!(shared.other_users(), [place.as_str()], "{claim:?}");
    }
    drop(mounted);
    let served = claimed_after(&device.0);
    assert!(served.other_users().is_empty() && Mounted::new(&device.0).is_none());
}

#[test]
fn device_not_served_twice_by_other_node() {
    let Some((_file, device)) = loop_device() else { return };
    let folder = tempfile::tempdir().unwrap();
    let node = folder.path().join("node");
    let number = std::fs::metadata(&device.0).unwrap().rdev();
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let [major, minor] = [major, minor].map(|number| number.to_string());
    let made = Command::new("mknod").arg(&node).args(["b", &major, &minor]).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let first = match claimed(&node, Claim::Exclusive) {
        Err(OpenError::System { source, .. }) => {
            println!("skipped: a device node in {}: {source}", folder.path().display());
            return;
        }
        opened => opened.unwrap(),
    };
    assert!(busy(&device.0).contains("another program that has claimed it"));
    drop(first);
    claimed_after(&device.0);
}

#[test]
fn mkfs_of_served_device_is_refused() {
    let Some((_file, device)) = loop_device() else { return };
    let served = claimed(&device.0, Claim::Exclusive).unwrap();
    let (is_made, said) = run("mkfs.ext4", &["-q", "-F"], &device.0);
    assert!(!is_made && said.contains("in use"), "{said}");
    drop(served);
    // Waits for its threads.
    drop(claimed_after(&device.0));
}

#[test]
fn loop_file_not_served_beside_loop() {
    let Some((file, device)) = loop_device() else { return };
    let behind = format!("behind {}", device.0.display());
    assert!(busy(file.path()).contains(&behind));
    let shared = claimed(file.path(), Claim::Shared).unwrap();
    assert_eq!(shared.other_users(), [behind]);
    // Both names are locked, whichever comes first.
    for claim in [Claim::Exclusive, Claim::Shared] {
        let error = claimed(&device.0, claim).err().unwrap();
        assert!(matches!(&error, OpenError::InUse { path } if path == file.path()), "{error}");
    }
    drop(shared);
    let served = claimed_after(&device.0);
    let error = claimed(file.path(), Claim::Shared).err().unwrap();
    assert!(matches!(error, OpenError::InUse { .. }), "{error}");
    drop(served);
}

#[test]
fn read_past_end_fails_alone() {
    for io in ways() {
        let trial = opened(1 << 20, io);
        assert!(trial.call(DeviceOp::Read, 2047, vec![0; 4096]).is_err(), "{io:?}");
        assert!(trial.call(DeviceOp::Read, 8, vec![0; 4096]).is_ok(), "{io:?}");
    }
}

#[test]
fn read_only_file_takes_no_writes() {
    for io in ways() {
        let file = NamedTempFile::new().unwrap();
        file.as_file().set_len(4096).unwrap();
        let (back, told) = back();
        let device = FileBackend::open(file.path(), Claim::Read, Some(io), 1, back).unwrap();
        let trial = Trial { device, told, file };
        let refused = trial.call(WRITE, 0, vec![1; 512]).unwrap_err();
        assert!(refused.message.contains("Bad file descriptor"), "{refused}, {io:?}");
        assert_eq!(trial.call(DeviceOp::Read, 0, vec![1; 512]), Ok(vec![0; 512]), "{io:?}");
    }
}

#[test]
fn device_gone_differs_from_unreadable_block() {
    for io in ways() {
        let trial = opened(1 << 20, io);
        trial.file.as_file().set_len(4096).unwrap();
        let read = |start| {
            let result = trial.call(DeviceOp::Read, start, vec![0; 4096]);
            result.map(drop).map_err(|failed| failed.kind)
        };
        assert_eq!(read(0), Ok(()));
        assert_eq!(read(1024), Err(DeviceErrorKind::Gone), "it had so many, {io:?}");
        assert_eq!(read(2047), Err(DeviceErrorKind::Io), "it never had, {io:?}");
    }
    let says = |code| failed(&io::Error::from_raw_os_error(code), true).kind;
    let (enxio, eio, enodev) = (6, 5, 19);
    assert_eq!(
        [enxio, eio, enodev].map(says),
        [DeviceErrorKind::Gone, DeviceErrorKind::Io, DeviceErrorKind::Gone]
    );
}

#[test]
fn file_empty_busy_or_missing_is_refused() {
    let trial = opened(1 << 20, Io::Threads);
    let error = |path: &Path| {
        FileBackend::open(path, Claim::Exclusive, None, 1, back().0).err().unwrap().to_string()
    };
    assert!(error(trial.file.path()).contains("another process has it open"));
    let empty = NamedTempFile::new().unwrap();
    assert!(error(empty.path()).contains("truncate --size"));
    assert!(error(Path::new("/nowhere/at/all")).starts_with("/nowhere/at/all: "));
}

#[test]
fn device_drop_completes_all_commands() {
    for io in ways() {
        let Trial { device, told, file } = opened(1 << 20, io);
        for id in 0..64 {
            let (start, data) = (Lbn::new(id * 32), vec![id as u8 + 1; 32 * 512]);
            device.submit(DeviceCommand { id, what: WRITE, start, data });
        }
        drop(device);
        let mut came: Vec<u64> = told.iter().map(|came| came.id).collect();
        came.sort_unstable();
        assert_eq!(came, (0..64).collect::<Vec<_>>(), "{io:?}");
        let kept = std::fs::read(file.path()).unwrap();
        let expected = (0..1 << 20).map(|at| (at / (32 * 512)) as u8 + 1);
        assert!(kept.into_iter().eq(expected), "{io:?}");
    }
}

/// The ring's thread with this file for a device, after it has slept a while for want of commands.
fn slept(file: File) -> Option<(Sender<DeviceCommand>, Ringer, Receiver<BackendCompletion>)> {
    let (file, bytes) = (Arc::new(file), 1 << 20);
    let (sector_bytes, physical_bytes, is_direct, is_device) = (512, 512, false, true);
    let opened = Arc::new(Opened {
        file,
        bytes,
        sector_bytes,
        physical_bytes,
        is_direct,
        is_device,
        others: Vec::new(),
        _backing: None,
    });
    let (back, told) = back();
    let started = ring::start(&opened, 4, &back).map_err(|error| uring::skip(&error));
    let (commands, ringer) = started.ok()?;
    std::thread::sleep(Duration::from_millis(100));
    Some((commands, ringer, told))
}

const KEPT: DeviceOp = DeviceOp::WriteZeroes { blocks: 8, keep: true };

#[test]
fn ring_stays_awake_after_instant_completions() {
    let file = tempfile::tempfile().unwrap();
    file.set_len(1 << 20).unwrap();
    let Some((commands, ringer, told)) = slept(file) else { return };
    for (id, what, data) in [(1, KEPT, Vec::new()), (2, DeviceOp::Read, vec![1; 512])] {
        commands.send(DeviceCommand { id, what, start: Lbn::new(0), data }).unwrap();
        ringer.sent();
        let came = told.recv_timeout(Duration::from_secs(60)).unwrap();
        assert_eq!((came.id, came.result.is_ok()), (id, what == DeviceOp::Read));
    }
}

#[test]
fn ring_begins_command_during_slow_first() {
    // A read of it waits.
    let (reader, writer) = io::pipe().unwrap();
    let file = File::from(std::os::fd::OwnedFd::from(reader));
    let Some((commands, ringer, told)) = slept(file) else { return };
    for (id, what, data) in [(1, DeviceOp::Read, vec![1; 512]), (2, KEPT, Vec::new())] {
        commands.send(DeviceCommand { id, what, start: Lbn::new(0), data }).unwrap();
        ringer.sent();
        std::thread::sleep(Duration::from_millis(100));
    }
    let id_of = |came: BackendCompletion| came.id;
    assert_eq!(told.recv_timeout(Duration::from_secs(60)).map(id_of), Ok(2));
    drop(writer);
    assert_eq!(told.recv_timeout(Duration::from_secs(60)).map(id_of), Ok(1));
}

/// Blocks of each part of the disk, one of which each command has for itself.
const PART: u64 = 48;

/// A command in its part: what, first block there, blocks, what is written.
type Asked = (DeviceOp, u64, u64, u8);

fn asked() -> impl Strategy<Value = Asked> {
    let whats = prop_oneof![
        3 => Just(DeviceOp::Read),
        3 => Just(WRITE),
        1 => Just(DeviceOp::Flush),
        1 => Just(DeviceOp::Trim { blocks: 0 }),
        1 => any::<bool>().prop_map(|keep| DeviceOp::WriteZeroes { blocks: 0, keep }),
    ];
    (whats, 0..PART, 1..PART, any::<u8>()).prop_map(|(what, start, blocks, byte)| {
        let blocks = blocks.min(PART - start);
        let what = match what {
            DeviceOp::Trim { .. } => DeviceOp::Trim { blocks },
            DeviceOp::WriteZeroes { keep, .. } => DeviceOp::WriteZeroes { blocks, keep },
            what => what,
        };
        (what, start, blocks, byte)
    })
}

/// Does the command on an array of bytes, and returns the data of a read.
fn plainly(disk: &mut [u8], (what, start, blocks, byte): Asked) -> Option<Vec<u8>> {
    let bytes = &mut disk[start as usize * 512..][..blocks as usize * 512];
    match what {
        DeviceOp::Read => return Some(bytes.to_vec()),
        DeviceOp::Write { .. } => bytes.fill(byte),
        DeviceOp::Trim { .. } | DeviceOp::WriteZeroes { .. } => bytes.fill(0),
        DeviceOp::Flush => {}
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn concurrent_commands_match_a_plain_array(
        rounds in prop::collection::vec(prop::collection::vec(asked(), 1..12), 1..12),
    ) {
        for io in ways() {
            let trial = opened(12 * PART * 512, io);
            let mut disk = vec![0; 12 * PART as usize * 512];
            for round in &rounds {
                let mut expected = BTreeMap::new();
                for (id, &(what, start, blocks, byte)) in round.iter().enumerate() {
                    let start = id as u64 * PART + start;
                    let data = match what {
                        DeviceOp::Read => vec![0xee; blocks as usize * 512],
                        DeviceOp::Write { .. } => vec![byte; blocks as usize * 512],
                        _ => Vec::new(),
                    };
                    trial.submit(id as u64, what, start, data);
                    expected.insert(id as u64, plainly(&mut disk, (what, start, blocks, byte)));
                }
                for _ in round {
                    let came = trial.come();
                    let expected = expected.remove(&came.id).expect("it comes back once");
                    let read = came.result.unwrap();
                    if let Some(expected) = expected {
                        prop_assert!(read == expected, "{}, {io:?}", came.id);
                    }
                }
            }
            prop_assert!(std::fs::read(trial.file.path()).unwrap() == disk, "{io:?}");
        }
    }
}

#[test]
fn file_cut_short_is_gone() {
    for io in ways() {
        let trial = opened(1 << 20, io);
        trial.file.as_file().set_len(1 << 19).unwrap();
        let blocks = 8;
        for what in [
            WRITE,
            DeviceOp::Flush,
            DeviceOp::Trim { blocks },
            DeviceOp::WriteZeroes { blocks, keep: true },
            DeviceOp::WriteZeroes { blocks, keep: false },
        ] {
            for start in [0, 2000] {
                let data = if what == WRITE { vec![7; 4096] } else { Vec::new() };
                let failed = trial.call(what, start, data).unwrap_err();
                assert_eq!(failed.kind, DeviceErrorKind::Gone, "{what:?} at {start}, {io:?}");
            }
        }
        let failed = trial.call(DeviceOp::Read, 2000, vec![0; 4096]).unwrap_err();
        assert_eq!(failed, cut_short());
        let metadata = trial.file.as_file().metadata().unwrap();
        assert_eq!(metadata.len(), 1 << 19, "{io:?}");
        assert!(std::fs::read(trial.file.path()).unwrap().iter().all(|&byte| byte == 0));
    }
}
