//! Selection of a task's blocks: extents of a list or of files, or blocks that a file system has allocated.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use freewheel::control::{
    Allocated, BlockRange, ByteRange, ControlClient, Extents, FileExtents, Manifest, Parts, Record,
    ServerStatus, Task, TaskKind, TaskOrder, TaskRequest, TaskState,
};
use freewheel::files::read_text_up_to;
use freewheel::measures::{BLOCK_BYTES, Bytes, counted, grouped};

use super::control::Watch;
use crate::failure::Failure;
use crate::output;

/// A list of as many extents as a task may have is shorter.
const LIST_BYTES_MAX: Bytes = Bytes::from_kib(64 << 10);

/// Reads of metadata: no file system has smaller blocks on a drive with sectors of this size.
const METADATA_BLOCK_BYTES: u64 = 4096;

/// Options for the parts of the drive that a task reads.
#[derive(Args)]
pub struct SelectionArgs {
    /// Read only the extents of this list: lines `START LENGTH`, a CSV, or what `filefrag -v` prints
    #[arg(long, value_name = "FILE", group = "selection")]
    extents: Option<PathBuf>,
    /// Read only the blocks of these files, and of those in these folders, of a file system that is mounted
    /// here
    #[arg(long, value_name = "PATH", num_args = 1.., group = "selection")]
    files: Vec<PathBuf>,
    /// Read only what an ext2, ext3, ext4, XFS or NTFS on the drive has in use
    #[arg(long, group = "selection")]
    allocated: bool,
    /// Place of extents or of the file system on the drive, as 1MiB for a first partition; known for a
    /// mounted partition
    #[arg(long, value_name = "SIZE", default_value = "0B", requires = "selection")]
    offset: Bytes,
}

/// Selection of blocks for a task.
pub struct Selection {
    /// Whole blocks of the task; empty for all of the drive.
    parts: Vec<BlockRange>,
    /// The metadata that it comes from, and since when they must not have been written.
    source: Option<(Extents, u64)>,
}

impl Selection {
    /// A manifest of this server's drive for the selected blocks, without any.
    pub fn manifest(&self, status: &ServerStatus) -> Manifest {
        let ServerStatus { drive, blocks, instance, uptime_ns, .. } = status;
        let range = BlockRange { first_block: 0, blocks: *blocks };
        Manifest::new(drive, range, instance, *uptime_ns).of_parts(self.parts.clone())
    }

    /// That no client has written the metadata that the selection comes from, before a backup began.
    pub fn ensure_current(&self, client: &ControlClient) -> Result<(), Failure> {
        let Some((metadata, since_ns)) = &self.source else { return Ok(()) };
        let written = client.written(*since_ns)?.ranges;
        if !written.iter().any(|range| {
            let [offset, length] = [range.first_block, range.blocks].map(|n| n * BLOCK_BYTES);
            metadata.overlap(ByteRange::new(offset, length))
        }) {
            return Ok(());
        }
        Err(Failure::failed(
            "--allocated: clients wrote to the file system's bitmaps while they were read, so blocks may be in \
             use that they do not name: unmount it, or freeze it by `fsfreeze -f` until the backup has begun",
        ))
    }
}

impl SelectionArgs {
    /// Lets a task be for the selected blocks alone, and says which these are.
    pub fn limit(
        &self,
        client: &ControlClient,
        request: &mut TaskRequest,
    ) -> Result<Selection, Failure> {
        if self.extents.is_none() && self.files.is_empty() && !self.allocated {
            return Ok(Selection { parts: Vec::new(), source: None });
        }
        let status = client.status()?;
        let drive = ByteRange::new(0, status.blocks * BLOCK_BYTES);
        let Some(room) = drive.length_bytes.checked_sub(self.offset.get()) else {
            let bytes = Bytes::new(drive.length_bytes);
            let error = format!("--offset {}: the drive has {bytes}", self.offset);
            return Err(Failure::wrong_use(error));
        };
        let (extents, source) = match &self.extents {
            Some(path) => (of_list(path, room)?, None),
            None if self.allocated => self.allocated(client, &status, request.order.kind, room)?,
            None => (self.of_files(room)?, None),
        };
        let extents = extents.moved(self.offset.get());
        // What the server would do; but a manifest has to know it, too.
        let block = request.order.block_size.unwrap_or(Bytes::new(status.block_size_bytes));
        let whole = extents.widened(block.get().max(1), drive);
        let (count, bytes) = (whole.ranges().len(), whole.bytes());
        if count > Extents::MAX {
            return Err(Failure::failed(format!(
                "{} extents in blocks of {}: at most {} are allowed",
                grouped(count as u64),
                block,
                grouped(Extents::MAX as u64)
            ))
            .with_help(
                "with a larger --block-size those that are close together are read as one",
            ));
        }
        output::note(&says(&extents, bytes, count, block));
        let parts = whole.ranges().iter().map(|range| BlockRange {
            first_block: range.offset_bytes / BLOCK_BYTES,
            blocks: range.length_bytes / BLOCK_BYTES,
        });
        let selection = Selection { parts: parts.collect(), source };
        request.order.block_size = Some(block);
        request.extents = Some(whole.ranges().to_vec());
        Ok(selection)
    }

    /// Extents of the files, in the first `room` bytes of their file system.
    fn of_files(&self, room: u64) -> Result<Extents, Failure> {
        let mut files = Vec::new();
        for path in &self.files {
            list_files(path, &mut files).map_err(|(path, error)| {
                of_option(Failure::failed(format!("{}: {error}", path.display())))
            })?;
        }
        let (mut ranges, mut left_out, mut device) = (Vec::new(), Vec::new(), None);
        for path in &files {
            let file = FileExtents::of(path).map_err(|error| of_option(error.into()))?;
            if *device.get_or_insert(file.device) != file.device {
                return Err(of_option(Failure::failed(format!(
                    "{}: it is on another device than the files before",
                    path.display()
                ))));
            }
            left_out.extend(file.left_out.map(|why| (path, why)));
            ranges.extend_from_slice(file.extents.ranges());
        }
        if let [(first, why), ..] = &left_out[..] {
            let count = counted(left_out.len() as u64, "file");
            output::note(&format!(
                "data of {count} are left out, first {}: {why}",
                first.display()
            ));
        }
        let extents = Extents::new(ranges);
        match extents.ranges().last() {
            None => Err(Failure::failed("--files: the files have no blocks to read")),
            Some(last) if last.end() > room => {
                Err(Failure::failed("--files: the files lie behind the end of the served drive")
                    .with_help(
                        "are they on this drive? `findmnt -T FILE` says on which device a file is",
                    ))
            }
            Some(_) => Ok(extents),
        }
    }

    /// Ranges that a file system on the drive has in use, and its metadata.
    fn allocated(
        &self,
        client: &ControlClient,
        status: &ServerStatus,
        kind: TaskKind,
        room: u64,
    ) -> Result<(Extents, Option<(Extents, u64)>), Failure> {
        let offset = self.offset.get();
        let found = Allocated::find(room, |extents| {
            read(client, extents, offset, status.blocks * BLOCK_BYTES)
        });
        let found = found.map_err(|failure: Failure| failure.of_option("--allocated:"))?;
        if !found.is_clean && kind == TaskKind::Backup {
            return Err(Failure::failed(
                "--allocated: the file system is mounted, or was not unmounted cleanly: blocks that are in use \
                 may be free by its bitmaps, and a copy would lack them",
            )
            .with_help("unmount the file system, or freeze it by `fsfreeze -f` until the backup has begun"));
        }
        if !found.is_clean {
            output::note(
                "the file system is mounted, or was not unmounted cleanly: what it has allocated last may \
                 be left out",
            );
        }
        Ok((found.extents, Some((found.metadata.moved(offset), status.uptime_ns))))
    }
}

fn of_option(failure: Failure) -> Failure {
    failure.of_option("--files")
}

fn of_list(path: &Path, room: u64) -> Result<Extents, Failure> {
    let at = |error: String| {
        Failure::failed(format!("{}: {error}", path.display())).of_option("--extents")
    };
    let text = read_text_up_to(path, LIST_BYTES_MAX).map_err(|error| at(error.to_string()))?;
    let extents = Extents::parse(&text, room).map_err(|error| at(error.to_string()))?;
    if extents.ranges().is_empty() {
        let help = "write one extent a line, as `1MiB 64KiB`, or the output of `filefrag -v FILE`";
        return Err(at("there is no extent in it".into()).with_help(help));
    }
    Ok(extents)
}

/// Amount to be read, and its excess over what was asked for.
fn says(asked: &Extents, bytes: u64, count: usize, block: Bytes) -> String {
    let ranges = counted(count as u64, "extent");
    let what = format!("reading {} in {ranges}", size(bytes));
    match bytes - asked.bytes() {
        0 => what,
        more => format!(
            "{what}: {} more than asked for, as reads are whole blocks of {block}",
            size(more)
        ),
    }
}

fn size(bytes: u64) -> String {
    Bytes::new(bytes).human()
}

/// A file, or all files in a folder and those below it. Links in folders are not followed.
fn list_files(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), (PathBuf, std::io::Error)> {
    let at = |error| (path.to_path_buf(), error);
    if !fs::metadata(path).map_err(at)?.is_dir() {
        files.push(path.into());
        return Ok(());
    }
    let entries: Result<Vec<_>, _> = fs::read_dir(path).map_err(at)?.collect();
    let mut entries = entries.map_err(at)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let kind = entry.file_type().map_err(at)?;
        if kind.is_file() || kind.is_dir() {
            list_files(&entry.path(), files)?;
        }
    }
    Ok(())
}

/// Reads extents of the file system at `offset` through the server, by foreground requests.
fn read(
    client: &ControlClient,
    extents: &Extents,
    offset: u64,
    drive_bytes: u64,
) -> Result<Parts, Failure> {
    let mut parts = Parts::default();
    let drive = ByteRange::new(0, drive_bytes);
    let whole = extents.moved(offset).widened(METADATA_BLOCK_BYTES, drive);
    if whole.ranges().is_empty() {
        return Ok(parts);
    }
    let block_size = Some(Bytes::new(METADATA_BLOCK_BYTES));
    let scan = TaskOrder { kind: TaskKind::Scan, block_size, ..TaskOrder::default() };
    let task = client.create(&TaskRequest {
        extents: Some(whole.ranges().to_vec()),
        stream: true,
        ..scan.into()
    })?;
    let Task { id, .. } = client.promote(task.id)?;
    let mut watch = Watch::new(client, id);
    let mut data = client.data(id)?;
    loop {
        match watch.next_record(&mut data)? {
            Record::Data { first_block, data, .. } => {
                // Blocks of the task may begin before the file system.
                let at = first_block * BLOCK_BYTES;
                let before = offset.saturating_sub(at).min(data.len() as u64);
                parts
                    .insert((at + before).saturating_sub(offset), data[before as usize..].to_vec());
            }
            // Then bytes are missing, which is said with their place.
            Record::Unreadable { .. } => {}
            Record::End(TaskState::Done) => return Ok(parts),
            Record::End(_) => return Err(Failure::failed("the read was ended before its end")),
        }
    }
}
