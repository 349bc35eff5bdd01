//! The CRDs of an operator.

use super::Manifest;
use crate::description::DescribedKind;
use serde_json::Value;

/// Its definition, without what a cluster fills in.
pub(super) fn definition(kind: &DescribedKind<'_>) -> Manifest {
    let mut definition = kind.definition.clone();
    if let Value::Object(fields) = &mut definition {
        fields.remove("status");
        fields.insert("apiVersion".to_owned(), "apiextensions.k8s.io/v1".into());
        fields.insert("kind".to_owned(), "CustomResourceDefinition".into());
    }
    Manifest::new(format!("crd/{}_{}.yaml", kind.group, kind.plural), vec![definition])
}
