//! Our evaluator, asked the same as Kubernetes'.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mainstay_cel::estimate::estimate;
use mainstay_cel::{Identity, Key, Limits, List, Map, Program, Value, compile, time};
use serde_json::{Value as Json, json};

use super::oracle::{Answer, Question};

/// What one expression may cost, as in Kubernetes.
const COST_MAX: u64 = 1_000_000;

pub(super) fn answer(question: &Question) -> Answer {
    let (of, bounds) =
        mainstay_apiserver::declare_schema(&question.schema).expect("rules can see the schema");
    let refused = |error: String| Answer { compile_error: Some(error), ..Answer::default() };
    let checked = match compile(&question.expression, &[("self", of.clone()), ("oldSelf", of)]) {
        Ok(checked) => checked,
        Err(error) => return refused(error.to_string()),
    };
    let kind = Some(checked.gives().to_string());
    let program = match Program::new(&checked) {
        Ok(program) => program,
        Err(error) => return Answer { kind, ..refused(format!("program instantiation failed: {error}")) },
    };
    let read = |object: &Json| value(object, &question.schema).unwrap_or(Value::Null);
    let values = [read(&question.object), question.old_self.as_ref().map_or(Value::Null, read)];
    let evaluation = program.evaluate(&values, Limits::cost(COST_MAX));
    let (value, error) = match evaluation.result {
        Ok(value) => (Some(render(&value)), None),
        Err(error) => (None, Some(error.to_string())),
    };
    Answer {
        compile_error: None,
        kind,
        value,
        error,
        cost: Some(evaluation.cost),
        estimated_max: Some(estimate(&checked, &bounds).max),
    }
}

/// A value in the form of `render.go`.
fn render(value: &Value) -> Json {
    match value {
        Value::Null => json!({"null": true}),
        Value::Bool(flag) => json!({"bool": flag}),
        Value::Int(int) => json!({"int": int.to_string()}),
        Value::Uint(uint) => json!({"uint": uint.to_string()}),
        Value::Double(double) => json!({"double": render_double(*double)}),
        Value::String(text) => json!({"string": **text}),
        Value::Bytes(bytes) => json!({"bytes": STANDARD.encode(bytes)}),
        Value::Duration(nanoseconds) => json!({"duration": nanoseconds.to_string()}),
        Value::Timestamp(time) => json!({"timestamp": time.utc_text()}),
        Value::Type(name) => json!({"type": **name}),
        Value::List(list) => json!({"list": list.items.iter().map(render).collect::<Vec<_>>()}),
        Value::Map(map) => {
            let pair = |(key, value): (&Key, &Value)| json!([render(&key.clone().into()), render(value)]);
            let mut pairs: Vec<Json> = map.iter().map(pair).collect();
            pairs.sort_by_key(|pair| pair[0].to_string());
            json!({"map": pairs})
        }
        Value::Optional(inner) => json!({"optional": inner.as_ref().map(|value| render(value))}),
        Value::Quantity(quantity) => json!({"quantity": quantity.nanos.to_string()}),
        Value::Ip(address) => json!({"ip": address.to_string()}),
        Value::Cidr(cidr) => json!({"cidr": format!("{}/{}", cidr.address, cidr.bits)}),
        Value::Url(url) => json!({"url": [url.scheme, url.host, url.path, url.query]}),
        Value::Semver(version) => {
            let [major, minor, patch] = version.numbers;
            let dash = if version.pre.is_empty() { "" } else { "-" };
            json!({"semver": format!("{major}.{minor}.{patch}{dash}{}", version.pre.join("."))})
        }
        Value::Format(format) => json!({"format": format.name.to_lowercase()}),
    }
}

/// A number as Go writes it with an exponent of two digits or more.
fn render_double(double: f64) -> String {
    if double.is_nan() {
        return "NaN".to_owned();
    }
    if double.is_infinite() {
        return if double > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let text = format!("{double:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap();
    let exponent: i32 = exponent.parse().unwrap();
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// An object as a value, by its schema; none for what rules cannot see.
fn value(object: &Json, schema: &Json) -> Option<Value> {
    if schema["x-kubernetes-int-or-string"] == true {
        return object.as_i64().map(Value::Int).or_else(|| object.as_str().map(Value::from));
    }
    Some(match schema["type"].as_str()? {
        "boolean" => Value::Bool(object.as_bool()?),
        "integer" => Value::Int(object.as_i64()?),
        "number" => Value::Double(object.as_f64()?),
        "string" => text(object.as_str()?, schema["format"].as_str())?,
        "array" => {
            let items = object.as_array()?.iter().filter_map(|item| value(item, &schema["items"])).collect();
            Value::List(List { items: Arc::new(items), identity: identity(schema) })
        }
        _ => {
            let field = |(name, field): (&String, &Json)| {
                let shape = property(schema, name)?;
                let key =
                    if schema["additionalProperties"].is_object() { name.clone() } else { escape(name) };
                Some((Key::String(key.into()), value(field, &shape)?))
            };
            Value::Map(Arc::new(object.as_object()?.iter().filter_map(field).collect::<Map>()))
        }
    })
}

fn text(text: &str, format: Option<&str>) -> Option<Value> {
    Some(match format {
        Some("byte") => Value::Bytes(STANDARD.decode(text).ok()?.into()),
        Some("duration") => Value::Duration(time::parse_duration(text)?),
        Some("date") => Value::Timestamp(time::parse_timestamp(&format!("{text}T00:00:00Z"))?),
        Some("date-time") => Value::Timestamp(time::parse_timestamp(text)?),
        _ => Value::from(text),
    })
}

fn identity(schema: &Json) -> Identity {
    match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => Identity::Item,
        Some("map") => {
            let keys = schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
            let keys: Vec<String> = keys.filter_map(Json::as_str).map(str::to_owned).collect();
            Identity::Keys(keys.into())
        }
        _ => Identity::Place,
    }
}

/// The schema of a field. Rules see a little of each embedded resource.
fn property(schema: &Json, name: &str) -> Option<Json> {
    let string = json!({"type": "string"});
    match name {
        "apiVersion" | "kind" if schema["x-kubernetes-embedded-resource"] == true => Some(string),
        "metadata" if schema["x-kubernetes-embedded-resource"] == true => {
            Some(json!({"type": "object", "properties": {"name": string, "generateName": string}}))
        }
        _ => [&schema["properties"][name], &schema["additionalProperties"]]
            .into_iter()
            .find(|found| found.is_object())
            .cloned(),
    }
}

/// The names in `schema.json` that rules write otherwise.
fn escape(name: &str) -> String {
    match name {
        "for" => "__for__".to_owned(),
        _ => name.replace("__", "__underscores__").replace('.', "__dot__").replace('-', "__dash__"),
    }
}
