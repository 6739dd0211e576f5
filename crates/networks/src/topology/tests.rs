use expect_test::{Expect, expect};
use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::graph::{Edges, components};

const METHODS: [Method; 8] = [
    Method::Ring,
    Method::Random,
    Method::Sentinel,
    Method::Full,
    Method::Star,
    Method::KRegular,
    Method::SmallWorld,
    Method::Explicit,
];

fn names(count: usize) -> Vec<String> {
    (0..count).map(|place| format!("peers-{}-{}", place % 2, place / 2)).collect()
}

fn config(method: Method, n: i32, seed: i64) -> BootstrapConfig {
    BootstrapConfig { method, degree: n, seed, rewire_percent: 30, ..BootstrapConfig::default() }
}

fn edges(config: &BootstrapConfig, peers: &[String]) -> Edges {
    declared(config, peers).iter().filter_map(Dial::edge).collect()
}

fn degrees(edges: &Edges, peers: &[String]) -> Vec<usize> {
    let mut found: BTreeMap<&str, usize> = peers.iter().map(|peer| (peer.as_str(), 0)).collect();
    for end in edges.iter().flat_map(|edge| <[&str; 2]>::from(edge.ends())) {
        *found.get_mut(end).unwrap() += 1;
    }
    peers.iter().map(|peer| found[peer.as_str()]).collect()
}

fn check(config: &BootstrapConfig, peers: &str, expected: &Expect) {
    let peers: Vec<String> = peers.split_whitespace().map(str::to_owned).collect();
    let told: Vec<String> =
        declared(config, &peers).iter().map(|dial| format!("{}>{}", dial.from, dial.to)).collect();
    expected.assert_eq(&told.join(" "));
}

#[test]
fn small_networks_are_connected_as_one_would_draw_them() {
    let all = "a b c d e f";
    check(&config(Method::Ring, 1, 0), all, &expect!["a>b b>c c>d d>e e>f f>a"]);
    check(&config(Method::Ring, 3, 0), "a b c", &expect!["a>b a>c b>c"]);
    check(&config(Method::Ring, 1, 0), "a b", &expect!["a>b"]);
    check(&config(Method::Ring, 1, 0), "a", &expect![""]);
    check(&config(Method::Sentinel, 2, 0), all, &expect!["b>a c>a c>b d>a d>b e>a e>b f>a f>b"]);
    check(&config(Method::Full, 1, 0), "a b c d", &expect!["b>a c>a c>b d>a d>b d>c"]);
    check(&config(Method::Star, 5, 0), all, &expect!["b>a c>a d>a e>a f>a"]);
    check(&config(Method::KRegular, 3, 0), all, &expect!["a>b b>c c>d d>e e>f f>a d>a e>b f>c"]);
    check(&config(Method::KRegular, 3, 0), "a b c d e", &expect!["a>b b>c c>d d>e e>a c>a d>b e>c"]);
    check(
        &config(Method::SmallWorld, 2, 0),
        "a b c d e f g",
        &expect!["a>b a>c b>c b>e c>d c>e d>e d>f e>f e>g f>g f>c g>a g>c"],
    );
    check(&config(Method::Random, 2, 0), all, &expect!["a>c a>d b>d b>e c>d d>f e>f e>c f>a"]);
    check(&config(Method::Random, 2, 1), all, &expect!["a>f a>c b>e b>c c>f c>e d>e d>c f>d f>e"]);
    check(&config(Method::Ring, 1, 0), "a b a", &expect!["a>b"]);
    check(&BootstrapConfig { enabled: false, ..config(Method::Full, 1, 0) }, all, &expect![""]);
}

#[test]
fn explicit_edges_are_taken_if_both_ends_are_there() {
    let edge = |from: &str, to: &str| EdgeSpec { from: from.into(), to: to.into() };
    let edges = vec![edge("c", "a"), edge("a", "c"), edge("b", "b"), edge("b", "x"), edge("a", "b")];
    check(&BootstrapConfig { edges, ..config(Method::Explicit, 1, 0) }, "a b c", &expect!["c>a a>b"]);
}

#[test]
fn chance_is_the_same_in_every_version() {
    let numbers =
        [chance::of_name("peers-0-0"), chance::of_name(""), chance::of_seed(-1), chance::of([1, 2, 3])];
    expect!["[c34477826cc5de6, c3817c016ba4ff30, e4d971771b652c20, d0734750fde362b3]"]
        .assert_eq(&format!("{numbers:x?}"));
    assert_ne!(chance::of([1, 2]), chance::of([2, 1]));
}

#[test]
fn seeds_make_a_difference() {
    for method in [Method::Random, Method::SmallWorld] {
        assert_ne!(edges(&config(method, 3, 1), &names(40)), edges(&config(method, 3, 2), &names(40)));
    }
}

#[test]
fn as_many_connections_go_far_as_was_said() {
    let peers = names(200);
    let far = |percent: i32| {
        let config = BootstrapConfig { rewire_percent: percent, ..config(Method::SmallWorld, 5, 3) };
        let ring = edges(&BootstrapConfig { method: Method::Ring, ..config.clone() }, &peers);
        edges(&config, &peers).difference(&ring).count()
    };
    // Of 1,000 connections 800 may go far; a few of those that do are the same.
    assert_eq!(far(0), 0);
    assert!((120..=200).contains(&far(20)), "{}", far(20));
    assert!((740..=800).contains(&far(100)), "{}", far(100));
}

#[test]
fn few_partners_change_when_a_peer_leaves() {
    let (mut total, mut most) = (0, 0);
    let peers = names(200);
    for n in [3, 5, 9] {
        let before = edges(&config(Method::KRegular, n, 0), &peers);
        for gone in (0..peers.len()).step_by(4) {
            let mut left = peers.clone();
            left.remove(gone);
            let changed = edges(&config(Method::KRegular, n, 0), &left).difference(&before).count();
            total += changed;
            most = most.max(changed);
        }
    }
    expect!["at most 8, 4 on the average"]
        .assert_eq(&format!("at most {most}, {} on the average", total / 150));
}

#[test]
fn five_hundred_peers_are_connected() {
    let peers = names(500);
    let count = |method: Method| declared(&config(method, 3, 0), &peers).len();
    assert_eq!(
        [Method::Ring, Method::Sentinel, Method::Star, Method::KRegular].map(count),
        [1500, 1494, 499, 750]
    );
    assert!(
        [Method::Random, Method::SmallWorld].map(count).iter().all(|count| (1450..=1500).contains(count))
    );
}

prop_compose! {
    fn network()(count in 0..=60_usize, n in prop_oneof![9 => 1..=70_i32, 1 => Just(i32::MAX)], small in 1..=6_i32, is_small: bool, seed in prop_oneof![8 => any::<i64>(), 1 => Just(i64::MIN), 1 => Just(i64::MAX)])
        -> (Vec<String>, i32, i64) {
        (names(count), if is_small { small } else { n }, seed)
    }
}

#[test]
fn the_documentation_has_the_table_of_methods_as_it_is_here() {
    let rows = |text: &str, before: &str| -> Vec<String> {
        let rows = text.lines().filter_map(|line| line.strip_prefix(before));
        rows.filter(|row| row.starts_with("| `") && row.matches(" | ").count() == 2)
            .map(str::to_owned)
            .collect()
    };
    let here = rows(include_str!("mod.rs"), "//! ");
    assert_eq!(here.len(), 8);
    let there = rows(include_str!("../../../../docs/networks.md"), "");
    for row in here {
        assert!(there.contains(&row), "{row}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn nobody_dials_itself_and_no_pair_is_there_twice((peers, n, seed) in network()) {
        for method in METHODS {
            let config = config(method, n, seed);
            let dials = declared(&config, &peers);
            prop_assert!(dials.iter().all(|dial| dial.from != dial.to), "{:?}", method);
            prop_assert!(dials.iter().all(|dial| peers.contains(&dial.from) && peers.contains(&dial.to)));
            prop_assert_eq!(edges(&config, &peers).len(), dials.len(), "{:?}", method);
            prop_assert_eq!(declared(&config, &peers), dials, "{:?}", method);
        }
    }

    #[test]
    fn everyone_can_reach_everyone((peers, n, seed) in network()) {
        for method in METHODS {
            // Pairs and nothing else are what was asked for in this case.
            let pairs = method == Method::KRegular && n == 1 && peers.len() > 2;
            if method != Method::Explicit && !pairs {
                let found = components(&peers, &edges(&config(method, n, seed), &peers));
                prop_assert_eq!(found, peers.len().min(1), "{:?}", method);
            }
        }
    }

    #[test]
    fn everyone_has_as_many_connections_as_the_method_says((peers, n, seed) in network()) {
        let others = peers.len().saturating_sub(1);
        let n_there = usize::try_from(n).unwrap().min(others);
        for method in METHODS {
            let config = config(method, n, seed);
            let found = degrees(&edges(&config, &peers), &peers);
            let all = |degree: usize| found.iter().all(|found| *found == degree);
            match method {
                Method::Ring => prop_assert!(all((2 * n_there).min(others))),
                Method::Full => prop_assert!(all(others)),
                Method::Star | Method::Sentinel => {
                    let first = if method == Method::Star { others.min(1) } else { n_there };
                    prop_assert!(found.iter().take(first).all(|found| *found == others));
                    prop_assert!(found.iter().skip(first).all(|found| *found == first));
                }
                Method::Random | Method::SmallWorld => {
                    prop_assert!(found.iter().all(|found| *found >= n_there));
                    prop_assert!(found.iter().sum::<usize>() <= 2 * n_there * peers.len());
                    let names: Vec<&str> = peers.iter().map(String::as_str).collect();
                    let dialled: BTreeSet<Pair> = pairs(&config, &names).into_iter().collect();
                    for place in 0..peers.len() {
                        let number = dialled.range((place, 0)..(place + 1, 0)).count();
                        prop_assert_eq!(number, n_there, "{:?} of {}", method, place);
                    }
                }
                Method::KRegular if n_there * peers.len() % 2 == 0 => prop_assert!(all(n_there), "{:?}", found),
                Method::KRegular => {
                    let more = found.iter().filter(|found| **found == n_there + 1).count();
                    let exact = found.iter().filter(|found| **found == n_there).count();
                    prop_assert_eq!((more, exact), (1, others), "{:?}", found);
                }
                Method::Explicit => prop_assert!(all(0)),
            }
        }
    }

    #[test]
    fn others_keep_their_connections_when_a_peer_leaves((peers, n, seed) in network(), gone: Index) {
        prop_assume!(!peers.is_empty());
        let gone = gone.index(peers.len());
        let mut left = peers.clone();
        left.remove(gone);
        let n_there = usize::try_from(n).unwrap().min(left.len());
        for method in METHODS {
            let mut config = config(method, n, seed);
            let pair = |from: &String, to: &String| EdgeSpec { from: from.clone(), to: to.clone() };
            config.edges = peers.iter().zip(peers.iter().skip(3)).map(|(from, to)| pair(from, to)).collect();
            let (before, after) = (edges(&config, &peers), edges(&config, &left));
            let with_it = |edge: &crate::graph::Edge| edge.ends().0 == peers[gone] || edge.ends().1 == peers[gone];
            let kept: Edges = before.iter().filter(|edge| !with_it(edge)).cloned().collect();
            let more = after.difference(&kept).count();
            let is_odd = n_there % 2 == 1 || n_there < usize::try_from(n).unwrap();
            let most = match method {
                Method::Ring => n_there,
                Method::Random => before.len() - kept.len(),
                Method::Sentinel if gone < n_there => left.len(),
                Method::Star if gone == 0 => left.len(),
                Method::Sentinel | Method::Full | Method::Star | Method::Explicit => 0,
                Method::KRegular if is_odd => continue,
                Method::KRegular => n_there / 2,
                Method::SmallWorld => continue,
            };
            prop_assert!(kept.is_subset(&after), "{:?} loses {:?}", method, kept.difference(&after));
            prop_assert!(more <= most, "{:?}: {} more", method, more);
        }
    }

    #[test]
    fn in_a_small_world_only_those_close_to_a_peer_notice_that_it_leaves(
        (peers, n, seed) in network(),
        gone: Index,
    ) {
        prop_assume!(!peers.is_empty());
        let gone = gone.index(peers.len());
        let config = config(Method::SmallWorld, n, seed);
        let dials = |peers: &[&str]| {
            let mut found = BTreeMap::<String, BTreeSet<String>>::new();
            for (from, to) in pairs(&config, peers) {
                found.entry(peers[from].to_owned()).or_default().insert(peers[to].to_owned());
            }
            found
        };
        let peers: Vec<&str> = peers.iter().map(String::as_str).collect();
        let mut left = peers.clone();
        left.remove(gone);
        let (before, after) = (dials(&peers), dials(&left));
        for (place, peer) in peers.iter().enumerate() {
            let apart = place.abs_diff(gone);
            let is_far = apart.min(peers.len() - apart) > usize::try_from(n).unwrap();
            if is_far && !before[*peer].contains(peers[gone]) {
                prop_assert_eq!(after.get(*peer), before.get(*peer));
            }
        }
    }
}
