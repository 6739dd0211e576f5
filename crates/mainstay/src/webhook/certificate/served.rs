//! The certificate that connections are answered with. It is exchanged as a whole: a handshake sees the one before or the
//! one after, and connections that are open go on.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

/// A certificate and a key that cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum PairError {
    /// The certificates are not PEM.
    #[error("reading the certificates")]
    Certificate(#[source] rustls::pki_types::pem::Error),
    /// There is no certificate in the text.
    #[error("there is no certificate")]
    Empty,
    /// The key is not PEM, or there is none.
    #[error("reading the private key")]
    Key(#[source] rustls::pki_types::pem::Error),
    /// The key is of no use, or belongs to another certificate.
    #[error("putting the certificate and its private key together")]
    Together(#[source] rustls::Error),
}

/// Certificates, the serving one first, and its key; all PEM.
pub(crate) fn certified(certificates: &str, key: &str) -> Result<CertifiedKey, PairError> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(certificates.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(PairError::Certificate)?;
    if chain.is_empty() {
        return Err(PairError::Empty);
    }
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(PairError::Key)?;
    CertifiedKey::from_der(chain, key, &provider()).map_err(PairError::Together)
}

pub(crate) fn provider() -> CryptoProvider {
    rustls::crypto::ring::default_provider()
}

/// What is served now. Handshakes fail until there is something.
#[derive(Default)]
pub(crate) struct ServedCertificate(RwLock<Option<Arc<CertifiedKey>>>);

impl ServedCertificate {
    pub(crate) fn exchange(&self, certified: CertifiedKey) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(certified));
    }
}

impl ResolvesServerCert for ServedCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Never shows the key.
impl fmt::Debug for ServedCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServedCertificate")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;

    use super::super::issue;
    use super::*;

    #[test]
    fn a_key_of_another_certificate_is_refused() {
        let make = || issue(&["a".to_owned()], Timestamp::UNIX_EPOCH, Duration::from_mins(1)).unwrap();
        let (one, other) = (make(), make());
        assert!(certified(&one.certificate, one.key_pem()).is_ok());
        let error = certified(&one.certificate, other.key_pem()).unwrap_err();
        assert!(matches!(error, PairError::Together(_)), "{error}");
        assert!(matches!(certified("", one.key_pem()), Err(PairError::Empty)));
        assert!(matches!(certified(&one.certificate, ""), Err(PairError::Key(_))));
    }
}
