//! The collection that a request's path leads to.

/// A collection of objects, in a namespace or outside.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Collection {
    /// `/api/v1` or `/apis/GROUP/VERSION`.
    root: String,
    pub(super) namespace: Option<String>,
    plural: String,
}

impl Collection {
    /// The collection of a write, given as `METHOD path`. None for Leases: they change with their holder, and need not converge.
    pub(super) fn of(write: &str) -> Option<Self> {
        let (_, path) = write.split_once(' ')?;
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let (root, rest) = match segments.as_slice() {
            ["api", version, rest @ ..] => (format!("/api/{version}"), rest),
            ["apis", group, version, rest @ ..] => (format!("/apis/{group}/{version}"), rest),
            _ => return None,
        };
        let (namespace, plural) = match rest {
            // The subresources of a namespace look like what is in it.
            ["namespaces", namespace, plural, ..] if !["status", "finalize"].contains(plural) => {
                (Some((*namespace).to_owned()), *plural)
            }
            [plural, ..] => (None, *plural),
            [] => return None,
        };
        (plural != "leases").then(|| Self { root, namespace, plural: plural.to_owned() })
    }

    /// Its resource, as rules about requests name it: `pods`, `apps/deployments`.
    pub(super) fn resource(&self) -> String {
        match self.root.split('/').collect::<Vec<_>>().as_slice() {
            [_, "apis", group, _] => format!("{group}/{}", self.plural),
            _ => self.plural.clone(),
        }
    }

    /// The path of its list.
    pub(super) fn path(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{}/namespaces/{namespace}/{}", self.root, self.plural),
            None => format!("{}/{}", self.root, self.plural),
        }
    }

    /// The same in all namespaces.
    pub(super) fn everywhere(&self) -> Self {
        Self { namespace: None, ..self.clone() }
    }

    /// The same in another namespace: tests work in different ones on a cluster that they share.
    pub(super) fn moved(mut self, from: &str, to: &str) -> Self {
        if self.namespace.as_deref() == Some(from) {
            self.namespace = Some(to.to_owned());
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_leads_to_its_collection() {
        for (write, path) in [
            ("POST /api/v1/namespaces/shop/configmaps", "/api/v1/namespaces/shop/configmaps"),
            (
                "PATCH /apis/apps/v1/namespaces/shop/deployments/web/status",
                "/apis/apps/v1/namespaces/shop/deployments",
            ),
            ("PATCH /api/v1/namespaces/shop", "/api/v1/namespaces"),
            ("PUT /api/v1/namespaces/shop/finalize", "/api/v1/namespaces"),
            ("DELETE /apis/x.dev/v1/vaults/v", "/apis/x.dev/v1/vaults"),
        ] {
            assert_eq!(Collection::of(write).unwrap().path(), path);
        }
        let resource = |path: &str| Collection::of(path).unwrap().resource();
        assert_eq!(resource("GET /apis/apps/v1/namespaces/shop/deployments"), "apps/deployments");
        assert_eq!(resource("GET /api/v1/pods"), "pods");
        assert_eq!(Collection::of("PUT /apis/coordination.k8s.io/v1/namespaces/a/leases/b"), None);
        assert_eq!(Collection::of("GET /version"), None);
        let moved = Collection::of("POST /api/v1/namespaces/a/pods").unwrap().moved("a", "b");
        assert_eq!(moved.path(), "/api/v1/namespaces/b/pods");
    }
}
