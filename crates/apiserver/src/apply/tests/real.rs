use super::kind::{Kind, WIDGET, WIDGET_V2};
fn kind(body: &Value) -> Kind {
    let k: &'static str = if body["kind"] == "Widget" {"Widget"} else {"Gadget"};
    if body["apiVersion"] == "apply.test/v2" { Kind { api_version: "apply.test/v2", kind: k, schema: &WIDGET_V2 } } else { Kind { api_version: "apply.test/v1", kind: k, schema: &WIDGET } }
}
use crate::status::ApiError;
use serde_json::{Value, json};

fn fill(v: &mut Value) {
    for k in ["any", "text", "count", "port", "labels", "selector", "tags", "numbers", "args", "items", "free", "nested"] {
        if v.pointer(&format!("/spec/{k}")).is_some_and(Value::is_null) { v["spec"].as_object_mut().unwrap().remove(k); } }
    if let Some(items) = v.pointer_mut("/spec/items").and_then(Value::as_array_mut) {
        for i in items { if let Some(o) = i.as_object_mut() { o.retain(|_, v| !v.is_null()); } } }
    if let Some(items) = v.pointer_mut("/spec/items").and_then(Value::as_array_mut) {
        for i in items { if let Some(ports) = i.get_mut("ports").and_then(Value::as_array_mut) {
            for p in ports { if let Some(o) = p.as_object_mut() { if o.get("protocol").is_none_or(Value::is_null) {o.insert("protocol".into(), json!("TCP"));} } } } }
    }
}
fn tidy(v: &mut Value) {
    if let Some(m) = v["metadata"].as_object_mut() { m.retain(|_, v| !(v.as_array().is_some_and(Vec::is_empty) || v.as_object().is_some_and(serde_json::Map::is_empty)) ); }
}
fn lines(s: &str) -> Vec<String> { let mut v: Vec<String> = s.lines().map(str::to_owned).collect(); v.sort(); v }
fn norm(v: &Value) -> (Value, Value, Value, Value) {
    let mut m: Value = v["metadata"]["managedFields"].clone();
    if let Some(a) = m.as_array_mut() { for e in a { if e.get("time").is_some() { e["time"] = json!("T"); } } }
    if let Some(a) = m.as_array_mut() { a.sort_by_key(ToString::to_string) }
    (m, v["spec"].clone(), v["status"].clone(), json!([v["metadata"]["labels"], v["metadata"]["annotations"], v["metadata"]["finalizers"]]))
}

#[test]
fn diff() {
    let mut bad = 0;
    for (n, line) in std::fs::read_to_string(std::env::var("FUZZ").unwrap()).unwrap().lines().enumerate() {
        let t: Value = serde_json::from_str(line).unwrap();
        let live = if t["live"].is_null() { None } else { Some(&t["live"]) };
        let sub = t["sub"].as_str().unwrap();
        let mgr = if sub.is_empty() { t["mgr"].as_str().unwrap().to_owned() } else { format!("{}/{sub}", t["mgr"].as_str().unwrap()) };
        let code = t["code"].as_i64().unwrap();
        if code == 422 { continue; }
        let mut body = t["body"].clone();
        let res = &t["res"];
        if t["op"] == "update" || t["op"] == "status" {
            fill(&mut body);
            let mf = body["metadata"].get("managedFields").cloned();
            tidy(&mut body);
            if let Some(mf) = mf { body["metadata"]["managedFields"] = mf; }
            let got = kind(&body).update(live, &body, &mgr, 1);
            if norm(&got).0 != norm(res).0 { bad += 1; if bad < 4 { println!("LINE {n} {}\nlive {}\nbody {}\n got {}\nwant {}", t["op"], t["live"], body, norm(&got).0, norm(res).0); } }
        } else {
            match kind(&body).apply(live, &body, &mgr, t["force"].as_bool().unwrap(), 1) {
                Ok(mut got) => {
                    fill(&mut got); tidy(&mut got);
                    let (g, w) = (norm(&got), norm(res));
                    let same = if code >= 300 { false } else if sub.is_empty() { g.0 == w.0 && g.1 == w.1 && (g.3 == w.3) } else { g.0 == w.0 && g.2 == w.2 };
                    if !same { bad += 1; if bad < 4 { println!("LINE {n} {} {code} {}\nlive {}\nbody {}\n got {g:?}\nwant {w:?}", t["op"], res["message"], t["live"], body); } }
                }
                Err(e) => {
                    let e: ApiError = e.into();
                    if i64::from(e.code) != code || lines(&e.message) != lines(res["message"].as_str().unwrap_or("")) { bad += 1; if bad < 4 { println!("LINE {n} {code}\nlive {}\nbody {}\n got {}\nwant {}", t["live"], body, e.message, res["message"]); } }
                }
            }
        }
    }
    assert_eq!(bad, 0);
}
