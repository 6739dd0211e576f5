//! A node with a runtime, on a cluster: what it asks of the runtime, and what it says of its pods.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node as NodeObject, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::{Api, DeleteParams};
use mainstay::{Kind, Operator};
use mainstay_local::node::heartbeat::{self, Description, register};
use mainstay_local::node::runtime::{CannotStart, Launch, Observed, PodId, Runtime, wake};
use mainstay_local::node::{NAME, Node, configure};
use mainstay_testkit::{Cluster, OperatorTest, eventually, for_each_cluster};
use serde_json::{Value, json};

/// Runs nothing, and says what it was told to say.
#[derive(Default)]
struct Stand {
    seen: Mutex<BTreeMap<(String, String), Observed>>,
    asked: Mutex<Vec<String>>,
    refuses: Mutex<Option<CannotStart>>,
}

impl Stand {
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }

    fn note(&self, what: String) {
        let mut asked = self.asked.lock().unwrap();
        // What is asked again while nothing has happened is the same question.
        if asked.last() != Some(&what) {
            asked.push(what);
        }
    }

    /// All containers end.
    fn end(&self, code: i32) {
        for observed in self.seen.lock().unwrap().values_mut() {
            if let Observed::Running { attempt, since, .. } = *observed {
                *observed = Observed::Exited {
                    attempt,
                    code,
                    since,
                    until: Timestamp::now(),
                    message: None,
                    by_node: false,
                };
            }
        }
    }
}

impl Runtime for Stand {
    fn runs(&self, image: &str) -> bool {
        image.starts_with("mainstay:")
    }

    fn address(&self, _: &PodId) -> String {
        "127.1.2.3".to_owned()
    }

    fn observe(&self, pod: &PodId, container: &str) -> Observed {
        let seen = self.seen.lock().unwrap();
        seen.get(&(pod.uid.clone(), container.to_owned())).cloned().unwrap_or(Observed::Absent)
    }

    fn start(&self, launch: Launch) -> BoxFuture<'_, Result<(), CannotStart>> {
        self.note(format!("start {} {}", launch.container, launch.attempt));
        let refused = self.refuses.lock().unwrap().clone();
        if refused.is_none() {
            let running = Observed::Running {
                attempt: launch.attempt,
                since: Timestamp::now(),
                started: true,
                ready: true,
            };
            self.seen.lock().unwrap().insert((launch.pod.uid, launch.container), running);
        }
        async { refused.map_or(Ok(()), Err) }.boxed()
    }

    fn stop(&self, pod: &PodId, grace: Duration) {
        self.note(format!("stop {} within {}s", pod.name, grace.as_secs_f64().round()));
    }

    fn forget(&self, pod: &PodId) {
        self.note(format!("forget {}", pod.name));
    }
}

fn pod(image: &str) -> Value {
    let spec = json!({
        "nodeName": "here",
        "terminationGracePeriodSeconds": 7,
        "automountServiceAccountToken": false,
        "containers": [{"name": "c", "image": image}],
    });
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
}

fn node(cluster: &Cluster, stand: &Arc<Stand>) -> OperatorTest {
    let node = Node::new("here", "192.0.2.1").runtime(Arc::clone(stand) as Arc<dyn Runtime>);
    OperatorTest::new(cluster, NAME, |operator| configure(operator, &node))
}

async fn status(test: &OperatorTest) -> Value {
    test.get(&Kind::of::<Pod>(), "p").await.expect("the pod is there")["status"].take()
}

async fn id(test: &OperatorTest) -> PodId {
    let pod = test.get(&Kind::of::<Pod>(), "p").await.expect("the pod is there");
    let text = |field: &str| pod["metadata"][field].as_str().unwrap_or_default().to_owned();
    PodId { namespace: text("namespace"), name: text("name"), uid: text("uid") }
}

#[tokio::test]
async fn a_runtime_starts_what_it_runs_and_is_heard_when_it_ends() {
    for_each_cluster(async |cluster| {
        let stand = Arc::new(Stand::default());
        let test = node(&cluster, &stand);
        test.create(pod("mainstay:1")).await;
        test.settle().await;
        assert_eq!(stand.asked(), ["start c 0"]);
        let running = status(&test).await;
        assert_eq!((&running["phase"], &running["podIP"]), (&json!("Running"), &json!("127.1.2.3")));
        test.assert_settled().await;
        stand.end(1);
        wake(test.operator(), &id(&test).await);
        test.settle().await;
        assert_eq!(stand.asked(), ["start c 1"]);
        let container = &status(&test).await["containerStatuses"][0];
        assert_eq!((&container["restartCount"], &container["ready"]), (&json!(1), &json!(true)));
        assert_eq!(container["lastState"]["terminated"]["exitCode"], 1);
        test.assert_settled().await;
    })
    .await;
}

#[tokio::test]
async fn pods_with_other_images_are_simulated() {
    for_each_cluster(async |cluster| {
        let stand = Arc::new(Stand::default());
        let test = node(&cluster, &stand);
        let mut mixed = pod("mainstay:1");
        let other = json!({"name": "d", "image": "web"});
        mixed["spec"]["containers"].as_array_mut().unwrap().push(other);
        test.create(mixed).await;
        let runs = async || {
            test.settle().await;
            (status(&test).await["phase"] == "Running").then_some(())
        };
        eventually("it runs", runs).await;
        assert!(stand.asked().is_empty());
        assert!(status(&test).await["podIP"].as_str().unwrap().starts_with("10."));
    })
    .await;
}

#[tokio::test]
async fn a_container_that_cannot_start_waits_with_the_reason() {
    for_each_cluster(async |cluster| {
        let stand = Arc::new(Stand::default());
        let (reason, message) = ("RunContainerError".to_owned(), "no such program".to_owned());
        *stand.refuses.lock().unwrap() = Some(CannotStart { reason, message });
        let test = node(&cluster, &stand);
        test.create(pod("mainstay:1")).await;
        test.settle().await;
        let waiting = &status(&test).await["containerStatuses"][0]["state"]["waiting"];
        assert_eq!(*waiting, json!({"reason": "RunContainerError", "message": "no such program"}));
        test.assert_settled().await;
        *stand.refuses.lock().unwrap() = None;
        wake(test.operator(), &id(&test).await);
        test.settle().await;
        assert_eq!(status(&test).await["phase"], "Running");
    })
    .await;
}

#[tokio::test]
async fn a_deleted_pod_is_stopped_and_goes_when_its_containers_have_ended() {
    for_each_cluster(async |cluster| {
        let stand = Arc::new(Stand::default());
        let test = node(&cluster, &stand);
        test.create(pod("mainstay:1")).await;
        test.settle().await;
        let id = id(&test).await;
        test.delete(&Kind::of::<Pod>(), "p").await;
        test.settle().await;
        assert!(test.exists(&Kind::of::<Pod>(), "p").await);
        let asked = stand.asked();
        assert!(asked[1].starts_with("stop p within") && asked[1] != "stop p within 0s", "{asked:?}");
        stand.end(0);
        wake(test.operator(), &id);
        test.settle().await;
        assert!(!test.exists(&Kind::of::<Pod>(), "p").await);
        assert_eq!(stand.asked().last().map(String::as_str), Some("forget p"));
    })
    .await;
}

#[tokio::test]
async fn a_pod_that_is_gone_without_grace_is_ended_at_once() {
    for_each_cluster(async |cluster| {
        let stand = Arc::new(Stand::default());
        let test = node(&cluster, &stand);
        test.create(pod("mainstay:1")).await;
        test.settle().await;
        let pods: Api<Pod> = Api::namespaced(cluster.client(), cluster.namespace());
        pods.delete("p", &DeleteParams::default().grace_period(0)).await.unwrap();
        test.settle().await;
        assert_eq!(stand.asked(), ["start c 0", "stop p within 0s", "forget p"]);
    })
    .await;
}

#[tokio::test]
async fn what_ran_before_the_node_was_started_again_has_ended_and_runs_again() {
    for_each_cluster(async |cluster| {
        let test = node(&cluster, &Arc::default());
        test.create(pod("mainstay:1")).await;
        test.settle().await;
        let stand = Arc::new(Stand::default());
        let test = node(&cluster, &stand);
        test.settle().await;
        assert_eq!(stand.asked(), ["start c 1"]);
        let container = &status(&test).await["containerStatuses"][0];
        assert_eq!(container["lastState"]["terminated"]["reason"], "ContainerStatusUnknown");
        test.assert_settled().await;
    })
    .await;
}

#[tokio::test]
async fn a_node_registers_and_renews_its_lease() {
    for_each_cluster(async |cluster| {
        // Leases of nodes are all in one namespace. Those of other nodes are left alone.
        let cluster = cluster.unrestricted().await;
        let name = format!("{}-node", cluster.namespace());
        let resources = BTreeMap::from([("cpu".to_owned(), Quantity("4".to_owned()))]);
        let description = Description {
            name: name.clone(),
            address: "192.0.2.1".to_owned(),
            capacity: resources.clone(),
            allocatable: resources,
            labels: BTreeMap::new(),
            version: "v1.36.3".to_owned(),
        };
        let nodes: Api<NodeObject> = Api::all(cluster.client());
        for _ in 0..2 {
            register(cluster.client(), &description, Timestamp::now()).await.unwrap();
            let node = nodes.get(&name).await.unwrap();
            assert_eq!(node.spec.and_then(|spec| spec.taints), None);
            assert_eq!(node.metadata.labels.unwrap()["kubernetes.io/hostname"], name);
            let conditions = node.status.and_then(|status| status.conditions).unwrap();
            assert!(conditions.iter().any(|known| known.type_ == "Ready" && known.status == "True"));
        }
        let operator = Operator::builder(NAME, cluster.client());
        let operator = heartbeat::configure(operator, description).build().unwrap();
        let test = OperatorTest::stepping(&cluster, &operator);
        test.assert_settled().await;
        let leases: Api<Lease> = Api::namespaced(cluster.client(), "kube-node-lease");
        let lease = leases.get(&name).await.unwrap();
        assert_eq!(lease.spec.unwrap().holder_identity.as_deref(), Some(name.as_str()));
        assert_eq!(lease.metadata.owner_references.unwrap()[0].kind, "Node");
        nodes.delete(&name, &DeleteParams::default()).await.unwrap();
    })
    .await;
}
