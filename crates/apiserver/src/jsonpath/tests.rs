use super::*;
use proptest::prelude::*;
use serde_json::json;

fn pod() -> Value {
    json!({
        "metadata": {"name": "web", "labels": {"a.b/c": "x"}, "annotations": {"q": "1"}},
        "spec": {"ports": [{"port": 80, "name": "http"}, {"port": 443, "name": "https"}]},
        "status": {"conditions": [
            {"type": "Ready", "status": "True"},
            {"type": "Synced", "status": "False", "weight": 2},
        ]},
    })
}

/// Every value the path leads to.
fn find<'a>(path: &'a JsonPath, object: &'a Value) -> Result<Vec<&'a Value>, Unresolved> {
    walk(vec![object], &path.nodes, &mut VALUES_MAX.clone())
}

fn found(path: &str) -> String {
    match JsonPath::parse(path) {
        Err(error) => format!("error: {error}"),
        Ok(path) => match find(&path, &pod()) {
            Err(Unresolved) => "unresolved".to_owned(),
            Ok(values) => values.into_iter().map(print).collect::<Vec<_>>().join(" "),
        },
    }
}

#[test]
fn paths_lead_where_kubectl_goes() {
    for (path, expected) in [
        (".metadata.name", "web"),
        ("$.metadata.name", "web"),
        (".metadata.missing.further", ""),
        (r".metadata.labels.a\.b/c", "x"),
        (r".metadata.labels['a\.b/c']", "x"),
        (".metadata['name']", "web"),
        (".spec.ports[0].port", "80"),
        (".spec.ports[-1].port", "443"),
        (".spec.ports[*].name", "http https"),
        (".spec.ports[0,1].name", "http https"),
        (".spec.ports[0:1].name", "http"),
        (".spec.ports[::2].name", "http"),
        (".spec.ports[5].name", "unresolved"),
        (".spec.ports.*.name", "http https"),
        (".metadata[0]", "unresolved"),
        (r#".status.conditions[?(@.type=="Ready")].status"#, "True"),
        (".status.conditions[?(@.type=='Synced')].status", "False"),
        (".status.conditions[?(@.type!='Synced')].status", "True"),
        (".status.conditions[?(@.weight)].type", "Synced"),
        (".status.conditions[?(@.weight>=2)].type", "Synced"),
        (".status.conditions[?(@.weight==1.5)].type", "unresolved"),
        ("..port", "80 443"),
        (".spec.ports[0]", r#"{"name":"http","port":80}"#),
        (".spec.ports[x]", "error: invalid array index x"),
        (".spec.ports[0", "error: unterminated array"),
        (".spec.ports[?(@.a", "error: unterminated filter"),
        (".a#b", ""),
        ("#", "error: unrecognized character in action: U+0023 '#'"),
    ] {
        assert_eq!(found(path), expected, "{path}");
    }
}

#[test]
fn floats_print_like_go() {
    for (value, expected) in
        [(json!(1.0), "1"), (json!(1.5), "1.5"), (json!(1e21), "1e+21"), (json!(0.00001), "1e-05")]
    {
        assert_eq!(print(&value), expected);
    }
}

proptest! {
    #[test]
    fn any_text_is_a_path_or_an_error(text in r#"[-.\[\]?()@"'\\*:,=<>! a-c0-9{}é]{0,40}"#) {
        if let Ok(path) = JsonPath::parse(&text) {
            let object = json!({"a": [{"b": 1}, {"b": "c"}], "b": {"a": null, "c": [1, 2.5, true]}});
            let first = path.first(&object).cloned();
            let all = find(&path, &object).ok().and_then(|all| all.first().map(|v| (*v).clone()));
            prop_assert_eq!(first, all);
        }
    }
}

#[test]
fn a_path_that_leads_everywhere_leads_nowhere() {
    let deep = (0..100).fold(json!({"a": 1}), |inner, _| json!({"a": [inner, {"b": 1}]}));
    for path in
        ["..[*]".repeat(30), "...*".repeat(30), "..a".repeat(30), format!(".a{}", "[*,*,*,*]".repeat(30))]
    {
        let path = JsonPath::parse(&path).unwrap();
        assert_eq!(path.first(&deep), None);
    }
    let path = JsonPath::parse("..b").unwrap();
    assert_eq!(path.first(&deep), Some(&json!(1)));
}
