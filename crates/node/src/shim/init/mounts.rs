//! Mounting, after the container's root is `/`: no path, whatever links it holds, leads out of it.
//!
//! Sources and places are descriptors: another container of the pod may rename what a path leads to at any time.

use super::Fault;
use crate::path_below::{Below, is_of_proc};
use nix::mount::{MsFlags, mount};
use rustix::fs::{CWD, StatVfsMountFlags};
use rustix::mount::{MoveMountFlags, OpenTreeFlags, move_mount, open_tree};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
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
        Self::clone_of(open_tree(CWD, path, CLONE)?)
    }

    /// Takes a part of a volume, which links do not lead out of. It is made where it is absent, for whom the volume itself is for.
    pub fn open_part(volume: &Path, part: &Path) -> io::Result<Self> {
        let volume = Below::volume(volume)?;
        let found = match volume.find(part) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                volume.make_folder(part, volume.mode()?)?
            }
            found => found?,
        };
        Self::clone_of(open_tree(found, "", CLONE | OpenTreeFlags::AT_EMPTY_PATH)?)
    }

    fn clone_of(tree: OwnedFd) -> io::Result<Self> {
        let folder = File::from(tree.try_clone()?).metadata()?.is_dir();
        Ok(Self { tree, folder })
    }

    /// Shows it at a path of the container, which is made if it is absent.
    pub fn show(&self, at: &Path) -> io::Result<()> {
        let place =
            made(at, |root| if self.folder { root.make_folder(at, 0o755) } else { root.make_file(at) })?;
        if is_of_proc(&place)? {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "nothing can be mounted in /proc"));
        }
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        Ok(move_mount(&self.tree, "", place, "", flags)?)
    }

    /// Forbids more of what is shown.
    pub fn forbid(&self, flags: MsFlags) -> io::Result<()> {
        let path = format!("/proc/self/fd/{}", self.tree.as_raw_fd());
        Ok(remount(Path::new(&path), flags_of(&self.tree)? | flags)?)
    }
}

/// With what is mounted below it.
const CLONE: OpenTreeFlags =
    OpenTreeFlags::OPEN_TREE_CLONE.union(OpenTreeFlags::OPEN_TREE_CLOEXEC).union(OpenTreeFlags::AT_RECURSIVE);

/// Makes something at a path of the container, also below what is shown read-only.
fn made<T>(at: &Path, make: impl Fn(&Below) -> io::Result<T>) -> io::Result<T> {
    match make(&Below::root(Path::new("/"))?) {
        Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {
            extend(at)?;
            make(&Below::root(Path::new("/"))?)
        }
        made => made,
    }
}

/// Writes a file of the container's image to its root.
pub fn write(at: &Path, contents: &File) -> io::Result<()> {
    made(at, |root| root.replace_file(at, contents))
}

/// What a mount forbids.
pub fn flags_of(mounted: impl AsFd) -> io::Result<MsFlags> {
    let found = rustix::fs::fstatvfs(mounted)?.f_flag;
    let known = [
        (StatVfsMountFlags::RDONLY, MsFlags::MS_RDONLY),
        (StatVfsMountFlags::NOSUID, MsFlags::MS_NOSUID),
        (StatVfsMountFlags::NODEV, MsFlags::MS_NODEV),
        (StatVfsMountFlags::NOEXEC, MsFlags::MS_NOEXEC),
        (StatVfsMountFlags::NOATIME, MsFlags::MS_NOATIME),
        (StatVfsMountFlags::NODIRATIME, MsFlags::MS_NODIRATIME),
        (StatVfsMountFlags::RELATIME, MsFlags::MS_RELATIME),
    ];
    let held = known.into_iter().filter(|(here, _)| found.contains(*here));
    Ok(held.fold(MsFlags::empty(), |all, (_, flag)| all | flag))
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
    // What is made at the end of a link of the image is not what others take it for.
    if Path::new(at).is_symlink() {
        return Err(Fault::during(format!("mount the container's {at}"))(io::Error::other("it is a link")));
    }
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
    remount(at, flags | MsFlags::MS_RDONLY)
        .map_err(|error| Fault::during(format!("make {} read-only", at.display()))(error.into()))
}

/// Sets what a mount forbids.
pub fn remount(at: &Path, flags: MsFlags) -> nix::Result<()> {
    let none: Option<&str> = None;
    mount(none, at, none, flags | MsFlags::MS_BIND | MsFlags::MS_REMOUNT, none)
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
