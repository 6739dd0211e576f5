//! The ends of each integer type, for generators of random values: most mistakes in arithmetic are there.

use proptest::prelude::*;
use serde_json::Value;

/// The ends of the signed types and their neighbours, and small numbers.
pub(crate) const SIGNED: [i64; 16] = [
    i64::MIN,
    i64::MIN + 1,
    i32::MIN as i64 - 1,
    i32::MIN as i64,
    i16::MIN as i64,
    -1,
    0,
    1,
    u16::MAX as i64,
    u16::MAX as i64 + 1,
    i32::MAX as i64 - 1,
    i32::MAX as i64,
    i32::MAX as i64 + 1,
    u32::MAX as i64 + 1,
    i64::MAX - 1,
    i64::MAX,
];

/// Numbers as JSON has them: the ends of each type, those that only an unsigned one holds, and floats that look like them.
pub(crate) fn numbers() -> impl Strategy<Value = Value> {
    let unsigned = [i64::MAX.unsigned_abs() + 1, u64::MAX - 1, u64::MAX];
    let floats = [-0.0, f64::MIN, f64::MAX, f64::MIN_POSITIVE, 9_223_372_036_854_775_808.0, 1e19, 0.5];
    prop_oneof![
        4 => prop::sample::select(&SIGNED[..]).prop_map(Value::from),
        1 => prop::sample::select(unsigned.to_vec()).prop_map(Value::from),
        1 => prop::sample::select(floats.to_vec()).prop_map(Value::from),
    ]
}
