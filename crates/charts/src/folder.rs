//! Charts in folders.

use crate::archive::without_mark;
use crate::chart::read_archive;
use crate::ignore::Rules;
use crate::{Chart, Error, File, read_files};
use std::path::Path;

const MOST_FILES: usize = 20_000;
const MOST_OF_A_FILE: u64 = 50 << 20;

/// Reads a chart from a folder or an archive.
///
/// # Errors
/// If there is none, or it cannot be read.
pub fn read_chart(path: &Path) -> Result<Chart, Error> {
    let of_path = |error: std::io::Error| Error(format!("{}: {error}", path.display()));
    if std::fs::metadata(path).map_err(of_path)?.is_dir() {
        return read_folder(path);
    }
    read_archive(&std::fs::read(path).map_err(of_path)?, 0)
}

/// Reads a chart from a folder, without what its `.helmignore` names.
///
/// # Errors
/// If there is none, or it cannot be read.
pub fn read_folder(folder: &Path) -> Result<Chart, Error> {
    let rules = match std::fs::read_to_string(folder.join(".helmignore")) {
        Ok(text) => Rules::read(&text)?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Rules::read("")?,
        Err(error) => return Err(Error(format!("{}: {error}", folder.join(".helmignore").display()))),
    };
    let mut files = Vec::new();
    walk(folder, "", &rules, 0, &mut files)?;
    read_files(files)
}

fn walk(folder: &Path, above: &str, rules: &Rules, depth: usize, files: &mut Vec<File>) -> Result<(), Error> {
    if depth > 40 {
        return Err(Error(format!("{}: folders lie too deep within each other", folder.display())));
    }
    let entries =
        std::fs::read_dir(folder).map_err(|error| Error(format!("{}: {error}", folder.display())))?;
    let mut names: Vec<_> = entries.filter_map(Result::ok).map(|entry| entry.file_name()).collect();
    names.sort();
    for name in names {
        let path = folder.join(&name);
        let relative = format!("{above}{}", name.to_string_lossy());
        let of_path = |error: std::io::Error| Error(format!("{}: {error}", path.display()));
        // Links are followed, as Helm does; folders that hold themselves end at the bound on depth.
        let found = std::fs::metadata(&path).map_err(of_path)?;
        if rules.ignores(&relative, found.is_dir()) {
            continue;
        }
        if found.is_dir() {
            walk(&path, &format!("{relative}/"), rules, depth + 1, files)?;
            continue;
        }
        if !found.is_file() {
            return Err(Error(format!(
                "cannot load irregular file {} as it has file mode type bits set",
                path.display()
            )));
        }
        if found.len() > MOST_OF_A_FILE || files.len() >= MOST_FILES {
            return Err(Error(format!("{}: the chart is too large", path.display())));
        }
        files.push(File { name: relative, data: without_mark(std::fs::read(&path).map_err(of_path)?) });
    }
    Ok(())
}
