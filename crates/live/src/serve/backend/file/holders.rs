//! Users of a block device, as far as the system's files tell.
//!
//! Goals: words for a person who wants to release it.
//! Non-goals: keeping anyone off it: only the system does that, for who opens it exclusively.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{major, minor};

/// The directory of the device with this number.
pub(super) fn sysfs_of(number: u64) -> PathBuf {
    format!("/sys/dev/block/{}:{}", major(number), minor(number)).into()
}

/// Users of the device with this number, or of one of its partitions, or of the disk that it is a partition
/// of.
pub(super) fn holders(number: u64) -> Vec<String> {
    let family = family(&sysfs_of(number));
    let numbers: Vec<String> = family.iter().filter_map(|sysfs| text(&sysfs.join("dev"))).collect();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut found = mounted(&mounts, |number, source| {
        is_ours(number, &numbers)
            || number_of(source.as_ref()).is_some_and(|number| is_ours(&number, &numbers))
    });
    let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
    let swaps = swaps.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    let swaps = swaps
        .filter(|path| number_of(path.as_ref()).is_some_and(|number| is_ours(&number, &numbers)));
    found.extend(swaps.map(|path| format!("swap on {path}")));
    let above = family.iter().filter_map(|sysfs| fs::read_dir(sysfs.join("holders")).ok());
    let above = above.flatten().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    found.extend(above.map(|name| format!("part of {name}")));
    found.sort();
    found.dedup();
    found
}

fn is_ours(number: &str, numbers: &[String]) -> bool {
    numbers.iter().any(|ours| ours == number)
}

/// The directories of a device, of its partitions, and of its disk if it is a partition.
fn family(sysfs: &Path) -> Vec<PathBuf> {
    let Ok(own) = sysfs.canonicalize() else { return Vec::new() };
    let mut family = vec![own.clone()];
    if is_partition(&own) {
        family.extend(own.parent().map(Path::to_owned));
    }
    let children = fs::read_dir(&own).into_iter().flatten();
    let children = children.filter_map(|entry| Some(entry.ok()?.path()));
    family.extend(children.filter(|child| is_partition(child)));
    family
}

fn is_partition(sysfs: &Path) -> bool {
    sysfs.join("partition").exists()
}

fn text(path: &Path) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

/// The number of the block device at this path, as the system writes it.
fn number_of(path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    // A folder or a file has the number 0.
    let number = metadata.rdev();
    (number != 0).then(|| format!("{}:{}", major(number), minor(number)))
}

/// The mounts of a list as in /proc/self/mountinfo (proc(5)) whose number or source is one of ours.
fn mounted(mounts: &str, is_ours: impl Fn(&str, &str) -> bool) -> Vec<String> {
    mounts
        .lines()
        .filter_map(|line| {
            let (before, after) = line.split_once(" - ")?;
            let (mut fields, mut of_source) = (before.split(' '), after.split(' '));
            let (number, place) = (fields.nth(2)?, fields.nth(1)?);
            let (kind, source) = (of_source.next()?, of_source.next()?);
            is_ours(number, source).then(|| format!("mounted at {} ({kind})", unescaped(place)))
        })
        .collect()
}

/// A path in which spaces, tabs, line ends and backslashes stand as octal numbers.
fn unescaped(path: &str) -> String {
    let pairs = [("\\040", " "), ("\\011", "\\t"), ("\\012", "\\n"), ("\\134", "\\")];
    pairs.into_iter().fold(path.to_owned(), |path, (from, to)| path.replace(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_found_by_number_or_source() {
        let mounts = "\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
40 22 0:35 /home /home rw - btrfs /dev/sdb rw
41 22 8:2 / /mnt/my\\040disk rw master:2 propagate_from:1 - xfs /dev/sda2 rw
damaged";
        let of = |number: &str, source: &str| {
            mounted(mounts, |its, from| its == number || from == source)
        };
        assert_eq!(of("8:1", ""), ["mounted at / (ext4)"]);
        assert_eq!(of("8:2", ""), ["mounted at /mnt/my disk (xfs)"]);
        assert_eq!(of("8:16", "/dev/sdb"), ["mounted at /home (btrfs)"]);
        assert!(of("8:3", "/dev/sdc").is_empty());
    }
}
