use super::*;
use crate::ast::{Expr, ExprKind, Literal};
use expect_test::{Expect, expect};

/// The tree in prefix notation.
fn show(node: &Expr) -> String {
    let all = |nodes: &[Expr]| nodes.iter().map(show).collect::<Vec<_>>().join(" ");
    match &node.kind {
        ExprKind::Literal(Literal::Int(int)) => int.to_string(),
        ExprKind::Literal(Literal::Uint(uint)) => format!("{uint}u"),
        ExprKind::Literal(Literal::Double(double)) => format!("{double:?}"),
        ExprKind::Literal(Literal::Bool(flag)) => flag.to_string(),
        ExprKind::Literal(Literal::Null) => "null".to_owned(),
        ExprKind::Literal(Literal::String(text)) => format!("{text:?}"),
        ExprKind::Literal(Literal::Bytes(bytes)) => format!("b{bytes:?}"),
        ExprKind::Ident(name) | ExprKind::Struct(name) => name.clone(),
        ExprKind::Select { operand, field, test } => {
            let mark = if *test { "?" } else { "" };
            format!("{}.{field}{mark}", show(operand))
        }
        ExprKind::Call { function, target: Some(target), args } => {
            format!("({}.{function} {})", show(target), all(args))
        }
        ExprKind::Call { function, target: None, args } => format!("({function} {})", all(args)),
        ExprKind::List { elements, .. } => format!("[{}]", all(elements)),
        ExprKind::Map(entries) => {
            let entries: Vec<String> =
                entries.iter().map(|entry| format!("{}:{}", show(&entry.key), show(&entry.value))).collect();
            format!("{{{}}}", entries.join(" "))
        }
        ExprKind::Comprehension(parts) => format!(
            "(for {}{} in {}: {}={} while {} do {} then {})",
            parts.variable,
            parts.variable2.as_ref().map(|name| format!(",{name}")).unwrap_or_default(),
            show(&parts.range),
            parts.accumulator,
            show(&parts.init),
            show(&parts.condition),
            show(&parts.step),
            show(&parts.result)
        ),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "expectations are written in place")]
fn tree(text: &str, expected: Expect) {
    let shown = match parse(text) {
        Ok(ast) => show(&ast.root),
        Err(error) => error.to_string(),
    };
    expected.assert_eq(&shown);
}

#[test]
fn signs_are_counted() {
    tree("!!false", expect!["false"]);
    tree("!!!x", expect!["(!_ x)"]);
    tree("!!has(self.x)", expect!["self.x?"]);
    tree("- -1", expect!["1"]);
    tree("-1", expect!["-1"]);
    tree("--x", expect!["x"]);
    tree("---1", expect!["(-_ 1)"]);
    tree("-x.y", expect!["(-_ x.y)"]);
    tree("-9223372036854775808", expect!["-9223372036854775808"]);
    tree("1 -1", expect!["(_-_ 1 1)"]);
    tree("!-1", expect!["(!_ -1)"]);
}

#[test]
fn operators_bind_as_in_cel() {
    tree("1 + 2 * 3 - 4", expect!["(_-_ (_+_ 1 (_*_ 2 3)) 4)"]);
    tree("a || b && c", expect!["(_||_ a (_&&_ b c))"]);
    tree("a ? b : c ? d : e", expect!["(_?_:_ a b (_?_:_ c d e))"]);
    tree("a < b == c", expect!["(_==_ (_<_ a b) c)"]);
    tree("a in b", expect!["(@in a b)"]);
    tree("a && b && c && d && e", expect!["(_&&_ (_&&_ (_&&_ a b) c) (_&&_ d e))"]);
    tree("a.b[0].?c[?d]", expect![[r#"(_[?_] (_?._ (_[_] a.b 0) "c") d)"#]]);
}

#[test]
fn literals_are_read() {
    tree(
        r#"'a\n\x41\u00e9' + "b" + r'\d' + '''c'd'''"#,
        expect![[r#"(_+_ (_+_ (_+_ "a\nAé" "b") "\\d") "c'd")"#]],
    );
    tree(r"b'\xff\101'", expect!["b[255, 65]"]);
    tree("0x1F + 2u + 1.5e3 + .5", expect!["(_+_ (_+_ (_+_ 31 2u) 1500.0) 0.5)"]);
    tree("[1, 2,] == {'a': null,}", expect![[r#"(_==_ [1 2] {"a":null})"#]]);
    tree("a // comment\n + 1", expect!["(_+_ a 1)"]);
}

#[test]
fn macros_are_expanded() {
    tree(
        "l.all(x, x > 0)",
        expect![
            "(for x in l: @result=true while (@not_strictly_false @result) do (_&&_ @result (_>_ x 0)) then @result)"
        ],
    );
    tree(
        "l.map(x, x > 0, -x)",
        expect![
            "(for x in l: @result=[] while true do (_?_:_ (_>_ x 0) (_+_ @result [(-_ x)]) @result) then @result)"
        ],
    );
    tree(
        "m.transformMap(k, v, v)",
        expect!["(for k,v in m: @result={} while true do (cel.@mapInsert @result k v) then @result)"],
    );
    tree(
        "o.optMap(v, v)",
        expect![
            "(_?_:_ (o.hasValue ) (optional.of (for #unused in []: v=(o.value ) while false do v then v)) (optional.none ))"
        ],
    );
}

#[test]
fn errors_say_where() {
    tree(
        "1 +",
        expect![[r#"
        ERROR: <input>:1:4: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}
         | 1 +
         | ...^"#]],
    );
    tree(
        "has(x)",
        expect![[r#"
        ERROR: <input>:1:5: invalid argument to has() macro
         | has(x)
         | ....^"#]],
    );
    tree(
        "if + 1",
        expect![[r#"
        ERROR: <input>:1:1: reserved identifier: if
         | if + 1
         | ^"#]],
    );
    tree(
        "99999999999999999999",
        expect![[r#"
        ERROR: <input>:1:1: invalid int literal
         | 99999999999999999999
         | ^"#]],
    );
}

#[test]
fn depth_and_size_have_limits() {
    let deep = |count: usize| format!("{}1{}", "(".repeat(count), ")".repeat(count));
    assert!(parse(&deep(249)).is_ok());
    tree(&deep(250), expect!["ERROR: <input>:-1:0: expression recursion limit exceeded: 250"]);
    tree(&deep(20_000), expect!["ERROR: <input>:-1:0: expression recursion limit exceeded: 250"]);
    assert!(parse(&vec!["1"; 251].join("+")).is_ok());
    tree(&vec!["1"; 252].join("+"), expect!["ERROR: <input>:-1:0: max recursion depth exceeded"]);
    assert!(parse(&vec!["true"; 8000].join(" && ")).is_ok());
    assert!(parse(&vec!["true"; 8000].join(" || ")).is_ok());
    let long = "x".repeat(100_001);
    tree(
        &long,
        expect!["ERROR: <input>:-1:0: expression code point size exceeds limit: size: 100001, limit 100000"],
    );
    let doubling = format!("o{}", ".optMap(a, a)".repeat(100));
    assert!(parse(&doubling).unwrap_err().to_string().contains("nodes after optMap()"));
    let signs = format!("{}true", "!".repeat(99_990));
    assert!(parse(&signs).is_ok());
}
