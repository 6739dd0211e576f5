use super::*;
use proptest::prelude::*;

#[test]
fn shares_are_as_one_would_say() {
    for (replicas, weights, shares) in [
        (49, vec![1, 48], vec![1, 48]),
        (10, vec![1, 48], vec![0, 10]),
        (4, vec![1, 1, 1], vec![2, 1, 1]),
        (5, vec![0, 1], vec![0, 5]),
        (3, vec![-4, 1], vec![0, 3]),
        (5, vec![0, 0], vec![0, 0]),
        (5, vec![], vec![]),
        (0, vec![1, 2], vec![0, 0]),
        (-1, vec![1, 2], vec![0, 0]),
        (i32::MAX, vec![i32::MAX], vec![i32::MAX]),
        (i32::MAX, vec![i32::MAX, i32::MAX, 1], vec![1_073_741_823, 1_073_741_823, 1]),
    ] {
        assert_eq!(split(replicas, &weights), shares, "{replicas} by {weights:?}");
    }
}

fn weight() -> impl Strategy<Value = i32> {
    prop_oneof![3 => 0..100_i32, 1 => 0..=i32::MAX, 1 => Just(0)]
}

proptest! {
    #[test]
    fn shares_add_up_and_are_fair(
        replicas in prop_oneof![0..3000_i32, 0..=i32::MAX],
        weights in prop::collection::vec(weight(), 1..12),
    ) {
        let shares = split(replicas, &weights);
        let total: i128 = weights.iter().map(|weight| i128::from(*weight)).sum();
        prop_assert_eq!(shares.len(), weights.len());
        if total == 0 {
            prop_assert!(shares.iter().all(|share| *share == 0));
            return Ok(());
        }
        prop_assert_eq!(shares.iter().map(|share| i64::from(*share)).sum::<i64>(), i64::from(replicas));
        for (share, weight) in shares.iter().zip(&weights) {
            let off = i128::from(*share) * total - i128::from(replicas) * i128::from(*weight);
            prop_assert!(off.abs() < total, "{} for {} is not within one of its exact share", share, weight);
            prop_assert!(*weight > 0 || *share == 0);
        }
        for (one, weight) in shares.iter().zip(&weights) {
            for (other, lighter) in shares.iter().zip(&weights) {
                prop_assert!(weight <= lighter || one >= other, "{:?} for {:?}", shares, weights);
            }
        }
    }
}
