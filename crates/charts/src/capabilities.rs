//! What a cluster can do, as templates see it.

/// What the cluster can do.
#[derive(Clone, Debug)]
pub struct Capabilities {
    /// Such as `v1.36.0`.
    pub kube_version: String,
    /// Such as `apps/v1` and `apps/v1/Deployment`.
    pub api_versions: Vec<String>,
}
