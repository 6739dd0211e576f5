//! Errors of evaluation, in the words of Kubernetes' evaluator.

use kube_cel::cel::{ExecutionError, Value as Cel};

/// What went wrong. Where Kubernetes' words are not known, the evaluator's stand.
pub(super) fn error_text(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::IndexOutOfBounds(index) => format!("index out of bounds: {}", shown(index)),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        ExecutionError::FunctionError { function, message } => function_error(function, message),
        ExecutionError::NoSuchOverload
        | ExecutionError::ValuesNotComparable(..)
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::UnsupportedUnaryOperator(..)
        | ExecutionError::UnsupportedTargetType { .. }
        | ExecutionError::UnexpectedType { .. } => "no such overload".to_owned(),
        other => other.to_string(),
    }
}

fn function_error(function: &str, message: &str) -> String {
    let target = match function {
        "int" | "uint" | "double" | "bool" if !message.contains("overflow") => function,
        "duration" => "google.protobuf.Duration",
        "timestamp" => "google.protobuf.Timestamp",
        "quantity" => {
            return "quantities must match the regular expression \
                    '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
                .to_owned();
        }
        "min" | "max" if message.contains("empty list") => return format!("{function} called on empty list"),
        "substring" | "charAt" | "indexOf" | "lastIndexOf" => {
            return match first_number(message) {
                Some(index) if message.contains("out of range") => format!("index out of range: {index}"),
                _ => message.to_owned(),
            };
        }
        "slice" => {
            return match message.split_once(" out of range for list of length ") {
                Some((call, length)) => format!("cannot {call}, list is length {length}"),
                None => message.to_owned(),
            };
        }
        _ => return message.to_owned(),
    };
    format!("type conversion error from 'string' to '{target}'")
}

fn first_number(text: &str) -> Option<&str> {
    let start = text.find(|c: char| c.is_ascii_digit() || c == '-')?;
    let rest = &text[start..];
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(rest.len());
    Some(&rest[..end])
}

fn shown(value: &Cel) -> String {
    match value {
        Cel::Int(int) => int.to_string(),
        Cel::UInt(uint) => uint.to_string(),
        other => format!("{other:?}"),
    }
}
