use super::*;
use crate::builtin::conform::conform;
use proptest::prelude::*;
use std::sync::LazyLock;

fn fixtures() -> &'static [(String, Vec<u8>, Value)] {
    static READ: LazyLock<Vec<(String, Vec<u8>, Value)>> = LazyLock::new(|| {
        let lines = include_str!("../../testdata/protobuf.jsonl").lines();
        let read = |line| {
            let fixture: Value = serde_json::from_str(line).expect("a fixture is JSON");
            let body = BASE64.decode(fixture["protobuf"].as_str().expect("text")).expect("base64");
            (fixture["name"].to_string(), body, fixture["json"].clone())
        };
        lines.map(read).collect()
    });
    &READ
}

fn schema_of(object: &Value) -> SchemaRef {
    let (group_version, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
    let (group, version) = group_version.split_once('/').unwrap_or(("", group_version));
    tables::schema_of(group, version, kind).expect("a built-in kind")
}

#[test]
fn objects_encoded_by_go_are_decoded_to_their_json() {
    for (name, body, expected) in fixtures() {
        let mut object = decode_body(body, "", "").unwrap_or_else(|e| panic!("{name}: {e}")).expect("a kind");
        let schema = schema_of(&object);
        assert_eq!(conform(&mut object, &schema), Ok(vec![]), "{name}");
        let mut expected = expected.clone();
        assert_eq!(conform(&mut expected, &schema), Ok(vec![]), "{name}");
        assert_eq!(object, expected, "{name}");
    }
}

#[test]
fn the_kind_of_the_url_serves_where_the_body_names_none() {
    let body = b"k8s\0\x12\x07\x0a\x05\x0a\x03abc";
    let object = decode_body(body, "v1", "Namespace").expect("well-formed").expect("a kind");
    assert_eq!(object["kind"], "Namespace");
    assert_eq!(object["metadata"]["name"], "abc");
    assert_eq!(decode_body(body, "v1", "Nonsense"), Ok(None));
}

#[test]
fn bodies_that_are_no_messages_are_refused() {
    let refusal = |body: &[u8]| open(body).expect_err("refused").to_string();
    assert_eq!(refusal(b""), "empty data");
    assert_eq!(refusal(b"k8s\0"), "empty body");
    assert!(refusal(b"{}").starts_with("provided data does not appear to be a protobuf message"));
    assert_eq!(refusal(b"k8s\0\x12\x05\x0a"), "unexpected EOF");
    assert_eq!(refusal(b"k8s\0\x10\x05"), "proto: wrong wireType = 0 for field raw");
    assert_eq!(refusal(b"k8s\0\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "proto: integer overflow");
}

#[test]
fn every_truncation_is_refused_or_read() {
    for (_, body, _) in fixtures() {
        for length in 0..body.len() {
            let _ = decode_body(&body[..length], "", "");
        }
    }
}

#[test]
fn nesting_is_bounded() {
    // JSONSchemaProps has `not`, field 28, which is one itself.
    let mut message = Vec::new();
    for _ in 0..1000 {
        let mut outer = vec![0xe2, 0x01];
        let mut length = message.len();
        while length >= 0x80 {
            outer.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
            length >>= 7;
        }
        outer.push(u8::try_from(length).unwrap());
        outer.append(&mut message);
        message = outer;
    }
    let props = SchemaRef::Builtin(tables::definition(JSON_SCHEMA_PROPS).expect("a definition"));
    assert_eq!(decode(&message, &props), Err(Malformed::too_deep()));
}

#[test]
fn the_tree_of_a_message_is_no_deeper_than_other_bodies() {
    let wrap = |tag: &[u8], message: &[u8]| {
        let mut outer = tag.to_vec();
        let mut length = message.len();
        while length >= 0x80 {
            outer.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
            length >>= 7;
        }
        outer.push(u8::try_from(length).unwrap());
        outer.extend_from_slice(message);
        outer
    };
    let props = SchemaRef::Builtin(tables::definition(JSON_SCHEMA_PROPS).expect("a definition"));
    let number = |name: &str| props.members.as_ref().expect("a struct")[name].proto.expect("a number");
    let tag = |name: &str| {
        let tag = number(name) << 3 | 2;
        vec![u8::try_from(tag & 0x7f).unwrap() | 0x80, u8::try_from(tag >> 7).unwrap()]
    };
    // Each message is an item of a list: two levels.
    let all_of = |count: usize| (0..count).fold(Vec::new(), |message, _| wrap(&tag("allOf"), &message));
    assert!(decode(&all_of(59), &props).is_ok());
    assert_eq!(decode(&all_of(60), &props), Err(Malformed::too_deep()));
    assert_eq!(decode(&all_of(120), &props), Err(Malformed::too_deep()));
    // JSON inside a message.
    let raw = |depth: usize| {
        let text = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        wrap(&tag("default"), &wrap(&[0x0a], text.as_bytes()))
    };
    assert!(decode(&raw(119), &props).is_ok());
    assert_eq!(decode(&raw(120), &props), Err(Malformed::too_deep()));
}

#[test]
fn the_number_of_values_is_bounded() {
    let spec = SchemaRef::Builtin(tables::definition("io.k8s.api.core.v1.PodSpec").expect("a definition"));
    let containers = [0x12, 0x00].repeat(VALUES_MAX + 1);
    assert!(decode(&containers, &spec).is_err());
}

#[test]
fn packed_numbers_are_a_list() {
    let context = SchemaRef::Builtin(
        tables::definition("io.k8s.api.core.v1.PodSecurityContext").expect("a definition"),
    );
    let number = context.members.as_ref().expect("a struct")["supplementalGroups"].proto.expect("a number");
    let message = [u8::try_from(number << 3 | 2).unwrap(), 3, 1, 0x80, 1];
    assert_eq!(decode(&message, &context), Ok(serde_json::json!({"supplementalGroups": [1, 128]})));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        at in any::<prop::sample::Index>(),
    ) {
        let _ = open(&bytes);
        let _ = decode(&bytes, &SchemaRef::Builtin(at.get(tables::definitions())));
    }

    #[test]
    fn damaged_objects_are_read_or_refused(
        which in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let (_, body, _) = which.get(fixtures());
        let mut body = body.clone();
        *at.get_mut(&mut body) = byte;
        if let Ok(Some(mut object)) = decode_body(&body, "v1", "Pod") {
            let schema = schema_of(&object);
            let _ = conform(&mut object, &schema);
        }
    }
}
