//! Bytes on their way to or from a file.

/// Memory that goes to a device directly begins at a multiple of this: the largest sector.
const ALIGNMENT: usize = 4096;

/// Bytes at an address that a file takes. They stay at it when this is moved.
#[derive(Default)]
pub(super) struct Buffer {
    memory: Vec<u8>,
    begin: usize,
    length: usize,
}

impl Buffer {
    /// These bytes, wherever they are: for what goes through the page cache.
    pub fn of(memory: Vec<u8>) -> Self {
        let length = memory.len();
        Self { memory, begin: 0, length }
    }

    /// `length` bytes from an aligned address on, in `memory`, which grows for it. What is in them is
    /// left from before.
    pub fn aligned(mut memory: Vec<u8>, length: usize) -> Self {
        if memory.len() < length + ALIGNMENT {
            memory.resize(length + ALIGNMENT, 0);
        }
        let begin = memory.as_ptr().align_offset(ALIGNMENT);
        Self { memory, begin, length }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.begin..self.begin + self.length]
    }

    /// The bytes, to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.begin..self.begin + self.length]
    }

    /// All of the memory, for another one.
    pub fn into_memory(self) -> Vec<u8> {
        self.memory
    }
}
