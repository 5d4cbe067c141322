//! Where traces are, from any folder in which the program runs: those of the repository, and public ones that
//! may not be redistributed.

use std::path::{Path, PathBuf};

/// Folder of the recorded traces within the repository.
const RECORDED: &[&str] = &["data/recorded"];

/// Folders of public traces within the repository, where Git leaves them alone, and beside it.
const PUBLIC: &[&str] = &["data/traces", "../shared/data/traces"];

/// Folder of logs of web servers within the repository.
const WEB_LOGS: &[&str] = &["data/weblogs"];

/// A recorded trace. Err says where it was looked for, and the way out.
pub(super) fn recording(name: &str, folder: Option<&Path>) -> Result<PathBuf, String> {
    find(&format!("{name}.csv.zst"), RECORDED, folder)
}

/// The file of a public trace. Err says where it was looked for, and the way out.
pub(super) fn public_trace(file: &str, folder: Option<&Path>) -> Result<PathBuf, String> {
    find(file, PUBLIC, folder)
}

/// A log of a web server. Err says where it was looked for, and the way out.
pub(super) fn web_log(file: &str, folder: Option<&Path>) -> Result<PathBuf, String> {
    find(file, WEB_LOGS, folder)
}

fn find(file: &str, within: &[&str], folder: Option<&Path>) -> Result<PathBuf, String> {
    let folders = folder.map_or_else(|| folders(within), |folder| vec![folder.into()]);
    let found = folders.iter().map(|folder| folder.join(file)).find(|path| path.exists());
    found.ok_or_else(|| {
        let places: Vec<String> =
            folders.iter().map(|folder| folder.display().to_string()).collect();
        format!(
            "{file} is not in {}: run it within the repository, or name the folder with `--recordings`",
            places.join(", ")
        )
    })
}

/// The repository's folder: that of the program first, with the folders above it, then where the program
/// was built, then the current folder with those above it.
fn folders(within: &[&str]) -> Vec<PathBuf> {
    let program = std::env::current_exe().unwrap_or_default();
    let current = std::env::current_dir().unwrap_or_default();
    let starts = [program.as_path(), Path::new(env!("CARGO_MANIFEST_DIR")), &current];
    let above = starts.iter().flat_map(|start| start.ancestors());
    let mut folders: Vec<PathBuf> = Vec::new();
    for folder in above.flat_map(|folder| within.iter().map(|name| folder.join(name))) {
        if folder.is_dir() && !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    if folders.is_empty() {
        folders.extend(within.iter().map(PathBuf::from));
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recording_found_from_crate_folder() {
        let found = recording("pgbench-ext4", None).unwrap();
        assert!(found.ends_with("data/recorded/pgbench-ext4.csv.zst"), "{}", found.display());
    }

    #[test]
    fn recording_missing_names_place_and_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let error = recording("pgbench-ext4", Some(folder.path())).unwrap_err();
        let public = public_trace("pgbench-ext4.csv.zst", Some(folder.path())).unwrap_err();
        assert_eq!(public, error);
        assert!(error.contains(&folder.path().display().to_string()), "{error}");
        assert!(error.contains("--recordings"), "{error}");
    }
}
