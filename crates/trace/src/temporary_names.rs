//! Names of what this process removes at its end, for the case that a signal ends it.
//!
//! Goals: after SIGINT or SIGTERM no temporary file stays.
//! Non-goals: catching signals, which only the program may do: it calls [`remove_temporary_files`].

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

static NAMES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes the temporary files of this process that have names, and its temporary folders; for a process
/// that a signal ends. What is written to them afterwards is lost, and no other is made: a thread that wants
/// one waits for the end.
pub fn remove_temporary_files() {
    let mut names = names();
    remove(&mut names);
    std::mem::forget(names);
}

fn remove(names: &mut Vec<PathBuf>) {
    for path in names.drain(..) {
        // What cannot be removed stays, as after any other end.
        let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    }
}

/// Makes something temporary that has a name. A signal in between waits for the name.
pub(crate) fn make<T>(
    make: impl FnOnce() -> std::io::Result<T>,
    path: impl FnOnce(&T) -> &Path,
) -> std::io::Result<T> {
    let mut names = names();
    let made = make()?;
    names.push(path(&made).to_owned());
    Ok(made)
}

/// The name is gone, or is that of something complete.
pub(crate) fn forget(path: &Path) {
    names().retain(|name| name != path);
}

fn names() -> MutexGuard<'static, Vec<PathBuf>> {
    NAMES.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_files_and_folders_removed() {
        let folder = tempfile::tempdir().unwrap();
        let [file, inner, other] = ["file", "inner", "other"].map(|name| folder.path().join(name));
        fs::create_dir(&inner).unwrap();
        for file in [&file, &inner.join("stdin"), &other] {
            fs::write(file, "").unwrap();
        }
        remove(&mut vec![file, inner, folder.path().join("gone already")]);
        let left: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().path()).collect();
        assert_eq!(left, [other]);
    }
}
