//! Answers: objects in the form a client wants, lists, and refusals.

pub(crate) mod order;
mod pieces;

use crate::body::Body;
use crate::kind::Kind;
use crate::negotiate::{Accept, Encoding, Form};
use crate::server::Call;
use crate::status::ApiError;
use crate::store::Object;
use crate::table::{self, IncludeObject, Printer, TableRequest};
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use jiff::Timestamp;
use order::KindFirst;
use pieces::{Shape, Style, Writing};
use serde_json::{Map, Value};
use std::sync::Arc;

/// An answer before it becomes an HTTP response.
pub(crate) struct Reply {
    pub code: u16,
    pub body: Body,
    pub content_type: &'static str,
    pub warnings: Vec<String>,
    pub retry_after_seconds: Option<u64>,
}

impl Reply {
    pub(crate) fn new(code: u16, body: Body, content_type: &'static str) -> Reply {
        Reply { code, body, content_type, warnings: Vec::new(), retry_after_seconds: None }
    }

    /// JSON that is written already.
    pub(crate) fn text(code: u16, json: impl Into<Bytes>) -> Reply {
        Reply::new(code, Body::whole(json), "application/json")
    }

    pub(crate) fn json(code: u16, value: &Value) -> Reply {
        Reply::text(code, order::text(value))
    }

    pub(crate) fn plain(code: u16, text: impl Into<String>) -> Reply {
        Reply::new(code, Body::whole(text.into()), "text/plain; charset=utf-8")
    }

    pub(crate) fn error(error: &ApiError) -> Reply {
        Reply::error_for(Accept::default(), error)
    }

    /// A refusal, written as the client wants its answers written.
    pub(crate) fn error_for(accept: Accept, error: &ApiError) -> Reply {
        let mut reply = encode(accept, error.code, &error.to_status());
        let details = error.details.as_deref();
        reply.retry_after_seconds = details.and_then(|d| d.get("retryAfterSeconds")).and_then(Value::as_u64);
        reply
    }

    pub(crate) fn into_response(self) -> Response<Body> {
        let mut response = Response::new(self.body);
        *response.status_mut() = StatusCode::from_u16(self.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
        if let Some(seconds) = self.retry_after_seconds {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        // Kubernetes leaves out what a header could not carry as it is.
        for warning in self.warnings.into_iter().filter(|text| !text.contains(char::is_control)) {
            if let Ok(value) = HeaderValue::from_str(&format!("299 - {}", quote_warning(&warning))) {
                headers.append(header::WARNING, value);
            }
        }
        response
    }
}

/// A warning as a quoted string.
fn quote_warning(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Answers with one object.
pub(crate) fn object(call: &Call, code: u16, object: &Object, now: Timestamp) -> Result<Reply, ApiError> {
    let kind = &call.kind;
    let plain = call.accept.form == Form::Object
        && call.accept.encoding == Encoding::Json
        && !call.accept.pretty
        && kind.stored_as_sent(object);
    if plain {
        return Ok(Reply::text(code, kind.whole(&object.json)));
    }
    tree(call, code, &kind.tree(object)?, now)
}

/// Answers with one object that is a tree of the call's version already.
pub(crate) fn tree(call: &Call, code: u16, tree: &Value, now: Timestamp) -> Result<Reply, ApiError> {
    let version = call.accept.meta_version;
    let shown = match call.accept.form {
        Form::Object => return Ok(encode_ordered(call.accept, code, tree, call.kind.builtin().is_some())),
        Form::Metadata => table::partial_object_metadata(tree, version),
        Form::MetadataList => {
            return Err(ApiError::not_acceptable(format!(
                "you requested PartialObjectMetadataList, but the requested object is not a list (*{})",
                internal_type(&call.kind)
            )));
        }
        Form::Table => {
            let include = IncludeObject::parse(call.query.get("includeObject"))?;
            let metadata = tree.get("metadata").unwrap_or(&Value::Null);
            let request = TableRequest { include, headers: true, version };
            let scale = Printer::builtin("autoscaling", "Scale");
            let is_scale = call.subresource.as_deref() == Some("scale");
            let printer = if is_scale { &scale } else { &call.kind.printer };
            printer.table(metadata, [tree], now, request)
        }
    };
    Ok(encode(call.accept, code, &shown))
}

/// What a list says about itself.
#[derive(Debug, Default)]
pub(crate) struct ListMeta {
    pub revision: u64,
    pub token: Option<String>,
    pub remaining: Option<usize>,
}

impl ListMeta {
    fn value(&self) -> Value {
        let mut meta = Map::new();
        meta.insert("resourceVersion".into(), self.revision.to_string().into());
        if let Some(token) = &self.token {
            meta.insert("continue".into(), token.as_str().into());
        }
        if let Some(remaining) = self.remaining {
            meta.insert("remainingItemCount".into(), remaining.into());
        }
        Value::Object(meta)
    }
}

/// Answers with a list.
pub(crate) fn list(
    call: &Call,
    items: &[Arc<Object>],
    meta: &ListMeta,
    now: Timestamp,
) -> Result<Reply, ApiError> {
    let shape = match call.accept.form {
        Form::Object => Shape::Objects,
        Form::MetadataList => Shape::Metadata,
        Form::Table => Shape::Table(IncludeObject::parse(call.query.get("includeObject"))?),
        Form::Metadata => {
            return Err(ApiError::not_acceptable(format!(
                "you requested PartialObjectMetadata, but the requested object is a list (*{}List)",
                internal_type(&call.kind)
            )));
        }
    };
    let Accept { encoding, pretty, meta_version: version, .. } = call.accept;
    let (style, content_type) = match encoding {
        Encoding::Json if pretty => (Style::Pretty, "application/json"),
        Encoding::Json => (Style::Compact, "application/json"),
        Encoding::Yaml => (Style::Yaml, "application/yaml"),
    };
    let writing = Writing { kind: call.kind.clone(), shape, version, now, style };
    Ok(Reply::new(200, writing.body(items, meta)?, content_type))
}

/// What kube-apiserver calls a kind inside: `core.Secret`.
fn internal_type(kind: &Kind) -> String {
    if kind.custom().is_some() {
        return "unstructured.Unstructured".to_owned();
    }
    format!("{}.{}", kind.internal_group(), kind.kind)
}

/// Writes a tree as the client wants it written.
pub(crate) fn encode(accept: Accept, code: u16, value: &Value) -> Reply {
    encode_ordered(accept, code, value, true)
}

/// The same; objects of custom kinds are maps to Go, and are written in the order of their keys.
fn encode_ordered(accept: Accept, code: u16, value: &Value, kind_first: bool) -> Reply {
    let ordered = KindFirst(value);
    match accept.encoding {
        Encoding::Json if accept.pretty => {
            let text = if kind_first {
                serde_json::to_string_pretty(&ordered)
            } else {
                serde_json::to_string_pretty(value)
            };
            Reply::text(code, text.unwrap_or_default())
        }
        Encoding::Json if kind_first => Reply::json(code, value),
        Encoding::Json => Reply::text(code, value.to_string()),
        Encoding::Yaml => {
            let text = match serde_saphyr::to_string(value) {
                Ok(text) => text,
                // An answer that cannot be written is not an empty one.
                Err(error) => return Reply::json(500, &ApiError::internal(error).to_status()),
            };
            let mut reply = Reply::text(code, text);
            reply.content_type = "application/yaml";
            reply
        }
    }
}
