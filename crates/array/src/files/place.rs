//! Placing files on disks.

use crate::allocation::{Allocator, NewExtent};
use crate::placement::{ExtentId, FileId, Placement};
use freewheel_units::Blocks;
use thiserror::Error;

use super::map::{FileMap, MappedFile};

/// A file and how it is cut.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FileOnDisks {
    /// Blocks of the file.
    pub blocks: Blocks,
    /// Blocks of a run.
    pub unit: Blocks,
    /// Disks that it is spread over, at most one a run.
    pub width: u32,
    /// Unit to which extents are aligned: a track, or one block for no gap between extents.
    pub boundary: Blocks,
    /// Heat of the file, in any unit; its extents share it by their sizes.
    pub heat: f64,
}

/// Files that are placed, and the heat of each disk.
#[derive(Debug)]
pub struct Files {
    /// Places of the files.
    pub map: FileMap,
    /// Sum of heat on each disk.
    pub heats: Vec<f64>,
}

/// A file that no disks have room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("file {file}: no disk has {blocks} blocks free for one of its extents")]
pub struct PlaceError {
    /// Number of the file.
    pub file: usize,
    /// Size of the extent.
    pub blocks: Blocks,
}

/// Places files on empty disks of these capacities, in the order of `order`: indices into `files`.
pub fn place(
    files: &[FileOnDisks],
    order: impl IntoIterator<Item = usize>,
    capacities: &[Blocks],
    allocator: &mut Allocator,
) -> Result<Files, PlaceError> {
    let mapped = mapped(files);
    let mut disks = Placement::of(capacities.iter().copied());
    let mut heats = vec![0.0; disks.disks() as usize];
    for number in order {
        let extents = new_extents(number as u32, &files[number], &mapped[number]);
        for (new, blocks) in extents {
            let placed = allocator.place(&mut disks, &mut heats, &new);
            placed.ok_or(PlaceError { file: number, blocks })?;
        }
    }
    let largest = capacities.iter().copied().max().unwrap_or_default();
    let map = FileMap::new(mapped, disks, largest);
    Ok(Files { map, heats })
}

/// Extents of a file with the room that they take, and their blocks.
pub(super) fn new_extents(
    number: u32,
    file: &FileOnDisks,
    cut: &MappedFile,
) -> impl Iterator<Item = (NewExtent, Blocks)> {
    let (boundary, heat, all) = (file.boundary.get(), file.heat, file.blocks.get());
    let cut = *cut;
    (0..cut.width).map(move |extent| {
        let blocks = cut.extent_blocks(extent);
        let heat = heat * blocks.get() as f64 / all as f64;
        let id = ExtentId(cut.first_extent.0 + extent);
        let room = Blocks::new(blocks.get().div_ceil(boundary) * boundary);
        (NewExtent { id, file: FileId(number), blocks: room, heat }, blocks)
    })
}

/// Files with numbers for their extents.
fn mapped(files: &[FileOnDisks]) -> Vec<MappedFile> {
    let mut next = 0;
    files
        .iter()
        .map(|file| {
            let runs = file.blocks.get().div_ceil(file.unit.get());
            let width = u64::from(file.width).min(runs) as u32;
            let first_extent = ExtentId(next);
            next += width;
            MappedFile { blocks: file.blocks, unit: file.unit, first_extent, width }
        })
        .collect()
}
