use super::*;
use crate::{ObjectType, compile};
use expect_test::{Expect, expect};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// `self` has a long and a short text, a list of short texts, a list without a limit, a number and a map.
fn fixture() -> (Type, Bounds) {
    let none: [&str; 0] = [];
    let fields = [
        ("long", Type::String, Bounds::string(None, None, none)),
        ("short", Type::String, Bounds::string(None, Some(10), none)),
        ("level", Type::String, Bounds::string(None, None, ["low", "high"])),
        ("number", Type::Int, Bounds::number()),
        ("few", Type::list(Type::String), Bounds::list(Bounds::string(None, Some(5), none), Some(3))),
        ("many", Type::list(Type::Int), Bounds::list(Bounds::number(), None)),
        ("map", Type::map(Type::String, Type::Int), Bounds::map(Bounds::number(), None)),
    ];
    let types = fields.iter().map(|(name, of, _)| ((*name).to_owned(), of.clone())).collect();
    let bounds: BTreeMap<_, _> =
        fields.iter().map(|(name, _, bounds)| ((*name).to_owned(), bounds.clone())).collect();
    let of = ObjectType { name: "selfType".to_owned(), fields: types };
    (Type::Object(Arc::new(of)), Bounds::object(bounds, [("long", 2)]))
}

/// Estimates each line.
fn check(expressions: &str, expected: &Expect) {
    let (of, bounds) = fixture();
    let mut text = String::new();
    for expression in expressions.trim().lines().map(str::trim) {
        let checked = compile(expression, &[("self", of.clone())]).unwrap();
        let Range { min, max } = estimate(&checked, &bounds);
        let _ = writeln!(text, "{expression}: {min} to {max}");
    }
    expected.assert_eq(&text);
}

#[test]
fn strings_cost_what_the_schema_lets_them_be_long() {
    check(
        "self.long == 'a'
         self.long == self.long
         self.short == self.long
         self.level == self.long
         self.short + self.short
         (self.short + self.short).upperAscii()
         self.short.contains(self.short)
         self.short.matches('^a+$')
         self.long.replace('', self.short)",
        &expect![[r#"
            self.long == 'a': 3 to 3
            self.long == self.long: 5 to 314577
            self.short == self.long: 5 to 8
            self.level == self.long: 5 to 5
            self.short + self.short: 4 to 12
            (self.short + self.short).upperAscii(): 4 to 20
            self.short.contains(self.short): 4 to 20
            self.short.matches('^a+$'): 3 to 7
            self.long.replace('', self.short): 4 to 629150
        "#]],
    );
}

#[test]
fn loops_cost_what_the_schema_lets_lists_hold() {
    check(
        "self.few.all(x, x == 'a')
         self.many.all(x, x > 1)
         self.many.all(x, self.many.exists(y, x == y))
         self.map.all(k, k == 'a')
         self.map.transformList(k, v, v)
         [1, 2].map(x, x + 1)
         self.many.filter(x, x > 1).map(x, x)
         self.few.join(',')
         self.few.sort()",
        &expect![[r#"
            self.few.all(x, x == 'a'): 3 to 18
            self.many.all(x, x > 1): 3 to 7864318
            self.many.all(x, self.many.exists(y, x == y)): 3 to 14843397537795
            self.map.all(k, k == 'a'): 3 to 1797559
            self.map.transformList(k, v, v): 13 to 5842070
            [1, 2].map(x, x + 1): 49 to 49
            self.many.filter(x, x > 1).map(x, x): 24 to 44040188
            self.few.join(','): 2 to 9
            self.few.sort(): 13 to 32
        "#]],
    );
}

#[test]
fn sums_without_an_end_do_not_overflow() {
    check(
        "self.many.all(a, self.many.all(b, self.many.all(c, self.many.all(d, a == b && c == d))))
         ['a'].min() + ['b'].max()
         self.many.slice(2, 1).size()",
        &expect![[r#"
            self.many.all(a, self.many.all(b, self.many.all(c, self.many.all(d, a == b && c == d)))): 3 to 18446744073709551615
            ['a'].min() + ['b'].max(): 22 to 5534023222112865814
            self.many.slice(2, 1).size(): 18446744073709551615 to 18446744073709551615
        "#]],
    );
}

#[test]
fn values_that_fill_a_request_limit_how_often_a_rule_runs() {
    let (_, bounds) = fixture();
    expect!["241979"].assert_eq(&bounds.cardinality_max().to_string());
    assert_eq!(Bounds::string(None, Some(u64::MAX), []).elements_max, u64::MAX);
}
