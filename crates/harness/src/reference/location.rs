//! Which reference Kubernetes is meant, and where its programs are kept: shared by the harness, which runs it, and by
//! `cargo xtask reference`, which builds it. Standard library only, so that the latter compiles in a second.

use std::path::{Path, PathBuf};

/// The pinned version of Kubernetes, without the `v`.
pub fn version() -> &'static str {
    include_str!("../../../../REFERENCE_VERSION").trim()
}

/// The programs without which there is no reference.
pub const REQUIRED: [&str; 3] = ["etcd", "kube-apiserver", "kubectl"];

/// The programs that make the API server a cluster; a folder the user names may lack them.
pub const CONTROLLERS: [&str; 2] = ["kube-controller-manager", "kube-scheduler"];

/// The variable that names a folder of programs to use instead of those that `make reference` builds.
pub const ASSETS_VARIABLE: &str = "KUBEBUILDER_ASSETS";

/// The folder of the programs that the user named, if any.
pub fn named_assets() -> Option<PathBuf> {
    std::env::var_os(ASSETS_VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Where `make reference` keeps what it built: outside the tree, per version.
///
/// # Errors
/// When neither `XDG_CACHE_HOME` nor `HOME` says where caches go.
pub fn built_folder() -> Result<PathBuf, String> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .ok_or("neither XDG_CACHE_HOME nor HOME names an absolute path, so there is nowhere to keep the reference")?;
    Ok(cache.join("windlass").join("reference").join(version()))
}

/// The programs that `folder` lacks.
pub fn missing_from(folder: &Path, programs: &[&'static str]) -> Vec<&'static str> {
    programs.iter().copied().filter(|program| !folder.join(program).is_file()).collect()
}
