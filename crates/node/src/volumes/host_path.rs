//! hostPath volumes: paths of the machine, checked or created as their type says.

use crate::file_tree::{self, Next};
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

/// Changes the group of all files in a directory, as `fsGroup` asks. Another pod may change them meanwhile.
pub(crate) fn change_group(folder: &Path, group: u32) -> io::Result<()> {
    let top = fs::File::open(folder)?;
    std::os::unix::fs::fchown(&top, None, Some(group))?;
    let mode = top.metadata()?.permissions().mode();
    top.set_permissions(fs::Permissions::from_mode(mode | 0o2770))?;
    file_tree::walk(folder, |found| {
        let wanted = if found.is_dir() { 0o2770 } else { 0o660 };
        found.change_group(group, |mode| mode | wanted)?;
        Ok(Next::Enter)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
