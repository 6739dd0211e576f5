use super::*;
use crate::extremes::SIGNED;
use proptest::prelude::*;

use serde_json::json;

fn schema(group: &str, version: &str, kind: &str) -> SchemaRef {
    tables::schema_of(group, version, kind).unwrap_or_else(|| panic!("no kind {group}/{version} {kind}"))
}

/// Each line is an object and what Go made of it.
#[test]
fn objects_come_out_as_they_do_of_go() {
    let mut differences = Vec::new();
    for line in include_str!("../../../testdata/conform.jsonl").lines() {
        let fixture: Value = serde_json::from_str(line).expect("a fixture is JSON");
        let text = |key: &str| fixture[key].as_str().unwrap_or_default();
        let schema = schema(text("group"), text("version"), text("kind"));
        let mut value = fixture["in"].clone();
        let outcome = conform(&mut value, &schema);
        let expected = match fixture.get("error") {
            Some(message) => json!({"error": message}),
            None => {
                json!({"out": fixture["out"], "unknown": fixture.get("unknown").cloned().unwrap_or(json!([]))})
            }
        };
        let actual = match outcome {
            Err(error) => json!({"error": error.to_string()}),
            Ok(unknown) => {
                let unknown: Vec<String> = unknown.iter().map(ToString::to_string).collect();
                json!({"out": value, "unknown": unknown})
            }
        };
        if actual != expected {
            differences.push(format!("in:   {}\nGo:   {expected}\nours: {actual}", fixture["in"]));
        }
    }
    assert!(
        differences.is_empty(),
        "{} differ\n\n{}",
        differences.len(),
        differences[..differences.len().min(12)].join("\n\n")
    );
}

#[test]
fn an_object_in_its_final_form_is_left_alone() {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "creationTimestamp": "2024-01-02T03:04:05Z"},
        "spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "500m", "memory": "512Mi"}}}]},
        "status": {},
    });
    let before = pod.clone();
    assert_eq!(conform(&mut pod, &schema("", "v1", "Pod")), Ok(vec![]));
    assert_eq!(pod, before);
}

#[test]
fn a_value_that_is_no_object_is_refused() {
    let refused = conform(&mut json!([]), &schema("", "v1", "Pod"));
    let message = "json: cannot unmarshal array into Go value of type v1.Pod";
    assert_eq!(refused, Err(Unreadable::Value(message.to_owned())));
}

#[test]
fn unknown_fields_are_counted_up_to_a_hundred() {
    let many: Map<String, Value> = (0..150).map(|i| (format!("x{i}"), Value::Null)).collect();
    let dropped = conform(&mut Value::Object(many), &schema("", "v1", "Pod"));
    assert_eq!(dropped.map(|unknown| unknown.len()), Ok(100));
}

/// Every field name of the tables, so that random trees get past the first level.
fn field_names() -> Vec<String> {
    let mut names: Vec<String> = tables::definitions()
        .iter()
        .flat_map(|definition| SchemaRef::Builtin(definition).properties.keys().cloned().collect::<Vec<_>>())
        .collect();
    names.sort();
    names.dedup();
    names
}

fn arbitrary_tree() -> impl Strategy<Value = Value> {
    let names = field_names();
    let text = prop_oneof!["\\PC{0,6}", "[0-9.]{1,4}(m|Ki|e3)?", "[A-Za-z0-9+/]{0,8}={0,2}"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-3..3i64).prop_map(Value::from),
        crate::extremes::numbers(),
        any::<f64>().prop_map(Value::from),
        text.prop_map(Value::from),
        Just(json!("2024-01-01T00:00:00Z")),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        let name = proptest::sample::select(names.clone());
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(name, inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// A tree that fits the schema in its rough shape, chosen by `choices`.
fn fitting(schema: &Schema, choices: &mut std::slice::Iter<'_, u8>, depth: u32) -> Value {
    let Some(&choice) = choices.next() else { return Value::Null };
    let go = schema.go.expect("a built-in schema");
    match go.form {
        _ if choice == 255 || depth == 0 => Value::Null,
        Form::Struct => {
            let mut object = Map::new();
            for _ in 0..choice % 5 {
                let Some(&at) = choices.next() else { break };
                let Some(field) = schema.fields.get(usize::from(at) % schema.fields.len().max(1)) else {
                    break;
                };
                object.insert(field.name.to_owned(), fitting(&field.shape, choices, depth - 1));
            }
            Value::Object(object)
        }
        Form::Map => match &schema.additional {
            Additional::Values(values) => json!({"k": fitting(values, choices, depth - 1)}),
            _ => json!({}),
        },
        Form::List | Form::WrappedList => {
            let items = schema.items.as_ref().expect("items");
            (0..choice % 3).map(|_| fitting(items, choices, depth - 1)).collect()
        }
        Form::String => ["", "x"][usize::from(choice % 2)].into(),
        Form::Bool => (choice % 2 == 0).into(),
        Form::Int32 if choice % 2 == 0 => [i32::MIN, i32::MAX][usize::from(choice / 2 % 2)].into(),
        Form::Int64 if choice % 2 == 0 => SIGNED[usize::from(choice / 2) % SIGNED.len()].into(),
        Form::Int32 | Form::Int64 => (i64::from(choice) - 100).into(),
        Form::Float => (f64::from(choice) / 4.0).into(),
        Form::Bytes => ["", "YQ==", "Y\nQ=="][usize::from(choice % 3)].into(),
        Form::Quantity => format!("{choice}00{}", ["", "m", "Ki"][usize::from(choice % 3)]).into(),
        Form::IntOrString => {
            if choice % 2 == 0 {
                json!(choice)
            } else {
                json!("x")
            }
        }
        Form::Time => ["0001-01-01T00:00:00Z", "2024-01-01T00:00:00+01:00"][usize::from(choice % 2)].into(),
        Form::MicroTime => "2024-01-01T00:00:00.000001+01:00".into(),
        Form::Raw => json!({"any": [null, 1.5]}),
        Form::SchemaOrArray | Form::SchemaOrStringArray => json!([]),
        Form::SchemaOrBool => json!({"items": {"type": "x", "minimum": 1.0}}),
    }
}

proptest! {
    #[test]
    fn any_tree_is_read_or_refused_and_then_stable(mut tree in arbitrary_tree(), at in any::<prop::sample::Index>()) {
        let definition = at.get(tables::definitions());
        let schema = SchemaRef::Builtin(definition);
        if conform(&mut tree, &schema).is_ok() {
            let once = tree.clone();
            prop_assert_eq!(conform(&mut tree, &schema), Ok(vec![]), "{}", definition.name);
            prop_assert_eq!(tree, once, "{}", definition.name);
        }
    }

    #[test]
    fn a_fitting_tree_is_read_and_then_stable(
        choices in proptest::collection::vec(any::<u8>(), 1..200),
        at in any::<prop::sample::Index>(),
    ) {
        let definition = at.get(tables::definitions());
        let schema = SchemaRef::Builtin(definition);
        let mut tree = fitting(&schema, &mut choices.iter(), 12);
        prop_assert_eq!(conform(&mut tree, &schema), Ok(vec![]), "{}", definition.name);
        let once = tree.clone();
        prop_assert_eq!(conform(&mut tree, &schema), Ok(vec![]), "{}", definition.name);
        prop_assert_eq!(tree, once, "{}", definition.name);
    }
}
