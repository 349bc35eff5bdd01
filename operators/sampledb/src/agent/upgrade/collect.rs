//! Brings the programs of one image into a pod of another: pg_upgrade runs the servers of both versions.
//!
//! With them come the files that they read, the libraries that they load and the loader that loads those: the other image may have
//! none of them, or of another version. A program becomes a script that calls the loader. Everything keeps its path below the
//! directory that it is brought to, since programs of PostgreSQL find their files by where they are themselves.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The file that says where the programs are.
pub(super) const WHERE: &str = "programs";
/// What pg_upgrade runs of the version before.
const PROGRAMS: [&str; 4] = ["postgres", "pg_ctl", "pg_controldata", "pg_resetwal"];
/// The directory of the libraries.
const LIBRARIES: &str = "libraries";
/// What is large, and not used: statements are not compiled meanwhile.
const LEFT_OUT: [&str; 4] = ["bitcode", "llvmjit.so", "llvmjit_types.bc", "pgxs"];

/// Brings the programs of this image into a directory.
pub(in crate::agent) fn collect(to: &Path) -> Result<(), String> {
    let failed = |what: &Path| {
        let what = what.display().to_string();
        move |error: io::Error| format!("{what}: {error}")
    };
    let bin = directory_of("postgres").ok_or("there is no postgres in PATH")?;
    let libraries = to.join(LIBRARIES);
    fs::create_dir_all(&libraries).map_err(failed(&libraries))?;
    let (share, modules) = (asked(&bin, "--sharedir")?, asked(&bin, "--pkglibdir")?);
    for tree in [&share, &modules] {
        copy_tree(tree, &below(to, tree)).map_err(failed(tree))?;
    }
    let place = below(to, &bin);
    fs::create_dir_all(&place).map_err(failed(&place))?;
    let mut files: Vec<PathBuf> = Vec::new();
    for program in PROGRAMS {
        let (original, copy) = (bin.join(program), place.join(format!(".{program}")));
        fs::copy(&original, &copy).map_err(failed(&original))?;
        let loader = interpreter(&original).map_err(failed(&original))?;
        let (script, content) = (place.join(program), script(to, loader.as_deref(), &copy));
        fs::write(&script, content).map_err(failed(&script))?;
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).map_err(failed(&script))?;
        files.push(original);
    }
    let modules = fs::read_dir(below(to, &modules)).map_err(failed(&modules))?.flatten();
    files.extend(modules.map(|entry| entry.path()).filter(|path| path.extension() == Some(OsStr::new("so"))));
    if let Some(loader) = interpreter(&bin.join("postgres")).map_err(failed(&bin))? {
        fs::copy(&loader, libraries.join("loader")).map_err(failed(&loader))?;
        for library in needed(&loader, &files)? {
            let Some(name) = library.file_name() else { continue };
            fs::copy(&library, libraries.join(name)).map_err(failed(&library))?;
        }
    }
    let place = place.display().to_string();
    fs::write(to.join(WHERE), place).map_err(failed(to))
}

/// What stands for a program. That is beside it, and so finds its files and the others by where it is itself.
fn script(to: &Path, loader: Option<&Path>, program: &Path) -> String {
    let (libraries, program) = (to.join(LIBRARIES), program.display());
    match loader {
        Some(_) => {
            let libraries = libraries.display();
            format!("#!/bin/sh\nexec {libraries}/loader --library-path {libraries} {program} \"$@\"\n")
        }
        None => format!("#!/bin/sh\nexec {program} \"$@\"\n"),
    }
}

fn below(to: &Path, path: &Path) -> PathBuf {
    to.join(path.strip_prefix("/").unwrap_or(path))
}

/// The directory of a program, which may be in `PATH` by a link.
fn directory_of(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found =
        std::env::split_paths(&path).map(|directory| directory.join(program)).find(|path| path.is_file())?;
    Some(fs::canonicalize(found).ok()?.parent()?.to_owned())
}

/// A directory that pg_config knows.
fn asked(bin: &Path, what: &str) -> Result<PathBuf, String> {
    let said = run(&bin.join("pg_config"), &[OsStr::new(what)])?;
    Ok(PathBuf::from(said.trim()))
}

fn run(program: &Path, arguments: &[&OsStr]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| format!("{}: {error}", program.display()))?;
    let said = String::from_utf8_lossy(if output.status.success() { &output.stdout } else { &output.stderr });
    match output.status.success() {
        true => Ok(said.into_owned()),
        false => Err(format!("{}: {}", program.display(), said.trim())),
    }
}

/// The libraries that some files load.
fn needed(loader: &Path, files: &[PathBuf]) -> Result<BTreeSet<PathBuf>, String> {
    let mut needed = BTreeSet::new();
    for file in files {
        // A module whose libraries are not installed cannot be in use.
        let Ok(said) = run(loader, &[OsStr::new("--list"), file.as_os_str()]) else { continue };
        needed.extend(said.lines().filter_map(library));
    }
    Ok(needed)
}

/// The path in a line such as `libz.so.1 => /lib/libz.so.1 (0x7f)`.
fn library(line: &str) -> Option<PathBuf> {
    let (_, found) = line.split_once("=> ")?;
    let path = found.rsplit_once(" (").map_or(found, |(path, _)| path).trim();
    path.starts_with('/').then(|| PathBuf::from(path))
}

/// The loader that a program names; none if it is linked statically.
fn interpreter(program: &Path) -> io::Result<Option<PathBuf>> {
    let content = fs::read(program)?;
    Ok(interpreter_in(&content).map(PathBuf::from))
}

/// The name in the program header `PT_INTERP` of a 64-bit ELF file.
fn interpreter_in(content: &[u8]) -> Option<&str> {
    let number = |at: usize, length: usize| -> Option<usize> {
        let bytes = content.get(at..at.checked_add(length)?)?;
        let value = bytes.iter().rev().fold(0_u64, |value, byte| (value << 8) | u64::from(*byte));
        usize::try_from(value).ok()
    };
    if !content.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (table, size, count) = (number(0x20, 8)?, number(0x36, 2)?, number(0x38, 2)?);
    for index in 0..count {
        let header = table.checked_add(index.checked_mul(size)?)?;
        if number(header, 4)? == 3 {
            let (offset, length) =
                (number(header.checked_add(8)?, 8)?, number(header.checked_add(0x20)?, 8)?);
            let name = content.get(offset..offset.checked_add(length)?)?;
            return std::str::from_utf8(name).ok().map(|name| name.trim_end_matches('\0'));
        }
    }
    None
}

fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if LEFT_OUT.iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        let (path, copy) = (entry.path(), to.join(entry.file_name()));
        // What a link leads to is what is read.
        match fs::metadata(&path) {
            Ok(there) if there.is_dir() && !entry.file_type()?.is_symlink() => copy_tree(&path, &copy)?,
            Ok(there) if there.is_file() => drop(fs::copy(&path, &copy)?),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_loader_names_a_library() {
        assert_eq!(library("\tlibz.so.1 => /lib/x/libz.so.1 (0x00007f)"), Some("/lib/x/libz.so.1".into()));
        assert_eq!(library("\tlinux-vdso.so.1 (0x00007f)"), None);
        assert_eq!(library("\tlibnone.so => not found"), None);
    }

    #[test]
    fn the_loader_of_a_program_is_found() {
        let own = std::env::current_exe().unwrap();
        let loader = interpreter(&own).unwrap();
        assert!(loader.is_none_or(|loader| loader.is_file()));
        let content = fs::read(&own).unwrap();
        for length in [0, 4, 0x20, 0x39, 0x41, 200] {
            assert_eq!(interpreter_in(&content[..length]), None);
        }
    }
}
