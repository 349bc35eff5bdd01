//! Mounting, after the container's root is `/`: no path, whatever links it holds, leads out of it.

use super::Fault;
use nix::mount::{MsFlags, mount};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Without devices, without programs that change user.
pub const QUIET: MsFlags = MsFlags::MS_NOSUID.union(MsFlags::MS_NODEV).union(MsFlags::MS_NOEXEC);

/// Something of the host, held open from before the root was changed.
pub struct Source {
    descriptor: OwnedFd,
    folder: bool,
}

impl Source {
    /// Opens a path of the host.
    pub fn open(path: &Path) -> io::Result<Self> {
        use rustix::fs::{Mode, OFlags};
        let descriptor = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let folder = File::from(descriptor.try_clone()?).metadata()?.is_dir();
        Ok(Self { descriptor, folder })
    }

    /// Shows it at a path of the container, which is made if it is absent.
    pub fn show(&self, at: &Path) -> io::Result<()> {
        if self.folder {
            folder(at, 0o755)?;
        } else {
            file(at)?;
        }
        let from = format!("/proc/self/fd/{}", self.descriptor.as_raw_fd());
        let none: Option<&str> = None;
        Ok(mount(Some(from.as_str()), at, none, MsFlags::MS_BIND | MsFlags::MS_REC, none)?)
    }
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
