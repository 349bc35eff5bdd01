//! Paths below a directory that pods can rename and replace while they are used.
//!
//! The kernel resolves each path from a descriptor of the directory, and what comes of it is a descriptor again: nothing is looked
//! up twice, so nothing can be exchanged between a check and its use.

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

/// The kernel gives up where something is renamed in every attempt of its own.
const ATTEMPTS: usize = 64;

/// A directory, and where links in it may lead.
pub(crate) struct Below {
    folder: OwnedFd,
    links: ResolveFlags,
}

impl Below {
    /// A directory that links may not lead out of: such a path is refused.
    pub(crate) fn volume(path: &Path) -> io::Result<Self> {
        Self::open_folder(path, ResolveFlags::BENEATH)
    }

    /// A directory that links are followed in as if it were the root.
    pub(crate) fn root(path: &Path) -> io::Result<Self> {
        Self::open_folder(path, ResolveFlags::IN_ROOT)
    }

    fn open_folder(path: &Path, links: ResolveFlags) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Self { folder, links: links | ResolveFlags::NO_MAGICLINKS })
    }

    /// The mode of the directory itself.
    pub(crate) fn mode(&self) -> io::Result<u32> {
        Ok(rustix::fs::fstat(&self.folder)?.st_mode & 0o7777)
    }

    /// Opens what a path leads to, without reading it.
    pub(crate) fn find(&self, path: &Path) -> io::Result<OwnedFd> {
        self.open(path, OFlags::PATH)
    }

    fn open(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        for _ in 0..ATTEMPTS {
            let opened =
                rustix::fs::openat2(&self.folder, path, flags | OFlags::CLOEXEC, Mode::empty(), self.links);
            match opened {
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(Errno::XDEV) => return Err(io::Error::other("a link leads out of it")),
                opened => return Ok(opened?),
            }
        }
        Err(Errno::AGAIN.into())
    }

    /// Opens a directory. It is made with those above it where they are absent, each with this mode.
    pub(crate) fn make_folder(&self, path: &Path, mode: u32) -> io::Result<OwnedFd> {
        let names = names(path)?;
        let (mut known, mut folder) = (names.len(), None);
        while folder.is_none() {
            let near: PathBuf = names[..known].iter().collect();
            match self.open(&near, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK) {
                Ok(found) => folder = Some(found),
                Err(error) if error.kind() == io::ErrorKind::NotFound && known > 0 => known -= 1,
                // What may be entered and not read is there all the same.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied && known == names.len() => {
                    return self.open(&near, OFlags::PATH | OFlags::DIRECTORY);
                }
                Err(error) => return Err(error),
            }
        }
        let mut folder = folder.ok_or(io::ErrorKind::NotFound)?;
        for name in &names[known..] {
            let made = rustix::fs::mkdirat(&folder, *name, Mode::from_raw_mode(mode));
            let flags =
                OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            match made {
                Err(Errno::EXIST) => folder = rustix::fs::openat(&folder, *name, flags, Mode::empty())?,
                made => {
                    made?;
                    folder = rustix::fs::openat(&folder, *name, flags, Mode::empty())?;
                    // Whatever the mask is.
                    rustix::fs::fchmod(&folder, Mode::from_raw_mode(mode))?;
                }
            }
        }
        Ok(folder)
    }

    /// Opens a file, which is made where it is absent.
    pub(crate) fn make_file(&self, path: &Path) -> io::Result<OwnedFd> {
        match self.find(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            found => return found,
        }
        let (folder, name) = self.parent(path)?;
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&folder, name, flags, Mode::from_raw_mode(0o644))?)
    }

    /// Replaces a file, or makes it, with what is in this one and its mode. A link at its place is replaced as well, not followed.
    pub(crate) fn replace_file(&self, path: &Path, contents: &std::fs::File) -> io::Result<()> {
        let (folder, name) = self.parent(path)?;
        match rustix::fs::unlinkat(&folder, name, rustix::fs::AtFlags::empty()) {
            Err(Errno::NOENT) => {}
            removed => removed?,
        }
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = rustix::fs::openat(&folder, name, flags, Mode::from_raw_mode(0o600))?;
        let mut made = std::fs::File::from(made);
        io::copy(&mut &*contents, &mut made)?;
        made.set_permissions(contents.metadata()?.permissions())
    }

    /// The directory that a path is in, which is made where it is absent, and its name there.
    fn parent<'a>(&self, path: &'a Path) -> io::Result<(OwnedFd, &'a OsStr)> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let above = path.parent().unwrap_or(Path::new(""));
        Ok((self.make_folder(above, 0o755)?, name))
    }
}

/// The names of a path, which may not lead up.
fn names(path: &Path) -> io::Result<Vec<&OsStr>> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name),
            Component::RootDir | Component::CurDir => {}
            Component::ParentDir | Component::Prefix(_) => {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path leads up"));
            }
        }
    }
    Ok(names)
}

/// Whether something is in `/proc`, where nothing may be mounted: containers rely on what is there.
pub(crate) fn is_of_proc(found: impl AsFd) -> io::Result<bool> {
    Ok(rustix::fs::fstatfs(found)?.f_type == rustix::fs::PROC_SUPER_MAGIC)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::sync::atomic::{AtomicBool, Ordering};

    fn inode(found: &OwnedFd) -> u64 {
        rustix::fs::fstat(found).unwrap().st_ino
    }

    #[test]
    fn links_lead_no_further_than_they_may() {
        let here = tempfile::tempdir().unwrap();
        let (top, outside) = (here.path().join("top"), here.path().join("outside"));
        std::fs::create_dir_all(top.join("in")).unwrap();
        std::fs::create_dir(&outside).unwrap();
        for (to, at) in [("in", "near"), ("../outside", "up"), ("/in", "absolute"), ("nowhere", "dangling")] {
            symlink(to, top.join(at)).unwrap();
        }
        let (volume, root) = (Below::volume(&top).unwrap(), Below::root(&top).unwrap());
        let inner = std::fs::metadata(top.join("in")).unwrap().ino();
        assert_eq!(inode(&volume.find(Path::new("near")).unwrap()), inner);
        assert_eq!(inode(&root.find(Path::new("/absolute")).unwrap()), inner);
        for path in ["up", "up/new", "absolute", "dangling/new", "../outside"] {
            assert!(volume.make_folder(Path::new(path), 0o755).is_err(), "{path}");
        }
        root.make_folder(Path::new("/up/new"), 0o755).unwrap_err();
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    }

    #[test]
    fn what_is_made_has_its_mode_and_replaces_links() {
        let here = tempfile::tempdir().unwrap();
        let volume = Below::volume(here.path()).unwrap();
        volume.make_folder(Path::new("a/b"), 0o2777).unwrap();
        let mode = |path: &str| std::fs::metadata(here.path().join(path)).unwrap().permissions().mode();
        assert_eq!((mode("a") & 0o7777, mode("a/b") & 0o7777), (0o2777, 0o2777));
        std::fs::write(here.path().join("source"), "text").unwrap();
        std::fs::write(here.path().join("other"), "kept").unwrap();
        symlink("../other", here.path().join("a/file")).unwrap();
        let source = std::fs::File::open(here.path().join("source")).unwrap();
        volume.replace_file(Path::new("a/file"), &source).unwrap();
        let read = |path: &str| std::fs::read_to_string(here.path().join(path)).unwrap();
        assert_eq!((read("a/file"), read("other")), ("text".into(), "kept".into()));
    }

    #[test]
    fn a_directory_that_is_exchanged_for_a_link_all_the_time_never_leads_out() {
        let here = tempfile::tempdir().unwrap();
        let (top, outside) = (here.path().join("top"), here.path().join("outside"));
        std::fs::create_dir_all(top.join("a/deep")).unwrap();
        std::fs::create_dir_all(outside.join("deep")).unwrap();
        symlink(&outside, top.join("b")).unwrap();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    renameat_with(CWD, top.join("a"), CWD, top.join("b"), RenameFlags::EXCHANGE).unwrap();
                }
            });
            let volume = Below::volume(&top).unwrap();
            let forbidden = std::fs::metadata(outside.join("deep")).unwrap().ino();
            let mut found = 0;
            for _ in 0..3000 {
                if let Ok(deep) = volume.make_folder(Path::new("a/deep/new"), 0o755) {
                    let above = rustix::fs::openat(&deep, "..", OFlags::PATH, Mode::empty()).unwrap();
                    assert_ne!(inode(&above), forbidden);
                    found += 1;
                }
            }
            over.store(true, Ordering::Relaxed);
            assert!(found > 0);
        });
        assert!(!outside.join("deep/new").exists());
    }
}
