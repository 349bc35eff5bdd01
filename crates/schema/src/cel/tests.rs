//! Expressions, what they evaluate to, and why they do not.

use super::*;
use serde_json::json;

fn schema() -> Schema {
    let schema = json!({"type": "object", "properties": {
        "s": {"type": "string"}, "i": {"type": "integer"}, "n": {"type": "number"}, "b": {"type": "boolean"},
        "ios": {"x-kubernetes-int-or-string": true},
        "l": {"type": "array", "items": {"type": "string"}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "ml": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}}},
        "m": {"type": "object", "additionalProperties": {"type": "integer"}},
        "o": {"type": "object", "properties": {"x-y": {"type": "string"}, "namespace": {"type": "string"}}},
        "t": {"type": "string", "format": "date-time"}, "d": {"type": "string", "format": "duration"},
        "by": {"type": "string", "format": "byte"},
        "absent": {"type": "string"},
    }});
    Schema::from_json(&schema).unwrap()
}

fn object() -> Json {
    json!({"s": "héllo", "i": 7, "n": 1.5, "b": true, "ios": "5%", "l": ["a", "b", "c"], "set": ["y", "x"],
        "ml": [{"k": "a", "v": 1}, {"k": "b", "v": 2}], "m": {"one": 1, "two": 2},
        "o": {"x-y": "dash", "namespace": "ns"}, "t": "2024-02-29T12:30:00Z", "d": "1h30m", "by": "aGk="})
}

fn evaluate(rule: &str) -> Result<bool, String> {
    let schema = schema();
    let declared = Declared::of(&schema).unwrap();
    let program = match Program::compile(rule, &declared, false, Wanted::Bool) {
        Ok(program) => program,
        Err(Refusal::Compilation(why)) => return Err(why),
        Err(other) => return Err(format!("{other:?}")),
    };
    let seen = Seen { schema: &schema, value: &object(), old: None };
    program.truth(seen, false).0.map_err(|failure| failure.text)
}

#[test]
fn rules_that_hold() {
    for rule in [
        "self.i == 7 && self.n > 1 && self.b",
        "self.s.size() == 5 && size(self.s) == 5",
        "self.s.startsWith('hé') && self.s.endsWith('o') && self.s.contains('ll')",
        "self.s.matches('^h.*o$') && matches(self.s, 'l+')",
        "self.l.all(x, x in ['a', 'b', 'c'])",
        "self.l.exists(x, x == 'b') && self.l.exists_one(x, x == 'b')",
        "self.l.map(x, x + '!') == ['a!', 'b!', 'c!']",
        "self.l.filter(x, x != 'b') == ['a', 'c']",
        "self.l.map(x, x != 'b', x + x) == ['aa', 'cc']",
        "has(self.s) && !has(self.absent)",
        "self.?absent.orValue('none') == 'none'",
        "self.?s.orValue('none') == 'héllo'",
        "self.m['one'] == 1 && self.m.two == 2 && 'one' in self.m && !('three' in self.m)",
        "self.m.all(k, self.m[k] > 0) && self.m.exists(k, v, k == 'two' && v == 2)",
        "self.o.x__dash__y == 'dash' && self.o.__namespace__ == 'ns'",
        "type(self.ios) == string && self.ios.endsWith('%')",
        "type(self.ios) == int ? self.ios > 3 : self.ios.replace('%', '') == '5'",
        "self.t < timestamp('2025-01-01T00:00:00Z') && self.t.getFullYear() == 2024 && self.t.getMonth() == 1",
        "self.t + duration('24h') == timestamp('2024-03-01T12:30:00Z')",
        "self.d == duration('90m') && self.d.getMinutes() == 90",
        "self.by == b'hi' && string(self.by) == 'hi'",
        "self.set == ['x', 'y']",
        "self.ml.exists(e, e.k == 'a' && e.v == 1)",
        "self.ml[0].v + self.ml[1].v == 3",
        "[1, 2, 3].sum() == 6 && [3, 1].min() == 1 && [3, 1].max() == 3 && [1, 2].isSorted()",
        "[1, 2, 2].indexOf(2) == 1 && [1, 2, 2].lastIndexOf(2) == 2",
        "'tacocat'.charAt(3) == 'o' && 'abc'.indexOf('c') == 2 && 'abab'.lastIndexOf('ab') == 2",
        "'AbC'.lowerAscii() == 'abc' && 'AbC'.upperAscii() == 'ABC' && ' a '.trim() == 'a'",
        "'a,b,c'.split(',') == ['a', 'b', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c']",
        "'hello'.substring(1, 3) == 'el' && 'hello'.substring(3) == 'lo'",
        "['a', 'b'].join('-') == 'a-b'",
        "'%d of %s: %.2f'.format([1, 'x', 1.5]) == '1 of x: 1.50'",
        "strings.quote('a\"b') == '\"a\\\\\"b\"'",
        "'abc 123'.find('[0-9]+') == '123' && '1 2 3'.findAll('[0-9]', 2) == ['1', '2']",
        "url('https://u@example.com:80/p?a=1&a=2').getHostname() == 'example.com'",
        "url('https://example.com:80/p?a=1&a=2').getQuery()['a'] == ['1', '2']",
        "isURL('https://a.b/c') && !isURL('a b')",
        "ip('10.0.0.1').family() == 4 && isIP('::1') && !isIP('x') && ip('127.0.0.1').isLoopback()",
        "cidr('10.0.0.0/8').containsIP('10.1.2.3') && !cidr('10.0.0.0/8').containsIP('11.0.0.1')",
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8')",
        "quantity('1.5Gi').isGreaterThan(quantity('1Gi')) && quantity('1').compareTo(quantity('1000m')) == 0",
        "quantity('50k').add(20).sub(quantity('20')).asInteger() == 50000 && isQuantity('1Mi') && !isQuantity('x')",
        "semver('1.2.3').isLessThan(semver('1.10.0')) && isSemver('1.0.0-rc.1') && semver('v1.2', true).minor() == 2",
        "format.dns1123Label().validate('a-b') == optional.none()",
        "format.named('uuid').value().validate('x').hasValue()",
        "sets.contains([1, 2, 3], [2]) && sets.equivalent([1, 2], [2, 1]) && sets.intersects([1], [1, 2])",
        "optional.of(1).optMap(x, x + 1).value() == 2 && !optional.none().hasValue()",
        "[3, 1, 2].sort() == [1, 2, 3] && ['bb', 'a'].sortBy(x, size(x)) == ['a', 'bb']",
        "lists.range(3) == [0, 1, 2] && [[1], [2]].flatten() == [1, 2] && [1, 1].distinct() == [1]",
        "[1, 2, 3].slice(1, 3) == [2, 3] && [1, 2].first().value() == 1 && [1, 2].reverse() == [2, 1]",
        "{'a': 1}.transformMap(k, v, v + 1) == {'a': 2} && [5].transformList(i, v, i + v) == [5]",
        "int('5') == 5 && double('1.5') == 1.5 && string(5) == '5' && uint(3) == 3u && bool('true')",
        "1 < 1.5 && 2u > 1 && 1 == 1 && 5 % 3 == 2 && -7 / 2 == -3",
        "(1 / 0 == 1) || true",
        "r'\\d' == '\\\\d' && \"\\u00e9\" == 'é' && '''a\nb''' == 'a\\nb' // a comment",
        "dyn(1) == 1.0 && null == null && !(dyn(1) == 'a')",
        "[?optional.of(1), ?optional.none()] == [1] && {?'a': optional.none()} == {}",
        "self.l[?7].orValue('x') == 'x' && self.m[?'one'].value() == 1",
        "self.ml == [1].map(x, self.ml[0]) + [self.ml[1]]",
        "0x10 == 16 && 1e2 == 100.0 && .5 == 0.5 && -1 == 0 - 1 && --1 == 1",
    ] {
        assert_eq!(evaluate(rule), Ok(true), "{rule}");
    }
}

#[test]
fn rules_that_fail_while_they_are_evaluated() {
    for (rule, why) in [
        ("self.l[3] == 'x'", "index out of bounds: 3"),
        ("self.m['three'] == 1", "no such key: three"),
        ("self.absent == ''", "no such key: absent"),
        ("1 / (self.i - 7) == 1", "division by zero"),
        ("1 % (self.i - 7) == 1", "modulus by zero"),
        ("9223372036854775807 + self.i > 0", "integer overflow"),
        ("self.ios > 5", "no such overload"),
        ("[].max() == 1", "max called on empty list"),
        ("'abc'.substring(2, 1) == ''", "invalid substring range. start: 2, end: 1"),
        ("int(self.s) == 1", "type conversion error from 'string' to 'int'"),
        ("lists.range(100000000).size() > 0", "operation cancelled: actual cost limit exceeded"),
    ] {
        assert_eq!(evaluate(rule), Err(why.to_owned()), "{rule}");
    }
}

#[test]
fn rules_that_cannot_be_compiled() {
    for (rule, why) in [
        (
            "self.nothing == 1",
            "ERROR: <input>:1:5: undefined field 'nothing'\n | self.nothing == 1\n | ....^",
        ),
        (
            "nothing",
            "ERROR: <input>:1:1: undeclared reference to 'nothing' (in container '')\n | nothing\n | ^",
        ),
        (
            "nothing(1)",
            "ERROR: <input>:1:8: undeclared reference to 'nothing' (in container '')\n | nothing(1)\n | .......^",
        ),
        (
            "self.i == 'x'",
            "ERROR: <input>:1:8: found no matching overload for '_==_' applied to '(int, string)'\n | self.i == 'x'\n | .......^",
        ),
        (
            "self.s.size('x') == 1",
            "ERROR: <input>:1:12: found no matching overload for 'size' applied to 'string.(string)'\n | self.s.size('x') == 1\n | ...........^",
        ),
        (
            "self.i.all(x, true)",
            "ERROR: <input>:1:5: expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)\n | self.i.all(x, true)\n | ....^",
        ),
        (
            "self.i && true",
            "ERROR: <input>:1:5: expected type 'bool' but found 'int'\n | self.i && true\n | ....^",
        ),
        (
            "self.s.x",
            "ERROR: <input>:1:7: type 'string' does not support field selection\n | self.s.x\n | ......^",
        ),
        (
            "[1, 'a'] == []",
            "ERROR: <input>:1:5: expected type 'int' but found 'string'\n | [1, 'a'] == []\n | ....^",
        ),
        (
            "self.s.matches('(')",
            "ERROR: <input>:1:16: invalid matches argument\n | self.s.matches('(')\n | ...............^",
        ),
        ("namespace == 1", "ERROR: <input>:1:1: reserved identifier: namespace\n | namespace == 1\n | ^"),
        ("self.i", "OtherType"),
        ("self.i ==", "ERROR: <input>:1:10: Syntax error: unexpected '<EOF>'\n | self.i ==\n | .........^"),
    ] {
        assert_eq!(evaluate(rule), Err(why.to_owned()), "{rule}");
    }
}

/// Deep nesting of every kind must be refused or evaluated, on the stack of a worker thread.
#[test]
fn deep_expressions_do_not_overflow_the_stack() {
    let many = |part: &str, count: usize| part.repeat(count);
    let nested = [
        format!("{}true{}", many("(", 10_000), many(")", 10_000)),
        format!("{}true{}", many("(", 50), many(")", 50)),
        format!("{}1{} == []", many("[", 10_000), many("]", 10_000)),
        format!("{}true", many("!", 10_000)),
        format!("1{} > 0", many(" + 1", 10_000)),
        format!("1{} > 0", many(" + 1", 150)),
        format!("true{}", many(" && true", 10_000)),
        format!("{}true{}", many("true ? ", 55), many(" : false", 55)),
        format!("self{}", many(".s", 10_000)),
        format!("{}true{}", many("[1].all(x, ", 55), many(")", 55)),
        format!("{}true{}", many("[1].all(x, ", 10_000), many(")", 10_000)),
        format!("'a'{} == 'a'", many(".trim()", 150)),
        format!("optional.of(1){}.hasValue()", many(".optMap(x, x)", 150)),
    ];
    let run = move || nested.iter().for_each(|rule| drop(evaluate(rule)));
    std::thread::Builder::new().stack_size(1 << 20).spawn(run).unwrap().join().unwrap();
}

/// Whatever is written in a rule, it is refused or evaluated.
#[test]
fn no_text_makes_it_panic() {
    const PARTS: &[&str] = &[
        "self",
        ".s",
        ".i",
        ".l",
        ".m",
        ".ml",
        ".o",
        ".t",
        ".d",
        ".ios",
        ".n",
        "[",
        "]",
        "(",
        ")",
        "{",
        "}",
        ",",
        ":",
        "?",
        " && ",
        " || ",
        " == ",
        " != ",
        " < ",
        " + ",
        " - ",
        " * ",
        " / ",
        " % ",
        " in ",
        "!",
        "-",
        "1",
        "0",
        "2.5",
        "3u",
        "'a'",
        "'é'",
        "b'x'",
        "true",
        "null",
        "x",
        ".all(x, ",
        ".exists(x, ",
        ".map(x, ",
        ".filter(x, ",
        ".size()",
        "has(self.s)",
        ".substring(1)",
        ".split('')",
        ".split('', 1)",
        ".replace('', 'b')",
        ".charAt(0)",
        ".lastIndexOf('l', 2)",
        ".indexOf('')",
        ".format([1])",
        "'%s%d%x'",
        ".optMap(x, x)",
        ".orValue(1)",
        "[?",
        ".?",
        "duration('1h')",
        "timestamp('2024-01-01T00:00:00Z')",
        "quantity('1Ki')",
        "ip('::1')",
        "cidr('::/0')",
        "semver('1.2.3')",
        ".masked()",
        "url('/a?b=%zz')",
        ".getQuery()",
        ".slice(0, 9)",
        ".flatten()",
        ".sort()",
        ".sortBy(x, x)",
        ".matches('a*')",
        ".findAll('')",
        "-9223372036854775808",
        "9223372036854775807",
        "1e308",
        ".sum()",
        ".getHours('+99:99')",
        "`",
        "\u{0}",
        "int(",
        "string(",
        "uint(",
        "double(",
        "type(",
        "dyn(",
        "sets.contains(",
        "lists.range(",
        ".join('')",
        ".reverse()",
    ];
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move |most: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % most as u64) as usize
    };
    for _ in 0..4_000 {
        let rule: String = (0..1 + random(12)).map(|_| PARTS[random(PARTS.len())]).collect();
        drop(evaluate(&rule));
    }
}
