//! The resources of the built-in kinds, as the facts of the reference and the kinds' rules describe them.

use crate::facts::{FACTS, SubresourceRow};
use crate::kinds;
use crate::resource::{Resource, Selectable, Subresource};

pub(super) fn resources() -> impl Iterator<Item = Resource> {
    FACTS.resources.iter().map(|row| {
        let rules = kinds::rules(&row.group, &row.plural);
        let selecting = kinds::field_selectors::selecting(&row.group, &row.plural);
        let selectable = selecting.map(|kind| kind.fields.iter().map(Selectable::built_in).collect());
        let subresource = |sub: &SubresourceRow| Subresource {
            name: sub.name.clone(),
            group: sub.group.clone(),
            version: sub.version.clone(),
            kind: sub.kind.clone(),
            verbs: sub.verbs.clone(),
        };
        let mut resource = Resource {
            group: row.group.clone(),
            version: row.version.clone(),
            kind: row.kind.clone(),
            list_kind: format!("{}List", row.kind),
            plural: row.plural.clone(),
            singular: row.singular.clone(),
            namespaced: row.namespaced,
            short_names: row.short_names.clone(),
            categories: row.categories.clone(),
            verbs: row.verbs.clone(),
            subresources: row.subresources.iter().map(subresource).collect(),
            selectable: selectable.unwrap_or_default(),
            definition: row.definition.clone(),
            storage_hash: row.hash.clone(),
            pristine: true,
            deprecation: (!rules.deprecated.is_empty()).then(|| rules.deprecated.to_owned()),
            rules: Some(rules),
            shape: kinds::convert::shape(&row.group, &row.version, &row.plural),
            ..Resource::default()
        };
        resource.stored_as = match resource.shape {
            Some(shape) => shape.stored_as.to_owned(),
            None => resource.api_version(),
        };
        resource
    })
}
