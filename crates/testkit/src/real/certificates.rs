//! The keys and certificates of one control plane, made anew for each.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// A certificate or key could not be made or written.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The certificate itself failed.
    #[error("making the control plane's certificates")]
    Make(#[from] rcgen::Error),
    /// Writing a file failed.
    #[error("writing {1}")]
    Write(#[source] io::Error, PathBuf),
}

/// PEM texts that the kubeconfig carries; the server's own are only on disk.
pub(super) struct Certificates {
    pub(super) ca: String,
    pub(super) admin: Pair,
}

/// A certificate with its key, both PEM.
pub(super) struct Pair {
    pub(super) certificate: String,
    pub(super) key: String,
}

/// Makes everything and writes what the programs read: `ca.crt`, `server.crt`, `server.key`, and
/// `accounts.key` with `accounts.pub`, which sign the tokens of service accounts.
pub(super) fn issue_certificates(directory: &Path) -> Result<Certificates, CertificateError> {
    let write = |name: &str, text: &str| {
        let path = directory.join(name);
        fs::write(&path, text).map_err(|error| CertificateError::Write(error, path))
    };
    let (ca, issuer) = authority()?;
    let server = leaf(
        &issuer,
        ("kube-apiserver", None),
        &["127.0.0.1", "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"],
        ExtendedKeyUsagePurpose::ServerAuth,
    )?;
    // Members of system:masters may do everything, whatever the authoriser says.
    let admin = leaf(&issuer, ("admin", Some("system:masters")), &[], ExtendedKeyUsagePurpose::ClientAuth)?;
    write("ca.crt", &ca)?;
    write("server.crt", &server.certificate)?;
    write("server.key", &server.key)?;
    let accounts = KeyPair::generate()?;
    write("accounts.key", &accounts.serialize_pem())?;
    write("accounts.pub", &accounts.public_key_pem())?;
    Ok(Certificates { ca, admin })
}

fn authority() -> Result<(String, Issuer<'static, KeyPair>), rcgen::Error> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "mainstay-testkit");
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?.pem();
    Ok((certificate, Issuer::new(params, key)))
}

fn leaf(
    issuer: &Issuer<'static, KeyPair>,
    (name, group): (&str, Option<&str>),
    hosts: &[&str],
    purpose: ExtendedKeyUsagePurpose,
) -> Result<Pair, rcgen::Error> {
    let mut params = CertificateParams::new(hosts.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    params.distinguished_name.push(DnType::CommonName, name);
    if let Some(group) = group {
        params.distinguished_name.push(DnType::OrganizationName, group);
    }
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    params.extended_key_usages = vec![purpose];
    let key = KeyPair::generate()?;
    Ok(Pair { certificate: params.signed_by(&key, issuer)?.pem(), key: key.serialize_pem() })
}
