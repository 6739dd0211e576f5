//! How large one object may be: in levels, and in bytes.
//!
//! A request can ask for much more than it sends: a patch copies, a YAML alias repeats, a schema fills in defaults.
//! Whatever multiplies what it was sent counts against these bounds *while* it does so, and every object is held
//! against them once more where it is stored.

use serde_json::Value;
use std::io;

/// How deep request bodies may be nested, in objects and lists.
pub(crate) const BODY_DEPTH_MAX: usize = 120;

/// How deep a stored object may be nested. Its `managedFields` repeat the structure of its fields four levels further
/// down. A list puts two levels around it, and JSON is read up to 127.
pub(crate) const STORED_DEPTH_MAX: usize = BODY_DEPTH_MAX + 5;

/// The longest request body, in bytes.
pub(crate) const BODY_BYTES_MAX: usize = 3 << 20;

/// How many bytes of JSON one object may take up in the store: as much as etcd takes in one request.
pub(crate) const OBJECT_BYTES_MAX: usize = 3 << 19;

/// How many objects (maps of fields) one object of a built-in kind may consist of. Each gets the fields that its type
/// always has and defaults, so one that is sent as `{}` becomes hundreds of bytes. An object that the store accepts has
/// fewer: this bound leaves twelve bytes for each.
pub(crate) const STRUCTS_MAX: usize = OBJECT_BYTES_MAX / 12;

/// How many bytes an object may be over [`OBJECT_BYTES_MAX`] once it is marked for deletion: the mark must fit in, or the
/// object could never be deleted.
pub(crate) const MARK_BYTES_MAX: usize = 4 << 10;

/// How many levels of objects and lists a value has, scalars having none. None if there are more than `max`; it is not looked
/// any deeper than that.
pub(crate) fn depth_within(value: &Value, max: usize) -> Option<usize> {
    let below = |depth: Option<usize>, item: &Value| {
        let deepest = depth?;
        Some(deepest.max(depth_within(item, max.checked_sub(1)?)? + 1))
    };
    match value {
        Value::Array(items) => items.iter().fold(max.checked_sub(1).map(|_| 1), below),
        Value::Object(fields) => fields.values().fold(max.checked_sub(1).map(|_| 1), below),
        _ => Some(0),
    }
}

/// How many values there are in a value, itself included. The value's depth is bounded already.
pub(crate) fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(count).sum::<usize>(),
        _ => 1,
    }
}

/// How many bytes a value takes up as JSON. The value's depth is bounded already.
pub(crate) fn text_bytes(value: &Value) -> usize {
    struct Counter(usize);
    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // Counting does not fail, and trees have only keys that are text.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn nested(depth: usize) -> Value {
        (0..depth)
            .fold(json!(1), |inner, level| if level % 2 == 0 { json!([inner]) } else { json!({"a": inner}) })
    }

    #[test]
    fn depth_counts_objects_and_lists() {
        for depth in [0, 1, 2, 120, 125] {
            assert_eq!(depth_within(&nested(depth), 125), Some(depth));
            assert_eq!(depth_within(&nested(depth), depth), Some(depth));
        }
        assert_eq!(depth_within(&json!([1, [2, {"a": []}], {}]), 9), Some(4));
        assert_eq!(depth_within(&json!({}), 0), None);
        assert_eq!(depth_within(&json!([]), 1), Some(1));
        for (depth, max) in [(1, 0), (2, 1), (126, 125), (1000, 125)] {
            assert_eq!(depth_within(&nested(depth), max), None, "{depth} in {max}");
        }
    }

    #[test]
    fn a_list_of_the_deepest_objects_can_be_read() {
        let list = json!({"items": [nested(STORED_DEPTH_MAX)]}).to_string();
        assert!(serde_json::from_str::<Value>(&list).is_ok());
    }

    #[test]
    fn bytes_are_those_of_the_text() {
        for value in [json!(null), json!({"a": [1.5, "é\n\u{1}", {}], "b": -0.0}), nested(50)] {
            assert_eq!(text_bytes(&value), value.to_string().len());
        }
        assert_eq!(count(&json!({"a": [1, {}], "b": null})), 5);
    }
}
