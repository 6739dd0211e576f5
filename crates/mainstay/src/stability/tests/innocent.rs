//! What is written often and is no loop.

use proptest::prelude::*;

use super::*;

/// Runs so many passes and finds no loop.
fn innocent(rounds: u64, mut next: impl FnMut(&mut World, u64) -> Vec<TestWrite>) {
    let mut world = World::new();
    for round in 1..=rounds {
        let writes = next(&mut world, round);
        let stability = world.pass(&writes);
        assert!(!matches!(stability, Stability::Loop(_)), "round {round}: {stability:?}");
    }
}

#[test]
fn a_status_that_counts_children_as_they_come_up_is_no_loop() {
    innocent(60, |world, round| {
        world.status(&object("Pod", &round.to_string()), 1);
        vec![field(&parent(), "status.ready", round)]
    });
}

#[test]
fn a_status_that_follows_a_crashing_pod_is_no_loop() {
    innocent(60, |world, round| {
        world.status(&object("Pod", "web"), round);
        vec![field(&parent(), "status.ready", round % 2)]
    });
}

#[test]
fn a_child_that_lists_the_ready_pods_is_no_loop() {
    let config = object("ConfigMap", "members");
    innocent(60, |world, round| {
        world.status(&object("Pod", &round.to_string()), 1);
        vec![field(&config, "data.members", round), field(&parent(), "status.members", round)]
    });
}

#[test]
fn a_child_that_follows_the_parent_is_no_loop() {
    let deployment = object("Deployment", "web");
    innocent(60, |world, round| {
        world.asked = round;
        world.status(&deployment, round);
        vec![field(&deployment, "spec.replicas", round)]
    });
}

#[test]
fn a_child_that_follows_a_related_object_is_no_loop() {
    let config = object("ConfigMap", "web");
    innocent(60, |world, round| {
        world.status(&object("Secret", "token"), round);
        vec![field(&config, "data.token", round)]
    });
}

#[test]
fn a_roll_out_in_eight_steps_is_no_loop() {
    let deployment = object("Deployment", "web");
    innocent(8, |world, round| {
        world.status(&deployment, round);
        vec![field(&deployment, "spec.replicas", round), field(&parent(), "status.step", round)]
    });
}

#[test]
fn a_rolling_change_that_its_status_counts_is_no_loop() {
    innocent(60, |world, round| {
        let child = object("Pod", &round.to_string());
        world.status(&child, round);
        vec![field(&child, "spec.image", 2), field(&parent(), "status.updated", round)]
    });
}

/// Children without a status: only our own writes move the count.
#[test]
fn a_status_that_counts_what_was_created_is_no_loop() {
    innocent(60, |_, round| {
        let child = object("ConfigMap", &round.to_string());
        vec![created(&child), field(&parent(), "status.created", round)]
    });
}

/// The autoscaler's wish scales the Deployment, whose progress the parent's status follows in several steps.
#[test]
fn a_chain_that_begins_outside_is_no_loop() {
    let deployment = object("Deployment", "web");
    innocent(100, |world, round| {
        if round % 5 == 0 {
            world.status(&object("Autoscaler", "web"), round);
            return vec![field(&deployment, "spec.replicas", round)];
        }
        world.status(&deployment, round);
        vec![field(&parent(), "status.ready", round % 3)]
    });
}

#[test]
fn a_restart_of_the_same_child_now_and_then_is_no_loop() {
    innocent(7, |_, _| vec![created(&object("Pod", "web"))]);
}

#[test]
fn a_person_who_changes_a_field_four_times_is_no_loop() {
    let deployment = object("Deployment", "web");
    innocent(4, |_, _| vec![field(&deployment, "spec.replicas", 3)]);
}

#[test]
fn writes_that_are_hours_apart_are_no_loop() {
    let config = object("ConfigMap", "web");
    innocent(40, |world, round| {
        world.now += Duration::from_hours(1);
        vec![field(&config, "data.token", round)]
    });
}

proptest! {
    /// Whatever happens to the pods, and however often: values that follow them are never a loop, though a child that
    /// is written so answers with a status of its own.
    #[test]
    fn what_follows_its_inputs_is_no_loop(
        events in proptest::collection::vec((0..4_u64, 0..3_u64, 0..3_u64), 1..150),
    ) {
        let mut world = World::new();
        let (config, deployment) = (object("ConfigMap", "web"), object("Deployment", "web"));
        let mut written = BTreeMap::new();
        for (pod, state, echo) in events {
            world.status(&object("Pod", &pod.to_string()), state);
            let pods: Vec<_> = world.statuses.iter().filter(|(object, _)| object.kind.kind() == "Pod").collect();
            let sum = pods.iter().map(|(_, state)| **state).sum::<u64>();
            let all = pods.iter().fold(0, |all, (_, state)| all * 3 + **state);
            let values = [(&config, "data.all", all), (&deployment, "spec.replicas", sum)];
            let mut writes = Vec::new();
            for (object, path, value) in values {
                if written.insert(path, value) != Some(value) {
                    writes.push(field(object, path, value));
                }
            }
            if written.insert("status.sum", sum) != Some(sum) {
                writes.push(field(&parent(), "status.sum", sum));
            }
            world.status(&deployment, sum * 3 + echo);
            let stability = world.pass(&writes);
            prop_assert!(!matches!(stability, Stability::Loop(_)), "{stability:?}");
        }
    }

    /// However many fields there are and whatever else is written once in a while: what differs each time for no
    /// reason is found, and only that is named.
    #[test]
    fn what_differs_for_no_reason_is_found(seed: u64, limit in 3..10_u32) {
        let mut world = World::new();
        world.loops = Loops::new(LoopSettings { writes_max: limit, ..LoopSettings::default() });
        world.status(&object("Pod", "web"), 1);
        let mut rng = fastrand::Rng::with_seed(seed);
        let config = object("ConfigMap", "web");
        let found = world.until_loop(|_, _| vec![field(&config, "data.random", rng.u64(..))]);
        let (round, spots) = found.unwrap();
        prop_assert_eq!(round, u64::from(limit));
        prop_assert_eq!(&spots[0].paths, &["data.random"]);
    }
}
