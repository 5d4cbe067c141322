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
        Self::with_authority(server_name, |_| {})
    }

    /// Certificates of an authority whose own certificate is changed in some way.
    pub fn with_authority(server_name: &str, change: impl FnOnce(&mut CertificateParams)) -> Self {
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        change(&mut authority);
        let key = KeyPair::generate().unwrap();
        let issuer = CertifiedIssuer::self_signed(authority, key).unwrap();
        let pki = Self { folder: tempfile::tempdir().unwrap(), issuer };
        pki.write("ca-cert.pem", &pki.issuer.pem());
        let end = |end| pki.path().join(end);
        pki.sign(&end("server"), server_name, ExtendedKeyUsagePurpose::ServerAuth, 1, |_| {});
        pki.sign(&end("client"), "client", ExtendedKeyUsagePurpose::ClientAuth, 2, |_| {});
        pki
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A folder with the authority only, for a client without a certificate.
    pub fn anonymous(&self) -> PathBuf {
        let folder = self.path().join("anonymous");
        fs::create_dir_all(&folder).unwrap();
        fs::copy(self.path().join("ca-cert.pem"), folder.join("ca-cert.pem")).unwrap();
        folder
    }

    /// The client's certificate is believed no more.
    pub fn revoke_client(&self) {
        self.publish_list(|_| {});
    }

    /// A list of revoked certificates, in which the client's stands, changed in some way.
    pub fn publish_list(&self, change: impl FnOnce(&mut CertificateRevocationListParams)) {
        self.publish_list_of(self, change);
    }

    /// As above, but it is the list of another authority.
    pub fn publish_list_of(
        &self,
        authority: &Self,
        change: impl FnOnce(&mut CertificateRevocationListParams),
    ) {
        let mut params = CertificateRevocationListParams {
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
        change(&mut params);
        let list = params.signed_by(&authority.issuer).unwrap();
        self.write("ca-crl.pem", &list.pem().unwrap());
    }

    /// A folder of a client whose certificate this authority signed, changed in some way.
    pub fn client(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> PathBuf {
        let folder = self.path().join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::copy(self.path().join("ca-cert.pem"), folder.join("ca-cert.pem")).unwrap();
        self.sign(&folder.join("client"), "client", ExtendedKeyUsagePurpose::ClientAuth, 2, change);
        folder
    }

    /// Another certificate for the server, changed in some way.
    pub fn renew_server(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) {
        let end = self.path().join("server");
        self.sign(&end, name, ExtendedKeyUsagePurpose::ServerAuth, 3, change);
    }

    fn sign(
        &self,
        end: &Path,
        name: &str,
        purpose: ExtendedKeyUsagePurpose,
        serial: u64,
        change: impl FnOnce(&mut CertificateParams),
    ) {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.extended_key_usages = vec![purpose];
        params.serial_number = Some(SerialNumber::from(serial));
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let file = |kind: &str| format!("{}-{kind}.pem", end.display());
        fs::write(file("cert"), certificate.pem()).unwrap();
        fs::write(file("key"), key.serialize_pem()).unwrap();
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path().join(name), text).unwrap();
    }
}
