//! Kinds of a single test's own: for definitions that come late or go, and for parents in no namespace, which other tests'
//! operators must not meet.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use mainstay::{Kind, Scope};
use mainstay_testkit::Cluster;
use mainstay_testkit::cluster::unique_name;
use serde_json::{Value, json};

use crate::operator::fixtures::until_gone;
use crate::operator::kinds::definition;

/// A kind that no other test has, with its definition.
pub(crate) fn own_kind(word: &str, scope: Scope) -> (Kind, Value) {
    let name = unique_name(&word.to_lowercase()).replace('-', "");
    let kind = format!("{word}{}", &name[word.len()..]);
    let place = if scope == Scope::Namespaced { "Namespaced" } else { "Cluster" };
    (Kind::new("test.mainstay.dev/v1", &kind, &name, scope), definition(&kind, &name, place))
}

/// A client for an operator that looks into all namespaces. Its parents must be of such a kind: then it leaves alone whatever
/// else it sees.
pub(crate) async fn everywhere(cluster: &Cluster) -> kube::Client {
    cluster.unrestricted().await.client()
}

/// Takes a kind away, and waits until nothing of it is left.
pub(crate) async fn undefine(cluster: &Cluster, kind: &Kind) {
    let definitions = Kind::of::<CustomResourceDefinition>();
    let name = format!("{}.{}", kind.plural(), kind.group());
    cluster.delete(&definitions, &name).await;
    until_gone(cluster, &definitions, &name).await;
}

/// An object of any kind.
#[expect(clippy::needless_pass_by_value, reason = "made on the spot with json!")]
pub(crate) fn object(kind: &Kind, name: &str, spec: Value) -> Value {
    json!({"apiVersion": kind.api_version(), "kind": kind.kind(), "metadata": {"name": name}, "spec": spec})
}
