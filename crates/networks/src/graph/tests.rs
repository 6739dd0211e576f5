use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

fn dials(text: &str) -> Vec<Dial> {
    let dial = |word: &str| {
        let (from, to) = word.split_once('>').unwrap();
        Dial { from: from.into(), to: to.into() }
    };
    text.split_whitespace().map(dial).collect()
}

fn edges(text: &str) -> Edges {
    text.split_whitespace()
        .filter_map(|word| word.split_once('-').and_then(|(a, b)| Edge::new(a, b)))
        .collect()
}

fn names(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn check(declared: &str, observed: &str, cuts: &[&str], expected: &Expect) {
    let cuts: Vec<Cut> = cuts.iter().map(|side| Cut::around(names(side))).collect();
    let found = compare(&dials(declared), &edges(observed)).severed(&cuts);
    let list = |dials: &[Dial]| dials.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let surplus: Vec<_> = found.surplus.iter().map(|edge| format!("{}-{}", edge.0, edge.1)).collect();
    expected.assert_eq(&format!(
        "{} desired, {} observed; missing {}; severed {}; surplus {}",
        found.desired,
        found.observed,
        list(&found.missing),
        list(&found.severed),
        surplus.join(", ")
    ));
}

#[test]
fn what_is_missing_severed_and_surplus_is_told_apart() {
    check(
        "a>b b>c c>d",
        "",
        &[],
        &expect!["3 desired, 0 observed; missing a > b, b > c, c > d; severed ; surplus "],
    );
    check("a>b c>b", "b-a c-b d-a", &[], &expect!["2 desired, 3 observed; missing ; severed ; surplus a-d"]);
    check("a>b b>a a>a", "", &[], &expect!["1 desired, 0 observed; missing a > b; severed ; surplus "]);
    check(
        "a>b b>c c>d d>a",
        "b-c",
        &["a"],
        &expect!["4 desired, 1 observed; missing c > d; severed a > b, d > a; surplus "],
    );
    check(
        "a>b b>c c>d d>a",
        "",
        &["a", "a b"],
        &expect!["4 desired, 0 observed; missing c > d; severed a > b, b > c, d > a; surplus "],
    );
}

#[test]
fn a_status_counts_all_that_is_missing_and_names_the_first() {
    let declared = dials("a>b a>c a>d a>e a>f a>g a>h");
    let status = compare(&declared, &edges("a-b x-y")).severed(&[Cut::around(["c"])]).status();
    expect![[r#"{"desired":7,"observed":2,"missing":6,"severed":1,"examples":["a > d","a > e","a > f","a > g","a > h"]}"#]]
        .assert_eq(&serde_json::to_string(&status).unwrap());
}

#[test]
fn islands_come_by_size_and_then_by_their_first_peer() {
    for (peers, connected, expected) in [
        ("", "", "[]"),
        ("a", "", "[a]"),
        ("a b c", "", "[a] [b] [c]"),
        ("a b c d e", "e-d d-c", "[c d e] [a] [b]"),
        ("d c b a", "a-d b-c", "[d a] [c b]"),
        ("a b", "a-x x-b", "[a] [b]"),
        ("a b a", "a-b", "[a b]"),
    ] {
        let found = islands(&names(peers), &edges(connected));
        let told: Vec<_> = found.iter().map(|island| format!("[{}]", island.join(" "))).collect();
        assert_eq!(
            if told.is_empty() { "[]".into() } else { told.join(" ") },
            expected,
            "{peers}: {connected}"
        );
        assert_eq!(components(&names(peers), &edges(connected)), found.len());
    }
}

#[test]
fn two_thousand_peers_are_compared() {
    let peers: Vec<String> = (0..2000).map(|place| format!("peers-0-{place}")).collect();
    let next = |place: usize, further: usize| peers[(place + further) % peers.len()].clone();
    let all = |places: std::ops::Range<usize>| {
        places
            .flat_map(|place| (1..=10).map(move |further| (place, further)))
            .map(|(place, further)| Dial { from: next(place, 0), to: next(place, further) })
            .collect::<Vec<_>>()
    };
    let observed: Edges = all(0..1000).iter().filter_map(Dial::edge).collect();
    assert_eq!(compare(&all(0..2000), &observed).missing.len(), 10_000);
    assert_eq!(components(&peers, &observed), 991);
}

proptest! {
    #[test]
    fn repairing_what_is_missing_leaves_nothing_missing(
        declared in prop::collection::vec((0..9_u8, 0..9_u8), 0..40),
        observed in prop::collection::vec((0..9_u8, 0..9_u8), 0..40),
        side in prop::collection::btree_set(0..9_u8, 0..9),
    ) {
        let declared: Vec<Dial> =
            declared.iter().map(|(from, to)| Dial { from: from.to_string(), to: to.to_string() }).collect();
        let mut observed: Edges =
            observed.iter().filter_map(|(a, b)| Edge::new(&a.to_string(), &b.to_string())).collect();
        let cuts = [Cut::around(side.iter().map(ToString::to_string))];
        let before = compare(&declared, &observed).severed(&cuts);
        let there = before.observed - before.surplus.len();
        prop_assert_eq!(before.desired, there + before.missing.len() + before.severed.len());
        prop_assert!(before.missing.iter().all(|dial| !cuts[0].separates(&dial.from, &dial.to)));
        observed.extend(before.missing.iter().filter_map(Dial::edge));
        let after = compare(&declared, &observed).severed(&cuts);
        prop_assert_eq!(after.missing, vec![]);
        prop_assert_eq!((after.severed, after.surplus), (before.severed, before.surplus));
    }
}

#[test]
fn connections_that_are_written_can_be_read() {
    let edges: Edges =
        [("b", "a"), ("b", "c")].into_iter().filter_map(|(one, other)| Edge::new(one, other)).collect();
    assert_eq!(write(&edges), ("[[\"a\",\"b\"],\n [\"b\",\"c\"]]".to_owned(), 0));
    assert_eq!(read(&write(&edges).0), edges);
    assert_eq!(read(&write(&Edges::new()).0), Edges::new());
    assert_eq!(read("nonsense"), Edges::new());
}
