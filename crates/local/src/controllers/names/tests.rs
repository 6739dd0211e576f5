use super::*;
use proptest::prelude::*;

fn take(names: &Names, count: usize, taken: &[&str]) -> Vec<String> {
    names.new_names(|_| "web-".into(), |name| taken.contains(&name)).take(count).collect()
}

/// A number as anybody can write it into the annotation.
fn number() -> impl Strategy<Value = u64> {
    let near = |edge: u64| edge.saturating_sub(2)..=edge.saturating_add(2);
    prop_oneof![
        Just(u64::MAX),
        Just(0),
        near(u64::MAX),
        near(u64::MAX / ENDINGS * ENDINGS),
        near(i64::MAX as u64),
        near(RECORDED_MAX),
        near(ENDINGS),
        any::<u64>(),
    ]
}

#[test]
fn names_are_the_same_each_time_and_never_taken_ones() {
    let names = Names::new("uid", 0, []);
    let first = take(&names, 3, &[]);
    assert_eq!(first, take(&names, 3, &[]));
    let next = take(&names, 2, &[&first[0], &first[2]]);
    assert_eq!(next[0], first[1]);
    assert!(!first.contains(&next[1]));
    assert_ne!(first, take(&Names::new("other", 0, []), 3, &[]), "a parent that follows has other names");
}

#[test]
fn a_pod_that_was_seen_leaves_its_name_to_nobody() {
    let all = take(&Names::new("uid", 0, []), 4, &[]);
    // The second was asked for and is not seen: it keeps its name until one that came after it is all that there is to do.
    let names = Names::new("uid", 0, [all[0].clone(), all[2].clone()]);
    assert_eq!(take(&names, 2, &[]), [all[1].clone(), all[3].clone()]);
    assert_eq!(names.seen, 3);
    let names = Names::new("uid", names.seen, []);
    assert_eq!(take(&names, 1, &[]), [all[3].clone()]);
}

#[test]
fn a_long_prefix_leaves_room_for_what_tells_names_apart() {
    let names = Names::new("uid", 0, []);
    let made: BTreeSet<String> = names.new_names(|_| "a".repeat(200), |_| false).take(20).collect();
    assert_eq!(made.len(), 20);
    assert!(made.iter().all(|name| name.len() == 63));
}

#[test]
fn what_was_named_by_somebody_else_uses_no_numbers_up() {
    let names = Names::new("uid", 5, ["stray", "web-0", "a", "", "web-äöüß1"].map(str::to_owned));
    assert_eq!(names.seen, 5);
}

#[test]
fn the_oldest_of_the_vanished_is_forgotten_first() {
    let gone = Gone::default();
    let key = |number: usize| Key::new(Some("shop"), &format!("web-{number}"));
    for number in 0..=GONE_MAX {
        gone.add(&key(number));
        gone.add(&key(number));
    }
    let vanished = gone.0.lock().unwrap();
    assert_eq!((vanished.order.len(), vanished.names.len()), (GONE_MAX, GONE_MAX));
    assert!(!vanished.names.contains(&key(0)) && vanished.names.contains(&key(1)));
}

proptest! {
    #[test]
    fn numbers_are_read_back(uid in ".{0,8}", number in prop_oneof![0..100_u64, 0..3 * ENDINGS, Just(RECORDED_MAX)]) {
        let names = Names::new(&uid, number, []);
        let name = format!("x-{}", names.ending(number));
        prop_assert_eq!(names.number(&name), Some(number));
        prop_assert_eq!(Names::new(&uid, number, [name]).seen, number + 1);
    }

    #[test]
    fn whatever_is_recorded_the_names_that_follow_are_new(uid in ".{0,8}", recorded in number()) {
        let names = Names::new(&uid, recorded, []);
        let new = take(&names, 3, &[]);
        let numbers: Vec<_> = new.iter().map(|name| names.number(name).unwrap() % ENDINGS).collect();
        let expected: Vec<_> = (0..3).map(|more| (recorded % ENDINGS + more) % ENDINGS).collect();
        prop_assert_eq!(numbers, expected);
        prop_assert!(Names::new(&uid, recorded, new).seen <= RECORDED_MAX + 3);
    }

    #[test]
    fn different_numbers_have_different_names(uid in ".{0,8}", a in 0..ENDINGS, b in 0..ENDINGS) {
        let names = Names::new(&uid, 0, []);
        prop_assert_eq!(names.ending(a) == names.ending(b), a == b);
    }
}
