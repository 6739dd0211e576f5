//! Uids as index keys: 16 bytes for the usual form instead of a string of 36.

/// A uid in its smallest form. Two are equal exactly when their texts are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Uid {
    /// A UUID as servers write it: lower case, with hyphens.
    Uuid([u8; 16]),
    /// Anything else.
    Text(Box<str>),
}

impl From<&str> for Uid {
    fn from(text: &str) -> Self {
        uuid(text.as_bytes()).map_or_else(|| Self::Text(text.into()), Self::Uuid)
    }
}

impl Uid {
    /// Bytes it has on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Self::Uuid(_) => 0,
            Self::Text(text) => text.len(),
        }
    }
}

fn uuid(text: &[u8]) -> Option<[u8; 16]> {
    const HYPHENS: [usize; 4] = [8, 13, 18, 23];
    if text.len() != 36 {
        return None;
    }
    let mut bytes = [0; 16];
    let mut digits = 0;
    for (position, byte) in text.iter().enumerate() {
        if HYPHENS.contains(&position) {
            if *byte != b'-' {
                return None;
            }
            continue;
        }
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            // Only lower case: `A` and `a` would otherwise become one uid.
            b'a'..=b'f' => byte - b'a' + 10,
            _ => return None,
        };
        bytes[digits / 2] = bytes[digits / 2] << 4 | digit;
        digits += 1;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_uid_takes_no_heap_and_others_stay_text() {
        let usual = "00112233-4455-6677-8899-aabbccddeeff";
        assert_eq!(Uid::from(usual).heap_bytes(), 0);
        for other in [&usual.to_uppercase(), "x", "", "00112233-4455-6677-8899-aabbccddeef-", &"é".repeat(18)]
        {
            assert_eq!(Uid::from(other), Uid::Text(other.into()));
        }
    }

    #[test]
    fn different_uids_differ() {
        let uids = [
            "00112233-4455-6677-8899-aabbccddeeff",
            "00112233-4455-6677-8899-aabbccddeefe",
            "10112233-4455-6677-8899-aabbccddeeff",
            "00112233-4455-6677-8899-AABBCCDDEEFF",
        ];
        let set: std::collections::BTreeSet<Uid> = uids.into_iter().map(Uid::from).collect();
        assert_eq!(set.len(), uids.len());
    }
}
