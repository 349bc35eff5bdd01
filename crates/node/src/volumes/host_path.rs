//! hostPath volumes: paths of the machine, checked or created as their type says.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Checks a path of the machine, and creates it if the type says so. An error is in a kubelet's words.
pub(crate) fn check(path: &Path, kind: Option<&str>) -> Result<(), String> {
    let shown = path.display();
    let found = fs::metadata(path);
    let is = |test: fn(&fs::FileType) -> bool| found.as_ref().is_ok_and(|found| test(&found.file_type()));
    let must = |holds: bool, what: &str| {
        if holds { Ok(()) } else { Err(format!("hostPath type check failed: {shown} is not {what}")) }
    };
    match kind.unwrap_or_default() {
        // Nothing is checked, and a missing path becomes a directory, as in container runtimes.
        "" if found.is_err() => {
            create_directory(path).map_err(|error| format!("failed to create {shown}: {error}"))
        }
        "" => Ok(()),
        "Directory" => must(is(fs::FileType::is_dir), "a directory"),
        "File" => must(is(fs::FileType::is_file), "a file"),
        "Socket" => must(is(FileTypeExt::is_socket), "a socket file"),
        "CharDevice" => must(is(FileTypeExt::is_char_device), "a character device"),
        "BlockDevice" => must(is(FileTypeExt::is_block_device), "a block device"),
        "DirectoryOrCreate" => {
            if found.is_err() {
                create_directory(path).map_err(|error| format!("failed to create {shown}: {error}"))?;
                return Ok(());
            }
            must(is(fs::FileType::is_dir), "a directory")
        }
        "FileOrCreate" => {
            if found.is_err() {
                let made = fs::OpenOptions::new().write(true).create_new(true).mode(0o644).open(path);
                return made.map(drop).map_err(|error| format!("failed to create {shown}: {error}"));
            }
            must(is(fs::FileType::is_file), "a file")
        }
        other => Err(format!("unknown hostPath type {other:?}")),
    }
}

/// Creates a directory that all may enter, with its parents.
pub(crate) fn create_directory(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o755).create(path)
}

/// Removes a directory and all in it, also what its owner may not write: without root, all users of containers are the kubelet's own.
pub(crate) fn remove_directory(path: &Path) -> io::Result<()> {
    let mut rest = vec![path.to_owned()];
    while let Some(folder) = rest.pop() {
        let found = fs::symlink_metadata(&folder)?;
        if !found.is_dir() {
            continue;
        }
        if found.permissions().mode() & 0o700 != 0o700 {
            fs::set_permissions(&folder, fs::Permissions::from_mode(0o700))?;
        }
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                rest.push(entry.path());
            }
        }
    }
    fs::remove_dir_all(path)
}

/// Changes the group of all files in a directory, as `fsGroup` asks.
pub(crate) fn change_group(folder: &Path, group: u32) -> io::Result<()> {
    let mut rest = vec![folder.to_owned()];
    while let Some(path) = rest.pop() {
        let found = fs::symlink_metadata(&path)?;
        std::os::unix::fs::lchown(&path, None, Some(group))?;
        if found.is_symlink() {
            continue;
        }
        let mode = found.permissions().mode();
        let wanted = if found.is_dir() { mode | 0o2770 } else { mode | 0o660 };
        fs::set_permissions(&path, fs::Permissions::from_mode(wanted))?;
        if found.is_dir() {
            for entry in fs::read_dir(&path)? {
                rest.push(entry?.path());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_removed_whatever_its_owner_may() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("v/closed/deep");
        fs::create_dir_all(&inner).unwrap();
        fs::write(inner.join("file"), "").unwrap();
        std::os::unix::fs::symlink("/", inner.join("out")).unwrap();
        fs::set_permissions(folder.path().join("v/closed"), fs::Permissions::from_mode(0o000)).unwrap();
        remove_directory(&folder.path().join("v")).unwrap();
        assert!(!folder.path().join("v").exists());
    }

    #[test]
    fn paths_are_as_the_type_says() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "").unwrap();
        assert!(check(folder.path(), Some("Directory")).is_ok() && check(&at("file"), Some("File")).is_ok());
        for (name, kind, why) in [
            ("file", "Directory", "is not a directory"),
            ("absent", "File", "is not a file"),
            ("file", "Socket", "is not a socket file"),
            ("file", "BlockDevice", "is not a block device"),
            ("file", "DirectoryOrCreate", "is not a directory"),
        ] {
            let refused = check(&at(name), Some(kind)).unwrap_err();
            assert!(
                refused.starts_with("hostPath type check failed: ") && refused.ends_with(why),
                "{refused}"
            );
        }
        assert!(check(Path::new("/dev/null"), Some("CharDevice")).is_ok());
        check(&at("a/b"), Some("DirectoryOrCreate")).unwrap();
        check(&at("new"), Some("FileOrCreate")).unwrap();
        check(&at("loose"), None).unwrap();
        assert!(at("a/b").is_dir() && at("new").is_file() && at("loose").is_dir());
    }
}
