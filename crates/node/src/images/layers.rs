//! Unpacking layers into a root file system, within which all of it stays.

use super::tar::{Archive, Entry, Kind};
use super::{Image, ImageRoot};
use crate::shim::Bind;
use rustix::fs::{AtFlags, Gid, Mode, OFlags, ResolveFlags, Uid};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Marks a name that this layer takes away.
const WHITEOUT: &[u8] = b".wh.";
/// Marks a folder of which this layer shows nothing that was below.
const OPAQUE: &[u8] = b".wh..wh..opq";

/// A root file system that is being unpacked.
pub struct Unpacking {
    root: OwnedFd,
    at: PathBuf,
}

impl Unpacking {
    /// Begins in a folder that is empty.
    pub fn begin(folder: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let root =
            rustix::fs::open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { root, at: folder.to_owned() })
    }

    /// Lays one layer over what is there.
    pub fn lay(&self, layer: impl Read) -> io::Result<()> {
        let mut archive = Archive::new(layer);
        let (mut own, mut folders) = (HashSet::new(), Vec::new());
        while let Some(entry) = archive.next()? {
            let Some(path) = inside(&entry.path) else { continue };
            let Some(name) = path.file_name() else { continue };
            let above = path.parent().unwrap_or(Path::new(""));
            let folder = self.folder(above)?;
            match name.as_bytes().strip_prefix(WHITEOUT) {
                _ if name.as_bytes() == OPAQUE => self.clear(above, &own)?,
                Some(gone) => self.remove(&above.join(OsStr::from_bytes(gone)))?,
                None => {
                    if entry.kind == Kind::Folder {
                        folders.push((path.clone(), entry.mode));
                    }
                    self.write(&folder, &path, name, &entry, &mut archive)?;
                    own.insert(path);
                }
            }
        }
        // At the end: what may not be written could not be filled.
        for (path, mode) in folders.into_iter().rev() {
            if let Ok(folder) = self.open(&path, OFlags::RDONLY | OFlags::DIRECTORY) {
                rustix::fs::fchmod(folder, Mode::from_raw_mode(mode))?;
            }
        }
        Ok(())
    }

    /// Opens a path as the image would see it: its links lead nowhere but within.
    fn open(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        Ok(rustix::fs::openat2(
            &self.root,
            path,
            flags | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::IN_ROOT,
        )?)
    }

    /// A folder of the image, made with those above it where an archive leaves them out.
    fn folder(&self, path: &Path) -> io::Result<OwnedFd> {
        match self.open(path, OFlags::PATH | OFlags::DIRECTORY) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let (Some(above), Some(name)) = (path.parent(), path.file_name()) else { return Err(error) };
                let above = self.folder(above)?;
                rustix::fs::mkdirat(&above, name, Mode::from_raw_mode(0o755))?;
                self.open(path, OFlags::PATH | OFlags::DIRECTORY)
            }
            opened => opened,
        }
    }

    fn write(
        &self,
        folder: &OwnedFd,
        path: &Path,
        name: &OsStr,
        entry: &Entry,
        archive: &mut impl Read,
    ) -> io::Result<()> {
        let there = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok();
        let is_folder = there.is_some_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir());
        if there.is_some() && !(is_folder && entry.kind == Kind::Folder) {
            self.remove(path)?;
        }
        match &entry.kind {
            Kind::Folder if is_folder => {}
            Kind::Folder => rustix::fs::mkdirat(folder, name, Mode::from_raw_mode(0o700))?,
            Kind::Link(to) => rustix::fs::symlinkat(to, folder, name)?,
            Kind::Same(other) => {
                let other = inside(other).ok_or(io::ErrorKind::InvalidData)?;
                let above = self.folder(other.parent().unwrap_or(Path::new("")))?;
                let other = other.file_name().ok_or(io::ErrorKind::InvalidData)?;
                rustix::fs::linkat(above, other, folder, name, AtFlags::empty())?;
                return Ok(());
            }
            Kind::File => {
                let flags =
                    OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let mut file =
                    File::from(rustix::fs::openat(folder, name, flags, Mode::from_raw_mode(0o600))?);
                if io::copy(archive, &mut file)? != entry.size {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                rustix::fs::fchmod(&file, Mode::from_raw_mode(entry.mode))?;
            }
            // Devices are the node's to give.
            Kind::Other => return Ok(()),
        }
        let (user, group) = (Uid::from_raw(entry.user), Gid::from_raw(entry.group));
        // Only root can give files away; to everyone else all of it is their own. A change of owner takes rights, given again.
        let given =
            rustix::fs::chownat(folder, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW).is_ok();
        if given && entry.kind == Kind::File && entry.mode & 0o6000 != 0 {
            rustix::fs::chmodat(folder, name, Mode::from_raw_mode(entry.mode), AtFlags::empty())?;
        }
        Ok(())
    }

    /// Takes away what is there, whatever it is. A path that a link leads elsewhere is followed within the image only.
    fn remove(&self, path: &Path) -> io::Result<()> {
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
        let Ok(above) = self.open(above, OFlags::PATH | OFlags::DIRECTORY) else { return Ok(()) };
        let real = self.real(&above)?.join(name);
        match std::fs::symlink_metadata(&real) {
            Ok(there) if there.is_dir() => std::fs::remove_dir_all(real),
            Ok(_) => std::fs::remove_file(real),
            Err(_) => Ok(()),
        }
    }

    /// Takes away all that is in a folder, but for what this layer itself has put there.
    fn clear(&self, folder: &Path, own: &HashSet<PathBuf>) -> io::Result<()> {
        let opened = self.folder(folder)?;
        for entry in std::fs::read_dir(self.real(&opened)?)? {
            let path = folder.join(entry?.file_name());
            if !own.iter().any(|kept| kept.starts_with(&path)) {
                self.remove(&path)?;
            }
        }
        Ok(())
    }

    /// Where a folder that was opened is, and that it is within.
    fn real(&self, folder: &OwnedFd) -> io::Result<PathBuf> {
        use std::os::fd::AsRawFd;
        let real = std::fs::read_link(format!("/proc/self/fd/{}", folder.as_raw_fd()))?;
        if real.starts_with(self.at.canonicalize()?) {
            Ok(real)
        } else {
            Err(io::ErrorKind::PermissionDenied.into())
        }
    }
}

/// A path without a start and without ways up; none where it has one, or is the root itself.
fn inside(path: &Path) -> Option<PathBuf> {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => clean.push(name),
            Component::CurDir | Component::RootDir => {}
            Component::ParentDir | Component::Prefix(_) => return None,
        }
    }
    (!clean.as_os_str().is_empty()).then_some(clean)
}

/// A root file system with one program under all the names it answers to, and nothing else.
pub fn applets(program: &Path, store: &Path) -> io::Result<Image> {
    let root = store.join("applets").join(program.file_name().unwrap_or_default());
    if !root.is_dir() {
        let list = std::process::Command::new(program).arg("--list").output()?;
        let half = tempfile_beside(&root)?;
        for folder in [
            "bin",
            "etc",
            "dev",
            "proc",
            "sys",
            "usr/bin",
            "usr/sbin",
            "sbin",
            "home",
            "var/spool",
            "var/www",
        ] {
            std::fs::create_dir_all(half.join(folder))?;
        }
        for (path, mode) in [("tmp", 0o1777), ("root", 0o700)] {
            std::fs::create_dir_all(half.join(path))?;
            std::fs::set_permissions(half.join(path), std::os::unix::fs::PermissionsExt::from_mode(mode))?;
        }
        std::fs::write(half.join("bin/busybox"), "")?;
        for name in String::from_utf8_lossy(&list.stdout)
            .lines()
            .filter(|name| *name != "busybox" && !name.contains('/'))
        {
            std::os::unix::fs::symlink("busybox", half.join("bin").join(name))?;
        }
        std::fs::write(
            half.join("etc/passwd"),
            "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/home:/bin/false\n",
        )?;
        std::fs::write(half.join("etc/group"), "root:x:0:\nnobody:x:65534:\n")?;
        // Whoever was quicker made the same.
        if std::fs::rename(&half, &root).is_err() {
            let _ = std::fs::remove_dir_all(half);
        }
    }
    let show = |from: &Path, to: &Path| Bind { from: from.to_owned(), to: to.to_owned(), read_only: true };
    let mut image = Image::of(ImageRoot::FileSystem(root));
    image.binds.push(show(program, Path::new("/bin/busybox")));
    // One that is not linked whole needs the machine's libraries.
    if needs_libraries(program)? {
        for folder in
            ["/lib", "/lib64", "/usr/lib"].map(Path::new).into_iter().filter(|folder| folder.is_dir())
        {
            image.binds.push(show(folder, folder));
        }
    }
    Ok(image)
}

/// Whether a program names a loader near its start, as those do that are not linked whole.
fn needs_libraries(program: &Path) -> io::Result<bool> {
    let mut head = Vec::new();
    File::open(program)?.take(4096).read_to_end(&mut head)?;
    Ok([&b"/ld-linux"[..], b"/ld-musl"]
        .iter()
        .any(|loader| head.windows(loader.len()).any(|part| part == *loader)))
}

/// A folder beside another, to be filled and then take its place.
pub fn tempfile_beside(path: &Path) -> io::Result<PathBuf> {
    let above = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    std::fs::create_dir_all(above)?;
    for number in 0..1000 {
        let half = above.join(format!(".half-{}-{number}", std::process::id()));
        match std::fs::create_dir(&half) {
            Ok(()) => return Ok(half),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}
