//! How the projects are built that tests and benches make with the SDK: apart from this repository, yet sharing what it has
//! built.

use std::path::Path;

/// What a project's own root depends on of this repository. Another workspace builds these anew, as quickly as can be.
const LIBRARY: [&str; 6] = [
    "windlass",
    "windlass-apiserver",
    "windlass-clock",
    "windlass-cluster",
    "windlass-schema",
    "windlass-testing",
];

/// The profiles of the library, for a project's `Cargo.toml` or its cargo's settings.
pub fn library_profiles() -> String {
    LIBRARY.map(|name| format!("\n[profile.dev.package.{name}]\nopt-level = 0\n")).concat()
}

/// Settings for cargo, under which dependencies are built as this repository builds them, and in its folder.
pub fn cargo_settings(repository: &Path) -> String {
    let shared = repository.join("target");
    format!(
        "[build]\nbuild-dir = {shared:?}\nincremental = false\n\n[profile.dev.package.\"*\"]\nopt-level = 1\ndebug = false\n{}",
        library_profiles()
    )
}
