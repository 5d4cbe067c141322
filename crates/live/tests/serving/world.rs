//! A server whose device is another server's export.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use freewheel_freeblock::Rule;
use freewheel_freeblock::tasks::{Extent, TaskKind};
use freewheel_host::{PredictionSpec, PredictiveScheduler};
use freewheel_live::nbd::{Limits, Memory, Responder, Service};
use freewheel_live::serve::backend::{Backend, NbdBackend};
use freewheel_live::serve::{BackendChannel, Serving, Setup, TaskOrder};
use freewheel_model::drive::Drive;
use freewheel_model::sched::PolicySpec;
use freewheel_nbd::{Command, Errno, Export, Span};
use freewheel_sim::library;
use freewheel_units::SimDuration;

use crate::common::Running;

pub const NAME: &str = "atlas10k";

/// A disk in memory that remembers its requests.
#[derive(Clone)]
pub struct Beneath {
    memory: Arc<Memory>,
    pub export: Export,
    asked: Arc<Mutex<Vec<Command>>>,
    /// Offsets of sectors that cannot be read.
    pub bad: Vec<u64>,
    /// Offset of a sector of which no read is answered.
    pub silent: Option<u64>,
    unanswered: Arc<Mutex<Vec<Responder>>>,
    /// True if the next flush fails, as a system reports a lost write: once.
    flush_fails: Arc<AtomicBool>,
}

impl Beneath {
    /// As large as the drive.
    pub fn new() -> Self {
        let memory = Arc::new(Memory::new("beneath", drive().blocks().bytes().get()));
        let export = memory.export();
        let (asked, unanswered, flush_fails) = (Arc::default(), Arc::default(), Arc::default());
        let (bad, silent) = (Vec::new(), None);
        Self { memory, export, asked, bad, silent, unanswered, flush_fails }
    }

    /// Makes the next flush fail, and no other.
    pub fn fail_a_flush(&self) {
        self.flush_fails.store(true, Ordering::Relaxed);
    }

    /// Stops waiting for the commands that it has not answered.
    pub fn forget(&self) {
        self.unanswered.lock().unwrap().clear();
    }

    /// The spans that it was asked to read.
    pub fn reads(&self) -> Vec<Span> {
        let asked = self.asked.lock().unwrap();
        asked
            .iter()
            .filter(|asked| matches!(asked, Command::Read { .. }))
            .map(Command::span)
            .collect()
    }

    /// The commands that it was asked, except reads.
    pub fn changes(&self) -> Vec<Command> {
        let asked = self.asked.lock().unwrap();
        asked.iter().copied().filter(|asked| !matches!(asked, Command::Read { .. })).collect()
    }
}

impl Service for Beneath {
    fn export(&self) -> Export {
        self.export.clone()
    }

    fn submit(&self, command: Command, data: &mut Vec<u8>, responder: Responder) {
        self.asked.lock().unwrap().push(command);
        let span = command.span();
        let covers = |bad: &u64| (span.offset..span.end()).contains(bad);
        if matches!(command, Command::Read { .. }) && self.silent.iter().any(covers) {
            return self.unanswered.lock().unwrap().push(responder);
        }
        if matches!(command, Command::Read { .. }) && self.bad.iter().any(covers) {
            return responder.error(Errno::Io, "a bad sector");
        }
        if command == Command::Flush && self.flush_fails.swap(false, Ordering::Relaxed) {
            return responder.error(Errno::Io, "a write was lost");
        }
        self.memory.submit(command, data, responder);
    }
}

/// A small one, of 100 MB.
pub fn drive() -> Drive {
    let mut spec = library::spec(NAME).unwrap();
    spec.electronics = Default::default();
    (spec.surfaces, spec.cylinders) = (2, 300);
    spec.zones.truncate(1);
    (spec.zones[0].last_cylinder, spec.zones[0].spares) = (299, 0);
    spec.zones[0].slips.clear();
    library::build(&spec, NAME).unwrap()
}

/// The whole of it.
pub struct World {
    pub beneath: Running,
    pub serving: Arc<Serving>,
    pub front: Running,
    pub notices: Arc<Mutex<Vec<String>>>,
}

impl World {
    /// With a scrub over and over.
    pub fn over(beneath: Beneath) -> Self {
        Self::over_for(beneath, None)
    }

    /// Server in front of `beneath`; a command that has not come back after `longest` never will.
    pub fn over_for(beneath: Beneath, longest: Option<Duration>) -> Self {
        let beneath = Running::new(vec![Arc::new(beneath)], Limits::default());
        let way = BackendChannel::new();
        let device = NbdBackend::connect(&beneath.uri(), longest, way.back(), way.gone()).unwrap();
        let Front { serving, front, notices } = Front::of(Arc::new(device), way);
        Self { beneath, serving, front, notices }
    }
}

/// A server of a device, with a scrub over and over.
pub struct Front {
    pub serving: Arc<Serving>,
    pub front: Running,
    pub notices: Arc<Mutex<Vec<String>>>,
}

impl Front {
    pub fn of(device: Arc<dyn Backend>, way: BackendChannel) -> Self {
        let drive = Arc::new(drive());
        let spec = PredictionSpec::default();
        let scheduler =
            PredictiveScheduler::new(&drive, SimDuration::ZERO, PolicySpec::Sptf, spec).unwrap();
        let whole = Extent::new(0, drive.blocks().get());
        let notices = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&notices);
        let setup = Setup {
            drive,
            name: NAME.into(),
            scheduler,
            rule: Rule::Paths,
            task: Some(TaskOrder {
                repeat: true,
                ..TaskOrder::served(TaskKind::Scrub, whole, 128)
            }),
            notice: Box::new(move |text| heard.lock().unwrap().push(text.to_owned())),
            ended: Box::new(|| {}),
        };
        let serving = Arc::new(Serving::start(setup, device, way).unwrap());
        let service: Arc<dyn Service> = Arc::clone(&serving) as Arc<dyn Service>;
        let front = Running::new(vec![service], Limits::default());
        Self { serving, front, notices }
    }
}
