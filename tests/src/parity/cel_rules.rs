//! Custom resources: validation rules in CEL, with valid and invalid values.

use super::{Behaviour, Script};
use crate::compare::Request;
use crate::compare::exchange::media;
use serde_json::{Value, json};
use std::time::Duration;
use windlass_clock::Clock;

const TEXT: &str = r#"{"type":"string","maxLength":64}"#;
const WHOLE: &str = r#"{"type":"integer"}"#;
const NUMBER: &str = r#"{"type":"number"}"#;
const EITHER: &str = r#"{"x-kubernetes-int-or-string":true,"maxLength":16}"#;
const TEXTS: &str = r#"{"type":"array","maxItems":8,"items":{"type":"string","maxLength":16}}"#;
const SET: &str = r#"{"type":"array","x-kubernetes-list-type":"set","maxItems":8,"items":{"type":"string","maxLength":16}}"#;
const WHOLES: &str = r#"{"type":"array","maxItems":8,"items":{"type":"integer"}}"#;
const MAP: &str = r#"{"type":"object","maxProperties":8,"additionalProperties":{"type":"integer"}}"#;
const OBJECT: &str = r#"{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"},"s":{"type":"string","maxLength":16,"nullable":true},"x-y":{"type":"string","maxLength":8},"namespace":{"type":"string","maxLength":8},"u":{"x-kubernetes-preserve-unknown-fields":true}}}"#;
const ITEMS: &str = r#"{"type":"array","maxItems":8,"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string","maxLength":8},"v":{"type":"integer"}}}}"#;
const TIME: &str = r#"{"type":"string","format":"date-time"}"#;
const DATE: &str = r#"{"type":"string","format":"date"}"#;
const SPAN: &str = r#"{"type":"string","format":"duration"}"#;
const BYTES: &str = r#"{"type":"string","format":"byte","maxLength":64}"#;
const RESOURCE: &str = r#"{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true,"properties":{"spec":{"type":"object","properties":{"n":{"type":"integer"}}}}}"#;

/// A schema, a rule about it, and values that are created one after the other.
type Row = (&'static str, &'static str, &'static [&'static str]);

const RULES: &[(&str, &[Row])] = &[
    (
        "operators",
        &[
            (WHOLE, "self > 3 && self <= 10 || self == 0", &["4", "3", "0"]),
            (WHOLE, "self % 2 == 0 && self / 2 < 5 && -self < 0 && self * 2 - 1 > 2", &["4", "5"]),
            (WHOLE, "self + 9223372036854775807 > 0", &["0", "1"]),
            (WHOLE, "10 / self > 1", &["5", "0", "100"]),
            (WHOLE, "10 % self == 0", &["5", "0"]),
            (NUMBER, "self > 1 && self < 2.5", &["1.5", "3", "2"]),
            (NUMBER, "self + 1.5 == 3.0 || self / 0.0 > 1.0", &["1.5", "1"]),
            (TEXT, "self == 'a' ? true : self.size() == 3", &["\"a\"", "\"abc\"", "\"ab\""]),
            (TEXT, "!(self < 'm')", &["\"n\"", "\"a\""]),
            (WHOLE, "1 / self == 1 || self == 0", &["0", "1"]),
            (WHOLE, "self == 0 || 1 / (self - 5) == 1", &["6", "5", "0"]),
            (WHOLE, "self in [1, 2, 3]", &["2", "4"]),
            (WHOLE, "{1: 'a', 2: 'b'}[self] == 'a'", &["1", "2", "3"]),
            (WHOLE, "[10, 20][self] == 20", &["1", "0", "7", "-1"]),
            (WHOLE, "uint(self) > 3u && int('7') == 7 && double(self) > 0.5", &["4", "3", "-1"]),
            (WHOLE, "dyn(self) == 1.0 || type(self) == string", &["1", "2"]),
        ],
    ),
    (
        "strings",
        &[
            (
                TEXT,
                "self.startsWith('ab') && self.endsWith('yz') && self.contains('mm')",
                &["\"abmmyz\"", "\"abyz\""],
            ),
            (TEXT, "self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')", &["\"a-b\"", "\"-a\""]),
            (TEXT, "size(self) == 3 && self.charAt(1) == 'ö'", &["\"aöb\"", "\"a\"", "\"abc\""]),
            (TEXT, "self.charAt(3) == ''", &["\"abc\"", "\"ab\""]),
            (
                TEXT,
                "self.indexOf('b') == 1 && self.indexOf('b', 2) == 3 && self.lastIndexOf('b') == 3",
                &["\"abab\"", "\"ab\""],
            ),
            (TEXT, "self.lowerAscii() == 'abc' && self.upperAscii() == 'ABC'", &["\"aBc\"", "\"abd\""]),
            (
                TEXT,
                "self.replace('a', 'b') == 'bbc' && self.replace('a', 'b', 0) == self",
                &["\"aac\"", "\"c\""],
            ),
            (
                TEXT,
                "self.split(',') == ['a', 'b', 'c'] && self.split(',', 2)[1] == 'b,c'",
                &["\"a,b,c\"", "\"a\""],
            ),
            (TEXT, "self.substring(1) == 'bc' && self.substring(0, 1) == 'a'", &["\"abc\"", "\"b\"", "\"\""]),
            (TEXT, "self.substring(3, 2) == ''", &["\"abc\""]),
            (TEXT, "self.trim() == 'a' && self != 'a'", &["\" a\"", "\"a\""]),
            (TEXT, "'%s-%d-%.2f-%x'.format([self, 5, 1.5, 255]) == 'a-5-1.50-ff'", &["\"a\"", "\"b\""]),
            (TEXT, "strings.quote(self) == '\"a\\\\nb\"'", &["\"a\\nb\"", "\"a\""]),
            (
                TEXT,
                "self.find('[0-9]+') == '12' && self.findAll('[0-9]+') == ['12', '3']",
                &["\"a12b3\"", "\"a\""],
            ),
            (TEXTS, "self.join('-') == 'a-z'", &["[\"a\",\"z\"]", "[]"]),
            (TEXT, "int(self) > 5", &["\"6\"", "\"4\"", "\"x\""]),
            (TEXT, "bool(self)", &["\"true\"", "\"false\"", "\"x\""]),
        ],
    ),
    (
        "lists and maps",
        &[
            (TEXTS, "self.all(x, x.startsWith('a'))", &["[\"a\",\"ab\"]", "[\"b\"]", "[]"]),
            (
                TEXTS,
                "self.exists(x, x == 'a') && self.exists_one(x, x == 'b')",
                &["[\"a\",\"b\"]", "[\"a\",\"b\",\"b\"]"],
            ),
            (
                TEXTS,
                "self.map(x, x + '!') == ['a!'] || self.filter(x, x != 'a') == []",
                &["[\"a\"]", "[\"b\"]"],
            ),
            (
                TEXTS,
                "self.isSorted() && self.indexOf('b') == 1 && self.lastIndexOf('b') == 2",
                &["[\"a\",\"b\",\"b\"]", "[\"b\",\"a\"]"],
            ),
            (WHOLES, "self.sum() == 6 && self.min() == 1 && self.max() == 3", &["[1,2,3]", "[1]"]),
            (WHOLES, "self.max() > 0", &["[]"]),
            (WHOLES, "self[0] == 1", &["[1]", "[2]", "[]"]),
            (
                WHOLES,
                "self.sort() == [1, 2, 3] && self.distinct().size() == 3 && self.reverse()[0] == 3",
                &["[1,2,3]", "[3,1,2]"],
            ),
            (WHOLES, "self.slice(1, 2) == [2] && [self, [9]].flatten().size() == 4", &["[1,2,3]", "[1]"]),
            (
                WHOLES,
                "self == lists.range(3) && self.first().value() == 0 && self.last().orValue(5) == 2",
                &["[0,1,2]", "[]"],
            ),
            (
                WHOLES,
                "sets.contains(self, [1]) && !sets.intersects(self, [9]) && sets.equivalent(self, [2, 1, 1])",
                &["[1,2]", "[1,9]"],
            ),
            (SET, "self == ['b', 'a']", &["[\"a\",\"b\"]", "[\"a\"]"]),
            (SET, "(self + ['a', 'z']).size() == 3", &["[\"a\",\"b\"]", "[\"b\",\"c\"]"]),
            (MAP, "self.all(k, self[k] > 0) && 'a' in self", &[r#"{"a":1}"#, r#"{"a":0}"#, r#"{"b":1}"#]),
            (MAP, "self['a'] == 1", &[r#"{"a":1}"#, "{}"]),
            (MAP, "self.a == 1 && has(self.b)", &[r#"{"a":1,"b":2}"#, r#"{"a":1}"#]),
            (
                MAP,
                "self.exists(k, v, k == 'a' && v == 1) && self.transformMap(k, v, v + 1)['a'] == 2",
                &[r#"{"a":1}"#, r#"{"a":2}"#],
            ),
            (
                ITEMS,
                "self.exists(e, e.k == 'a' && e.v == 1) && self[0].k == 'a'",
                &[r#"[{"k":"a","v":1}]"#, r#"[{"k":"a"}]"#],
            ),
            (
                ITEMS,
                "self.sortBy(e, e.v).map(e, e.k) == ['b', 'a']",
                &[r#"[{"k":"a","v":2},{"k":"b","v":1}]"#, r#"[{"k":"a","v":1}]"#],
            ),
        ],
    ),
    (
        "objects",
        &[
            (OBJECT, "self.a <= self.b", &[r#"{"a":1,"b":2}"#, r#"{"a":3,"b":2}"#, r#"{"a":3}"#]),
            (OBJECT, "has(self.a) == has(self.b)", &[r#"{"a":1,"b":2}"#, r#"{"a":3}"#, "{}"]),
            (OBJECT, "!has(self.s) || self.s == 'x'", &[r#"{"s":null}"#, r#"{"s":"x"}"#, r#"{"s":"y"}"#]),
            (
                OBJECT,
                "self.x__dash__y == 'a' && self.__namespace__ == 'b'",
                &[r#"{"x-y":"a","namespace":"b"}"#, r#"{"x-y":"b"}"#],
            ),
            (
                OBJECT,
                "self.?a.orValue(5) == 5 && self.?s.hasValue()",
                &[r#"{"s":"x"}"#, r#"{"a":6,"s":"x"}"#, "{}"],
            ),
            (
                OBJECT,
                "optional.of(self.a).optMap(x, x + 1).value() == 2",
                &[r#"{"a":1}"#, r#"{"a":2}"#, "{}"],
            ),
            (OBJECT, "self.?s.or(optional.of('z')).value() == 'z'", &["{}", r#"{"s":"a"}"#]),
            (OBJECT, "[?self.?a, ?self.?b].size() == 1", &[r#"{"a":1}"#, r#"{"a":1,"b":2}"#]),
            (
                RESOURCE,
                "self.kind == 'Pod' && self.metadata.name == 'a'",
                &[
                    r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}"#,
                    r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}"#,
                ],
            ),
            (
                RESOURCE,
                "has(self.spec) && self.spec.n == 1",
                &[
                    r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"n":1}}"#,
                    r#"{"apiVersion":"v1","kind":"Pod"}"#,
                ],
            ),
            (EITHER, "type(self) == int ? self < 5 : self.endsWith('%')", &["4", "5", "\"5%\"", "\"5\""]),
            (EITHER, "self > 5", &["6", "\"6\""]),
            (EITHER, "self == 5 || self == 'five'", &["5", "\"five\"", "6"]),
        ],
    ),
    (
        "times and bytes",
        &[
            (
                TIME,
                "self > timestamp('2020-01-01T00:00:00Z') && self.getFullYear() == 2024",
                &["\"2024-05-06T07:08:09Z\"", "\"2019-01-01T00:00:00Z\""],
            ),
            (
                TIME,
                "self.getMonth() == 4 && self.getDate() == 6 && self.getDayOfWeek() == 1 && self.getHours() == 7",
                &["\"2024-05-06T07:08:09Z\"", "\"2024-05-07T07:08:09Z\""],
            ),
            (
                TIME,
                "self + duration('1h') == timestamp('2024-01-01T01:00:00Z') && string(self) != ''",
                &["\"2024-01-01T00:00:00Z\"", "\"2024-01-01T00:00:01Z\""],
            ),
            (DATE, "self.getDayOfYear() == 0", &["\"2024-01-01\"", "\"2024-01-02\""]),
            (SPAN, "self >= duration('1h') && self.getMinutes() == 90", &["\"1h30m\"", "\"5s\""]),
            (SPAN, "string(self) == '5400s'", &["\"1h30m\"", "\"1h\""]),
            (BYTES, "self == b'hi' && string(self) == 'hi' && size(self) == 2", &["\"aGk=\"", "\"aGV5\""]),
        ],
    ),
    (
        "addresses, amounts and versions",
        &[
            (
                TEXT,
                "isURL(self) && url(self).getScheme() == 'https' && url(self).getPort() == '8443'",
                &["\"https://a.example.com:8443/b?c=d\"", "\"https://a\"", "\"a b\""],
            ),
            (
                TEXT,
                "url(self).getHostname() == 'h' && url(self).getEscapedPath() == '/p' && url(self).getQuery()['q'] == ['1']",
                &["\"http://h:1/p?q=1\"", "\"http://h/p?q=2\""],
            ),
            (
                TEXT,
                "isIP(self) && ip(self).family() == 4 && !ip(self).isLoopback()",
                &["\"10.0.0.1\"", "\"::1\"", "\"127.0.0.1\"", "\"x\""],
            ),
            (TEXT, "ip.isCanonical(self)", &["\"::1\"", "\"0:0::1\""]),
            (
                TEXT,
                "isCIDR(self) && cidr('10.0.0.0/8').containsCIDR(self)",
                &["\"10.1.0.0/16\"", "\"11.0.0.0/16\"", "\"x\""],
            ),
            (TEXT, "cidr('10.0.0.0/8').containsIP(self)", &["\"10.1.2.3\"", "\"11.1.2.3\""]),
            (
                TEXT,
                "cidr(self).prefixLength() == 8 && cidr(self).masked() == cidr('10.0.0.0/8') && string(cidr(self).ip()) == '10.0.0.0'",
                &["\"10.0.0.0/8\"", "\"10.1.0.0/8\""],
            ),
            (
                TEXT,
                "isQuantity(self) && quantity(self).isGreaterThan(quantity('1Gi'))",
                &["\"1.5Gi\"", "\"1G\"", "\"x\""],
            ),
            (
                TEXT,
                "quantity(self).compareTo(quantity('1')) == 0 && quantity(self).asInteger() == 1",
                &["\"1000m\"", "\"2\"", "\"1.5\""],
            ),
            (
                TEXT,
                "quantity(self).add(quantity('500m')).sub(1).asApproximateFloat() == 0.5",
                &["\"1\"", "\"2\""],
            ),
            (
                TEXT,
                "isSemver(self) && semver(self).isLessThan(semver('1.10.0')) && semver(self).minor() == 2",
                &["\"1.2.3\"", "\"1.11.0\"", "\"1.2\""],
            ),
            (TEXT, "semver(self, true).compareTo(semver('1.2.0')) == 0", &["\"v1.2\"", "\"1.3\""]),
            (TEXT, "!format.dns1123Label().validate(self).hasValue()", &["\"a-b\"", "\"A\""]),
            (
                TEXT,
                "!format.named('dns1123Subdomain').value().validate(self).hasValue()",
                &["\"a.b\"", "\"a_b\""],
            ),
            (
                TEXT,
                "!format.uuid().validate(self).hasValue() || !format.named('nothing').hasValue() && self == 'x'",
                &["\"12345678-1234-1234-1234-123456789012\"", "\"x\"", "\"y\""],
            ),
        ],
    ),
];

/// Rules that are none: a schema and the rule.
const NONE: &[(&str, &[(&str, &str)])] = &[
    (
        "names",
        &[
            (OBJECT, "self.nothing == 1"),
            (OBJECT, "nothing == 1"),
            (OBJECT, "self.a == 1 && self.nothing.more == 2 && other"),
            (OBJECT, "nothing(self.a)"),
            (OBJECT, "self.s.nothing()"),
            (OBJECT, "self.namespace == 'a'"),
            (OBJECT, "self.u == 1"),
            (OBJECT, "namespace == 'a'"),
            (OBJECT, "Thing{a: 1} == self"),
            (TEXTS, "self.all(x, y)"),
            (RESOURCE, "self.metadata.labels == {}"),
        ],
    ),
    (
        "types",
        &[
            (OBJECT, "self.a"),
            (OBJECT, "self.a == 'x'"),
            (OBJECT, "self.a == 1.5"),
            (OBJECT, "self.a + self.s == 1"),
            (OBJECT, "self.a && true"),
            (OBJECT, "!self.a"),
            (OBJECT, "self.a ? true : false"),
            (OBJECT, "self.s.size(1) == 1"),
            (OBJECT, "self.s.a == 1"),
            (OBJECT, "self.a.all(x, true)"),
            (TEXTS, "self.all(x, x == 1)"),
            (TEXTS, "self.all(x, x)"),
            (TEXTS, "self.filter(x, x) == []"),
            (TEXTS, "self.exists_one(x, x)"),
            (TEXTS, "self.sum() == 1"),
            (TEXTS, "[1, 'a'] == [1]"),
            (TEXTS, "{'a': 1, 'b': 'c'} == {}"),
            (TEXTS, "self in ['a']"),
            (TEXTS, "self['a'] == 'a'"),
            (TEXT, "self.orValue('a') == 'a'"),
            (TEXT, "self == null"),
        ],
    ),
    (
        "constants",
        &[
            (TEXT, "self.matches('(')"),
            (TEXT, "self.find('[') == ''"),
            (TEXT, "duration('soon') == duration('1h')"),
            (TEXT, "timestamp('today') == timestamp('2024-01-01T00:00:00Z')"),
            (TEXT, "99999999999999999999 == 1"),
            (TEXT, "has(self)"),
            (TEXTS, "self.all(self.x, true)"),
        ],
    ),
];

/// The rules of a schema, written out; the first value is created, and the others follow as updates.
const TRANSITIONS: &[(&str, &str, &[&str])] = &[
    (
        "a field that is set once",
        r#"{"type":"object","properties":{"a":{"type":"integer","x-kubernetes-validations":[{"rule":"self == oldSelf","message":"a is set once"}]}}}"#,
        &[r#"{}"#, r#"{"a":1}"#, r#"{"a":1}"#, r#"{"a":2}"#],
    ),
    (
        "a field that only grows",
        r#"{"type":"object","properties":{"a":{"type":"integer"}},"x-kubernetes-validations":[{"rule":"!has(oldSelf.a) || has(self.a) && self.a >= oldSelf.a"}]}"#,
        &[r#"{"a":1}"#, r#"{"a":2}"#, r#"{"a":1}"#, r#"{}"#],
    ),
    (
        "items that are found by their keys",
        r#"{"type":"array","maxItems":8,"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string","maxLength":8},"v":{"type":"integer"}},"x-kubernetes-validations":[{"rule":"self.v == oldSelf.v","fieldPath":".v"}]}}"#,
        &[
            r#"[{"k":"a","v":1},{"k":"b","v":2}]"#,
            r#"[{"k":"b","v":2},{"k":"c","v":7},{"k":"a","v":1}]"#,
            r#"[{"k":"a","v":2}]"#,
        ],
    ),
    (
        "values of a map",
        r#"{"type":"object","maxProperties":8,"additionalProperties":{"type":"integer","x-kubernetes-validations":[{"rule":"self >= oldSelf","messageExpression":"'%d is less than %d'.format([self, oldSelf])"}]}}"#,
        &[r#"{"a":1}"#, r#"{"a":2,"b":1}"#, r#"{"a":1,"b":1}"#],
    ),
    (
        "an old value that may be absent",
        r#"{"type":"object","properties":{"a":{"type":"integer","x-kubernetes-validations":[{"rule":"oldSelf.hasValue() ? oldSelf.value() < self : self == 1","optionalOldSelf":true}]}}}"#,
        &[r#"{"a":1}"#, r#"{"a":2}"#, r#"{"a":2}"#, "{}", r#"{"a":5}"#],
    ),
    (
        "what was wrong before the rule",
        r#"{"type":"object","properties":{"a":{"type":"integer"},"o":{"type":"object","properties":{"b":{"type":"integer"},"c":{"type":"integer"}}}}}"#,
        &[r#"{"a":1,"o":{"b":1}}"#],
    ),
];

/// What a rule may say beside the rule, or not.
const EXTRAS: &[(&str, &str)] = &[
    (
        "a reason and a path",
        r#"[{"rule":"self.a == 1","reason":"FieldValueForbidden","fieldPath":".a","message":"no"}]"#,
    ),
    ("required", r#"[{"rule":"has(self.a)","reason":"FieldValueRequired","fieldPath":".a"}]"#),
    ("a duplicate", r#"[{"rule":"self.a == 1","reason":"FieldValueDuplicate","fieldPath":".s"}]"#),
    (
        "a message that is made",
        r#"[{"rule":"self.a == 1","messageExpression":"'not ' + self.s","message":"not one"}]"#,
    ),
    (
        "a message that cannot be made",
        r#"[{"rule":"self.a == 1","messageExpression":"self.s","message":"not one"}]"#,
    ),
    ("an empty rule", r#"[{"rule":" "}]"#),
    ("no such reason", r#"[{"rule":"true","reason":"Because"}]"#),
    (
        "no such path",
        r#"[{"rule":"true","fieldPath":".nothing"},{"rule":"true","fieldPath":"a"},{"rule":"true","fieldPath":".x['"}]"#,
    ),
    ("a path of blanks", r#"[{"rule":"true","fieldPath":" "}]"#),
    ("a message of two lines", r#"[{"rule":"true","message":"a\nb"},{"rule":"true","message":" "}]"#),
    ("a rule of two lines without a message", r#"[{"rule":"true &&\n true"}]"#),
    ("a rule of two lines", r#"[{"rule":"self.a == 1 &&\n true","message":"m"}]"#),
    (
        "a message that is no string",
        r#"[{"rule":"true","messageExpression":"1"},{"rule":"true","messageExpression":"self.nothing"}]"#,
    ),
    ("a message of blanks", r#"[{"rule":"true","messageExpression":" "}]"#),
    (
        "an old value that is not asked for",
        r#"[{"rule":"true","optionalOldSelf":true},{"rule":"true","optionalOldSelf":false}]"#,
    ),
    ("several", r#"[{"rule":"self.a == 1"},{"rule":"self.b == 1"},{"rule":"self.a == self.b"}]"#),
];

fn named(index: usize) -> String {
    format!("r{index:02}")
}

fn with_rules(schema: &str, rules: Value) -> anyhow::Result<Value> {
    let mut schema: Value = serde_json::from_str(schema)?;
    schema["x-kubernetes-validations"] = rules;
    Ok(schema)
}

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for (theme, rows) in RULES {
        all.push(Behaviour::new(format!("rules: {theme}"), move |mut script: Script| async move {
            let mut properties = json!({});
            for (index, (schema, rule, _)) in rows.iter().enumerate() {
                properties[named(index)] = with_rules(schema, json!([{"rule": rule}]))?;
            }
            let schema = json!({"type": "object", "properties": properties});
            let defined = script.define(script.with_spec(schema)).await?;
            for (index, (_, _, values)) in rows.iter().enumerate() {
                for (number, value) in values.iter().enumerate() {
                    let mut spec = json!({});
                    spec[named(index)] = serde_json::from_str(value)?;
                    let object = defined.object(&format!("w{index}-{number}"), json!({"spec": spec}));
                    script.post(&defined.objects, object).await?;
                }
            }
            Ok(script)
        }));
    }
    for (theme, rows) in NONE {
        all.push(Behaviour::new(
            format!("rules that are none: {theme}"),
            move |mut script: Script| async move {
                for (schema, rule) in *rows {
                    let schema = with_rules(schema, json!([{"rule": rule}]))?;
                    script.try_define(script.with_spec(schema)).await?;
                }
                Ok(script)
            },
        ));
    }
    for (name, schema, values) in TRANSITIONS {
        all.push(Behaviour::new(format!("rules: {name}"), move |mut script: Script| async move {
            let defined = script.define(script.with_spec(serde_json::from_str(schema)?)).await?;
            for (number, value) in values.iter().enumerate() {
                let spec: Value = serde_json::from_str(value)?;
                if number == 0 {
                    script.post(&defined.objects, defined.object("w", json!({"spec": spec}))).await?;
                } else {
                    // Patched by replacing, so that what is left out is gone.
                    let patch = json!([{"op": "replace", "path": "/spec", "value": spec}]);
                    script.edit(&defined.item("w"), patch).await?;
                }
            }
            Ok(script)
        }));
    }
    for (name, rules) in EXTRAS {
        all.push(Behaviour::new(format!("rules with {name}"), move |mut script: Script| async move {
            let schema = with_rules(OBJECT, serde_json::from_str(rules)?)?;
            let answer = script.try_define(script.with_spec(schema)).await?;
            if answer.is_success() {
                let defined = script.defined();
                script.until(&defined.objects, 200).await?;
                for (number, spec) in
                    [json!({"a": 2, "s": "x"}), json!({"a": 1, "b": 1})].into_iter().enumerate()
                {
                    let object = defined.object(&format!("w{number}"), json!({"spec": spec}));
                    script.post(&defined.objects, object).await?;
                }
            }
            Ok(script)
        }));
    }
    all.push(Behaviour::new("rules: forgiven where nothing changed", forgiven));
    all.push(Behaviour::new("rules: at the root", at_the_root));
    all.push(Behaviour::new("rules: not told where the object is confusing", confusing));
    all.push(Behaviour::new("rules: about a default", about_a_default));
    all.push(Behaviour::new("rules: estimated as too costly", too_costly));
    all.push(Behaviour::new("rules: old values where there are none", uncorrelated));
    all
}

/// Rules that come after the objects: what did not change is forgiven with a warning.
async fn forgiven(mut script: Script) -> anyhow::Result<Script> {
    let loose = json!({"type": "object", "properties": {
        "a": {"type": "integer"}, "o": {"type": "object", "properties": {"b": {"type": "integer"}, "c": {"type": "integer"}}}}});
    let mut strict = loose.clone();
    strict["properties"]["a"]["x-kubernetes-validations"] =
        json!([{"rule": "self > 5", "message": "too small"}]);
    strict["properties"]["o"]["x-kubernetes-validations"] = json!([{"rule": "self.b > 5"}]);
    let defined = script.define(script.with_spec(loose)).await?;
    let object = defined.object("w", json!({"spec": {"a": 1, "o": {"b": 1, "c": 1}}}));
    script.post(&defined.objects, object).await?;
    let definition = script.with_spec(strict);
    let versions = json!({"spec": {"versions": definition["spec"]["versions"]}});
    script.quiet(Request::new("PATCH", defined.path.clone()).body(media::MERGE_PATCH, versions)).await?;
    let probe = defined.object("probe", json!({"spec": {"a": 1}}));
    let posts = Request::new("POST", &defined.objects).with("dryRun", "All");
    for _ in 0..200 {
        let request = posts.clone().body(media::JSON, probe.clone());
        if script.quiet(request).await?.status == 422 {
            break;
        }
        Clock::real().sleep(Duration::from_millis(40)).await;
    }
    for patch in [
        json!({"metadata": {"labels": {"x": "y"}}}),
        json!({"spec": {"o": {"c": 2}}}),
        json!({"spec": {"a": 2}}),
        json!({"spec": {"a": 7}}),
        json!({"spec": {"o": {"b": 8}}}),
    ] {
        script.merge(&defined.item("w"), patch).await?;
    }
    Ok(script)
}

async fn at_the_root(mut script: Script) -> anyhow::Result<Script> {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {"type": "integer"}}}},
    "x-kubernetes-validations": [
        {"rule": "self.metadata.name.startsWith('w')"},
        {"rule": "self.kind == 'Widget' && self.apiVersion.endsWith('/v1')"},
        {"rule": "!has(self.spec) || self.spec.a < 5", "fieldPath": ".spec.a"},
    ]});
    let defined = script.define(script.definition(schema)).await?;
    for (name, fields) in [("w1", json!({})), ("x1", json!({})), ("w2", json!({"spec": {"a": 5}}))] {
        script.post(&defined.objects, defined.object(name, fields)).await?;
    }
    Ok(script)
}

async fn confusing(mut script: Script) -> anyhow::Result<Script> {
    let schema = json!({"type": "object", "required": ["b"], "properties": {"a": {"type": "integer"}, "b": {"type": "string", "maxLength": 3}},
        "x-kubernetes-validations": [{"rule": "self.a == 1"}]});
    let defined = script.define(script.with_spec(schema)).await?;
    for spec in [
        json!({"a": 2}),
        json!({"a": "x", "b": "y"}),
        json!({"a": 2, "b": "long"}),
        json!({"a": 2, "b": "y"}),
    ] {
        script.post(&defined.objects, defined.object("w", json!({"spec": spec}))).await?;
    }
    Ok(script)
}

async fn about_a_default(mut script: Script) -> anyhow::Result<Script> {
    for (default, rule) in [(1, "self > 0"), (-1, "self > 0"), (1, "self == oldSelf")] {
        let schema = json!({"type": "object", "properties": {"a": {"type": "integer", "default": default,
            "x-kubernetes-validations": [{"rule": rule}]}}});
        let answer = script.try_define(script.with_spec(schema)).await?;
        if answer.is_success() {
            let path = script.defined().path;
            script.quiet(Request::new("DELETE", path.clone())).await?;
            script.until(&path, 404).await?;
        }
    }
    Ok(script)
}

async fn uncorrelated(mut script: Script) -> anyhow::Result<Script> {
    for list in ["atomic", "set"] {
        let schema = json!({"type": "array", "maxItems": 8, "x-kubernetes-list-type": list, "items": {"type": "string", "maxLength": 8,
            "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}});
        script.try_define(script.with_spec(schema)).await?;
    }
    Ok(script)
}

/// Without bounds in the schema a rule may cost more than is allowed, before there is any object.
async fn too_costly(mut script: Script) -> anyhow::Result<Script> {
    let schema = json!({"type": "array", "items": {"type": "string"},
        "x-kubernetes-validations": [{"rule": "self.all(x, self.all(y, x == y))"}]});
    script.try_define(script.with_spec(schema)).await?;
    Ok(script)
}
