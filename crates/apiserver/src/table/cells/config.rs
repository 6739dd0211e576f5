//! Configuration and accounts.

use super::{AGE, Builtin, NAME, Row, text};
use crate::jsonpath;
use serde_json::{Map, Value};

fn entries(row: &Row<'_>, path: &str) -> usize {
    row.map(path).map_or(0, Map::len)
}

pub(super) static CONFIG_MAP: Builtin = Builtin::new(&[NAME, text("Data"), AGE], |row| {
    vec![row.name().into(), (entries(row, "data") + entries(row, "binaryData")).into(), row.age()]
});

pub(super) static SECRET: Builtin = Builtin::new(&[NAME, text("Type"), text("Data"), AGE], |row| {
    vec![row.name().into(), row.text("type").into(), entries(row, "data").into(), row.age()]
});

pub(super) static SERVICE_ACCOUNT: Builtin =
    Builtin::new(&[NAME, AGE], |row| vec![row.name().into(), row.age()]);

pub(super) static RESOURCE_QUOTA: Builtin =
    Builtin::new(&[NAME, text("Request"), text("Limit"), AGE], |row| {
        let (mut requests, mut limits) = (Vec::new(), Vec::new());
        for (resource, hard) in row.map("status.hard").into_iter().flatten() {
            let used = row.map("status.used").and_then(|used| used.get(resource));
            let used = used.map_or_else(|| "0".to_owned(), jsonpath::print);
            let column = if resource.starts_with("limits.") { &mut limits } else { &mut requests };
            column.push(format!("{resource}: {used}/{}", jsonpath::print(hard)));
        }
        let cell = |parts: Vec<String>| Value::from(parts.join(", "));
        vec![row.name().into(), cell(requests), cell(limits), row.age()]
    });
