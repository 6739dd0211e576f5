//! Which form a client wants its answer in, and which form it sent its request in. Pure.

use crate::status::ApiError;
use http::{HeaderMap, header};

/// What a response shows of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Form {
    /// All of them.
    #[default]
    Object,
    /// `PartialObjectMetadata`: of one object, or of each event of a watch.
    Metadata,
    /// `PartialObjectMetadataList`.
    MetadataList,
    /// A `Table`.
    Table,
}

/// How a response is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Encoding {
    #[default]
    Json,
    Yaml,
}

/// What the `Accept` header comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accept {
    pub form: Form,
    pub encoding: Encoding,
    /// `pretty` was asked for.
    pub pretty: bool,
    /// The version of the metadata and table forms.
    pub meta_version: &'static str,
}

impl Default for Accept {
    fn default() -> Self {
        Accept { form: Form::Object, encoding: Encoding::Json, pretty: false, meta_version: "v1" }
    }
}

/// The media type parameters that say what an object is to be shown as.
#[derive(Default)]
struct Clause<'a> {
    media: &'a str,
    shown_as: Option<&'a str>,
    group: Option<&'a str>,
    version: Option<&'a str>,
    profile: Option<&'a str>,
}

fn clauses(header: &str) -> impl Iterator<Item = Clause<'_>> {
    header.split(',').map(|clause| {
        let mut parts = clause.split(';').map(str::trim);
        let mut read = Clause { media: parts.next().unwrap_or_default(), ..Clause::default() };
        for part in parts {
            match part.split_once('=') {
                Some(("as", value)) => read.shown_as = Some(value),
                Some(("g", value)) => read.group = Some(value),
                Some(("v", value)) => read.version = Some(value),
                Some(("profile", value)) => read.profile = Some(value),
                _ => {}
            }
        }
        read
    })
}

/// The media types this server writes, as it names them when none was accepted.
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const WRITTEN: &str = "application/json, application/yaml";

/// Reads the `Accept` header of a request for objects. Some cannot be shown in a table.
pub(crate) fn accept(headers: &HeaderMap, tables: bool) -> Result<Accept, ApiError> {
    let header = headers.get(header::ACCEPT).and_then(|h| h.to_str().ok()).unwrap_or("*/*");
    for clause in clauses(header) {
        let encoding = match clause.media {
            "application/json" | "*/*" | "application/*" | "" => Encoding::Json,
            "application/yaml" => Encoding::Yaml,
            _ => continue,
        };
        let metadata_group = clause.group.is_none_or(|g| g == "meta.k8s.io");
        let form = match (clause.shown_as, clause.version) {
            (None, _) => Form::Object,
            (Some("Table"), Some("v1" | "v1beta1") | None) if metadata_group && tables => Form::Table,
            (Some("PartialObjectMetadata"), Some("v1" | "v1beta1")) if metadata_group => Form::Metadata,
            (Some("PartialObjectMetadataList"), Some("v1" | "v1beta1")) if metadata_group => {
                Form::MetadataList
            }
            _ => continue,
        };
        let meta_version = if clause.version == Some("v1beta1") { "v1beta1" } else { "v1" };
        return Ok(Accept { form, encoding, pretty: false, meta_version });
    }
    if clauses(header).any(|c| WRITTEN.split(", ").any(|written| c.media == written) || c.media == PROTOBUF) {
        return Err(ApiError::not_acceptable(format!(
            "only the following media types are accepted: {WRITTEN}, {PROTOBUF}"
        )));
    }
    let mut error = ApiError::not_acceptable(format!(
        "406: Not Acceptable\n\nAvailable representations: {WRITTEN}, {PROTOBUF}, \
         application/json;stream=watch, {PROTOBUF};stream=watch"
    ));
    error.details = Some(Box::default());
    Err(error)
}

/// Which aggregated discovery document a client wants, newest understood first.
pub(crate) fn aggregated_discovery(headers: &HeaderMap) -> Option<&'static str> {
    let header = headers.get(header::ACCEPT)?.to_str().ok()?;
    clauses(header).find_map(|clause| {
        let aggregated = clause.media == "application/json"
            && clause.group == Some("apidiscovery.k8s.io")
            && clause.shown_as == Some("APIGroupDiscoveryList");
        // Profiles change the document's meaning; none is known here.
        match clause.version {
            Some("v2") if aggregated && clause.profile.is_none() => Some(Some("v2")),
            Some("v2beta1") if aggregated => Some(Some("v2beta1")),
            _ if clause.media == "application/json" && clause.shown_as.is_none() => Some(None),
            _ => None,
        }
    })?
}

/// The media type of a request body, without its parameters.
pub(crate) fn content_type(headers: &HeaderMap) -> &str {
    let header = headers.get(header::CONTENT_TYPE).and_then(|h| h.to_str().ok()).unwrap_or("");
    header.split(';').next().unwrap_or("").trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(header: &str) -> Option<Form> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, header.parse().unwrap());
        accept(&headers, true).ok().map(|a| a.form)
    }

    #[test]
    fn the_first_form_that_can_be_made_is_taken() {
        assert_eq!(form("application/json;as=Table;v=v1;g=meta.k8s.io,application/json"), Some(Form::Table));
        assert_eq!(form("application/json;as=Other;v=v9,application/json"), Some(Form::Object));
        assert_eq!(form("application/vnd.kubernetes.protobuf;as=Table,application/json"), Some(Form::Object));
        assert_eq!(
            form("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"),
            Some(Form::MetadataList)
        );
        assert_eq!(form("text/html"), None);
    }

    #[test]
    fn what_has_no_table_is_shown_in_the_next_form_or_not_at_all() {
        let mut headers = HeaderMap::new();
        headers.insert(
            header::ACCEPT,
            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json".parse().unwrap(),
        );
        assert_eq!(accept(&headers, false).unwrap().form, Form::Object);
        headers.insert(header::ACCEPT, "application/json;as=Table;v=v1;g=meta.k8s.io".parse().unwrap());
        assert_eq!(accept(&headers, false).unwrap_err().code, 406);
    }
}
