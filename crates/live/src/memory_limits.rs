//! Memory that a server may need, and the system's limits of it.
//!
//! Goals: a server that would be ended in the middle of its clients' requests does not start. Memory that
//! the system refuses ends a process.
//! Non-goals: memory that other processes take from this one's control group, or from the machine.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::{env, fs, thread};

use freewheel_units::Bytes;
use rustix::process::{Resource, getrlimit};
use thiserror::Error;

use crate::nbd::Limits;

/// Stack of a thread, as the standard library makes it.
const THREAD_STACK: u64 = 2 << 20;
/// Address space that the allocator of glibc reserves for an arena. Threads share all that it makes:
/// eight for each processor, unless the environment names another number (mallopt(3)).
const ARENA: u64 = 64 << 20;
const ARENAS_OF_PROCESSOR: u64 = 8;
const ARENAS_MAX: &str = "MALLOC_ARENA_MAX";
/// Threads of a server beside those of its connections: scheduler, device, control, signals.
const OTHER_THREADS: u64 = 16;
/// Memory of the server after its start without connections' data: replies, decisions, tasks of a small
/// drive.
const OWN: u64 = 64 << 20;
/// Memory of a connection's own buffers, beside the common budget.
const CONNECTION: u64 = 1 << 20;
/// Stacks and buffers are memory only as far as they are used.
const THREAD_USED: u64 = 64 << 10;
/// Descriptors of a server beside those of its connections: its own files, the ring, sockets.
const OTHER_FILES: u64 = 32;
const CONNECTION_FILES: u64 = 1;

/// Too little for a server within its limits.
#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "{} limits this process to {}, and with all its clients it may take {}: it would be ended in the \
     middle of their requests; {way_out}",
    limit, allowed.human_decimal(), needed.human_decimal()
)]
pub struct TooLittleMemory {
    limit: String,
    allowed: Bytes,
    /// Need with all clients.
    needed: Bytes,
    way_out: String,
}

/// That a server with these limits is allowed the memory that it may take, beside what this process has.
pub fn check_memory(limits: &Limits) -> Result<(), TooLittleMemory> {
    let (size, resident) = in_use();
    // The same number may have chosen no export, and the same may be being closed. Each has two threads
    // and no data.
    let connections = limits.connections_max as u64;
    let threads = 2 * 3 * connections + OTHER_THREADS;
    let data = limits.memory_max + CONNECTION * connections;
    let allowed = getrlimit(Resource::As).current.map(Bytes::new);
    ensure(
        "RLIMIT_AS (ulimit -v)",
        allowed,
        needed_with(arenas().min(threads), size, data, threads),
        &way_out(allowed, arenas().min(threads), |arenas| needed_with(arenas, size, data, threads)),
    )?;
    for (file, allowed) in group_limits() {
        ensure(
            &file.display().to_string(),
            Some(allowed),
            resident + OWN + data + THREAD_USED * threads,
            "raise it, as MemoryMax= of its service",
        )?;
    }
    Ok(())
}

fn needed_with(arenas: u64, size: u64, data: u64, threads: u64) -> u64 {
    size + OWN + data + THREAD_STACK * threads + ARENA * arenas
}

/// Way out of a limit of address space: another limit, or fewer arenas where that suffices.
fn way_out(allowed: Option<Bytes>, arenas: u64, needed_with: impl Fn(u64) -> u64) -> String {
    let kib = needed_with(arenas).div_ceil(1 << 10);
    let raise = format!("raise it (ulimit -v {kib}, or unlimited)");
    match (1..arenas)
        .rev()
        .find(|arenas| allowed.is_some_and(|allowed| needed_with(*arenas) <= allowed.get()))
    {
        Some(fewer) => format!("{raise}, or set {ARENAS_MAX}={fewer}"),
        None => raise,
    }
}

fn ensure(
    limit: &str,
    allowed: Option<Bytes>,
    needed: u64,
    way_out: &str,
) -> Result<(), TooLittleMemory> {
    let needed = Bytes::new(needed);
    match allowed.filter(|allowed| *allowed < needed) {
        Some(allowed) => {
            let (limit, way_out) = (limit.into(), way_out.into());
            Err(TooLittleMemory { limit, allowed, needed, way_out })
        }
        None => Ok(()),
    }
}

/// Limits of the control group of this process and of those around it, with the file of each; none where
/// the system does not tell.
fn group_limits() -> Vec<(PathBuf, Bytes)> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"));
    let Some(own) = own else { return Vec::new() };
    let root = Path::new("/sys/fs/cgroup");
    let folders: Vec<PathBuf> = root.join(own).ancestors().map(Path::to_owned).collect();
    let inside = folders.into_iter().filter(|folder| folder.starts_with(root));
    let files = inside.map(|folder| folder.join("memory.max"));
    files
        .filter_map(|file| Some((parsed(&fs::read_to_string(&file).ok()?)?, file)))
        .map(|(most, file)| (file, most))
        .collect()
}

/// The most arenas that the allocator makes.
fn arenas() -> u64 {
    let given = env::var(ARENAS_MAX).ok().and_then(|most| most.parse().ok());
    given.filter(|most| *most > 0).unwrap_or_else(|| {
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        ARENAS_OF_PROCESSOR * processors as u64
    })
}

/// Bytes of address space and of memory that this process has; 0 where the system does not tell.
fn in_use() -> (u64, u64) {
    let pages = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let mut pages = pages.split(' ').map(|count| count.parse().unwrap_or(0));
    let mut bytes = || pages.next().unwrap_or(0) * rustix::param::page_size() as u64;
    (bytes(), bytes())
}

/// The number in a file of a control group; None for `max`.
fn parsed(text: &str) -> Option<Bytes> {
    text.trim().parse().ok().map(Bytes::new)
}

/// Number of clients for which the open files of this process suffice, if fewer than its limits allow.
pub fn clients_with_files(limits: &Limits) -> Option<u64> {
    let most = getrlimit(Resource::Nofile).current?;
    let clients = most.saturating_sub(OTHER_FILES) / CONNECTION_FILES;
    (clients < limits.connections_max as u64).then_some(clients)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_limit_below_need_names_remedy() {
        assert_eq!(ensure("x", None, 5, ""), Ok(()));
        assert_eq!(ensure("x", Some(Bytes::new(5)), 5, ""), Ok(()));
        let error = ensure("RLIMIT_AS", Some(Bytes::new(4_000_000)), 5_000_000, "raise it");
        let said = error.unwrap_err().to_string();
        assert!(said.starts_with("RLIMIT_AS limits this process to 4.00 MB"), "{said}");
        assert!(said.contains("may take 5.00 MB") && said.ends_with("raise it"), "{said}");
    }

    #[test]
    fn memory_limit_suggests_sufficient_arenas() {
        let needed_with = |arenas| 100 + 10 * arenas;
        let says = |allowed| way_out(Some(Bytes::new(allowed)), 8, needed_with);
        assert!(says(139).ends_with("or set MALLOC_ARENA_MAX=3"), "{}", says(139));
        assert_eq!(says(109), "raise it (ulimit -v 1, or unlimited)");
    }

    #[test]
    fn memory_limit_absent_for_unlimited_group() {
        assert_eq!(parsed("max\n"), None);
        assert_eq!(parsed("1073741824\n"), Some(Bytes::new(1 << 30)));
    }
}
