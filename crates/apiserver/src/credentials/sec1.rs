//! From PKCS#8 to SEC 1: the two forms in which a private key of an elliptic curve is written.
//!
//! `ring` makes the first (`BEGIN PRIVATE KEY`). Clients that look at the heading to find out what kind of key they have,
//! fabric8 among them, take it for RSA; of the second (`BEGIN EC PRIVATE KEY`) the heading says what it is. The key itself
//! is inside of both in the same form, but for the name of its curve, which PKCS#8 has outside.

use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const OCTETS: u8 = 0x04;
const IDENTIFIER: u8 = 0x06;
/// The optional parts of a key: its curve, and the public key.
const CURVE: u8 = 0xa0;
const PUBLIC: u8 = 0xa1;
/// 1.2.840.10045.2.1: any elliptic curve.
const ELLIPTIC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];

/// The same key as SEC 1. None if it is none of an elliptic curve in PKCS#8.
pub(super) fn from_pkcs8_pem(pem: &str) -> Option<String> {
    let der = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).ok()?;
    let sec1 = from_pkcs8(der.secret_pkcs8_der())?;
    Some(render_pem("EC PRIVATE KEY", &sec1))
}

fn from_pkcs8(der: &[u8]) -> Option<Vec<u8>> {
    let (outer, _) = take(der, SEQUENCE)?;
    let (_version, rest) = take(outer, INTEGER)?;
    let (algorithm, rest) = take(rest, SEQUENCE)?;
    let (identifier, parameters) = take(algorithm, IDENTIFIER)?;
    if identifier != ELLIPTIC {
        return None;
    }
    let (curve, _) = take(parameters, IDENTIFIER)?;
    let (inner, _) = take(rest, OCTETS)?;
    let (key, _) = take(inner, SEQUENCE)?;
    let (version, key) = take(key, INTEGER)?;
    let (secret, mut rest) = take(key, OCTETS)?;
    if let Some((_, after)) = take(rest, CURVE) {
        rest = after;
    }
    let mut content = Vec::new();
    put(&mut content, INTEGER, version);
    put(&mut content, OCTETS, secret);
    let mut named = Vec::new();
    put(&mut named, IDENTIFIER, curve);
    put(&mut content, CURVE, &named);
    if let Some((public, _)) = take(rest, PUBLIC) {
        put(&mut content, PUBLIC, public);
    }
    let mut out = Vec::new();
    put(&mut out, SEQUENCE, &content);
    Some(out)
}

/// The content of the next element, if it has this tag, and what follows it.
fn take(input: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (first, rest) = input.split_first()?;
    if *first != tag {
        return None;
    }
    let (length, rest) = rest.split_first()?;
    let (length, rest) = match *length {
        short @ 0..=0x7f => (usize::from(short), rest),
        // The number of bytes that the length takes. Keys are far shorter than two can say.
        long @ (0x81 | 0x82) => {
            let (bytes, rest) = rest.split_at_checked(usize::from(long & 0x7f))?;
            (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

fn put(out: &mut Vec<u8>, tag: u8, content: &[u8]) {
    out.push(tag);
    let [high, low] = u16::try_from(content.len()).unwrap_or(u16::MAX).to_be_bytes();
    match (high, low) {
        (0, 0..=0x7f) => out.push(low),
        (0, _) => out.extend([0x81, low]),
        _ => out.extend([0x82, high, low]),
    }
    out.extend_from_slice(content);
}

fn render_pem(label: &str, der: &[u8]) -> String {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    let mut out = format!("-----BEGIN {label}-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(64));
        out.push_str(line);
        out.push('\n');
        rest = after;
    }
    out + &format!("-----END {label}-----\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::crypto::ring::sign::any_supported_type;
    use rustls::pki_types::PrivateKeyDer;

    #[test]
    fn it_is_the_same_key_under_another_heading() {
        for _ in 0..20 {
            let made = rcgen::KeyPair::generate().unwrap();
            let pem = from_pkcs8_pem(&made.serialize_pem()).unwrap();
            assert!(pem.starts_with("-----BEGIN EC PRIVATE KEY-----\n"), "{pem}");
            assert!(pem.lines().all(|line| line.len() <= 64), "{pem}");
            let read = PrivateKeyDer::from_pem_slice(pem.as_bytes()).unwrap();
            assert!(matches!(read, PrivateKeyDer::Sec1(_)));
            let before = PrivateKeyDer::try_from(made.serialize_der()).unwrap();
            let public = |key| any_supported_type(key).unwrap().public_key().unwrap().as_ref().to_vec();
            assert_eq!(public(&read), public(&before));
        }
    }

    #[test]
    fn what_openssl_writes_is_written() {
        // Both by `openssl ecparam -name prime256v1 -genkey` and `openssl pkcs8 -topk8 -nocrypt`.
        let pkcs8 = "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgNCzSdf7qEW3hap3L\n\
                     yvji3xaOGgAxQmlMKwCjS/VXbcChRANCAATPc+P3yM78YZS5ecdjVO7QtqyGr5p/\n\
                     POh78AQgdIXH0F+F1q1qoWf1tTLk6/mGgSHwykKE9GwWQeci+AkbM/p7\n-----END PRIVATE KEY-----\n";
        let sec1 = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIDQs0nX+6hFt4Wqdy8r44t8WjhoAMUJpTCsAo0v1V23AoAoGCCqGSM49\n\
                     AwEHoUQDQgAEz3Pj98jO/GGUuXnHY1Tu0Lashq+afzzoe/AEIHSFx9BfhdataqFn\n\
                     9bUy5Ov5hoEh8MpChPRsFkHnIvgJGzP6ew==\n-----END EC PRIVATE KEY-----\n";
        assert_eq!(from_pkcs8_pem(pkcs8).as_deref(), Some(sec1));
    }

    #[test]
    fn other_keys_and_broken_ones_are_left_alone() {
        let whole = rcgen::KeyPair::generate().unwrap().serialize_der();
        for length in 0..whole.len() {
            let _ = from_pkcs8(&whole[..length]);
        }
        let edwards = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        assert_eq!(from_pkcs8_pem(&edwards.serialize_pem()), None);
        assert_eq!(from_pkcs8_pem("no key"), None);
    }
}
