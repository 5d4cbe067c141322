//! What the system allows a server, before it starts.

use freewheel::serving::{Limits, check_memory, clients_with_files};

use crate::failure::Failure;
use crate::output;

/// Err where the system would end the server for want of memory; a note where it has files for fewer clients
/// than it takes.
pub fn check() -> Result<(), Failure> {
    let limits = Limits::default();
    check_memory(&limits).map_err(Failure::failed)?;
    if let Some(clients) = clients_with_files(&limits) {
        output::note(&format!(
            "the limit of open files (ulimit -n) suffices for about {clients} clients of {}: further ones \
             wait or are refused",
            limits.connections_max
        ));
    }
    Ok(())
}
