//! Directories that a pod may have filled: nested to any depth, with any names, and with links to anywhere.
//!
//! A walk goes from descriptor to descriptor and never by path, so nothing outside is reached, and there is no longest path. It
//! holds at most three descriptors and does not recurse, so there is no deepest directory either.

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::io;
use std::path::Path;

/// How many entries of one directory are taken at once by [`remove`].
const BATCH: usize = 4096;

/// A file or a directory that a walk has come to.
pub(crate) struct Found<'a> {
    folder: BorrowedFd<'a>,
    name: &'a CStr,
    pub(crate) stat: Stat,
}

/// What to do with a directory that a walk has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Go on, and into it if it is a directory.
    Enter,
    /// Go on behind it.
    Skip,
    /// End the walk.
    Stop,
}

impl Found<'_> {
    pub(crate) fn is_dir(&self) -> bool {
        FileType::from_raw_mode(self.stat.st_mode) == FileType::Directory
    }

    /// Changes the group of this very file, and then its mode unless it is a symbolic link.
    pub(crate) fn change_group(&self, group: u32, mode: impl FnOnce(u32) -> u32) -> io::Result<()> {
        let file = rustix::fs::openat(
            self.folder,
            self.name,
            OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        // Of what was opened, which need not be what was found.
        let stat = rustix::fs::fstat(&file)?;
        let group = rustix::fs::Gid::from_raw(group);
        rustix::fs::chownat(&file, c"", None, Some(group), AtFlags::EMPTY_PATH)?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
            return Ok(());
        }
        change_mode(&file, mode(stat.st_mode & 0o7777))
    }
}

/// Goes through everything in a directory, each directory before what is in it. Directories that vanish or may not be read are left out.
///
/// # Errors
/// What `visit` answers, and when a directory cannot be read, or is moved meanwhile.
pub(crate) fn walk(top: &Path, mut visit: impl FnMut(&Found<'_>) -> io::Result<Next>) -> io::Result<()> {
    let steps = Steps { visit: &mut visit, leave: &mut |_, _| Ok(()), batch: usize::MAX };
    steps.walk(open(CWD, top)?)
}

/// Removes a directory and all in it, also what its owner may not write: without root, all users of containers are the kubelet's
/// own. What is not there is removed.
///
/// # Errors
/// When something in it cannot be removed.
pub fn remove(top: &Path) -> io::Result<()> {
    let opened = match open(CWD, top) {
        Err(Errno::NOENT) => return Ok(()),
        Err(Errno::NOTDIR | Errno::LOOP) => return Ok(rustix::fs::unlink(top)?),
        Err(Errno::ACCESS) => {
            open_to_owner(CWD, top)?;
            open(CWD, top)?
        }
        opened => opened?,
    };
    if rustix::fs::fstat(&opened)?.st_mode & 0o700 != 0o700 {
        rustix::fs::fchmod(&opened, Mode::RWXU)?;
    }
    let mut visit = |found: &Found<'_>| {
        if !found.is_dir() {
            unless_gone(rustix::fs::unlinkat(found.folder, found.name, AtFlags::empty()))?;
            return Ok(Next::Skip);
        }
        if found.stat.st_mode & 0o700 != 0o700 {
            open_to_owner(found.folder, found.name)?;
        }
        Ok(Next::Enter)
    };
    let mut leave = |folder: BorrowedFd<'_>, name: &CStr| {
        unless_gone(rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR))
    };
    Steps { visit: &mut visit, leave: &mut leave, batch: BATCH }.walk(opened)?;
    Ok(rustix::fs::rmdir(top)?)
}

type Visit<'a> = &'a mut dyn FnMut(&Found<'_>) -> io::Result<Next>;
type Leave<'a> = &'a mut dyn FnMut(BorrowedFd<'_>, &CStr) -> io::Result<()>;

struct Steps<'a> {
    visit: Visit<'a>,
    /// Called with each directory after all that is in it.
    leave: Leave<'a>,
    /// So many directories of one directory are kept in mind. When they are done it is read again: `leave` must remove them.
    batch: usize,
}

/// A directory that the walk will come back to.
struct Above {
    identity: (u64, u64),
    level: Level,
    /// The directory in it that the walk is in.
    entered: CString,
}

/// What is left to do in a directory.
struct Level {
    rest: Vec<CString>,
    /// There was more than a batch.
    again: bool,
}

impl Steps<'_> {
    fn walk(mut self, mut folder: OwnedFd) -> io::Result<()> {
        let mut above: Vec<Above> = Vec::new();
        let Some(mut level) = self.read(&folder)? else { return Ok(()) };
        loop {
            if let Some(name) = level.rest.pop() {
                let below = match open(&folder, &*name) {
                    Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => continue,
                    opened => opened?,
                };
                above.push(Above { identity: identity(&folder)?, level, entered: name });
                folder = below;
                let Some(read) = self.read(&folder)? else { return Ok(()) };
                level = read;
            } else if level.again {
                let Some(read) = self.read(&folder)? else { return Ok(()) };
                level = read;
            } else {
                let Some(back) = above.pop() else { return Ok(()) };
                let parent = open(&folder, c"..")?;
                if identity(&parent)? != back.identity {
                    return Err(io::Error::other("a directory was moved while it was read"));
                }
                folder = parent;
                (self.leave)(folder.as_fd(), &back.entered)?;
                level = back.level;
            }
        }
    }

    /// Visits what is in a directory; answers the directories to enter, or none where the walk ends.
    fn read(&mut self, folder: &OwnedFd) -> io::Result<Option<Level>> {
        let mut level = Level { rest: Vec::new(), again: false };
        for entry in Dir::read_from(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            if level.rest.len() >= self.batch {
                level.again = true;
                break;
            }
            let stat = match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => continue,
                stat => stat?,
            };
            let found = Found { folder: folder.as_fd(), name, stat };
            match (self.visit)(&found)? {
                Next::Enter if found.is_dir() => level.rest.push(name.to_owned()),
                Next::Enter | Next::Skip => {}
                Next::Stop => return Ok(None),
            }
        }
        Ok(Some(level))
    }
}

fn open<P: rustix::path::Arg>(folder: impl AsFd, name: P) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::openat(folder, name, flags, Mode::empty())
}

fn identity(folder: &OwnedFd) -> io::Result<(u64, u64)> {
    let stat = rustix::fs::fstat(folder)?;
    Ok((stat.st_dev, stat.st_ino))
}

/// Lets the owner of a directory read and write it.
fn open_to_owner<P: rustix::path::Arg>(folder: impl AsFd, name: P) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    change_mode(&rustix::fs::openat(folder, name, flags, Mode::empty())?, 0o700)
}

/// Changes the mode of what was opened, also of what may not be read: the kernel has no other way for descriptors of that kind.
fn change_mode(file: &OwnedFd, mode: u32) -> io::Result<()> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(rustix::fs::chmod(path, Mode::from_raw_mode(mode))?)
}

fn unless_gone(removed: Result<(), Errno>) -> io::Result<()> {
    match removed {
        Err(Errno::NOENT) => Ok(()),
        removed => Ok(removed?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// Directories in one another, each made in the last: no path leads that deep.
    fn nested(top: &Path, depth: usize) {
        fs::create_dir(top).unwrap();
        let mut folder = open(CWD, top).unwrap();
        for _ in 0..depth {
            rustix::fs::mkdirat(&folder, c"d", Mode::RWXU).unwrap();
            folder = open(&folder, c"d").unwrap();
        }
    }

    #[test]
    fn no_depth_is_too_deep() {
        let here = tempfile::tempdir().unwrap();
        let top = here.path().join("top");
        nested(&top, 20_000);
        let small_stack = std::thread::Builder::new().stack_size(64 << 10);
        let done = small_stack.spawn(move || {
            let mut count = 0;
            walk(&top, |_| {
                count += 1;
                Ok(Next::Enter)
            })
            .unwrap();
            remove(&top).unwrap();
            (count, top.exists())
        });
        assert_eq!(done.unwrap().join().unwrap(), (20_000, false));
    }

    #[test]
    fn more_than_a_batch_of_directories_is_removed() {
        let here = tempfile::tempdir().unwrap();
        let top = here.path().join("top");
        for number in 0..=BATCH {
            fs::create_dir_all(top.join(number.to_string()).join("in")).unwrap();
        }
        remove(&top).unwrap();
        assert!(!top.exists());
    }

    #[test]
    fn a_directory_is_removed_whatever_its_owner_may_and_wherever_links_lead() {
        let here = tempfile::tempdir().unwrap();
        let (top, outside) = (here.path().join("top"), here.path().join("outside"));
        let inner = top.join("closed/deep");
        fs::create_dir_all(&inner).unwrap();
        fs::create_dir_all(outside.join("kept")).unwrap();
        fs::write(inner.join("file"), "").unwrap();
        symlink(&outside, inner.join("out")).unwrap();
        symlink("/", top.join("root")).unwrap();
        fs::set_permissions(top.join("closed"), fs::Permissions::from_mode(0o000)).unwrap();
        fs::set_permissions(&top, fs::Permissions::from_mode(0o000)).unwrap();
        remove(&top).unwrap();
        assert!(!top.exists() && outside.join("kept").exists());
        remove(&top).unwrap();
        symlink(&outside, &top).unwrap();
        remove(&top).unwrap();
        assert!(fs::symlink_metadata(&top).is_err() && outside.join("kept").exists());
    }

    #[test]
    fn a_walk_ends_where_it_is_told_to() {
        let here = tempfile::tempdir().unwrap();
        for path in ["a/b", "c/d"] {
            fs::create_dir_all(here.path().join(path)).unwrap();
        }
        let mut seen = 0;
        walk(here.path(), |_| {
            seen += 1;
            Ok(if seen == 2 { Next::Stop } else { Next::Skip })
        })
        .unwrap();
        assert_eq!(seen, 2);
    }
}
