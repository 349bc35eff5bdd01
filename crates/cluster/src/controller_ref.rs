//! Adoption and release by label selector, as in Kubernetes' controller ref managers: which objects a controller owns, adopts
//! and releases.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use std::sync::Arc;
use windlass::{Kind, Object, Reconcile, ReconcileError, Selector};

/// The controller of an object.
pub(crate) fn controller_of(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

/// What a controller has to do about an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// It is owned.
    Owned,
    /// It is an orphan that matches the selector: adopt it.
    Adopt,
    /// It is owned and no longer matches: release it.
    Release,
    /// It has another controller, does not match, or is being deleted.
    NotOwned,
}

/// What an owner with this UID and selector has to do about an object; `terminating` if the owner is being deleted.
pub(crate) fn ownership(meta: &ObjectMeta, selector: &Selector, uid: &str, terminating: bool) -> Ownership {
    let fits = selector.matches(meta.labels.as_ref());
    match controller_of(meta) {
        Some(owner) if owner.uid != uid => Ownership::NotOwned,
        Some(_) if fits => Ownership::Owned,
        Some(_) if terminating => Ownership::NotOwned,
        Some(_) => Ownership::Release,
        None if !fits || terminating || meta.deletion_timestamp.is_some() => Ownership::NotOwned,
        None => Ownership::Adopt,
    }
}

/// The owned objects, after adopting those that match and releasing those that do not. Adopted ones are returned as they were
/// before.
///
/// # Errors
/// When an object could not be adopted or released; one that is gone is skipped.
pub(crate) async fn claim<K, C>(
    ctx: &Reconcile<K>,
    owner: &ObjectMeta,
    selector: &Selector,
    objects: Vec<Arc<C>>,
) -> Result<Vec<Arc<C>>, ReconcileError>
where
    K: Object,
    C: Object,
{
    claim_with(ctx, owner, selector, objects, None).await
}

/// As [`claim`]; adopted objects get this finalizer too.
///
/// # Errors
/// As for [`claim`].
pub(crate) async fn claim_with<K, C>(
    ctx: &Reconcile<K>,
    owner: &ObjectMeta,
    selector: &Selector,
    objects: Vec<Arc<C>>,
    finalizer: Option<&str>,
) -> Result<Vec<Arc<C>>, ReconcileError>
where
    K: Object,
    C: Object,
{
    let uid = owner.uid.as_deref().unwrap_or_default();
    let terminating = owner.deletion_timestamp.is_some();
    let mut mine = Vec::with_capacity(objects.len());
    let mut may_adopt = None;
    for object in objects {
        let ownership = ownership(object.meta(), selector, uid, terminating);
        let references = match ownership {
            Ownership::Owned => {
                mine.push(object);
                continue;
            }
            Ownership::NotOwned => continue,
            Ownership::Adopt => {
                // The cache may be stale: an owner that is being deleted, or another of the same name, must not adopt.
                let allowed = match may_adopt {
                    Some(allowed) => allowed,
                    None => *may_adopt.insert(can_adopt(ctx, owner).await?),
                };
                if !allowed {
                    continue;
                }
                let mut references = object.meta().owner_references.clone().unwrap_or_default();
                references.push(ctx.owner_reference());
                references
            }
            Ownership::Release => {
                let all = object.meta().owner_references.iter().flatten();
                all.filter(|reference| reference.uid != uid).cloned().collect()
            }
        };
        let mut patch = serde_json::json!({ "metadata": { "ownerReferences": references } });
        if let Some(finalizer) = finalizer.filter(|_| ownership == Ownership::Adopt) {
            let mut finalizers = object.meta().finalizers.clone().unwrap_or_default();
            if !finalizers.iter().any(|there| there == finalizer) {
                finalizers.push(finalizer.to_owned());
            }
            patch["metadata"]["finalizers"] = finalizers.into();
        }
        match ctx.merge(&*object, "", patch).await {
            Ok(_) if ownership == Ownership::Adopt => mine.push(object),
            Ok(_) => {}
            // Gone, or replaced by another object: nothing to adopt or release.
            Err(ReconcileError::Act(error)) if matches!(error.code(), Some(404 | 422)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(mine)
}

async fn can_adopt<K: Object>(ctx: &Reconcile<K>, owner: &ObjectMeta) -> Result<bool, ReconcileError> {
    let live = ctx.writer().read(&Kind::of::<K>(), ctx.key()).await?;
    let meta = |field: &str| live.as_ref()?.pointer(&format!("/metadata/{field}"))?.as_str();
    Ok(meta("uid") == owner.uid.as_deref() && meta("deletionTimestamp").is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use std::collections::BTreeMap;

    fn object(app: &str, owner: Option<&str>, terminating: bool) -> ObjectMeta {
        let owner = owner.map(|uid| OwnerReference {
            uid: uid.into(),
            controller: Some(true),
            ..OwnerReference::default()
        });
        ObjectMeta {
            labels: Some([("app".to_owned(), app.to_owned())].into()),
            owner_references: owner.map(|owner| vec![owner]),
            deletion_timestamp: terminating.then_some(Time(jiff::Timestamp::UNIX_EPOCH)),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn labels_and_owners_decide_whose_it_is() {
        let selector = Selector::equal(&BTreeMap::from([("app".to_owned(), "web".to_owned())])).unwrap();
        let ownership = |meta: &ObjectMeta, terminating| ownership(meta, &selector, "me", terminating);
        assert_eq!(ownership(&object("web", Some("me"), false), false), Ownership::Owned);
        assert_eq!(ownership(&object("db", Some("me"), false), false), Ownership::Release);
        assert_eq!(ownership(&object("web", Some("you"), false), false), Ownership::NotOwned);
        assert_eq!(ownership(&object("web", None, false), false), Ownership::Adopt);
        assert_eq!(
            ownership(&object("web", None, true), false),
            Ownership::NotOwned,
            "a terminating object is not adopted"
        );
        assert_eq!(
            ownership(&object("web", None, false), true),
            Ownership::NotOwned,
            "a terminating owner adopts nothing"
        );
        assert_eq!(ownership(&object("db", None, false), false), Ownership::NotOwned);
    }
}
