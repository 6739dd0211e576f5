//! Names made from `generateName`.

/// Letters and digits that spell no words and are not mistaken for each other.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LENGTH: usize = 5;
/// Longer prefixes are cut so that the name fits a DNS label.
const PREFIX_BYTES_MAX: usize = super::LABEL_MAX - SUFFIX_LENGTH;

/// A name of this prefix. `random` gives 64 fresh random bits per call, so the caller holds the seed.
pub(crate) fn generate_name(prefix: &str, mut random: impl FnMut() -> u64) -> String {
    let mut cut = prefix.len().min(PREFIX_BYTES_MAX);
    while !prefix.is_char_boundary(cut) {
        cut -= 1;
    }
    let mut name = String::with_capacity(cut + SUFFIX_LENGTH);
    name.push_str(&prefix[..cut]);
    let mut bits = random();
    let letters = ALPHABET.len() as u64;
    for _ in 0..SUFFIX_LENGTH {
        // The remainder is below 27, so it is an index; 64 bits hold five of them with room to spare.
        name.push(char::from(ALPHABET[usize::try_from(bits % letters).unwrap_or(0)]));
        bits /= letters;
    }
    name
}
