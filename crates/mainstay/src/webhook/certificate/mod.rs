//! Certificates that the operator makes for itself.
//!
//! Each certificate comes with an authority of its own that signs it and nothing else ever: the authority's key is thrown
//! away. What is trusted is therefore exactly what is in [`plan`]'s list, and there is nothing else to steal.
//!
//! | module | what it does |
//! |---|---|
//! | [`plan`] | decides when to make one, which to serve, which to trust; pure |
//! | [`secret`] | keeps them where all replicas see them |
//! | [`files`] | takes a certificate from files that somebody else renews |
//! | [`served`] | what connections are answered with, exchanged while they go on |

pub(super) mod files;
pub(super) mod plan;
pub(super) mod secret;
pub(super) mod served;

use std::fmt;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use serde::{Deserialize, Serialize};

/// Clocks differ: a certificate is valid from this long before it was made.
const BACKDATED: SignedDuration = SignedDuration::from_hours(1);

/// A certificate with its key, and the authority that vouches for it. All three are PEM.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Issued {
    pub(super) authority: String,
    pub(super) certificate: String,
    key: String,
    /// The host names and addresses that it is good for, sorted.
    pub(super) names: Vec<String>,
    pub(super) made_at: Timestamp,
    pub(super) expires_at: Timestamp,
    /// Since when it has been in the list without a gap: since it was made, or since the list was last deleted.
    pub(super) listed_since: Timestamp,
}

impl Issued {
    pub(super) fn key_pem(&self) -> &str {
        &self.key
    }
}

/// Never shows the key.
impl fmt::Debug for Issued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issued")
            .field("names", &self.names)
            .field("made_at", &self.made_at)
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

/// Making a certificate failed.
#[derive(Debug, thiserror::Error)]
#[error("making a certificate for {names}")]
pub struct IssueError {
    names: String,
    source: rcgen::Error,
}

/// Makes a certificate with an authority of its own. The keys are random.
pub(super) fn issue(names: &[String], now: Timestamp, lifetime: Duration) -> Result<Issued, IssueError> {
    make(names, now, lifetime).map_err(|source| IssueError { names: names.join(", "), source })
}

fn make(names: &[String], now: Timestamp, lifetime: Duration) -> Result<Issued, rcgen::Error> {
    let expires_at = now.checked_add(lifetime).unwrap_or(Timestamp::MAX);
    let from = now.checked_sub(BACKDATED).unwrap_or(Timestamp::MIN);
    // The serial part tells authorities of the same operator apart where they are trusted side by side.
    let title = format!("mainstay {} {}", names.first().map_or("", String::as_str), now.as_second());
    // In whole seconds, as certificates have it.
    let date = |at: Timestamp| {
        let seconds = u64::try_from(at.as_second()).unwrap_or(0);
        rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds)
    };
    let limited = |names: Vec<String>| -> Result<CertificateParams, rcgen::Error> {
        let mut params = CertificateParams::new(names)?;
        params.not_before = date(from);
        params.not_after = date(expires_at);
        Ok(params)
    };

    let mut authority = limited(Vec::new())?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    authority.distinguished_name.push(DnType::CommonName, title);
    let authority_key = KeyPair::generate()?;
    let authority_pem = authority.self_signed(&authority_key)?.pem();
    let issuer = Issuer::new(authority, authority_key);

    let mut leaf = limited(names.to_vec())?;
    // Names may be longer than the 64 characters of a common name; clients look at alternative names only.
    leaf.distinguished_name.push(DnType::CommonName, "webhook");
    leaf.use_authority_key_identifier_extension = true;
    leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate()?;
    let certificate = leaf.signed_by(&key, &issuer)?.pem();

    let mut names = names.to_vec();
    names.sort();
    Ok(Issued {
        authority: authority_pem,
        certificate,
        key: key.serialize_pem(),
        names,
        made_at: now,
        expires_at,
        listed_since: now,
    })
}

#[cfg(test)]
mod tests {
    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::ServerCertVerifier as _;
    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};

    use super::*;

    fn verify(issued: &Issued, name: &str, at: Timestamp) -> Result<(), rustls::Error> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(issued.authority.as_bytes()).unwrap()).unwrap();
        let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider).build().unwrap();
        let leaf = CertificateDer::from_pem_slice(issued.certificate.as_bytes()).unwrap();
        let at = UnixTime::since_unix_epoch(Duration::from_secs(at.as_second().try_into().unwrap()));
        let name = ServerName::try_from(name.to_owned()).unwrap();
        verifier.verify_server_cert(&leaf, &[], &name, &[], at).map(|_| ())
    }

    #[test]
    fn a_certificate_is_good_for_its_names_and_its_time() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let names = ["hooks.shop.svc".to_owned(), "127.0.0.1".to_owned()];
        let issued = issue(&names, now, Duration::from_mins(10)).unwrap();
        let at = |seconds| now + SignedDuration::from_secs(seconds);
        for name in ["hooks.shop.svc", "127.0.0.1"] {
            assert_eq!(verify(&issued, name, now), Ok(()));
            assert_eq!(verify(&issued, name, at(599)), Ok(()));
        }
        assert!(verify(&issued, "other.shop.svc", now).is_err());
        assert!(verify(&issued, "hooks.shop.svc", at(601)).is_err());
        // A caller whose clock is behind accepts it too.
        assert_eq!(verify(&issued, "hooks.shop.svc", at(-3000)), Ok(()));
    }

    #[test]
    fn the_key_is_not_shown() {
        let issued = issue(&["a".to_owned()], Timestamp::UNIX_EPOCH, Duration::from_mins(1)).unwrap();
        assert!(!format!("{issued:?}").contains("PRIVATE"));
    }
}
