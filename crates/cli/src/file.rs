//! Files that appear when they are complete and not before.

use std::io::{self, Write};
use std::path::Path;

use freewheel::files::{PendingFile, is_same_file};

use crate::failure::Failure;

/// Writes all of these files, or none of them: each takes its name when every one is on the disk.
pub fn write_together(files: &[(&Path, &str)]) -> Result<(), Failure> {
    let pending: Result<Vec<PendingFile>, Failure> =
        files.iter().map(|(path, text)| begin(path, text).map_err(|e| at(path, e))).collect();
    for (file, (path, _)) in pending?.into_iter().zip(files) {
        file.keep().map_err(|error| at(path, error))?;
    }
    Ok(())
}

/// Removes what an earlier run wrote and this one does not.
pub fn remove_if_there(path: &Path) -> Result<(), Failure> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at(path, error)),
        _ => Ok(()),
    }
}

fn begin(path: &Path, text: &str) -> io::Result<PendingFile> {
    let mut file = PendingFile::create(path)?;
    file.write_all(text.as_bytes())?;
    Ok(file)
}

/// Finds out before a long run whether a file can be made at `path`. What is there already may have
/// taken hours, and is not written over.
pub fn ensure_new(path: &Path) -> Result<(), Failure> {
    if path.symlink_metadata().is_ok() {
        return Err(Failure::failed(format!(
            "{}: is there already: choose another name, or remove it",
            path.display()
        )));
    }
    ensure_writable(path)
}

/// Finds out before a long run whether a file can be written at `path`.
pub fn ensure_writable(path: &Path) -> Result<(), Failure> {
    if path.is_dir() {
        return Err(Failure::failed(format!("{}: is a folder, not a file", path.display())));
    }
    PendingFile::create(path).map(drop).map_err(|error| at(path, error))
}

/// Checks a folder that is made when it is needed.
pub fn ensure_writable_folder(folder: &Path) -> Result<(), Failure> {
    let existing = folder.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new(""));
    PendingFile::create(&existing.join("probe")).map(drop).map_err(|error| at(folder, error))
}

/// Makes the folder, if it is not there, for what `write` puts into it. When that fails, what was made
/// of the folder goes away again.
pub fn in_new_folder(
    folder: &Path,
    write: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let made: Vec<&Path> = folder.ancestors().take_while(|folder| !folder.exists()).collect();
    let create = std::fs::create_dir_all(folder).map_err(|error| at(folder, error));
    create.and_then(|()| write()).inspect_err(|_| {
        // Innermost first; one that others have put something into stays.
        made.iter().for_each(|folder| drop(std::fs::remove_dir(folder)));
    })
}

/// Err for what is no file on a disk, as a pipe, where it has to be read more than once.
pub fn check_rereadable(path: &Path) -> Result<(), String> {
    match path.metadata() {
        Ok(there) if !there.is_file() && !there.is_dir() => Err(format!(
            "{}: is a pipe or a device, and the trace is read more than once: save it as a file first",
            path.display()
        )),
        _ => Ok(()),
    }
}

/// Err for a name that JSON and TOML cannot hold: results repeat it.
pub fn ensure_utf_8(path: &Path) -> Result<(), Failure> {
    match path.to_str() {
        Some(_) => Ok(()),
        None => Err(Failure::failed(format!(
            "{}: its name is not UTF-8, so that the result could not repeat it: rename it",
            path.display()
        ))),
    }
}

/// Err for an output that would take the place of what is read.
pub fn ensure_not_read(output: &Path, input: &Path) -> Result<(), Failure> {
    if !is_same_file(output, input) {
        return Ok(());
    }
    Err(Failure::failed(format!(
        "{}: is what is read, and would be written over: choose another name",
        output.display()
    )))
}

/// Longest name that Linux allows, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// That a name out of a document, with this ending, names a file in the folder that it is joined to; Err
/// says why not.
pub fn ensure_plain_name(name: &str, ending: &str) -> Result<(), String> {
    match name {
        "" => Err("it is empty".into()),
        "." | ".." => Err("it is a folder's".into()),
        _ if name.contains('/') => Err("it has a `/`".into()),
        _ if name.contains(char::is_control) => Err("it has a control character".into()),
        _ if name.len() + ending.len() > NAME_BYTES_MAX => {
            Err(format!("it has more than {} bytes", NAME_BYTES_MAX - ending.len()))
        }
        _ => Ok(()),
    }
}

fn at(path: &Path, error: io::Error) -> Failure {
    Failure::failed(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_name_refuses_paths_and_controls() {
        let long = "x".repeat(252);
        for (name, says) in [
            ("", "empty"),
            (".", "a folder's"),
            ("..", "a folder's"),
            ("../x", "`/`"),
            ("/etc/passwd", "`/`"),
            ("a/b", "`/`"),
            ("x\0y", "control character"),
            ("x\ny", "control character"),
            ("x\u{1b}[2J", "control character"),
            (&long, "more than 251 bytes"),
        ] {
            let why = ensure_plain_name(name, ".img").unwrap_err();
            assert!(why.contains(says), "{name:?}: {why}");
        }
        for name in ["atlas10k", "...", "..x", "Exos X24, 24 TB", "-x", &long[1..]] {
            assert_eq!(ensure_plain_name(name, ".img"), Ok(()), "{name}");
        }
    }
}
