//! Policies that mutate, in their order with each other and with what validates.

use super::{Kind, bound, map, settle};
use crate::parity::Behaviour;
use serde_json::{Value, json};

fn adds(label: &str, value: &str) -> Value {
    let expression = format!("Object{{metadata: Object.metadata{{labels: {{'{label}': {value}}}}}}}");
    json!([{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}])
}

/// How many labels there are.
const COUNT: &str = "string(size(object.?metadata.?labels.orValue({})))";

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for again in ["Never", "IfNeeded"] {
        let name = format!("two policies mutate, of which the first wants another look: {again}");
        all.push(Behaviour::new(name, move |mut script| async move {
            // Whichever comes first: each says how many labels it saw last.
            let spec = json!({"reinvocationPolicy": again, "mutations": adds("seen-by-one", COUNT)});
            bound(&mut script, Kind::Mutating, "one", spec, json!({})).await?;
            settle(&mut script, Kind::Mutating).await?;
            let maps = script.maps();
            script.post(&maps, map("a", json!({}))).await?;
            script.post(&maps, map("b", json!({"labels": {"x": "y"}}))).await?;
            Ok(script)
        }));
    }
    all.push(Behaviour::new("what a policy mutates is what another validates", |mut script| async move {
        let spec = json!({"mutations": adds("added", "'yes'")});
        bound(&mut script, Kind::Mutating, "one", spec, json!({})).await?;
        let spec = json!({"validations": [{"expression": "object.metadata.labels.added == 'no'",
            "messageExpression": "'it is ' + object.metadata.labels.added"}]});
        bound(&mut script, Kind::Validating, "two", spec, json!({})).await?;
        settle(&mut script, Kind::Mutating).await?;
        settle(&mut script, Kind::Validating).await?;
        let maps = script.maps();
        script.post(&maps, map("a", json!({}))).await?;
        Ok(script)
    }));
    all.push(Behaviour::new("two mutations of one policy see each other", |mut script| async move {
        let mut mutations = adds("first", COUNT);
        let second = adds("second", COUNT)[0].clone();
        if let Some(list) = mutations.as_array_mut() {
            list.push(second);
        }
        bound(&mut script, Kind::Mutating, "one", json!({"mutations": mutations}), json!({})).await?;
        settle(&mut script, Kind::Mutating).await?;
        let maps = script.maps();
        script.post(&maps, map("a", json!({}))).await?;
        Ok(script)
    }));
    all.push(Behaviour::new("two bindings of one policy that mutates", |mut script| async move {
        let spec = json!({"mutations": adds("count", COUNT), "matchConditions": [{"name": "x", "expression": "true"}]});
        bound(&mut script, Kind::Mutating, "it", spec, json!({})).await?;
        let second = super::binding(&script, Kind::Mutating, "other", &json!({"policyName": super::name(&script, "it")}));
        super::store(&mut script, &Kind::Mutating.bindings(), second).await?;
        settle(&mut script, Kind::Mutating).await?;
        let maps = script.maps();
        script.post(&maps, map("a", json!({}))).await?;
        Ok(script)
    }));
    all
}
