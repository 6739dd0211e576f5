//! Lists and tables, written object by object. A long one is never whole in memory: what is held is the stored objects,
//! which all answers share, and the piece that the client reads next.

use super::ListMeta;
use super::order::{self, KindFirst};
use crate::body::Body;
use crate::kind::Kind;
use crate::status::ApiError;
use crate::store::{Object, Unreadable};
use crate::table::{self, IncludeObject};
use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The size at which a piece is sent. One object more than that may be in it.
const PIECE_BYTES: usize = 64 << 10;
/// Stored objects of more than this are written piece by piece.
const WHOLE_BYTES_MAX: usize = 256 << 10;

/// What a list shows of its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Objects,
    Metadata,
    Table(IncludeObject),
}

/// The text that a list is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// JSON on one line.
    Compact,
    /// JSON for people.
    Pretty,
    Yaml,
}

type Fields = Vec<(&'static str, Value)>;

/// How a list is written.
pub(super) struct Writing {
    pub kind: Arc<Kind>,
    pub shape: Shape,
    /// Of the metadata and table forms: `v1` or `v1beta1`.
    pub version: &'static str,
    pub now: Timestamp,
    pub style: Style,
}

impl Writing {
    /// The body of a list of these objects.
    pub(super) fn body(self, items: &[Arc<Object>], meta: &ListMeta) -> Result<Body, ApiError> {
        let size: usize = items.iter().map(|object| object.json.len()).sum();
        if size <= WHOLE_BYTES_MAX {
            return Ok(Body::whole(self.whole(items, meta)?));
        }
        let (head, tail) = self.ends(meta, items.is_empty())?;
        let pieces =
            Pieces { items: Vec::from(items).into_iter(), next: head, tail, first: true, writing: self };
        Ok(Body::stream(futures::stream::unfold(pieces, async |mut pieces| {
            let piece = pieces.next()?;
            // A long table takes seconds, in which others want to be answered.
            tokio::task::yield_now().await;
            Some((piece, pieces))
        })))
    }

    /// The same at once.
    fn whole(&self, items: &[Arc<Object>], meta: &ListMeta) -> Result<Vec<u8>, ApiError> {
        let (mut out, tail) = self.ends(meta, items.is_empty())?;
        for (index, object) in items.iter().enumerate() {
            self.item(object, index == 0, &mut out)?;
        }
        out.extend_from_slice(&tail);
        Ok(out)
    }

    /// What stands before and after the objects.
    fn ends(&self, meta: &ListMeta, empty: bool) -> Result<(Vec<u8>, Vec<u8>), ApiError> {
        let (before, name, after) = self.fields(meta);
        if self.style == Style::Yaml {
            return yaml_ends(before.into_iter().chain(after), name, empty).map_err(ApiError::internal);
        }
        let pretty = self.style == Style::Pretty;
        let field = |(name, value): &(&str, Value)| {
            if pretty {
                let text = indented(&serde_json::to_string_pretty(value).unwrap_or_default(), "  ");
                format!("  \"{name}\": {text}")
            } else {
                format!("\"{name}\":{value}")
            }
        };
        let separator = if pretty { ",\n" } else { "," };
        let before = before.iter().map(field).collect::<Vec<_>>().join(separator);
        let mut rest = vec![String::new()];
        rest.extend(after.iter().map(field));
        let rest = rest.join(separator);
        let (head, tail) = if pretty {
            let close = if empty { "" } else { "\n  " };
            (format!("{{\n{before},\n  \"{name}\": ["), format!("{close}]{rest}\n}}"))
        } else {
            (format!("{{{before},\"{name}\":["), format!("]{rest}}}\n"))
        };
        Ok((head.into_bytes(), tail.into_bytes()))
    }

    /// The fields before the objects, the field of the objects, and those after it. Lists of custom kinds are maps to Go,
    /// which it writes in the order of their keys.
    fn fields(&self, meta: &ListMeta) -> (Fields, &'static str, Fields) {
        let form = format!("meta.k8s.io/{}", self.version);
        let start = |kind: &str, version: &str, about: Value| {
            vec![("kind", kind.into()), ("apiVersion", version.into()), ("metadata", about)]
        };
        let mut about = meta.value();
        match self.shape {
            Shape::Metadata => (start("PartialObjectMetadataList", &form, about), "items", Vec::new()),
            Shape::Table(_) => {
                let mut before = start("Table", &form, about);
                before.push(("columnDefinitions", self.kind.printer.columns()));
                (before, "rows", Vec::new())
            }
            Shape::Objects if self.kind.custom().is_some() => {
                // Whole lists of custom kinds say that there is nothing to continue; others say nothing.
                if meta.token.is_none() {
                    about["continue"] = "".into();
                }
                let after = vec![("kind", self.kind.list_kind.as_str().into()), ("metadata", about)];
                (vec![("apiVersion", self.kind.api_version.as_str().into())], "items", after)
            }
            Shape::Objects => {
                (start(&self.kind.list_kind, &self.kind.api_version, about), "items", Vec::new())
            }
        }
    }

    /// Writes one object. Items of custom kinds say what they are; items of built-in ones, like Kubernetes' own, do not.
    fn item(&self, object: &Object, first: bool, out: &mut Vec<u8>) -> Result<(), Unreadable> {
        if !first && self.style != Style::Yaml {
            out.push(b',');
        }
        let kind = &*self.kind;
        let builtin = kind.builtin().is_some();
        if self.shape == Shape::Objects && self.style == Style::Compact && kind.stored_as_sent(object) {
            if builtin {
                out.extend_from_slice(&object.json);
            } else {
                out.extend_from_slice(kind.prefix());
                out.extend_from_slice(object.json.get(1..).unwrap_or_default());
            }
            return Ok(());
        }
        let mut tree = kind.tree(object)?;
        let shown = match self.shape {
            Shape::Objects => {
                if let (Value::Object(fields), true) = (&mut tree, builtin) {
                    fields.remove("apiVersion");
                    fields.remove("kind");
                }
                tree
            }
            Shape::Metadata => table::partial_object_metadata(&tree, self.version),
            Shape::Table(include) => kind.printer.row(&tree, self.now, include, self.version),
        };
        match self.style {
            Style::Compact => out.extend_from_slice(order::text(&shown).as_bytes()),
            Style::Pretty => {
                let text = serde_json::to_string_pretty(&KindFirst(&shown)).unwrap_or_default();
                out.extend_from_slice(b"\n    ");
                out.extend_from_slice(indented(&text, "    ").as_bytes());
            }
            Style::Yaml => {
                // As the only item of a list, it is indented as it is among others.
                let text = yaml("", json!([shown])).map_err(|error| object.unreadable(error))?;
                out.extend_from_slice(text.split_once('\n').map_or("", |(_, item)| item).as_bytes());
            }
        }
        Ok(())
    }
}

/// The lines after the first moved to the right. No line of JSON is inside of a string.
fn indented(text: &str, by: &str) -> String {
    text.replace('\n', &format!("\n{by}"))
}

/// A field of an object in YAML.
fn yaml(name: &str, value: Value) -> Result<String, serde_saphyr::ser::Error> {
    serde_saphyr::to_string(&BTreeMap::from([(name, value)]))
}

/// What stands before and after the objects of a list in YAML, whose fields are in the order of their names.
fn yaml_ends(
    fields: impl Iterator<Item = (&'static str, Value)>,
    list: &'static str,
    empty: bool,
) -> Result<(Vec<u8>, Vec<u8>), serde_saphyr::ser::Error> {
    let fields: BTreeMap<_, _> = fields.collect();
    let (mut head, mut tail) = (String::new(), String::new());
    for (name, value) in fields {
        let end = if name < list { &mut head } else { &mut tail };
        end.push_str(&yaml(name, value)?);
    }
    if empty {
        head.push_str(&yaml(list, json!([]))?);
    } else {
        head.extend([list, ":\n"]);
    }
    Ok((head.into_bytes(), tail.into_bytes()))
}

/// A list on its way.
struct Pieces {
    items: std::vec::IntoIter<Arc<Object>>,
    next: Vec<u8>,
    tail: Vec<u8>,
    first: bool,
    writing: Writing,
}

impl Pieces {
    fn next(&mut self) -> Option<Bytes> {
        while self.next.len() < PIECE_BYTES {
            let Some(object) = self.items.next() else {
                self.next.append(&mut self.tail);
                break;
            };
            let first = std::mem::take(&mut self.first);
            if let Err(error) = self.writing.item(&object, first, &mut self.next) {
                // The client has the beginning already. JSON that breaks off is no list, and nobody takes it for one. In
                // YAML it would be one, if not for a character that YAML does not allow.
                tracing::error!("{error}");
                if self.writing.style == Style::Yaml {
                    self.next.push(0);
                }
                (self.items, self.tail) = (Vec::new().into_iter(), Vec::new());
                break;
            }
        }
        let piece = std::mem::take(&mut self.next);
        (!piece.is_empty()).then(|| piece.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Key;
    use http_body_util::BodyExt as _;

    /// A list of one stored object that is nested deeper than can be read, and has this many bytes besides.
    fn list(style: Style, bytes: usize) -> Result<Body, ApiError> {
        let server = crate::ApiServer::builder().build().unwrap();
        let kind = server.server.registry.find("apps", "v1", "controllerrevisions").unwrap();
        let (open, close, long) = ("[".repeat(300), "]".repeat(300), "x".repeat(bytes));
        let text = format!(r#"{{"data":{open}"{long}"{close},"metadata":{{"name":"a"}}}}"#);
        let object = Arc::new(Object::new(Key::new("n", "a"), 1, text.into()));
        let now = Timestamp::UNIX_EPOCH;
        let writing = Writing { kind, shape: Shape::Objects, version: "v1", now, style };
        writing.body(&[object], &ListMeta::default())
    }

    #[tokio::test]
    async fn a_list_with_an_unreadable_object_is_an_error_or_no_list() {
        for style in [Style::Pretty, Style::Yaml] {
            assert_eq!(list(style, 1).map(drop).unwrap_err().code, 500);
            let long = list(style, WHOLE_BYTES_MAX).unwrap().collect().await.unwrap().to_bytes();
            let is_list = match style {
                Style::Yaml => serde_saphyr::from_slice::<Value>(&long).is_ok(),
                Style::Compact | Style::Pretty => serde_json::from_slice::<Value>(&long).is_ok(),
            };
            assert!(!is_list, "{}", String::from_utf8_lossy(&long));
        }
        // What is sent as it is stored need not be read.
        assert!(list(Style::Compact, 1).is_ok());
    }
}
