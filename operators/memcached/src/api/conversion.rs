//! Memcached in v1alpha1 and in v1beta1. Where v1alpha1 has no word for something, an annotation keeps it.

use super::{v1alpha1, v1beta1};
use windlass::webhook::{ConversionError, Spoke};

/// How many clients may be connected to a server.
const MAX_CONNECTIONS: &str = "cache.example.com/max-connections";

impl Spoke for v1alpha1::Memcached {
    type Hub = v1beta1::Memcached;

    fn to_hub(&self) -> Result<v1beta1::Memcached, ConversionError> {
        let mut metadata = self.metadata.clone();
        let kept = metadata.annotations.as_mut().and_then(|all| all.remove(MAX_CONNECTIONS));
        let read = |text: String| {
            text.parse().map_err(|_| format!("annotation {MAX_CONNECTIONS}: {text:?} is no number"))
        };
        let v1alpha1::MemcachedSpec { size, image, resources } = self.spec.clone();
        let max_connections = kept.map(read).transpose()?;
        let status = self.status.clone().map(|v1alpha1::MemcachedStatus { nodes, ready, conditions }| {
            v1beta1::MemcachedStatus { nodes, ready, conditions }
        });
        let spec = v1beta1::MemcachedSpec { size, image, max_connections, resources };
        Ok(v1beta1::Memcached { metadata, spec, status })
    }

    fn from_hub(hub: &v1beta1::Memcached) -> Result<Self, ConversionError> {
        let mut metadata = hub.metadata.clone();
        let v1beta1::MemcachedSpec { size, image, max_connections, resources } = hub.spec.clone();
        if let Some(kept) = max_connections {
            let annotations = metadata.annotations.get_or_insert_default();
            annotations.insert(MAX_CONNECTIONS.to_owned(), kept.to_string());
        }
        let status = hub.status.clone().map(|v1beta1::MemcachedStatus { nodes, ready, conditions }| {
            v1alpha1::MemcachedStatus { nodes, ready, conditions }
        });
        Ok(Self { metadata, spec: v1alpha1::MemcachedSpec { size, image, resources }, status })
    }
}
