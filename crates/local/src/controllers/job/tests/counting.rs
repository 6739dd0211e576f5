//! The law of counting: whatever is interrupted, each pod that is over is counted once.

use std::collections::BTreeSet;

use k8s_openapi::api::batch::v1::JobStatus;
use proptest::prelude::*;
use serde_json::json;

use super::super::tally::Tally;
use super::*;

#[derive(Debug, Clone)]
enum Happening {
    /// A pod ends.
    Ends { which: usize, well: bool },
    /// Somebody deletes a pod. It is gone when nobody keeps it.
    Deleted { which: usize },
    /// A sync that is cut off after so many of its writes.
    Sync { writes: usize },
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        (0..6_usize, any::<bool>()).prop_map(|(which, well)| Happening::Ends { which, well }),
        (0..6_usize).prop_map(|which| Happening::Deleted { which }),
        (0..5_usize).prop_map(|writes| Happening::Sync { writes }),
    ]
}

/// What the API server has.
struct Cluster {
    world: World,
    is_indexed: bool,
}

impl Cluster {
    fn new(is_indexed: bool) -> Self {
        let mode = if is_indexed { "Indexed" } else { "NonIndexed" };
        let world =
            job(json!({"completionMode": mode, "completions": 6, "parallelism": 6, "backoffLimit": 100}));
        let pods = (0..6).map(|index| {
            let pod = pod(&format!("p{index}"), "Running");
            if is_indexed { of_index(index, pod) } else { pod }
        });
        Self { world: world.pods(pods), is_indexed }
    }

    fn pod(&mut self, which: usize) -> Option<&mut Value> {
        let name = format!("p{which}");
        self.world.pods.iter_mut().find(|pod| pod["metadata"]["name"] == name.as_str())
    }

    /// Pods that nobody keeps are gone.
    fn collect(&mut self) {
        self.world.pods.retain(|pod| {
            pod["metadata"].get("deletionTimestamp").is_none() || pod["metadata"]["finalizers"] != json!([])
        });
    }

    /// One sync: the status, then a finalizer after the other. Tells whether there was anything to do.
    fn sync(&mut self, writes: usize) -> bool {
        let job: Job = serde_json::from_value(self.world.job.clone()).unwrap();
        let pods: Vec<Pod> =
            self.world.pods.iter().map(|pod| serde_json::from_value(pod.clone()).unwrap()).collect();
        let terms = terms(&self.world);
        let members: Vec<Member<'_>> = pods.iter().map(|pod| Member::new(pod, &terms)).collect();
        let mut tally = Tally::of(&job.status.unwrap(), &terms);
        let let_go = tally.take_in(&members, &terms, None, &BTreeSet::new());
        let completed = tally.completed.to_string();
        let status = serde_json::to_value(JobStatus {
            succeeded: Some(tally.succeeded),
            failed: Some(tally.failed),
            uncounted_terminated_pods: Some(tally.uncounted()),
            completed_indexes: self.is_indexed.then_some(completed),
            ..JobStatus::default()
        });
        let status = status.unwrap();
        let changes = status != self.world.job["status"] || !let_go.is_empty();
        if writes > 0 {
            self.world.job["status"] = status;
        }
        let names: Vec<String> = let_go.iter().map(|member| member.name().to_owned()).collect();
        for name in names.iter().take(writes.saturating_sub(1)) {
            let pod = self.world.pods.iter_mut().find(|pod| pod["metadata"]["name"] == name.as_str());
            pod.unwrap()["metadata"]["finalizers"] = json!([]);
        }
        self.collect();
        changes
    }
}

proptest! {
    #[test]
    fn every_pod_is_counted_once(is_indexed in any::<bool>(), history in prop::collection::vec(happening(), 0..30)) {
        let mut cluster = Cluster::new(is_indexed);
        // What really became of each; a pod that is deleted while it runs has failed.
        let mut succeeded = BTreeSet::new();
        let mut failed = BTreeSet::new();
        for happening in history {
            match happening {
                Happening::Ends { which, well } => {
                    let fate = if well { &mut succeeded } else { &mut failed };
                    if let Some(pod) = cluster.pod(which).filter(|pod| {
                        pod["status"]["phase"] == "Running" && pod["metadata"].get("deletionTimestamp").is_none()
                    }) {
                        pod["status"]["phase"] = json!(if well { "Succeeded" } else { "Failed" });
                        fate.insert(which);
                    }
                }
                Happening::Deleted { which } => {
                    if let Some(pod) = cluster.pod(which) {
                        pod["metadata"]["deletionTimestamp"] = json!(at(10));
                        if pod["status"]["phase"] == "Running" {
                            failed.insert(which);
                        }
                    }
                    cluster.collect();
                }
                Happening::Sync { writes } => {
                    cluster.sync(writes);
                }
            }
        }
        let syncs = (0..10).take_while(|_| cluster.sync(usize::MAX)).count();
        prop_assert!(syncs < 10, "it never comes to rest");
        let status = &cluster.world.job["status"];
        prop_assert_eq!(&status["uncountedTerminatedPods"], &json!({}));
        prop_assert_eq!(&status["succeeded"], &json!(succeeded.len()));
        prop_assert_eq!(&status["failed"], &json!(failed.len()));
    }
}
