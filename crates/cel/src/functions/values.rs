//! Functions on quantities, URLs, versions and named formats.

use super::kinds::{Quantity, Semver, Url};
use super::names::named_format;
use super::text::go_quote;
use super::{Function, failed, mismatch};
use crate::evaluate::{Machine, Outcome};
use crate::value::{Key, Map, Value};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) fn function(name: &str) -> Option<Function> {
    quantity_function(name).or_else(|| url_function(name)).or_else(|| version_function(name)).or_else(|| {
        // Each format has a function of its own; a plain function cannot know by which name it was called.
        Some(match name {
            "validate" => validate,
            "format.named" => |_, args| match args {
                [Value::String(name)] => Ok(named_format(name)
                    .map_or(Value::Optional(None), |format| Value::some(Value::Format(format)))),
                _ => mismatch(),
            },
            "format.dns1123Label" => |_, _| format("dns1123Label"),
            "format.dns1123Subdomain" => |_, _| format("dns1123Subdomain"),
            "format.dns1035Label" => |_, _| format("dns1035Label"),
            "format.qualifiedName" => |_, _| format("qualifiedName"),
            "format.dns1123LabelPrefix" => |_, _| format("dns1123LabelPrefix"),
            "format.dns1123SubdomainPrefix" => |_, _| format("dns1123SubdomainPrefix"),
            "format.dns1035LabelPrefix" => |_, _| format("dns1035LabelPrefix"),
            "format.labelValue" => |_, _| format("labelValue"),
            "format.uri" => |_, _| format("uri"),
            "format.uuid" => |_, _| format("uuid"),
            "format.byte" => |_, _| format("byte"),
            "format.date" => |_, _| format("date"),
            "format.datetime" => |_, _| format("datetime"),
            _ => return None,
        })
    })
}

fn quantity_function(name: &str) -> Option<Function> {
    Some(match name {
        "quantity" => |_, args| match args {
            [Value::String(text)] => match Quantity::parse(text) {
                Ok(quantity) => Ok(Value::Quantity(Box::new(quantity))),
                Err(message) => failed(message),
            },
            _ => mismatch(),
        },
        "isQuantity" => |_, args| match args {
            [Value::String(text)] => Ok(Value::Bool(Quantity::parse(text).is_ok())),
            _ => mismatch(),
        },
        "sign" => |_, args| match args {
            [Value::Quantity(quantity)] => {
                Ok(Value::Int(i64::try_from(quantity.nanos.signum()).unwrap_or_default()))
            }
            _ => mismatch(),
        },
        "isGreaterThan" => |_, args| compare(args, |ordering| Value::Bool(ordering.is_gt())),
        "isLessThan" => |_, args| compare(args, |ordering| Value::Bool(ordering.is_lt())),
        "compareTo" => |_, args| compare(args, |ordering| Value::Int(ordering as i64)),
        "asApproximateFloat" => |_, args| match args {
            [Value::Quantity(quantity)] => Ok(Value::Double(quantity.as_float())),
            _ => mismatch(),
        },
        "asInteger" => |_, args| match args {
            [Value::Quantity(quantity)] => match quantity.as_integer() {
                Some(integer) => Ok(Value::Int(integer)),
                None => failed("cannot convert value to integer"),
            },
            _ => mismatch(),
        },
        "isInteger" => |_, args| match args {
            [Value::Quantity(quantity)] => Ok(Value::Bool(quantity.as_integer().is_some())),
            _ => mismatch(),
        },
        "add" => |_, args| combine(args, super::kinds::Quantity::plus),
        "sub" => |_, args| combine(args, |first, second| first.plus(second.negated())),
        _ => return None,
    })
}

fn compare(args: &[Value], give: fn(Ordering) -> Value) -> Outcome {
    match args {
        [Value::Quantity(first), Value::Quantity(second)] => Ok(give(first.nanos.cmp(&second.nanos))),
        [Value::Semver(first), Value::Semver(second)] => Ok(give(first.compare(second))),
        _ => mismatch(),
    }
}

fn combine(args: &[Value], with: fn(Quantity, Quantity) -> Quantity) -> Outcome {
    let (first, second) = match args {
        [Value::Quantity(first), Value::Quantity(second)] => (**first, **second),
        [Value::Quantity(first), Value::Int(second)] => (**first, Quantity::whole(*second)),
        _ => return mismatch(),
    };
    Ok(Value::Quantity(Box::new(with(first, second))))
}

fn url_function(name: &str) -> Option<Function> {
    Some(match name {
        "url" => |machine, args| match args {
            [Value::String(text)] => {
                machine.reserve(text.len() * 4)?;
                if let Some(url) = Url::parse(text) {
                    Ok(Value::Url(Arc::new(url)))
                } else {
                    let why = if text.is_empty() { "empty url" } else { "invalid URI for request" };
                    let text = go_quote(text);
                    failed(format!("URL parse error during conversion from string: parse {text}: {why}"))
                }
            }
            _ => mismatch(),
        },
        "isURL" => |_, args| match args {
            [Value::String(text)] => Ok(Value::Bool(crate::go_url::is_request_uri(text))),
            _ => mismatch(),
        },
        "getScheme" => |_, args| of_url(args, |url| url.scheme.as_str()),
        "getHost" => |_, args| of_url(args, |url| url.host.as_str()),
        "getHostname" => |_, args| of_url(args, Url::hostname),
        "getPort" => |_, args| of_url(args, Url::port),
        "getEscapedPath" => |_, args| of_url(args, |url| url.path.as_str()),
        "getQuery" => query,
        _ => return None,
    })
}

fn of_url(args: &[Value], part: fn(&Url) -> &str) -> Outcome {
    match args {
        [Value::Url(url)] => Ok(part(url).into()),
        _ => mismatch(),
    }
}

fn query(machine: &mut Machine<'_>, args: &[Value]) -> Outcome {
    let [Value::Url(url)] = args else { return mismatch() };
    machine.reserve(url.query.len().saturating_mul(size_of::<Value>()))?;
    let mut grouped: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (key, value) in url.query_pairs() {
        grouped.entry(key).or_default().push(value.into());
    }
    let map: Map =
        grouped.into_iter().map(|(key, values)| (Key::String(key.into()), Value::list(values))).collect();
    Ok(Value::Map(Arc::new(map)))
}

fn version_function(name: &str) -> Option<Function> {
    Some(match name {
        "semver" => |_, args| match parse_version(args) {
            Some(Ok(version)) => Ok(Value::Semver(Arc::new(version))),
            Some(Err(message)) => failed(message),
            None => mismatch(),
        },
        "isSemver" => |_, args| match parse_version(args) {
            Some(parsed) => Ok(Value::Bool(parsed.is_ok())),
            None => mismatch(),
        },
        "major" => |_, args| of_version(args, 0),
        "minor" => |_, args| of_version(args, 1),
        "patch" => |_, args| of_version(args, 2),
        _ => return None,
    })
}

fn parse_version(args: &[Value]) -> Option<Result<Semver, String>> {
    Some(match args {
        [Value::String(text)] | [Value::String(text), Value::Bool(false)] => Semver::parse(text),
        [Value::String(text), Value::Bool(true)] => Semver::parse_tolerant(text),
        _ => return None,
    })
}

fn of_version(args: &[Value], index: usize) -> Outcome {
    match args {
        [Value::Semver(version)] => Ok(Value::Int(version.numbers[index].cast_signed())),
        _ => mismatch(),
    }
}

fn format(name: &str) -> Outcome {
    named_format(name).map_or_else(mismatch, |format| Ok(Value::Format(format)))
}

fn validate(_: &mut Machine<'_>, args: &[Value]) -> Outcome {
    match args {
        [Value::Format(format), Value::String(text)] => {
            let wrong = (format.check)(text);
            Ok(if wrong.is_empty() {
                Value::Optional(None)
            } else {
                Value::some(Value::list(wrong.into_iter().map(Value::from).collect()))
            })
        }
        _ => mismatch(),
    }
}
