//! Which objects belong to a controller that selects by labels: those it has, those it takes up, those it lets go.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use std::sync::Arc;
use windlass::{Kind, Object, Reconcile, ReconcileError, Selector};

/// The owner that controls an object.
pub(crate) fn controller_of(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

/// What becomes of one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is ours.
    Mine,
    /// It is nobody's and fits: it is to become ours.
    Adopt,
    /// It is ours and no longer fits: it is to become nobody's.
    Release,
    /// It is somebody else's, does not fit, or is on its way out.
    NotMine,
}

/// What becomes of an object, for an owner with this UID and selector; `going` if the owner is on its way out.
pub(crate) fn fate(meta: &ObjectMeta, selector: &Selector, uid: &str, going: bool) -> Fate {
    let fits = selector.matches(meta.labels.as_ref());
    match controller_of(meta) {
        Some(owner) if owner.uid != uid => Fate::NotMine,
        Some(_) if fits => Fate::Mine,
        Some(_) if going => Fate::NotMine,
        Some(_) => Fate::Release,
        None if !fits || going || meta.deletion_timestamp.is_some() => Fate::NotMine,
        None => Fate::Adopt,
    }
}

/// Those of `objects` that are ours, after what fits was taken up and what does not was let go. Those just taken up are among
/// them, as they were before.
///
/// # Errors
/// When an object could not be taken up or let go; one that is gone is passed over.
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

/// As [`claim`]; what is taken up gets this finalizer too.
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
    let going = owner.deletion_timestamp.is_some();
    let mut mine = Vec::with_capacity(objects.len());
    let mut may_adopt = None;
    for object in objects {
        let fate = fate(object.meta(), selector, uid, going);
        let references = match fate {
            Fate::Mine => {
                mine.push(object);
                continue;
            }
            Fate::NotMine => continue,
            Fate::Adopt => {
                // The cache may be behind: an owner that is going, or another of the same name, must not adopt.
                let may = match may_adopt {
                    Some(may) => may,
                    None => *may_adopt.insert(still_there(ctx, owner).await?),
                };
                if !may {
                    continue;
                }
                let mut references = object.meta().owner_references.clone().unwrap_or_default();
                references.push(ctx.owner_reference());
                references
            }
            Fate::Release => {
                let all = object.meta().owner_references.iter().flatten();
                all.filter(|reference| reference.uid != uid).cloned().collect()
            }
        };
        let mut patch = serde_json::json!({ "metadata": { "ownerReferences": references } });
        if let Some(finalizer) = finalizer.filter(|_| fate == Fate::Adopt) {
            let mut finalizers = object.meta().finalizers.clone().unwrap_or_default();
            if !finalizers.iter().any(|there| there == finalizer) {
                finalizers.push(finalizer.to_owned());
            }
            patch["metadata"]["finalizers"] = finalizers.into();
        }
        match ctx.merge(&*object, "", patch).await {
            Ok(_) if fate == Fate::Adopt => mine.push(object),
            Ok(_) => {}
            // Gone, or another by now: nothing to take up or let go.
            Err(ReconcileError::Act(error)) if matches!(error.code(), Some(404 | 422)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(mine)
}

async fn still_there<K: Object>(ctx: &Reconcile<K>, owner: &ObjectMeta) -> Result<bool, ReconcileError> {
    let live = ctx.writer().read(&Kind::of::<K>(), ctx.key()).await?;
    let meta = |field: &str| live.as_ref()?.pointer(&format!("/metadata/{field}"))?.as_str();
    Ok(meta("uid") == owner.uid.as_deref() && meta("deletionTimestamp").is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use std::collections::BTreeMap;

    fn object(app: &str, owner: Option<&str>, going: bool) -> ObjectMeta {
        let owner = owner.map(|uid| OwnerReference {
            uid: uid.into(),
            controller: Some(true),
            ..OwnerReference::default()
        });
        ObjectMeta {
            labels: Some([("app".to_owned(), app.to_owned())].into()),
            owner_references: owner.map(|owner| vec![owner]),
            deletion_timestamp: going.then_some(Time(jiff::Timestamp::UNIX_EPOCH)),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn labels_and_owners_decide_whose_it_is() {
        let selector = Selector::equal(&BTreeMap::from([("app".to_owned(), "web".to_owned())])).unwrap();
        let fate = |meta: &ObjectMeta, going| fate(meta, &selector, "me", going);
        assert_eq!(fate(&object("web", Some("me"), false), false), Fate::Mine);
        assert_eq!(fate(&object("db", Some("me"), false), false), Fate::Release);
        assert_eq!(fate(&object("web", Some("you"), false), false), Fate::NotMine);
        assert_eq!(fate(&object("web", None, false), false), Fate::Adopt);
        assert_eq!(fate(&object("web", None, true), false), Fate::NotMine, "what goes is not taken up");
        assert_eq!(fate(&object("web", None, false), true), Fate::NotMine, "who goes takes nothing up");
        assert_eq!(fate(&object("db", None, false), false), Fate::NotMine);
    }
}
