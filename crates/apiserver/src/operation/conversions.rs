//! What server-side apply wants to be converted between versions: noted down while it runs, answered before it is run again. So it stays
//! pure, and a conversion webhook is asked outside of it.

use parking_lot::Mutex;
use serde_json::Value;

/// The conversions of one attempt of a write.
#[derive(Debug, Default)]
pub(crate) struct Conversions(Mutex<Noted>);

#[derive(Debug, Default)]
struct Noted {
    wanted: Vec<Wanted>,
    known: Vec<(Wanted, Result<Value, String>)>,
}

/// An object, and the version that it is wanted in.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wanted {
    pub(crate) object: Value,
    pub(crate) api_version: String,
}

impl Conversions {
    /// What became of an object in a version, if it is known; noted as wanted if not.
    pub(crate) fn find(&self, object: &Value, api_version: &str) -> Option<Result<Value, String>> {
        let mut noted = self.0.lock();
        let same = |wanted: &Wanted| wanted.api_version == api_version && wanted.object == *object;
        if let Some((_, known)) = noted.known.iter().find(|(wanted, _)| same(wanted)) {
            return Some(known.clone());
        }
        if !noted.wanted.iter().any(same) {
            noted.wanted.push(Wanted { object: object.clone(), api_version: api_version.to_owned() });
        }
        None
    }

    /// What was wanted since this was asked last.
    pub(crate) fn take_wanted(&self) -> Vec<Wanted> {
        std::mem::take(&mut self.0.lock().wanted)
    }

    pub(crate) fn learn(&self, wanted: Wanted, converted: Result<Value, String>) {
        self.0.lock().known.push((wanted, converted));
    }

    /// Begins anew: another attempt is about another object.
    pub(crate) fn forget(&self) {
        *self.0.lock() = Noted::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_unknown_is_wanted_once_and_found_when_it_was_learnt() {
        let conversions = Conversions::default();
        assert!(conversions.find(&json!(1), "v2").is_none());
        assert!(conversions.find(&json!(1), "v2").is_none());
        let wanted = conversions.take_wanted();
        assert_eq!(wanted, [Wanted { object: json!(1), api_version: "v2".to_owned() }]);
        conversions.learn(wanted[0].clone(), Ok(json!(2)));
        assert_eq!(conversions.find(&json!(1), "v2"), Some(Ok(json!(2))));
        assert!(conversions.take_wanted().is_empty());
        conversions.forget();
        assert!(conversions.find(&json!(1), "v2").is_none());
    }
}
