//! Several disks: how finely files are cut, which piece goes to which disk, and which piece moves later.
//!
//! # The problem
//! An array is fast only while all its disks work. Three choices decide about that.
//!
//! 1. **How fine?** A request that is split over more disks transfers sooner. But every disk has to seek and
//!    to wait for rotation, so the array serves fewer requests. [`partition`] chooses the stripe unit and the
//!    width of each file. [`Striping`](freewheel_model::striping::Striping) has one unit for a whole volume.
//! 2. **Where?** Some files are hotter than others. [`allocation`] puts each extent on the coolest disk that
//!    has no other extent of the file.
//! 3. **And later?** Heat changes. [`heat`] follows it, and [`cooling`] moves extents away from the hottest
//!    disk while clients read and write them.
//!
//! [`rebalance`] does the same for disks that hold whole files, before anything moves: it prices each move.
//! [`plan`] has what else a plan weighs. [`placement`] is the map that allocation fills and cooling changes,
//! [`space`] the free space of a disk. [`config`] says files and their clients in an experiment, and [`files`]
//! makes requests of them, with those of moves between. Nothing here knows time: `sim` drives it.
//! A *disk* is one arm with a queue. An *extent* is everything of a file on one disk. The model and its terms
//! are those of Scheuermann, Weikum and Zabback, Data Partitioning and Load Balancing in Parallel Disk
//! Systems, technical report A/02/96 (tr96).
//!
//! # How fine: an example
//! 32 disks of 4400 rpm, half full, and requests of 260 KB. A request that is alone is served soonest by
//! all disks. At 140 requests a second 32 disks cannot work that way, and 3 disks a request are best.
//!
//! ```
//! use freewheel_array::partition::*;
//! use freewheel_model::drive::Drive;
//! use freewheel_units::Bytes;
//!
//! let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../drives/tr96.toml");
//! let drive = toml::from_str(&std::fs::read_to_string(file)?)?;
//! let usage = DiskUse { filled_share: 0.5, read_share: 0.7, block: Bytes::new(1024) };
//! let array = ArrayModel { disk: DiskModel::of(&Drive::build(&drive)?, &usage), disks: 32 };
//! let ms = |seconds: f64| (seconds * 1000.0).round();
//!
//! // Alone, 32 disks serve the request in less than a quarter of the time of one.
//! let alone = |disks| ms(array.disk.service_s(260.0, disks, ServiceEstimate::JointMaximum));
//! assert_eq!([alone(1), alone(3), alone(32)], [125.0, 56.0, 28.0]);
//!
//! // Under load the queues decide.
//! let load = Load { rate: 140.0, request: 260.0 };
//! let loaded = |disks| array.response_s(&load, disks, ForkJoin::SharedWaits).map(ms);
//! assert_eq!([loaded(1), loaded(3), loaded(8)], [Some(199.0), Some(164.0), None]);
//!
//! // A file of 500 KB that is read as a whole gets runs of 87 KB, so 6 disks.
//! let rules = Rules { fork_join: ForkJoin::SharedWaits, ..Rules::default() };
//! let limit = LoadLimit::of(&array, &load, &rules);
//! let file = FileProfile { blocks: 500, request: 500.0, starts: Starts::AtRuns };
//! let parallelism = effective_parallelism(&array, 500.0, limit.as_ref(), &rules);
//! assert_eq!(stripes(&file, parallelism, 32), Stripes { unit: 87, width: 6 });
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where, and later: an example
//! Two disks and three files of one extent. File 2 turns out to be as hot as file 0, and both are on disk 0.
//!
//! ```
//! use freewheel_array::allocation::*;
//! use freewheel_array::cooling::*;
//! use freewheel_array::heat::*;
//! use freewheel_array::placement::*;
//! use freewheel_units::{Blocks, SimDuration, SimTime};
//!
//! let mut placement = Placement::new(2, Blocks::new(1000));
//! let new = |number, heat| NewExtent {
//!     id: ExtentId(number), file: FileId(number), blocks: Blocks::new(100), heat,
//! };
//! // The expected heats 4, 5 and 0.5: the coolest disk is 0, then 1, then 0 again.
//! let mut expected = [0.0, 0.0];
//! let mut allocator = Allocator::new(DiskOrder::Coolest, Passes::ByStatus, NewHeat::AtOnce);
//! for extent in [new(0, 4.0), new(1, 5.0), new(2, 0.5)] {
//!     allocator.place(&mut placement, &mut expected, &extent);
//! }
//! assert_eq!(placement.extent(ExtentId(2)).place.disk, 0);
//!
//! // The real accesses: 10 blocks each, every second for extents 0 and 2, every 10 s for extent 1.
//! let spec = HeatSpec { accesses: 5, accesses_min: 3, history: History::Accesses, extents_max: 9 };
//! let mut heats = DiskHeats::new(HeatTable::new(spec), 2);
//! for second in 0..50 {
//!     let now = SimTime::ZERO + SimDuration::from_secs(second);
//!     for extent in [0, 1, 2] {
//!         if extent != 1 || second % 10 == 0 {
//!             heats.record(&placement, ExtentId(extent), now, 10.0);
//!         }
//!     }
//! }
//! assert_eq!(heats.of_disks(), [25.0, 1.25]);
//!
//! // One extent moves; a second move would only turn the imbalance round.
//! let mut daemon = CoolingDaemon::new(CoolingSpec {
//!     threshold: 0.05, queue_veto: true, unit: CoolingUnit::Extents, candidates_max: 10,
//!     sources_max: 1, waits_factor: 1.5,
//! });
//! let mut mover = Mover::new(MoverSpec { piece: Blocks::new(64), rate: None });
//! let view = CoolingView {
//!     placement: &placement, heats: &heats, queues: &[0, 0], present: &[], taken: &[],
//! };
//! let wanted = daemon.step(&view, &Worth::TargetStaysCooler).unwrap();
//! assert_eq!((wanted.extent, wanted.to), (ExtentId(0), 1));
//! mover.start(&mut placement, wanted.extent, wanted.to)?;
//! while let MoverState::Do(_action) = mover.poll(SimTime::ZERO) {
//!     // Here the engine reads, writes, or makes the record durable.
//!     if let Progress::Relocated(moved) = mover.done(&mut placement) {
//!         heats.moved(moved.extent, moved.from.disk, moved.to.disk);
//!     }
//! }
//! assert_eq!(heats.of_disks(), [12.5, 13.75]);
//! let view = CoolingView {
//!     placement: &placement, heats: &heats, queues: &[0, 0], present: &[], taken: &[],
//! };
//! assert_eq!(daemon.step(&view, &Worth::TargetStaysCooler), Err(Refusal::Balanced));
//! # Ok::<(), StartError>(())
//! ```
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod allocation;
pub mod config;
pub mod cooling;
pub mod files;
pub mod heat;
pub mod partition;
pub mod placement;
pub mod plan;
pub mod rebalance;
pub mod space;
