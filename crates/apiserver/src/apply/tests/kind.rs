//! Schemas for tests, and writes to objects of them.

use crate::apply::{ApplyError, FieldSet, Target, Writer, apply, track_update};
use crate::schema::{
    Additional, Checks, Field, Form, GoType, ListType, Member, Presence, Schema, SchemaRef, Type,
};
use crate::status::ApiError;
use expect_test::Expect;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::LazyLock;

pub(super) fn scalar(kind: Type) -> Schema {
    Schema { kind: Some(kind), ..Schema::default() }
}

pub(super) fn text() -> Schema {
    scalar(Type::String)
}

pub(super) fn date() -> Schema {
    let checks = Checks { format: Some("date-time".to_owned()), ..Checks::default() };
    Schema { checks: Some(Box::new(checks)), ..text() }
}

pub(super) fn integer() -> Schema {
    scalar(Type::Integer)
}

pub(super) fn object<const N: usize>(properties: [(&str, Schema); N]) -> Schema {
    let properties = properties.map(|(name, schema)| (name.to_owned(), SchemaRef::new(schema)));
    Schema { properties: properties.into(), ..scalar(Type::Object) }
}

/// A built-in type of which these fields are always written.
pub(super) fn built_in(always: &[&str], schema: Schema) -> Schema {
    let presence = |name: &str| if always.contains(&name) { Presence::Always } else { Presence::OmitZero };
    let member = |name: &String| (name.clone(), Member { presence: presence(name), ..Member::default() });
    let members = schema.properties.keys().map(member).collect();
    let field = |(name, shape): (&String, &SchemaRef)| Field {
        // The names of built-in fields stand in the program; those of a test may stay till its end.
        name: Box::leak(name.clone().into_boxed_str()),
        shape: shape.clone(),
        presence: presence(name),
        proto: None,
        embedded: None,
    };
    let fields = schema.properties.iter().map(field).collect();
    let go = GoType { name: "v1.Test", form: Form::Struct, as_protobuf: true };
    Schema { members: Some(Box::new(members)), fields, go: Some(go), ..schema }
}

pub(super) fn map(values: Schema) -> Schema {
    Schema { additional: Additional::Values(SchemaRef::new(values)), ..scalar(Type::Object) }
}

pub(super) fn atomic(schema: Schema) -> Schema {
    Schema { atomic_map: true, ..schema }
}

pub(super) fn open(schema: Schema) -> Schema {
    Schema { preserve_unknown: true, ..schema }
}

pub(super) fn list(items: Schema) -> Schema {
    Schema { items: Some(SchemaRef::new(items)), ..scalar(Type::Array) }
}

pub(super) fn set(items: Schema) -> Schema {
    Schema { list: ListType::Set, ..list(items) }
}

pub(super) fn keyed(keys: &[&str], items: Schema) -> Schema {
    Schema { list: ListType::Map(keys.iter().map(|&key| key.to_owned()).collect()), ..list(items) }
}

pub(super) fn metadata() -> Schema {
    object([
        ("name", text()),
        ("namespace", text()),
        ("uid", text()),
        ("resourceVersion", text()),
        ("generation", integer()),
        ("creationTimestamp", date()),
        ("labels", map(text())),
        ("annotations", map(text())),
        ("finalizers", set(text())),
        ("managedFields", list(open(object([])))),
    ])
}

pub(super) fn typed<const N: usize>(properties: [(&str, Schema); N]) -> Schema {
    let mut schema = object(properties);
    for (name, property) in [("apiVersion", text()), ("kind", text()), ("metadata", metadata())] {
        schema.properties.insert(name.to_owned(), SchemaRef::new(property));
    }
    schema
}

pub(super) static WIDGET: LazyLock<Schema> = LazyLock::new(|| widget_schema(false));

/// The widget; of its other form some parts are owned otherwise.
fn widget_schema(other: bool) -> Schema {
    let turn = |schema: Schema| Schema { atomic_map: schema.atomic_map != other, ..schema };
    let protocol = Schema { default: Some(json!("TCP")), ..text() };
    let port = object([("port", integer()), ("protocol", protocol), ("name", text())]);
    let item = object([
        ("name", text()),
        ("value", text()),
        ("args", list(text())),
        ("ports", keyed(&["port", "protocol"], port)),
    ]);
    let spec = object([
        ("text", text()),
        ("count", integer()),
        ("port", Schema { int_or_string: true, ..Schema::default() }),
        ("labels", turn(map(text()))),
        ("selector", turn(atomic(map(text())))),
        ("tags", if other { list(text()) } else { set(text()) }),
        ("numbers", set(integer())),
        ("args", list(text())),
        ("items", keyed(&["name"], item)),
        ("free", open(object([("known", object([("a", text())]))]))),
        ("any", open(Schema::default())),
        ("nested", object([("a", text()), ("b", object([("c", text())]))])),
        ("maybe", Schema { nullable: true, ..text() }),
    ]);
    let condition = object([("type", text()), ("status", text())]);
    let status = object([("phase", text()), ("conditions", keyed(&["type"], condition))]);
    typed([("spec", spec), ("status", status)])
}

pub(super) static WIDGET_V2: LazyLock<Schema> = LazyLock::new(|| widget_schema(true));

/// The widget in its other version.
fn convert(object: &Value, version: &str) -> Option<(Value, SchemaRef)> {
    let other = match version {
        "apply.test/v1" => false,
        "apply.test/v2" => true,
        _ => return None,
    };
    let mut object = object.clone();
    object["apiVersion"] = version.into();
    Some((object, SchemaRef::new(widget_schema(other))))
}

/// A kind, with what a write to its object and to its status resets.
pub(super) struct Kind {
    pub(super) api_version: &'static str,
    pub(super) name: &'static str,
    pub(super) schema: &'static Schema,
}

pub(super) fn widget() -> Kind {
    Kind { api_version: "apply.test/v1", name: "Widget", schema: &WIDGET }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

impl Kind {
    fn write<T>(&self, manager: &str, second: i64, act: impl FnOnce(&Writer<'_>, &Target<'_>) -> T) -> T {
        let (name, subresource) = manager.split_once('/').unwrap_or((manager, ""));
        let reset = match subresource {
            "" => FieldSet::of_fields(&[&["status"]]),
            _ => FieldSet::of_fields(&[&["metadata"], &["spec"]]),
        };
        let target = Target {
            api_version: self.api_version,
            kind: self.name,
            schema: self.schema,
            reset: &reset,
            reset_elsewhere: !subresource.is_empty(),
            convert: &convert,
        };
        act(&Writer { name, subresource, time: at(second) }, &target)
    }

    /// Applies as `manager`, or `manager/subresource`.
    pub(super) fn apply(
        &self,
        live: Option<&Value>,
        applied: &Value,
        manager: &str,
        force: bool,
        second: i64,
    ) -> Result<Value, ApplyError> {
        self.write(manager, second, |by, target| apply(live, applied, by, force, target))
    }

    /// Creates, or replaces `live`.
    pub(super) fn update(&self, live: Option<&Value>, new: &Value, manager: &str, second: i64) -> Value {
        let mut new = new.clone();
        self.write(manager, second, |by, target| track_update(live, &mut new, by, target));
        new
    }
}

/// An object and the writes to it, one each second.
pub(super) struct World {
    kind: Kind,
    pub(super) live: Option<Value>,
    second: i64,
}

impl World {
    pub(super) fn new(kind: Kind) -> Self {
        World { kind, live: None, second: 0 }
    }

    /// Takes a step: `m` applies, `m!` forces, `=m` creates or replaces. `m/status` writes to the status.
    /// The body lacks what all bodies have. Gives what the client is told.
    pub(super) fn step(&mut self, who: &str, body: &Value) -> String {
        self.second += 1;
        let mut whole = json!({"apiVersion": self.kind.api_version, "kind": self.kind.name});
        whole["metadata"] = json!({"name": "it", "namespace": "ns"});
        for (key, value) in body.as_object().unwrap() {
            match (key.as_str(), value) {
                ("metadata", Value::Object(fields)) => {
                    whole["metadata"].as_object_mut().unwrap().extend(fields.clone());
                }
                _ => whole[key] = value.clone(),
            }
        }
        let live = self.live.as_ref();
        let result = if let Some(who) = who.strip_prefix('=') {
            Ok(self.kind.update(live, &whole, who, self.second))
        } else {
            let force = who.ends_with('!');
            self.kind.apply(live, &whole, who.trim_end_matches('!'), force, self.second)
        };
        match result {
            Ok(mut object) => {
                // The rest of the server.
                object["metadata"]["uid"] = json!("u");
                self.live = Some(object);
                format!("{who}: ok\n")
            }
            Err(error) => format!("{who}: {}\n", ApiError::from(error)),
        }
    }

    /// The object less its metadata, and one line for each entry.
    pub(super) fn state(&self) -> String {
        let Some(Value::Object(live)) = &self.live else { return "nothing\n".to_owned() };
        let mut out = String::new();
        for (key, value) in live.iter().filter(|(key, _)| !["apiVersion", "kind"].contains(&key.as_str())) {
            let mut value = value.clone();
            if key == "metadata" {
                let fields = value.as_object_mut().unwrap();
                fields
                    .retain(|key, _| !["name", "namespace", "uid", "managedFields"].contains(&key.as_str()));
                if fields.is_empty() {
                    continue;
                }
            }
            writeln!(out, "{key}: {value}").unwrap();
        }
        for entry in live["metadata"]["managedFields"].as_array().into_iter().flatten() {
            let text = |name: &str| entry[name].as_str().unwrap_or_default();
            let time =
                text("time").parse::<Timestamp>().map_or("-".to_owned(), |t| t.as_second().to_string());
            let subresource = Some(text("subresource")).filter(|s| !s.is_empty());
            let name = subresource.map_or(text("manager").to_owned(), |s| format!("{}/{s}", text("manager")));
            writeln!(out, "{name} {} @{time} {}", text("operation"), entry["fieldsV1"]).unwrap();
        }
        out
    }
}

/// Takes the steps and compares what clients were told and what came of it.
pub(super) fn check(kind: Kind, steps: &[(&str, Value)], expect: &Expect) {
    let mut world = World::new(kind);
    let mut out = String::new();
    for (who, body) in steps {
        out.push_str(&world.step(who, body));
    }
    expect.assert_eq(&(out + &world.state()));
}
