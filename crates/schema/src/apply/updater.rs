//! The core of server-side apply: who owns which fields after a change, and which fields are removed when an applier gives them up.

use super::compare::{Comparison, compare};
use super::conflict::{Conflict, Conflicts};
use super::fieldset::{FieldSet, Filter};
use super::managed::{Identifier, Owned, Owners};
use super::merge::merge;
use super::reconcile::reconcile;
use super::remove::remove;
use super::typed::{check, field_set, with_named_fields};
use super::types::TypeView;
use super::values;
use super::{Context, ConvertError};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// An object in one version, with its type there.
#[derive(Clone)]
pub(crate) struct Typed<'a> {
    pub(crate) value: Cow<'a, Value>,
    pub(crate) view: TypeView,
    pub(crate) api_version: Cow<'a, str>,
}

/// Why an update or apply came to nothing.
pub(crate) enum UpdateError {
    Conflicts(Conflicts),
    Failed(String),
}

/// Why an object has no form in another version.
enum InVersionError {
    Missing,
    Failed(String),
}

impl<'a> Typed<'a> {
    fn fields(&self) -> FieldSet {
        field_set(&self.view, &self.value)
    }

    fn named_fields(&self) -> FieldSet {
        self.with_named(&self.fields())
    }

    fn with_named(&self, set: &FieldSet) -> FieldSet {
        with_named_fields(&self.view, set)
    }

    fn without(&self, set: &FieldSet) -> Typed<'a> {
        Typed { value: Cow::Owned(remove(&self.view, &self.value, set)), ..self.clone_type() }
    }

    /// The type without the value, which may be large.
    pub(crate) fn clone_type(&self) -> Typed<'a> {
        Typed {
            value: Cow::Owned(Value::Null),
            view: self.view.clone(),
            api_version: self.api_version.clone(),
        }
    }

    fn borrowed(&self) -> Typed<'_> {
        Typed {
            value: Cow::Borrowed(&self.value),
            view: self.view.clone(),
            api_version: Cow::Borrowed(&self.api_version),
        }
    }

    fn in_version<'b>(
        &'b self,
        api_version: &'b str,
        context: &Context<'_>,
    ) -> Result<Typed<'b>, InVersionError> {
        if self.api_version == api_version {
            return Ok(self.borrowed());
        }
        let value = context.convert.convert(&self.value, api_version).map_err(|error| match error {
            ConvertError::MissingVersion => InVersionError::Missing,
            ConvertError::Failed(message) => InVersionError::Failed(message),
        })?;
        let schema = (context.schema)(api_version).ok_or(InVersionError::Missing)?;
        let view = TypeView::of_kind(Some(schema));
        check(&view, &value, false).map_err(|errors| InVersionError::Failed(errors.to_string()))?;
        Ok(Typed { value: Cow::Owned(value), view, api_version: Cow::Borrowed(api_version) })
    }

    fn into_owned(self) -> Typed<'static> {
        Typed {
            value: Cow::Owned(self.value.into_owned()),
            view: self.view,
            api_version: Cow::Owned(self.api_version.into_owned()),
        }
    }
}

fn filter<'a>(context: &'a Context<'_>, api_version: &str) -> Option<&'a Filter> {
    context.reset_fields.get(api_version)
}

/// The owners after somebody wrote `new` over `live`: they own what they changed, and nobody owns what is gone.
pub(crate) fn update(
    live: &Typed<'_>,
    new: &Typed<'_>,
    owners: Owners,
    id: &Identifier,
    context: &Context<'_>,
) -> Result<Owners, UpdateError> {
    let mut owners = reconciled(live, owners, context)?;
    let changed = take_over(live, new, &mut owners, id, true, context)?;
    let before = owners.remove(id).map(|owned| owned.set).unwrap_or_default();
    let mut set = before.difference(&changed.removed).union(&changed.modified).union(&changed.added);
    if let Some(filter) = filter(context, &new.api_version) {
        set = filter.apply(&set);
    }
    if !set.is_empty() {
        owners.insert(id.clone(), Owned { set, api_version: new.api_version.to_string(), applied: false });
    }
    Ok(owners)
}

/// The object after an intent was applied, or `None` if it is as before; and its owners.
pub(crate) fn apply(
    live: &Typed<'_>,
    intent: &Typed<'_>,
    owners: Owners,
    id: &Identifier,
    force: bool,
    context: &Context<'_>,
) -> Result<(Option<Value>, Owners), UpdateError> {
    let mut owners = reconciled(live, owners, context)?;
    let merged =
        Typed { value: Cow::Owned(merge(&live.view, &live.value, &intent.value)), ..live.clone_type() };
    let mut set = intent.fields();
    if let Some(filter) = filter(context, &intent.api_version) {
        set = filter.apply(&set);
    }
    let api_version = intent.api_version.to_string();
    let last = owners.insert(id.clone(), Owned { set, api_version, applied: true });
    let new = prune(merged, &owners, id, last.as_ref(), context)
        .map_err(|message| UpdateError::Failed(format!("failed to prune fields: {message}")))?;
    take_over(live, &new, &mut owners, id, force, context)?;
    let changed = !values::equal(&live.value, &new.value);
    Ok((changed.then(|| new.value.into_owned()), owners))
}

/// The owners with their sets as the present schema has them; those of versions that are gone are left out.
fn reconciled(live: &Typed<'_>, owners: Owners, context: &Context<'_>) -> Result<Owners, UpdateError> {
    let mut views: BTreeMap<String, Option<TypeView>> = BTreeMap::new();
    let mut result = Owners::new();
    for (id, mut owned) in owners {
        if !views.contains_key(&owned.api_version) {
            let view = match live.in_version(&owned.api_version, context) {
                Ok(there) => Some(there.view.clone()),
                Err(InVersionError::Missing) => None,
                Err(InVersionError::Failed(message)) => return Err(UpdateError::Failed(message)),
            };
            views.insert(owned.api_version.clone(), view);
        }
        if let Some(Some(view)) = views.get(&owned.api_version) {
            if let Some(set) = reconcile(view, &owned.set) {
                owned.set = set;
            }
            result.insert(id, owned);
        }
    }
    Ok(result)
}

/// Compares two objects and takes what changed or went from everybody but `id`. Without force, what would be taken is a conflict.
fn take_over(
    old: &Typed<'_>,
    new: &Typed<'_>,
    owners: &mut Owners,
    id: &Identifier,
    force: bool,
    context: &Context<'_>,
) -> Result<Comparison, UpdateError> {
    let own = compare(&old.view, &old.value, &new.value).filtered(filter(context, &new.api_version));
    // Per version: what changed, and what went.
    let mut versions: BTreeMap<String, Option<(FieldSet, FieldSet)>> = BTreeMap::new();
    let parts =
        |comparison: &Comparison| (comparison.modified.union(&comparison.added), comparison.removed.clone());
    versions.insert(new.api_version.to_string(), Some(parts(&own)));

    let others: Vec<Identifier> = owners.keys().filter(|owner| *owner != id).cloned().collect();
    let mut conflicts = Vec::new();
    let mut left: Vec<(Identifier, FieldSet)> = Vec::new();
    for owner in others {
        let Some(owned) = owners.get(&owner) else { continue };
        if !versions.contains_key(&owned.api_version) {
            let there = comparison_in(old, new, &owned.api_version, context)?;
            versions.insert(owned.api_version.clone(), there.as_ref().map(parts));
        }
        let Some(Some((changed, removed))) = versions.get(&owned.api_version) else {
            owners.remove(&owner);
            continue;
        };
        let taken = owned.set.intersection(changed);
        if taken.is_empty() && removed.is_empty() {
            continue;
        }
        if !force {
            taken
                .for_each(&mut |path| conflicts.push(Conflict { owner: owner.clone(), path: path.to_vec() }));
        }
        left.push((owner, owned.set.difference(&taken).difference(removed)));
    }
    if !conflicts.is_empty() {
        return Err(UpdateError::Conflicts(Conflicts(conflicts)));
    }
    for (owner, set) in left {
        if let Some(owned) = owners.get_mut(&owner) {
            owned.set = set;
        }
    }
    owners.retain(|_, owned| !owned.set.is_empty());
    Ok(own)
}

/// The comparison of two objects in another version, or `None` if that version is gone.
fn comparison_in(
    old: &Typed<'_>,
    new: &Typed<'_>,
    api_version: &str,
    context: &Context<'_>,
) -> Result<Option<Comparison>, UpdateError> {
    let convert = |object: &Typed<'_>, which: &str| match object.in_version(api_version, context) {
        Ok(there) => Ok(Some(there.into_owned())),
        Err(InVersionError::Missing) => Ok(None),
        Err(InVersionError::Failed(message)) => {
            Err(UpdateError::Failed(format!("failed to convert {which} object: {message}")))
        }
    };
    let (Some(old), Some(new)) = (convert(old, "old")?, convert(new, "new")?) else { return Ok(None) };
    let comparison = compare(&old.view, &old.value, &new.value);
    Ok(Some(comparison.filtered(filter(context, api_version))))
}

/// Removes what the applier listed last time and does not list now, unless somebody else owns it.
fn prune(
    merged: Typed<'_>,
    owners: &Owners,
    id: &Identifier,
    last: Option<&Owned>,
    context: &Context<'_>,
) -> Result<Typed<'static>, String> {
    let (Some(last), Some(now)) = (last, owners.get(id)) else { return Ok(merged.into_owned()) };
    // What is listed again is added back below, so that without anything given up the object stays.
    let nothing_given_up = last.api_version == now.api_version && last.set.is_subset(&now.set);
    if last.set.is_empty() || nothing_given_up {
        return Ok(merged.into_owned());
    }
    let there = match merged.in_version(&last.api_version, context) {
        Ok(there) => there.into_owned(),
        Err(InVersionError::Missing) => return Ok(merged.into_owned()),
        Err(InVersionError::Failed(message)) => {
            return Err(format!("failed to convert merged object to last applied version: {message}"));
        }
    };
    let pruned = there.without(&there.with_named(&last.set));
    let pruned = add_back_owned(&there, pruned, &last.api_version, owners, context)
        .map_err(|message| format!("failed add back owned items: {message}"))?;
    let pruned = add_back_dangling(&there, pruned, last, context)
        .map_err(|message| format!("failed add back dangling items: {message}"))?;
    match pruned.in_version(&now.api_version, context) {
        Ok(back) => Ok(back.into_owned()),
        Err(InVersionError::Missing) => Err(format!("no corresponding type for {}", now.api_version)),
        Err(InVersionError::Failed(message)) => Err(message),
    }
}

/// Adds back what pruning took and somebody still owns, in the version of the last apply first: what that version needs for
/// its conversion must be there before the others are looked at.
fn add_back_owned(
    merged: &Typed<'static>,
    pruned: Typed<'static>,
    pruned_version: &str,
    owners: &Owners,
    context: &Context<'_>,
) -> Result<Typed<'static>, String> {
    let mut by_version: BTreeMap<&str, FieldSet> = BTreeMap::new();
    for owned in owners.values() {
        let set = by_version.entry(&owned.api_version).or_default();
        *set = set.union(&owned.set);
    }
    let first = by_version.remove(pruned_version).map(|set| (pruned_version, set));
    let (mut merged, mut pruned) = (merged.clone(), pruned);
    for (api_version, owned) in first.into_iter().chain(by_version) {
        let in_version = |object: &Typed<'static>, which: &str| match object.in_version(api_version, context)
        {
            Ok(there) => Ok(Some(there.into_owned())),
            Err(InVersionError::Missing) => Ok(None),
            Err(InVersionError::Failed(message)) => {
                Err(format!("failed to convert {which} object at version {api_version}: {message}"))
            }
        };
        let Some(merged_there) = in_version(&merged, "merged")? else { continue };
        let pruned_there = in_version(&pruned, "pruned")?;
        merged = merged_there;
        let Some(pruned_there) = pruned_there else { continue };
        let kept = merged.with_named(&pruned_there.fields()).union(&merged.with_named(&owned));
        pruned = merged.without(&merged.named_fields().difference(&kept));
    }
    Ok(pruned)
}

/// Adds back what went along though the applier did not own it.
fn add_back_dangling(
    merged: &Typed<'static>,
    pruned: Typed<'static>,
    last: &Owned,
    context: &Context<'_>,
) -> Result<Typed<'static>, String> {
    let there = match pruned.in_version(&last.api_version, context) {
        Ok(there) => there,
        Err(InVersionError::Missing) => return Ok(merged.clone()),
        Err(InVersionError::Failed(message)) => {
            return Err(format!("failed to convert pruned object to last applied version: {message}"));
        }
    };
    let gone = merged.named_fields().difference(&merged.with_named(&there.fields()));
    Ok(merged.without(&gone.intersection(&merged.with_named(&last.set))))
}
