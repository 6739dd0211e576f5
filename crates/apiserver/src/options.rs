//! The options of list, watch and write requests, read from the query and checked as Kubernetes checks them.

use crate::apply::validate_manager_name;
use crate::decode;
use crate::field::{FieldError, Path};
use crate::kind::Kind;
use crate::request::Query;
use crate::selectors::{FieldFilter, FieldSelector, FieldSupport, LabelSelector};
use crate::status::{ApiError, Subject};
use crate::store::{Key, Object, Revision, Unreadable};
use base64::Engine as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Which objects of a collection are meant.
#[derive(Debug)]
pub(crate) struct Selection {
    labels: LabelSelector,
    fields: FieldFilter,
}

impl Selection {
    fn read(query: &Query, kind: &Kind, name: Option<&str>) -> Result<Selection, ApiError> {
        let labels = LabelSelector::parse(query.get("labelSelector").unwrap_or_default())?;
        let support = match kind.custom() {
            None => FieldSupport::builtin(&kind.group, &kind.kind),
            Some(custom) => {
                FieldSupport::custom(kind.namespaced, custom.selectable.iter().map(String::as_str))
            }
        };
        let mut fields =
            FieldSelector::parse(query.get("fieldSelector").unwrap_or_default())?.for_kind(&support)?;
        if let Some(name) = name {
            if fields.is_everything() {
                fields = FieldSelector::parse(&format!("metadata.name={name}"))?.for_kind(&support)?;
            } else if fields.name() != Some(name) {
                return Err(ApiError::bad_request(
                    "fieldSelector metadata.name doesn't match requested name",
                ));
            }
        }
        Ok(Selection { labels, fields })
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }

    pub(crate) fn selects(&self, kind: &Kind, object: &Object) -> Result<bool, Unreadable> {
        if !self.labels.is_everything() && !self.labels.matches(object.labels()?) {
            return Ok(false);
        }
        Ok(self.fields.is_everything() || self.fields.selects(&kind.tree(object)?))
    }
}

/// How a list's revision relates to the one asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// The newest there is.
    Newest,
    /// Not older than this.
    NotOlderThan(Revision),
    /// This and no other.
    Exactly(Revision),
}

/// Options of a list, a watch or a deletion of many.
#[derive(Debug)]
pub(crate) struct ListOptions {
    pub selection: Selection,
    /// Zero means no limit.
    pub limit: usize,
    pub resume: Option<Resume>,
    pub at: At,
    pub watch: bool,
    pub bookmarks: bool,
    /// `sendInitialEvents`.
    pub initial_events: Option<bool>,
    pub timeout_seconds: Option<u64>,
}

/// Where a continued list goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resume {
    /// None: at the newest revision, because the list's own is gone.
    pub revision: Option<Revision>,
    pub after: Key,
}

impl ListOptions {
    pub(crate) fn read(query: &Query, kind: &Kind, name: Option<&str>) -> Result<ListOptions, ApiError> {
        let number = |name| query.number(name).map_err(ApiError::bad_request);
        let watch = query.flag("watch").unwrap_or(false);
        let version = query.get("resourceVersion").unwrap_or_default();
        let matching = query.get("resourceVersionMatch");
        let token = query.get("continue");
        let initial_events = query.flag("sendInitialEvents");
        let limit = number("limit")?.unwrap_or(0);
        let timeout = number("timeoutSeconds")?;
        let labels_and_fields = Selection::read(query, kind, name);

        let errors = if watch {
            watch_problems(matching, token, initial_events)
        } else {
            list_problems(version, matching, token, initial_events)
        };
        if !errors.is_empty() {
            let subject = Subject { group: "meta.k8s.io", kind: "ListOptions" };
            return Err(ApiError::invalid(&subject, "", &errors));
        }
        let selection = labels_and_fields?;
        let resume = match token {
            Some(token) if !watch => {
                if !version.is_empty() && version != "0" {
                    return Err(ApiError::bad_request(
                        "specifying resource version is not allowed when using continue",
                    ));
                }
                Some(Resume::read(token)?)
            }
            _ => None,
        };
        let revision = read_version(version).map_err(|error| {
            if watch { error } else { ApiError::bad_request(format!("invalid resource version: {error}")) }
        })?;
        let at = match (matching, revision) {
            (_, 0) => At::Newest,
            (Some("Exact"), revision) => At::Exactly(revision),
            (None, revision) if limit > 0 && !watch => At::Exactly(revision),
            (_, revision) => At::NotOlderThan(revision),
        };
        Ok(ListOptions {
            selection,
            limit: usize::try_from(limit).unwrap_or(0),
            resume,
            at,
            watch,
            bookmarks: query.flag("allowWatchBookmarks").unwrap_or(false),
            initial_events,
            timeout_seconds: timeout.and_then(|t| u64::try_from(t).ok()).filter(|t| *t > 0),
        })
    }
}

/// Reads a `resourceVersion`; the refusal has no reason, as kube-apiserver's has none.
pub(crate) fn read_version(text: &str) -> Result<Revision, ApiError> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| {
        let path = Path::of("resourceVersion");
        let detail = format!("strconv.ParseUint: parsing {}: invalid syntax", crate::field::go_quote(text));
        ApiError::plain(500, "", FieldError::invalid(&path, &Value::from(text), detail).to_string())
    })
}

fn list_problems(
    version: &str,
    matching: Option<&str>,
    token: Option<&str>,
    initial: Option<bool>,
) -> Vec<FieldError> {
    let path = Path::of("resourceVersionMatch");
    let mut errors = Vec::new();
    if let Some(matching) = matching {
        if version.is_empty() {
            let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            errors.push(FieldError::forbidden(&path, why));
        }
        if token.is_some() {
            let why = "resourceVersionMatch is forbidden when continue is provided";
            errors.push(FieldError::forbidden(&path, why));
        }
        if matching != "Exact" && matching != "NotOlderThan" {
            errors.push(FieldError::not_supported(&path, &matching.into(), &["Exact", "NotOlderThan", ""]));
        }
        if matching == "Exact" && version == "0" {
            let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            errors.push(FieldError::forbidden(&path, why));
        }
    }
    if initial.is_some() {
        let path = Path::of("sendInitialEvents");
        errors.push(FieldError::forbidden(&path, "sendInitialEvents is forbidden for list"));
    }
    errors
}

fn watch_problems(matching: Option<&str>, token: Option<&str>, initial: Option<bool>) -> Vec<FieldError> {
    let path = Path::of("resourceVersionMatch");
    let mut errors = Vec::new();
    if initial.is_some() && matching != Some("NotOlderThan") {
        let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        errors.push(FieldError::forbidden(&path, why));
    }
    if let Some(matching) = matching {
        if initial.is_none() {
            let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            errors.push(FieldError::forbidden(&path, why));
        }
        if matching != "NotOlderThan" {
            errors.push(FieldError::not_supported(&path, &matching.into(), &["NotOlderThan"]));
        }
        if token.is_some() {
            let why = "resourceVersionMatch is forbidden when continue is provided";
            errors.push(FieldError::forbidden(&path, why));
        }
    }
    errors
}

#[derive(Serialize, Deserialize)]
struct Token {
    v: String,
    rv: i64,
    start: String,
}

const TOKEN_VERSION: &str = "meta.k8s.io/v1";

impl Resume {
    /// The token that a client sends to get what comes after `after`.
    pub(crate) fn token(&self) -> String {
        let start = format!("{}/{}\0", self.after.namespace, self.after.name);
        let rv = self.revision.map_or(-1, |r| i64::try_from(r).unwrap_or(i64::MAX));
        let token = Token { v: TOKEN_VERSION.into(), rv, start };
        let text = serde_json::to_vec(&token).unwrap_or_default();
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text)
    }

    fn read(text: &str) -> Result<Resume, ApiError> {
        let refuse = |why: &str| {
            ApiError::bad_request(format!("invalid continue token: continue key is not valid: {why}"))
        };
        let decoded = base64::engine::general_purpose::URL_SAFE_NO_PAD
            .decode(text)
            .map_err(|error| refuse(&error.to_string()))?;
        let value = decode::parse(&decoded, decode::Encoding::Json).map_err(|error| {
            let (decode::Unreadable::Syntax(why) | decode::Unreadable::Value(why)) = error;
            refuse(why.rsplit_once("json parse error: ").map_or(&why, |(_, why)| why))
        })?;
        let token: Token = serde_json::from_value(value.value).map_err(|error| refuse(&error.to_string()))?;
        if token.v != TOKEN_VERSION {
            return Err(refuse(&format!("server does not recognize this encoded version {}", token.v)));
        }
        if token.rv == 0 {
            return Err(refuse("incorrect encoded start resourceVersion (version meta.k8s.io/v1)"));
        }
        let Some((namespace, name)) = token.start.trim_end_matches('\0').split_once('/') else {
            return Err(refuse("encoded start key empty (version meta.k8s.io/v1)"));
        };
        let revision = u64::try_from(token.rv).ok();
        Ok(Resume { revision, after: Key::new(namespace, name) })
    }
}

/// What a client wants done about fields that the kind does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

/// Options of a write.
#[derive(Clone, Debug)]
pub(crate) struct WriteOptions {
    pub dry_run: bool,
    pub field_validation: FieldValidation,
    /// The field manager's name as given.
    pub manager: Option<String>,
    pub force: Option<bool>,
}

impl WriteOptions {
    /// `kind` is the options' own name: `CreateOptions`, `UpdateOptions` or `PatchOptions`.
    pub(crate) fn read(query: &Query, kind: &str, is_apply: bool) -> Result<WriteOptions, ApiError> {
        let mut errors = Vec::new();
        let manager = query.get("fieldManager").map(str::to_owned);
        let force = query.flag("force");
        if kind == "PatchOptions" {
            if is_apply && manager.is_none() {
                let why = "is required for apply patch";
                errors.push(FieldError::required(&Path::of("fieldManager"), why));
            }
            if !is_apply && force.is_some() {
                let why = "may not be specified for non-apply patch";
                errors.push(FieldError::forbidden(&Path::of("force"), why));
            }
        }
        if let Some(manager) = &manager {
            errors.extend(validate_manager_name(manager, &Path::of("fieldManager")));
        }
        let dry_run = dry_run(&query.all("dryRun"), &mut errors);
        let field_validation = match query.get("fieldValidation") {
            None | Some("Warn") => FieldValidation::Warn,
            Some("Ignore") => FieldValidation::Ignore,
            Some("Strict") => FieldValidation::Strict,
            Some(other) => {
                let path = Path::of("fieldValidation");
                let supported = ["", "Ignore", "Strict", "Warn"];
                errors.push(FieldError::not_supported(&path, &other.into(), &supported));
                FieldValidation::Strict
            }
        };
        if errors.is_empty() {
            return Ok(WriteOptions { dry_run, field_validation, manager, force });
        }
        Err(ApiError::invalid(&Subject { group: "meta.k8s.io", kind }, "", &errors))
    }
}

/// Reads `dryRun` values, whether from the query or from a body.
pub(crate) fn dry_run(values: &[&str], errors: &mut Vec<FieldError>) -> bool {
    let mut wanted = false;
    for value in values {
        if *value == "All" {
            wanted = true;
        } else {
            let path = Path::of("dryRun");
            let list = Value::from(values.iter().map(|v| Value::from(*v)).collect::<Vec<_>>());
            errors.push(FieldError::not_supported(&path, &list, &["All"]));
            break;
        }
    }
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_continue_token_says_where_to_go_on() {
        for revision in [Some(7), None] {
            let resume = Resume { revision, after: Key::new("ns", "name") };
            assert_eq!(Resume::read(&resume.token()).unwrap(), resume);
        }
        assert_eq!(Resume::read("@").unwrap_err().code, 400);
        assert_eq!(Resume::read("e30").unwrap_err().code, 400);
    }
}
