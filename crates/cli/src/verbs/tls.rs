//! The options by which a verb that serves is given its certificates.

use std::path::PathBuf;

use clap::Args;
use freewheel::live::nbd::ServerTls;

use crate::failure::Failure;

/// Certificates for TLS.
#[derive(Args)]
pub struct TlsArgs {
    /// Offer TLS with the certificates of this folder: server-cert.pem, server-key.pem, and for
    /// --tls-verify-peer ca-cert.pem (and ca-crl.pem, if there); pre-shared keys are not supported
    #[arg(long, value_name = "DIR")]
    tls_certificates: Option<PathBuf>,
    /// Refuse clients that do not show a certificate signed by ca-cert.pem
    #[arg(long, requires = "tls_certificates")]
    tls_verify_peer: bool,
    /// Refuse clients without TLS on a Unix socket and the loopback too, as elsewhere always
    #[arg(long, requires = "tls_certificates")]
    tls_required: bool,
}

impl TlsArgs {
    /// What they say; `None` without certificates.
    pub fn load(&self) -> Result<Option<ServerTls>, Failure> {
        let Some(folder) = &self.tls_certificates else { return Ok(None) };
        let tls = ServerTls::load(folder, self.tls_verify_peer)?;
        Ok(Some(if self.tls_required { tls.required() } else { tls }))
    }
}
