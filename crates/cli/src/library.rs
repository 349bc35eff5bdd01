//! Where the `windlass` library of a new project comes from: a checkout, or a git repository. It is not on crates.io.

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
    /// The one that `--windlass` names, or the checkout that this program was built from if it is on this machine.
    ///
    /// # Errors
    /// When what is named is neither, or nothing is named and that checkout is not here.
    pub(crate) fn choose(named: Option<&str>) -> anyhow::Result<Self> {
        // Compiled in: on the machine of someone else there is no such folder, and the project must not depend on it.
        let built_from = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
        Self::choose_from(named, built_from.filter(|folder| is_checkout(folder)))
    }

    fn choose_from(named: Option<&str>, built_from: Option<&Path>) -> anyhow::Result<Self> {
        match (named, built_from) {
            (Some(url), _) if url.contains("://") => {
                Ok(Self { source: Source::Git(url.to_owned()), lock: None, is_default: false })
            }
            (Some(folder), _) => {
                let whole = PathBuf::from(folder);
                let whole = whole.canonicalize().with_context(|| {
                    format!("{folder} is no folder; a git URL is written as https://... or ssh://...")
                })?;
                if !is_checkout(&whole) {
                    bail!("{folder} is no checkout of windlass: it has no crates/runtime");
                }
                Self::checkout(&whole, false)
            }
            (None, Some(folder)) => Self::checkout(folder, true),
            (None, None) => bail!(
                "the library windlass is not on crates.io, and the checkout that this program was built from is not on this \
                 machine; --windlass names a checkout, or the URL of a git repository"
            ),
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
            Source::Git(url) => format!("windlass from the git repository {url}, as Cargo.toml says"),
            Source::Path(path) if self.is_default => format!(
                "windlass from {path}, the checkout that this program was built from; to use another, give --windlass or edit Cargo.toml"
            ),
            Source::Path(path) => format!("windlass from the checkout {path}, as Cargo.toml says"),
        }
    }
}

fn is_checkout(folder: &Path) -> bool {
    let manifest = std::fs::read_to_string(folder.join("crates/runtime/Cargo.toml"));
    manifest.is_ok_and(|text| text.lines().any(|line| line == "name = \"windlass\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_nowhere_has_to_be_named() {
        let refused = Library::choose_from(None, None).unwrap_err().to_string();
        assert!(refused.contains("--windlass") && refused.contains("crates.io"), "{refused}");
        let git = Library::choose_from(Some("https://example.com/windlass.git"), None).unwrap();
        assert_eq!(git.source, Source::Git("https://example.com/windlass.git".to_owned()));
        for wrong in ["git@example.com:windlass.git", "/nowhere"] {
            let refused = Library::choose_from(Some(wrong), None).unwrap_err().to_string();
            assert!(refused.contains("is no folder") && refused.contains("ssh://"), "{refused}");
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
