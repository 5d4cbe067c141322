//! A web server's log as a snapshot: its files, on disks that are empty.

use std::path::Path;

use freewheel_sim::config::ConfigError;
use freewheel_sim::files::LoggedUse;
use freewheel_units::{BLOCK_BYTES, Blocks, Bytes};

use super::error::{PlanError, wrong};
use super::snapshot::{DiskEntry, FileEntry, Snapshot};

/// Reads a log. Files have no disk yet; a request counts with the bytes that it was answered with.
pub(super) fn of_web_log(
    path: &Path,
    drive: &str,
    disks: u32,
) -> Result<(Snapshot, LoggedUse), PlanError> {
    let log = LoggedUse::read(path, Blocks::new(1)).map_err(ConfigError::from)?;
    let last = log.logged.requests.last();
    let span_s = last.map_or(0.0, |last| last.arrival.ns() as f64 / 1e9);
    if span_s <= 0.0 {
        return wrong(format!(
            "{}: its requests are all of one second, which tells no rate",
            path.display()
        ));
    }
    let snapshot = Snapshot {
        disks: (0..disks)
            .map(|number| DiskEntry {
                name: format!("disk {}", number + 1),
                drive: drive.to_owned(),
                size: None,
                path: None,
            })
            .collect(),
        files: log
            .files
            .iter()
            .map(|file| FileEntry {
                name: file.name.clone(),
                size: file.bytes,
                rate: file.requests as f64 / span_s,
                request: Some(Bytes::new(mean(file.answered, file.requests).max(BLOCK_BYTES))),
                reads: 1.0,
                disk: None,
            })
            .collect(),
        files_csv: None,
    };
    Ok((snapshot, log))
}

fn mean(sum: u128, count: u64) -> u64 {
    u64::try_from(sum / u128::from(count.max(1))).expect("each summand has 64 bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn web_files_have_rate_and_size() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("access.log");
        let line = |second: u32, path: &str, bytes: u32| {
            format!(
                "a - - [01/Aug/1995:00:00:0{second} -0400] \"GET {path} HTTP/1.0\" 200 {bytes}\n"
            )
        };
        let not_there = line(3, "/c", 300).replace(" 200 ", " 404 ");
        let text = [line(0, "/a", 4000), line(2, "/b", 700), not_there, line(4, "/a", 2000)];
        let text = text.concat();
        std::fs::write(&file, text).unwrap();
        let (snapshot, log) = of_web_log(&file, "tr96", 3).unwrap();
        assert_eq!((log.left_out.other_statuses, log.left_out.other_methods), (1, 0));
        assert_eq!(snapshot.disks.len(), 3);
        let [a, b] = &snapshot.files[..] else { panic!("{:?}", snapshot.files) };
        assert_eq!((&*a.name, a.size.get(), a.request.unwrap().get()), ("/a", 4000, 3000));
        assert_eq!(mean(3 * u128::from(u64::MAX), 3), u64::MAX);
        assert!((a.rate / b.rate - 2.0).abs() < 1e-9 && b.disk.is_none());
    }
}
