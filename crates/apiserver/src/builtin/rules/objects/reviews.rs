//! Reviews: objects that are questions, answered and not stored.
//!
//! Whoever has come in may do everything here, so every question about access is answered with yes. What
//! is asked is checked all the same.

use super::is_unset;
use crate::builtin::rules::json::{list, put, set, text};
use crate::builtin::rules::names::{in_order, validate_selector_requirement};
use crate::field::{FieldError, Path, Problem};
use crate::server::User;
use crate::status::{ApiError, Subject};
use serde_json::{Value, json};

/// The kinds of questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Review {
    /// May I?
    SelfSubjectAccess,
    /// May they?
    SubjectAccess,
    /// May they, in this namespace?
    LocalSubjectAccess,
    /// What may I?
    SelfSubjectRules,
    /// Who am I?
    SelfSubject,
    /// Whose token is this?
    Token,
}

impl Review {
    /// The kind of question that a kind of object is.
    pub(crate) fn of(group: &str, kind: &str) -> Option<Review> {
        Some(match (group, kind) {
            ("authorization.k8s.io", "SelfSubjectAccessReview") => Review::SelfSubjectAccess,
            ("authorization.k8s.io", "SubjectAccessReview") => Review::SubjectAccess,
            ("authorization.k8s.io", "LocalSubjectAccessReview") => Review::LocalSubjectAccess,
            ("authorization.k8s.io", "SelfSubjectRulesReview") => Review::SelfSubjectRules,
            ("authentication.k8s.io", "SelfSubjectReview") => Review::SelfSubject,
            ("authentication.k8s.io", "TokenReview") => Review::Token,
            _ => return None,
        })
    }
}

/// What an answer may depend on.
pub(crate) struct Asked<'a> {
    /// Who asks.
    pub user: &'a User,
    /// Whose a token is.
    pub token: &'a dyn Fn(&str) -> Option<User>,
    /// The time, as objects carry it.
    pub now: &'a str,
}

/// Answers a review: fills in its `status`.
pub(crate) fn answer(kind: Review, review: &mut Value, asked: &Asked<'_>) -> Result<(), ApiError> {
    let status = match kind {
        Review::SelfSubjectAccess | Review::SubjectAccess | Review::LocalSubjectAccess => {
            check_access_review(kind, review)?;
            json!({"allowed": true})
        }
        Review::SelfSubjectRules => {
            if text(&review["spec"], "namespace").is_empty() {
                return Err(ApiError::bad_request("no namespace on request"));
            }
            // The real server answers with a new object, in which the question is gone.
            put(review, "metadata", json!({}));
            put(review, "spec", json!({}));
            json!({
                "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                "incomplete": false,
            })
        }
        Review::SelfSubject => {
            put(review, "metadata", json!({"creationTimestamp": asked.now}));
            json!({"userInfo": asked.user.info()})
        }
        Review::Token => {
            let token = text(&review["spec"], "token");
            if token.is_empty() {
                let message = "token is required for TokenReview in authentication";
                return Err(ApiError::bad_request(message));
            }
            match (asked.token)(token) {
                Some(user) => json!({
                    "authenticated": true,
                    "user": user.info(),
                    "audiences": ["https://kubernetes.default.svc"],
                }),
                None => json!({"user": {}, "error": "invalid bearer token"}),
            }
        }
    };
    put(review, "status", status);
    Ok(())
}

fn check_access_review(kind: Review, review: &Value) -> Result<(), ApiError> {
    let mut errors = Vec::new();
    validate_access_review(kind, review, &mut errors);
    if errors.is_empty() {
        return Ok(());
    }
    // The real server names neither kind nor object here.
    let mut error = ApiError::invalid(&Subject { group: "authorization.k8s.io", kind: "" }, "", &errors);
    if let Some(details) = &mut error.details {
        details.remove("kind");
    }
    Err(error)
}

fn validate_access_review(kind: Review, review: &Value, errors: &mut Vec<FieldError>) {
    let spec = &review["spec"];
    let path = Path::of("spec");
    let (resource, other) = (set(spec, "resourceAttributes"), set(spec, "nonResourceAttributes"));
    let print = |attributes: &Value| {
        let [at, verb] = ["path", "verb"].map(|field| Value::from(text(attributes, field)));
        format!("{{\"Path\":{at},\"Verb\":{verb}}}")
    };
    let refuse = |field: String, value: String, detail: &str| FieldError {
        problem: Problem::Invalid,
        field,
        value: Some(value),
        detail: detail.to_owned(),
    };
    let other_path = path.field("nonResourceAttributes").to_string();
    match (resource, other) {
        (Some(_), Some(other)) => {
            let detail = "cannot be specified in combination with resourceAttributes";
            errors.push(refuse(other_path.clone(), print(other), detail));
        }
        (None, None) => {
            let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            errors.push(FieldError::invalid(&path.field("resourceAttributes"), &Value::Null, detail));
        }
        _ => {}
    }
    if kind != Review::SelfSubjectAccess && text(spec, "user").is_empty() && is_unset(spec, "groups") {
        let detail = "at least one of user or group must be specified";
        errors.push(FieldError::invalid(&path.field("user"), &"".into(), detail));
    }
    if let Some(resource) = resource {
        validate_selectors(resource, &path.field("resourceAttributes"), errors);
    }
    validate_bare_metadata(kind, &review["metadata"], errors);
    if kind == Review::LocalSubjectAccess {
        let namespace = resource.map(|resource| text(resource, "namespace"));
        if let Some(namespace) = namespace.filter(|ns| *ns != text(&review["metadata"], "namespace")) {
            let path = path.field("resourceAttributes");
            let detail = "must match metadata.namespace";
            errors.push(FieldError::invalid(&path.field("namespace"), &namespace.into(), detail));
        }
        if let Some(other) = other {
            errors.push(refuse(other_path, print(other), "disallowed on this kind of request"));
        }
    }
}

fn validate_bare_metadata(kind: Review, meta: &Value, errors: &mut Vec<FieldError>) {
    const ORDER: &[&str] = &[
        "name",
        "generateName",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "labels",
        "annotations",
        "ownerReferences",
        "finalizers",
        "managedFields",
    ];
    let local = kind == Review::LocalSubjectAccess;
    let allowed = |field: &str| field == "managedFields" || (local && field == "namespace");
    if ORDER.iter().all(|field| allowed(field) || is_unset(meta, field)) {
        return;
    }
    let detail = if local { "must be empty except for namespace" } else { "must be empty" };
    errors.push(FieldError {
        problem: Problem::Invalid,
        field: "metadata".to_owned(),
        value: Some(in_order(meta, ORDER)),
        detail: detail.to_owned(),
    });
}

fn validate_selectors(attributes: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for field in ["fieldSelector", "labelSelector"] {
        let Some(selector) = set(attributes, field) else { continue };
        let path = path.field(field);
        let raw = text(selector, "rawSelector");
        let requirements = list(selector, "requirements");
        match (raw.is_empty(), requirements.is_empty()) {
            (false, false) => {
                let detail = "may not specified at the same time as requirements";
                errors.push(FieldError::invalid(&path.field("rawSelector"), &raw.into(), detail));
            }
            (true, true) => {
                let detail = format!("when {path} is specified, requirements or rawSelector is required");
                errors.push(FieldError::required(&path.field("requirements"), detail));
            }
            _ => {}
        }
        let list_path = path.field("requirements");
        for (index, requirement) in requirements.iter().enumerate() {
            let known = matches!(text(requirement, "operator"), "In" | "NotIn" | "Exists" | "DoesNotExist");
            // Operators of the future are fine here.
            if known && field == "labelSelector" {
                validate_selector_requirement(requirement, &list_path.index(index), errors);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::needless_pass_by_value, reason = "fixtures and expectations are literals")]

    use super::*;
    use expect_test::{Expect, expect};

    fn check(kind: &str, mut review: Value, expect: Expect) {
        let user = User { name: "admin".into(), groups: vec!["system:masters".into()] };
        let token = |token: &str| (token == "right").then(|| user.clone());
        let asked = Asked { user: &user, token: &token, now: "now" };
        let group = if matches!(kind, "TokenReview" | "SelfSubjectReview") {
            "authentication"
        } else {
            "authorization"
        };
        let kind = Review::of(&format!("{group}.k8s.io"), kind).unwrap();
        let result = match answer(kind, &mut review, &asked) {
            Ok(()) => review.to_string(),
            Err(error) => format!("{} {} {}", error.code, error.message, error.to_status()["details"]),
        };
        expect.assert_eq(&result);
    }

    #[test]
    fn everyone_who_came_in_may_do_everything() {
        check(
            "SelfSubjectAccessReview",
            json!({"spec": {"resourceAttributes": {"verb": "get"}}}),
            expect![[r#"{"spec":{"resourceAttributes":{"verb":"get"}},"status":{"allowed":true}}"#]],
        );
        check(
            "SelfSubjectRulesReview",
            json!({"spec": {"namespace": "a"}}),
            expect![[
                r#"{"metadata":{},"spec":{},"status":{"incomplete":false,"nonResourceRules":[{"nonResourceURLs":["*"],"verbs":["*"]}],"resourceRules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}}"#
            ]],
        );
    }

    #[test]
    fn questions_are_checked() {
        check(
            "SelfSubjectAccessReview",
            json!({"metadata": {"name": "x", "labels": {"a": "b"}}, "spec": {}}),
            expect![[
                r#"422 .authorization.k8s.io "" is invalid: [spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified, metadata: Invalid value: {"name":"x","labels":{"a":"b"}}: must be empty] {"causes":[{"field":"spec.resourceAttributes","message":"Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified","reason":"FieldValueInvalid"},{"field":"metadata","message":"Invalid value: {\"name\":\"x\",\"labels\":{\"a\":\"b\"}}: must be empty","reason":"FieldValueInvalid"}],"group":"authorization.k8s.io"}"#
            ]],
        );
        check(
            "LocalSubjectAccessReview",
            json!({"metadata": {"namespace": "a"}, "spec": {"resourceAttributes": {"namespace": "b"}}}),
            expect![[
                r#"422 .authorization.k8s.io "" is invalid: [spec.user: Invalid value: "": at least one of user or group must be specified, spec.resourceAttributes.namespace: Invalid value: "b": must match metadata.namespace] {"causes":[{"field":"spec.user","message":"Invalid value: \"\": at least one of user or group must be specified","reason":"FieldValueInvalid"},{"field":"spec.resourceAttributes.namespace","message":"Invalid value: \"b\": must match metadata.namespace","reason":"FieldValueInvalid"}],"group":"authorization.k8s.io"}"#
            ]],
        );
        check("SelfSubjectRulesReview", json!({"spec": {}}), expect!["400 no namespace on request null"]);
    }

    #[test]
    fn tokens_and_their_bearers_are_told() {
        check(
            "TokenReview",
            json!({"spec": {"token": "wrong"}}),
            expect![[r#"{"spec":{"token":"wrong"},"status":{"error":"invalid bearer token","user":{}}}"#]],
        );
        check(
            "TokenReview",
            json!({"spec": {"token": "right"}}),
            expect![[
                r#"{"spec":{"token":"right"},"status":{"audiences":["https://kubernetes.default.svc"],"authenticated":true,"user":{"groups":["system:masters"],"username":"admin"}}}"#
            ]],
        );
        check(
            "SelfSubjectReview",
            json!({}),
            expect![[
                r#"{"metadata":{"creationTimestamp":"now"},"status":{"userInfo":{"groups":["system:masters"],"username":"admin"}}}"#
            ]],
        );
    }
}
