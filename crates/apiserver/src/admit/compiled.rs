//! The admission that is compiled in: namespaces must be there to stay, pods get their account and tolerations, claims
//! their class.

use super::Operation;
use crate::builtin::rules::Env;
use crate::builtin::rules::json::text_at;
use crate::builtin::rules::objects::{claim, class_defaults, priority_class};
use crate::builtin::rules::pod::admit as pod;
use crate::server::{Call, Server};
use crate::status::ApiError;
use crate::store::{CollectionId, Key, Object, Unreadable};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::sync::LazyLock;

/// An object as it is stored.
pub(super) fn stored(
    server: &Server,
    group: &str,
    plural: &str,
    namespace: &str,
    name: &str,
) -> Result<Option<Value>, Unreadable> {
    let object = server.store.get(&CollectionId::new(group, plural), &Key::new(namespace, name));
    object.map(|object| object.value()).transpose()
}

/// New objects go only into namespaces that are there to stay.
pub(crate) fn check_namespace(
    server: &Server,
    call: &Call,
    operation: Operation,
    object: &Value,
) -> Result<(), ApiError> {
    static NAMESPACES: LazyLock<CollectionId> = LazyLock::new(|| CollectionId::new("", "namespaces"));
    let Some(name) = call.namespace.as_deref() else { return Ok(()) };
    let Some(namespace) = server.store.get(&NAMESPACES, &Key::new("", name)) else {
        let subject = crate::status::Subject { group: "", kind: "namespaces" };
        return Err(ApiError::not_found(&subject, name));
    };
    if operation == Operation::Update || !is_terminating(&namespace)? {
        return Ok(());
    }
    let why = format!("unable to create new content in namespace {name} because it is being terminated");
    let object_name = match text_at(object, "/metadata/name") {
        "" => text_at(object, "/metadata/generateName"),
        name => name,
    };
    let mut error = ApiError::forbidden(&call.kind.resource(), object_name, &why);
    if let Some(details) = &mut error.details {
        let message = format!("namespace {name} is being terminated");
        let cause =
            json!({"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"});
        details.insert("causes".into(), json!([cause]));
    }
    Err(error)
}

/// Whether a stored namespace is being deleted.
pub(crate) fn is_terminating(namespace: &Object) -> Result<bool, Unreadable> {
    Ok(namespace.mentions("\"Terminating\"")
        && text_at(&namespace.value()?, "/status/phase") == "Terminating")
}

/// The plugins that a stock kube-apiserver has on.
pub(super) fn admit_builtin(
    server: &Server,
    call: &Call,
    dry_run: bool,
    object: &mut Value,
    old: Option<&Value>,
) -> Result<(), ApiError> {
    match (call.kind.kind.as_str(), old) {
        ("Pod", old) => {
            let uid = || server.uid();
            let env = Env { now: server.clock.now(), uid: &uid, dry_run };
            around_pod(server, call.namespace(), |around| match old {
                None => pod::admit_pod(object, call.namespace(), &env, around),
                Some(old) => {
                    pod::admit_pod_update(object, old, around);
                    Ok(())
                }
            })??;
        }
        ("PersistentVolumeClaim", None) => {
            let classes = mentioning(server, "storage.k8s.io", "storageclasses", "is-default-class")?;
            class_defaults::default_storage_class(object, classes.iter());
            claim::add_finalizer(object, "kubernetes.io/pvc-protection");
        }
        ("PersistentVolumeClaim", Some(old)) => {
            let class = text_at(object, "/spec/storageClassName");
            let class = stored(server, "storage.k8s.io", "storageclasses", "", class)?;
            claim::admit_resize(object, old, class.as_ref())?;
        }
        ("PersistentVolume", None) => claim::add_finalizer(object, "kubernetes.io/pv-protection"),
        ("Ingress", None) => {
            let classes = mentioning(server, "networking.k8s.io", "ingressclasses", "is-default-class")?;
            class_defaults::default_ingress_class(object, classes.iter());
        }
        ("PriorityClass", old) => {
            let default = default_priority_class(server)?;
            let default = default.as_ref().map(|class| text_at(class, "/metadata/name"));
            priority_class::admit_default(object, old, default)?;
        }
        _ => {}
    }
    Ok(())
}

/// Runs `with` on the objects around a pod of a namespace.
pub(super) fn around_pod<R>(
    server: &Server,
    namespace: &str,
    with: impl FnOnce(&pod::Surroundings<'_>) -> R,
) -> Result<R, Unreadable> {
    // Whatever is decided without an object that is there and cannot be read is given up in the end.
    let unreadable = RefCell::new(None);
    let note = |found: Result<Option<Value>, Unreadable>| {
        found.unwrap_or_else(|error| {
            unreadable.replace(Some(error));
            None
        })
    };
    let service_account = |name: &str| note(stored(server, "", "serviceaccounts", namespace, name));
    let priority_class = |name: &str| note(stored(server, "scheduling.k8s.io", "priorityclasses", "", name));
    let default_class = || note(default_priority_class(server));
    let node = |name: &str| note(stored(server, "", "nodes", "", name));
    let decided = with(&pod::Surroundings {
        service_account: &service_account,
        priority_class: &priority_class,
        default_priority_class: &default_class,
        node: &node,
    });
    unreadable.into_inner().map_or(Ok(decided), Err)
}

/// The objects of a kind that mention something.
fn mentioning(server: &Server, group: &str, plural: &str, what: &str) -> Result<Vec<Value>, Unreadable> {
    let id = CollectionId::new(group, plural);
    let Ok(listing) = server.store.list(&id, None, None, None) else { return Ok(Vec::new()) };
    let items = listing.items.iter().filter(|object| object.mentions(what));
    items.map(|object| object.value()).collect()
}

fn default_priority_class(server: &Server) -> Result<Option<Value>, Unreadable> {
    let mut classes = mentioning(server, "scheduling.k8s.io", "priorityclasses", "\"globalDefault\":true")?;
    classes.retain(|class| class.get("globalDefault") == Some(&Value::Bool(true)));
    Ok(classes.into_iter().min_by_key(|class| class.get("value").and_then(Value::as_i64).unwrap_or(0)))
}
