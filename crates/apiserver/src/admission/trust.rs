//! Which certificates of webhooks are believed.
//!
//! With a `caBundle`, exactly what it vouches for; without, what the system trusts. A server certificate
//! that stands in the bundle itself is believed, whoever signed it and whether or not it is marked as an authority, as Go
//! has it. Self-signed certificates usually are so marked, and envtest puts the serving certificate of its webhooks into the
//! bundle in place of the authority's.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error as TlsError, RootCertStore, SignatureScheme,
};
use std::sync::Arc;

/// The TLS side of a client that believes what `ca_bundle` (PEM in base64) vouches for.
pub(super) fn client_config(ca_bundle: &str) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = if ca_bundle.is_empty() {
        let system = rustls_platform_verifier::Verifier::new(provider.clone());
        Arc::new(system.map_err(|error| error.to_string())?)
    } else {
        Arc::new(Bundle::read(ca_bundle, provider.clone())?)
    };
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

#[derive(Debug)]
struct Bundle {
    authorities: Arc<WebPkiServerVerifier>,
    certificates: Vec<CertificateDer<'static>>,
}

impl Bundle {
    fn read(ca_bundle: &str, provider: Arc<CryptoProvider>) -> Result<Self, String> {
        let unreadable = || "unable to load root certificates: unable to parse bytes as PEM block".to_owned();
        let pem = STANDARD.decode(ca_bundle).map_err(|_| unreadable())?;
        let certificates: Vec<CertificateDer<'static>> =
            CertificateDer::pem_slice_iter(&pem).collect::<Result<_, _>>().map_err(|_| unreadable())?;
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates.iter().cloned());
        if roots.is_empty() {
            return Err(unreadable());
        }
        let authorities = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Bundle { authorities, certificates })
    }
}

impl ServerCertVerifier for Bundle {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        let verdict =
            self.authorities.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verdict {
            // Dates are checked before a path to an authority is looked for, so they are right when none is found.
            Err(error) if has_no_issuer(&error) && self.certificates.contains(end_entity) => {
                let certificate = ParsedCertificate::try_from(end_entity)?;
                rustls::client::verify_server_name(&certificate, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.authorities.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.authorities.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

/// Whether a certificate was refused only because nobody in the bundle may have signed it: its issuer is not there, another
/// certificate has the issuer's name, or it is marked as an authority itself.
fn has_no_issuer(error: &TlsError) -> bool {
    match error {
        TlsError::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => {
            true
        }
        TlsError::InvalidCertificate(CertificateError::Other(other)) => {
            other.0.downcast_ref::<webpki::Error>() == Some(&webpki::Error::CaUsedAsEndEntity)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{
        BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    };
    use std::time::Duration;

    /// A certificate for `localhost`, signed by an authority of this common name that nobody is told of.
    fn leaf(authority: &str, change: impl FnOnce(&mut CertificateParams)) -> rcgen::Certificate {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, authority);
        let issuer = Issuer::new(params, KeyPair::generate().unwrap());
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, "webhook");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        change(&mut params);
        params.signed_by(&KeyPair::generate().unwrap(), &issuer).unwrap()
    }

    /// What becomes of a server that shows `shown` to whoever has `bundle`.
    fn verdict(bundle: &rcgen::Certificate, shown: &rcgen::Certificate, name: &str) -> Result<(), TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let bundle = Bundle::read(&STANDARD.encode(bundle.pem()), provider).unwrap();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let now = UnixTime::since_unix_epoch(Duration::from_hours(24 * 365 * 50));
        bundle.verify_server_cert(shown.der(), &[], &name, &[], now).map(drop)
    }

    #[test]
    fn a_serving_certificate_in_the_bundle_is_believed_whoever_signed_it() {
        // The second has the name of its issuer, so that the wrong key is tried on it.
        for authority in ["authority", "webhook"] {
            let serving = leaf(authority, |_| ());
            assert_eq!(verdict(&serving, &serving, "localhost"), Ok(()), "{authority}");
        }
        let marked = leaf("authority", |params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained));
        assert_eq!(verdict(&marked, &marked, "localhost"), Ok(()));
    }

    #[test]
    fn being_in_the_bundle_excuses_nothing_else() {
        let serving = leaf("authority", |_| ());
        assert!(verdict(&serving, &serving, "elsewhere").is_err(), "another name");
        assert!(
            verdict(&serving, &leaf("authority", |_| ()), "localhost").is_err(),
            "not the one in the bundle"
        );
        let expired = leaf("authority", |params| params.not_after = rcgen::date_time_ymd(2001, 1, 1));
        assert!(verdict(&expired, &expired, "localhost").is_err(), "expired");
        let purpose = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let client = leaf("authority", |params| params.extended_key_usages = purpose);
        assert!(verdict(&client, &client, "localhost").is_err(), "for clients only");
    }
}
