//! What is true of every rollout, whatever happens on the way.

use proptest::prelude::*;

use super::super::sizes::{Move, recreate, rescale, roll};
use super::*;

/// Carries a move out, as far as sizes go.
fn apply(sets: &mut Sets, next: &Move, wish: &Wish) {
    if let Some(size) = next.create {
        assert!(sets.new.is_none());
        let made = Set {
            name: "new".into(),
            size,
            desired: Some(wish.replicas),
            most: Some(wish.most()),
            ..Set::default()
        };
        sets.new = Some(made);
    }
    for set in sets.old.iter_mut().chain(&mut sets.new) {
        if let Some(size) = next.sizes.get(&set.name) {
            set.size = *size;
            (set.desired, set.most) = (Some(wish.replicas), Some(wish.most()));
        }
    }
}

/// Lets pods go that are too many, those first that are not available, and others come; `luck` says how many become available.
fn live(set: &mut Set, luck: i32) {
    set.actual = set.size;
    set.available = set.available.min(set.size);
    set.available += luck.min(set.size - set.available);
}

fn all(sets: &mut Sets) -> impl Iterator<Item = &mut Set> {
    sets.old.iter_mut().chain(&mut sets.new)
}

fn total(sets: &Sets) -> i32 {
    sets.old.iter().chain(&sets.new).map(|set| set.size).sum()
}

fn available(sets: &Sets) -> i32 {
    sets.old.iter().chain(&sets.new).map(|set| set.available.min(set.size)).sum()
}

prop_compose! {
    fn wishes()(replicas in 0..12_i32, surge in 0..5_i32, unavailable in 0..5_i32) -> Wish {
        let unavailable = if surge == 0 { unavailable.max(1) } else { unavailable };
        wish(replicas, surge, unavailable.min(replicas))
    }
}

proptest! {
    #[test]
    fn a_rollout_keeps_to_its_limits_and_comes_to_its_end(
        wish in wishes(),
        luck in prop::collection::vec(0..4, 1..40),
    ) {
        let mut sets = sets(None, [Set { desired: None, most: None, ..set("old", wish.replicas) }]);
        // Whatever comes of the pods at first, in the end they become available.
        let luck = luck.into_iter().chain([9; 60]);
        for luck in luck {
            let before = available(&sets);
            let next = roll(&wish, &sets);
            apply(&mut sets, &next, &wish);
            prop_assert!(total(&sets) <= wish.most(), "{sets:?}");
            prop_assert!(available(&sets) >= wish.least().min(before), "{sets:?}");
            prop_assert!(all(&mut sets).all(|set| set.size >= 0));
            all(&mut sets).for_each(|set| live(set, luck));
        }
        prop_assert_eq!(roll(&wish, &sets), Move::default());
        prop_assert_eq!(sets.new.map(|new| new.size), Some(wish.replicas));
        prop_assert_eq!(sets.old[0].size, 0);
    }

    #[test]
    fn recreating_never_mixes_templates(wish in wishes(), luck in prop::collection::vec(0..2, 0..20)) {
        let wish = Wish { rolls: false, surge: 0, unavailable: 0, ..wish };
        let mut sets = sets(None, [set("old", 3), set("older", 1)]);
        for luck in luck.into_iter().chain([1; 6]) {
            let next = recreate(&wish, &sets, false);
            apply(&mut sets, &next, &wish);
            let old: i32 = sets.old.iter().map(|set| set.actual.max(set.size)).sum();
            prop_assert!(old == 0 || sets.new.is_none());
            if luck > 0 {
                all(&mut sets).for_each(|set| live(set, 9));
            }
        }
        prop_assert_eq!(sets.new.map(|new| new.size), Some(wish.replicas));
    }

    #[test]
    fn a_change_amid_a_rollout_fills_what_is_allowed_and_is_made_once(
        after in wishes(),
        parts in prop::collection::vec(1..9_i32, 2..4),
    ) {
        let before: i32 = parts.iter().sum();
        let told = |name: String, size| Set { desired: Some(before - 1), most: Some(before), ..set(&name, size) };
        let mut old: Vec<Set> =
            parts.iter().enumerate().map(|(place, size)| told(format!("set-{place}"), *size)).collect();
        let new = old.pop().map(|new| Set { available: 0, ..new });
        let mut sets = sets(new, old);
        let next = rescale(&after, &sets, total(&sets));
        apply(&mut sets, &next, &after);
        let allowed = if after.replicas == 0 { 0 } else { after.most() };
        prop_assert_eq!(total(&sets), allowed);
        prop_assert!(all(&mut sets).all(|set| set.size >= 0));
        prop_assert!(!sets.is_rescaled(&after), "{sets:?}");
    }

    #[test]
    fn no_size_is_too_large(
        (replicas, surge, unavailable) in (sizes(), sizes(), sizes()),
        found in prop::collection::vec((sizes(), sizes(), sizes(), prop::option::of(sizes()), prop::option::of(sizes())), 1..4),
        (pods, rolls) in (sizes(), any::<bool>()),
    ) {
        let wish = Wish { replicas, rolls, surge, unavailable: unavailable.min(replicas) };
        let mut old: Vec<Set> = found
            .into_iter()
            .enumerate()
            .map(|(place, (size, actual, available, desired, most))| Set {
                name: format!("set-{place}"), created: None, size, actual, available, desired, most,
            })
            .collect();
        let new = old.pop();
        let sets = sets(new, old);
        for next in [rescale(&wish, &sets, pods), roll(&wish, &sets), recreate(&wish, &sets, rolls)] {
            prop_assert!(next.sizes.values().chain(&next.create).all(|size| *size >= 0), "{next:?}");
        }
    }
}

fn sizes() -> impl Strategy<Value = i32> {
    prop_oneof![0..9_i32, 0..=i32::MAX, Just(i32::MAX)]
}
