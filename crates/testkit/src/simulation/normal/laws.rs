//! Laws: what nobody decided never counts, whatever refers to what; everything else always does.

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde_json::{Map, json};

use super::tests::state;
use super::*;

/// A thing in a world, without what differs from run to run.
#[derive(Clone, Debug)]
struct Thing {
    resource: &'static str,
    naming: Naming,
    fields: Vec<Field>,
}

#[derive(Clone, Debug)]
enum Naming {
    Fixed,
    Generated,
    /// By the generated name of an earlier one.
    Within(usize),
}

#[derive(Clone, Debug)]
enum Field {
    Plain(u8),
    Time(u8),
    Uid(usize),
    Name(usize),
    PartOfName(usize),
    Key(usize),
}

/// What differs from run to run.
#[derive(Clone, Debug)]
struct Chance {
    seed: u64,
    shift: i64,
}

fn things() -> impl Strategy<Value = Vec<Thing>> {
    let index = 0..8_usize;
    let naming = prop_oneof![
        1 => Just(Naming::Fixed),
        3 => Just(Naming::Generated),
        1 => index.clone().prop_map(Naming::Within),
    ];
    let field = prop_oneof![
        2 => (0..2_u8).prop_map(Field::Plain),
        1 => any::<u8>().prop_map(Field::Time),
        1 => index.clone().prop_map(Field::Uid),
        2 => index.clone().prop_map(Field::Name),
        1 => index.clone().prop_map(Field::PartOfName),
        1 => index.prop_map(Field::Key),
    ];
    let fields = proptest::collection::vec(field, 0..3);
    let resource = prop_oneof![4 => Just("pods"), 1 => Just("jobs.batch")];
    let thing =
        (resource, naming, fields).prop_map(|(resource, naming, fields)| Thing { resource, naming, fields });
    proptest::collection::vec(thing, 1..8)
}

fn chance() -> impl Strategy<Value = Chance> {
    (any::<u64>(), -1_000_000..1_000_000_i64).prop_map(|(seed, shift)| Chance { seed, shift })
}

/// The same things, as they turn out in one run.
fn build(things: &[Thing], chance: &Chance) -> Vec<(String, Value)> {
    let mut random = fastrand::Rng::with_seed(chance.seed);
    let mut suffix = || -> String {
        let letters: Vec<char> = "bcdfghjklmnpqrstvwxz2456789".chars().collect();
        (0..5).map(|_| letters[random.usize(..letters.len())]).collect()
    };
    let mut names: Vec<(String, Option<String>)> = Vec::new();
    for (index, thing) in things.iter().enumerate() {
        let prefix = match thing.naming {
            Naming::Within(other) if index > 0 => Some(format!("{}-", names[other % index].0)),
            Naming::Fixed => None,
            _ => Some("web-".to_owned()),
        };
        let name =
            prefix.as_ref().map_or_else(|| format!("fixed-{index}"), |prefix| prefix.clone() + &suffix());
        names.push((name, prefix));
    }
    let uids: Vec<String> = things.iter().map(|_| uuid(random.u128(..))).collect();
    let object = |(index, thing): (usize, &Thing)| {
        let (name, prefix) = &names[index];
        let mut metadata =
            json!({"name": name, "uid": uids[index], "resourceVersion": random.u32(..).to_string()});
        if let Some(prefix) = prefix {
            metadata["generateName"] = json!(prefix);
        }
        let mut spec = Map::new();
        for (number, field) in thing.fields.iter().enumerate() {
            let name = |other: &usize| &names[other % names.len()].0;
            let (key, value) = match field {
                Field::Plain(value) => (None, json!(value)),
                Field::Time(value) => (None, json!(time(i64::from(*value) + chance.shift))),
                Field::Uid(other) => (None, json!(format!("pvc-{}", uids[other % uids.len()]))),
                Field::Name(other) => (None, json!(name(other))),
                Field::PartOfName(other) => (None, json!(format!("shop/{}-0.svc", name(other)))),
                Field::Key(other) => (Some(name(other).clone()), json!(number)),
            };
            spec.insert(key.unwrap_or_else(|| format!("field{number}")), value);
        }
        (format!("{} shop/{name}", thing.resource), json!({"metadata": metadata, "spec": spec}))
    };
    things.iter().enumerate().map(object).collect()
}

fn uuid(bits: u128) -> String {
    let hex = format!("{bits:032x}");
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

fn time(seconds: i64) -> String {
    let start: Timestamp = "2024-01-01T00:00:00Z".parse().unwrap();
    (start + SignedDuration::from_secs(seconds)).to_string()
}

fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..1000_i64).prop_map(Value::from),
        "[a-z *0-9é/.-]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[a-z]{1,3}", inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

/// Every tree that has one leaf less or another one in its place.
fn changed(tree: &Value) -> Vec<Value> {
    let mut all = vec![json!("another value")];
    match tree {
        Value::Object(fields) => {
            for (name, value) in fields {
                let with = |value: Value| {
                    let mut fields = fields.clone();
                    fields.insert(name.clone(), value);
                    Value::Object(fields)
                };
                all.extend(changed(value).into_iter().map(with));
                let without = fields.iter().filter(|(other, _)| *other != name);
                all.push(Value::Object(without.map(|(name, value)| (name.clone(), value.clone())).collect()));
            }
        }
        Value::Array(items) => {
            for index in 0..items.len() {
                let with = |value: Value| {
                    let mut items = items.clone();
                    items[index] = value;
                    Value::Array(items)
                };
                all.extend(changed(&items[index]).into_iter().map(with));
                let mut without = items.clone();
                without.remove(index);
                all.push(Value::Array(without));
            }
        }
        _ => {}
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn uids_times_and_generated_names_do_not_count(things in things(), one in chance(), other in chance()) {
        let (one, other) = (state(build(&things, &one)), state(build(&things, &other)));
        let (one, other) = (normalise(&one, &[]), normalise(&other, &[]));
        prop_assert_eq!(one.differences(&other), Vec::<String>::new());
        prop_assert_eq!(one, other);
    }

    #[test]
    fn a_changed_field_is_always_told(things in things(), chance in chance(), at in any::<prop::sample::Index>()) {
        let objects = build(&things, &chance);
        let mut changed = objects.clone();
        let index = at.index(changed.len());
        changed[index].1["spec"]["field0"] = json!("another value");
        let (one, other) = (normalise(&state(objects), &[]), normalise(&state(changed), &[]));
        prop_assert!(!one.differences(&other).is_empty());
        prop_assert!(!other.differences(&one).is_empty());
    }

    #[test]
    fn an_object_more_or_less_is_always_told(things in things(), chance in chance(), at in any::<prop::sample::Index>()) {
        let objects = build(&things, &chance);
        let mut fewer = objects.clone();
        fewer.remove(at.index(objects.len()));
        let (all, fewer) = (normalise(&state(objects), &[]), normalise(&state(fewer), &[]));
        prop_assert!(!all.differences(&fewer).is_empty());
        prop_assert!(!fewer.differences(&all).is_empty());
    }

    #[test]
    fn every_change_of_a_tree_is_told(tree in tree()) {
        let normal = |tree: &Value| normalise(&state([("pods shop/web", json!({"spec": tree}))]), &[]);
        let before = normal(&tree);
        prop_assert_eq!(before.differences(&normal(&tree)), Vec::<String>::new());
        for changed in changed(&tree).iter().filter(|changed| **changed != tree) {
            prop_assert!(!before.differences(&normal(changed)).is_empty(), "{changed}");
        }
    }
}

/// Pods that say no more than which one is next, `next[0]` after the first and so on, must be the same for all names.
fn check_chain(next: &[usize]) {
    let normal = |suffixes: &[usize]| {
        let name = |index: usize| format!("web-bbbb{}", ["b", "c", "d", "f", "g", "h"][suffixes[index]]);
        let pod = |(index, next): (usize, &usize)| {
            let tree =
                json!({"metadata": {"generateName": "web-", "name": name(index)}, "next": name(*next)});
            (format!("pods shop/{}", name(index)), tree)
        };
        normalise(&state(next.iter().enumerate().map(pod)), &[])
    };
    let expected = normal(&(0..next.len()).collect::<Vec<_>>());
    for suffixes in permutations(next.len()) {
        assert_eq!(expected, normal(&suffixes), "{suffixes:?}");
    }
}

fn permutations(count: usize) -> Vec<Vec<usize>> {
    let Some(last) = count.checked_sub(1) else { return vec![Vec::new()] };
    let with_last = |shorter: Vec<usize>| {
        (0..count).map(move |place| {
            let mut all = shorter.clone();
            all.insert(place, last);
            all
        })
    };
    permutations(last).into_iter().flat_map(with_last).collect()
}

#[test]
fn names_that_nothing_tells_apart_are_numbered_as_they_hang_together() {
    check_chain(&[0, 1, 2]); // each its own
    check_chain(&[1, 0, 3, 2]); // pairs
    check_chain(&[1, 0, 3, 4, 2]); // a pair and a ring of three
    check_chain(&[1, 2, 3, 4, 0]); // one ring
    check_chain(&[3, 4, 5, 3, 4, 5]); // three followers, each of its own leader
    check_chain(&[1, 1, 3, 3]);
}
