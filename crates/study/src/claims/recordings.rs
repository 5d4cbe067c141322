//! Where the recorded traces are, from whatever folder the program runs.

use std::path::{Path, PathBuf};

/// Folder of the recorded traces within the repository.
const WITHIN: &str = "data/recorded";

/// A recorded trace. Err says where it was looked for, and the way out.
pub(super) fn recording(name: &str, folder: Option<&Path>) -> Result<PathBuf, String> {
    let file = format!("{name}.csv.zst");
    let folders = folder.map_or_else(folders, |folder| vec![folder.into()]);
    let found = folders.iter().map(|folder| folder.join(&file)).find(|path| path.exists());
    found.ok_or_else(|| {
        let places: Vec<String> =
            folders.iter().map(|folder| folder.display().to_string()).collect();
        format!(
            "{file} is not in {}: run it within the repository, or name the folder with `--recordings`",
            places.join(", ")
        )
    })
}

/// The repository's folder, seen from the current folder and from the program, each with the folders
/// above it; and where the program was built.
fn folders() -> Vec<PathBuf> {
    let starts = [std::env::current_dir(), std::env::current_exe()];
    let above = starts.iter().flatten().flat_map(|start| start.ancestors());
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let mut folders: Vec<PathBuf> = Vec::new();
    for folder in above.chain(built).map(|folder| folder.join(WITHIN)) {
        if folder.is_dir() && !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    if folders.is_empty() {
        folders.push(WITHIN.into());
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_found_from_the_folder_of_a_crate() {
        let found = recording("pgbench-ext4", None).unwrap();
        assert!(found.ends_with("data/recorded/pgbench-ext4.csv.zst"), "{}", found.display());
    }

    #[test]
    fn a_missing_recording_says_where_it_was_looked_for_and_the_way_out() {
        let folder = tempfile::tempdir().unwrap();
        let error = recording("pgbench-ext4", Some(folder.path())).unwrap_err();
        assert!(error.contains(&folder.path().display().to_string()), "{error}");
        assert!(error.contains("--recordings"), "{error}");
    }
}
