//! Chance that is the same everywhere.
//!
//! The operator and the Job that bootstraps a network compute the same connections, and may be of different versions. So these numbers are part of the
//! contract: a name is hashed by FNV-1a, 64 bits wide, and numbers are mixed by the finaliser of `SplitMix64`. A test holds some of them.

/// A number for a name.
pub(super) fn of_name(name: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    finish(name.bytes().fold(0xcbf2_9ce4_8422_2325, step))
}

/// A number for several numbers in this order.
pub(super) fn of<const N: usize>(numbers: [u64; N]) -> u64 {
    numbers.into_iter().fold(0, |mixed, number| finish(mixed ^ number))
}

/// The number of a seed.
pub(super) fn of_seed(seed: i64) -> u64 {
    of([u64::from_ne_bytes(seed.to_ne_bytes())])
}

fn finish(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
