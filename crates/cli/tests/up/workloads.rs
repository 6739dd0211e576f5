//! What a cluster does with the objects that people apply.

use crate::up::kubectl::World;

#[tokio::test]
async fn a_deployment_rolls_out() {
    let Some(world) = World::start("a Deployment on mainstay up") else { return };
    let deployment = |image: &str| {
        format!(
            "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: web}}, spec: {{replicas: 3, selector: {{matchLabels: \
             {{app: web}}}}, template: {{metadata: {{labels: {{app: web}}}}, spec: {{containers: [{{name: web, image: '{image}'}}]}}}}}}}}"
        )
    };
    world.apply(&deployment("nginx:1")).await;
    let said = world.rollout("deployment/web").await;
    assert!(said.ends_with("deployment \"web\" successfully rolled out\n"), "{said}");
    world.apply(&deployment("nginx:2")).await;
    world.rollout("deployment/web").await;
    assert_eq!(world.field("deployment/web", ".status.updatedReplicas").await, "3");
    world.kubectl(&["delete", "deployment", "web", "--cascade=foreground", "--timeout=80s"]).await;
    assert_eq!(world.kubectl(&["get", "pods,replicasets", "-o", "name"]).await, "");
}

#[tokio::test]
async fn a_stateful_set_has_its_pods_in_order_and_a_bound_claim_for_each() {
    let Some(world) = World::start("a StatefulSet on mainstay up") else { return };
    world
        .apply(
            "
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers:
      - {name: db, image: postgres, volumeMounts: [{name: data, mountPath: /data}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
",
        )
        .await;
    world.rollout("statefulset/db").await;
    assert_eq!(world.kubectl(&["get", "pods", "-o", "name"]).await, "pod/db-0\npod/db-1\n");
    for claim in ["pvc/data-db-0", "pvc/data-db-1"] {
        assert_eq!(world.field(claim, ".status.phase").await, "Bound");
    }
}

#[tokio::test]
async fn a_job_of_our_image_is_a_process_whose_log_is_read_back() {
    let Some(world) = World::start("a Job on mainstay up") else { return };
    world
        .apply(
            "
apiVersion: batch/v1
kind: Job
metadata: {name: version}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: 'mainstay:test', args: [--version]}]
",
        )
        .await;
    world.kubectl(&["wait", "job/version", "--for=condition=Complete", "--timeout=80s"]).await;
    let log = world.kubectl(&["logs", "job/version"]).await;
    assert_eq!(log, concat!("mainstay ", env!("CARGO_PKG_VERSION"), "\n"));
}
