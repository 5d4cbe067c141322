//! The options by which a verb that serves is given its certificates.

use std::path::PathBuf;

use clap::Args;
use freewheel::serving::ServerTls;

use crate::failure::Failure;

/// Certificates for TLS.
#[derive(Args)]
pub struct TlsArgs {
    /// Offer TLS with the certificates of this folder: server-cert.pem, server-key.pem, and for
    /// --tls-verify-peer ca-cert.pem (and ca-crl.pem, if there, which then must have a list that is in
    /// date for each authority); they are read at the start; pre-shared keys are not supported
    #[arg(long, value_name = "DIR")]
    tls_certificates: Option<PathBuf>,
    /// Refuse clients that do not show a certificate signed by ca-cert.pem; required where other
    /// machines can connect
    #[arg(long, requires = "tls_certificates")]
    tls_verify_peer: bool,
    /// Refuse clients without TLS on a Unix socket and the loopback too, as elsewhere always
    #[arg(long, requires = "tls_certificates")]
    tls_required: bool,
    /// Serve clients without a certificate even where other machines can connect: ANYONE WHO REACHES THE
    /// PORT READS AND WRITES THE DISK. TLS then hides the data from others on the way, and no more
    #[arg(long, requires = "tls_certificates", conflicts_with = "tls_verify_peer")]
    allow_clients_without_certificate: bool,
}

impl TlsArgs {
    /// True if clients that show no certificate are served wherever they are.
    pub fn lets_anybody_in(&self) -> bool {
        self.allow_clients_without_certificate
    }

    /// The certificates; `None` without a folder.
    pub fn load(&self) -> Result<Option<ServerTls>, Failure> {
        let Some(folder) = &self.tls_certificates else { return Ok(None) };
        let mut tls = ServerTls::load(folder, self.tls_verify_peer)?;
        if self.tls_required {
            tls = tls.required();
        }
        if self.allow_clients_without_certificate {
            tls = tls.allow_clients_without_certificate();
        }
        Ok(Some(tls))
    }
}
