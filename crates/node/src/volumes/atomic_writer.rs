//! Writes a volume's files atomically, as a kubelet does: each version is a directory of its own, and the link `..data` is moved
//! from one to the next.

use super::contents::Files;
use crate::file_tree;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::Path;

/// The link to the current version.
const DATA: &str = "..data";
/// The link that replaces it.
const NEW_DATA: &str = "..data_tmp";

/// The owner of the files, if that is not the kubelet's user.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Owner {
    /// The group that may read it.
    pub(crate) group: Option<u32>,
}

/// Writes these files to the volume's directory. Returns whether anything changed. `stamp` is part of the new version's name.
pub(crate) fn write(folder: &Path, files: &Files, owner: Owner, stamp: &str) -> io::Result<bool> {
    fs::create_dir_all(folder)?;
    let shown = folder.join(DATA);
    let before = fs::read_link(&shown).ok();
    if before.is_some() && is_same(&shown, files)? {
        return Ok(false);
    }
    let name = (0..1000)
        .map(|number| format!("..{stamp}.{number}"))
        .find(|name| !folder.join(name).exists())
        .ok_or_else(|| io::Error::other("too many old versions of a volume are left"))?;
    let state = folder.join(&name);
    fs::create_dir(&state)?;
    fs::set_permissions(&state, fs::Permissions::from_mode(0o755))?;
    for (path, file) in files {
        let target = state.join(path);
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        let mode = if owner.group.is_some() { file.mode | 0o440 } else { file.mode };
        let mut out = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&target)?;
        io::Write::write_all(&mut out, &file.bytes)?;
        if let Some(group) = owner.group {
            std::os::unix::fs::chown(&target, None, Some(group))?;
        }
        out.set_permissions(fs::Permissions::from_mode(mode))?;
    }
    // First the links of new files, which dangle for a moment, then the version, then the links of removed files.
    let tops: BTreeSet<&str> = files.keys().map(|path| path.split('/').next().unwrap_or(path)).collect();
    for top in &tops {
        let link = folder.join(top);
        if fs::symlink_metadata(&link).is_err() {
            symlink(Path::new(DATA).join(top), &link)?;
        }
    }
    let next = folder.join(NEW_DATA);
    match fs::remove_file(&next) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    symlink(&name, &next)?;
    fs::rename(&next, &shown)?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let found = entry.file_name();
        let Some(found) = found.to_str() else { continue };
        if found.starts_with("..") {
            // Old versions, also those that a crash left.
            if found != DATA && found != name && entry.file_type()?.is_dir() {
                file_tree::remove(&entry.path())?;
            }
        } else if !tops.contains(found) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(true)
}

/// Whether the current version has exactly these files.
fn is_same(shown: &Path, files: &Files) -> io::Result<bool> {
    let mut count = 0;
    let mut folders = vec![shown.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(_) => return Ok(false),
        };
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else {
                count += 1;
            }
        }
    }
    let same = |path: &str, bytes: &[u8]| fs::read(shown.join(path)).is_ok_and(|found| found == bytes);
    Ok(count == files.len() && files.iter().all(|(path, file)| same(path, &file.bytes)))
}

#[cfg(test)]
mod tests {
    use super::super::contents::File;
    use super::*;

    fn files(all: &[(&str, &str)]) -> Files {
        let file = |text: &str| File { bytes: text.as_bytes().to_vec(), mode: 0o640 };
        all.iter().map(|(path, text)| ((*path).to_owned(), file(text))).collect()
    }

    #[test]
    fn a_state_replaces_another_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("v");
        let show = |path: &str| fs::read_to_string(folder.join(path));
        let owner = Owner::default();
        assert!(write(&folder, &files(&[("a", "1"), ("in/b", "2")]), owner, "s1").unwrap());
        assert_eq!((show("a").unwrap(), show("in/b").unwrap()), ("1".into(), "2".into()));
        assert_eq!(fs::metadata(folder.join("a")).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(
            !write(&folder, &files(&[("a", "1"), ("in/b", "2")]), owner, "s2").unwrap(),
            "nothing changed"
        );
        let open = fs::File::open(folder.join("a")).unwrap();
        assert!(write(&folder, &files(&[("a", "3"), ("c", "4")]), owner, "s2").unwrap());
        assert_eq!((show("a").unwrap(), show("c").unwrap()), ("3".into(), "4".into()));
        assert!(show("in/b").is_err());
        assert_eq!(io::read_to_string(open).unwrap(), "1", "who reads the old reads all of it");
        let mut left: Vec<_> =
            fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        left.sort();
        assert_eq!(left, ["..data", "..s2.0", "a", "c"]);
    }

    #[test]
    fn what_a_crash_left_is_cleared() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        fs::create_dir(folder.join("..s1.0")).unwrap();
        symlink("..s1.0", folder.join(NEW_DATA)).unwrap();
        assert!(write(folder, &files(&[("a", "1")]), Owner::default(), "s1").unwrap());
        assert_eq!(fs::read_to_string(folder.join("a")).unwrap(), "1");
        assert!(!folder.join("..s1.0").exists() && !folder.join(NEW_DATA).exists());
    }

    #[test]
    fn an_empty_volume_is_a_state_too() {
        let folder = tempfile::tempdir().unwrap();
        assert!(write(folder.path(), &Files::new(), Owner::default(), "s1").unwrap());
        assert!(!write(folder.path(), &Files::new(), Owner::default(), "s2").unwrap());
    }
}
