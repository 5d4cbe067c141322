//! File operations of PostMark and their order.

use freewheel_units::Prng;

/// PostMark's parameters (Katcher 1997) that osdi00 section 5.2 names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PostmarkSpec {
    /// Files in the pool before the first transaction.
    pub files: u32,
    /// Directories with files.
    pub subdirectories: u32,
    /// Smallest size of a file, in bytes.
    pub size_min: u32,
    /// Largest size of a file, in bytes: creations draw below it, appends grow up to it.
    pub size_max: u32,
    /// Transactions of a pass.
    pub transactions: u32,
    /// Reads among ten accesses; the others are appends.
    pub read_bias: u32,
    /// Creations among ten manipulations; the others are deletions.
    pub create_bias: u32,
}

impl PostmarkSpec {
    /// Parameters of osdi00 section 5.2, with a pool of `files` files.
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
#[allow(missing_docs)]
pub enum FileOp {
    /// Creates a file of `bytes` in a subdirectory.
    Create {
        file: FileId,
        directory: u32,
        bytes: u32,
    },
    /// Reads all of a file.
    Read(FileId),
    /// Appends `bytes` to a file.
    Append {
        file: FileId,
        /// Growth of the file.
        bytes: u32,
    },
    Delete(FileId),
}

/// Generates PostMark's file operations, the same ones for the same seed.
///
/// A transaction is an access to a file, a read or an append, and a manipulation, a creation or a
/// deletion. Files are drawn evenly from those that exist. An append leaves a file of the greatest size
/// unchanged.
#[derive(Debug)]
pub struct Postmark {
    spec: PostmarkSpec,
    prng: Prng,
    /// Files that exist, in no order.
    pool: Vec<PooledFile>,
    created: FileId,
}

#[derive(Debug, Clone, Copy)]
struct PooledFile {
    file: FileId,
    bytes: u32,
}

impl Postmark {
    /// A generator without files. Panics unless `0 < size_min < size_max`.
    pub fn new(spec: PostmarkSpec, seed: u64) -> Self {
        assert!(0 < spec.size_min && spec.size_min < spec.size_max, "{spec:?}");
        assert!(spec.files > 0 && spec.subdirectories > 0, "{spec:?}");
        Self { spec, prng: Prng::new(seed, "postmark"), pool: Vec::new(), created: 0 }
    }

    /// Number of files.
    pub fn files(&self) -> u32 {
        self.pool.len() as u32
    }

    /// The next file of the pool; None when it is complete.
    pub fn fill_pool(&mut self) -> Option<FileOp> {
        (self.created < self.spec.files).then(|| self.create())
    }

    /// The operations of a transaction. The original ends when it runs out of files; here a transaction
    /// without files is empty until one is created.
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
