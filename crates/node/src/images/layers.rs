//! Unpacks layers into a root file system. Nothing is ever written outside of it.

use super::tar::{Entry, Kind, for_each_entry};
use super::{Image, ImageRoot};
use crate::file_tree;
use crate::shim::Bind;
use rustix::fs::{AtFlags, Gid, Mode, OFlags, ResolveFlags, Uid};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// The prefix of a whiteout: the layer deletes this name.
const WHITEOUT: &[u8] = b".wh.";
/// An opaque whiteout: the layer hides what lower layers have in this directory.
const OPAQUE: &[u8] = b".wh..wh..opq";

/// A root file system that is being unpacked.
pub struct Unpacking {
    root: OwnedFd,
    at: PathBuf,
}

impl Unpacking {
    /// Starts in an empty directory.
    pub fn begin(folder: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let root =
            rustix::fs::open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { root, at: folder.to_owned() })
    }

    /// Applies a layer.
    pub fn apply(&self, layer: impl Read) -> io::Result<()> {
        let (mut own, mut folders) = (HashSet::new(), Vec::new());
        for_each_entry(layer, |entry, contents| {
            let Some(path) = inside(&entry.path) else { return Ok(()) };
            let Some(name) = path.file_name() else { return Ok(()) };
            let above = path.parent().unwrap_or(Path::new(""));
            let folder = self.folder(above)?;
            match name.as_bytes().strip_prefix(WHITEOUT) {
                _ if name.as_bytes() == OPAQUE => self.clear(above, &own)?,
                Some(deleted) => self.remove(&above.join(OsStr::from_bytes(deleted)))?,
                None => {
                    if entry.kind == Kind::Directory {
                        folders.push((path.clone(), entry.mode));
                    }
                    self.write(&folder, &path, name, entry, contents)?;
                    own.insert(path);
                }
            }
            Ok(())
        })?;
        // At the end: a directory that is not writable could not be filled.
        for (path, mode) in folders.into_iter().rev() {
            if let Ok(folder) = self.open(&path, OFlags::RDONLY | OFlags::DIRECTORY) {
                rustix::fs::fchmod(folder, Mode::from_raw_mode(mode))?;
            }
        }
        Ok(())
    }

    /// Opens a path as a container would see it: symbolic links are resolved within the root.
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

    /// A directory of the image, created with its parents if the archive has no entries for them.
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
        mut contents: &mut dyn Read,
    ) -> io::Result<()> {
        let there = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok();
        let is_folder = there.is_some_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir());
        if there.is_some() && !(is_folder && entry.kind == Kind::Directory) {
            self.remove(path)?;
        }
        match &entry.kind {
            Kind::Directory if is_folder => {}
            Kind::Directory => rustix::fs::mkdirat(folder, name, Mode::from_raw_mode(0o700))?,
            Kind::Symlink(to) => rustix::fs::symlinkat(to, folder, name)?,
            Kind::HardLink(other) => {
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
                if io::copy(&mut contents, &mut file)? != entry.size {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                rustix::fs::fchmod(&file, Mode::from_raw_mode(entry.mode))?;
            }
            // Device files are never created.
            Kind::Other => return Ok(()),
        }
        let (user, group) = (Uid::from_raw(entry.user), Gid::from_raw(entry.group));
        // Only root can change owners; without root all files belong to the kubelet's user. chown clears setuid, which is set again.
        let given =
            rustix::fs::chownat(folder, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW).is_ok();
        if given && entry.kind == Kind::File && entry.mode & 0o6000 != 0 {
            rustix::fs::chmodat(folder, name, Mode::from_raw_mode(entry.mode), AtFlags::empty())?;
        }
        Ok(())
    }

    /// Removes a path. Symbolic links are resolved within the root only.
    fn remove(&self, path: &Path) -> io::Result<()> {
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
        let Ok(above) = self.open(above, OFlags::PATH | OFlags::DIRECTORY) else { return Ok(()) };
        let real = self.real(&above)?.join(name);
        match std::fs::symlink_metadata(&real) {
            Ok(there) if there.is_dir() => file_tree::remove(&real),
            Ok(_) => std::fs::remove_file(real),
            Err(_) => Ok(()),
        }
    }

    /// Removes what lower layers have in a directory, but not what this layer has put there.
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

    /// The real path of an open directory, which has to be within the root.
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

/// A path relative to the root; `None` if it contains `..`, or is the root itself.
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

/// A root file system with a multi-call program such as busybox, and links for all its applets.
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
        // Another thread or process may have been faster.
        if std::fs::rename(&half, &root).is_err() {
            let _ = std::fs::remove_dir_all(half);
        }
    }
    let show = |from: &Path, to: &Path| Bind {
        from: from.to_owned(),
        to: to.to_owned(),
        read_only: true,
        devices: true,
        ..Bind::default()
    };
    let mut image = Image::of(ImageRoot::FileSystem(root));
    image.binds.push(show(program, Path::new("/bin/busybox")));
    // A dynamically linked program needs the machine's libraries.
    if needs_libraries(program)? {
        for folder in
            ["/lib", "/lib64", "/usr/lib"].map(Path::new).into_iter().filter(|folder| folder.is_dir())
        {
            image.binds.push(show(folder, folder));
        }
    }
    Ok(image)
}

/// Whether a program is dynamically linked: it names a loader near its start.
fn needs_libraries(program: &Path) -> io::Result<bool> {
    let mut head = Vec::new();
    File::open(program)?.take(4096).read_to_end(&mut head)?;
    Ok([&b"/ld-linux"[..], b"/ld-musl"]
        .iter()
        .any(|loader| head.windows(loader.len()).any(|part| part == *loader)))
}

/// A directory beside another one, to be filled and then renamed to it.
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
