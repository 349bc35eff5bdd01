//! How much of its memory a server gives to items: it must stay below the limit with all else that it needs.

use k8s_openapi::api::core::v1::ResourceRequirements;

/// What memcached takes by itself, in MiB.
const DEFAULT: u64 = 64;

/// In MiB: three quarters of the limit, or memcached's own default where there is none that can be read.
pub(super) fn for_items(resources: Option<&ResourceRequirements>) -> u64 {
    let limit = resources.and_then(|resources| resources.limits.as_ref()?.get("memory"));
    let bytes = limit.and_then(|limit| bytes(&limit.0));
    bytes.map_or(DEFAULT, |bytes| (bytes / 4 * 3 / (1 << 20)).max(1))
}

/// A whole quantity in bytes. What is neither whole nor plain is no memory that anyone writes.
fn bytes(quantity: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 8] = [
        ("Ki", 1 << 10),
        ("Mi", 1 << 20),
        ("Gi", 1 << 30),
        ("Ti", 1 << 40),
        ("k", 1_000),
        ("M", 1_000_000),
        ("G", 1_000_000_000),
        ("T", 1_000_000_000_000),
    ];
    let unit = UNITS.iter().find_map(|(unit, worth)| Some((quantity.strip_suffix(unit)?, *worth)));
    let (number, worth) = unit.unwrap_or((quantity, 1));
    number.parse::<u64>().ok()?.checked_mul(worth)
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
        for (memory, items) in
            [("128Mi", 96), ("1Gi", 768), ("134217728", 96), ("1M", 1), ("lots", 64), ("99999999999Ti", 64)]
        {
            assert_eq!(for_items(Some(&limited(memory))), items, "{memory}");
        }
        assert_eq!(for_items(None), 64);
    }
}
