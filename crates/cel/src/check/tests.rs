use crate::types::{ObjectType, Type};
use crate::{check, syntax};
use expect_test::{Expect, expect};
use std::sync::Arc;

#[expect(clippy::needless_pass_by_value, reason = "expectations are written in place")]
fn gives(text: &str, expected: Expect) {
    let fields = [
        ("s", Type::String),
        ("n", Type::Int),
        ("l", Type::list(Type::Int)),
        ("m", Type::map(Type::String, Type::Int)),
        ("any", Type::Dyn),
    ];
    let fields = fields.into_iter().map(|(name, of)| (name.to_owned(), of)).collect();
    let self_type = Type::Object(Arc::new(ObjectType { name: "selfType".to_owned(), fields }));
    let shown = match syntax::parse(text).and_then(|ast| check(ast, &[("self", self_type)])) {
        Ok(checked) => checked.gives().to_string(),
        Err(error) => error.to_string(),
    };
    expected.assert_eq(&shown);
}

#[test]
fn types_are_inferred() {
    gives("self.l.map(x, string(x))", expect!["list(string)"]);
    gives("self.l.filter(x, x > 1).size() == 1", expect!["bool"]);
    gives("self.any.foo + 1", expect!["int"]);
    gives("self.any.foo + self.any.bar", expect!["dyn"]);
    gives("self.m.transformMap(k, v, v > 0)", expect!["map(string, bool)"]);
    gives("self.?s.orValue('')", expect!["string"]);
    gives("optional.of(1).optMap(x, x + 1)", expect!["optional_type(int)"]);
    gives("['b', 'a'].sortBy(x, x)", expect!["list(string)"]);
    gives("[]", expect!["list(dyn)"]);
    gives("type(1) == int", expect!["bool"]);
    gives("sets.contains([1], [2])", expect!["bool"]);
    gives("{'a': 1}.exists(k, k == 'a')", expect!["bool"]);
    gives("1 < 2.0", expect!["bool"]);
    gives("self.l.all(i, v, i < v)", expect!["bool"]);
}

#[test]
fn wrong_types_are_reported() {
    gives(
        "self.s == 1",
        expect![[r#"
        ERROR: <input>:1:8: found no matching overload for '_==_' applied to '(string, int)'
         | self.s == 1
         | .......^"#]],
    );
    gives(
        "self.nope",
        expect![[r#"
        ERROR: <input>:1:5: undefined field 'nope'
         | self.nope
         | ....^"#]],
    );
    gives(
        "nope(1)",
        expect![[r#"
        ERROR: <input>:1:5: undeclared reference to 'nope' (in container '')
         | nope(1)
         | ....^"#]],
    );
    gives(
        "self.s && true",
        expect![[r#"
        ERROR: <input>:1:5: expected type 'bool' but found 'string'
         | self.s && true
         | ....^"#]],
    );
    gives(
        "[1, 'a']",
        expect![[r#"
        ERROR: <input>:1:5: expected type 'int' but found 'string'
         | [1, 'a']
         | ....^"#]],
    );
    gives(
        "self.n.all(x, true)",
        expect![[r#"
        ERROR: <input>:1:5: expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)
         | self.n.all(x, true)
         | ....^"#]],
    );
    gives(
        "'a'.matches('[')",
        expect![[r#"
        ERROR: <input>:1:13: invalid matches argument
         | 'a'.matches('[')
         | ............^"#]],
    );
}
