//! Rejects rules whose estimated cost is too high: of each rule, and of all rules of a schema together.

use crate::field::{ErrorKind, FieldError, Path};
use crate::schema::{Additional, Schema, Type};

/// The cost limits of one expression, and of all expressions of a schema.
const EACH: u64 = 10_000_000;
const ALL: u64 = 100_000_000;

/// The number of most expensive rules that the error names.
const NAMED: usize = 4;

/// What the expressions of a schema cost, as far as they were looked at.
#[derive(Debug, Default)]
pub(super) struct Costs {
    total: u64,
    expensive: Vec<(u64, Path)>,
}

impl Costs {
    /// Counts an expression, and says if it alone is too expensive.
    pub(super) fn observe(&mut self, what: &str, path: &Path, cost: u64) -> Option<FieldError> {
        self.total = self.total.saturating_add(cost);
        if cost >= ALL / 100 {
            self.expensive.push((cost, path.clone()));
            self.expensive.sort_by(|(one, _), (other, _)| other.cmp(one));
            self.expensive.truncate(NAMED);
        }
        let why = || exceeds(&format!("estimated {what} cost"), cost, EACH);
        (cost > EACH).then(|| FieldError::forbidden(path, why()))
    }

    /// Whether all together are too expensive, and which are to blame.
    pub(super) fn judge(&self, schema: &Path) -> Vec<FieldError> {
        if self.total <= ALL {
            return Vec::new();
        }
        let blame =
            "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        let mut errors: Vec<FieldError> =
            self.expensive.iter().map(|(_, path)| FieldError::forbidden(path, blame)).collect();
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        errors.push(FieldError::forbidden(schema, exceeds(what, self.total, ALL)));
        errors
    }
}

/// Does the error say that one expression alone could cost too much?
pub fn is_of_one_estimate(error: &FieldError) -> bool {
    error.kind == ErrorKind::Forbidden && error.detail.starts_with("estimated ")
}

#[expect(clippy::cast_precision_loss, reason = "a factor that is told with one digit")]
fn exceeds(what: &str, cost: u64, limit: u64) -> String {
    let factor = match cost as f64 / limit as f64 {
        factor if factor > 100.0 => "more than 100x".to_owned(),
        // Rounded it would be none.
        factor if factor < 1.5 => format!("{factor:.6}x"),
        factor => format!("{factor:.1}x"),
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}

/// How often what is inside of a schema can be there for each time that it is there itself; none if nothing says.
pub(super) fn most_inside(schema: &Schema) -> Option<u64> {
    match schema.kind {
        Some(Type::Object)
            if matches!(schema.additional, Some(Additional::Schema(_) | Additional::Allowed(_))) =>
        {
            schema.max_properties
        }
        Some(Type::Array) => schema.max_items,
        _ => Some(1),
    }
}

#[cfg(test)]
mod tests {
    use crate::field::Path;
    use crate::rules::check;
    use crate::schema::Schema;
    use serde_json::{Value, json};

    /// The error for a rule about this number of strings of at most ten characters.
    fn said(items: u64, rule: &str) -> Vec<String> {
        let text = json!({"type": "string", "maxLength": 10, "x-kubernetes-validations": [{"rule": rule}]});
        let list: Value = json!({"type": "array", "maxItems": items, "items": text});
        let schema = json!({"type": "object", "properties": {"list": list}});
        let schema = Schema::from_json(&schema).expect("a schema");
        let errors = check(&schema, &Path::new("schema")).into_iter();
        errors.map(|error| error.detail.split(" (").next().unwrap_or_default().to_owned()).collect()
    }

    #[test]
    fn a_rule_costs_what_it_does_as_often_as_it_may() {
        // A name, and the comparison of at most three characters.
        assert_eq!(said(5_000_000, "self == 'abc'"), Vec::<String>::new());
        assert_eq!(
            said(6_000_000, "self == 'abc'"),
            ["estimated rule cost exceeds budget by factor of 1.200000x"]
        );
        // Five for the text, two for the pattern, and the name.
        assert_eq!(
            said(2_000_000, "self.matches('^[a-z]+')"),
            ["estimated rule cost exceeds budget by factor of 2.2x"]
        );
    }

    #[test]
    fn all_rules_together_are_bounded_too() {
        let said = said(20_000_000, "self.matches('^[a-z]+') && self.matches('^[a-z]+')");
        assert_eq!(
            said,
            [
                "estimated rule cost exceeds budget by factor of 44.0x",
                "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema",
                "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor \
                 of 4.4x",
            ]
        );
    }
}
