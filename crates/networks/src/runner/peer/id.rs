//! Names that follow from content: of peers, and of blocks.

use ring::digest::{SHA256, digest};
use ring::error::Unspecified;
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};

use super::settings::Origin;

/// What precedes a SHA-256 digest of 32 bytes in a multihash.
const SHA2_256: [u8; 2] = [0x12, 0x20];
/// What precedes the multihash in a CID of version 1 of raw bytes.
const RAW_V1: [u8; 2] = [0x01, 0x55];

/// The id of a peer: 46 characters that begin with `Qm`.
pub(super) fn peer_id(origin: &Origin) -> Result<String, Unspecified> {
    let mut key = [0; 32];
    match origin {
        Origin::Chance => SystemRandom::new().fill(&mut key)?,
        Origin::Named(secret, name) => {
            let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.0.as_bytes()), name.as_bytes());
            key.copy_from_slice(tag.as_ref().get(..32).ok_or(Unspecified)?);
        }
    }
    // Of the key's digest, so that the id says nothing about the key.
    Ok(base58(&multihash(&key)))
}

/// A number by chance.
pub(super) fn chance() -> Result<u64, Unspecified> {
    let mut bytes = [0; 8];
    SystemRandom::new().fill(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// The name of a block, as Kubo gives it: `bafkrei…`.
pub(super) fn cid(block: &[u8]) -> String {
    format!("b{}", base32(&[RAW_V1.as_slice(), &multihash(block)].concat()))
}

fn multihash(content: &[u8]) -> Vec<u8> {
    [SHA2_256.as_slice(), digest(&SHA256, content).as_ref()].concat()
}

/// Base 58 with the alphabet of Bitcoin.
fn base58(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
    // The digits of the number, the least first.
    let mut digits: Vec<u8> = Vec::new();
    for byte in bytes {
        let mut carry = u32::from(*byte);
        for digit in &mut digits {
            carry += u32::from(*digit) << 8;
            // Below 58 and so a byte.
            *digit = (carry % 58) as u8;
            carry /= 58;
        }
        while carry > 0 {
            digits.push((carry % 58) as u8);
            carry /= 58;
        }
    }
    let zeros = bytes.iter().take_while(|byte| **byte == 0).map(|_| 0);
    let digits = zeros.chain(digits.into_iter().rev());
    digits.map(|digit| char::from(ALPHABET[usize::from(digit)])).collect()
}

/// Base 32 in lower case without padding.
fn base32(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let digits = bytes.chunks(5).flat_map(|chunk| {
        let mut group = [0; 8];
        group[3..3 + chunk.len()].copy_from_slice(chunk);
        let number = u64::from_be_bytes(group);
        let count = (chunk.len() * 8).div_ceil(5);
        (0..count).map(move |place| ((number >> (35 - 5 * place)) & 31) as usize)
    });
    digits.map(|digit| char::from(ALPHABET[digit])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::peer::settings::NetworkSecret;

    #[test]
    fn ids_follow_from_secret_and_name_and_are_otherwise_new() {
        let named = |secret: &str, name: &str| {
            peer_id(&Origin::Named(NetworkSecret(secret.into()), name.into())).unwrap()
        };
        let one = named("s", "peers-0-0");
        assert_eq!(one, named("s", "peers-0-0"));
        assert_ne!(one, named("s", "peers-0-1"));
        assert_ne!(one, named("t", "peers-0-0"));
        assert_ne!(peer_id(&Origin::Chance), peer_id(&Origin::Chance));
        for id in [one, peer_id(&Origin::Chance).unwrap()] {
            assert!(id.len() == 46 && id.starts_with("Qm"), "{id}");
        }
    }

    #[test]
    fn known_content_has_its_known_name() {
        // What `ipfs block put` says of these.
        assert_eq!(cid(b"hello world"), "bafkreifzjut3te2nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e");
        assert_eq!(cid(b""), "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku");
        assert_eq!(base58(b"\0\0Hello World!"), "112NEpo7TZRRrLZSi2U");
        assert_eq!(base32(b"fooba"), "mzxw6ytb");
        assert_eq!(base32(b"foob"), "mzxw6yq");
    }
}
