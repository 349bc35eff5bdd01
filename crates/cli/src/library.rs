//! Where the `windlass` library of a new project comes from: a checkout, a git repository, or a registry.

use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use windlass_sdk::scaffold::Source;

/// A source, and why it was chosen.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Library {
    pub(crate) source: Source,
    /// The versions of crates that the library was tested with, as a `Cargo.lock`.
    pub(crate) lock: Option<String>,
    /// Whether it is the checkout that this program was built from, and nobody named it.
    is_default: bool,
}

impl Library {
    /// The one that `--windlass` names. Without it the checkout that this program was built from, if it is on this machine, so
    /// that the project is built with the same code; otherwise the version of this program.
    ///
    /// # Errors
    /// When what is named is nothing of the kind.
    pub(crate) fn choose(named: Option<&str>) -> anyhow::Result<Self> {
        // Compiled in: on the machine of someone else there is no such folder, and the project must not depend on it.
        let built_from = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
        Self::choose_from(named, built_from.filter(|folder| is_checkout(folder)))
    }

    fn choose_from(named: Option<&str>, built_from: Option<&Path>) -> anyhow::Result<Self> {
        match (named, built_from) {
            (Some(url), _) if url.contains("://") => {
                let (url, revision) = match url.split_once('#') {
                    Some((url, revision)) => (url.to_owned(), Some(revision.to_owned())),
                    None => (url.to_owned(), None),
                };
                Ok(Self { source: Source::Git { url, revision }, lock: None, is_default: false })
            }
            (Some(version), _) if is_version(version) => {
                Ok(Self { source: Source::Version(version.to_owned()), lock: None, is_default: false })
            }
            (Some(folder), _) => {
                let whole = PathBuf::from(folder);
                let whole = whole.canonicalize().with_context(|| {
                    format!("{folder} is neither a version nor a folder; a git URL is written as https://... or ssh://...")
                })?;
                if !is_checkout(&whole) {
                    bail!("{folder} is no checkout of windlass: it has no crates/runtime");
                }
                Self::checkout(&whole, false)
            }
            (None, Some(folder)) => Self::checkout(folder, true),
            (None, None) => {
                let source = Source::Version(env!("CARGO_PKG_VERSION").to_owned());
                Ok(Self { source, lock: None, is_default: true })
            }
        }
    }

    fn checkout(folder: &Path, is_default: bool) -> anyhow::Result<Self> {
        let lock = std::fs::read_to_string(folder.join("Cargo.lock")).ok();
        let path = folder.to_str().context("the path of windlass is not in UTF-8")?.to_owned();
        Ok(Self { source: Source::Path(path), lock, is_default })
    }

    /// What was chosen, and how to change it.
    pub(crate) fn explain(&self) -> String {
        match &self.source {
            Source::Git { url, revision: None } => {
                format!(
                    "windlass from the git repository {url}, as Cargo.toml says; add #REVISION to the URL to fix one"
                )
            }
            Source::Git { url, revision: Some(revision) } => {
                format!("windlass from {revision} of the git repository {url}, as Cargo.toml says")
            }
            Source::Version(version) => format!(
                "windlass {version} from crates.io, where it must be published before the project builds; --windlass names a \
                 checkout, the URL of a git repository, or another version instead"
            ),
            Source::Path(path) if self.is_default => format!(
                "windlass from {path}, the checkout that this program was built from; to use another, give --windlass or edit Cargo.toml"
            ),
            Source::Path(path) => format!("windlass from the checkout {path}, as Cargo.toml says"),
        }
    }
}

/// Whether it is a version such as `0.1` or `0.1.0`, and no folder.
fn is_version(text: &str) -> bool {
    let mut numbers = text.split('.');
    text.contains('.')
        && numbers.clone().count() <= 3
        && numbers.all(|number| !number.is_empty() && number.bytes().all(|one| one.is_ascii_digit()))
}

fn is_checkout(folder: &Path) -> bool {
    let manifest = std::fs::read_to_string(folder.join("crates/runtime/Cargo.toml"));
    manifest.is_ok_and(|text| text.lines().any(|line| line == "name = \"windlass\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_comes_from_a_registry_a_repository_or_a_folder() {
        let own = Library::choose_from(None, None).unwrap();
        assert_eq!(own.source, Source::Version(env!("CARGO_PKG_VERSION").to_owned()));
        assert!(own.explain().contains("must be published") && own.explain().contains("--windlass"));
        assert_eq!(
            Library::choose_from(Some("0.2"), None).unwrap().source,
            Source::Version("0.2".to_owned())
        );
        let git = |named: &str| Library::choose_from(Some(named), None).unwrap().source;
        let url = "https://example.com/windlass.git".to_owned();
        assert_eq!(git(&url), Source::Git { url: url.clone(), revision: None });
        assert_eq!(git(&format!("{url}#v1")), Source::Git { url, revision: Some("v1".to_owned()) });
        for wrong in ["git@example.com:windlass.git", "/nowhere"] {
            let refused = Library::choose_from(Some(wrong), None).unwrap_err().to_string();
            assert!(refused.contains("nor a folder") && refused.contains("ssh://"), "{refused}");
        }
    }

    #[test]
    fn the_choice_is_explained() {
        let own = Library::choose(None).unwrap();
        assert!(
            own.explain().contains("built from") && own.explain().contains("--windlass"),
            "{}",
            own.explain()
        );
        let Source::Path(path) = &own.source else { panic!("{own:?}") };
        let named = Library::choose(Some(path)).unwrap();
        assert_eq!((&named.source, &named.lock), (&own.source, &own.lock));
        assert!(named.explain().contains("from the checkout"), "{}", named.explain());
    }
}
