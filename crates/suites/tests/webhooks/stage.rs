//! One run of a scenario: a cluster, a webhook server, and a transcript of everything that was said.

use std::panic::{AssertUnwindSafe, resume_unwind};

use futures::FutureExt as _;
use http_body_util::BodyExt as _;
use kube::client::Body;
use mainstay_testkit::cluster::unique_name;
use mainstay_testkit::{Cluster, ClusterKind, clusters, eventually};
use serde_json::{Value, json};

use crate::differential::compare::compare_transcripts;
use crate::differential::normalise::Normaliser;
use crate::webhooks::hooks::{Hooks, PROBE};

const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// What a client is answered, and what webhooks were asked before.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: u16,
    pub(crate) warnings: Vec<String>,
    pub(crate) body: Value,
    /// Path and review: of mutating webhooks in the order of the calls, then of validating ones by path, as those are
    /// asked at the same time.
    pub(crate) reviews: Vec<(String, Value)>,
}

impl Outcome {
    /// The paths of the webhooks that were asked.
    pub(crate) fn asked(&self) -> Vec<&str> {
        self.reviews.iter().map(|(path, _)| path.as_str()).collect()
    }

    /// The `request` of the one review that there is.
    pub(crate) fn only_review(&self) -> &Value {
        let [(_, review)] = self.reviews.as_slice() else { panic!("not one review: {:?}", self.asked()) };
        &review["request"]
    }

    pub(crate) fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }
}

/// What a scenario acts on.
pub(crate) struct Stage {
    cluster: Cluster,
    pub(crate) hooks: Hooks,
    /// Texts that differ from run to run, with what they are called.
    literals: Vec<(String, String)>,
    transcript: Vec<Value>,
    /// Paths of the cluster-scoped objects to remove at the end.
    made: Vec<String>,
}

/// Runs a scenario on every cluster there is, and compares what was said on one with what was said on the other.
pub(crate) async fn play(scenario: impl AsyncFn(&mut Stage)) {
    let mut transcripts = Vec::new();
    for cluster in clusters().await {
        let kind = cluster.kind();
        let mut stage = Stage::new(cluster).await;
        let played = AssertUnwindSafe(scenario(&mut stage)).catch_unwind().await;
        stage.clear().await;
        if let Err(panic) = played {
            eprintln!("the scenario failed on the {kind} cluster");
            resume_unwind(panic);
        }
        let mut normaliser = Normaliser::new(stage.literals);
        let transcript = stage.transcript.into_iter().map(|step| normaliser.normalise(step));
        transcripts.push((kind, transcript.collect::<Vec<_>>()));
    }
    let [(ClusterKind::Embedded, embedded), (ClusterKind::Real, real)] = transcripts.as_slice() else {
        return;
    };
    let differences = compare_transcripts(real, embedded);
    let report: Vec<_> = differences
        .iter()
        .map(|difference| {
            let request = real[difference.step]["request"].as_str().unwrap_or_default();
            format!("{request}\n{}", difference.render("real", "embedded"))
        })
        .collect();
    assert!(report.is_empty(), "{} differences\n{}", report.len(), report.join("\n"));
    assert_eq!(real.len(), embedded.len());
}

impl Stage {
    async fn new(cluster: Cluster) -> Self {
        let hooks = Hooks::start().await;
        let literals = vec![
            (cluster.namespace().to_owned(), "{ns}".to_owned()),
            (hooks.address().to_string(), "{hooks}".to_owned()),
        ];
        Self { cluster, hooks, literals, transcript: Vec::new(), made: Vec::new() }
    }

    /// The group of this run's custom kinds.
    pub(crate) fn group(&self) -> String {
        format!("{}.example.com", self.cluster.namespace())
    }

    pub(crate) fn namespace(&self) -> &str {
        self.cluster.namespace()
    }

    /// Lets the transcript have a name for a text that differs from run to run.
    pub(crate) fn call(&mut self, text: &str, name: &str) {
        self.literals.push((text.to_owned(), name.to_owned()));
    }

    /// A webhook at the path `/name` for all writes of config maps in this namespace, with fields added or replaced.
    pub(crate) fn hook(&self, name: &str, fields: Value) -> Value {
        let mut hook = json!({
            "name": format!("{name}.example.com"),
            "clientConfig": self.hooks.at(&format!("/{name}")),
            "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
            // A configuration holds for the whole cluster, which belongs to other tests as well.
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self.namespace()}},
            // Others than the probe's own webhook leave it alone.
            "objectSelector": {"matchExpressions": [{"key": "probe", "operator": "DoesNotExist"}]},
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "timeoutSeconds": 10,
        });
        let Value::Object(fields) = fields else { panic!("fields are an object") };
        hook.as_object_mut().unwrap().extend(fields);
        hook
    }

    /// Configures mutating webhooks and waits until they are in force.
    pub(crate) async fn mutating(&mut self, webhooks: Vec<Value>) {
        self.configure("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", webhooks).await;
    }

    /// Configures validating webhooks and waits until they are in force.
    pub(crate) async fn validating(&mut self, webhooks: Vec<Value>) {
        self.configure("ValidatingWebhookConfiguration", "validatingwebhookconfigurations", webhooks).await;
    }

    async fn configure(&mut self, kind: &str, plural: &str, mut webhooks: Vec<Value>) {
        let name = unique_name("webhooks");
        let only_probes = json!({"objectSelector": {"matchLabels": {"probe": name}}});
        let mut probe = self.hook("probe", only_probes);
        probe["clientConfig"] = self.hooks.at(PROBE);
        webhooks.push(probe);
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": name},
            "webhooks": webhooks,
        });
        let made = self
            .send("POST", &format!("{CONFIGURATIONS}/{plural}"), "application/json", &configuration)
            .await;
        assert_eq!(made.code, 201, "{}", made.body);
        self.made.push(format!("{CONFIGURATIONS}/{plural}/{name}"));
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "probe", "labels": {"probe": name}},
        });
        eventually("the webhooks are in force", async || {
            let path = "/api/v1/namespaces/{ns}/configmaps?dryRun=All";
            let answer = self.send("POST", path, "application/json", &map).await;
            (answer.code == 400).then_some(())
        })
        .await;
    }

    /// Defines a kind and waits until it is served in a version.
    pub(crate) async fn define(&mut self, plural: &str, version: &str, definition: &Value) {
        let made = self.send("POST", DEFINITIONS, "application/json", definition).await;
        assert_eq!(made.code, 201, "{}", made.body);
        self.made.push(format!("{DEFINITIONS}/{plural}.{}", self.group()));
        let path = format!("/apis/{}/{version}/namespaces/{{ns}}/{plural}", self.group());
        eventually("the kind is served", async || {
            (self.send("GET", &path, "application/json", &Value::Null).await.code == 200).then_some(())
        })
        .await;
    }

    pub(crate) async fn get(&mut self, path: &str) -> Outcome {
        self.step("GET", path, "application/json", &Value::Null).await
    }

    pub(crate) async fn post(&mut self, path: &str, body: Value) -> Outcome {
        self.step("POST", path, "application/json", &body).await
    }

    pub(crate) async fn put(&mut self, path: &str, body: Value) -> Outcome {
        self.step("PUT", path, "application/json", &body).await
    }

    pub(crate) async fn merge(&mut self, path: &str, body: Value) -> Outcome {
        self.step("PATCH", path, "application/merge-patch+json", &body).await
    }

    pub(crate) async fn apply(&mut self, path: &str, body: Value) -> Outcome {
        self.step("PATCH", path, "application/apply-patch+yaml", &body).await
    }

    pub(crate) async fn delete(&mut self, path: &str, body: Value) -> Outcome {
        self.step("DELETE", path, "application/json", &body).await
    }

    /// Sends a request and notes what was said in the transcript.
    async fn step(&mut self, method: &str, path: &str, content_type: &str, body: &Value) -> Outcome {
        let outcome = self.send(method, path, content_type, body).await;
        let reviews: Vec<Value> = outcome
            .reviews
            .iter()
            .map(|(path, review)| json!({"path": path, "review": comparable(review)}))
            .collect();
        let warnings: Vec<_> =
            outcome.warnings.iter().map(|warning| without_parsers_words(warning)).collect();
        let said = json!({
            "code": outcome.code, "warnings": warnings, "body": outcome.body, "reviews": reviews,
        });
        self.transcript.push(json!({"request": format!("{method} {path}"), "said": said}));
        outcome
    }

    async fn send(&self, method: &str, path: &str, content_type: &str, body: &Value) -> Outcome {
        let path = path.replace("{ns}", self.namespace());
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = http::Request::builder()
            .method(method)
            .uri(&path)
            .header("content-type", content_type)
            // Who manages a field is said by this, and clients of the two clusters have different ones.
            .header("user-agent", "scenario");
        let response = self.cluster.client().send(request.body(Body::from(body)).unwrap()).await.unwrap();
        let code = response.status().as_u16();
        let warnings = response.headers().get_all("warning").iter();
        let warnings = warnings.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let body = serde_json::from_slice(&body).unwrap_or_else(|_| String::from_utf8_lossy(&body).into());
        let mut reviews = self.hooks.take_seen();
        // Stable: mutating webhooks keep their order.
        reviews.sort_by(|(a, _), (b, _)| {
            let key = |path: &str| path.starts_with("/validat").then(|| path.to_owned());
            key(a).cmp(&key(b))
        });
        Outcome { code, warnings, body, reviews }
    }

    async fn clear(&self) {
        for path in &self.made {
            self.send("DELETE", path, "application/json", &Value::Null).await;
        }
    }
}

/// A warning without how the parser of `managedFields` puts it, which quotes Go's own form of the entries.
fn without_parsers_words(warning: &str) -> &str {
    const REQUEST: &str = "please fix your requests: ";
    warning.find(REQUEST).map_or(warning, |at| &warning[..at + REQUEST.len()])
}

/// A review without who asks: the two clusters let the test in as different administrators.
fn comparable(review: &Value) -> Value {
    let mut review = review.clone();
    let user = review["request"].as_object_mut().and_then(|request| request.remove("userInfo"));
    assert!(user.is_some_and(|user| user["username"].is_string() && user["groups"].is_array()), "{review}");
    review
}
