//! Servers killed, and the power of their disks cut, at random moments under load: no acknowledged and
//! flushed block is lost.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use freewheel_live::nbd::{Answer, Client, ClientLimits};
use freewheel_nbd::{Command, Span, Uri};
use freewheel_units::Prng;

use super::nbd::Running;
use super::run::run;
use super::serve::disk;

/// Bytes of a sector, which is on the media as it was or as it became.
const SECTOR: usize = 512;

/// Places that are written over and over, so that requests overlap.
const PLACES: u64 = 64;

/// Bytes between the beginnings of two places.
const APART: u64 = 6000 * SECTOR as u64;

/// Sectors of a place.
const SECTORS: u64 = 16;

const IN_FLIGHT: usize = 16;

/// Versions of a sector that it may hold.
#[derive(Clone, Copy, Default)]
struct Versions {
    /// This one or a later one.
    durable: u64,
    /// This one at most.
    submitted: u64,
}

/// A request that has not been answered.
struct InFlight {
    /// Version, first sector and how many, counted through all places; none of a flush.
    written: Option<(u64, u64, u64)>,
    fua: bool,
    /// Writes that were answered before a flush was sent.
    promised: Vec<(u64, u64, u64)>,
}

struct Load {
    prng: Prng,
    version: u64,
    sectors: Vec<Versions>,
    in_flight: BTreeMap<u64, InFlight>,
    /// Answered, and neither written with FUA nor flushed since.
    answered: Vec<(u64, u64, u64)>,
    tag: u64,
}

impl Load {
    fn new() -> Self {
        Self {
            prng: Prng::new(1, "kills"),
            version: 0,
            sectors: vec![Versions::default(); (PLACES * SECTORS) as usize],
            in_flight: BTreeMap::new(),
            answered: Vec::new(),
            tag: 0,
        }
    }

    /// Each sector is filled with its version.
    fn submit(&mut self, client: &Client<u64>) -> bool {
        self.tag += 1;
        let (command, mut data, asked) = match self.prng.below(12) {
            0 => {
                let promised = self.answered.clone();
                (Command::Flush, Vec::new(), InFlight { written: None, fua: false, promised })
            }
            _ => self.write(),
        };
        let taken = client.submit(command, &mut data, self.tag).is_ok();
        // Of one that was not taken anything may have been sent.
        self.in_flight.insert(self.tag, asked);
        taken
    }

    fn write(&mut self) -> (Command, Vec<u8>, InFlight) {
        self.version += 1;
        let place = self.prng.below(PLACES);
        let first = self.prng.below(SECTORS);
        let count = 1 + self.prng.below(SECTORS - first);
        let fua = self.prng.below(4) == 0;
        let numbers = place * SECTORS + first..place * SECTORS + first + count;
        for sector in &mut self.sectors[numbers.start as usize..numbers.end as usize] {
            sector.submitted = self.version;
        }
        let offset = place * APART + first * SECTOR as u64;
        let span = Span { offset, length: (count as usize * SECTOR) as u32 };
        let data = self.version.to_le_bytes().repeat(count as usize * SECTOR / 8);
        let written = Some((self.version, numbers.start, count));
        (Command::Write { span, fua }, data, InFlight { written, fua, promised: Vec::new() })
    }

    /// True if the answer was one: the server is there.
    fn answered(&mut self, answer: &Answer<u64>) -> bool {
        if answer.result.is_err() {
            return false;
        }
        let asked = self.in_flight.remove(&answer.tag).expect("answered once");
        match asked.written {
            Some(written) if asked.fua => self.is_durable(written),
            Some(written) => self.answered.push(written),
            None => {
                asked.promised.iter().for_each(|&written| self.is_durable(written));
                self.answered.retain(|written| !asked.promised.contains(written));
            }
        }
        true
    }

    fn is_durable(&mut self, (version, first, count): (u64, u64, u64)) {
        for sector in &mut self.sectors[first as usize..(first + count) as usize] {
            sector.durable = sector.durable.max(version);
        }
    }

    /// Keeps requests in flight for this time, then has the server killed during them.
    fn run(&mut self, uri: &Uri, lasts: Duration, kill: impl FnOnce()) {
        let (client, answers) = connect(uri);
        let end = Instant::now() + lasts;
        while Instant::now() < end {
            while self.in_flight.len() < IN_FLIGHT {
                assert!(self.submit(&client), "the server went by itself");
            }
            match answers.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(answer) => assert!(self.answered(&answer), "{:?}", answer.result),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => panic!("a client without answers"),
            }
        }
        kill();
        drop(client);
        // What was answered before the connection was lost counts.
        for answer in answers {
            self.answered(&answer);
        }
        self.in_flight.clear();
        self.answered.clear();
    }

    /// Every sector holds one of its allowed versions, and keeps it from now on.
    fn check(&mut self, uri: &Uri, kill: usize) {
        let (client, answers) = connect(uri);
        for place in 0..PLACES {
            let length = SECTORS as u32 * SECTOR as u32;
            client.submit(Command::read(place * APART, length), &mut Vec::new(), place).unwrap();
            let answer = answers.recv().unwrap();
            assert!(answer.result.is_ok(), "{:?}", answer.result);
            for (number, held) in answer.data.chunks(SECTOR).enumerate() {
                let version = u64::from_le_bytes(held[..8].try_into().unwrap());
                assert!(held.chunks(8).all(|word| word == version.to_le_bytes()), "a torn sector");
                let sector = &mut self.sectors[(place * SECTORS) as usize + number];
                let Versions { durable, submitted } = *sector;
                assert!(
                    (durable..=submitted).contains(&version),
                    "after kill {kill} sector {number} of place {place} holds version {version}; \
                     {durable} was promised and {submitted} the last that was sent"
                );
                *sector = Versions { durable: version, submitted: version };
            }
        }
        client.close().unwrap();
    }
}

fn connect(uri: &Uri) -> (Client<u64>, Receiver<Answer<u64>>) {
    let (tell, answers) = mpsc::channel();
    // A dropped client has no listener any more.
    let answered = move |answer| drop(tell.send(answer));
    (Client::connect(uri, ClientLimits::default(), answered).unwrap(), answers)
}

/// Number of kills: `make test-kills` asks for more.
fn kills() -> usize {
    let asked = std::env::var("FREEWHEEL_KILLS").ok();
    asked.map_or(4, |number| number.parse().expect("FREEWHEEL_KILLS: a number"))
}

/// Rewrites the places that clients write, again and again and beside their requests.
fn refresh(folder: &Path, socket: &Path) {
    let list = folder.join("places");
    let lines = (0..PLACES).map(|place| format!("{} {}\n", place * APART, 8 << 10));
    std::fs::write(&list, lines.collect::<String>()).unwrap();
    let control = format!("{}.control", socket.display());
    let args = ["refresh", "--detach", "--repeat", "--promote", "--block-size", "4KiB"];
    let of = ["--extents", list.to_str().unwrap(), "--control", &control];
    let ran = run(&[&args[..], &of].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn flushed_data_survive_server_kill() {
    let folder = tempfile::tempdir().unwrap();
    let (disk, socket) = (disk(folder.path()), folder.path().join("socket"));
    let uri = uri(&socket);
    let args =
        ["serve", &disk, "--drive", "atlas10k", "--socket", socket.to_str().unwrap(), "--scrub"];
    let mut load = Load::new();
    for kill in 0..kills() {
        let mut server = Running::start(&args);
        load.check(&uri, kill);
        refresh(folder.path(), &socket);
        let lasts = Duration::from_micros(load.prng.below(300_000));
        load.run(&uri, lasts, || {
            server.signal("-9");
            assert_eq!(server.end().1, None, "killed");
        });
    }
    let _server = Running::start(&args);
    load.check(&uri, kills());
    assert!(load.version > 100, "{} writes", load.version);
}

/// The page cache of a killed server stays, so only this finds one that does not pass flushes on.
#[test]
fn flushed_data_survive_power_cut() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (store, disk, socket) = (at("store"), folder.path().join("disk"), at("socket"));
    let (disk_uri, uri) = (uri(&disk).to_string(), uri(Path::new(&socket)));
    let emulate = ["emulate", "atlas10k", "--volatile-cache", "--store", &store, "--socket"];
    let emulate = [&emulate[..], &[disk.to_str().unwrap()]].concat();
    let serve = ["serve", &disk_uri, "--drive", "atlas10k", "--socket", &socket];
    let mut load = Load::new();
    let mut emulated = Running::start(&emulate);
    for kill in 0..kills() {
        let server = Running::start(&serve);
        load.check(&uri, kill);
        refresh(folder.path(), Path::new(&socket));
        let lasts = Duration::from_micros(load.prng.below(300_000));
        let is_killed = kill % 2 == 1;
        // A connection that ends when the power is off.
        let mut witness = UnixStream::connect(&disk).unwrap();
        load.run(&uri, lasts, || {
            emulated.signal(if is_killed { "-9" } else { "-USR1" });
            let _ = witness.read_to_end(&mut Vec::new());
        });
        drop(server);
        if is_killed {
            assert_eq!(emulated.end().1, None, "killed");
            emulated = Running::start(&emulate);
        }
    }
    let _server = Running::start(&serve);
    load.check(&uri, kills());
    assert!(load.version > 100, "{} writes", load.version);
}

fn uri(socket: &Path) -> Uri {
    format!("nbd+unix:///?socket={}", socket.display()).parse().unwrap()
}
