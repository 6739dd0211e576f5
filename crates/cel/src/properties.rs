//! What holds for every expression.

use crate::{EvaluateError, Limits, Program, Type, Value, compile};
use proptest::prelude::*;

const COST_MAX: u64 = 1_000_000;

/// Compiles and evaluates, as far as it goes. `x` is an integer, `d` is dynamic.
fn run(text: &str, x: i64) -> Option<Result<Value, EvaluateError>> {
    let variables = [("x", Type::Int), ("d", Type::Dyn), ("l", Type::list(Type::String))];
    let program = Program::new(&compile(text, &variables).ok()?).ok()?;
    let list = Value::list(vec!["a".into(), "bc".into()]);
    Some(program.evaluate(&[Value::Int(x), Value::Null, list], Limits::cost(COST_MAX)).result)
}

/// Pieces of expressions, whole and broken.
fn piece() -> impl Strategy<Value = String> {
    static PIECES: &[&str] = &[
        "x",
        "d",
        "l",
        "1",
        "-1",
        "9223372036854775807",
        "-9223372036854775808",
        "18446744073709551615u",
        "1.5e308",
        "'a'",
        "b'\\xff'",
        "'",
        "\"\"\"",
        "r'\\'",
        "true",
        "null",
        "[",
        "]",
        "{",
        "}",
        "(",
        ")",
        ".",
        ",",
        ":",
        "?",
        "!",
        "-",
        "+",
        "*",
        "/",
        "%",
        "==",
        "<",
        "&&",
        "||",
        " in ",
        ".?",
        "[?",
        ".all(v, ",
        ".map(v, ",
        ".exists(i, v, ",
        ".transformMap(i, v, ",
        ".sortBy(v, v)",
        ".optMap(v, v)",
        "has(d.a)",
        ".size()",
        "'%s'.format([",
        ".replace('', 'aa')",
        ".matches('a*')",
        "duration('9999999h')",
        "timestamp(",
        "quantity('",
        "lists.range(",
        ".split('')",
        "optional.of(",
        "é",
        "\u{0}",
        "`a`",
        "|",
        "//",
        "\n",
    ];
    prop_oneof![8 => prop::sample::select(PIECES).prop_map(str::to_owned), 1 => any::<String>()]
}

/// Sums and products of small numbers, and what they come to.
fn arithmetic() -> impl Strategy<Value = (String, i64)> {
    let product = prop::collection::vec(-9_i64..10, 1..5);
    prop::collection::vec((any::<bool>(), product), 1..6).prop_map(|terms| {
        let (mut text, mut total) = ("0".to_owned(), 0);
        for (minus, factors) in terms {
            let product: i64 = factors.iter().product();
            let factors: Vec<String> = factors.iter().map(ToString::to_string).collect();
            text.push_str(if minus { " - " } else { " + " });
            text.push_str(&factors.join(" * "));
            total += if minus { -product } else { product };
        }
        (text, total)
    })
}

proptest! {
    #[test]
    fn no_text_panics(pieces in prop::collection::vec(piece(), 0..40), x in any::<i64>()) {
        run(&pieces.concat(), x);
    }

    #[test]
    fn two_signs_are_none(x in any::<i64>(), flag in any::<bool>()) {
        prop_assert_eq!(run("- -x == x && --x == x", x), Some(Ok(Value::Bool(true))));
        prop_assert_eq!(run(&format!("!!{flag} == {flag} && !!!{flag} != {flag}"), x), Some(Ok(Value::Bool(true))));
    }

    #[test]
    fn products_bind_stronger_than_sums((text, total) in arithmetic()) {
        prop_assert_eq!(run(&text, 0), Some(Ok(Value::Int(total))));
    }
}

/// The deepest expressions of each form fit on the stack of an ordinary thread.
#[test]
fn the_deepest_expressions_are_evaluated() {
    let nested = |open: &str, middle: &str, close: &str, count: usize| {
        format!("{}{middle}{}", open.repeat(count), close.repeat(count))
    };
    let deepest = [
        nested("(", "x", ")", 248),
        nested("[", "x", "]", 248),
        nested("!(", "true", ")", 248),
        nested("-(", "x", ")", 248),
        nested("{1: ", "x", "}", 248),
        nested("true ? x : ", "x", "", 240),
        nested("dyn(", "x", ")", 248),
        nested("[x].map(v, ", "x", ")", 120),
        nested("1 + (", "x", ")", 120),
        nested("optional.of(1).optMap(v, ", "x", ")", 12),
        format!("d{}", ".a".repeat(249)),
        format!("d{}", "[0]".repeat(249)),
        vec!["x"; 250].join(" + "),
        vec!["x == 1"; 10_000].join(" && "),
    ];
    for text in deepest {
        assert!(run(&text, 0).is_some(), "{}", &text[..20]);
    }
}
