use expect_test::{Expect, expect};

use super::*;
use crate::config::BootstrapConfig;
use crate::kinds::{BootstrapSpec, Method, NetworkSpec};

fn config(spec: Value) -> NetworkConfig {
    NetworkConfig::from(serde_json::from_value::<NetworkSpec>(spec).unwrap())
}

fn rendered(spec: Value) -> Vec<Value> {
    let config = config(spec);
    all("lab", &config, &Parts { secret: Some("s3cret"), peers: Some((&[], &Edges::new())), bootstrap: true })
}

fn names(objects: &[Value]) -> String {
    let name = |object: &Value| {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or("-");
        format!(
            "{} {namespace}/{}\n",
            object["kind"].as_str().unwrap(),
            object["metadata"]["name"].as_str().unwrap()
        )
    };
    objects.iter().map(name).collect()
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    objects.iter().find(|object| object["kind"] == kind).unwrap()
}

fn check(value: &Value, expect: &Expect) {
    let text = serde_saphyr::to_string(value).unwrap();
    expect.assert_eq(&text.replace(crate::config::IMAGE, "IMAGE"));
}

#[test]
fn a_network_consists_of_these_in_an_order_in_which_they_can_be_made() {
    let spec = json!({"replicas": 5, "peers": [{}, {"name": "far", "weight": 4}]});
    let mut objects = rendered(spec.clone());
    let job = objects.pop().unwrap();
    expect![[r#"
        Namespace -/network-lab
        ConfigMap network-lab/network-config
        Secret network-lab/network-secret
        Service network-lab/peers-0
        StatefulSet network-lab/peers-0
        Service network-lab/far
        StatefulSet network-lab/far
        ConfigMap network-lab/keramik-peers
        ConfigMap network-lab/network-edges
    "#]]
    .assert_eq(&names(&objects));
    assert_eq!(job["metadata"]["name"], bootstrap_job_name(&config(spec)));
    assert_eq!(objects[4]["spec"]["replicas"], 1);
    assert_eq!(objects[6]["spec"]["replicas"], 4);
}

#[test]
fn a_group_of_reference_peers() {
    let objects = rendered(json!({"replicas": 2}));
    check(
        &of_kind(&objects, "Service")["spec"],
        &expect![[r#"
        clusterIP: None
        ports:
        - name: rpc
          port: 5001
          protocol: TCP
          targetPort: 5001
        - name: p2p
          port: 4001
          protocol: TCP
          targetPort: 4001
        publishNotReadyAddresses: true
        selector:
          mainstay.dev/network: lab
          mainstay.dev/peer-group: peers-0
          mainstay.dev/role: peer
    "#]],
    );
    check(
        &of_kind(&objects, "StatefulSet")["spec"],
        &expect![[r#"
        podManagementPolicy: Parallel
        replicas: 2
        selector:
          matchLabels:
            mainstay.dev/network: lab
            mainstay.dev/peer-group: peers-0
            mainstay.dev/role: peer
        serviceName: peers-0
        template:
          metadata:
            annotations:
              mainstay.dev/network-config: 1aa3f92783bbfc52
            labels:
              mainstay.dev/network: lab
              mainstay.dev/peer-group: peers-0
              mainstay.dev/role: peer
          spec:
            automountServiceAccountToken: false
            containers:
            - args:
              - runner
              - peer
              env:
              - name: NETWORK_NAME
                value: lab
              - name: NETWORK_TYPE
                value: local
              - name: NETWORK_CONFIG
                value: /network/config.json
              - name: NETWORK_SECRET
                valueFrom:
                  secretKeyRef:
                    key: secret
                    name: network-secret
              - name: POD_NAME
                valueFrom:
                  fieldRef:
                    apiVersion: v1
                    fieldPath: metadata.name
              - name: POD_IP
                valueFrom:
                  fieldRef:
                    apiVersion: v1
                    fieldPath: status.podIP
              - name: RPC_PORT
                value: "5001"
              - name: P2P_PORT
                value: "4001"
              image: IMAGE
              imagePullPolicy: IfNotPresent
              name: peer
              ports:
              - containerPort: 5001
                name: rpc
                protocol: TCP
              - containerPort: 4001
                name: p2p
                protocol: TCP
              readinessProbe:
                periodSeconds: 5
                tcpSocket:
                  port: rpc
              volumeMounts:
              - mountPath: /network
                name: network
                readOnly: true
            enableServiceLinks: false
            volumes:
            - configMap:
                name: network-config
              name: network
    "#]],
    );
}

/// The spec of a group of which everything is said.
fn all_said() -> Value {
    let group = json!({
        "image": "example.com/peer:1", "command": ["peer"], "args": ["--fast"], "tag": "node",
        "env": [{"name": "P2P_PORT", "value": "9"}, {"name": "LEVEL", "value": "debug"}],
        "ports": [{"name": "flight", "port": 5102}], "resources": {"limits": {"cpu": "1"}},
        "storage": {"size": "2Gi", "class": "fast", "path": "/var/peer"},
        "rpc": {"adapter": "json", "port": 7000}, "p2pPort": 7001,
        "init": [{"name": "keys", "command": ["make-keys"], "env": [{"name": "BITS", "value": "9"}]}],
    });
    let terms = json!([{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]);
    let objects = rendered(json!({"replicas": 1, "peers": [group], "nodeSelectorTerms": terms}));
    of_kind(&objects, "StatefulSet")["spec"].clone()
}

#[test]
fn a_group_has_volumes_and_nodes_as_its_spec_says() {
    let spec = all_said();
    check(
        &spec["volumeClaimTemplates"],
        &expect![[r#"
        - metadata:
            name: data
          spec:
            accessModes:
            - ReadWriteOnce
            resources:
              requests:
                storage: 2Gi
            storageClassName: fast
    "#]],
    );
    let pod = &spec["template"]["spec"];
    check(
        &pod["affinity"],
        &expect![[r#"
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
            - matchExpressions:
              - key: zone
                operator: In
                values:
                - a
    "#]],
    );
}

#[test]
fn a_group_has_containers_as_its_spec_says() {
    let pod = &all_said()["template"]["spec"];
    let shown = |container: &Value| {
        let mut container = container.clone();
        let ours = ["NETWORK_NAME", "NETWORK_TYPE", "NETWORK_CONFIG", "NETWORK_SECRET", "POD_NAME", "POD_IP"];
        let variables = container["env"].as_array_mut().unwrap();
        variables.retain(|variable| !ours.contains(&variable["name"].as_str().unwrap()));
        container
    };
    check(
        &json!([shown(&pod["initContainers"][0]), shown(&pod["containers"][0])]),
        &expect![[r#"
        - command:
          - make-keys
          env:
          - name: RPC_PORT
            value: "7000"
          - name: P2P_PORT
            value: "7001"
          - name: BITS
            value: "9"
          image: example.com/peer:1
          imagePullPolicy: IfNotPresent
          name: keys
          volumeMounts:
          - mountPath: /network
            name: network
            readOnly: true
          - mountPath: /var/peer
            name: data
        - args:
          - --fast
          command:
          - peer
          env:
          - name: RPC_PORT
            value: "7000"
          - name: P2P_PORT
            value: "9"
          - name: LEVEL
            value: debug
          image: example.com/peer:1
          imagePullPolicy: IfNotPresent
          name: peer
          ports:
          - containerPort: 7000
            name: rpc
            protocol: TCP
          - containerPort: 7001
            name: p2p
            protocol: TCP
          - containerPort: 5102
            name: flight
            protocol: TCP
          readinessProbe:
            periodSeconds: 5
            tcpSocket:
              port: rpc
          resources:
            limits:
              cpu: "1"
          volumeMounts:
          - mountPath: /network
            name: network
            readOnly: true
          - mountPath: /var/peer
            name: data
    "#]],
    );
}

#[test]
fn peers_are_restarted_when_what_they_are_to_know_is_another() {
    let template = |spec: Value| of_kind(&rendered(spec), "StatefulSet")["spec"]["template"].clone();
    let plain = template(json!({"replicas": 1}));
    assert_ne!(plain, template(json!({"replicas": 1, "config": {"depth": 1}})));
    assert_ne!(plain, template(json!({"replicas": 1, "networkType": "remote"})));
    assert_eq!(plain, template(json!({"replicas": 2, "bootstrap": {"method": "star"}})));
}

#[test]
fn the_secret_is_never_changed() {
    let objects = rendered(json!({"replicas": 1}));
    let secret = of_kind(&objects, "Secret");
    assert_eq!((&secret["immutable"], &secret["data"]["secret"]), (&json!(true), &json!("czNjcmV0")));
}

#[test]
fn the_job_is_named_after_all_that_it_depends_on() {
    let name = |bootstrap: Value| bootstrap_job_name(&config(json!({"replicas": 3, "bootstrap": bootstrap})));
    let plain = name(json!({}));
    assert_eq!(plain, name(json!({"method": "ring", "patienceSeconds": 1})));
    assert_eq!(name(json!({"degree": 2})), name(json!({"n": 2})));
    for other in [
        json!({"method": "star"}),
        json!({"degree": 2}),
        json!({"seed": 1}),
        json!({"image": "example.com/runner:2"}),
        json!({"imagePullPolicy": "Always"}),
        json!({"edges": [{"from": "peers-0-0", "to": "peers-0-1"}]}),
        json!({"rewirePercent": 50}),
    ] {
        assert_ne!(plain, name(other.clone()), "{other}");
    }
    let elsewhere = config(json!({"replicas": 3, "peersConfigMap": "peers"}));
    assert_ne!(plain, bootstrap_job_name(&elsewhere));
    let volumes = &bootstrap_job("lab", &elsewhere)["spec"]["template"]["spec"]["volumes"];
    assert_eq!(volumes[0]["configMap"]["name"], "peers");
}

#[test]
fn one_line_makes_the_job_of_a_spec() {
    let spec = BootstrapSpec { method: Some(Method::KRegular), degree: Some(4), ..BootstrapSpec::default() };
    check(
        &json!(bootstrap_job_spec(spec)),
        &expect![[r#"
        activeDeadlineSeconds: 600
        backoffLimit: 4
        template:
          spec:
            automountServiceAccountToken: false
            containers:
            - args:
              - runner
              - bootstrap
              env:
              - name: BOOTSTRAP_METHOD
                value: kRegular
              - name: BOOTSTRAP_N
                value: "4"
              - name: BOOTSTRAP_PEERS_PATH
                value: /network/peers.json
              - name: BOOTSTRAP_SEED
                value: "0"
              - name: BOOTSTRAP_EDGES
                value: "[]"
              - name: BOOTSTRAP_REWIRE_PERCENT
                value: "10"
              image: IMAGE
              imagePullPolicy: IfNotPresent
              name: bootstrap
              volumeMounts:
              - mountPath: /network
                name: peers
                readOnly: true
            enableServiceLinks: false
            restartPolicy: Never
            volumes:
            - configMap:
                name: keramik-peers
              name: peers
    "#]],
    );
    assert_eq!(bootstrap_job_spec(None), bootstrap_job_spec(BootstrapConfig::default()));
}

#[test]
fn a_monitor_selects_the_pods_of_its_group() {
    let monitor = json!({"enabled": true, "podTargetLabels": ["zone"]});
    let config = config(json!({"replicas": 1, "monitoring": {"podMonitor": monitor}}));
    check(
        &pod_monitor("lab", &config, 0),
        &expect![[r#"
        apiVersion: monitoring.coreos.com/v1
        kind: PodMonitor
        metadata:
          labels:
            mainstay.dev/network: lab
          name: peers-0
          namespace: network-lab
        spec:
          podMetricsEndpoints:
          - path: /metrics
            port: rpc
          podTargetLabels:
          - zone
          selector:
            matchLabels:
              mainstay.dev/network: lab
              mainstay.dev/peer-group: peers-0
    "#]],
    );
}
