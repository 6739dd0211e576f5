//! The keys, certificates and token by which a served API and its clients know each other.

mod sec1;

use base64::Engine as _;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Why credentials could not be had.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// A certificate could not be made.
    #[error("making certificates")]
    Make(#[from] rcgen::Error),
    /// The file that keeps them cannot be read or written.
    #[error("keeping credentials in {path}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file that keeps them does not hold credentials.
    #[error("{path} does not hold credentials")]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

/// A certificate and its key, both PEM.
#[derive(Clone, Serialize, Deserialize)]
pub struct Pair {
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

/// Everything that a served API and an administrator need to trust each other.
#[derive(Clone, Serialize, Deserialize)]
pub struct Credentials {
    /// The authority's certificate, PEM.
    pub ca: String,
    /// What the server shows.
    pub server: Pair,
    /// What an administrator shows.
    pub admin: Pair,
    /// What an administrator may send instead.
    pub token: String,
}

// Keys and tokens do not belong in logs.
impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Credentials(..)")
    }
}

impl std::fmt::Debug for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pair(..)")
    }
}

impl Credentials {
    /// Fresh ones, for servers on this machine.
    pub fn generate() -> Result<Credentials, CredentialsError> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "kubernetes-ca");
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate()?;
        let ca = params.self_signed(&key)?.pem();
        // A private key is as good a source of randomness as any, and one that is at hand.
        let seed = KeyPair::generate()?.serialize_der();
        let token = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(&seed[seed.len() - 32..]);
        let issuer = Issuer::new(params, key);
        let hosts =
            ["127.0.0.1", "::1", "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        Ok(Credentials {
            server: leaf(&issuer, ("kube-apiserver", None), &hosts, ExtendedKeyUsagePurpose::ServerAuth)?,
            admin: leaf(
                &issuer,
                ("system:admin", Some("system:masters")),
                &[],
                ExtendedKeyUsagePurpose::ClientAuth,
            )?,
            ca,
            token,
        })
    }

    /// Those that a file keeps, or fresh ones that it keeps from now on, readable by its owner only.
    pub fn load_or_generate(path: &Path) -> Result<Credentials, CredentialsError> {
        let file = |source| CredentialsError::File { path: path.to_owned(), source };
        match std::fs::read(path) {
            Ok(text) => serde_json::from_slice(&text)
                .map_err(|source| CredentialsError::Content { path: path.to_owned(), source }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let credentials = Credentials::generate()?;
                let text = serde_json::to_vec(&credentials)
                    .map_err(|source| CredentialsError::Content { path: path.to_owned(), source })?;
                write_private(path, &text).map_err(file)?;
                Ok(credentials)
            }
            Err(error) => Err(file(error)),
        }
    }

    /// A kubeconfig for an administrator of the server at `url`, with everything in it.
    ///
    /// Its current context uses the token alone, which every client can use. A client that finds a certificate must read
    /// its key, and no form of an elliptic-curve key is read by all: fabric8 needs another library for any. Over HTTPS the
    /// certificate has a context of its own, `mainstay-certificate`.
    pub fn kubeconfig(&self, url: &str) -> String {
        let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
        let secure = url.starts_with("https:");
        let (authority, user, context) = if secure {
            let authority = format!("\n    certificate-authority-data: {}", encode(&self.ca));
            let user = format!(
                "- name: admin-certificate\n  user:\n    client-certificate-data: {}\n    client-key-data: {}\n",
                encode(&self.admin.certificate),
                encode(&self.admin.client_key())
            );
            let context = "- name: mainstay-certificate\n  context:\n    cluster: mainstay\n    \
                           user: admin-certificate\n";
            (authority, user, context)
        } else {
            (String::new(), String::new(), "")
        };
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: mainstay\nclusters:\n- name: mainstay\n  cluster:\n    \
             server: {url}{authority}\nusers:\n- name: admin\n  user:\n    token: {}\n{user}contexts:\n- \
             name: mainstay\n  context:\n    cluster: mainstay\n    user: admin\n{context}",
            self.token
        )
    }
}

impl Pair {
    /// The key in the form that most clients read. Directories made by earlier versions keep it in another.
    pub fn client_key(&self) -> String {
        sec1::from_pkcs8_pem(&self.key).unwrap_or_else(|| self.key.clone())
    }
}

/// Writes a file that only its owner can read, whole or not at all.
pub fn write_private(path: &Path, text: &[u8]) -> std::io::Result<()> {
    use std::io::Write as _;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        std::fs::create_dir_all(parent)?;
    }
    let partial = path.with_extension("partial");
    let mut file = options.open(&partial)?;
    file.write_all(text)?;
    file.sync_all()?;
    std::fs::rename(&partial, path)
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
