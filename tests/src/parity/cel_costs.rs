//! Validation rules that could cost too much: the error has the estimated cost. Each is for a million items, so
//! that the factor by which it exceeds what one may cost is a tenth of the cost for one of them.

use super::{Behaviour, Script};
use serde_json::{Value, json};

const ITEMS: u64 = 1_000_000;

/// Rules about [`item`]. Those that cost more than a thousand are only told to do so.
const RULES: &[&str] = &[
    "true",
    "self.b",
    "self.i > 3 && self.i < 5 || self.b && self.i == 2 && self.i != 7",
    "self.i + 1 == 2 && self.i * 2 - 3 > -self.i && self.i / 2 % 3 == 1 && !self.b",
    "has(self.s) && has(self.o.a) && self.o.a == self.s && self.s != 'abc' && self.s == self.t",
    "self.s < self.t && self.s >= 'abcdefghijklmnop' && self.i < 3 && self.i < 4 && self.i < 5",
    "self.s.startsWith(self.t) && self.s.endsWith('abc') && self.s.contains(self.t) && self.b && self.b",
    "self.s.matches('^[a-z]+$') && self.t.matches('a') && self.b && self.b && self.b && self.b",
    "self.s + self.t + 'abc' == self.t + self.s",
    "size(self.s) + self.l.size() + size(self.m) > 3 && self.b && self.b && self.b && self.b",
    "self.s in self.l && self.s in ['a', 'b'] && 'k' in self.m && 3 in [1, 2, 3]",
    "self.l[0] == self.l[1] && self.m['a'] == 3 && self.k[0].a == 'x' && self.l[0] + 'a' == 'b'",
    "self.l.all(x, x == 'a')",
    "self.l.exists(x, x.startsWith('a'))",
    "self.l.exists_one(x, x == self.s)",
    "self.l.map(x, x + 'a') == ['b']",
    "self.l.map(x, x != 'a', x + 'a').all(y, y == self.s)",
    "self.l.filter(x, x != self.s).size() == 3",
    "self.l.filter(x, x != self.s).all(y, y == 'a')",
    "self.m.all(x, self.m[x] == 3)",
    "self.m.exists(x, x == 'abc' && self.m[x] > 2)",
    "self.k.all(x, x.a == 'abc' && x.n > 3)",
    "self.k.all(x, self.k.all(y, x.a != y.a || x.n == y.n))",
    "self.b ? self.s == 'abc' : self.t == 'abc' && self.l.all(x, x == 'a')",
    "(self.b ? self.s : self.t) == self.o.a && self.b && self.b && self.b && self.b",
    "['a', self.s, 'ccc'].all(x, x == self.t)",
    "[1, 2, 3].all(x, x > self.i) && self.o.n.all(x, x > 1)",
    "{'a': 1, 'b': 2}.all(k, k == self.s) && {'a': self.s}['a'] == 'b'",
    "[[1, 2], [3]].all(x, x.all(y, y > self.i))",
    "dyn(self.s) == dyn(self.i) && dyn(self.l).all(x, x == 'a')",
    "type(self.i) == int && string(self.i) == self.s && int(self.s) == 3 && double(self.i) > 1.5",
    "self.d > duration('1h') && self.d == duration('1m') && self.b && self.b && self.b",
    "self.l.isSorted() && self.o.n.sum() > 3 && self.l.max() == 'a' && self.o.n.min() == 1",
    "self.l.indexOf('a') == 1 && self.s.indexOf('a') == 2 && self.s.lastIndexOf(self.t) == 1",
    "self.s.lowerAscii() == self.s.upperAscii() && self.s.trim() == self.s.substring(1, 2)",
    "self.s.replace('a', 'bcd') == 'x' && self.s.replace(self.t, '') == 'x' && self.s.replace('', 'ab') == self.t",
    "self.s.split(',').all(x, x == 'a')",
    "self.s.split(',', 3).all(x, x == 'a')",
    "self.l.join() == self.s && self.l.join(', ') == self.s",
    "self.s.find('[a-z]+') == 'a' && self.s.findAll('[a-z]').all(x, x == 'a')",
    "url('https://a/b').getHost() == self.s && isURL(self.s)",
    "quantity(self.s).isGreaterThan(quantity('1Gi')) && isQuantity(self.t) && self.b",
    "ip(self.s) == ip('10.0.0.1') && isIP(self.t) && ip.isCanonical(self.s) && ip(self.s).family() == 4",
    "cidr(self.s).containsIP(self.t) && cidr(self.s).containsCIDR('10.0.0.0/8') && cidr(self.t).ip() == ip('::1')",
    "sets.contains(self.l, ['a', 'b']) && sets.equivalent(self.l, self.l) && sets.intersects(self.o.n, [1])",
    "self.?s.orValue('a') == self.t && self.?o.?a.hasValue() && self.b && self.b && self.b",
    "self.?s.optMap(x, x + 'a').orValue('b') == 'c'",
    "self.e == 3 || self.e == 'abc' && self.b && self.b && self.b && self.b && self.b",
    "type(self.e) == string && self.e.matches('^a') && self.b && self.b && self.b",
    "self.q == 'one' && self.q == self.s && self.q.matches('^o') && self.b && self.b && self.b",
    "'%s %d'.format([self.s, self.i]) == self.t",
    "self.l.all(i, v, v == 'a' && i < 3)",
    "self.m.all(k, v, v == 3 && k != 'a')",
    "self.l.transformList(i, v, v + 'a').all(x, x == 'b')",
    "self.m.transformMap(k, v, v + 1).all(k, k == 'a')",
    "self.l.distinct().size() == 3 && self.o.n.sort() == [1, 2]",
    "self.l.slice(0, 2) == ['a'] && self.o.n.reverse() == [1] && lists.range(3).all(x, x > self.i)",
    "self.k.sortBy(x, x.n).size() > 1",
    "format.dns1123Label().validate(self.s).hasValue() && self.b",
    "semver(self.s).isGreaterThan(semver('1.0.0')) && isSemver(self.t) && semver(self.s).major() == 1",
];

/// Schemas without bounds, and rules about them.
const UNBOUNDED: &[(&str, &str, &str)] = &[
    ("a text", r#"{"type": "string"}"#, "self.matches('^[a-z]+$')"),
    ("a list of texts", r#"{"type": "array", "items": {"type": "string"}}"#, "self.all(x, x == 'a')"),
    (
        "a list of numbers",
        r#"{"type": "array", "items": {"type": "integer"}}"#,
        "self.all(x, x > 1 && x < 5)",
    ),
    (
        "a map of truths",
        r#"{"type": "object", "additionalProperties": {"type": "boolean"}}"#,
        "self.all(x, self[x])",
    ),
    (
        "a list of what has much",
        r#"{"type": "array", "items": {"type": "object", "required": ["name", "other"], "properties": {"name": {"type": "string"}, "other": {"type": "string", "format": "date-time"}}}}"#,
        "self.all(x, x.name != 'a')",
    ),
    (
        "pairs of a list",
        r#"{"type": "array", "maxItems": 1000, "items": {"type": "string", "maxLength": 20}}"#,
        "self.all(x, self.exists_one(y, x == y))",
    ),
    ("a text in bytes", r#"{"type": "string", "format": "byte", "maxLength": 1000}"#, "string(self) == 'a'"),
];

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for rule in RULES {
        all.push(Behaviour::new(format!("costs: {rule}"), move |mut script: Script| async move {
            let list = json!({"type": "array", "maxItems": ITEMS, "items": item(rule)});
            let spec = json!({"type": "object", "properties": {"list": list}});
            script.try_define(script.with_spec(spec)).await?;
            Ok(script)
        }));
    }
    for (name, schema, rule) in UNBOUNDED {
        all.push(Behaviour::new(
            format!("costs: {name} without bounds"),
            move |mut script: Script| async move {
                let mut schema: Value = serde_json::from_str(schema)?;
                schema["x-kubernetes-validations"] =
                    json!([{"rule": rule, "messageExpression": format!("string({rule})")}]);
                let list = json!({"type": "array", "items": schema});
                let spec = json!({"type": "object", "properties": {"one": schema, "list": list}});
                script.try_define(script.with_spec(spec)).await?;
                Ok(script)
            },
        ));
    }
    all
}

/// What the rules are about.
fn item(rule: &str) -> Value {
    let text = |length: u64| json!({"type": "string", "maxLength": length});
    let numbers = json!({"type": "array", "maxItems": 3, "items": {"type": "integer"}});
    let pair = json!({"type": "object", "properties": {"a": text(5), "n": {"type": "integer"}}});
    json!({
        "type": "object",
        "properties": {
            "s": text(10), "t": text(3), "i": {"type": "integer"}, "b": {"type": "boolean"},
            "l": {"type": "array", "maxItems": 5, "items": text(2)},
            "m": {"type": "object", "maxProperties": 4, "additionalProperties": {"type": "integer"}},
            "o": {"type": "object", "properties": {"a": text(5), "n": numbers}},
            "k": {"type": "array", "maxItems": 3, "items": pair},
            "d": {"type": "string", "format": "duration"},
            "e": {"x-kubernetes-int-or-string": true, "maxLength": 7},
            "q": {"type": "string", "enum": ["one", "three"]},
        },
        "x-kubernetes-validations": [{"rule": rule}],
    })
}
