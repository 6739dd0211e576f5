//! Which of its names a definition gets, and when it is served.
//!
//! Definitions of one group share one space of resource names and one of kinds; whoever came first keeps
//! a name. [`settle`] gives the status that the real naming and establishing controllers come to.

use super::approval;
use crate::builtin::rules::json::{list, put, same_field, set, take, text};
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};

/// The names that the CRDs of a group have been given, and by which CRDs.
#[derive(Debug, Default)]
pub(crate) struct TakenNames {
    resources: HashMap<String, BTreeSet<String>>,
    kinds: HashMap<String, BTreeSet<String>>,
}

impl TakenNames {
    /// Adds what a CRD of this group has been given: the `acceptedNames` of its status.
    pub(crate) fn add(&mut self, crd: &str, accepted: &Value) {
        for (is_kind, name) in given_names(accepted) {
            self.names(is_kind).entry(name).or_default().insert(crd.to_owned());
        }
    }

    /// Takes that away again.
    pub(crate) fn remove(&mut self, crd: &str, accepted: &Value) {
        for (is_kind, name) in given_names(accepted) {
            let names = self.names(is_kind);
            if let Some(holders) = names.get_mut(&name) {
                holders.remove(crd);
                if holders.is_empty() {
                    names.remove(&name);
                }
            }
        }
    }

    fn names(&mut self, kinds: bool) -> &mut HashMap<String, BTreeSet<String>> {
        if kinds { &mut self.kinds } else { &mut self.resources }
    }

    /// Why a CRD cannot have a name beyond the one it has.
    fn conflict(&self, crd: &str, kinds: bool, wanted: &str, accepted: &str) -> Option<String> {
        let taken = if kinds { &self.kinds } else { &self.resources };
        let by_another =
            || taken.get(wanted).is_some_and(|holders| holders.iter().any(|holder| holder != crd));
        (wanted != accepted && by_another()).then(|| format!("{wanted:?} is already in use"))
    }
}

/// All names in a status, each with whether it is one of a kind.
fn given_names(accepted: &Value) -> Vec<(bool, String)> {
    let single = [("plural", false), ("singular", false), ("kind", true), ("listKind", true)];
    let single = single.into_iter().map(|(field, is_kind)| (is_kind, text(accepted, field)));
    let short = list(accepted, "shortNames").iter().filter_map(Value::as_str).map(|name| (false, name));
    let all = single.chain(short).filter(|(_, name)| !name.is_empty());
    all.map(|(is_kind, name)| (is_kind, name.to_owned())).collect()
}

/// The status a definition comes to, or none if it is there already.
///
/// `now` is a timestamp as objects carry it.
pub(crate) fn settle(crd: &Value, taken: &TakenNames, now: &str) -> Option<Value> {
    let own = text(&crd["metadata"], "name");
    let (wanted, accepted) = (&crd["spec"]["names"], &crd["status"]["acceptedNames"]);
    let mut given = accepted.clone();
    if !given.is_object() {
        given = json!({"plural": "", "kind": ""});
    }
    let mut refusal = None;
    for (field, kinds, reason) in [
        ("plural", false, "PluralConflict"),
        ("singular", false, "SingularConflict"),
        ("shortNames", false, "ShortNamesConflict"),
        ("kind", true, "KindConflict"),
        ("listKind", true, "ListKindConflict"),
    ] {
        let conflict = if field == "shortNames" {
            short_name_conflict(own, wanted, accepted, taken)
        } else {
            taken.conflict(own, kinds, text(wanted, field), text(accepted, field))
        };
        // The last conflict is the one that is told.
        match conflict {
            Some(message) => refusal = Some((reason, message)),
            None => copy(&mut given, wanted, field),
        }
    }
    copy(&mut given, wanted, "categories");
    let (ok, reason, message) = match &refusal {
        None => ("True", "NoConflicts", "no conflicts found"),
        Some((reason, message)) => ("False", *reason, message.as_str()),
    };
    let mut status = crd["status"].clone();
    if let Some((value, reason, message)) = approval::condition(crd) {
        set_condition(&mut status, "KubernetesAPIApprovalPolicyConformant", value, reason, &message, now);
    }
    set_condition(&mut status, "NamesAccepted", ok, reason, message, now);
    let established = list(&crd["status"], "conditions")
        .iter()
        .any(|condition| text(condition, "type") == "Established" && text(condition, "status") == "True");
    if refusal.is_none() && !established {
        let message = "the initial names have been accepted";
        set_condition(&mut status, "Established", "True", "InitialNamesAccepted", message, now);
    } else if !established {
        set_condition(&mut status, "Established", "False", "NotAccepted", "not all names are accepted", now);
    }
    put(&mut status, "acceptedNames", given);
    (status != crd["status"]).then_some(status)
}

fn copy(given: &mut Value, wanted: &Value, field: &str) {
    match set(wanted, field) {
        Some(value) => put(given, field, value.clone()),
        None => drop(take(given, field)),
    }
}

fn short_name_conflict(own: &str, wanted: &Value, accepted: &Value, taken: &TakenNames) -> Option<String> {
    if same_field(wanted, accepted, "shortNames") {
        return None;
    }
    let had = list(accepted, "shortNames");
    let conflicts: BTreeSet<String> = list(wanted, "shortNames")
        .iter()
        .filter(|name| !had.contains(name))
        .filter_map(|name| taken.conflict(own, false, name.as_str()?, ""))
        .collect();
    let conflicts: Vec<String> = conflicts.into_iter().collect();
    match conflicts.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        many => Some(format!("[{}]", many.join(", "))),
    }
}

/// Sets a condition; its time changes only when its status does.
pub(crate) fn set_condition(
    status: &mut Value,
    kind: &str,
    value: &str,
    reason: &str,
    message: &str,
    now: &str,
) {
    let mut conditions = list(status, "conditions").to_vec();
    let at = conditions.iter().position(|condition| text(condition, "type") == kind).unwrap_or_else(|| {
        conditions.push(json!({"type": kind}));
        conditions.len() - 1
    });
    let condition = &mut conditions[at];
    if text(condition, "status") != value || text(condition, "lastTransitionTime").is_empty() {
        put(condition, "lastTransitionTime", now);
    }
    put(condition, "status", value);
    put(condition, "reason", reason);
    put(condition, "message", message);
    put(status, "conditions", conditions);
}

#[cfg(test)]
mod tests {
    #![expect(clippy::needless_pass_by_value, reason = "fixtures and expectations are literals")]

    use super::*;
    use expect_test::{Expect, expect};

    fn crd(names: Value, accepted: Value) -> Value {
        json!({"spec": {"group": "example.com", "names": names}, "status": {"acceptedNames": accepted}})
    }

    fn foo() -> Value {
        json!({"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"})
    }

    fn check(names: Value, others: &[Value], expect: Expect) {
        let mut taken = TakenNames::default();
        for crd in others {
            taken.add("others", &crd["status"]["acceptedNames"]);
        }
        let status = settle(&crd(names, Value::Null), &taken, "now").unwrap();
        let conditions: Vec<String> = list(&status, "conditions")
            .iter()
            .map(|c| {
                format!(
                    "{} {} {}: {}",
                    text(c, "type"),
                    text(c, "status"),
                    text(c, "reason"),
                    text(c, "message")
                )
            })
            .collect();
        expect.assert_eq(&format!("{}\n{}", conditions.join("\n"), status["acceptedNames"]));
    }

    #[test]
    fn free_names_are_accepted_and_the_definition_is_established() {
        check(
            foo(),
            &[],
            expect![[r#"
                NamesAccepted True NoConflicts: no conflicts found
                Established True InitialNamesAccepted: the initial names have been accepted
                {"kind":"Foo","listKind":"FooList","plural":"foos","singular":"foo"}"#]],
        );
    }

    #[test]
    fn a_name_in_use_is_refused_and_the_others_are_kept() {
        let names = json!({"plural": "bars", "singular": "foo", "kind": "Foo", "listKind": "FooList", "shortNames": ["foos", "b"]});
        check(
            names,
            &[crd(foo(), foo())],
            expect![[r#"
                NamesAccepted False ListKindConflict: "FooList" is already in use
                Established False NotAccepted: not all names are accepted
                {"kind":"","plural":"bars"}"#]],
        );
    }

    #[test]
    fn short_names_may_conflict_too() {
        let names = json!({"plural": "bars", "kind": "Bar", "shortNames": ["foos", "foo"]});
        check(
            names,
            &[crd(foo(), foo())],
            expect![[r#"
                NamesAccepted False ShortNamesConflict: ["foo" is already in use, "foos" is already in use]
                Established False NotAccepted: not all names are accepted
                {"kind":"Bar","plural":"bars"}"#]],
        );
    }

    #[test]
    fn a_protected_group_says_who_approved_it() {
        let mut crd = crd(foo(), Value::Null);
        crd["spec"]["group"] = json!("x.k8s.io");
        crd["metadata"] = json!({"annotations": {"api-approved.kubernetes.io": "https://github.com/a/b"}});
        let status = settle(&crd, &TakenNames::default(), "now").unwrap();
        expect![[r#"{"lastTransitionTime":"now","message":"approved in https://github.com/a/b","reason":"ApprovedAnnotation","status":"True","type":"KubernetesAPIApprovalPolicyConformant"}"#]]
            .assert_eq(&status["conditions"][0].to_string());
    }

    #[test]
    fn a_deleted_definition_waits_for_its_objects() {
        let mut crd = crd(foo(), Value::Null);
        crate::builtin::rules::objects::crd::begin_deletion(&mut crd, "now");
        assert_eq!(crd["metadata"]["finalizers"], json!(["customresourcecleanup.apiextensions.k8s.io"]));
        assert_eq!(crd["status"]["conditions"][0]["reason"], "InstanceDeletionPending");
    }

    #[test]
    fn a_settled_definition_stays_as_it_is() {
        let mut first = crd(foo(), Value::Null);
        let mut taken = TakenNames::default();
        first["status"] = settle(&first, &taken, "then").unwrap();
        taken.add("others", &first["status"]["acceptedNames"]);
        assert_eq!(settle(&first, &taken, "now"), None);
    }

    #[test]
    fn an_established_definition_stays_established_when_a_new_name_is_taken() {
        let mut first = crd(foo(), Value::Null);
        first["status"] = settle(&first, &TakenNames::default(), "then").unwrap();
        first["spec"]["names"]["singular"] = json!("bar");
        let mut taken = TakenNames::default();
        taken.add("others", &first["status"]["acceptedNames"]);
        taken.add("others", &json!({"plural": "bar"}));
        let status = settle(&first, &taken, "now").unwrap();
        assert_eq!(status["conditions"][0]["reason"], "SingularConflict");
        assert_eq!(status["conditions"][1]["status"], "True");
        assert_eq!(status["conditions"][1]["lastTransitionTime"], "then");
    }
}
