//! Certificates made for a test, in folders as a server and a client want them.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer,
    ExtendedKeyUsagePurpose, IsCa, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams,
    SerialNumber, date_time_ymd,
};

/// An authority, with a folder in which it has signed for both ends.
pub struct Pki {
    folder: tempfile::TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Pki {
    /// Certificates of a server with this name and of a client.
    pub fn new(server_name: &str) -> Self {
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().unwrap();
        let issuer = CertifiedIssuer::self_signed(authority, key).unwrap();
        let pki = Self { folder: tempfile::tempdir().unwrap(), issuer };
        pki.write("ca-cert.pem", &pki.issuer.pem());
        pki.sign("server", server_name, ExtendedKeyUsagePurpose::ServerAuth, 1);
        pki.sign("client", "client", ExtendedKeyUsagePurpose::ClientAuth, 2);
        pki
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A folder with the authority only: a client without a certificate of its own.
    pub fn anonymous(&self) -> PathBuf {
        let folder = self.path().join("anonymous");
        fs::create_dir_all(&folder).unwrap();
        fs::copy(self.path().join("ca-cert.pem"), folder.join("ca-cert.pem")).unwrap();
        folder
    }

    /// The client's certificate is believed no more.
    pub fn revoke_client(&self) {
        let params = CertificateRevocationListParams {
            this_update: date_time_ymd(2020, 1, 1),
            next_update: date_time_ymd(2500, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: vec![RevokedCertParams {
                serial_number: SerialNumber::from(2),
                revocation_time: date_time_ymd(2021, 1, 1),
                reason_code: None,
                invalidity_date: None,
            }],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let list = params.signed_by(&self.issuer).unwrap();
        self.write("ca-crl.pem", &list.pem().unwrap());
    }

    fn sign(&self, end: &str, name: &str, purpose: ExtendedKeyUsagePurpose, serial: u64) {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.extended_key_usages = vec![purpose];
        params.serial_number = Some(SerialNumber::from(serial));
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        self.write(&format!("{end}-cert.pem"), &certificate.pem());
        self.write(&format!("{end}-key.pem"), &key.serialize_pem());
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path().join(name), text).unwrap();
    }
}
