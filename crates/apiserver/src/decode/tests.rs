//! Bodies with what kube-apiserver v1.36.3 said about them.

use super::*;
use serde_json::json;

const CUSTOM: Wanted<'_> = Wanted { group: "schema.lab", version: "v1", kind: "Meta", implied: false };
const BUILTIN: Wanted<'_> = Wanted { group: "", version: "v1", kind: "ConfigMap", implied: true };

fn refusal(body: &[u8], encoding: Encoding, wanted: &Wanted<'_>) -> String {
    match decode_object(body, encoding, wanted) {
        Ok(decoded) => format!("fine: {}", decoded.value),
        Err(error) => error.message,
    }
}

#[test]
fn unreadable_json_is_refused_in_the_words_of_kubernetes() {
    let struct_type = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
    let parse = "couldn't get version/kind; json parse error:";
    let cases: [(&[u8], String); 17] = [
        (b"", format!("{parse} unexpected end of JSON input (<empty>)")),
        (b"   ", format!("{parse} unexpected end of JSON input (202020)")),
        (b"{", format!("{parse} unexpected end of JSON input ({{)")),
        (
            b"[1]",
            format!("{parse} json: cannot unmarshal array into Go value of type {struct_type} (5b315d)"),
        ),
        (
            b"\"x\"",
            format!("{parse} json: cannot unmarshal string into Go value of type {struct_type} (227822)"),
        ),
        (b"null", "Object 'Kind' is missing in 'null' (6e756c6c)".to_owned()),
        (b"{}", "Object 'Kind' is missing in '{}' ({})".to_owned()),
        (
            br#"{"apiVersion":1,"kind":"x"}"#,
            format!(
                r#"{parse} json: cannot unmarshal number into Go struct field .apiVersion of type string ({{"apiVersion":1,"kind":"x"}})"#
            ),
        ),
        (br#"{"a":1}x"#, format!(r#"{parse} invalid character 'x' after top-level value ({{"a":1}}x)"#)),
        (
            br#"{"a":1,}"#,
            format!(
                r#"{parse} invalid character '}}' looking for beginning of object key string ({{"a":1,}})"#
            ),
        ),
        (
            br#"{"a":}"#,
            format!(r#"{parse} invalid character '}}' looking for beginning of value ({{"a":}})"#),
        ),
        (
            br#"{"a":tru}"#,
            format!(r#"{parse} invalid character '}}' in literal true (expecting 'e') ({{"a":tru}})"#),
        ),
        (
            br#"{"a":01}"#,
            format!(r#"{parse} invalid character '1' after object key:value pair ({{"a":01}})"#),
        ),
        (br#"{"a":"\x"}"#, format!(r#"{parse} invalid character 'x' in string escape code ({{"a":"\x"}})"#)),
        (
            b"{'a':1}",
            format!(r"{parse} invalid character '\'' looking for beginning of object key string ({{'a':1}})"),
        ),
        (
            b"\xef\xbb\xbf{}",
            format!("{parse} invalid character 'ï' looking for beginning of value (efbbbf7b7d)"),
        ),
        (
            br#"{"apiVersion":"a/b/c","kind":"x"}"#,
            r#"unexpected GroupVersion string: a/b/c ({"apiVersion":"a/b/c","kind":" ...)"#.to_owned(),
        ),
    ];
    for (body, why) in cases {
        let expected = format!("the object provided is unrecognized (must be of type Meta): {why}");
        assert_eq!(refusal(body, Encoding::Json, &CUSTOM), expected);
    }
}

#[test]
fn objects_of_another_kind_are_refused() {
    let cases = [
        (
            r#"{"apiVersion":"other/v1","kind":"Foo"}"#,
            CUSTOM,
            "the API version in the data (other/v1) does not match the expected API version (schema.lab/v1)",
        ),
        (
            r#"{"kind":"Meta"}"#,
            CUSTOM,
            "the API version in the data () does not match the expected API version (schema.lab/v1)",
        ),
        (
            r#"{"apiVersion":"other/v1","kind":"Foo"}"#,
            BUILTIN,
            r#"Foo in version "v1" cannot be handled as a ConfigMap: no kind "Foo" is registered for version "other/v1" in scheme "pkg/runtime/scheme.go:111""#,
        ),
        ("{}", BUILTIN, r#"fine: {"apiVersion":"v1","kind":"ConfigMap"}"#),
        ("null", BUILTIN, r#"fine: {"apiVersion":"v1","kind":"ConfigMap"}"#),
        (
            r#"{"apiVersion":"schema.lab/v1","kind":"Meta","spec":{"a":1e999}}"#,
            CUSTOM,
            r#"Meta in version "v1" cannot be handled as a Meta: json: cannot unmarshal number 1e999 into Go value of type float64"#,
        ),
    ];
    for (body, wanted, expected) in cases {
        assert_eq!(refusal(body.as_bytes(), Encoding::Json, &wanted), expected);
    }
}

#[test]
fn json_is_read_as_go_reads_it() {
    let cases: [(&[u8], Value); 6] = [
        (br#"{"a":1.0,"b":1e3,"c":-0,"d":1.5}"#, json!({"a": 1, "b": 1000, "c": 0, "d": 1.5})),
        (b"{\"a\":\"\xff\"}", json!({"a": "\u{fffd}"})),
        (
            br#"{"a":"\ud800x","b":"\udc00","c":"\ud83d\ude00"}"#,
            json!({"a": "\u{fffd}x", "b": "\u{fffd}", "c": "😀"}),
        ),
        (br#"{"a":1,"a":2}"#, json!({"a": 2})),
        (br#"{"a":9223372036854775807}"#, json!({"a": i64::MAX})),
        (b" [1, null] ", json!([1, null])),
    ];
    for (body, expected) in cases {
        let value = parse(body, Encoding::Json).unwrap().value;
        assert_eq!(value, expected, "{}", String::from_utf8_lossy(body));
    }
}

#[test]
fn repeated_fields_are_named_once_each_in_order() {
    let body =
        br#"{"data":{"a":"1","a":"2","a":3},"spec":{"b":{"c":1,"c":1},"l":[{"x":1,"x":2}]},"spec":{}}"#;
    let decoded = parse(body, Encoding::Json).unwrap();
    let fields = ["data.a", "spec.b.c", "spec.l[0].x", "spec"];
    assert_eq!(decoded.strict_errors, fields.map(|field| format!("duplicate field \"{field}\"")));
    assert_eq!(decoded.warnings, decoded.strict_errors);
}

#[test]
fn depth_is_limited() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    for encoding in [Encoding::Json, Encoding::Yaml] {
        assert!(parse(nested(MAX_DEPTH).as_bytes(), encoding).is_ok());
        assert!(parse(nested(MAX_DEPTH + 1).as_bytes(), encoding).is_err(), "{encoding:?}");
    }
    let deep = |encoding| parse(nested(100_000).as_bytes(), encoding).unwrap_err();
    let text = "couldn't get version/kind; json parse error: invalid character '[' exceeded max depth";
    assert_eq!(deep(Encoding::Json), Unreadable::Syntax(text.to_owned()));
    assert!(matches!(deep(Encoding::Yaml), Unreadable::Syntax(_)));
}

#[test]
fn yaml_scalars_have_the_types_of_yaml_1_1() {
    let body = "{a: yes, b: on, c: 0o17, d: 017, e: 0x1f, f: 1_000, g: ~, h: 2020-01-01, i: '12:30', k: 1.0, \
                l: 1e3, m: \"yes\", n: True, o: y, p: No, s: 0b11, t: +5, u: 08, v: !!str 5, x: .5, z: 1., \
                aa: 1e400, ab: -0x1f, ac: 0o8, ad: 09.5, ae: '=', ag: -.5, ah: 1e, aj: nULL, \
                al: !!int '5', am: !!binary aGk=, an: !foo bar, ao: 12345678901234567890}";
    let expected = json!({
        "a": true, "b": true, "c": 15, "d": 15, "e": 31, "f": 1000, "g": null, "h": "2020-01-01",
        "i": "12:30", "k": 1, "l": 1000, "m": "yes", "false": true, "o": true, "p": false, "s": 3, "t": 5,
        "u": 8, "v": "5", "x": 0.5, "z": 1, "aa": "1e400", "ab": -31, "ac": "0o8", "ad": 9.5, "ae": "=",
        "ag": -0.5, "ah": "1e", "aj": "nULL", "al": 5, "am": "hi", "an": "bar",
        "ao": 1.234_567_890_123_456_8e19,
    });
    assert_eq!(parse(body.as_bytes(), Encoding::Yaml).unwrap().value, expected);
}

#[test]
fn yaml_structure_is_read() {
    let cases = [
        ("1: a\ntrue: b\n1.5: c\n010: e\n", json!({"1": "a", "true": "b", "1.5": "c", "8": "e"})),
        (
            "x: &a {b: 1}\nw: *a\nz:\n  <<: *a\n  c: 2\n",
            json!({"x": {"b": 1}, "w": {"b": 1}, "z": {"b": 1, "c": 2}}),
        ),
        ("a: |\n  x\n  y\nb: >\n  x\n  y\n", json!({"a": "x\ny\n", "b": "x y\n"})),
        ("a: 1\n---\nb: 2\n", json!({"a": 1})),
        ("", Value::Null),
        ("# nothing\n", Value::Null),
    ];
    for (body, expected) in cases {
        assert_eq!(parse(body.as_bytes(), Encoding::Yaml).unwrap().value, expected, "{body}");
    }
}

#[test]
fn repeated_yaml_keys_are_named_by_line() {
    let body = "apiVersion: schema.lab/v1\nkind: Meta\nspec:\n  a: {x: 1, x: 2}\n  b: 1\n  b: 2\n  yes: 1\n  on: 2\n";
    let decoded = decode_object(body.as_bytes(), Encoding::Yaml, &CUSTOM).unwrap();
    assert_eq!(
        decoded.strict_errors,
        [
            "yaml: unmarshal errors:\n  line 4: key \"x\" already set in map\n  line 6: key \"b\" already set in map\n  line 8: key true already set in map"
        ]
    );
    assert_eq!(decoded.warnings[0], "line 4: key \"x\" already set in map");
}

#[test]
fn unreadable_yaml_is_refused() {
    let start = "the object provided is unrecognized (must be of type Meta): ";
    let cases = [
        ("", "Object 'Kind' is missing in '' (<empty>)"),
        ("a: b", "Object 'Kind' is missing in 'a: b' (613a2062)"),
        ("a: .inf", "json: unsupported value: +Inf (613a202e696e66)"),
        ("~: x", "unsupported map key of type: %!s(<nil>), key: <nil>, value: \"x\" (7e3a2078)"),
    ];
    for (body, why) in cases {
        assert_eq!(refusal(body.as_bytes(), Encoding::Yaml, &CUSTOM), format!("{start}{why}"));
    }
    for body in ["a: [1\n", "a: b: c\n", "s:\n\ta: 1\n", "a: *x\n", "? [a]\n: 1\n"] {
        let text = refusal(body.as_bytes(), Encoding::Yaml, &CUSTOM);
        assert!(text.starts_with(&format!("{start}yaml: ")), "{text}");
    }
}

#[test]
fn aliases_cannot_blow_up() {
    let mut body = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..12 {
        let items = vec![format!("*a{}", level - 1); 10].join(",");
        writeln!(body, "a{level}: &a{level} [{items}]").unwrap();
    }
    let error = parse(body.as_bytes(), Encoding::Yaml).unwrap_err();
    assert_eq!(error, Unreadable::Syntax("yaml: document contains excessive aliasing".to_owned()));
}

fn excessive(body: &str) {
    let error = parse(body.as_bytes(), Encoding::Yaml).err();
    assert_eq!(error, Some(Unreadable::Syntax("yaml: document contains excessive aliasing".to_owned())));
}

#[test]
fn aliases_of_long_values_cannot_blow_up() {
    let long = "x".repeat(1 << 20);
    let aliases = vec!["*a"; 20_000].join(",");
    excessive(&format!("a: &a {long}\nb: [{aliases}]\n"));
    excessive(&format!("a: &a \"{long}\"\nb: [{aliases}]\n"));
    // Keys, and values of keys.
    let keys: String = (0..20_000).map(|_| "  ? *a\n  : 1\n").collect();
    excessive(&format!("a: &a {long}\nb:\n{keys}"));
    excessive(&format!("? &a {long}\n: 1\nb: [{aliases}]\n"));
    let merges = vec!["*a"; 20_000].join(",");
    excessive(&format!("a: &a {{x: {long}}}\nb:\n  <<: [{merges}]\n"));
    // A few are what aliases are for.
    let short = "x".repeat(100);
    assert!(parse(format!("a: &a {short}\nb: [{aliases}]\n").as_bytes(), Encoding::Yaml).is_ok());
}

#[test]
fn anchors_within_anchors_cannot_blow_up() {
    let long = vec!["{a: 1}"; 20_000].join(",");
    let open = (0..100).map(|at| format!("&a{at} [")).collect::<Vec<_>>().concat();
    excessive(&format!("{open}{long}{}", "]".repeat(100)));
}

#[test]
fn aliases_cannot_nest_deeper_than_bodies_may() {
    let mut body = format!("a0: &a0 {}{}\n", "[".repeat(50), "]".repeat(50));
    for level in 1..40 {
        writeln!(body, "a{level}: &a{level} {}*a{}{}", "[".repeat(50), level - 1, "]".repeat(50)).unwrap();
    }
    let error = parse(body.as_bytes(), Encoding::Yaml).unwrap_err();
    assert_eq!(error, Unreadable::Syntax(format!("yaml: exceeded max depth of {MAX_DEPTH}")));
    let (open, close) = ("[".repeat(MAX_DEPTH - 52), "]".repeat(MAX_DEPTH - 52));
    let fits = format!("a0: &a0 {}{}\nb: {open}*a0{close}\n", "[".repeat(51), "]".repeat(51));
    assert!(parse(fits.as_bytes(), Encoding::Yaml).is_ok());
}

#[test]
fn long_and_deep_yaml_is_read_or_refused_in_linear_time() {
    let start = std::time::Instant::now();
    let long = 1 << 20;
    for piece in [
        "[",
        "{",
        "- ",
        "? ",
        "a: ",
        "&a ",
        "!",
        "!!a ",
        "*a ",
        "#",
        "\"",
        "'",
        "|\n",
        ">\n",
        "%TAG ! !\n",
        "---\n",
        "x",
        "\\",
        "\u{feff}",
        "&a [",
        "<<: ",
        "{? ",
        "[[],",
        "a:\n ",
        "- - ",
        "\t",
        ", ",
        "[a: ",
    ] {
        let _ = parse(piece.repeat(long / piece.len()).as_bytes(), Encoding::Yaml);
    }
    // Far more than is needed even unoptimised, and far less than what is quadratic takes.
    assert!(start.elapsed() < std::time::Duration::from_secs(100), "{:?}", start.elapsed());
}
