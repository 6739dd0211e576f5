//! Trees, as text and as data. Pure.

use super::state::{State, UNSEEN};
use super::tree::Tree;
use crate::output::{Cell, Paint, Table, Tone, age, count};
use jiff::Timestamp;
use mainstay::Kind;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// For a person: a line for each object, below its owner.
pub(super) fn table(trees: &[Tree], with_namespace: bool, now: Timestamp, paint: Paint) -> String {
    let mut table = Table::new(["NAMESPACE", "OBJECT", "READY", "AGE", "WHY"]);
    for tree in trees {
        let namespace = if with_namespace { tree.text("/metadata/namespace") } else { "" };
        write_tree(&mut table, tree, namespace, "", "", now);
    }
    if trees.is_empty() { String::new() } else { table.render(paint) }
}

fn write_tree(table: &mut Table, tree: &Tree, namespace: &str, first: &str, rest: &str, now: Timestamp) {
    let tone = match tree.state {
        State::Ready => Tone::Good,
        State::Done => Tone::Quiet,
        State::NotReady(_) => Tone::Bad,
    };
    let name = format!("{first}{}/{}", tree.text("/kind"), tree.text("/metadata/name"));
    let since =
        tree.text("/metadata/creationTimestamp").parse().map_or_else(|_| String::new(), |at| age(at, now));
    table.row([
        namespace.into(),
        name.into(),
        Cell::new(tree.state.word(), tone),
        since.into(),
        one_line(tree.state.why()).into(),
    ]);
    let shown: Vec<&Tree> = tree.children.iter().filter(|child| !is_retired(child)).collect();
    for (place, child) in shown.iter().enumerate() {
        let (branch, more) = if place + 1 == shown.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        write_tree(table, child, "", &format!("{rest}{branch}"), &format!("{rest}{more}"), now);
    }
}

/// An old revision of a Deployment that has nothing any more. It is kept to go back to, and says nothing about today.
fn is_retired(tree: &Tree) -> bool {
    let number = |pointer: &str| tree.object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    tree.text("/kind") == "ReplicaSet"
        && tree.object.pointer("/spec/replicas").is_some()
        && number("/spec/replicas") == 0
        && number("/status/replicas") == 0
        && tree.children.is_empty()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The conditions of one object.
pub(super) fn conditions(tree: &Tree, now: Timestamp, paint: Paint) -> String {
    let found = tree.object.pointer("/status/conditions").and_then(Value::as_array);
    let Some(found) = found.filter(|found| !found.is_empty()) else { return String::new() };
    let mut table = Table::new(["CONDITION", "STATUS", "SINCE", "REASON", "MESSAGE"]);
    for condition in found {
        let text = |field: &str| condition[field].as_str().unwrap_or_default();
        let since = text("lastTransitionTime").parse().map_or_else(|_| String::new(), |at| age(at, now));
        table.row([
            text("type").into(),
            text("status").into(),
            since.into(),
            text("reason").into(),
            one_line(text("message")).into(),
        ]);
    }
    format!("\n{}", table.render(paint))
}

/// For a program.
pub(super) fn data(trees: &[Tree]) -> Value {
    trees.iter().map(one).collect()
}

fn one(tree: &Tree) -> Value {
    let metadata = &tree.object["metadata"];
    let mut told = json!({
        "apiVersion": tree.object["apiVersion"], "kind": tree.object["kind"],
        "name": metadata["name"], "ready": tree.state.is_fine(), "created": metadata["creationTimestamp"],
    });
    let more = [
        ("namespace", metadata.get("namespace").cloned()),
        ("why", Some(json!(tree.state.why())).filter(|_| !tree.state.why().is_empty())),
        ("conditions", tree.object.pointer("/status/conditions").cloned()),
        ("children", Some(data(&tree.children)).filter(|_| !tree.children.is_empty())),
    ];
    for (field, value) in more {
        if let Some(value) = value {
            told[field] = value;
        }
    }
    told
}

/// The roots' names.
pub(super) fn names(trees: &[Tree]) -> String {
    trees.iter().map(|tree| crate::output::name(&tree.object) + "\n").collect()
}

/// The kinds that could not be looked at.
pub(super) fn left_out(kinds: &[(Kind, String)]) -> String {
    kinds.iter().fold(String::new(), |mut text, (kind, why)| {
        let _ = writeln!(text, "not looked at: {}: {}", kind.plural(), one_line(why));
        text
    })
}

/// What it comes to, and what is useful next.
pub(super) fn summary(trees: &[Tree]) -> String {
    let all: Vec<&Tree> = trees.iter().flat_map(Tree::all).collect();
    let waiting = all.iter().filter(|tree| !tree.state.is_fine()).count();
    if waiting == 0 {
        return format!("{}, all ready\n", count(all.len(), "object"));
    }
    let mut text = format!("{}, {waiting} not ready\n", count(all.len(), "object"));
    let root = trees.iter().find(|tree| !tree.is_fine());
    if let Some(root) = root
        && let Ok(Some((system, parent))) = crate::systems::of_kind(root.text("/kind"))
        && root.text("/apiVersion") == parent.kind.api_version()
    {
        if root.state.why() == UNSEEN {
            let _ = writeln!(text, "next: mainstay run {}", system.name);
            return text;
        }
        let place = match root.text("/metadata/namespace") {
            "" => String::new(),
            namespace => format!(" -n {namespace}"),
        };
        let (kind, name) = (root.text("/kind").to_lowercase(), root.text("/metadata/name"));
        let _ = writeln!(text, "next: mainstay explain {kind} {name}{place}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::tree::{belonging, grow};
    use super::*;
    use expect_test::expect;

    fn object(api_version: &str, kind: &str, name: &str, owner: &str, status: &Value) -> Value {
        let mut object = json!({
            "apiVersion": api_version, "kind": kind, "status": status,
            "metadata": {"name": name, "namespace": "default", "uid": format!("{kind}-{name}"),
                "creationTimestamp": "2026-01-01T00:00:00Z"},
        });
        if !owner.is_empty() {
            object["metadata"]["ownerReferences"] = json!([{"uid": owner}]);
        }
        object
    }

    fn shop() -> Vec<Tree> {
        let ready = |status: &str, message: &str| {
            let since = "2026-01-01T00:01:00Z";
            json!({"conditions": [{"type": "Ready", "status": status, "reason": "Counted", "message": message,
                "lastTransitionTime": since}]})
        };
        let root = object(
            "examples.mainstay.dev/v1",
            "WebApp",
            "shop",
            "",
            &ready("False", "1 of 2 pods\nare ready"),
        );
        let mut retired =
            object("apps/v1", "ReplicaSet", "shop-old", "Deployment-shop", &json!({"observedGeneration": 1}));
        retired["spec"] = json!({"replicas": 0});
        let mut current = retired.clone();
        current["metadata"]["name"] = json!("shop-new");
        current["metadata"]["uid"] = json!("ReplicaSet-shop-new");
        current["spec"] = json!({"replicas": 2});
        current["status"]["availableReplicas"] = json!(1);
        let objects = vec![
            object("v1", "Pod", "shop-new-b", "ReplicaSet-shop-new", &ready("False", "it starts")),
            object("v1", "Pod", "shop-new-a", "ReplicaSet-shop-new", &ready("True", "")),
            object("v1", "Pod", "stranger", "", &ready("True", "")),
            object("v1", "ConfigMap", "shop", "WebApp-shop", &Value::Null),
            object(
                "apps/v1",
                "Deployment",
                "shop",
                "WebApp-shop",
                &json!({"observedGeneration": 1, "updatedReplicas": 1, "availableReplicas": 1}),
            ),
            retired,
            current,
        ];
        let kind = Kind::new("v1", "Any", "any", mainstay::Scope::Namespaced);
        let owned: Vec<_> = objects.into_iter().map(|object| (kind.clone(), object)).collect();
        let belonging = belonging(std::slice::from_ref(&root), &owned);
        grow(vec![root], belonging.into_iter().map(|(_, object)| object).collect())
    }

    fn now() -> Timestamp {
        "2026-01-01T00:05:00Z".parse().unwrap()
    }

    #[test]
    fn everything_is_below_its_owner_with_the_reason_for_not_being_ready() {
        expect![[r#"
            OBJECT                      READY   AGE   WHY
            WebApp/shop                 no      5m    1 of 2 pods are ready
            ├─ ConfigMap/shop           yes     5m
            └─ Deployment/shop          yes     5m
               └─ ReplicaSet/shop-new   no      5m    availableReplicas is 1 of 2
                  ├─ Pod/shop-new-a     yes     5m
                  └─ Pod/shop-new-b     no      5m    it starts
        "#]]
        .assert_eq(&table(&shop(), false, now(), Paint::NONE));
    }

    #[test]
    fn conditions_of_an_object_follow() {
        expect![[r#"

            CONDITION   STATUS   SINCE   REASON    MESSAGE
            Ready       False    4m      Counted   1 of 2 pods are ready
        "#]]
        .assert_eq(&conditions(&shop()[0], now(), Paint::NONE));
    }

    #[test]
    fn a_tree_is_fine_if_all_of_it_is() {
        let trees = shop();
        assert!(!trees[0].is_fine() && trees[0].children[0].is_fine());
        let said = summary(&trees);
        expect![[r#"
            7 objects, 3 not ready
            next: mainstay explain webapp shop -n default
        "#]]
        .assert_eq(&said);
    }

    #[test]
    fn data_has_the_same_tree() {
        let told = data(&shop());
        assert_eq!(told[0]["children"][1]["children"][0]["children"][1]["why"], "it starts");
        assert_eq!(told[0]["ready"], false);
        assert_eq!(names(&shop()), "webapp.examples.mainstay.dev/shop\n");
    }

    #[test]
    fn a_circle_of_owners_is_shown_once() {
        let root = object("v1", "A", "a", "B-b", &Value::Null);
        let other = object("v1", "B", "b", "A-a", &Value::Null);
        let trees = grow(vec![root.clone()], vec![other, root]);
        assert_eq!(trees[0].all().len(), 2);
    }
}
