//! The custom resources, by version: `v1beta1` is the hub, and `conversion` has the way of the others to it and back.

mod conversion;
pub mod v1alpha1;
pub mod v1beta1;

use windlass::webhook::Versions;

/// All versions of Memcached.
pub fn memcached() -> Versions<v1beta1::Memcached> {
    Versions::hub::<v1beta1::Memcached>().spoke::<v1alpha1::Memcached>()
}
