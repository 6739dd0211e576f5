//! Documents that are damaged, and kinds that are like others.

use serde_json::{Value, json};

use super::super::{CONDITIONS_GENERATION, Document, Learned, Rules, compare};
use super::thing;
use crate::{Kind, Scope};

/// A schema that nobody can read: properties are no list.
fn damaged() -> Value {
    json!({"type": "object", "properties": ["no", "list"]})
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// The schema of a kind whose spec has these properties.
fn schema(api_version: &str, kind: &str, properties: &Value) -> Value {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    json!({
        "type": "object",
        "x-kubernetes-group-version-kind": [{"group": group, "version": version, "kind": kind}],
        "properties": {"spec": {"type": "object", "properties": properties}},
    })
}

fn set() -> Value {
    json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"})
}

fn document(schemas: &Value) -> Document {
    Document::parse(json!({"components": {"schemas": schemas}}).to_string().as_bytes()).unwrap()
}

/// Whether this spec is as desired.
fn is_same(rules: &Rules, desired: &Value, live: &Value) -> bool {
    compare(&json!({"spec": desired}), &json!({"spec": live}), rules, &Learned::nothing()).is_empty()
}

/// Whether the order of a list does not matter, as in a set.
fn is_set(rules: &Rules, field: &str) -> bool {
    is_same(rules, &json!({field: ["a", "b"]}), &json!({field: ["b", "a"]}))
}

/// Whether the items of a list are matched by name, as they are where nothing is known.
fn is_guessed(rules: &Rules, field: &str) -> bool {
    let list = |items: &Value| json!({field: {"list": items}});
    is_same(rules, &list(&json!([{"name": "b"}])), &list(&json!([{"name": "a"}, {"name": "b"}])))
}

#[test]
fn damaged_schema_that_a_kind_does_not_refer_to_is_no_matter() {
    let kind = schema("example.com/v1", "Thing", &json!({"set": set(), "other": reference("Other")}));
    let document = document(&json!({"Damaged": damaged(), "Thing": kind, "Other": {"type": "object"}}));
    let rules = document.rules(&thing()).unwrap();
    assert!(is_set(&rules, "set"));
    assert!(!is_guessed(&rules, "other"));
}

#[test]
fn damaged_schema_that_names_the_kind_in_passing_is_no_matter() {
    let mut passing = damaged();
    passing["description"] = json!("Thing");
    let document =
        document(&json!({"A": passing, "Thing": schema("example.com/v1", "Thing", &json!({"set": set()}))}));
    assert!(is_set(&document.rules(&thing()).unwrap(), "set"));
}

#[test]
fn damaged_schema_of_the_kind_itself_gives_no_rules() {
    let mut kind = schema("example.com/v1", "Thing", &json!({}));
    kind["properties"] = json!(["no", "list"]);
    assert!(document(&json!({"Thing": kind})).rules(&thing()).is_none());
}

#[test]
fn what_is_behind_a_damaged_or_missing_schema_is_unknown_and_the_rest_is_known() {
    let properties = json!({
        "set": set(), "damaged": reference("Damaged"), "missing": reference("Missing"), "sound": reference("Sound"),
        "behind": reference("Alias"), "again": reference("Alias"),
    });
    let document = document(&json!({
        "Alias": {"allOf": [reference("Damaged")]},
        "Damaged": damaged(),
        "Sound": {"type": "object", "properties": {"list": {"type": "array", "items": {"type": "object"}}}},
        "Thing": schema("example.com/v1", "Thing", &properties),
    }));
    let rules = document.rules(&thing()).unwrap();
    assert!(is_set(&rules, "set"));
    assert!(!is_guessed(&rules, "sound"), "a list without a mark is one value");
    for field in ["damaged", "missing", "behind", "again"] {
        assert!(is_guessed(&rules, field), "{field}");
    }
}

#[test]
fn status_that_cannot_be_read_is_thought_to_have_a_place_for_conditions() {
    let with_status = |status: Value| {
        let mut kind = schema("example.com/v1", "Thing", &json!({}));
        kind["properties"]["status"] = status;
        let document = document(&json!({"Thing": kind, "Damaged": damaged(), "Bare": {"type": "object"}}));
        document.rules(&thing()).unwrap()
    };
    assert!(with_status(reference("Damaged")).has_in_status("conditions"));
    assert!(!with_status(reference("Bare")).has_in_status("conditions"));
}

#[test]
fn conditions_of_older_kinds_have_no_place_for_a_generation() {
    let with_condition = |condition: &Value| {
        let mut kind = schema("example.com/v1", "Thing", &json!({}));
        let conditions = json!({"type": "array", "items": condition});
        kind["properties"]["status"] = json!({"type": "object", "properties": {"conditions": conditions}});
        document(
            &json!({"Thing": kind, "Older": {"type": "object", "properties": {"type": {"type": "string"}}}}),
        )
        .rules(&thing())
        .unwrap()
    };
    let standard = json!({"type": "object", "properties": {"observedGeneration": {"type": "integer"}}});
    assert!(with_condition(&standard).has_in_status(CONDITIONS_GENERATION));
    assert!(!with_condition(&reference("Older")).has_in_status(CONDITIONS_GENERATION));
    assert!(with_condition(&reference("Missing")).has_in_status(CONDITIONS_GENERATION));
}

#[test]
fn kinds_whose_names_are_alike_are_told_apart() {
    let document = document(&json!({
        "A": schema("v1", "PodTemplate", &json!({"template": set()})),
        "B": schema("v1", "Pod", &json!({"pod": set()})),
        "C": schema("v1", "PodTemplateList", &json!({"list": set()})),
    }));
    for (kind, field) in [("Pod", "pod"), ("PodTemplate", "template"), ("PodTemplateList", "list")] {
        let rules = document.rules(&Kind::new("v1", kind, "plural", Scope::Namespaced)).unwrap();
        let sets = ["pod", "template", "list"].map(|field| is_set(&rules, field));
        assert_eq!(sets, ["pod", "template", "list"].map(|other| other == field), "{kind}");
    }
    assert!(document.rules(&Kind::new("v1", "Po", "pos", Scope::Namespaced)).is_none());
    assert!(document.rules(&Kind::new("v1", "Template", "templates", Scope::Namespaced)).is_none());
}

#[test]
fn group_and_version_decide_between_kinds_of_one_name() {
    let versions = ["example.com/v1", "example.com/v2", "example.org/v1", "v1"];
    let schemas = versions.map(|version| (version, schema(version, "Thing", &json!({version: set()}))));
    let document = document(&schemas.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect());
    for version in versions {
        let kind = Kind::new(version, "Thing", "things", Scope::Namespaced);
        let rules = document.rules(&kind).unwrap();
        assert_eq!(versions.map(|other| is_set(&rules, other)), versions.map(|other| other == version));
    }
    let stranger = Kind::new("example.net/v1", "Thing", "things", Scope::Namespaced);
    assert!(document.rules(&stranger).is_none());
}
