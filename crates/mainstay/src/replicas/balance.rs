//! How many shards each member gets, and which of the free ones.
//!
//! Every member computes this alone. From the same observations all come to the same answer, so they don't contend;
//! from different ones they may, and then the lease decides.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::shard::{Identity, Shard};

/// How many shards each member gets: an even share, rounded down, and one more for as many as it takes. Those with more
/// shards keep more, so the fewest possible move.
pub(super) fn quotas(held: &BTreeMap<Identity, u32>, shards: u32) -> BTreeMap<Identity, u32> {
    let Some(members) = u32::try_from(held.len()).ok().filter(|members| *members > 0) else {
        return BTreeMap::new();
    };
    let (even, rest) = (shards / members, shards % members);
    let mut order: Vec<_> = held.iter().collect();
    order.sort_by_key(|(identity, held)| (Reverse(**held), *identity));
    let more = (0..members).map(|place| even + u32::from(place < rest));
    order.into_iter().map(|(identity, _)| identity.clone()).zip(more).collect()
}

/// Which free shard goes to which of the members that lack some. Each goes to the one that it prefers.
pub(super) fn assign(
    free: impl IntoIterator<Item = Shard>,
    mut lacking: BTreeMap<Identity, u32>,
) -> BTreeMap<Shard, Identity> {
    let mut assigned = BTreeMap::new();
    for shard in free {
        lacking.retain(|_, lacks| *lacks > 0);
        let Some((identity, lacks)) = lacking.iter_mut().max_by_key(|(identity, _)| identity.affinity(shard))
        else {
            break;
        };
        *lacks -= 1;
        assigned.insert(shard, identity.clone());
    }
    assigned
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn members(held: &[u32]) -> BTreeMap<Identity, u32> {
        held.iter().enumerate().map(|(i, held)| (Identity::new(&format!("m{i}")), *held)).collect()
    }

    fn show(quotas: &BTreeMap<Identity, u32>) -> Vec<u32> {
        quotas.values().copied().collect()
    }

    #[test]
    fn newcomer_gets_from_those_that_have_most() {
        assert_eq!(show(&quotas(&members(&[4, 4, 0]), 8)), [3, 3, 2]);
        assert_eq!(show(&quotas(&members(&[2, 3, 3, 0]), 8)), [2, 2, 2, 2]);
        assert_eq!(show(&quotas(&members(&[1, 0]), 1)), [1, 0]);
        assert_eq!(show(&quotas(&members(&[0, 1]), 1)), [0, 1]);
        assert_eq!(show(&quotas(&members(&[]), 8)), [0; 0]);
    }

    proptest! {
        #[test]
        fn quotas_add_up_and_differ_by_one_at_most(held in vec(0_u32..20, 1..12), shards in 1_u32..64) {
            let quotas = show(&quotas(&members(&held), shards));
            prop_assert_eq!(quotas.iter().sum::<u32>(), shards);
            let (least, most) = (quotas.iter().min().unwrap(), quotas.iter().max().unwrap());
            prop_assert!(most - least <= 1);
        }

        #[test]
        fn balanced_members_keep_what_they_have(count in 1_u32..12, shards in 1_u32..64, order in any::<u64>()) {
            let mut held: Vec<u32> = (0..count).map(|i| shards / count + u32::from(i < shards % count)).collect();
            fastrand::Rng::with_seed(order).shuffle(&mut held);
            let held = members(&held);
            prop_assert_eq!(quotas(&held, shards), held);
        }

        #[test]
        fn no_even_share_moves_fewer_shards(held in vec(0_u32..9, 1..5)) {
            let shards: u32 = held.iter().sum();
            let given_up = |quotas: &[u32]| -> u32 { held.iter().zip(quotas).map(|(held, quota)| held.saturating_sub(*quota)).sum() };
            let ours = given_up(&show(&quotas(&members(&held), shards)));
            let count = u32::try_from(held.len()).unwrap();
            // Every way to choose who gets one more.
            for chosen in (0_u32..1 << count).filter(|chosen| chosen.count_ones() == shards % count) {
                let other: Vec<u32> = (0..count).map(|i| shards / count + (chosen >> i & 1)).collect();
                prop_assert!(ours <= given_up(&other));
            }
        }

        #[test]
        fn free_shards_go_to_members_that_lack_them(lacks in vec(0_u32..6, 1..6), free in 0_u32..20) {
            let lacking = members(&lacks);
            let assigned = assign((0..free).map(Shard::new), lacking.clone());
            prop_assert_eq!(assigned.len(), (lacks.iter().sum::<u32>().min(free)) as usize);
            for (identity, lacks) in lacking {
                let got = assigned.values().filter(|to| **to == identity).count();
                prop_assert!(got <= lacks as usize);
            }
        }
    }
}
