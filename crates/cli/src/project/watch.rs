//! When a project is to be built again: some file that it is made of is another.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The files of a project, each with when it was changed and how long it is.
pub(super) type Files = BTreeMap<PathBuf, (i64, i64, u64)>;

/// What a project is made of, as it is now.
pub(super) fn look(project: &Path) -> Files {
    let mut files = Files::new();
    for part in ["Cargo.toml", "Cargo.lock", "build.rs", "src"] {
        add(&project.join(part), &mut files);
    }
    files
}

fn add(path: &Path, files: &mut Files) {
    // What is not there now may be a moment later: editors replace files.
    let Ok(metadata) = fs::symlink_metadata(path) else { return };
    if metadata.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            add(&entry.path(), files);
        }
    } else {
        files.insert(path.to_owned(), (metadata.mtime(), metadata.mtime_nsec(), metadata.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_count_and_what_is_built_does_not() {
        let project = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = project.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("src/api/mod.rs", "1");
        let first = look(project.path());
        write("target/debug/x", "1");
        assert_eq!(look(project.path()), first);
        write("src/api/mod.rs", "22");
        let second = look(project.path());
        assert_ne!(second, first);
        write("src/main.rs", "");
        assert_ne!(look(project.path()), second);
    }
}
