//! Permissions: what roles grant, what requests need, and clients that have exactly some roles.

use std::collections::BTreeSet;

use http::Method;
use kube::config::{KubeConfigOptions, Kubeconfig};
use mainstay::{Kind, Scope};
use mainstay_testkit::{Cluster, ClusterKind, eventually};
use serde_json::{Value, json};

use crate::operator::seam::{Seam, Sent};

/// A verb on a resource of a group.
pub(crate) type Permission = (String, String, String);

pub(crate) fn granted(roles: &[Value]) -> BTreeSet<Permission> {
    let texts = |list: &Value| -> Vec<String> {
        list.as_array().into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned)).collect()
    };
    let mut granted = BTreeSet::new();
    for rule in roles.iter().flat_map(|role| role["rules"].as_array().unwrap()) {
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                let verbs = texts(&rule["verbs"]).into_iter();
                granted.extend(verbs.map(|verb| (group.clone(), resource.clone(), verb)));
            }
        }
    }
    granted
}

/// The permissions that a request takes, as the server sees it.
pub(crate) fn needed(sent: &Sent) -> Vec<Permission> {
    let (path, query) = sent.path.split_once('?').unwrap_or((&sent.path, ""));
    let mut parts: Vec<_> = path.trim_matches('/').split('/').collect();
    let group = match parts.first() {
        Some(&"api") => "",
        Some(&"apis") if parts.len() > 1 => parts.remove(1),
        _ => return Vec::new(),
    };
    let mut rest = parts.get(2..).unwrap_or_default();
    if rest.first() == Some(&"namespaces") && rest.len() > 2 {
        rest = &rest[2..];
    }
    let (resource, name, part) = match rest {
        [] => return Vec::new(),
        [resource] => ((*resource).to_owned(), None, ""),
        [resource, name] => ((*resource).to_owned(), Some(*name), ""),
        [resource, name, part, ..] => (format!("{resource}/{part}"), Some(*name), *part),
    };
    let verb = match (&sent.method, name) {
        (&Method::GET, _) if query.contains("watch=true") => "watch",
        (&Method::GET, None) => "list",
        (&Method::GET, Some(_)) => "get",
        (&Method::POST, _) => "create",
        (&Method::PUT, _) => "update",
        (&Method::PATCH, _) => "patch",
        (&Method::DELETE, _) => "delete",
        other => panic!("{other:?}"),
    };
    let permission = |verb: &str| (group.to_owned(), resource.clone(), verb.to_owned());
    // An apply that creates is asked for both.
    let created = part.is_empty() && verb == "patch" && matches!(sent.answer, Some((_, 201)));
    [permission(verb)].into_iter().chain(created.then(|| permission("create"))).collect()
}

/// A client that may do what the roles say and nothing else. On the embedded cluster, one that may do everything.
pub(crate) async fn client_of(cluster: &Cluster, name: &str, roles: &[Value]) -> kube::Client {
    if cluster.kind() == ClusterKind::Embedded {
        return cluster.client();
    }
    cluster.create(json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}})).await;
    for role in roles {
        cluster.create(role.clone()).await;
        cluster.create(binding(cluster, name, role)).await;
    }
    let path = format!("/api/v1/namespaces/{}/serviceaccounts/{name}/token", cluster.namespace());
    let answer = post(&cluster.client(), &path, &json!({"spec": {}})).await.expect("a token");
    let mut kubeconfig = Kubeconfig::read_from(cluster.kubeconfig().await).unwrap();
    for user in &mut kubeconfig.auth_infos {
        let token = json!({"token": answer["status"]["token"]});
        user.auth_info = Some(serde_json::from_value(token).unwrap());
    }
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let client = kube::Client::try_from(config.unwrap()).unwrap();
    // The server takes a moment to know of new roles.
    for (group, resource, verb) in granted(roles).into_iter().filter(|(_, _, verb)| verb == "list") {
        let wanted =
            json!({"namespace": cluster.namespace(), "verb": verb, "group": group, "resource": resource});
        let review = json!({"spec": {"resourceAttributes": wanted}});
        eventually(&format!("{name} to be allowed to list {resource}"), async || {
            let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
            let answer = post(&client, path, &review).await?;
            (answer["status"]["allowed"] == true).then_some(())
        })
        .await;
    }
    client
}

fn binding(cluster: &Cluster, account: &str, role: &Value) -> Value {
    let kind = format!("{}Binding", role["kind"].as_str().unwrap());
    json!({
        "apiVersion": role["apiVersion"], "kind": kind, "metadata": role["metadata"],
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": cluster.namespace()}],
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": role["kind"], "name": role["metadata"]["name"],
        },
    })
}

async fn post(client: &kube::Client, path: &str, body: &Value) -> Option<Value> {
    let request = http::Request::post(path).header("content-type", "application/json");
    client.request(request.body(body.to_string().into_bytes()).unwrap()).await.ok()
}

/// Removes the roles that are in no namespace.
pub(crate) async fn remove_roles(cluster: &Cluster, roles: &[Value]) {
    for role in roles.iter().filter(|role| role["kind"] == "ClusterRole") {
        for (kind, plural) in [("ClusterRole", "clusterroles"), ("ClusterRoleBinding", "clusterrolebindings")]
        {
            let kind = Kind::new("rbac.authorization.k8s.io/v1", kind, plural, Scope::Cluster);
            if cluster.kind() == ClusterKind::Real {
                cluster.delete(&kind, role["metadata"]["name"].as_str().unwrap()).await;
            }
        }
    }
}

/// Nothing was refused, and nothing was asked for that the roles do not name.
pub(crate) fn check_allowed(seam: &Seam, granted: &BTreeSet<Permission>) {
    for sent in seam.sent() {
        assert_ne!(sent.answer.map(|(_, code)| code), Some(403), "refused: {sent:?}");
        for permission in needed(&sent) {
            assert!(granted.contains(&permission), "{permission:?} is not in the roles: {sent:?}");
        }
    }
}
