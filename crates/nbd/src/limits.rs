//! Limits of the other side's requests in a session.

/// Bounds on memory and time. In addition to memory of its caller, a session holds at most one message, a
/// list under construction, and one spare payload. The longest payload is
/// [`BlockSizes::payload_max`](crate::BlockSizes::payload_max), so that requests in flight hold at most
/// `in_flight_max` times that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest data of one option or of one reply to an option, in bytes.
    pub option_bytes_max: u32,
    /// Longest name of an export that is taken or sent, in bytes; at most 4096 make sense.
    pub name_bytes_max: u32,
    /// Options before the export is chosen, and of one answer to an option.
    pub options_max: u32,
    /// Most requests at once. At the limit the server takes no further bytes until a reply, and the
    /// client refuses to make requests.
    pub in_flight_max: u32,
    /// Pieces of one structured reply that do not touch, at any time.
    pub fragments_max: u32,
}

impl Default for Limits {
    /// Names as long as the protocol allows; lists of a few thousand exports; a queue depth above
    /// what the kernel and qemu use.
    fn default() -> Self {
        Self {
            option_bytes_max: 64 << 10,
            name_bytes_max: 4096,
            options_max: 4096,
            in_flight_max: 256,
            fragments_max: 4096,
        }
    }
}
