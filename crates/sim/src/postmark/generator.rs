//! What PostMark does: which file operations, in which order.

use freewheel_units::Prng;

/// PostMark's parameters (Katcher 1997), of those that osdi00 section 5.2 names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PostmarkSpec {
    /// Files in the pool before the first transaction.
    pub files: u32,
    /// Directories that files are created in.
    pub subdirectories: u32,
    /// Size of a file at least, in bytes.
    pub size_min: u32,
    /// Size of a file at most, in bytes: drawn below it, appended up to it.
    pub size_max: u32,
    /// Transactions of a pass.
    pub transactions: u32,
    /// Of ten accesses, so many are reads and the others appends.
    pub read_bias: u32,
    /// Of ten manipulations, so many are creations and the others deletions.
    pub create_bias: u32,
}

impl PostmarkSpec {
    /// osdi00 section 5.2, with a pool of so many files.
    pub fn osdi00(files: u32) -> Self {
        Self {
            files,
            subdirectories: 100,
            size_min: 5 << 10,
            size_max: 10 << 10,
            transactions: 25_000,
            read_bias: 5,
            create_bias: 5,
        }
    }
}

/// Number of a file among all that were ever created.
pub type FileId = u32;

/// An operation on a whole file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileOp {
    /// Make a file of so many bytes in a subdirectory.
    Create {
        /// Its number.
        file: FileId,
        /// Number of the subdirectory.
        directory: u32,
        /// Its size.
        bytes: u32,
    },
    /// Read all of a file.
    Read(FileId),
    /// Write so many bytes behind the end of a file.
    Append {
        /// Its number.
        file: FileId,
        /// By how much it grows.
        bytes: u32,
    },
    /// Remove a file.
    Delete(FileId),
}

/// PostMark as a generator of file operations: the same seed gives the same ones.
///
/// A transaction is an access to a file, a read or an append, and a manipulation, a creation or a
/// deletion. Files are drawn evenly from those that exist. An append to a file of the greatest
/// size does nothing.
#[derive(Debug)]
pub struct Postmark {
    spec: PostmarkSpec,
    prng: Prng,
    /// Those that exist, in no order.
    pool: Vec<PooledFile>,
    created: FileId,
}

#[derive(Debug, Clone, Copy)]
struct PooledFile {
    file: FileId,
    bytes: u32,
}

impl Postmark {
    /// No file exists yet. Panics when sizes are not `0 < size_min < size_max`.
    pub fn new(spec: PostmarkSpec, seed: u64) -> Self {
        assert!(0 < spec.size_min && spec.size_min < spec.size_max, "{spec:?}");
        assert!(spec.files > 0 && spec.subdirectories > 0, "{spec:?}");
        Self { spec, prng: Prng::new(seed, "postmark"), pool: Vec::new(), created: 0 }
    }

    /// How many files exist.
    pub fn files(&self) -> u32 {
        self.pool.len() as u32
    }

    /// The next file of the pool; None when it is complete.
    pub fn fill_pool(&mut self) -> Option<FileOp> {
        (self.created < self.spec.files).then(|| self.create())
    }

    /// The operations of a transaction. PostMark ends when it runs out of files; here nothing more
    /// happens until one is created.
    pub fn transaction(&mut self) -> [Option<FileOp>; 2] {
        let reads = self.draw(10) < self.spec.read_bias;
        let access = if reads { self.read() } else { self.append() };
        let creates = self.draw(10) < self.spec.create_bias;
        let manipulation = if creates { Some(self.create()) } else { self.delete() };
        [access, manipulation]
    }

    fn draw(&mut self, below: u32) -> u32 {
        self.prng.below(below.into()) as u32
    }

    fn pick(&mut self) -> Option<usize> {
        let files = self.files();
        (files > 0).then(|| self.draw(files) as usize)
    }

    fn create(&mut self) -> FileOp {
        let file = self.created;
        self.created += 1;
        let directory = self.draw(self.spec.subdirectories);
        let bytes = self.spec.size_min + self.draw(self.spec.size_max - self.spec.size_min);
        self.pool.push(PooledFile { file, bytes });
        FileOp::Create { file, directory, bytes }
    }

    fn read(&mut self) -> Option<FileOp> {
        self.pick().map(|index| FileOp::Read(self.pool[index].file))
    }

    fn append(&mut self) -> Option<FileOp> {
        let index = self.pick()?;
        let room = self.spec.size_max - self.pool[index].bytes;
        if room == 0 {
            return None;
        }
        let bytes = 1 + self.draw(room);
        let pooled = &mut self.pool[index];
        pooled.bytes += bytes;
        Some(FileOp::Append { file: pooled.file, bytes })
    }

    fn delete(&mut self) -> Option<FileOp> {
        let index = self.pick()?;
        Some(FileOp::Delete(self.pool.swap_remove(index).file))
    }
}
