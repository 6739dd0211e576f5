use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::cache::Options;
use crate::kind::{Kind, Scope};

fn shape() -> Shape {
    Shape::new(&Kind::new("v1", "Thing", "things", Scope::Namespaced), &Options::default())
}

fn check(line: &str, expect: &Expect) {
    let read = read_line(&shape(), &mut String::new(), line.as_bytes());
    expect.assert_eq(&match read {
        Ok(line) => format!("{line:?}"),
        Err(error) => format!("error: {error}"),
    });
}

#[test]
fn events_are_read_whatever_comes_first() {
    let object = r#"{"metadata":{"name":"a","resourceVersion":"7"}}"#;
    check(&format!(r#"{{"type":"ADDED","object":{object}}}"#), &expect!["Event(Seen(Thing.v1 a @7))"]);
    check(&format!(r#"{{"type":"MODIFIED","object":{object}}}"#), &expect!["Event(Seen(Thing.v1 a @7))"]);
    check(&format!(r#"{{"type":"DELETED","object":{object}}}"#), &expect!["Event(Gone(Thing.v1 a @7))"]);
    check(
        &format!(r#"{{"object":{object},"more":1,"type":"ADDED"}}"#),
        &expect!["Event(Seen(Thing.v1 a @7))"],
    );
    check(&format!(r#"{{"type":"NOVEL","object":{object}}}"#), &expect!["Unknown"]);
    check(r#"{"type":"ADDED","object":{"metadata":{}}}"#, &expect!["Unreadable(Nameless)"]);
}

#[test]
fn bookmarks_tell_whether_the_list_is_over() {
    check(
        r#"{"type":"BOOKMARK","object":{"kind":"Thing","metadata":{"resourceVersion":"9"}}}"#,
        &expect![[r#"Bookmark { version: "9", ends_list: false }"#]],
    );
    check(
        r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}}"#,
        &expect![[r#"Bookmark { version: "9", ends_list: true }"#]],
    );
}

#[test]
fn errors_are_no_events() {
    check(
        r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old","details":{"retryAfterSeconds":3}}}"#,
        &expect![[
            r#"Refused(Refusal { code: 410, reason: "Expired", message: "too old", retry_after: Some(3s) })"#
        ]],
    );
    check("<html>", &expect!["error: expected value at line 1 column 1"]);
    check(r#"{"type":"ADDED"}"#, &expect!["error: missing field `object` at line 1 column 16"]);
    check(
        r#"{"type":"ADDED","object":{"me"#,
        &expect!["error: EOF while parsing a string at line 1 column 29"],
    );
}

#[test]
fn refusals_are_read_from_any_body() {
    let refusal = Refusal::read(429, None, br#"{"message":"slow down","details":{"retryAfterSeconds":2}}"#);
    assert_eq!((refusal.code, refusal.retry_after), (429, Some(Duration::from_secs(2))));
    let refusal = Refusal::read(404, Some(Duration::from_secs(1)), b"404 page not found\n");
    assert_eq!(refusal.to_string(), "404 : 404 page not found");
    assert_eq!(refusal.retry_after, Some(Duration::from_secs(1)));
    assert_eq!(Refusal::read(502, None, &[b'x'; 10_000]).message.len(), 200);
}

fn page(json: &str) -> Result<(Vec<String>, Page), serde_json::Error> {
    let mut items = Vec::new();
    let page = read_page(&shape(), &mut String::new(), json.as_bytes(), &mut |item| {
        items.push(item.map_or_else(|error| error.to_string(), |object| format!("{object:?}")));
    })?;
    Ok((items, page))
}

#[test]
fn pages_are_read_item_by_item() {
    let json = r#"{"kind":"ThingList","metadata":{"resourceVersion":"9","continue":"abc","remainingItemCount":3},
        "items":[{"metadata":{"name":"a","resourceVersion":"1"}},{"metadata":{}},{"metadata":{"name":"b","resourceVersion":"2"}}]}"#;
    let (items, page_read) = page(json).unwrap();
    assert_eq!(items, ["Thing.v1 a @1", "the object has no metadata.name", "Thing.v1 b @2"]);
    assert_eq!(page_read, Page { resource_version: "9".into(), next: "abc".into() });
    assert_eq!(page(r#"{"items":null,"metadata":{"resourceVersion":"9"}}"#).unwrap().0, Vec::<String>::new());
}

#[test]
fn what_is_no_list_is_not_an_empty_one() {
    for json in [r#"{"metadata":{}}"#, r#"{"items":[]}"#, "[]", "{}", r#"{"items":[],"metadata":{}"#] {
        assert!(page(json).is_err(), "{json}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lines_are_the_same_however_they_are_cut(
        lines in prop::collection::vec("[a-z]{0,6}", 0..8),
        rest in "[a-z]{0,3}",
        cuts in prop::collection::vec(1..9_usize, 1..20),
    ) {
        let mut text: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
        text.push_str(&rest);
        let mut found = Vec::new();
        let mut cutter = Lines::default();
        let mut bytes = Bytes::from(text);
        for cut in cuts.iter().cycle() {
            if bytes.is_empty() {
                break;
            }
            cutter.feed(bytes.split_to((*cut).min(bytes.len())));
            while let Some(line) = cutter.next() {
                found.push(String::from_utf8(line.to_vec()).unwrap());
            }
        }
        prop_assert_eq!(found, lines);
    }
}
