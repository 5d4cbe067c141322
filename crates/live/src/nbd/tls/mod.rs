//! TLS: certificates in a folder, as nbdkit, qemu and libnbd lay them out.
//!
//! ```text
//!   ca-cert.pem                        both: the trusted authorities
//!   ca-crl.pem                         both, optional: revoked certificates, with one list in date
//!                                      for each authority of a chain
//!   server-cert.pem, server-key.pem    server
//!   client-cert.pem, client-key.pem    client, optional: its identity
//! ```
//!
//! TLS 1.2 and 1.3, certificates only: rustls has no pre-shared keys. Sessions are not resumed, so that
//! no state remains of a closed connection.

mod layer;
mod validity;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use freewheel_nbd::{self as protocol, Uri};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{
    CertificateDer, CertificateRevocationListDer, PrivateKeyDer, ServerName, UnixTime,
};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use thiserror::Error;

pub(super) use layer::Layer;

/// Reason why there can be no TLS.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum TlsError {
    /// A file is missing or invalid.
    #[error("{}: {fault}", path.display())]
    File {
        path: PathBuf,
        /// Fault of the file, and what must be there.
        fault: String,
    },
    /// A client was told of no certificates.
    #[error(
        "{uri}: nbds needs the certificates: append tls-certificates=DIR, a folder with ca-cert.pem \
         (pre-shared keys are not supported)"
    )]
    NoCertificates { uri: Box<Uri> },
    /// The name that the certificate would be checked by is none.
    #[error("{uri}: {name:?} cannot stand in a certificate: give another with tls-hostname=NAME")]
    Name { uri: Box<Uri>, name: String },
}

/// Certificates and keys of a server. Where other machines can connect it is always required, and so is a
/// certificate of the client, unless it is [given up](Self::allow_clients_without_certificate).
#[derive(Debug, Clone)]
pub struct ServerTls {
    config: Arc<ServerConfig>,
    required: bool,
    /// Clients must show a certificate.
    verifies: bool,
    /// Also clients of other machines need not show one.
    allows_without: bool,
}

impl ServerTls {
    /// The certificates of a folder; clients may do without TLS where no other machine can connect.
    /// With `verify_peer` a client must show a certificate of the same authority, and so use TLS. A
    /// server's certificate that has expired or is not valid yet is an error.
    pub fn load(folder: &Path, verify_peer: bool) -> Result<Self, TlsError> {
        let (certificates, key) = identity(folder, "server")?;
        if let Some(not_valid) = validity::fault(&certificates, UnixTime::now()) {
            return Err(fault(&folder.join("server-cert.pem"), not_valid));
        }
        let builder = ServerConfig::builder_with_provider(provider());
        let builder = builder.with_safe_default_protocol_versions().expect("ring has both");
        let builder = if verify_peer {
            let (path, roots) = authority(folder)?;
            // Where there are lists, a certificate that none speaks of or whose list is out of date is refused.
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider())
                .with_crls(revoked(folder)?)
                .enforce_revocation_expiration()
                .build()
                .map_err(|error| fault(&path, error))?;
            builder.with_client_cert_verifier(verifier)
        } else {
            builder.with_no_client_auth()
        };
        let mut config = builder
            .with_single_cert(certificates, key)
            .map_err(|error| fault(&folder.join("server-key.pem"), error))?;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Self {
            config: config.into(),
            required: verify_peer,
            verifies: verify_peer,
            allows_without: false,
        })
    }

    /// Serves clients of other machines without a certificate: any machine that reaches the port can read
    /// and write the disk.
    pub fn allow_clients_without_certificate(self) -> Self {
        Self { allows_without: true, ..self }
    }

    /// True if other machines may connect.
    pub(super) fn may_leave_the_loopback(&self) -> bool {
        self.verifies || self.allows_without
    }

    /// Clients must use TLS, wherever they are.
    pub fn required(self) -> Self {
        Self { required: true, ..self }
    }

    pub(super) fn is_required(&self) -> bool {
        self.required
    }

    pub(super) fn connection(&self) -> Result<rustls::Connection, rustls::Error> {
        ServerConnection::new(Arc::clone(&self.config)).map(Into::into)
    }
}

/// The client's end of an encrypted connection to this server.
pub(super) fn client_connection(uri: &Uri) -> Result<rustls::Connection, TlsError> {
    let Some(folder) = &uri.tls_certificates else {
        return Err(TlsError::NoCertificates { uri: uri.clone().into() });
    };
    let folder = Path::new(folder);
    let name = server_name(uri)?;
    let (path, roots) = authority(folder)?;
    let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider())
        .with_crls(revoked(folder)?)
        .enforce_revocation_expiration()
        .build()
        .map_err(|error| fault(&path, error))?;
    let builder = ClientConfig::builder_with_provider(provider());
    let builder = builder.with_safe_default_protocol_versions().expect("ring has both");
    let builder = builder.with_webpki_verifier(verifier);
    let mut config = if folder.join("client-cert.pem").exists() {
        let (certificates, key) = identity(folder, "client")?;
        let with = builder.with_client_auth_cert(certificates, key);
        with.map_err(|error| fault(&folder.join("client-key.pem"), error))?
    } else {
        builder.with_no_client_auth()
    };
    config.resumption = Resumption::disabled();
    let connection = ClientConnection::new(config.into(), name);
    connection.map(Into::into).map_err(|error| fault(folder, error))
}

/// Name that the server's certificate must hold; on a Unix socket `localhost`, as libnbd has it.
fn server_name(uri: &Uri) -> Result<ServerName<'static>, TlsError> {
    let name = match (&uri.tls_hostname, &uri.address) {
        (Some(name), _) => name.clone(),
        (None, protocol::Address::Tcp { host, .. }) => host.clone(),
        (None, protocol::Address::Unix { .. }) => "localhost".into(),
    };
    ServerName::try_from(name.clone())
        .map_err(|_| TlsError::Name { uri: uri.clone().into(), name: name.clone() })
}

fn provider() -> Arc<CryptoProvider> {
    ring::default_provider().into()
}

fn fault(path: &Path, fault: impl ToString) -> TlsError {
    TlsError::File { path: path.into(), fault: fault.to_string() }
}

/// Whom to believe, and the file that says it.
fn authority(folder: &Path) -> Result<(PathBuf, RootCertStore), TlsError> {
    let path = folder.join("ca-cert.pem");
    let mut roots = RootCertStore::empty();
    let certificates = certificates(&path)?;
    // The library trusts an authority at any date.
    if let Some(why) = validity::fault(&certificates, UnixTime::now()) {
        return Err(fault(&path, why));
    }
    for certificate in certificates {
        roots.add(certificate).map_err(|error| fault(&path, error))?;
    }
    Ok((path, roots))
}

/// Who an end is: `NAME-cert.pem`, its own certificate first, and `NAME-key.pem`.
fn identity(
    folder: &Path,
    name: &str,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
    let certificates = certificates(&folder.join(format!("{name}-cert.pem")))?;
    let path = folder.join(format!("{name}-key.pem"));
    let key = PrivateKeyDer::from_pem_file(&path);
    let key = key.map_err(|error| pem_fault(&path, "a private key without a password", error))?;
    Ok((certificates, key))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let what = "at least one certificate";
    let all = CertificateDer::pem_file_iter(path).map_err(|error| pem_fault(path, what, error))?;
    let all: Vec<_> =
        all.collect::<Result<_, _>>().map_err(|error| pem_fault(path, what, error))?;
    if all.is_empty() {
        return Err(pem_fault(path, what, pem::Error::NoItemsFound));
    }
    Ok(all)
}

fn revoked(folder: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
    let path = folder.join("ca-crl.pem");
    // A link that leads nowhere is a list that is lost, not one that was never there.
    if fs::symlink_metadata(&path).is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        return Ok(Vec::new());
    }
    let bad = |error| pem_fault(&path, "at least one list of revoked certificates", error);
    let all = CertificateRevocationListDer::pem_file_iter(&path).map_err(bad)?;
    let all: Vec<_> = all.collect::<Result<_, _>>().map_err(bad)?;
    if all.is_empty() { Err(bad(pem::Error::NoItemsFound)) } else { Ok(all) }
}

fn pem_fault(path: &Path, expected: &str, error: pem::Error) -> TlsError {
    match error {
        pem::Error::Io(error) => fault(path, error),
        error => fault(path, format!("{error}; it must hold {expected} (PEM)")),
    }
}
