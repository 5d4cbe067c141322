//! The system's ring: its requests, and the memory that it borrows for them. With `extents/fiemap.rs`
//! the only place with unsafe code.
//!
//! The system reads and writes memory of this process while it has a request. The memory of a request
//! therefore belongs to its slot from before the push until its completion has been taken from the ring;
//! no other code can reach it in between. A ring that is dropped waits for the requests under way first.
//! Where it cannot wait, it never frees their memory.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::{mem, thread};

use io_uring::{IoUring, Probe, opcode, squeue, types};
use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use super::buffer::Buffer;

/// Most bytes of one request: the system moves less than 2 GiB at once.
const BYTES_MAX: usize = 1 << 30;

/// Kind of a request to the system.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Read,
    Write,
    /// Brings written data to the media.
    Sync,
    /// Changes the allocation of `length` bytes.
    Allocate {
        how: FallocateFlags,
        length: u64,
    },
}

/// A request, from a byte of a file on.
pub(super) struct Request {
    pub file: Arc<File>,
    pub kind: Kind,
    pub offset: u64,
    pub buffer: Buffer,
}

/// A request that is over.
pub(super) struct RingDone<T> {
    pub tag: T,
    pub buffer: Buffer,
    pub result: io::Result<()>,
}

struct Slot<T> {
    request: Request,
    /// Bytes that have been moved.
    moved: usize,
    tag: T,
}

/// A ring of the thread that made it.
pub(super) struct Ring<T> {
    ring: IoUring,
    slots: Vec<Option<Slot<T>>>,
}

impl<T> Ring<T> {
    /// For at most `requests` at a time. Fails where the system has no such ring or forbids it.
    pub fn new(requests: u32) -> io::Result<Self> {
        // The waiting thread looks for completions; they interrupt no other work (Linux 6.1).
        let mut alone = IoUring::builder();
        alone.setup_single_issuer().setup_defer_taskrun();
        let ring = match alone.build(requests) {
            Err(error) if Errno::from_io_error(&error) == Some(Errno::INVAL) => {
                IoUring::new(requests)?
            }
            built => built?,
        };
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        let needed =
            [opcode::Read::CODE, opcode::Write::CODE, opcode::Fsync::CODE, opcode::Fallocate::CODE];
        if !needed.into_iter().all(|code| probe.is_supported(code)) {
            return Err(Errno::NOSYS.into());
        }
        Ok(Self { ring, slots: (0..requests).map(|_| None).collect() })
    }

    /// Puts a request on the ring, of which there must be fewer than it is for. It goes with the next
    /// [`Self::wait`].
    pub fn push(&mut self, request: Request, tag: T) {
        let free = self.slots.iter().position(Option::is_none).expect("the caller counts them");
        self.slots[free] = Some(Slot { request, moved: 0, tag });
        self.push_rest(free);
    }

    #[allow(unsafe_code, reason = "the system is lent memory")]
    fn push_rest(&mut self, at: usize) {
        let slot = self.slots[at].as_mut().expect("it is not over");
        let entry = entry(&mut slot.request, slot.moved).user_data(at as u64);
        // SAFETY: the memory is that of the buffer in the slot. It is on the heap, where it stays when the
        // slot moves. No code reads or writes the buffer until the completion is taken (`take`), and `Drop`
        // waits for that or leaks the buffer. The file is open as long.
        unsafe { self.ring.submission().push(&entry) }.expect("as many entries as slots");
    }

    /// Waits until at least one request is over, after handing over what has been pushed.
    pub fn wait(&mut self) -> io::Result<()> {
        loop {
            let Err(error) = self.ring.submit_and_wait(1) else { return Ok(()) };
            match Errno::from_io_error(&error) {
                Some(Errno::INTR) => {}
                // There is room again when something is taken.
                Some(Errno::BUSY | Errno::AGAIN) => {
                    thread::yield_now();
                    return Ok(());
                }
                _ => return Err(error),
            }
        }
    }

    /// Takes completed requests. Those completed in part continue.
    pub fn take(&mut self) -> Vec<RingDone<T>> {
        let come: Vec<_> = self.ring.completion().map(|c| (c.user_data(), c.result())).collect();
        come.into_iter().filter_map(|(at, result)| self.came(at as usize, result)).collect()
    }

    fn came(&mut self, at: usize, result: i32) -> Option<RingDone<T>> {
        let slot = self.slots[at].as_mut().expect("it was asked");
        // Empty for requests without data.
        let left = slot.request.buffer.bytes().len() - slot.moved;
        let result = match outcome(result, left) {
            // As read_exact and write_all have it.
            Outcome::End if matches!(slot.request.kind, Kind::Read) => {
                Err(io::ErrorKind::UnexpectedEof.into())
            }
            Outcome::End => Err(io::ErrorKind::WriteZero.into()),
            Outcome::Over(result) => result,
            Outcome::Goes { moved } => {
                slot.moved += moved;
                self.push_rest(at);
                return None;
            }
        };
        let Slot { request, tag, .. } = self.slots[at].take().expect("it was asked");
        Some(RingDone { tag, buffer: request.buffer, result })
    }

    /// Gives all that is under way up. The memory stays lent for ever.
    pub fn abandon(&mut self) -> Vec<T> {
        let slots = self.slots.iter_mut().filter_map(Option::take);
        slots
            .map(|Slot { request, tag, .. }| {
                mem::forget(request);
                tag
            })
            .collect()
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        while self.slots.iter().any(Option::is_some) {
            if self.wait().is_err() {
                // What has come of them has no slot any more.
                self.abandon();
                return;
            }
            self.take();
        }
    }
}

fn entry(request: &mut Request, moved: usize) -> squeue::Entry {
    let file = types::Fd(request.file.as_raw_fd());
    let offset = request.offset + moved as u64;
    match request.kind {
        Kind::Sync => opcode::Fsync::new(file).flags(types::FsyncFlags::DATASYNC).build(),
        Kind::Allocate { how, length } => {
            opcode::Fallocate::new(file, length).offset(offset).mode(how.bits() as i32).build()
        }
        Kind::Read | Kind::Write => {
            let rest = &mut request.buffer.bytes_mut()[moved..];
            let length = rest.len().min(BYTES_MAX) as u32;
            match request.kind {
                Kind::Write => {
                    opcode::Write::new(file, rest.as_ptr(), length).offset(offset).build()
                }
                _ => opcode::Read::new(file, rest.as_mut_ptr(), length).offset(offset).build(),
            }
        }
    }
}

/// Outcome that a completion reports.
#[derive(Debug)]
enum Outcome {
    Over(io::Result<()>),
    /// The end of the file.
    End,
    /// The rest has to be asked for.
    Goes {
        moved: usize,
    },
}

/// Outcome of a request of which `left` bytes were to be moved; `result` as in the ring: bytes, or the
/// negated error.
fn outcome(result: i32, left: usize) -> Outcome {
    match usize::try_from(result) {
        Ok(moved) if moved >= left => Outcome::Over(Ok(())),
        Ok(0) => Outcome::End,
        Ok(moved) => Outcome::Goes { moved },
        Err(_) => {
            let error = io::Error::from_raw_os_error(-result);
            match Errno::from_io_error(&error) {
                Some(Errno::INTR | Errno::AGAIN) => Outcome::Goes { moved: 0 },
                _ => Outcome::Over(Err(error)),
            }
        }
    }
}

/// Says why the system gives tests no ring. Any failure but its own will is one of ours, and panics.
#[cfg(test)]
pub(super) fn skip(error: &io::Error) {
    let disabled = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled");
    assert!(is_its_will(error, &disabled.unwrap_or_default()), "the ring fails: {error}");
    println!("skipped: the system gives no io_uring: {error}");
}

/// True if the system has no ring or forbids it; `disabled` is the text of `kernel.io_uring_disabled`, or
/// empty.
#[cfg(test)]
fn is_its_will(error: &io::Error, disabled: &str) -> bool {
    let is_disabled = !matches!(disabled.trim(), "" | "0");
    is_disabled || matches!(Errno::from_io_error(error), Some(Errno::NOSYS | Errno::PERM))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn uring_tests_skipped_only_where_forbidden() {
        let says = |errno: Errno, disabled| is_its_will(&errno.into(), disabled);
        assert!(says(Errno::NOSYS, "") && says(Errno::PERM, "0\n") && says(Errno::INVAL, "2\n"));
        assert!(!says(Errno::INVAL, "0\n") && !says(Errno::NOMEM, ""));
    }

    #[test]
    fn uring_completion_outcomes() {
        let over = |result, left| match outcome(result, left) {
            Outcome::Over(result) => result.map_err(|error| error.kind()),
            other => panic!("{other:?}"),
        };
        let goes = |result, left| match outcome(result, left) {
            Outcome::Goes { moved } => moved,
            other => panic!("{other:?}"),
        };
        assert_eq!(over(512, 512), Ok(()));
        assert_eq!(over(0, 0), Ok(()), "a flush");
        assert_eq!(goes(100, 512), 100);
        assert!(matches!(outcome(0, 412), Outcome::End));
        let code = |errno: Errno| -errno.raw_os_error();
        assert_eq!(goes(code(Errno::INTR), 512), 0);
        assert_eq!(goes(code(Errno::AGAIN), 512), 0);
        assert_eq!(over(code(Errno::ACCESS), 512), Err(io::ErrorKind::PermissionDenied));
    }

    /// None where the system has no ring or forbids it, which is printed; any other failure is a defect.
    fn ring() -> Option<Ring<u8>> {
        Ring::new(2).map_err(|error| skip(&error)).ok()
    }

    fn read_of(pipe: &Arc<File>, length: usize) -> Request {
        let (file, buffer) = (Arc::clone(pipe), Buffer::of(vec![0; length]));
        Request { file, kind: Kind::Read, offset: 0, buffer }
    }

    #[test]
    fn uring_joins_partial_completions() {
        let Some(mut ring) = ring() else { return };
        let (reader, mut writer) = io::pipe().unwrap();
        let pipe = Arc::new(File::from(std::os::fd::OwnedFd::from(reader)));
        ring.push(read_of(&pipe, 8), 1);
        writer.write_all(b"abc").unwrap();
        ring.wait().unwrap();
        assert!(ring.take().is_empty(), "only a part has come");
        writer.write_all(b"defgh").unwrap();
        ring.wait().unwrap();
        let done = ring.take();
        assert_eq!((done[0].tag, done[0].buffer.bytes()), (1, &b"abcdefgh"[..]));
        drop(writer);
        ring.push(read_of(&pipe, 8), 2);
        ring.wait().unwrap();
        let end = ring.take().pop().unwrap().result;
        assert_eq!(end.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn flush_asks_for_sync() {
        let Some(mut ring) = ring() else { return };
        // The system refuses to sync this file.
        let (file, buffer) = (Arc::new(File::open("/dev/null").unwrap()), Buffer::of(Vec::new()));
        ring.push(Request { file, kind: Kind::Sync, offset: 0, buffer }, 1);
        ring.wait().unwrap();
        let result = ring.take().pop().unwrap().result;
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn uring_ends_after_pending_commands() {
        let Some(mut ring) = ring() else { return };
        let (reader, mut writer) = io::pipe().unwrap();
        let pipe = Arc::new(File::from(std::os::fd::OwnedFd::from(reader)));
        ring.push(read_of(&pipe, 8), 1);
        let late = thread::spawn(move || {
            thread::sleep(std::time::Duration::from_millis(50));
            writer.write_all(b"abcdefgh").unwrap();
            std::time::Instant::now()
        });
        drop(ring);
        let gone = std::time::Instant::now();
        assert!(late.join().unwrap() <= gone + std::time::Duration::from_millis(1));
        assert_eq!(Arc::strong_count(&pipe), 1);
    }

    #[test]
    fn uring_ends_when_unable_to_wait() {
        let Some(mut ring) = ring() else { return };
        let (reader, mut writer) = io::pipe().unwrap();
        let pipe = Arc::new(File::from(std::os::fd::OwnedFd::from(reader)));
        writer.write_all(&[7; 16]).unwrap();
        ring.push(read_of(&pipe, 8), 1);
        ring.wait().unwrap();
        ring.push(read_of(&pipe, 8), 2);
        // Since Linux 6.1 a ring is its thread's alone, and another one cannot wait for it.
        thread::spawn(move || drop(ring)).join().unwrap();
    }
}
