//! What a kind is called on the wire: from a Rust type in, group, version, names and paths out.

use kube::core::{ApiResource, NamespaceResourceScope};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::any::{Any, TypeId};
use std::borrow::Cow;
use std::fmt;

/// A Rust type that a cache can hold: one that is a Kubernetes kind (an [`Object`]), or one for any kind, which is named
/// beside it: `kube::core::DynamicObject`, and `kube::core::PartialObjectMeta` for metadata alone.
pub trait Cached:
    kube::Resource<Scope: 'static> + Clone + fmt::Debug + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

impl<K> Cached for K where
    K: kube::Resource<Scope: 'static>
        + Clone
        + fmt::Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

/// A Rust type that is a Kubernetes kind: everything from `k8s_openapi`, and whatever derives `kube::CustomResource`.
pub trait Object: Cached + kube::Resource<DynamicType = (), Scope: 'static> {}

impl<K> Object for K where K: Cached + kube::Resource<DynamicType = (), Scope: 'static> {}

/// What `kube` wants to know of a type before it tells its names: nothing, if the type is a kind.
pub(crate) fn names_itself<K: Cached>() -> Option<&'static K::DynamicType> {
    const NOTHING: &(dyn Any + Send + Sync) = &();
    NOTHING.downcast_ref()
}

/// A kind as data: what the plan, the cache and the writer need to know of a type once it is erased.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Kind {
    /// The API group; empty for the core group.
    pub group: Cow<'static, str>,
    /// The version within the group.
    pub version: Cow<'static, str>,
    /// The CamelCase name.
    pub kind: Cow<'static, str>,
    /// The name in paths.
    pub plural: Cow<'static, str>,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

impl Kind {
    /// The kind that a type stands for.
    pub fn of<K: Object>() -> Self {
        Self::named_by::<K>(&())
    }

    /// The kind that a type stands for, unless the type is one for any kind.
    pub fn known<K: Cached>() -> Option<Self> {
        names_itself::<K>().map(Self::named_by::<K>)
    }

    fn named_by<K: Cached>(names: &'static K::DynamicType) -> Self {
        Self {
            group: K::group(names),
            version: K::version(names),
            kind: K::kind(names),
            plural: K::plural(names),
            namespaced: TypeId::of::<K::Scope>() == TypeId::of::<NamespaceResourceScope>(),
        }
    }

    /// The kind that `kube`'s dynamic API calls so; whether its objects live in namespaces is not in there.
    pub fn of_resource(resource: &ApiResource, namespaced: bool) -> Self {
        Self {
            group: resource.group.clone().into(),
            version: resource.version.clone().into(),
            kind: resource.kind.clone().into(),
            plural: resource.plural.clone().into(),
            namespaced,
        }
    }

    /// `group/version`, or the version alone for the core group.
    pub fn api_version(&self) -> String {
        match &*self.group {
            "" => self.version.to_string(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// Whether a person who says this word means this kind: `Deployment`, `deployments`, `deployments.apps`.
    pub(crate) fn is_called(&self, word: &str) -> bool {
        let (name, group) = word.split_once('.').map_or((word, None), |(name, group)| (name, Some(group)));
        (name.eq_ignore_ascii_case(&self.kind) || name.eq_ignore_ascii_case(&self.plural))
            && group.is_none_or(|group| group == self.group)
    }

    /// Whether deleting one of these by mistake loses data that nothing can bring back.
    pub fn is_precious(&self) -> bool {
        self.group.is_empty() && matches!(&*self.kind, "Secret" | "PersistentVolumeClaim")
    }

    /// The path of the collection, in a namespace or over all of them.
    pub fn collection_path(&self, namespace: Option<&str>) -> String {
        let root = if self.group.is_empty() { "/api" } else { "/apis" };
        let (version, plural) = (self.api_version(), &self.plural);
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => format!("{root}/{version}/namespaces/{namespace}/{plural}"),
            None => format!("{root}/{version}/{plural}"),
        }
    }

    /// What `kube` calls this, for its dynamic API.
    pub fn api_resource(&self) -> ApiResource {
        ApiResource {
            group: self.group.to_string(),
            version: self.version.to_string(),
            api_version: self.api_version(),
            kind: self.kind.to_string(),
            plural: self.plural.to_string(),
        }
    }

    /// One word that [`Kind::from_word`] reads back, for an annotation: `apps/v1/deployments/Deployment`, with a `!`
    /// before it when its objects live outside namespaces.
    pub(crate) fn to_word(&self) -> String {
        let mark = if self.namespaced { "" } else { "!" };
        format!("{mark}{}/{}/{}", self.api_version(), self.plural, self.kind)
    }

    /// Reads what [`Kind::to_word`] wrote; anything else is `None`.
    pub(crate) fn from_word(word: &str) -> Option<Self> {
        let (namespaced, rest) = match word.strip_prefix('!') {
            Some(rest) => (false, rest),
            None => (true, word),
        };
        let parts: Vec<&str> = rest.split('/').collect();
        let (group, version, plural, kind) = match parts.as_slice() {
            [version, plural, kind] => ("", *version, *plural, *kind),
            [group, version, plural, kind] => (*group, *version, *plural, *kind),
            _ => return None,
        };
        let plain = |text: &str| {
            !text.is_empty()
                && !text.contains("..")
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte))
        };
        let readable = (group.is_empty() || plain(group)) && plain(version) && plain(plural) && plain(kind);
        readable.then(|| Self {
            group: group.to_owned().into(),
            version: version.to_owned().into(),
            kind: kind.to_owned().into(),
            plural: plural.to_owned().into(),
            namespaced,
        })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::apps::v1::Deployment;
    use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};

    #[test]
    fn a_type_knows_its_names_and_paths() {
        let kind = Kind::of::<Deployment>();
        assert_eq!(kind.collection_path(Some("shop")), "/apis/apps/v1/namespaces/shop/deployments");
        assert_eq!(kind.collection_path(None), "/apis/apps/v1/deployments");
        assert_eq!(Kind::of::<ConfigMap>().collection_path(None), "/api/v1/configmaps");
        assert!(!Kind::of::<Namespace>().namespaced);
    }

    #[test]
    fn a_kind_survives_being_written_as_a_word() {
        for kind in [Kind::of::<Deployment>(), Kind::of::<ConfigMap>(), Kind::of::<Namespace>()] {
            assert_eq!(Kind::from_word(&kind.to_word()), Some(kind));
        }
        for nonsense in ["", "!", "v1", "a/b/c/d/e", "v1//Kind", "v1/../Kind/..", "v1/x y/K"] {
            assert_eq!(Kind::from_word(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn a_type_for_any_kind_is_none_by_itself() {
        use kube::core::{DynamicObject, PartialObjectMeta};
        assert_eq!(Kind::known::<ConfigMap>(), Some(Kind::of::<ConfigMap>()));
        assert_eq!(Kind::known::<PartialObjectMeta<ConfigMap>>(), Some(Kind::of::<ConfigMap>()));
        assert_eq!(Kind::known::<DynamicObject>(), None);
        let kind = Kind::of::<Deployment>();
        assert_eq!(Kind::of_resource(&kind.api_resource(), true), kind);
    }

    #[test]
    fn secrets_are_precious_and_config_maps_are_not() {
        assert!(Kind::of::<Secret>().is_precious());
        assert!(!Kind::of::<ConfigMap>().is_precious());
    }
}
