//! `metadata.managedFields`: who owns which fields.

use super::set::FieldSet;
use crate::gotext;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// How a manager came to own its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    Apply,
    Update,
}

impl Operation {
    const fn name(self) -> &'static str {
        match self {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        }
    }
}

/// What tells one entry from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) manager: String,
    pub(super) operation: Operation,
    /// Of updates only: who applies has one entry, whatever version was applied.
    pub(super) api_version: Option<String>,
    pub(super) subresource: String,
}

impl Identity {
    pub(super) fn new(manager: &str, operation: Operation, api_version: &str, subresource: &str) -> Self {
        let api_version = match operation {
            Operation::Apply => None,
            Operation::Update => Some(api_version.to_owned()),
        };
        let manager = if manager.is_empty() { "unknown" } else { manager };
        Identity { manager: manager.to_owned(), operation, api_version, subresource: subresource.to_owned() }
    }

    /// The text by which kube-apiserver orders managers: the entry as JSON, less what varies.
    pub(super) fn order_key(&self) -> String {
        let fields = [
            ("manager", self.manager.as_str()),
            ("operation", self.operation.name()),
            ("apiVersion", self.api_version.as_deref().unwrap_or_default()),
            ("subresource", &self.subresource),
        ];
        let mut out = String::from("{");
        for (name, value) in fields.iter().filter(|(_, value)| !value.is_empty()) {
            if out.len() > 1 {
                out.push(',');
            }
            gotext::write_json_text(name, &mut out);
            out.push(':');
            gotext::write_json_text(value, &mut out);
        }
        out.push('}');
        out
    }
}

/// One entry.
#[derive(Clone, Debug)]
pub(super) struct Manager {
    pub(super) identity: Identity,
    /// The version in whose terms the fields are named.
    pub(super) api_version: String,
    pub(super) fields: FieldSet,
    pub(super) time: Option<Timestamp>,
}

impl Manager {
    pub(super) const fn is_applied(&self) -> bool {
        matches!(self.identity.operation, Operation::Apply)
    }

    fn seconds(&self) -> i64 {
        self.time.map_or(0, Timestamp::as_second)
    }
}

/// All entries of an object, in no particular order.
#[derive(Clone, Debug, Default)]
pub(super) struct Managers {
    pub(super) list: Vec<Manager>,
}

/// More managers than this that only update are folded into one.
const UPDATE_MANAGERS_MAX: usize = 10;

impl Managers {
    pub(super) fn get_mut(&mut self, identity: &Identity) -> Option<&mut Manager> {
        self.list.iter_mut().find(|manager| manager.identity == *identity)
    }

    /// Takes the entry out.
    pub(super) fn take(&mut self, identity: &Identity) -> Option<Manager> {
        let at = self.list.iter().position(|manager| manager.identity == *identity)?;
        Some(self.list.swap_remove(at))
    }

    /// Puts an entry in, in place of one with the same identity.
    pub(super) fn put(&mut self, manager: Manager) {
        match self.get_mut(&manager.identity) {
            Some(existing) => *existing = manager,
            None => self.list.push(manager),
        }
    }

    /// Reads the value of `managedFields`; absent and null are no entries.
    pub(super) fn decode(entries: Option<&Value>) -> Result<Managers, String> {
        let mut managers = Managers::default();
        let entries = match entries {
            None | Some(Value::Null) => return Ok(managers),
            Some(Value::Array(entries)) => entries,
            Some(_) => return Err("managedFields must be a list".to_owned()),
        };
        managers.list.reserve(entries.len() + 1);
        for (i, entry) in entries.iter().enumerate() {
            managers.put(decode_entry(i, entry)?);
        }
        Ok(managers)
    }

    /// The value of `managedFields`; none for no entries.
    pub(super) fn encode(mut self) -> Option<Value> {
        if self.list.is_empty() {
            return None;
        }
        let key = |m: &Manager| (m.identity.operation, m.seconds());
        self.list.sort_by(|a, b| {
            key(a)
                .cmp(&key(b))
                .then_with(|| a.identity.manager.cmp(&b.identity.manager))
                .then_with(|| a.api_version.cmp(&b.api_version))
                .then_with(|| a.identity.subresource.cmp(&b.identity.subresource))
        });
        Some(self.list.into_iter().map(encode_entry).collect())
    }

    /// Folds the oldest entries of updates into `ancient-changes`, one for each version, until there are
    /// not more than ten.
    pub(super) fn cap_updates(&mut self) {
        let mut excess = self.list.iter().filter(|manager| !manager.is_applied()).count();
        excess = excess.saturating_sub(UPDATE_MANAGERS_MAX);
        if excess == 0 {
            return;
        }
        let mut oldest: Vec<Identity> =
            self.list.iter().filter(|m| !m.is_applied()).map(|m| m.identity.clone()).collect();
        oldest.sort_by_cached_key(|identity| {
            let seconds = self.list.iter().find(|m| m.identity == *identity).map_or(0, Manager::seconds);
            (seconds, identity.order_key())
        });
        let mut first_of_version: Vec<(String, Identity)> = Vec::new();
        for identity in oldest {
            if excess == 0 {
                return;
            }
            let Some(version) = identity.api_version.clone() else { continue };
            let Some((_, first)) = first_of_version.iter().find(|(v, _)| *v == version) else {
                first_of_version.push((version, identity));
                continue;
            };
            let bucket = Identity::new("ancient-changes", Operation::Update, &version, "");
            if self.get_mut(&bucket).is_none()
                && let Some(first) = self.get_mut(first)
            {
                first.identity = bucket.clone();
            }
            let Some(folded) = self.take(&identity) else { continue };
            excess -= 1;
            // kube-apiserver, too, forgets a bucket that is as old as the entries folded into it.
            if let Some(bucket) = self.get_mut(&bucket) {
                bucket.fields = std::mem::take(&mut bucket.fields).union(folded.fields);
                bucket.time = folded.time;
            }
        }
    }
}

fn decode_entry(i: usize, entry: &Value) -> Result<Manager, String> {
    let text = |name: &str| match entry.get(name) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text.as_str()),
        Some(_) => Err(format!("{name} must be a string")),
    };
    let operation = match text("operation")? {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err("operation must be `Apply` or `Update`".to_owned()),
    };
    let api_version = text("apiVersion")?;
    if api_version.is_empty() {
        return Err("apiVersion must not be empty".to_owned());
    }
    match text("fieldsType")? {
        "FieldsV1" => {}
        "" => return Err(format!("missing fieldsType in managed fields entry {i}")),
        other => return Err(format!("invalid fieldsType {other:?} in managed fields entry {i}")),
    }
    let time = match text("time")? {
        "" => None,
        time => Some(time.parse().map_err(|e| format!("invalid time in managed fields entry {i}: {e}"))?),
    };
    let fields = FieldSet::parse(entry.get("fieldsV1").unwrap_or(&Value::Null))
        .map_err(|e| format!("error decoding versioned set: error decoding set: {e}"))?;
    let mut identity = Identity::new("", operation, api_version, text("subresource")?);
    text("manager")?.clone_into(&mut identity.manager);
    Ok(Manager { identity, api_version: api_version.to_owned(), fields, time })
}

fn encode_entry(manager: Manager) -> Value {
    let Manager { identity, api_version, fields, time } = manager;
    let mut entry = Map::new();
    entry.insert("apiVersion".to_owned(), api_version.into());
    entry.insert("fieldsType".to_owned(), json!("FieldsV1"));
    entry.insert("fieldsV1".to_owned(), fields.to_value());
    if !identity.manager.is_empty() {
        entry.insert("manager".to_owned(), identity.manager.into());
    }
    entry.insert("operation".to_owned(), identity.operation.name().into());
    if !identity.subresource.is_empty() {
        entry.insert("subresource".to_owned(), identity.subresource.into());
    }
    if let Some(time) = time {
        // Whole seconds, as all times of the API.
        entry.insert("time".to_owned(), format!("{time:.0}").into());
    }
    Value::Object(entry)
}
