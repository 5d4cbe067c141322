//! Public traces that may not be redistributed: where each is to be had, and what is generated without it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use freewheel_sim::config::ConfigError;
use freewheel_units::{Bytes, SimDuration};

use super::Context;
use super::generated::{Bursts, Device, Form, GeneratedTrace};

#[derive(Debug)]
pub(super) struct PublicTrace {
    /// Name of the file that is looked for.
    pub file: &'static str,
    /// Who gives it out, with the page.
    page: &'static str,
    /// SHA-256 of the unpacked file.
    sha256: &'static str,
    /// The form of the trace that is generated where the file is missing.
    pub form: Form,
}

/// 14 disks, of which the busiest has 2.8 times the mean number of requests.
pub(super) static DISKSIM_ASCII: PublicTrace = PublicTrace {
    file: "disksim-ascii.trace.zst",
    page: "DiskSim 4.0, https://www.pdl.cmu.edu/DiskSim/",
    sha256: "b545087a24d95cb512c334c67f2bf16bb0439c58d7cabb12ac590d3a805f403c",
    form: Form {
        requests: 100_000,
        span: SimDuration::from_ms(1_532_936),
        bursts: Bursts { share: 0.0, gap: SimDuration::ZERO },
        devices: &[
            disk(0, 8062, 1_215_873),
            disk(3, 75, 481_635),
            disk(4, 1, 361_136),
            disk(5, 377, 844_499),
            disk(6, 116, 2126),
            disk(7, 200, 2313),
            disk(10, 14_625, 2_339_159),
            disk(11, 14_052, 2_371_179),
            disk(14, 19_968, 2_376_020),
            disk(16, 7271, 1_216_310),
            disk(17, 3323, 884_457),
            disk(18, 17_609, 2_372_806),
            disk(20, 11_109, 890_668),
            disk(30, 3212, 861_578),
        ],
        read_share: 0.796,
        size: Bytes::new(5120),
        response: None,
    },
};

/// A workstation's two disks in a week of 1992.
pub(super) static HPLAJW: PublicTrace = PublicTrace {
    file: "hplajw-1week-1992.srt.zst",
    page: "HP Laboratories' traces of 1992, described at http://www.cs.umd.edu/class/spring2001/cmsc838b/Apps/presentations/Yoo_Kim/",
    sha256: "949eecedac5682be9a349f8028fd25a2a458ae99944f7a8838038044ed6b96f8",
    form: Form {
        requests: 44_519,
        span: SimDuration::from_secs(603_065),
        bursts: Bursts { share: 0.8, gap: SimDuration::from_ms(30) },
        // The footprints: 4,061 and 86 pieces of 8 KiB.
        devices: &[disk(0, 42_252, 64_976), disk(1, 2267, 1376)],
        read_share: 0.293,
        size: Bytes::from_kib(6),
        response: Some(SimDuration::from_ms(32)),
    },
};

/// A virtual machine's disk in two hours.
pub(super) static VSCSI: PublicTrace = PublicTrace {
    file: "cloudPhysicsIO.vscsi.zst",
    page: "libCacheSim, https://github.com/1a1a11a/libCacheSim, folder data",
    sha256: "3e67d66a07e9292bb47f6c765eb24ab3ea3f1f7de7d64a1b9e8c28b38b7439b9",
    form: Form {
        requests: 113_872,
        span: SimDuration::from_secs(7200),
        bursts: Bursts { share: 0.75, gap: SimDuration::from_us(600) },
        // The footprint: 269,210 pieces of 4 KiB.
        devices: &[disk(0, 1, 2_153_680)],
        read_share: 0.4125,
        size: Bytes::from_kib(36),
        response: None,
    },
};

const fn disk(number: u32, requests: u64, blocks: u64) -> Device {
    Device { number, requests, blocks }
}

/// A public trace as a claim gets it: its file, or a generated one in its place.
#[derive(Debug, Clone)]
pub(super) struct PublicFile {
    path: PathBuf,
    generated: Option<Arc<GeneratedTrace>>,
    /// What it is and where anyone gets it, for `stands_in` of rows.
    pub words: String,
}

impl PublicTrace {
    /// The trace of this name, or one of its form with the run's seed where it is missing.
    pub fn open(&self, context: &Context<'_>) -> Result<PublicFile, ConfigError> {
        let Self { file, page, sha256, .. } = self;
        let page = format!("{page}; SHA-256 of the unpacked file {sha256}");
        if let Ok(path) = context.public_trace(file) {
            return Ok(PublicFile { path, generated: None, words: format!("{file} ({page})") });
        }
        let seed = context.seed;
        let generated = Arc::new(self.form.write(seed)?);
        let words = format!(
            "a generated trace of the form of {file}, seed {seed}, because that file is not here ({page})"
        );
        Ok(PublicFile { path: generated.path().into(), generated: Some(generated), words })
    }
}

impl PublicFile {
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn is_generated(&self) -> bool {
        self.generated.is_some()
    }
}
