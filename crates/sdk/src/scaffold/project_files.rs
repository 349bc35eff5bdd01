//! The files of a project before it has any API: Cargo.toml, main.rs, Makefile, Dockerfile and so on.

use super::code_names::header;
use super::project::{License, Project};
use crate::files::File;

/// Where the library comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A checkout on this machine, by its folder.
    Path(String),
    /// A git repository, by its URL, and a revision of it; without one, what its main branch has when the project is first built.
    Git {
        /// Its URL.
        url: String,
        /// A commit, or a tag.
        revision: Option<String>,
    },
    /// A version on crates.io, or on the registry that stands for it.
    Version(String),
}

const CARGO: &str = include_str!("templates/Cargo.toml.txt");
const MAIN: &str = include_str!("templates/main.rs.txt");
const LIB: &str = include_str!("templates/lib.rs.txt");
const MAKEFILE: &str = include_str!("templates/Makefile.txt");
const DOCKERFILE: &str = include_str!("templates/Dockerfile.txt");
const README: &str = include_str!("templates/README.md.txt");
const CI: &str = include_str!("templates/ci.yaml.txt");
const MIT: &str = include_str!("templates/MIT.txt");
const APACHE: &str = include_str!("templates/Apache-2.0.txt");

/// All of it but `PROJECT` and the generated module.
pub(super) fn files(project: &Project, source: &Source) -> Vec<File> {
    let head = header(project.license);
    let filled = |text: &str| fill(text, project, source);
    let mut files = vec![
        File::new("Cargo.toml", filled(CARGO)),
        File::new("src/main.rs", format!("{head}{}", filled(MAIN))),
        File::new("src/lib.rs", format!("{head}{}", filled(LIB))),
        File::new("src/api/mod.rs", format!("{head}//! What users declare.\n")),
        File::new(
            "src/controller/mod.rs",
            format!("{head}//! What follows from what users declare: pure decisions.\n"),
        ),
        File::new("Makefile", filled(MAKEFILE)),
        File::new("Dockerfile", filled(DOCKERFILE)),
        File::new(".dockerignore", ".git\ntarget\n"),
        File::new(".gitignore", "/target\n"),
        File::new(".github/workflows/ci.yaml", filled(CI)),
        File::new("README.md", filled(README)),
    ];
    match project.license {
        License::Apache2 => files.push(File::new("LICENSE", APACHE)),
        License::Mit => files.push(File::new("LICENSE", filled(MIT))),
        License::None => {}
    }
    files
}

fn fill(text: &str, project: &Project, source: &Source) -> String {
    let of = |folder: &str| match source {
        // Cargo finds the crate in the repository by its name.
        Source::Git { url, revision: None } => format!("{{ git = {url:?} }}"),
        Source::Git { url, revision: Some(revision) } => format!("{{ git = {url:?}, rev = {revision:?} }}"),
        Source::Version(version) => format!("{version:?}"),
        Source::Path(path) => format!("{{ path = {:?} }}", format!("{path}/crates/{folder}")),
    };
    let install = match source {
        Source::Git { url, revision: None } => format!("--git {url} windlass-cli"),
        Source::Git { url, revision: Some(revision) } => format!("--git {url} --rev {revision} windlass-cli"),
        Source::Version(version) => format!("--version {version} windlass-cli"),
        Source::Path(path) => format!("--path {path}/crates/cli"),
    };
    let license = match project.license {
        License::Apache2 => "license = \"Apache-2.0\"\n",
        License::Mit => "license = \"MIT\"\n",
        License::None => "",
    };
    let note = match source {
        Source::Git { .. } | Source::Version(_) => "",
        Source::Path(_) => {
            "# Cargo.toml takes windlass from a folder outside of this one, which neither a container build nor CI sees: first take it \
             from a git repository or from a registry.\n"
        }
    };
    text.replace("{{name}}", &project.name)
        .replace("{{crate}}", &project.name.replace('-', "_"))
        .replace("{{license}}", license)
        .replace("{{windlass}}", &of("runtime"))
        .replace("{{windlass-testing}}", &of("testing"))
        .replace("{{path-note}}", note)
        .replace("{{install}}", &install)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_library_is_a_path_a_revision_or_a_version() {
        let project = Project::new("shop-operator", "example.com", License::None, false);
        let manifest = |source| {
            let files = files(&project, &source);
            files.into_iter().find(|file| file.path == Path::new("Cargo.toml")).map(|file| file.text)
        };
        let path = manifest(Source::Path("/src/windlass".to_owned())).unwrap_or_default();
        assert!(path.contains("windlass = { path = \"/src/windlass/crates/runtime\" }\n"), "{path}");
        let git = |revision: Option<&str>| {
            let (url, revision) = ("https://example.com/w.git".to_owned(), revision.map(str::to_owned));
            manifest(Source::Git { url, revision }).unwrap_or_default()
        };
        let fixed = git(Some("v0.1.0"));
        assert!(
            fixed.contains("windlass = { git = \"https://example.com/w.git\", rev = \"v0.1.0\" }\n"),
            "{fixed}"
        );
        let version = manifest(Source::Version("0.1.0".to_owned())).unwrap_or_default();
        assert!(version.contains("windlass = \"0.1.0\"\n"), "{version}");
        assert!(version.contains("windlass-testing = \"0.1.0\"\n"), "{version}");
        let git = git(None);
        assert!(git.contains("windlass = { git = \"https://example.com/w.git\" }\n"), "{git}");
        assert!(git.contains("windlass-testing = { git = \"https://example.com/w.git\" }\n"), "{git}");
    }

    /// What the project depends on must be what the library was built with, or its types are others.
    #[test]
    fn projects_depend_on_what_the_library_does() -> anyhow::Result<()> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
        let workspace = std::fs::read_to_string(root)?;
        for name in ["k8s-openapi", "kube", "mimalloc", "schemars", "serde", "serde_json", "tokio", "anyhow"]
        {
            let version = |text: &str| {
                let line =
                    text.lines().find_map(|line| line.strip_prefix(&format!("{name} = ")).map(str::to_owned));
                let line = line.unwrap_or_default();
                let at = line.find("version = ").map_or(0, |at| at + "version = ".len());
                line[at..].split('"').nth(1).unwrap_or_default().to_owned()
            };
            assert_eq!(version(CARGO), version(&workspace), "{name}");
        }
        for same in ["edition = ", "rust-version = "] {
            let line = |text: &str| text.lines().find(|line| line.starts_with(same)).map(str::to_owned);
            assert_eq!(line(CARGO), line(&workspace));
        }
        Ok(())
    }
}
