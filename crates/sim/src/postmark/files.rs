//! A file system for small files on a log-structured disk: the blocks that each operation touches.
//!
//! It is the part of Minix's file system that PostMark needs; LLD was made for Minix (de Jonge,
//! Kaashoek and Hsieh 1993). A root directory has subdirectories. Entries of 16 bytes are searched one
//! block after the other. Inodes of 64 bytes are in a table, with seven direct blocks a file.
//! Left out: indirect blocks, as no file or directory here is large enough; the map of free inodes, one
//! block that never leaves the cache; and the map of free blocks, which LLD keeps.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use freewheel_model::log_disk::{Command, LogicalBlock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::generator::{FileId, FileOp};

const BLOCK_BYTES: u32 = 4096;
const INODES_PER_BLOCK: u32 = BLOCK_BYTES / 64;
const ENTRIES_PER_BLOCK: u32 = BLOCK_BYTES / 16;
/// Blocks that an inode names without indirection.
const DIRECT_BLOCKS: usize = 7;

/// Time at which changed inodes and directories go to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MetadataWrites {
    /// Writes when the cache runs out of room, like data.
    #[default]
    Delayed,
    /// At once, like Minix with its option `ROBUST`.
    Immediate,
}

/// Tables of the file system, whose blocks are on the disk.
#[derive(Debug)]
pub struct SmallFiles {
    metadata: MetadataWrites,
    inodes: Numbers,
    blocks: Numbers,
    /// Blocks of the inode table, by inode number over [`INODES_PER_BLOCK`].
    inode_table: BTreeMap<u32, LogicalBlock>,
    root: Directory,
    directories: Vec<Directory>,
    files: BTreeMap<FileId, File>,
}

#[derive(Debug)]
struct Directory {
    inode: u32,
    entries: Numbers,
    blocks: Vec<LogicalBlock>,
}

#[derive(Debug)]
struct File {
    inode: u32,
    directory: u32,
    entry: u32,
    bytes: u32,
    blocks: Vec<LogicalBlock>,
}

/// Hands out numbers, the lowest free one first.
#[derive(Debug, Default)]
struct Numbers {
    returned: BTreeSet<u32>,
    next: u32,
}

impl Numbers {
    fn take(&mut self) -> u32 {
        self.returned.pop_first().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }

    fn give_back(&mut self, number: u32) {
        self.returned.insert(number);
    }

    fn used(&self) -> u32 {
        self.next - self.returned.len() as u32
    }
}

impl SmallFiles {
    /// A root directory with empty subdirectories. Appends the disk commands that create them.
    pub fn new(
        subdirectories: u32,
        metadata: MetadataWrites,
        commands: &mut VecDeque<Command>,
    ) -> Self {
        let mut inodes = Numbers::default();
        let mut directory =
            || Directory { inode: inodes.take(), entries: Numbers::default(), blocks: Vec::new() };
        let root = directory();
        let directories = (0..subdirectories).map(|_| directory()).collect();
        let mut made = Self {
            metadata,
            inodes,
            blocks: Numbers::default(),
            inode_table: BTreeMap::new(),
            root,
            directories,
            files: BTreeMap::new(),
        };
        for number in 0..subdirectories {
            let entry = made.root.entries.take();
            let block = made.root.block_for(entry, &mut made.blocks);
            made.write_metadata(block, commands);
            made.write_inode(made.directories[number as usize].inode, commands);
        }
        made.write_inode(made.root.inode, commands);
        made
    }

    /// Blocks in use by the file system.
    pub fn used_blocks(&self) -> u32 {
        self.blocks.used()
    }

    /// Performs an operation: appends its disk commands. Panics when a file to use does not exist, or
    /// one to create does. Panics when a file or directory outgrows its direct blocks.
    pub fn apply(&mut self, op: FileOp, commands: &mut VecDeque<Command>) {
        match op {
            FileOp::Create { file, directory, bytes } => {
                self.create(file, directory, commands);
                self.grow(file, bytes, commands);
            }
            FileOp::Read(file) => {
                self.open(file, commands);
                commands.extend(self.files[&file].blocks.iter().map(|&b| Command::Read(b)));
            }
            FileOp::Append { file, bytes } => {
                self.open(file, commands);
                self.grow(file, bytes, commands);
            }
            FileOp::Delete(file) => self.delete(file, commands),
        }
    }

    /// Reads the block of an inode, so that the inode can be used.
    fn read_inode(&mut self, inode: u32, commands: &mut VecDeque<Command>) -> LogicalBlock {
        let Self { inode_table, blocks, .. } = self;
        let block = inode_table.entry(inode / INODES_PER_BLOCK).or_insert_with(|| blocks.take());
        commands.push_back(Command::Read(*block));
        *block
    }

    fn write_inode(&mut self, inode: u32, commands: &mut VecDeque<Command>) {
        let block = self.read_inode(inode, commands);
        self.write_metadata(block, commands);
    }

    fn write_metadata(&self, block: LogicalBlock, commands: &mut VecDeque<Command>) {
        commands.push_back(match self.metadata {
            MetadataWrites::Delayed => Command::Write(block),
            MetadataWrites::Immediate => Command::WriteThrough(block),
        });
    }

    /// Changes an entry of a subdirectory, and so its inode too.
    fn write_entry(&mut self, number: u32, entry: u32, commands: &mut VecDeque<Command>) {
        let directory = &mut self.directories[number as usize];
        let inode = directory.inode;
        let block = directory.block_for(entry, &mut self.blocks);
        self.write_metadata(block, commands);
        self.write_inode(inode, commands);
    }

    /// Reads the blocks that finding an entry of a subdirectory takes: root, inode, and directory
    /// blocks up to the entry.
    fn find(&mut self, directory: u32, entry: u32, commands: &mut VecDeque<Command>) {
        self.read_inode(self.root.inode, commands);
        self.root.read_to(directory, commands);
        self.read_inode(self.directories[directory as usize].inode, commands);
        self.directories[directory as usize].read_to(entry, commands);
    }

    fn open(&mut self, file: FileId, commands: &mut VecDeque<Command>) {
        let File { directory, entry, inode, .. } = self.files[&file];
        self.find(directory, entry, commands);
        self.read_inode(inode, commands);
    }

    fn create(&mut self, file: FileId, number: u32, commands: &mut VecDeque<Command>) {
        // All entries are read before the name is known to be new.
        self.find(number, u32::MAX, commands);
        let entry = self.directories[number as usize].entries.take();
        self.write_entry(number, entry, commands);
        let inode = self.inodes.take();
        let made = File { inode, directory: number, entry, bytes: 0, blocks: Vec::new() };
        assert!(self.files.insert(file, made).is_none(), "file {file} exists");
    }

    fn grow(&mut self, number: FileId, bytes: u32, commands: &mut VecDeque<Command>) {
        let Self { files, blocks, .. } = self;
        let file = files.get_mut(&number).expect("the file exists");
        if !file.bytes.is_multiple_of(BLOCK_BYTES) {
            let last = *file.blocks.last().expect("a partly filled block");
            commands.extend([Command::Read(last), Command::Write(last)]);
        }
        file.bytes += bytes;
        while (file.blocks.len() as u32) < file.bytes.div_ceil(BLOCK_BYTES) {
            let block = blocks.take();
            file.blocks.push(block);
            commands.push_back(Command::Write(block));
        }
        assert!(file.blocks.len() <= DIRECT_BLOCKS, "a file of {} bytes", file.bytes);
        let inode = file.inode;
        self.write_inode(inode, commands);
    }

    fn delete(&mut self, number: FileId, commands: &mut VecDeque<Command>) {
        self.open(number, commands);
        let file = self.files.remove(&number).expect("the file exists");
        for &block in &file.blocks {
            commands.push_back(Command::Delete(block));
            self.blocks.give_back(block);
        }
        self.inodes.give_back(file.inode);
        self.write_inode(file.inode, commands);
        self.directories[file.directory as usize].entries.give_back(file.entry);
        self.write_entry(file.directory, file.entry, commands);
    }
}

impl Directory {
    /// Reads the directory's blocks up to the one with this entry.
    fn read_to(&self, entry: u32, commands: &mut VecDeque<Command>) {
        let upto = (entry / ENTRIES_PER_BLOCK) as usize;
        let read = self.blocks.iter().take(upto.saturating_add(1));
        commands.extend(read.map(|&block| Command::Read(block)));
    }

    /// The block of an entry; the directory may grow for it.
    fn block_for(&mut self, entry: u32, free: &mut Numbers) -> LogicalBlock {
        let index = (entry / ENTRIES_PER_BLOCK) as usize;
        if index == self.blocks.len() {
            self.blocks.push(free.take());
            assert!(self.blocks.len() <= DIRECT_BLOCKS, "a directory of {entry} entries");
        }
        self.blocks[index]
    }
}
