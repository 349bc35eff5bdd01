//! The versions of a kind: a hub, and spokes that convert to it and from it.

use crate::kind::{Kind, Object};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use kube::core::crd::{MergeError, merge_crds};
use serde_json::Value;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;

/// A version of a kind that converts to the hub and back. The hub is the version that controllers work with, mostly the newest one. With
/// one spoke for each other version, every version converts to every other.
///
/// A conversion to and fro must lose nothing: who reads an object in one version and writes it back must not change what others see in
/// another. What one version cannot say is kept in an annotation. The test of it is `windlass_testing::round_trip`.
///
/// The library converts the rest: the API version, and all metadata except labels and annotations, which cannot change.
///
/// ```
/// # mod v1alpha1 {
/// #     use serde::{Deserialize, Serialize};
/// #     #[derive(kube::CustomResource, Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
/// #     #[kube(group = "example.dev", version = "v1alpha1", kind = "Site", namespaced)]
/// #     pub struct SiteSpec { pub size: i32 }
/// # }
/// # mod v1 {
/// #     use serde::{Deserialize, Serialize};
/// #     #[derive(kube::CustomResource, Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
/// #     #[kube(group = "example.dev", version = "v1", kind = "Site", namespaced)]
/// #     pub struct SiteSpec { pub replicas: i32 }
/// # }
/// use windlass::webhook::{ConversionError, Spoke, Versions};
///
/// impl Spoke for v1alpha1::Site {
///     type Hub = v1::Site;
///
///     fn to_hub(&self) -> Result<v1::Site, ConversionError> {
///         Ok(v1::Site { metadata: self.metadata.clone(), spec: v1::SiteSpec { replicas: self.spec.size } })
///     }
///
///     fn from_hub(hub: &v1::Site) -> Result<Self, ConversionError> {
///         Ok(Self { metadata: hub.metadata.clone(), spec: v1alpha1::SiteSpec { size: hub.spec.replicas } })
///     }
/// }
///
/// let crd = Versions::hub::<v1::Site>().spoke::<v1alpha1::Site>().crd()?;
/// assert_eq!(crd.spec.versions.len(), 2);
/// # Ok::<_, windlass::webhook::VersionsError>(())
/// ```
pub trait Spoke: Object {
    /// The version that all others convert to.
    type Hub: Object;

    /// The same object in the version of the hub.
    ///
    /// # Errors
    /// When it cannot be said there. Reads and writes of the object in that version then fail.
    fn to_hub(&self) -> Result<Self::Hub, ConversionError>;

    /// The same object in this version.
    ///
    /// # Errors
    /// When it cannot be said here.
    fn from_hub(hub: &Self::Hub) -> Result<Self, ConversionError>;
}

/// Why an object cannot be said in another version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConversionError(String);

impl From<String> for ConversionError {
    fn from(why: String) -> Self {
        Self(why)
    }
}

impl From<&str> for ConversionError {
    fn from(why: &str) -> Self {
        Self(why.to_owned())
    }
}

/// The versions of a kind: see [`Spoke`]. Given to [`Manager::versions`](crate::Manager::versions).
pub struct Versions<H> {
    definitions: Vec<CustomResourceDefinition>,
    stored: String,
    conversions: Conversions,
    hub: PhantomData<fn() -> H>,
}

/// Definitions that are not of one kind.
#[derive(Debug, thiserror::Error)]
#[error("the versions of {kind} are not of one kind: group, kind, names and scope must be the same in each")]
pub struct VersionsError {
    kind: String,
    #[source]
    source: MergeError,
}

/// How the objects of a kind are converted, with types erased.
#[derive(Clone)]
pub(crate) struct Conversions {
    pub(super) kind: Kind,
    /// By version; not the hub.
    pub(super) spokes: BTreeMap<String, Converting>,
}

type Convert = dyn Fn(&Value) -> Result<Value, String> + Send + Sync;

#[derive(Clone)]
pub(super) struct Converting {
    pub(super) to_hub: Arc<Convert>,
    pub(super) from_hub: Arc<Convert>,
}

impl Versions<()> {
    /// This version is the hub. It is also the version that objects are stored in, unless [`Versions::stored`] says otherwise.
    #[must_use]
    pub fn hub<H: Object + CustomResourceExt>() -> Versions<H> {
        let kind = Kind::of::<H>();
        Versions {
            definitions: vec![H::crd()],
            stored: kind.version.to_string(),
            conversions: Conversions { kind, spokes: BTreeMap::new() },
            hub: PhantomData,
        }
    }
}

impl<H: Object + CustomResourceExt> Versions<H> {
    /// And this version, which converts to the hub and back.
    #[must_use]
    pub fn spoke<S: Spoke<Hub = H> + CustomResourceExt>(mut self) -> Self {
        self.definitions.push(S::crd());
        let converting = Converting {
            to_hub: Arc::new(|object| {
                encode(read::<S>(object)?.to_hub().map_err(|error| error.to_string())?)
            }),
            from_hub: Arc::new(|object| {
                encode(S::from_hub(&read::<H>(object)?).map_err(|error| error.to_string())?)
            }),
        };
        self.conversions.spokes.insert(Kind::of::<S>().version.into_owned(), converting);
        self
    }

    /// Objects are stored in this version, instead of that of the hub. To change it, first serve the new version for a while, then store
    /// it, then run `windlass migrate`.
    #[must_use]
    pub fn stored<S: Object>(mut self) -> Self {
        self.stored = Kind::of::<S>().version.into_owned();
        self
    }

    /// The CRD, with all versions. Who converts is not in it: `windlass generate` writes it, and the operator fills in whom to trust.
    ///
    /// # Errors
    /// [`VersionsError`] when the versions are not of one kind.
    pub fn crd(&self) -> Result<CustomResourceDefinition, VersionsError> {
        merge_crds(self.definitions.clone(), &self.stored)
            .map_err(|source| VersionsError { kind: self.conversions.kind.kind.to_string(), source })
    }

    pub(crate) fn conversions(&self) -> &Conversions {
        &self.conversions
    }
}

impl Conversions {
    /// The name of the CRD.
    pub(crate) fn definition(&self) -> String {
        format!("{}.{}", self.kind.plural, self.kind.group)
    }

    /// Whether objects of a kind are converted by these.
    pub(crate) fn concern(&self, kind: &Kind) -> bool {
        (&self.kind.group, &self.kind.plural) == (&kind.group, &kind.plural)
    }
}

impl<H> std::fmt::Debug for Versions<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let spokes: Vec<&String> = self.conversions.spokes.keys().collect();
        f.debug_struct("Versions")
            .field("hub", &self.conversions.kind)
            .field("spokes", &spokes)
            .finish_non_exhaustive()
    }
}

fn read<K: Object>(object: &Value) -> Result<K, String> {
    let kind = Kind::of::<K>();
    K::deserialize(object)
        .map_err(|error| format!("it is not understood as {} ({}): {error}", kind.kind, kind.api_version()))
}

fn encode(object: impl Object) -> Result<Value, String> {
    serde_json::to_value(object)
        .map_err(|error| format!("what it is converted to cannot be written: {error}"))
}
