//! An emulated drive with a volatile cache whose power is cut while it is served.

use std::io::{ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use freewheel_live::emulate::{Emulation, Options, PowerCut, PowerSwitch};
use freewheel_live::nbd::{Access, Address, Limits, Server, Stop};
use freewheel_model::electronics::spec::WriteCache;
use freewheel_nbd::{Command, Span};
use freewheel_sim::black_box::{BadBlocks, Behaviour};
use freewheel_sim::library;
use freewheel_units::{Lbn, SimDuration};

use crate::common::Client;

const RECOVERY: SimDuration = SimDuration::from_secs(60);
const BYTES: u32 = 8192;

/// Block `100` cannot be read, and `9000` not until it is written.
fn options(seed: u64, store: &Path) -> Options {
    let behaviour = Behaviour { write_cache: Some(WriteCache::On), ..Behaviour::default() };
    let bad = BadBlocks::new([100, 9000].map(Lbn::new), RECOVERY);
    Options { behaviour, bad, seed, store: Some(store.into()), volatile_cache: true }
}

fn start(name: &str, options: Options) -> Result<Emulation, String> {
    let spec = library::spec(name).unwrap();
    Emulation::start(&spec, name, options).map_err(|error| error.to_string())
}

/// A drive that is served, with a switch for its power.
struct Powered {
    folder: tempfile::TempDir,
    switch: Arc<PowerSwitch>,
    stop: Arc<Stop>,
    cuts: Receiver<PowerCut>,
    drive: Arc<Emulation>,
    thread: JoinHandle<()>,
}

impl Powered {
    fn new(seed: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = options(seed, &folder.path().join("store"));
        let drive = Arc::new(start("atlas10k", options).unwrap());
        let address = Address::Unix(folder.path().join("socket"));
        let (access, services) = (Access::default(), vec![Arc::clone(&drive) as _]);
        let server = Server::bind(&address, access, services, Limits::default(), |_| {}).unwrap();
        let (switch, stop) =
            (Arc::new(PowerSwitch::new().unwrap()), Arc::new(Stop::new().unwrap()));
        let (tell, cuts) = mpsc::channel();
        let thread = {
            let (switch, stop, drives) =
                (Arc::clone(&switch), Arc::clone(&stop), [Arc::clone(&drive)]);
            thread::spawn(move || {
                let told = |mut of_drives: Vec<std::io::Result<PowerCut>>| {
                    tell.send(of_drives.remove(0).unwrap()).unwrap();
                };
                switch.serve(server, &stop, &drives, told).unwrap();
            })
        };
        Self { folder, switch, stop, cuts, drive, thread }
    }

    fn client(&self) -> Client {
        Client::connect(&self.folder.path().join("socket"), "")
    }

    /// Stops it; what its store has.
    fn stop(self) -> std::fs::File {
        self.stop.stop();
        self.thread.join().unwrap();
        self.drive.finish().unwrap();
        std::fs::File::open(self.folder.path().join("store")).unwrap()
    }
}

/// Bytes that come before the connection ends.
fn rest(client: &mut Client) -> usize {
    let mut bytes = Vec::new();
    if let Err(error) = client.stream.read_to_end(&mut bytes) {
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
    bytes.len()
}

fn at(number: u64) -> u64 {
    (number + 1) << 20
}

#[test]
fn power_cut_keeps_flushed_and_forced() {
    let (mut lost, mut kept) = (0, 0);
    for seed in 0..8 {
        let powered = Powered::new(seed);
        let (mut client, idle) = (powered.client(), powered.client());
        (0..20).for_each(|number| client.write(at(number), &[1; BYTES as usize], false).unwrap());
        client.write(9000 * 512, &[1; 512], false).unwrap();
        client.flush().unwrap();
        client.write(at(20), &[1; BYTES as usize], true).unwrap();
        (0..15).for_each(|number| client.write(at(number), &[2; BYTES as usize], false).unwrap());
        let span = Span { offset: at(15), length: BYTES };
        let trim = Command::Trim { span, fua: false };
        assert!(client.call(trim, &[]).result.is_ok());
        // The drive has this one for a minute.
        client.ask(Command::read(100 * 512, 512), &[]);
        let begun = Instant::now();
        powered.switch.cut();
        assert_eq!([client, idle].iter_mut().map(rest).collect::<Vec<_>>(), [0, 0]);
        let cut = powered.cuts.recv().unwrap();
        assert!(cut.kept <= cut.cached && cut.cached.get() > 0, "{cut:?}");

        let mut client = powered.client();
        assert_eq!(client.read(9000 * 512, 512).unwrap(), [1; 512], "it stays good");
        for number in 0..21 {
            for sector in client.read(at(number), BYTES).unwrap().chunks(512) {
                assert!(sector.iter().all(|byte| *byte == sector[0]), "a torn sector");
                let allowed = match number {
                    0..15 => [1, 2],
                    15 => [0, 1],
                    _ => [1, 1],
                };
                assert!(allowed.contains(&sector[0]), "{} at {number}, seed {seed}", sector[0]);
                if number < 15 {
                    *(if sector[0] == 2 { &mut kept } else { &mut lost }) += 1;
                }
            }
        }
        assert!(begun.elapsed() < std::time::Duration::from_secs(30), "{:?}", begun.elapsed());
        powered.stop();
    }
    println!("{kept} sectors of unflushed writes kept, {lost} lost");
    assert!(lost > 100 && kept > 100);
}

#[test]
fn volatile_cache_read_and_flushed_on_stop() {
    use std::os::unix::fs::FileExt;

    let powered = Powered::new(1);
    let mut client = powered.client();
    let no_hole = true;
    for number in 0..40 {
        client.write(at(number), &[3; BYTES as usize], false).unwrap();
        let span = Span { offset: at(number) + 512, length: 1024 };
        let zeroes = Command::WriteZeroes { span, fua: false, no_hole, fast: false };
        assert!(client.call(zeroes, &[]).result.is_ok());
    }
    let mut expected = [3; BYTES as usize];
    expected[512..1536].fill(0);
    (0..40).for_each(|number| assert_eq!(client.read(at(number), BYTES).unwrap(), expected));
    let store = powered.stop();
    for number in 0..40 {
        let mut data = [9; BYTES as usize];
        store.read_exact_at(&mut data, at(number)).unwrap();
        assert_eq!(data, expected);
    }
}

#[test]
fn power_cut_refused_without_volatile_cache() {
    let store = |write_cache| {
        let behaviour = Behaviour { write_cache, ..Behaviour::default() };
        Options { behaviour, volatile_cache: true, ..Options::default() }
    };
    for (name, cache) in [("atlas10k", Some(WriteCache::Off)), ("tr96", None)] {
        let error = start(name, store(cache)).err().unwrap();
        assert!(error.contains("--write-cache on") && error.starts_with(name), "{error}");
    }
    assert!(start("atlas10k", store(None)).is_ok());
}
