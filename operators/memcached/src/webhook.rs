//! What the API server asks before it stores a Memcached: how many connections fit into the memory that a server gets.

use crate::api::v1beta1::Memcached;
use windlass::quantity;
use windlass::webhook::{Admission, Request};

/// memcached's own default.
const CONNECTIONS: i64 = 1024;
/// What the buffers of a connection may take.
const BYTES_OF_ONE: i64 = 16 * 1024;

/// As many connections as memcached has by default, or as fit.
pub fn default(memcached: &mut Memcached, _: &Request<Memcached>) {
    let fitting = fitting(memcached).unwrap_or(CONNECTIONS).clamp(1, CONNECTIONS);
    // It is at most 1024.
    memcached.spec.max_connections.get_or_insert(i32::try_from(fitting).unwrap_or(i32::MAX));
}

/// A server whose clients take its memory would be killed, with all that it holds.
pub fn validate(memcached: &Memcached, _: &Request<Memcached>) -> Admission {
    let wanted = memcached.spec.max_connections.map_or(0, i64::from);
    match fitting(memcached) {
        Some(fitting) if wanted > fitting.max(1) => Admission::invalid(
            "spec.maxConnections",
            format!(
                "{wanted} connections need more memory than spec.resources.limits leaves them: at most {} fit",
                fitting.max(1)
            ),
        ),
        _ => Admission::allow(),
    }
}

/// How many connections fit into the quarter of the memory that items leave; nothing where it is not limited.
fn fitting(memcached: &Memcached) -> Option<i64> {
    let limits = memcached.spec.resources.as_ref()?.limits.as_ref()?;
    let bytes = quantity::value(limits.get("memory")?).filter(|bytes| *bytes > 0)?;
    Some(bytes / 4 / BYTES_OF_ONE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::v1beta1::MemcachedSpec;
    use serde_json::json;

    fn memcached(memory: Option<&str>, max_connections: Option<i32>) -> Memcached {
        let limited = |memory| serde_json::from_value(json!({ "limits": { "memory": memory } })).unwrap();
        let spec =
            MemcachedSpec { size: 1, max_connections, resources: memory.map(limited), ..Default::default() };
        Memcached::new("sample", spec)
    }

    #[test]
    fn connections_fit_into_the_memory() {
        for (memory, fitting) in
            [(None, 1024), (Some("1Gi"), 1024), (Some("16Mi"), 256), (Some("1k"), 1), (Some("lots"), 1024)]
        {
            let mut memcached = memcached(memory, None);
            default(&mut memcached, &Request::create());
            assert_eq!(memcached.spec.max_connections, Some(fitting), "{memory:?}");
            assert!(validate(&memcached, &Request::create()).is_allowed(), "{memory:?}");
        }
    }

    #[test]
    fn more_than_fit_are_refused_and_what_was_said_stays() {
        let refused = validate(&memcached(Some("16Mi"), Some(257)), &Request::create());
        assert_eq!(refused.invalid_fields()[0].field, "spec.maxConnections");
        assert!(refused.message().unwrap().ends_with("at most 256 fit"), "{refused:?}");
        assert!(validate(&memcached(None, Some(1_000_000)), &Request::create()).is_allowed());
        let mut said = memcached(Some("1Gi"), Some(7));
        default(&mut said, &Request::create());
        assert_eq!(said.spec.max_connections, Some(7));
    }
}
