//! Label selectors as objects carry them: `matchLabels` and `matchExpressions`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use windlass_schema::selector::{LabelOperator, Labels, SelectorError};

/// A label selector, ready to be asked. An empty one selects everything, as in the API.
///
/// ```
/// use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
/// use windlass::Selector;
///
/// let labels = [("app".to_owned(), "web".to_owned())].into();
/// let selector = Selector::of(&LabelSelector { match_labels: Some(labels), ..Default::default() })?;
/// assert!(selector.matches(Some(&[("app".to_owned(), "web".to_owned())].into())));
/// assert!(!selector.matches(None));
/// # Ok::<(), windlass::cache::SelectorError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector(Labels);

impl Selector {
    /// Reads what an object carries.
    ///
    /// # Errors
    /// [`SelectorError`] when a term in it is none, such as an operator that does not exist.
    pub fn of(selector: &LabelSelector) -> Result<Self, SelectorError> {
        let mut text = String::new();
        for (key, value) in selector.match_labels.iter().flatten() {
            let _ = write!(text, ",{key}={value}");
        }
        for term in selector.match_expressions.iter().flatten() {
            let values = || term.values.iter().flatten().cloned().collect::<Vec<_>>().join(",");
            let _ = match term.operator.as_str() {
                "In" => write!(text, ",{} in ({})", term.key, values()),
                "NotIn" => write!(text, ",{} notin ({})", term.key, values()),
                "Exists" => write!(text, ",{}", term.key),
                "DoesNotExist" => write!(text, ",!{}", term.key),
                // Left for the parser to refuse.
                other => write!(text, ",{} {other}", term.key),
            };
        }
        Labels::parse(text.strip_prefix(',').unwrap_or_default()).map(Self)
    }

    /// Every one of these labels with just these values.
    pub fn equal(labels: &BTreeMap<String, String>) -> Result<Self, SelectorError> {
        Self::of(&LabelSelector { match_labels: Some(labels.clone()), match_expressions: None })
    }

    /// Whether it selects an object with these labels.
    pub fn matches(&self, labels: Option<&BTreeMap<String, String>>) -> bool {
        self.0.matches(|key| labels?.get(key).map(String::as_str))
    }

    /// Whether it selects everything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Labels of which one must be there for it to hold; `None` if it can hold without any.
    pub(crate) fn one_of(&self) -> Option<impl Iterator<Item = (&str, &str)>> {
        use LabelOperator::{DoubleEquals, Equals, In};
        let sure = |operator| matches!(operator, Equals | DoubleEquals | In);
        let term = self.0.requirements().iter().find(|term| sure(term.operator))?;
        Some(term.values.iter().map(|value| (term.key.as_str(), value.as_str())))
    }
}

impl std::fmt::Display for Selector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement;

    fn term(key: &str, operator: &str, values: &[&str]) -> LabelSelector {
        let term = LabelSelectorRequirement {
            key: key.into(),
            operator: operator.into(),
            values: Some(values.iter().map(ToString::to_string).collect()),
        };
        LabelSelector { match_labels: None, match_expressions: Some(vec![term]) }
    }

    fn labels(all: &[(&str, &str)]) -> BTreeMap<String, String> {
        all.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
    }

    #[test]
    fn terms_hold_as_in_the_api() {
        let holds = |selector: &LabelSelector, of: &[(&str, &str)]| {
            Selector::of(selector).unwrap().matches(Some(&labels(of)))
        };
        let within = term("tier", "In", &["a", "b"]);
        assert!(
            holds(&within, &[("tier", "b")]) && !holds(&within, &[("tier", "c")]) && !holds(&within, &[])
        );
        let not = term("tier", "NotIn", &["a"]);
        assert!(holds(&not, &[("tier", "b")]) && holds(&not, &[]) && !holds(&not, &[("tier", "a")]));
        assert!(holds(&term("x", "Exists", &[]), &[("x", "")]) && !holds(&term("x", "Exists", &[]), &[]));
        assert!(!holds(&term("x", "DoesNotExist", &[]), &[("x", "")]));
        assert!(holds(&LabelSelector::default(), &[]), "an empty one selects everything");
        assert!(Selector::of(&term("x", "Near", &["y"])).is_err());
    }

    #[test]
    fn only_a_term_that_needs_a_label_says_where_to_look() {
        let places =
            |selector: &LabelSelector| Selector::of(selector).unwrap().one_of().map(|places| places.count());
        assert_eq!(places(&term("tier", "In", &["a", "b"])), Some(2));
        assert_eq!(places(&term("tier", "NotIn", &["a", "b"])), None);
        assert_eq!(places(&LabelSelector::default()), None);
    }
}
