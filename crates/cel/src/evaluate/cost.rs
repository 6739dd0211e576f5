//! What calls cost: cel-go's cost tracker with the estimator and the trackers that Kubernetes adds.
//!
//! Costs are computed from the arguments, before the call. Where cel-go looks at the result, its size follows
//! from the arguments.

use crate::value::Value;

const TRAVERSAL: f64 = 0.1;
const REGEX: f64 = 0.25;
const CALL: u64 = 1;
const MAKE_LIST: u64 = 10;

/// The cost of a call, without that of its arguments.
pub(super) fn call_cost(function: &str, overload: &str, args: &[Value]) -> u64 {
    of_lists(overload, args)
        .or_else(|| of_kubernetes(function, overload, args))
        .unwrap_or_else(|| of_cel(overload, args))
}

#[expect(clippy::cast_precision_loss, reason = "sizes are far below the precision of a double")]
const fn float(size: u64) -> f64 {
    size as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the conversion saturates, and sizes are not negative"
)]
const fn integer(cost: f64) -> u64 {
    cost as u64
}

fn traversal(size: u64) -> u64 {
    integer((float(size) * TRAVERSAL).ceil())
}

fn size(args: &[Value], index: usize) -> u64 {
    args.get(index).and_then(Value::size).unwrap_or(1)
}

/// As `size`, and the value within an optional counts.
fn inner_size(value: Option<&Value>) -> u64 {
    match value {
        Some(Value::Optional(Some(inner))) => inner_size(Some(inner)),
        other => other.and_then(Value::size).unwrap_or(1),
    }
}

fn regex(text: u64, pattern: u64) -> u64 {
    let text = integer(((1.0 + float(text)) * TRAVERSAL).ceil());
    text.saturating_mul(integer((float(pattern) * REGEX).ceil()))
}

/// Functions on lists and sets that make lists or compare each item with each.
fn of_lists(overload: &str, args: &[Value]) -> Option<u64> {
    let making = |factor: f64, size: u64| integer(float(size) * factor).saturating_add(CALL + MAKE_LIST);
    // What failed has no size, and so counts as one.
    let length = |index: usize| match args.get(index) {
        Some(Value::Int(int)) => u64::try_from(*int).unwrap_or(0),
        _ => 1,
    };
    let sliced = || match args {
        [Value::List(list), Value::Int(start), Value::Int(end)] => {
            let (start, end) = (usize::try_from(*start).ok()?, usize::try_from(*end).ok()?);
            let size = end.checked_sub(start).filter(|_| end <= list.items.len())?;
            u64::try_from(size).ok()
        }
        _ => None,
    };
    let self_compare = |index: usize| {
        let size = size(args, index);
        let first = match args.get(index) {
            Some(Value::List(list)) => list.items.first(),
            _ => None,
        };
        let text = matches!(first, Some(Value::String(_) | Value::Bytes(_)));
        making(if text { 2.0 + TRAVERSAL } else { 2.0 }, size.saturating_mul(size))
    };
    Some(match overload {
        "list_slice" => making(1.0, sliced().unwrap_or(1)),
        "list_flatten_int" => match args.get(1) {
            // A negative cost wraps around in Kubernetes.
            Some(Value::Int(depth)) if *depth < 0 => {
                size(args, 0).wrapping_mul(depth.cast_unsigned()).wrapping_add(CALL + MAKE_LIST)
            }
            _ => making(float(length(1)), size(args, 0)),
        },
        "lists_range" => making(1.0, length(0)),
        "list_flatten" | "list_reverse" => making(1.0, size(args, 0)),
        "list_distinct" => self_compare(0),
        _ if overload.ends_with("_sort") => self_compare(0),
        _ if overload.ends_with("_sortByAssociatedKeys") => self_compare(1),
        "list_sets_contains_list" | "list_sets_intersects_list" => {
            CALL.saturating_add(size(args, 0).saturating_mul(size(args, 1)))
        }
        "list_sets_equivalent_list" => {
            let product = size(args, 0).saturating_mul(size(args, 1));
            CALL.saturating_add(integer(float(product) * 2.0))
        }
        _ => return None,
    })
}

fn of_kubernetes(function: &str, overload: &str, args: &[Value]) -> Option<u64> {
    Some(match function {
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => {
            args.first().map_or(0, traversal_of)
        }
        "url" | "lowerAscii" | "upperAscii" | "substring" | "trim" | "cidr" | "isIP" | "isCIDR"
        | "quantity" | "isQuantity" | "semver" | "isSemver" => traversal(size(args, 0)),
        "replace" | "split" | "ip.isCanonical" => integer((float(size(args, 0)) * 2.0 * TRAVERSAL).ceil()),
        "join" => integer((float(joined_size(args)) * 2.0 * TRAVERSAL).ceil()),
        "find" | "findAll" => regex(size(args, 0), size(args, 1)),
        "ip" if overload != "cidr_ip" => traversal(size(args, 0)),
        "containsIP" => {
            let parse = if overload == "cidr_contains_ip_string" { traversal(size(args, 1)) } else { 0 };
            traversal(size(args, 0) * 2) + parse
        }
        "containsCIDR" => {
            let parse = if overload == "cidr_contains_cidr_string" { traversal(size(args, 1)) } else { 0 };
            traversal(size(args, 0) * 2) + traversal(size(args, 0)) + 1 + parse
        }
        "validate" => match args.first() {
            Some(Value::Format(format)) => regex(size(args, 1), format.regex_size),
            _ => return None,
        },
        "ip"
        | "masked"
        | "prefixLength"
        | "family"
        | "isUnspecified"
        | "isLoopback"
        | "isLinkLocalMulticast"
        | "isLinkLocalUnicast"
        | "isGlobalUnicast"
        | "format.named"
        | "sign"
        | "asInteger"
        | "isInteger"
        | "asApproximateFloat"
        | "isGreaterThan"
        | "isLessThan"
        | "compareTo"
        | "add"
        | "sub"
        | "major"
        | "minor"
        | "patch"
        | "getScheme"
        | "getHostname"
        | "getHost"
        | "getPort"
        | "getEscapedPath"
        | "getQuery" => 1,
        "_==_" => match args.first()? {
            Value::Quantity(_)
            | Value::Ip(_)
            | Value::Cidr(_)
            | Value::Format(_)
            | Value::Url(_)
            | Value::Semver(_) => 1,
            _ => return None,
        },
        _ => return None,
    })
}

fn of_cel(overload: &str, args: &[Value]) -> u64 {
    let first = || inner_size(args.first());
    let second = || inner_size(args.get(1));
    match overload {
        "starts_with_string" | "ends_with_string" | "string_to_bytes" | "bytes_to_string"
        | "strings_quote" | "string_format" => traversal(first()),
        "in_list" => second(),
        "less_string"
        | "greater_string"
        | "less_equals_string"
        | "greater_equals_string"
        | "less_bytes"
        | "greater_bytes"
        | "less_equals_bytes"
        | "greater_equals_bytes"
        | "equals"
        | "not_equals" => traversal(first().min(second())),
        "add_string" | "add_bytes" => traversal(first().saturating_add(second())),
        "matches_string" => regex(first(), second()),
        "contains_string" => traversal(first()).saturating_mul(traversal(second())),
        _ => CALL,
    }
}

/// The cost of walking through all of a value.
fn traversal_of(value: &Value) -> u64 {
    let text = |length: usize| integer(float(u64::try_from(length).unwrap_or(u64::MAX)) * TRAVERSAL);
    match value {
        Value::String(string) => text(string.len()),
        Value::Bytes(bytes) => text(bytes.len()),
        Value::List(list) => list.items.iter().map(traversal_of).sum(),
        Value::Map(map) => {
            map.iter().map(|(key, value)| traversal_of(&Value::from(key.clone())) + traversal_of(value)).sum()
        }
        _ => 1,
    }
}

/// How many characters the texts of a list have with the separator between them.
fn joined_size(args: &[Value]) -> u64 {
    let (Some(Value::List(list)), None | Some(Value::String(_))) = (args.first(), args.get(1)) else {
        return 1;
    };
    let texts: u64 = list.items.iter().map(|item| item.size().unwrap_or(0)).sum();
    let separators = u64::try_from(list.items.len().saturating_sub(1)).unwrap_or(u64::MAX);
    let separator = if args.len() > 1 { size(args, 1) } else { 0 };
    texts.saturating_add(separators.saturating_mul(separator))
}
