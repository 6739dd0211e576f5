//! A kubeconfig that is written again keeps what is its user's: the namespace of a context, further contexts, users and clusters, and which
//! context is the current one. Pure.

use serde_json::{Value, json};

/// The lists of a kubeconfig, and the field in which an entry has its content.
const LISTS: [(&str, &str); 3] = [("clusters", "cluster"), ("users", "user"), ("contexts", "context")];

/// The new text, with what the old one has beyond it.
pub(super) fn merged(old: &str, new: &str) -> String {
    let (Some(before), Some(own)) = (parse(old), parse(new)) else { return new.to_owned() };
    let merged = merge(before, &own);
    // Nobody has added anything; then it looks as it always does.
    if merged == own {
        return new.to_owned();
    }
    serde_saphyr::to_string(&merged).unwrap_or_else(|_| new.to_owned())
}

fn parse(text: &str) -> Option<Value> {
    serde_saphyr::from_str(text).ok().filter(Value::is_object)
}

fn merge(mut config: Value, own: &Value) -> Value {
    for (list, content) in LISTS {
        for entry in own[list].as_array().into_iter().flatten() {
            if !config[list].is_array() {
                config[list] = json!([]);
            }
            let Some(known) = config[list].as_array_mut() else { continue };
            match known.iter_mut().find(|known| known["name"] == entry["name"]) {
                // Of a context, the namespace and whatever else is not about where it leads to is the user's.
                Some(known) if list == "contexts" && known[content].is_object() => {
                    for (field, value) in entry[content].as_object().into_iter().flatten() {
                        known[content][field] = value.clone();
                    }
                }
                Some(known) => *known = entry.clone(),
                None => known.push(entry.clone()),
            }
        }
    }
    let is_there = |name: &Value| {
        config["contexts"].as_array().into_iter().flatten().any(|context| context["name"] == *name)
    };
    if !is_there(&config["current-context"]) {
        config["current-context"] = own["current-context"].clone();
    }
    for field in ["apiVersion", "kind"] {
        config[field] = own[field].clone();
    }
    config
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    const OWN: &str = "apiVersion: v1\nkind: Config\ncurrent-context: mainstay\n\
        clusters:\n- {name: mainstay, cluster: {server: new}}\n\
        users:\n- {name: admin, user: {token: new}}\n\
        contexts:\n- {name: mainstay, context: {cluster: mainstay, user: admin}}\n";

    #[allow(clippy::needless_pass_by_value, reason = "it is written in place")]
    fn check(old: &str, expected: Expect) {
        let merged = merged(old, OWN);
        let told =
            if merged == OWN { "as it always is".to_owned() } else { parse(&merged).unwrap().to_string() };
        expected.assert_eq(&told);
    }

    #[test]
    fn what_users_add_stays() {
        check("", expect!["as it always is"]);
        check("shopping list", expect!["as it always is"]);
        check(&OWN.replace("new", "old"), expect!["as it always is"]);
        check(
            &OWN.replace("user: admin}", "user: admin, namespace: shop}").replace("new", "old"),
            expect![[
                r#"{"apiVersion":"v1","clusters":[{"cluster":{"server":"new"},"name":"mainstay"}],"contexts":[{"context":{"cluster":"mainstay","namespace":"shop","user":"admin"},"name":"mainstay"}],"current-context":"mainstay","kind":"Config","users":[{"name":"admin","user":{"token":"new"}}]}"#
            ]],
        );
        check(
            "{current-context: work, clusters: null, users: [{name: me, user: {}}], contexts: [{name: work, context: {cluster: far, user: me}}]}",
            expect![[
                r#"{"apiVersion":"v1","clusters":[{"cluster":{"server":"new"},"name":"mainstay"}],"contexts":[{"context":{"cluster":"far","user":"me"},"name":"work"},{"context":{"cluster":"mainstay","user":"admin"},"name":"mainstay"}],"current-context":"work","kind":"Config","users":[{"name":"me","user":{}},{"name":"admin","user":{"token":"new"}}]}"#
            ]],
        );
        check(
            "{current-context: gone, contexts: [7, {name: mainstay, context: 3}]}",
            expect![[
                r#"{"apiVersion":"v1","clusters":[{"cluster":{"server":"new"},"name":"mainstay"}],"contexts":[7,{"context":{"cluster":"mainstay","user":"admin"},"name":"mainstay"}],"current-context":"mainstay","kind":"Config","users":[{"name":"admin","user":{"token":"new"}}]}"#
            ]],
        );
    }
}
