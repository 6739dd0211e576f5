//! What is true of every pod, whatever happens to it.

use proptest::prelude::*;

use super::*;

/// Something that happens.
#[derive(Debug, Clone)]
enum Happening {
    /// So many seconds pass, and the node looks.
    Time(u16),
    /// A container that runs ends.
    Ends { which: u8, code: u8 },
    /// A probe changes its result.
    Probe { which: u8, started: bool, ready: bool },
    /// The node is started again: nothing of its containers is left.
    Restart,
    /// The user deletes the pod.
    Delete { grace: i64 },
    /// The node's clock is set.
    Clock(i16),
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        4 => (0_u16..400).prop_map(Happening::Time),
        4 => (any::<u8>(), prop_oneof![Just(0), Just(1), Just(143)]).prop_map(|(which, code)| Happening::Ends { which, code }),
        2 => (any::<u8>(), any::<bool>(), any::<bool>())
            .prop_map(|(which, started, ready)| Happening::Probe { which, started, ready }),
        1 => Just(Happening::Restart),
        1 => prop_oneof![0_i64..40, Just(i64::MAX - 1), Just(i64::MAX)].prop_map(|grace| Happening::Delete { grace }),
        1 => (-4000_i16..4000).prop_map(Happening::Clock),
    ]
}

fn spec() -> impl Strategy<Value = String> {
    let policy = prop_oneof![Just("Always"), Just("OnFailure"), Just("Never")];
    let init = prop::collection::vec(any::<bool>(), 0..3);
    let deadline = prop::option::weighted(0.2, prop_oneof![1_i64..1000, Just(i64::MAX)]);
    (policy, init, 1_usize..3, deadline).prop_map(|(policy, init, main, deadline)| {
        let init: Vec<_> = init
            .iter()
            .enumerate()
            .map(|(at, sidecar)| {
                format!("{{name: i{at}, image: i{}}}", if *sidecar { ", restartPolicy: Always" } else { "" })
            })
            .collect();
        let main: Vec<_> = (0..main).map(|at| format!("{{name: m{at}, image: m}}")).collect();
        let deadline = deadline.map_or_else(String::new, |limit| format!("activeDeadlineSeconds: {limit}, "));
        let (init, main) = (init.join(", "), main.join(", "));
        format!("{{restartPolicy: {policy}, {deadline}initContainers: [{init}], containers: [{main}]}}")
    })
}

impl Stage {
    fn happens(&mut self, happening: &Happening) {
        let names: Vec<String> = self.seen.keys().cloned().collect();
        let of = |which: u8| names.get(usize::from(which) % names.len().max(1));
        match happening {
            Happening::Time(seconds) => self.now += i64::from(*seconds),
            Happening::Clock(seconds) => self.now += i64::from(*seconds),
            Happening::Restart => self.seen.clear(),
            Happening::Delete { grace } => {
                if self.pod.metadata.deletion_timestamp.is_none() {
                    self.deleted(self.now, *grace);
                }
            }
            Happening::Ends { which, code } => {
                let Some(name) = of(*which) else { return };
                if let Observed::Running { attempt, since, .. } = self.seen[name] {
                    let (until, code) = (at(self.now), i32::from(*code));
                    self.seen.insert(
                        name.clone(),
                        Observed::Exited {
                            attempt,
                            code,
                            since,
                            until,
                            message: None,
                            by_node: code % 2 == 1,
                        },
                    );
                }
            }
            Happening::Probe { which, started: is_started, ready: is_ready } => {
                let Some(name) = of(*which) else { return };
                if let Some(Observed::Running { started, ready, .. }) = self.seen.get_mut(name) {
                    (*started, *ready) = (*started || *is_started, *is_ready);
                }
            }
        }
    }

    /// Does what was decided, as a runtime would.
    fn obey(&mut self, decision: &Decision) {
        for start in &decision.starts {
            let known = self.seen.get(&start.container);
            assert!(!matches!(known, Some(Observed::Running { .. })), "{} runs already", start.container);
            self.runs(&start.container, start.attempt, self.now);
        }
        if decision.stop.is_some() {
            for which in 0..self.seen.len() {
                self.happens(&Happening::Ends { which: u8::try_from(which).unwrap(), code: 143 });
            }
        }
    }
}

fn rank(status: &PodStatus) -> u8 {
    match status.phase.as_deref() {
        Some("Pending") => 0,
        Some("Running") => 1,
        _ => 2,
    }
}

fn restarts(status: &PodStatus) -> Vec<i32> {
    let all = status.init_container_statuses.iter().chain(&status.container_statuses).flatten();
    all.map(|status| status.restart_count).collect()
}

/// What may not be true of two statuses that follow each other.
fn assert_follows(before: &PodStatus, after: &PodStatus) {
    assert!(rank(before) <= rank(after), "the phase goes back: {:?} {:?}", before.phase, after.phase);
    if rank(before) == 2 {
        assert_eq!(before.phase, after.phase);
    }
    assert!(restarts(before).iter().zip(restarts(after)).all(|(before, after)| *before <= after));
    assert!(before.start_time.is_none() || before.start_time == after.start_time);
    assert!(before.pod_ip.is_none() || before.pod_ip == after.pod_ip);
    for condition in after.conditions.iter().flatten() {
        let known = before.conditions.iter().flatten().find(|known| known.type_ == condition.type_);
        if let Some(known) = known.filter(|known| known.status == condition.status) {
            assert_eq!(known.last_transition_time, condition.last_transition_time);
        }
    }
    let is = |type_: &str| {
        after.conditions.iter().flatten().any(|known| known.type_ == type_ && known.status == "True")
    };
    assert!(!is("Ready") || is("ContainersReady") && after.phase.as_deref() == Some("Running"), "{after:?}");
}

/// No main container starts for the first time before all init containers have done their part.
fn assert_order(before: &PodStatus, decision: &Decision) {
    let never = |status: &ContainerStatus| status.container_id.is_none() && status.restart_count == 0;
    let starts_main =
        decision.starts.iter().any(|start| start.container.starts_with('m') && start.attempt == 0);
    if starts_main && before.container_statuses.iter().flatten().all(never) {
        let mut init = decision.status.init_container_statuses.iter().flatten();
        assert!(init.all(|init| init.ready || init.started == Some(true)), "{:?}", decision.status);
    }
}

proptest! {
    #[test]
    fn whatever_happens_a_pod_goes_forward_and_comes_to_rest(spec in spec(), happenings in prop::collection::vec(happening(), 0..25)) {
        let mut stage = Stage::new(&spec);
        for happening in &happenings {
            stage.happens(happening);
            let mut rounds = 0;
            loop {
                let before = stage.pod.status.clone().unwrap();
                let decision = stage.step();
                assert_follows(&before, &decision.status);
                assert_order(&before, &decision);
                let is_ended = rank(&before) == 2 || stage.pod.metadata.deletion_timestamp.is_some();
                prop_assert!(!is_ended || decision.starts.is_empty());
                let acts = !decision.starts.is_empty() || decision.stop.is_some();
                stage.obey(&decision);
                if before == decision.status && !acts {
                    break;
                }
                rounds += 1;
                prop_assert!(rounds < 20, "no rest: {}", tell(&decision));
            }
        }
        if stage.pod.metadata.deletion_timestamp.is_some() {
            let decision = stage.decide();
            prop_assert!(rank(&decision.status) == 2);
            prop_assert!(decision.over || stage.pod.metadata.deletion_grace_period_seconds == Some(0));
        }
    }
}
