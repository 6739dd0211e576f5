//! Which nodes a pod may run on: its selector, its required affinity, and the taints that it tolerates.
//!
//! Pure, and as kube-scheduler has it. What a node has room for is the scheduler's own matter.

use k8s_openapi::api::core::v1::{
    Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Taint, Toleration,
};

/// Whether a node is one that a pod's `nodeSelector` and required node affinity ask for.
pub(crate) fn fits_selector(spec: &PodSpec, node: &Node) -> bool {
    let selected =
        spec.node_selector.iter().flatten().all(|(key, value)| label(node, key) == Some(value.as_str()));
    let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required =
        affinity.and_then(|node| node.required_during_scheduling_ignored_during_execution.as_ref());
    selected && required.is_none_or(|selector| selects(selector, node))
}

/// The first taint of a node that keeps pods with these tolerations from being placed there. `PreferNoSchedule` keeps none.
pub(crate) fn untolerated_taint<'a>(tolerations: &[Toleration], node: &'a Node) -> Option<&'a Taint> {
    let keep_away = |taint: &&Taint| matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute");
    taints(node).iter().filter(keep_away).find(|taint| !tolerates(tolerations, taint))
}

/// The first taint of a node from which pods with these tolerations are driven away, even if they run there.
pub(crate) fn evicting_taint<'a>(tolerations: &[Toleration], node: &'a Node) -> Option<&'a Taint> {
    taints(node)
        .iter()
        .filter(|taint| taint.effect == "NoExecute")
        .find(|taint| !tolerates(tolerations, taint))
}

/// Whether one of the tolerations is for this taint.
pub(crate) fn tolerates(tolerations: &[Toleration], taint: &Taint) -> bool {
    let given = |text: &Option<String>| text.as_deref().unwrap_or_default().to_owned();
    tolerations.iter().any(|toleration| {
        let (key, effect) = (given(&toleration.key), given(&toleration.effect));
        let value_fits = match toleration.operator.as_deref() {
            None | Some("" | "Equal") => given(&toleration.value) == given(&taint.value),
            Some("Exists") => true,
            // Comparisons of numbers are behind a feature gate that is off.
            _ => false,
        };
        (key.is_empty() || key == taint.key) && (effect.is_empty() || effect == taint.effect) && value_fits
    })
}

fn taints(node: &Node) -> &[Taint] {
    node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default()
}

fn label<'a>(node: &'a Node, key: &str) -> Option<&'a str> {
    node.metadata.labels.as_ref()?.get(key).map(String::as_str)
}

/// Whether a node is one of those that are selected. One of the terms is enough; a term that asks for nothing is none.
pub(crate) fn selects(selector: &NodeSelector, node: &Node) -> bool {
    selector.node_selector_terms.iter().any(|term| term_fits(term, node))
}

fn term_fits(term: &NodeSelectorTerm, node: &Node) -> bool {
    let labels = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    (!labels.is_empty() || !fields.is_empty())
        && labels.iter().all(|wanted| label_fits(wanted, label(node, &wanted.key)))
        && fields.iter().all(|wanted| field_fits(wanted, node))
}

fn label_fits(wanted: &NodeSelectorRequirement, label: Option<&str>) -> bool {
    let values = wanted.values.as_deref().unwrap_or_default();
    let is_listed = label.is_some_and(|label| values.iter().any(|value| value == label));
    let numbers = || {
        let [value] = values else { return None };
        Some((label?.parse::<i64>().ok()?, value.parse::<i64>().ok()?))
    };
    match wanted.operator.as_str() {
        "In" => is_listed,
        "NotIn" => !is_listed,
        "Exists" => label.is_some(),
        "DoesNotExist" => label.is_none(),
        "Gt" => numbers().is_some_and(|(label, value)| label > value),
        "Lt" => numbers().is_some_and(|(label, value)| label < value),
        _ => false,
    }
}

/// `metadata.name` is the only field that there is.
fn field_fits(wanted: &NodeSelectorRequirement, node: &Node) -> bool {
    let Some([value]) = wanted.values.as_deref() else { return false };
    let is_name = node.metadata.name.as_ref() == Some(value);
    match (wanted.key.as_str(), wanted.operator.as_str()) {
        ("metadata.name", "In") => is_name,
        ("metadata.name", "NotIn") => !is_name,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    fn node(labels: &Value, taints: &Value) -> Node {
        from_value(json!({"metadata": {"name": "one", "labels": labels}, "spec": {"taints": taints}}))
            .unwrap()
    }

    fn fits(spec: &Value) -> bool {
        let spec: PodSpec = from_value(spec.clone()).unwrap();
        fits_selector(&spec, &node(&json!({"disk": "ssd", "cores": "8"}), &json!([])))
    }

    fn affinity(terms: &Value) -> Value {
        let required =
            json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}});
        json!({"affinity": {"nodeAffinity": required}, "containers": []})
    }

    #[test]
    fn every_label_of_a_node_selector_is_needed() {
        assert!(fits(&json!({"containers": []})));
        assert!(fits(&json!({"nodeSelector": {"disk": "ssd", "cores": "8"}, "containers": []})));
        assert!(!fits(&json!({"nodeSelector": {"disk": "ssd", "zone": "a"}, "containers": []})));
        assert!(!fits(&json!({"nodeSelector": {"disk": "hdd"}, "containers": []})));
    }

    #[test]
    fn a_requirement_is_judged_by_its_operator() {
        let cases = [
            ("disk", "In", json!(["hdd", "ssd"]), true),
            ("disk", "In", json!(["hdd"]), false),
            ("zone", "In", json!(["a"]), false),
            ("disk", "NotIn", json!(["ssd"]), false),
            ("zone", "NotIn", json!(["a"]), true),
            ("disk", "Exists", json!(null), true),
            ("zone", "Exists", json!(null), false),
            ("disk", "DoesNotExist", json!(null), false),
            ("zone", "DoesNotExist", json!(null), true),
            ("cores", "Gt", json!(["7"]), true),
            ("cores", "Gt", json!(["8"]), false),
            ("cores", "Lt", json!(["9"]), true),
            ("disk", "Lt", json!(["9"]), false),
            ("cores", "Lt", json!(["many"]), false),
            ("disk", "Like", json!(["ssd"]), false),
        ];
        for (key, operator, values, expected) in cases {
            let term = json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
            assert_eq!(fits(&affinity(&json!([term]))), expected, "{key} {operator} {values}");
        }
    }

    #[test]
    fn one_term_is_enough_but_all_of_it_is_needed() {
        let ssd = json!({"key": "disk", "operator": "In", "values": ["ssd"]});
        let zone = json!({"key": "zone", "operator": "Exists"});
        let is = |name: &str| json!({"key": "metadata.name", "operator": "In", "values": [name]});
        assert!(fits(&affinity(&json!([{"matchExpressions": [zone]}, {"matchExpressions": [ssd]}]))));
        assert!(!fits(&affinity(&json!([{"matchExpressions": [ssd, zone]}]))));
        assert!(fits(&affinity(&json!([{"matchExpressions": [ssd], "matchFields": [is("one")]}]))));
        assert!(!fits(&affinity(&json!([{"matchExpressions": [ssd], "matchFields": [is("two")]}]))));
        assert!(!fits(&affinity(&json!([{}]))));
        assert!(!fits(&affinity(&json!([]))));
    }

    #[test]
    fn a_field_is_the_name_or_nothing() {
        let field = |key: &str, operator: &str, values: Value| {
            fits(&affinity(&json!([{"matchFields": [{"key": key, "operator": operator, "values": values}]}])))
        };
        assert!(field("metadata.name", "NotIn", json!(["two"])));
        assert!(!field("metadata.name", "NotIn", json!(["one"])));
        assert!(!field("metadata.name", "In", json!(["one", "two"])));
        assert!(!field("metadata.uid", "NotIn", json!(["one"])));
    }

    #[test]
    fn a_toleration_is_for_its_key_value_and_effect() {
        let taints = json!([{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]);
        let node = node(&json!({}), &taints);
        let cases = [
            (json!([]), false),
            (json!([{"key": "gpu", "value": "yes"}]), true),
            (json!([{"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}]), true),
            (json!([{"key": "gpu", "value": "no"}]), false),
            (json!([{"key": "gpu", "operator": "Exists"}]), true),
            (json!([{"key": "gpu", "operator": "Exists", "effect": "NoExecute"}]), false),
            (json!([{"operator": "Exists"}]), true),
            (json!([{"operator": "Exists", "effect": "NoSchedule"}]), true),
            (json!([{"key": "cpu", "operator": "Exists"}]), false),
            (json!([{"key": "gpu", "operator": "Gt", "value": "0"}]), false),
        ];
        for (tolerations, expected) in cases {
            let tolerations: Vec<Toleration> = from_value(tolerations).unwrap();
            assert_eq!(untolerated_taint(&tolerations, &node).is_none(), expected, "{tolerations:?}");
        }
    }

    #[test]
    fn only_some_taints_keep_pods_away_and_fewer_drive_them_out() {
        let taint = |effect: &str| json!({"key": effect, "effect": effect});
        let all =
            node(&json!({}), &json!([taint("PreferNoSchedule"), taint("NoSchedule"), taint("NoExecute")]));
        assert_eq!(untolerated_taint(&[], &all).unwrap().key, "NoSchedule");
        assert_eq!(evicting_taint(&[], &all).unwrap().key, "NoExecute");
        let mild = node(&json!({}), &json!([taint("PreferNoSchedule")]));
        assert_eq!((untolerated_taint(&[], &mild), evicting_taint(&[], &mild)), (None, None));
    }
}
