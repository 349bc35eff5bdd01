//! What a container sees as `/`.
//!
//! All that is of the host is taken as detached mounts before the root changes and put in place after it: no link in an
//! image leads out.

use super::super::protocol::Making;
use super::super::spec::{Bind, Container, Identity, ImageFile, Root};
use super::Fault;
use super::devices::{self, Devices};
use super::mounts::{self, Source};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::pivot_root;
use std::fs::File;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Something of the host that the container will see.
struct Shown {
    at: PathBuf,
    what: What,
    read_only: bool,
    devices: bool,
}

enum What {
    Mount(Source),
    /// The host's own link: it leads to the same place in the container.
    Link(PathBuf),
}

/// Makes the root and enters it.
pub fn build(making: &Making) -> Result<(), Fault> {
    let none: Option<&str> = None;
    let container = &making.container;
    let failed = |what: &'static str| move |error: nix::Error| Fault::during(what)(error.into());
    unshare(CloneFlags::CLONE_NEWNS).map_err(failed("make a namespace of mounts"))?;
    // All that is of the host is taken before the root changes, and all that is of the container is made after: no link in an
    // image leads out of it.
    let (root, own, of_host) = match &container.root {
        Root::Shown { writable, paths } => {
            let of_host = paths.iter().map(|path| of_host(path)).collect::<Result<Vec<_>, _>>()?;
            (own_folder(writable)?, true, of_host)
        }
        Root::FileSystem { image, writable } => (layered(image, writable)?, false, Vec::new()),
    };
    let volumes = volumes(container)?;
    let files = files(&container.files)?;
    let devices = Devices::open(&making.shared_memory)?;

    std::env::set_current_dir(&root).map_err(Fault::during("enter the container's root"))?;
    pivot_root(".", ".").map_err(failed("change the root"))?;
    // The host's root lies over the container's now, and paths begin below it. These two are refused to a user namespace that
    // does not see them already.
    devices::proc()?;
    devices::sys(making.own_network)?;
    umount2(".", MntFlags::MNT_DETACH).map_err(failed("leave the host's mounts"))?;
    std::env::set_current_dir("/").map_err(Fault::during("enter the container's root"))?;

    devices.show(making.mapped)?;
    if own {
        devices::expected(&places(&of_host, true))?;
    }
    // Sealed before anything is mounted on top: what has to be made for a volume must not be made on the host.
    show(&of_host)?;
    let ours = [Path::new("/proc"), Path::new("/dev")];
    mounts::protect(&places(&of_host, true), &ours)?;
    for (at, contents) in &files {
        mounts::write(at, contents).map_err(Fault::during(format!("make {}", at.display())))?;
    }
    show(&volumes)?;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)
        .map_err(failed("part from the host's mounts"))?;
    if own {
        known_users(&container.identity).map_err(Fault::during("write the list of users"))?;
    }
    let (mut read_only, mut writable) = (places(&volumes, true), places(&volumes, false));
    writable.extend(ours);
    if container.read_only_root {
        read_only.push(Path::new("/"));
    }
    mounts::protect(&read_only, &writable)?;
    devices::hide()
}

/// The container's volumes, and the file for its last words.
fn volumes(container: &Container) -> Result<Vec<Shown>, Fault> {
    if let Some(bind) = &container.termination_message {
        last_words(bind)?;
    }
    let binds = container.binds.iter().chain(&container.termination_message);
    let shown = binds.map(|bind| {
        let source = match &bind.part {
            None => {
                Source::open(&bind.from).map_err(Fault::during(format!("find {}", bind.from.display())))?
            }
            Some(part) => Source::open_part(&bind.from, part)
                .map_err(Fault::during(format!("prepare the subPath {part:?} of a volume")))?,
        };
        let (at, what) = (rooted(&bind.to), What::Mount(source));
        Ok(Shown { at, what, read_only: bind.read_only, devices: bind.devices })
    });
    shown.collect()
}

/// The files of its image, opened before the root changes.
fn files(all: &[ImageFile]) -> Result<Vec<(PathBuf, File)>, Fault> {
    let opened = all.iter().map(|file| {
        let opened =
            File::open(&file.from).map_err(Fault::during(format!("find {}", file.from.display())))?;
        Ok((rooted(&file.to), opened))
    });
    opened.collect()
}

fn show(all: &[Shown]) -> Result<(), Fault> {
    all.iter().try_for_each(|one| one.make().map_err(Fault::during(format!("show {}", one.at.display()))))
}

fn places(all: &[Shown], read_only: bool) -> Vec<&Path> {
    let mounts = all.iter().filter(|one| matches!(one.what, What::Mount(_)) && one.read_only == read_only);
    mounts.map(|one| one.at.as_path()).collect()
}

impl Shown {
    fn make(&self) -> io::Result<()> {
        match &self.what {
            What::Mount(source) => {
                source.show(&self.at)?;
                let mut forbidden = MsFlags::empty();
                forbidden.set(MsFlags::MS_RDONLY, self.read_only);
                forbidden.set(MsFlags::MS_NOSUID | MsFlags::MS_NODEV, !self.devices);
                if forbidden.is_empty() { Ok(()) } else { source.forbid(forbidden) }
            }
            What::Link(to) => {
                if let Some(above) = self.at.parent() {
                    mounts::folder(above, 0o755)?;
                }
                match symlink(to, &self.at) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                    made => made,
                }
            }
        }
    }
}

fn of_host(path: &Path) -> Result<Shown, Fault> {
    let what = match std::fs::read_link(path) {
        Ok(to) => What::Link(to),
        Err(_) => What::Mount(Source::open(path).map_err(Fault::during(format!("find {}", path.display())))?),
    };
    Ok(Shown { at: rooted(path), what, read_only: true, devices: true })
}

/// A path in the container; one that is not absolute is taken from the root.
fn rooted(path: &Path) -> PathBuf {
    Path::new("/").join(path)
}

/// A folder as a root of its own.
fn own_folder(writable: &Path) -> Result<PathBuf, Fault> {
    let none: Option<&str> = None;
    mounts::folder(writable, 0o755).map_err(Fault::during("make the container's root"))?;
    mount(Some(writable), writable, none, MsFlags::MS_BIND, none)
        .map_err(|error| Fault::during("make the container's root")(error.into()))?;
    Ok(writable.to_owned())
}

/// An unpacked image under a folder that takes the writes; where overlays are refused, a copy of it.
fn layered(image: &Path, writable: &Path) -> Result<PathBuf, Fault> {
    let during = || Fault::during(format!("make a root of {}", image.display()));
    let [upper, work, merged, copy] = ["upper", "work", "merged", "copy"].map(|name| writable.join(name));
    for folder in [&upper, &work, &merged] {
        mounts::folder(folder, 0o755).map_err(during())?;
    }
    if mounts::overlay(image, &upper, &work, &merged).is_ok() {
        return Ok(merged);
    }
    if !copy.is_dir() {
        // Copied under another name first: half a copy must not be taken for a whole one.
        let half = writable.join("half");
        let _ = std::fs::remove_dir_all(&half);
        copied(image, &half).map_err(during())?;
        std::fs::rename(&half, &copy).map_err(during())?;
    }
    own_folder(&copy)
}

fn copied(from: &Path, to: &Path) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, lchown};
    let metadata = std::fs::symlink_metadata(from)?;
    let kind = metadata.file_type();
    if kind.is_dir() {
        std::fs::create_dir(to)?;
        for entry in std::fs::read_dir(from)? {
            let entry = entry?;
            copied(&entry.path(), &to.join(entry.file_name()))?;
        }
    } else if kind.is_symlink() {
        symlink(std::fs::read_link(from)?, to)?;
    } else if kind.is_file() {
        std::fs::copy(from, to)?;
    } else {
        return Ok(());
    }
    // Only root can give files away; to everyone else all of it is their own.
    let _ = lchown(to, Some(metadata.uid()), Some(metadata.gid()));
    if kind.is_symlink() { Ok(()) } else { std::fs::set_permissions(to, metadata.permissions()) }
}

/// Makes the file for last words, which whoever the container runs as may write.
fn last_words(bind: &Bind) -> Result<(), Fault> {
    let made = mounts::file(&bind.from).and_then(|()| {
        std::fs::set_permissions(&bind.from, std::os::unix::fs::PermissionsExt::from_mode(0o666))
    });
    made.map_err(Fault::during("make the file for the termination message"))
}

/// Writes the lists of users and groups, where nobody has shown others: programs look their own user up.
fn known_users(identity: &Identity) -> io::Result<()> {
    let (user, group) = (identity.user, identity.group);
    let mut users =
        String::from("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n");
    let mut groups = String::from("root:x:0:\ntty:x:5:\nnogroup:x:65534:\n");
    if user != 0 && user != 65534 {
        users.push_str(&format!("user{user}:x:{user}:{group}::/:/bin/sh\n"));
    }
    for group in
        std::iter::once(&group).chain(&identity.groups).filter(|group| ![0, 5, 65534].contains(*group))
    {
        groups.push_str(&format!("group{group}:x:{group}:\n"));
    }
    for (path, text) in [("/etc/passwd", users), ("/etc/group", groups)] {
        if !Path::new(path).exists() {
            std::fs::write(path, text)?;
        }
    }
    Ok(())
}
