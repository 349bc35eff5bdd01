//! Variables of a policy: lazy, composed, and typed.

use super::{Kind, only, writes};
use crate::parity::Behaviour;
use serde_json::json;

const POLICIES: &[(&str, &str)] = &[
    (
        "one variable",
        r#"{"variables":[{"name":"x","expression":"object.data.x"}],"validations":[{"expression":"variables.x == '1'"}]}"#,
    ),
    (
        "variables of variables",
        r#"{"variables":[{"name":"x","expression":"object.?data.?x.orValue('0')"},{"name":"n","expression":"int(variables.x)"},{"name":"big","expression":"variables.n > 2"}],"validations":[{"expression":"!variables.big","messageExpression":"'too big: ' + variables.x"}]}"#,
    ),
    (
        "a variable that fails and is not used",
        r#"{"variables":[{"name":"x","expression":"object.missing.y"}],"validations":[{"expression":"true"}]}"#,
    ),
    (
        "a variable that fails and need not be used",
        r#"{"variables":[{"name":"x","expression":"object.missing.y"}],"validations":[{"expression":"true || variables.x"}]}"#,
    ),
    (
        "a variable that fails",
        r#"{"variables":[{"name":"x","expression":"object.missing.y"}],"validations":[{"expression":"variables.x == 1"}]}"#,
    ),
    (
        "a variable that fails in another",
        r#"{"variables":[{"name":"x","expression":"object.missing.y"},{"name":"y","expression":"variables.x"}],"validations":[{"expression":"variables.y == 1"}]}"#,
    ),
    (
        "a list",
        r#"{"variables":[{"name":"x","expression":"['a', 'bc'].filter(n, n == request.name)"}],"validations":[{"expression":"size(variables.x) == 0"}]}"#,
    ),
    (
        "a map",
        r#"{"variables":[{"name":"x","expression":"{'a': 1, 'bc': 2}"}],"validations":[{"expression":"!(request.name in variables.x) || variables.x[request.name] == 2"}]}"#,
    ),
    (
        "a variable that is tested",
        r#"{"variables":[{"name":"x","expression":"object.metadata"}],"validations":[{"expression":"has(variables.x) && has(variables.x.labels)"}]}"#,
    ),
    (
        "a variable in a macro",
        r#"{"variables":[{"name":"x","expression":"request.name"}],"validations":[{"expression":"['a', 'b'].all(x, x != variables.x)"}]}"#,
    ),
    (
        "the authorizer in a variable",
        r#"{"variables":[{"name":"may","expression":"authorizer.requestResource.check('delete').allowed()"}],"validations":[{"expression":"!variables.may","message":"it may"}]}"#,
    ),
    (
        "the authorizer in a variable of a message",
        r#"{"variables":[{"name":"may","expression":"authorizer.requestResource.check('delete').allowed()"}],"validations":[{"expression":"false","message":"static","messageExpression":"string(variables.may)"}]}"#,
    ),
    (
        "an object of the request",
        r#"{"variables":[{"name":"user","expression":"request.userInfo"}],"validations":[{"expression":"variables.user.username == ''","message":"somebody"}]}"#,
    ),
    (
        "quantities",
        r#"{"variables":[{"name":"q","expression":"quantity('2Gi')"}],"validations":[{"expression":"variables.q.isLessThan(quantity('1Gi'))"}]}"#,
    ),
    (
        "a variable that costs too much",
        r#"{"variables":[{"name":"x","expression":"[1,2,3].all(i, authorizer.path('/a').check('get').allowed())"}],"validations":[{"expression":"variables.x"}]}"#,
    ),
    (
        "nothing",
        r#"{"variables":[{"name":"x","expression":"null"}],"validations":[{"expression":"variables.x != null"}]}"#,
    ),
];

/// Expressions in libraries that policies know, of which each must hold.
const HOLDING: &[(&str, &str)] = &[
    ("texts", "'a-b'.split('-') == ['a', 'b'] && 'Ab'.lowerAscii() == 'ab' && 'abc'.substring(1) == 'bc'"),
    ("formats", "!format.dns1123Label().validate('Not').hasValue() || true"),
    ("networks", "ip('10.0.0.1').family() == 4 && cidr('10.0.0.0/8').containsIP('10.1.2.3')"),
    ("URLs", "url('https://a.b/c').getHost() == 'a.b'"),
    ("patterns", "'a1b'.find('[0-9]') == '1' && 'ab'.matches('^a')"),
    ("lists", "[3, 1, 2].max() == 3 && [1, 2].sum() == 3 && ['a'].isSorted()"),
    ("optional values", "object.?spec.?x.orValue(1) == 1 && optional.none().orValue(2) == 2"),
    (
        "times",
        "timestamp('2020-01-01T00:00:00Z') < timestamp('2021-01-01T00:00:00Z') && duration('1h') > duration('1m')",
    ),
    ("two variables", "{'a': 1}.all(k, v, k == 'a' && v == 1)"),
    ("semantic versions", "semver('1.2.3').isLessThan(semver('1.10.0'))"),
    ("sets", "sets.contains([1, 2, 3], [2]) && sets.intersects([1], [1, 2])"),
    (
        "metadata",
        "object.metadata.namespace == request.namespace && object.kind == 'ConfigMap' && object.apiVersion == 'v1'",
    ),
];

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for (name, spec) in POLICIES {
        all.push(Behaviour::new(format!("a policy with variables: {name}"), move |mut script| async move {
            script.map("before", json!({"app": "web"})).await?;
            only(&mut script, Kind::Validating, serde_json::from_str(spec)?, json!({})).await?;
            writes(&mut script).await?;
            Ok(script)
        }));
    }
    for (name, expression) in HOLDING {
        all.push(Behaviour::new(
            format!("an expression of a policy knows {name}"),
            move |mut script| async move {
                let validations = json!([
                    {"expression": expression, "message": "it does not hold"},
                    {"expression": format!("!({expression})"), "message": "it holds"},
                ]);
                only(&mut script, Kind::Validating, json!({"validations": validations}), json!({})).await?;
                let maps = script.maps();
                script.post(&maps, super::map("a", json!({}))).await?;
                Ok(script)
            },
        ));
    }
    all
}
