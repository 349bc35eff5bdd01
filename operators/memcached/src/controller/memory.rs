//! The `--memory-limit` of a server: the memory for items must leave room for everything else below the container's memory limit.

use k8s_openapi::api::core::v1::ResourceRequirements;
use windlass::quantity;

/// What memcached takes by itself, in MiB.
const DEFAULT: u64 = 64;

/// In MiB: three quarters of the limit, or memcached's own default where there is none that can be reached.
pub(super) fn for_items(resources: Option<&ResourceRequirements>) -> u64 {
    let limit = resources.and_then(|resources| resources.limits.as_ref()?.get("memory"));
    let bytes = limit.and_then(quantity::value).filter(|bytes| *bytes < i64::MAX);
    let bytes = bytes.and_then(|bytes| u64::try_from(bytes).ok());
    bytes.map_or(DEFAULT, |bytes| (bytes / 4 * 3 / (1 << 20)).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

    #[test]
    fn items_leave_room_below_the_limit() {
        let limited = |memory: &str| ResourceRequirements {
            limits: Some([("memory".to_owned(), Quantity(memory.to_owned()))].into()),
            ..Default::default()
        };
        for (memory, items) in [
            ("128Mi", 96),
            ("1Gi", 768),
            ("1.5Gi", 1152),
            ("1536Mi", 1152),
            ("1e9", 715),
            ("1610612736000m", 1152),
            ("134217728", 96),
            ("1M", 1),
            ("lots", 64),
            ("-1Gi", 64),
            ("99999999999Ti", 64),
        ] {
            assert_eq!(for_items(Some(&limited(memory))), items, "{memory}");
        }
        assert_eq!(for_items(None), 64);
    }
}
