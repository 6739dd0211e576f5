//! JSON patch (RFC 6902), as kube-apiserver's library does it.
//!
//! Beyond the RFC: negative list indices count from the end; `replace` of an absent member adds it;
//! an operation without `value` carries `null`; `test` of an absent member against `null` holds; the
//! part of a path before its first `/` is ignored.

use super::PatchError;
use crate::bounds::{STORED_DEPTH_MAX, count, depth_within, text_bytes};
use crate::gotext::json_type;
use serde_json::{Map, Value};

/// How many operations a patch may have.
pub(crate) const OPERATIONS_MAX: usize = 10_000;

/// How many bytes of JSON all `copy` operations of a patch may add together.
pub(crate) const COPIED_BYTES_MAX: usize = 3 << 20;

/// How many values all operations of a patch may move together: items of lists that make room for others, and values that
/// `move` takes far down, of which each has to be looked at.
pub(crate) const MOVED_VALUES_MAX: usize = 50_000_000;

/// Applies a JSON patch: all operations, or none. `checked` is whether the request asks for field
/// validation (`Strict` or `Warn`, the default), which looks at the operations' fields first.
pub(crate) fn apply(mut target: Value, patch: &Value, checked: bool) -> Result<Value, PatchError> {
    let operations = decode(patch, checked)?;
    if operations.len() > OPERATIONS_MAX {
        return Err(PatchError::TooManyOperations(operations.len()));
    }
    let mut budget = Budget::of(&target)?;
    for operation in operations {
        // `null` stands for an operation without fields, which is of no known kind.
        let operation = operation.as_object().ok_or(PatchError::Unprocessable)?;
        step(&mut target, operation, &mut budget)?;
    }
    Ok(target)
}

/// What the operations of one patch may still do.
struct Budget {
    copied_bytes: usize,
    moved_values: usize,
    /// The document has at most this many levels. It is not looked through again after each operation.
    depth: usize,
}

impl Budget {
    fn of(document: &Value) -> Result<Budget, PatchError> {
        let depth = depth_within(document, STORED_DEPTH_MAX).ok_or(PatchError::TooDeep)?;
        Ok(Budget { copied_bytes: 0, moved_values: 0, depth })
    }

    /// Counts bytes that are copied.
    fn copy(&mut self, bytes: usize) -> Result<(), PatchError> {
        self.copied_bytes = self.copied_bytes.saturating_add(bytes);
        if self.copied_bytes > COPIED_BYTES_MAX {
            return Err(PatchError::CopiesTooMuch(self.copied_bytes));
        }
        Ok(())
    }

    /// Counts values that are moved.
    fn touch(&mut self, values: usize) -> Result<(), PatchError> {
        self.moved_values = self.moved_values.saturating_add(values);
        if self.moved_values > MOVED_VALUES_MAX {
            return Err(PatchError::MovesTooMuch);
        }
        Ok(())
    }

    /// Takes note of a value of this many levels that is put below `path`.
    fn nest(&mut self, path: &str, levels: usize) -> Result<(), PatchError> {
        let depth = steps(path).saturating_add(levels);
        if depth > STORED_DEPTH_MAX {
            return Err(PatchError::TooDeep);
        }
        self.depth = self.depth.max(depth);
        Ok(())
    }

    /// The same for a value that the document or the patch holds.
    fn graft(&mut self, path: &str, value: &Value) -> Result<(), PatchError> {
        let levels = depth_within(value, STORED_DEPTH_MAX).ok_or(PatchError::TooDeep)?;
        self.nest(path, levels)
    }

    /// The same for a value that is moved from elsewhere in the document. It is only looked through if it might be too deep.
    fn regraft(&mut self, from: &str, path: &str, value: &Value) -> Result<(), PatchError> {
        let levels_max = self.depth.saturating_sub(steps(from));
        if steps(path) + levels_max <= STORED_DEPTH_MAX {
            return self.nest(path, levels_max);
        }
        self.touch(count(value))?;
        self.graft(path, value)
    }
}

/// How many levels down a path leads.
fn steps(path: &str) -> usize {
    path.matches('/').count()
}

/// Fields of operations that JSON patch does not know, worded for warnings and strict refusals.
pub(crate) fn unknown_fields(patch: &Value) -> Vec<String> {
    let mut unknown = Vec::new();
    for (index, operation) in patch.as_array().into_iter().flatten().enumerate() {
        for name in operation.as_object().into_iter().flat_map(Map::keys) {
            if !matches!(name.as_str(), "op" | "path" | "from" | "value") {
                unknown.push(format!("json patch unknown field \"[{index}].{name}\""));
            }
        }
    }
    unknown
}

fn decode(patch: &Value, checked: bool) -> Result<&[Value], PatchError> {
    let (prefix, list, item) = if checked {
        ("error decoding patch: ", "[]handlers.jsonPatchOp", "handlers.jsonPatchOp")
    } else {
        ("", "jsonpatch.Patch", "jsonpatch.Operation")
    };
    let refuse = |value: &Value, of: &str| {
        let found = json_type(value);
        PatchError::Malformed(format!("{prefix}json: cannot unmarshal {found} into Go {of}"))
    };
    let operations = match patch {
        Value::Array(operations) => operations.as_slice(),
        Value::Null => &[],
        other => return Err(refuse(other, &format!("value of type {list}"))),
    };
    for operation in operations {
        let fields = match operation {
            Value::Object(fields) => fields,
            Value::Null => continue,
            other => return Err(refuse(other, &format!("value of type {item}"))),
        };
        for name in ["op", "path", "from"].iter().filter(|_| checked) {
            if let Some(value) = fields.get(*name).filter(|value| !value.is_string() && !value.is_null()) {
                return Err(refuse(value, &format!("struct field jsonPatchOp.{name} of type string")));
            }
        }
    }
    Ok(operations)
}

fn step(document: &mut Value, operation: &Map<String, Value>, budget: &mut Budget) -> Result<(), PatchError> {
    let text = |name: &str| operation.get(name).and_then(Value::as_str).ok_or(PatchError::Unprocessable);
    let given = operation.get("value").unwrap_or(&Value::Null);
    match text("op")? {
        "add" => {
            let path = text("path")?;
            budget.graft(path, given)?;
            Place::find(document, path)?.add(given.clone(), budget)
        }
        "remove" => Place::find(document, text("path")?)?.remove(budget).map(drop),
        "replace" => {
            let path = text("path")?;
            budget.graft(path, given)?;
            if !path.is_empty() {
                return Place::find(document, path)?.replace(given.clone());
            }
            if !given.is_object() && !given.is_array() {
                return Err(PatchError::Unprocessable);
            }
            *document = given.clone();
            Ok(())
        }
        "move" => {
            let (from, path) = (text("from")?, text("path")?);
            let moved = Place::find(document, from)?.remove(budget)?;
            budget.regraft(from, path, &moved)?;
            Place::find(document, path)?.add(moved, budget)
        }
        "copy" => {
            let (from, path) = (text("from")?, text("path")?);
            let found = Place::find(document, from)?.get()?;
            budget.copy(text_bytes(found))?;
            budget.graft(path, found)?;
            let copied = found.clone();
            Place::find(document, path)?.add(copied, budget)
        }
        "test" => {
            let path = text("path")?;
            let found = if path.is_empty() { &*document } else { Place::find(document, path)?.get()? };
            if found == given { Ok(()) } else { Err(PatchError::Unprocessable) }
        }
        _ => Err(PatchError::Unprocessable),
    }
}

/// A member of an object or an item of a list, there or not yet.
enum Place<'a> {
    Member(&'a mut Map<String, Value>, String),
    Item(&'a mut Vec<Value>, String),
}

impl<'a> Place<'a> {
    fn find(document: &'a mut Value, path: &str) -> Result<Place<'a>, PatchError> {
        Place::look(document, path).ok_or(PatchError::Unprocessable)
    }

    fn look(document: &'a mut Value, path: &str) -> Option<Place<'a>> {
        let mut parts = path.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~"));
        let mut key = parts.next()?;
        let mut container = document;
        for next in parts {
            container = match container {
                Value::Object(map) => map.get_mut(&key)?,
                Value::Array(items) => {
                    let index = position(&key, items.len())?;
                    items.get_mut(index)?
                }
                _ => return None,
            };
            key = next;
        }
        match container {
            Value::Object(map) => Some(Place::Member(map, key)),
            Value::Array(items) => Some(Place::Item(items, key)),
            _ => None,
        }
    }

    /// None where a list has no such item; an object's absent member is `null`.
    fn get(self) -> Result<&'a Value, PatchError> {
        match self {
            Place::Member(map, key) => Ok(map.get(&key).unwrap_or(&Value::Null)),
            Place::Item(items, key) => {
                let item = position(&key, items.len()).and_then(|index| items.get(index));
                item.ok_or(PatchError::Unprocessable)
            }
        }
    }

    fn add(self, value: Value, budget: &mut Budget) -> Result<(), PatchError> {
        match self {
            Place::Member(map, key) => drop(map.insert(key, value)),
            Place::Item(items, key) if key == "-" => items.push(value),
            Place::Item(items, key) => {
                let index = position(&key, items.len() + 1).filter(|index| *index <= items.len());
                let index = index.ok_or(PatchError::Unprocessable)?;
                budget.touch(items.len() - index)?;
                items.insert(index, value);
            }
        }
        Ok(())
    }

    fn replace(self, value: Value) -> Result<(), PatchError> {
        match self {
            Place::Member(map, key) => drop(map.insert(key, value)),
            Place::Item(items, key) => {
                let item = position(&key, items.len()).and_then(|index| items.get_mut(index));
                *item.ok_or(PatchError::Unprocessable)? = value;
            }
        }
        Ok(())
    }

    fn remove(self, budget: &mut Budget) -> Result<Value, PatchError> {
        match self {
            Place::Member(map, key) => map.remove(&key).ok_or(PatchError::Unprocessable),
            Place::Item(items, key) => {
                let index = position(&key, items.len()).filter(|index| *index < items.len());
                let index = index.ok_or(PatchError::Unprocessable)?;
                budget.touch(items.len() - index)?;
                Ok(items.remove(index))
            }
        }
    }
}

/// The index a key names in a list of this length; negative ones count from the end.
fn position(key: &str, length: usize) -> Option<usize> {
    let index: i64 = key.parse().ok()?;
    if index < 0 {
        return length.checked_sub(usize::try_from(index.unsigned_abs()).ok()?);
    }
    usize::try_from(index).ok()
}
