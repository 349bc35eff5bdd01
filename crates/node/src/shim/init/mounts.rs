//! Mounting, after the container's root is `/`: no path, whatever links it holds, leads out of it.

use super::Fault;
use nix::mount::{MsFlags, mount};
use rustix::fs::CWD;
use rustix::mount::{MoveMountFlags, OpenTreeFlags, move_mount, open_tree};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Without devices, without programs that change user.
pub const QUIET: MsFlags = MsFlags::MS_NOSUID.union(MsFlags::MS_NODEV).union(MsFlags::MS_NOEXEC);

/// Something of the host, as a mount that is nowhere yet. It is taken before the root changes and needs no path of the host after.
pub struct Source {
    tree: OwnedFd,
    folder: bool,
}

impl Source {
    /// Takes a path of the host, with what is mounted below it.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags =
            OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
        let tree = open_tree(CWD, path, flags)?;
        let folder = File::from(tree.try_clone()?).metadata()?.is_dir();
        Ok(Self { tree, folder })
    }

    /// Shows it at a path of the container, which is made if it is absent.
    pub fn show(&self, at: &Path) -> io::Result<()> {
        match self.make_place(at) {
            Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {
                extend(at)?;
                self.make_place(at)?;
            }
            made => made?,
        }
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_SYMLINKS;
        Ok(move_mount(&self.tree, "", CWD, at, flags)?)
    }

    fn make_place(&self, at: &Path) -> io::Result<()> {
        if self.folder { folder(at, 0o755) } else { file(at) }
    }
}

/// Lets something be made below a folder of the host that is shown read-only: the nearest folder that is there is covered by
/// itself, with a layer above that takes what is made. Images have folders that the host has not.
fn extend(at: &Path) -> io::Result<()> {
    let near = at.ancestors().skip(1).find(|above| above.is_dir()).unwrap_or(Path::new("/"));
    let layers =
        (0..).map(|number| PathBuf::from(format!("/.windlass/{number}"))).find(|layer| !layer.exists());
    let layer = layers.ok_or(io::ErrorKind::AlreadyExists)?;
    let (upper, work) = (layer.join("upper"), layer.join("work"));
    folder(Path::new("/.windlass"), 0o700)?;
    folder(&upper, 0o755)?;
    folder(&work, 0o755)?;
    Ok(overlay(near, &upper, &work, near)?)
}

/// Mounts a folder with a layer above it.
pub fn overlay(lower: &Path, upper: &Path, work: &Path, at: &Path) -> nix::Result<()> {
    let option =
        |path: &Path| path.to_string_lossy().replace('\\', "\\\\").replace(':', "\\:").replace(',', "\\,");
    let options = format!("lowerdir={},upperdir={},workdir={}", option(lower), option(upper), option(work));
    mount(Some("overlay"), at, Some("overlay"), MsFlags::empty(), Some(options.as_str()))?;
    // The kernel's own folder in there is closed to its owner too, who could never remove it.
    let _ = std::fs::set_permissions(work.join("work"), std::os::unix::fs::PermissionsExt::from_mode(0o700));
    Ok(())
}

/// Makes a folder with those above it; one that is there keeps its mode.
pub fn folder(path: &Path, mode: u32) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(above) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o755).create(above)?;
    }
    std::fs::create_dir(path)?;
    // Whatever the mask is.
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode))
}

/// Makes an empty file, unless something is there.
pub fn file(path: &Path) -> io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    if let Some(above) = path.parent() {
        folder(above, 0o755)?;
    }
    OpenOptions::new().create(true).append(true).open(path).map(drop)
}

/// Mounts a file system that the kernel makes.
pub fn make(kind: &str, at: &str, flags: MsFlags, options: &str) -> Result<(), Fault> {
    folder(Path::new(at), 0o755).map_err(Fault::during(format!("make {at}")))?;
    mount(Some(kind), at, Some(kind), flags, Some(options))
        .map_err(|error| Fault::during(format!("mount the container's {at}"))(error.into()))
}

/// A mount there is, as `/proc/self/mountinfo` tells.
struct Mounted {
    at: PathBuf,
    flags: MsFlags,
}

/// Makes read-only what is mounted at or below the paths of `read_only`, but not what is at or below a nearer one of `writable`.
pub fn protect(read_only: &[&Path], writable: &[&Path]) -> Result<(), Fault> {
    if read_only.is_empty() {
        return Ok(());
    }
    let text = std::fs::read_to_string("/proc/self/mountinfo").map_err(Fault::during("list mounts"))?;
    for mounted in text.lines().filter_map(parse) {
        let nearest = |paths: &[&Path]| {
            let above = paths.iter().filter(|path| mounted.at.starts_with(path));
            above.map(|path| path.components().count()).max()
        };
        if nearest(read_only) > nearest(writable) {
            lock(&mounted.at, mounted.flags)?;
        }
    }
    Ok(())
}

/// Makes one mount read-only. What it already forbids must be said again: in a user namespace nothing may be allowed anew.
fn lock(at: &Path, flags: MsFlags) -> Result<(), Fault> {
    let none: Option<&str> = None;
    let flags = flags | MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
    mount(none, at, none, flags, none)
        .map_err(|error| Fault::during(format!("make {} read-only", at.display()))(error.into()))
}

fn parse(line: &str) -> Option<Mounted> {
    let mut fields = line.split(' ').skip(4);
    let at = PathBuf::from(unescape(fields.next()?));
    let flags = fields.next()?.split(',').map(|option| match option {
        "ro" => MsFlags::MS_RDONLY,
        "nosuid" => MsFlags::MS_NOSUID,
        "nodev" => MsFlags::MS_NODEV,
        "noexec" => MsFlags::MS_NOEXEC,
        "noatime" => MsFlags::MS_NOATIME,
        "nodiratime" => MsFlags::MS_NODIRATIME,
        "relatime" => MsFlags::MS_RELATIME,
        _ => MsFlags::empty(),
    });
    Some(Mounted { at, flags: flags.fold(MsFlags::empty(), MsFlags::union) })
}

/// Spaces and the like are written as three octal digits.
fn unescape(field: &str) -> std::ffi::OsString {
    use std::os::unix::ffi::OsStringExt;
    let (mut bytes, mut rest) = (Vec::new(), field.as_bytes());
    while let [first, tail @ ..] = rest {
        let code = (*first == b'\\').then(|| tail.get(..3)).flatten();
        let code = code.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &tail[3..] } else { tail };
    }
    std::ffi::OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_mountinfo_is_read_with_its_spaces_and_flags() {
        let line = r"36 35 98:0 /mnt1 /with\040space/a\134b ro,nosuid,relatime master:1 - ext3 /dev/root rw";
        let mounted = parse(line).unwrap();
        assert_eq!(mounted.at, Path::new(r"/with space/a\b"));
        assert_eq!(mounted.flags, MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_RELATIME);
        assert!(parse("36 35").is_none());
    }
}
