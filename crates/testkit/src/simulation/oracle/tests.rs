use std::sync::Arc;

use serde_json::{Value, json};

use super::super::record::Remains;
use super::super::state::{Place, State};
use super::super::trace::Actor;
use super::*;

/// Something that the user made and the operator removed at a stage.
fn removal(resource: &str, name: &str, stage: usize) -> Removal {
    Removal {
        place: Place::new(resource, "shop", name),
        maker: "user".into(),
        had_finalizers: false,
        generate_name: None,
        by: Actor { name: "operator".into(), incarnation: 2 },
        stage,
    }
}

/// The same made by the operator itself.
fn own(resource: &str, name: &str) -> Removal {
    Removal { maker: "operator".into(), ..removal(resource, name, 0) }
}

fn generated(name: &str) -> Removal {
    Removal { generate_name: Some("job-".to_owned()), ..removal("jobs.batch", name, 0) }
}

fn run(removals: &[Removal]) -> Run {
    Run { remains: Remains { removals: removals.to_vec(), ..Remains::default() }, end: State::default() }
}

/// What is found lost in a run, by what was removed without faults.
fn lost_by(rules: &Rules, without: &[Removal], with: &[Removal]) -> Vec<String> {
    let baseline = rules.baseline(&run(without));
    let found = rules.judge(&baseline, &run(with));
    found.iter().map(ToString::to_string).collect()
}

fn lost(without: &[Removal], with: &[Removal]) -> Vec<String> {
    lost_by(&Rules::default(), without, with)
}

#[test]
fn what_is_removed_without_faults_too_is_not_lost() {
    let (a, b) = (removal("configmaps", "a", 1), removal("configmaps", "b", 2));
    assert!(lost(&[a.clone(), b.clone()], &[b, a.clone()]).is_empty());
    assert!(lost(std::slice::from_ref(&a), &[]).is_empty());
    // Later than without faults is as late as things come that went wrong.
    assert!(lost(&[a], &[removal("configmaps", "a", 7)]).is_empty());
}

#[test]
fn what_is_removed_once_more_than_without_faults_is_lost() {
    let a = removal("configmaps", "a", 1);
    assert_eq!(lost(&[], std::slice::from_ref(&a)), ["lost: configmaps shop/a, removed by operator#2"]);
    assert_eq!(lost(std::slice::from_ref(&a), &[a.clone(), a.clone()]).len(), 1);
    assert_eq!(lost(std::slice::from_ref(&a), &[removal("configmaps", "b", 1)]).len(), 1);
    assert_eq!(lost(std::slice::from_ref(&a), &[removal("secrets", "a", 1)]).len(), 1);
    // However often, it is told once.
    assert_eq!(lost(&[], &[a.clone(), a.clone(), a]).len(), 1);
}

#[test]
fn what_is_removed_before_the_user_did_what_it_follows_from_is_lost() {
    assert_eq!(lost(&[removal("configmaps", "a", 2)], &[removal("configmaps", "a", 1)]).len(), 1);
    let (early, late) = (removal("configmaps", "a", 1), removal("configmaps", "a", 3));
    assert!(lost(&[early.clone(), late.clone()], &[early.clone(), late.clone()]).is_empty());
    assert_eq!(lost(&[early.clone(), late], &[early.clone(), early]).len(), 1);
}

#[test]
fn the_same_place_in_another_cluster_is_another() {
    let a = removal("configmaps", "a", 1);
    let mut east = a.clone();
    east.place = east.place.in_cluster("east");
    assert_eq!(lost(&[a], &[east]), ["lost: configmaps shop/a in east, removed by operator#2"]);
}

#[test]
fn generated_names_are_counted_by_their_prefix() {
    assert!(
        lost(&[generated("job-a"), generated("job-b")], &[generated("job-x"), generated("job-y")]).is_empty()
    );
    let found = lost(&[generated("job-a")], &[generated("job-x"), generated("job-y")]);
    assert_eq!(found, ["lost: jobs.batch shop/job-*, removed by operator#2"]);
}

#[test]
fn names_with_uids_are_counted_without_them() {
    let named = |uid: &str| own("persistentvolumes", &format!("pvc-{uid}"));
    let (one, two) = ("0c1d2e3f-0000-4000-8000-000000000001", "0c1d2e3f-0000-4000-8000-000000000002");
    assert!(lost(&[named(one)], &[named(two)]).is_empty());
    let found = lost(&[named(one)], &[named(one), named(two)]);
    assert_eq!(found, ["lost: persistentvolumes shop/pvc-*, removed by operator#2"]);
}

#[test]
fn what_an_operator_made_it_may_remove_unless_it_holds_data() {
    assert!(lost(&[], &[own("deployments.apps", "a")]).is_empty());
    for resource in ["persistentvolumeclaims", "persistentvolumes", "secrets", "external"] {
        assert_eq!(lost(&[], &[own(resource, "a")]).len(), 1, "{resource}");
    }
    // A custom kind of the same name in another group is another.
    assert!(lost(&[], &[own("secrets.example.com", "a")]).is_empty());
    let finalized = Removal { had_finalizers: true, ..own("deployments.apps", "a") };
    assert_eq!(lost(&[], &[finalized]).len(), 1);
}

#[test]
fn what_the_author_says_holds_data_is_kept() {
    let rules = Rules { kept: vec!["databases.example.com".to_owned()], ..Rules::default() };
    assert_eq!(lost_by(&rules, &[], &[own("databases.example.com", "a")]).len(), 1);
    assert!(lost_by(&rules, &[], &[own("databases.example.org", "a")]).is_empty());
    assert!(lost(&[], &[own("databases.example.com", "a")]).is_empty());
}

/// A run that ended with one object, and was found guilty of this.
fn ended(object: Value, violations: &[Violation]) -> Run {
    let mut end = State::default();
    end.objects.insert(Place::new("configmaps", "shop", "a"), Arc::new(object));
    let violations = violations.to_vec();
    Run { remains: Remains { violations, ..Remains::default() }, end }
}

#[test]
fn another_end_is_told_unless_the_run_was_cut_short() {
    let rules = Rules::default();
    let baseline = rules.baseline(&ended(json!({"data": {"colour": "red"}}), &[]));
    let judge = |object: Value, violations: &[Violation]| {
        let found = rules.judge(&baseline, &ended(object, violations));
        found.iter().map(Violation::name).collect::<Vec<_>>()
    };
    let (red, blue) = (json!({"data": {"colour": "red"}}), json!({"data": {"colour": "blue"}}));
    let second = [Violation::SecondPass { writes: vec!["again".to_owned()] }];
    let cut = [Violation::Unsettled { last: "something".to_owned() }];
    assert!(judge(red.clone(), &[]).is_empty());
    assert_eq!(judge(blue.clone(), &[]), ["end state"]);
    assert_eq!(judge(blue.clone(), &second), ["second pass", "end state"]);
    assert_eq!(judge(red, &second), ["second pass"]);
    assert_eq!(judge(blue, &cut), ["no end"]);
}

#[test]
fn losses_are_told_also_of_a_run_that_was_cut_short() {
    let rules = Rules::default();
    let mut cut = run(&[removal("configmaps", "a", 1)]);
    cut.remains.violations.push(Violation::Unsettled { last: "something".to_owned() });
    let found = rules.judge(&rules.baseline(&run(&[])), &cut);
    assert_eq!(found.iter().map(Violation::name).collect::<Vec<_>>(), ["no end", "lost"]);
}

#[test]
fn ignored_fields_may_differ() {
    let ignored = vec![Ignored::everywhere("/data/colour").unwrap()];
    let rules = Rules { ignored, ..Rules::default() };
    let red = ended(json!({"data": {"colour": "red", "size": 1}}), &[]);
    let baseline = rules.baseline(&red);
    assert!(rules.judge(&baseline, &ended(json!({"data": {"colour": "blue", "size": 1}}), &[])).is_empty());
    let other = ended(json!({"data": {"colour": "blue", "size": 2}}), &[]);
    assert_eq!(rules.judge(&baseline, &other).len(), 1);
    assert_eq!(rules.differences(&red, &other).len(), 1);
}
