use crate::{EvaluateError, Limits, Program, Type, Value, compile};

fn evaluate(text: &str) -> Result<Value, EvaluateError> {
    let checked = compile(text, &[("x", Type::Dyn)]).unwrap_or_else(|error| panic!("{text}: {error}"));
    let program = Program::new(&checked).unwrap_or_else(|error| panic!("{text}: {error}"));
    program.evaluate(&[Value::Int(7)], Limits::cost(1_000_000)).result
}

#[track_caller]
fn holds(text: &str) {
    assert_eq!(evaluate(text), Ok(Value::Bool(true)), "{text}");
}

fn fails(text: &str, message: &str) {
    assert_eq!(evaluate(text), Err(EvaluateError::Failed(message.to_owned())), "{text}");
}

fn cost(text: &str) -> u64 {
    let checked = compile(text, &[("x", Type::Dyn), ("l", Type::list(Type::Int))]).unwrap();
    let items = Value::list((1..=10).map(Value::Int).collect());
    Program::new(&checked).unwrap().evaluate(&[Value::Int(7), items], Limits::cost(u64::MAX)).cost
}

#[test]
fn signs_and_logic_mean_what_is_written() {
    holds("!!true");
    holds("!(!!false)");
    holds("- -1 == 1");
    holds("-x == -7");
    holds("--x == 7");
    holds("true || x.y");
    holds("!(false && x.y)");
    holds("x.y || true");
}

#[test]
fn collections_and_macros() {
    holds("[1, 2, 3].all(i, i > 0)");
    holds("[1, 2, 3].exists_one(i, i == 2)");
    holds("[1, 2, 3].map(i, i * 2) == [2, 4, 6]");
    holds("[1, 2, 3].filter(i, i != 2) == [1, 3]");
    holds("[1, 2, 3].map(i, i > 1, i * 2) == [4, 6]");
    holds("{'a': 1}.all(k, v, k == 'a' && v == 1)");
    holds("['x', 'y'].transformMap(i, v, v) == {0: 'x', 1: 'y'}");
    holds("{'a': 1, 'b': 2}.transformList(k, v, v).sum() == 3");
    holds("[3, 1, 2].sortBy(i, -i) == [3, 2, 1]");
    holds("['b', 'a'].sort() == ['a', 'b']");
    holds("optional.of(1).optMap(v, v + 1).orValue(0) == 2");
    holds("optional.none().orValue(5) == 5");
    holds("{'a': 1}.?b.orValue(3) == 3");
    holds("{'a': {'b': 1}}.?a.b.hasValue()");
    holds("has({'a': 1}.a) && !has({'a': 1}.b)");
    holds("1 in [1, 2] && 'a' in {'a': 1} && !(3 in [1])");
    holds("[1, 2, 3].slice(1, 3) == [2, 3] && lists.range(3) == [0, 1, 2]");
    holds("sets.contains([1, 2], [2]) && sets.equivalent([1, 1], [1]) && sets.intersects([1], [1, 2])");
    holds("[1, 2, 3].max() == 3 && [1.5].min() == 1.5 && [1, 2].isSorted()");
    holds("[[1], [2, 3]].flatten() == [1, 2, 3] && [1, 1, 2].distinct() == [1, 2]");
    holds("dyn(1) == 1.0 && dyn(1u) == 1 && {1: 2}[dyn(1u)] == 2");
}

#[test]
fn texts() {
    holds("'abc'.charAt(1) == 'b' && 'abc'.substring(1) == 'bc' && 'héllo'.size() == 5");
    holds("'a-b-c'.split('-') == ['a', 'b', 'c'] && 'abc'.split('') == ['a', 'b', 'c']");
    holds("'a,b,c'.split(',', 2) == ['a', 'b,c'] && ['a', 'b'].join('-') == 'a-b'");
    holds("'abab'.indexOf('b') == 1 && 'abab'.lastIndexOf('a') == 2 && 'abab'.indexOf('b', 2) == 3");
    holds("'aXbX'.replace('X', '-') == 'a-b-' && 'aXbX'.replace('X', '-', 1) == 'a-bX'");
    holds("'ab'.replace('', '-') == '-a-b-'");
    holds("'%s is %d, %.2f %x %b'.format(['a', 1, 2.5, 255, 5]) == 'a is 1, 2.50 ff 101'");
    holds("'%s %s'.format([['a'], {'k': true}]) == '[\"a\"] {\"k\":true}'");
    holds("'foo123'.matches('^[a-z]+[0-9]+$') && 'a1b2'.findAll('[0-9]') == ['1', '2']");
    holds("string(1.5) == '1.5' && string(1000000.0) == '1e+06' && string(b'a') == 'a'");
    holds("int('12') == 12 && double('1.5') == 1.5 && bool('true') && uint(3) == 3u");
    holds("type(1) == int && type('a') == string && type([]) == list");
}

#[test]
fn times() {
    holds("duration('1h30m') == duration('90m') && duration('90s').getMinutes() == 1");
    holds("timestamp('2024-02-29T12:00:00Z').getDate() == 29");
    holds("timestamp('2024-01-01T23:00:00Z').getHours('+02:00') == 1");
    holds("string(timestamp('2024-01-01T00:00:00.5Z')) == '2024-01-01T00:00:00.5Z'");
    holds("timestamp('2024-01-01T00:00:00Z') + duration('24h') == timestamp('2024-01-02T00:00:00Z')");
    holds("string(duration('1.5s')) == '1.5s'");
}

#[test]
fn kubernetes_values() {
    holds(
        "quantity('1Gi').isGreaterThan(quantity('1Mi')) && quantity('500m').add(quantity('500m')) == quantity('1')",
    );
    holds("!quantity('1500m').isInteger() && quantity('2k').asInteger() == 2000");
    holds("ip('10.0.0.1').family() == 4 && cidr('10.0.0.0/8').containsIP('10.1.2.3')");
    holds(
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8')",
    );
    holds("isIP('::1') && !isIP('1.2.3') && ip('127.0.0.1').isLoopback()");
    holds("url('https://user@host:80/p?a=1&a=2').getQuery() == {'a': ['1', '2']}");
    holds("url('https://[::1]:80/p').getHostname() == '::1' && url('/path').getScheme() == ''");
    holds("semver('1.2.3').isLessThan(semver('1.10.0')) && isSemver('v1', true) && !isSemver('v1')");
    holds("!format.dns1123Label().validate('ok').hasValue() && format.uuid().validate('x').hasValue()");
    holds("format.named('dns1123Label').hasValue() && !format.named('nope').hasValue()");
}

#[test]
fn errors_are_worded_as_cel_go_words_them() {
    fails("1 / 0 == 1", "division by zero");
    fails("[1][5] == 1", "index out of bounds: 5");
    fails("{'a': 1}.b == 1", "no such key: b");
    fails("x.y == 1", "no such key: y");
    fails("9223372036854775807 + 1 == 0", "integer overflow");
    fails("int(string(x) + 'a') == 1", "type conversion error from 'string' to 'int'");
    fails("'abc'.substring(5) == ''", "index out of range: 5");
    fails("[1].filter(i, false).max() == 1", "max called on empty list");
    fails("x > 'a'", "no such overload");
}

#[test]
fn costs_follow_cel_go() {
    assert_eq!(cost("true"), 0);
    assert_eq!(cost("x == 7"), 2);
    assert_eq!(cost("[1, 2, 3] == [1, 2, 3]"), 1);
    assert_eq!(cost("x in [1, 2, 3]"), 1);
    assert_eq!(cost("l[0] == 1"), 3);
    assert_eq!(cost("l[l[0]] == 1"), 4);
    // The range, and for each item the condition (2), the accumulator (1) and the test (2); the result.
    assert_eq!(cost("l.all(i, i > 0)"), 1 + 10 * 5 + 1);
    assert_eq!(cost("l.map(i, i)"), 1 + 10 * (1 + 10 + 1 + 1) + 1);
    assert_eq!(cost("l.map(i, 1)"), 1 + 10 * (1 + 1) + 1);
    assert_eq!(cost("x == 7 ? l : l"), 2);
    assert_eq!(cost("has({'a': l}.a)"), 30 + 1 + 1);
}

#[test]
fn budgets_end_evaluation() {
    let checked = compile("l.all(a, l.all(b, l.all(c, true)))", &[("l", Type::list(Type::Int))]).unwrap();
    let program = Program::new(&checked).unwrap();
    let list = Value::list((0..1000).map(Value::Int).collect());
    let evaluation = program.evaluate(std::slice::from_ref(&list), Limits::cost(1_000_000));
    assert_eq!(evaluation.result, Err(EvaluateError::CostExceeded));
    assert!(evaluation.cost < 1_000_020);
    let cancelled = std::sync::atomic::AtomicBool::new(true);
    let limits = Limits { cost_max: u64::MAX, cancelled: Some(&cancelled) };
    assert_eq!(program.evaluate(&[list], limits).result, Err(EvaluateError::Cancelled));
}

#[test]
fn growth_ends_evaluation() {
    let growing = [
        "s.replace('', s).replace('', s).size() > 0",
        "[[1]].map(l, l + l).map(l, l + l).size() < lists.range(100000000).size()",
        "'%s%s%s%s%s%s%s%s'.format([s, s, s, s, s, s, s, s]).replace('', s) == ''",
    ];
    for text in growing {
        let checked = compile(text, &[("s", Type::String)]).unwrap();
        let value = Value::from("x".repeat(100_000));
        let evaluation = Program::new(&checked).unwrap().evaluate(&[value], Limits::cost(1_000_000));
        assert_eq!(evaluation.result, Err(EvaluateError::CostExceeded), "{text}");
    }
}

#[test]
fn long_chains_are_no_depth() {
    for count in [4000, 8000] {
        holds(&vec!["true"; count].join(" && "));
        holds(&vec!["x == 7"; count].join(" && "));
        holds(&vec!["false"; count].join(" || ").replacen("false", "true", 1));
    }
}
