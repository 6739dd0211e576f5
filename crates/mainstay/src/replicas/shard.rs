//! Which shard a parent belongs to, and which replica a shard prefers.
//!
//! Both are pure functions of names, the same in every replica, build and platform: every replica of an operator
//! must come to the same answer, also while an older version of it still runs. The hash is 64-bit FNV-1a with
//! the finaliser of Murmur3 behind it, because the low bits of FNV-1a alone are not spread well enough for a
//! remainder.

use std::fmt;
use std::sync::Arc;

/// One of an operator's shards, counted from zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard(u32);

impl Shard {
    pub(super) fn new(index: u32) -> Self {
        Self(index)
    }

    /// Its number, from zero.
    pub fn index(self) -> u32 {
        self.0
    }

    /// The shard of a parent, where an operator has `count` of them.
    pub fn of(uid: &str, count: u32) -> Self {
        let shard = hash(&[uid]) % u64::from(count.max(1));
        // The remainder is smaller than a `u32`, so nothing is cut off.
        Self(u32::try_from(shard).unwrap_or_default())
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The name of one replica in its leases. No two processes have the same one. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity(Arc<str>);

impl Identity {
    pub(super) fn new(name: &str) -> Self {
        Self(name.into())
    }

    /// As it stands in a lease's `holderIdentity`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// How much this replica is preferred for a shard. When a replica comes or goes, the preferences among the
    /// others stay as they are (rendezvous hashing).
    pub(super) fn affinity(&self, shard: Shard) -> u64 {
        hash(&[&self.0, &shard.to_string()])
    }

    /// A name for objects, made of letters and digits only.
    pub(super) fn digest(&self) -> String {
        format!("{:016x}", hash(&[&self.0]))
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

fn hash(parts: &[&str]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for part in parts {
        // 0xff is in no UTF-8 text, so it ends each part without doubt.
        for byte in part.bytes().chain([0xff]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shard_of_a_parent_never_changes_between_versions() {
        let shards: Vec<_> =
            ["fa05f645-da29-453d-90f1-eeea539590bd", "00000000-0000-0000-0000-000000000000", "a", ""]
                .map(|uid| Shard::of(uid, 1000).index())
                .into();
        expect_test::expect!["[41, 536, 395, 295]"].assert_eq(&format!("{shards:?}"));
    }

    #[test]
    fn parents_are_spread_evenly() {
        let mut rng = fastrand::Rng::with_seed(7);
        for count in [2, 3, 8, 10, 64] {
            let mut sizes = vec![0_u32; count as usize];
            let parents = count * 1000;
            for _ in 0..parents {
                let uid = format!("{:08x}-{:04x}-4000-8000-{:012x}", rng.u32(..), rng.u16(..), rng.u32(..));
                sizes[Shard::of(&uid, count).index() as usize] += 1;
            }
            assert!(sizes.iter().all(|size| (850..1150).contains(size)), "{count}: {sizes:?}");
        }
    }

    #[test]
    fn only_shard_takes_all() {
        assert_eq!((Shard::of("a", 1), Shard::of("b", 1)), (Shard::new(0), Shard::new(0)));
        assert_eq!(Shard::of("a", 0), Shard::new(0));
    }
}
