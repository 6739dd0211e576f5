//! Claims and ingresses that name no class get the one that is marked as default.

use super::is_unset;
use crate::builtin::rules::json::{ensure_object, put, set, text};
use serde_json::Value;

const STORAGE_DEFAULT: &[&str] =
    &["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
const STORAGE_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const INGRESS_DEFAULT: &[&str] = &["ingressclass.kubernetes.io/is-default-class"];
const INGRESS_CLASS: &str = "kubernetes.io/ingress.class";

/// Gives a new claim its storage class.
pub(crate) fn default_storage_class<'a>(claim: &mut Value, classes: impl Iterator<Item = &'a Value>) {
    let named = set(&claim["spec"], "storageClassName").is_some()
        || claim["metadata"]["annotations"].get(STORAGE_CLASS).is_some();
    if let (false, Some(class)) = (named, newest_default(classes, STORAGE_DEFAULT)) {
        name_class(claim, "storageClassName", class);
    }
}

/// Gives a new ingress its class.
pub(crate) fn default_ingress_class<'a>(ingress: &mut Value, classes: impl Iterator<Item = &'a Value>) {
    let named = set(&ingress["spec"], "ingressClassName").is_some()
        || ingress["metadata"]["annotations"].get(INGRESS_CLASS).is_some();
    if let (false, Some(class)) = (named, newest_default(classes, INGRESS_DEFAULT)) {
        name_class(ingress, "ingressClassName", class);
    }
}

fn name_class(object: &mut Value, field: &str, class: &str) {
    if let Some(spec) = ensure_object(object, "spec") {
        put(spec, field, class);
    }
}

/// The newest class that is marked so; of several that are as new, the first by name.
fn newest_default<'a>(classes: impl Iterator<Item = &'a Value>, marks: &[&str]) -> Option<&'a str> {
    let marked = |class: &&Value| {
        let annotations = &class["metadata"]["annotations"];
        marks.iter().any(|mark| text(annotations, mark) == "true")
    };
    let age = |class: &&Value| {
        let meta = &class["metadata"];
        (text(meta, "creationTimestamp").to_owned(), std::cmp::Reverse(text(meta, "name").to_owned()))
    };
    let newest = classes.filter(marked).max_by_key(age)?;
    let meta = &newest["metadata"];
    if is_unset(meta, "name") { None } else { meta["name"].as_str() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn class(name: &str, time: &str, default: &str) -> Value {
        let annotations = json!({"storageclass.kubernetes.io/is-default-class": default});
        json!({"metadata": {"name": name, "creationTimestamp": time, "annotations": annotations}})
    }

    #[test]
    fn the_newest_default_class_is_given() {
        let classes = [
            class("a", "1", "true"),
            class("c", "2", "true"),
            class("b", "2", "true"),
            class("d", "3", "no"),
        ];
        let mut claim = json!({"spec": {}});
        default_storage_class(&mut claim, classes.iter());
        assert_eq!(claim["spec"]["storageClassName"], "b");
    }

    #[test]
    fn a_named_class_stays_even_if_its_name_is_empty() {
        let classes = [class("a", "1", "true")];
        let mut claim = json!({"spec": {"storageClassName": ""}});
        default_storage_class(&mut claim, classes.iter());
        assert_eq!(claim["spec"]["storageClassName"], "");
    }

    #[test]
    fn an_ingress_with_the_annotation_of_old_has_a_class() {
        let class = json!({"metadata": {"name": "a", "annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}}});
        let mut ingress =
            json!({"metadata": {"annotations": {"kubernetes.io/ingress.class": "x"}}, "spec": {}});
        default_ingress_class(&mut ingress, std::iter::once(&class));
        assert_eq!(ingress["spec"], json!({}));
        ingress["metadata"] = json!({});
        default_ingress_class(&mut ingress, std::iter::once(&class));
        assert_eq!(ingress["spec"]["ingressClassName"], "a");
    }
}
