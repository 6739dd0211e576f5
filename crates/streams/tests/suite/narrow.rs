//! Kinds whose schema takes little of a stream's status: what is written of it is always valid.

use mainstay_streams::kinds::labels;
use mainstay_streams::paths::kept;
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};

use crate::suite::fixtures::{World, classes, condition, in_each_world};

/// Kinds that the server is asked about.
const KINDS: usize = 20;

#[tokio::test]
async fn a_narrow_status_is_never_refused() {
    in_each_world(async |world| {
        a_strict_kind_is_written_to_without_a_refusal(world).await;
        a_status_that_holds_nothing_is_told_on_the_class(world).await;
        whatever_the_schema_says_the_server_takes_what_is_kept(world).await;
    })
    .await;
}

/// A definition whose status has this schema.
fn definition(world: &World, kind: &str, status: &Value) -> Value {
    let mut definition = world.uninstalled(kind).definition();
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"] = status.clone();
    definition
}

async fn a_strict_kind_is_written_to_without_a_refusal(world: &World) {
    let text = |most: u32| json!({"type": "string", "maxLength": most});
    let status = json!({
        "type": "object",
        "properties": {
            "phase": {"type": "string", "enum": ["Running", "Suspended"]},
            "configurationHash": text(3),
            "runsStarted": {"type": "integer", "maximum": 1},
            "run": {"type": "object", "required": ["job", "url"], "properties": {"job": text(63), "url": text(9)}},
            "history": {"type": "array", "maxItems": 1, "items": {
                "type": "object", "required": ["outcome"],
                "properties": {"outcome": {"type": "string", "pattern": "^S"}, "endedAt": {"type": "string", "format": "date-time"}},
            }},
            "conditions": {"type": "array", "minItems": 1, "items": {
                "type": "object", "required": ["type", "status"],
                "properties": {"type": text(63), "status": text(5), "reason": text(8)},
            }},
        },
    });
    let reeds = world.uninstalled("Reed");
    world.template("reeds", json!({"mainstay.dev/ends-after": "never"})).await;
    world.cluster.define(definition(world, "Reed", &status)).await;
    world.cluster.create(reeds.class(&json!({}))).await;
    world.until_class("reeds", "Ready").await;
    reeds.create("thin", json!({})).await;
    reeds.until("thin", "a run", |stream| stream["status"]["phase"] == "Running").await;
    reeds.patch("thin", json!({"suspended": true})).await;
    let stream = reeds.until("thin", "no run", |stream| stream["status"]["phase"] == "Suspended").await;
    assert_eq!(stream["status"]["history"][0]["outcome"], "Stopped", "{stream:#}");
    reeds.patch("thin", json!({"suspended": false})).await;
    reeds
        .until("thin", "another run", |stream| {
            let record = stream["metadata"]["annotations"]["mainstay.dev/stream-record"].as_str();
            let record: Value = serde_json::from_str(record.unwrap_or("null")).unwrap();
            record["runsStarted"] == 2 && stream["status"]["phase"] == "Running"
        })
        .await;
    let metrics = world.streams().metrics();
    let is_refused = |line: &&str| line.contains("kind=\"Reed.") && line.contains("code=\"422\"");
    assert_eq!(metrics.lines().find(is_refused), None);
}

async fn a_status_that_holds_nothing_is_told_on_the_class(world: &World) {
    let status = json!({"type": "object", "required": ["url"], "properties": {"url": {"type": "string"}}});
    let stones = world.uninstalled("Stone");
    world.template("stones", json!({"mainstay.dev/ends-after": "never"})).await;
    world.cluster.define(definition(world, "Stone", &status)).await;
    world.cluster.create(stones.class(&json!({}))).await;
    let is_told = |class: &Value| condition(class, "StatusKept") == ("False".into(), "StatusNotKept".into());
    world.until(&classes(), "stones", "what is lost", is_told).await;
    stones.create("mute", json!({})).await;
    let is_recorded =
        |stream: &Value| !stream["metadata"]["annotations"]["mainstay.dev/stream-record"].is_null();
    let stream = stones.until("mute", "its record", is_recorded).await;
    assert!(stream["status"].is_null(), "{stream:#}");
    let of_it = stones.job("mute").await;
    assert_eq!(of_it["metadata"]["labels"][labels::STREAM], "mute");
}

/// What the operator may write.
fn status(dice: &mut Dice) -> Value {
    let times = ["2026-01-01T00:00:00Z", "2026-12-31T23:59:59.123456789Z"];
    let past = |dice: &mut Dice| {
        json!({
            "number": dice.below(9), "kind": "Stream", "job": "a-1", "startedAt": times[0], "endedAt": times[1],
            "outcome": dice.one(&["Completed", "Failed", "Stopped"]), "exitCode": dice.below(300), "reason": "Deleted",
        })
    };
    let condition = |dice: &mut Dice, kind: &str| {
        json!({
            "type": kind, "status": dice.one(&["True", "False"]), "reason": "Running", "message": "Job a-1 runs",
            "lastTransitionTime": times[0], "observedGeneration": dice.below(4),
        })
    };
    json!({
        "phase": dice.one(&["Pending", "Running", "CrashLoopDetected"]), "runsStarted": dice.below(5_000_000_000),
        "run": {"number": 1, "kind": "stream", "madeFrom": {"spec": "0f", "template": "ab"}, "job": "a-1", "startedAt": times[1]},
        "restarts": 3, "initialised": true, "history": [past(dice), past(dice), past(dice)],
        "conditions": [condition(dice, "Ready"), condition(dice, "SpecInFile")],
    })
}

/// A schema that a value of this kind may or may not fit.
fn schema(dice: &mut Dice, value: &Value) -> Value {
    let mut rules = Map::new();
    if dice.below(12) == 0 {
        return json!({"type": dice.one(&["string", "integer", "boolean"])});
    }
    if dice.below(12) == 0 {
        return json!({"x-kubernetes-preserve-unknown-fields": true});
    }
    let (kind, more) = match value {
        Value::Object(fields) => {
            let fields: Vec<_> = fields.iter().filter(|_| dice.below(5) > 0).collect();
            let names: Vec<&String> = fields.iter().map(|(name, _)| *name).collect();
            let required: Vec<&&String> = names.iter().filter(|_| dice.below(6) == 0).collect();
            maybe(dice, &mut rules, "required", json!(required));
            let most = dice.below(8);
            maybe(dice, &mut rules, "maxProperties", json!(most));
            maybe(dice, &mut rules, "minProperties", json!(1));
            maybe(dice, &mut rules, "x-kubernetes-preserve-unknown-fields", json!(true));
            let properties: Map<String, Value> =
                fields.into_iter().map(|(name, value)| (name.clone(), schema(dice, value))).collect();
            ("object", json!({"properties": properties}))
        }
        Value::Array(items) => {
            let (least, most) = (dice.below(3), dice.below(4));
            maybe(dice, &mut rules, "minItems", json!(least));
            maybe(dice, &mut rules, "maxItems", json!(most));
            let mut items = schema(dice, &items[0]);
            let has_key = items["properties"].get("type").is_some_and(|key| key["type"] == "string");
            if has_key && dice.below(2) == 0 {
                items["required"] = json!(["type"]);
                // Neither an item of such a list nor its key can be null.
                items.as_object_mut().unwrap().remove("nullable");
                items["properties"]["type"].as_object_mut().unwrap().remove("nullable");
                rules.insert("x-kubernetes-list-type".to_owned(), json!("map"));
                rules.insert("x-kubernetes-list-map-keys".to_owned(), json!(["type"]));
            }
            ("array", json!({"items": items}))
        }
        Value::String(_) => {
            let (least, most) = (dice.below(6), dice.below(24));
            maybe(dice, &mut rules, "minLength", json!(least));
            maybe(dice, &mut rules, "maxLength", json!(most));
            let pattern = dice.one(&["^[A-Z]", "ing$", "^.{3}$", "[0-9]"]);
            maybe(dice, &mut rules, "pattern", json!(pattern));
            let format = dice.one(&["date-time", "date", "uuid", "password"]);
            maybe(dice, &mut rules, "format", json!(format));
            maybe(dice, &mut rules, "enum", json!(["Running", "True", "Stopped"]));
            ("string", json!({}))
        }
        Value::Number(_) => {
            let (least, most) = (dice.below(3), dice.below(1000));
            maybe(dice, &mut rules, "minimum", json!(least));
            maybe(dice, &mut rules, "maximum", json!(most + 3));
            maybe(dice, &mut rules, "multipleOf", json!(2));
            maybe(dice, &mut rules, "format", json!("int32"));
            (dice.one(&["integer", "number"]), json!({}))
        }
        Value::Bool(_) | Value::Null => ("boolean", json!({})),
    };
    maybe(dice, &mut rules, "nullable", json!(true));
    rules.insert("type".to_owned(), json!(kind));
    rules.extend(more.as_object().unwrap().clone());
    Value::Object(rules)
}

/// Adds a rule, once in a while.
fn maybe(dice: &mut Dice, rules: &mut Map<String, Value>, rule: &str, value: Value) {
    if dice.below(4) == 0 {
        rules.insert(rule.to_owned(), value);
    }
}

/// Choices from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[usize::try_from(self.below(of.len() as u64)).unwrap()]
    }
}

/// The server is the judge.
async fn whatever_the_schema_says_the_server_takes_what_is_kept(world: &World) {
    let mut runner = TestRunner::deterministic();
    let mut written = 0;
    for number in 0..KINDS {
        let seed = proptest::num::u64::ANY.new_tree(&mut runner).unwrap().current();
        let mut dice = Dice(seed);
        let status = status(&mut dice);
        let mut schema = schema(&mut dice, &status);
        schema["type"] = json!("object");
        let name = format!("Kind{number}");
        let plugin = world.uninstalled(&name);
        world.cluster.define(definition(world, &name, &schema)).await;
        let Some(kept) = kept(&status, &schema) else { continue };
        let mut object = plugin.create("one", json!({})).await;
        object["status"] = kept.clone();
        let path = format!("{}/one/status", plugin.kind.collection_path(Some(world.cluster.namespace())));
        let request = http::Request::put(path).header("content-type", "application/json");
        let (code, answer) = world.cluster.send(request.body(object.to_string().into()).unwrap()).await;
        assert!(code.is_success(), "seed {seed}: {answer:#}\n{kept:#}\nby {schema:#}");
        written += usize::from(kept.as_object().is_some_and(|kept| !kept.is_empty()));
    }
    assert!(written > 0, "nothing was kept of any status");
}
