//! Addresses of pods: one of 127.0.0.0/8 for each, so that ports don't collide. Never 127.0.0.x, which is the machine's own.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::Ipv4Addr;

/// How many addresses there are to choose from: 127.1.0.1 to 127.255.255.254, without those that end in 0 or 255.
const COUNT: u64 = 255 * 256 * 254;

/// An address for a pod: where its uid leads, or the next that is free.
pub(super) fn choose(uid: &str, taken: &BTreeSet<Ipv4Addr>) -> Ipv4Addr {
    let mut hasher = DefaultHasher::new();
    uid.hash(&mut hasher);
    let first = hasher.finish() % COUNT;
    let mut all = (0..COUNT).map(|step| nth((first + step) % COUNT));
    // There are millions of them: all cannot be taken by pods of one machine.
    all.find(|address| !taken.contains(address)).unwrap_or_else(|| nth(first))
}

fn nth(number: u64) -> Ipv4Addr {
    let part = |number: u64| u8::try_from(number).unwrap_or(u8::MAX);
    let (rest, last) = (number / 254, number % 254);
    let (second, third) = (rest / 256, rest % 256);
    Ipv4Addr::new(127, part(second + 1), part(third), part(last + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn range_begins_and_ends_as_promised() {
        assert_eq!(nth(0), Ipv4Addr::new(127, 1, 0, 1));
        assert_eq!(nth(COUNT - 1), Ipv4Addr::new(127, 255, 255, 254));
    }

    proptest! {
        #[test]
        fn address_is_free_and_not_the_machines_own(uid in ".*", others in prop::collection::vec(".*", 0..50)) {
            let mut taken = BTreeSet::new();
            for other in &others {
                taken.insert(choose(other, &taken));
            }
            prop_assert_eq!(taken.len(), others.len());
            let address = choose(&uid, &taken);
            prop_assert!(!taken.contains(&address));
            let [first, second, _, last] = address.octets();
            prop_assert!(first == 127 && second != 0 && last != 0 && last != 255);
            prop_assert_eq!(choose(&uid, &taken), address);
        }

        #[test]
        fn taken_address_is_passed_over(uid in ".*") {
            let first = choose(&uid, &BTreeSet::new());
            prop_assert_ne!(choose(&uid, &[first].into()), first);
        }
    }
}
