//! Images as files: an OCI archive or one of `docker save`, compressed or as a directory; or an unpacked root file system.

use super::layers::{Unpacking, tempfile_beside};
use super::recipe::signal_number;
use super::tar::{Kind, for_each_entry};
use super::{Image, ImageRoot, ImageUser};
use ring::digest::{Context, SHA256};
use serde::Deserialize;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Reads the image at a path, and unpacks it into the store the first time.
pub fn image(path: &Path, store: &Path) -> Result<Image, String> {
    let text = |error: io::Error| format!("{}: {error}", path.display());
    let metadata = std::fs::metadata(path).map_err(text)?;
    if metadata.is_dir() && !path.join("oci-layout").exists() {
        let mut image = Image::of(ImageRoot::FileSystem(path.to_owned()));
        image.id = format!("folder://{}", path.display());
        image.command = vec!["/bin/sh".into()];
        return Ok(image);
    }
    // A replaced file is another image.
    let identity = format!(
        "{}|{}|{}|{}",
        path.display(),
        metadata.ino(),
        metadata.len(),
        metadata.mtime_nsec() + metadata.mtime()
    );
    let unpacked =
        store.join("unpacked").join(hex(ring::digest::digest(&SHA256, identity.as_bytes()).as_ref()));
    if !unpacked.is_dir() {
        let half = tempfile_beside(&unpacked).map_err(text)?;
        let made = unpack(path, metadata.is_dir(), &half);
        if let Err(why) = made.and_then(|()| std::fs::rename(&half, &unpacked).map_err(text)) {
            let _ = std::fs::remove_dir_all(&half);
            // Another thread or process may have been faster.
            if !unpacked.is_dir() {
                return Err(why);
            }
        }
    }
    let config = std::fs::read(unpacked.join("config.json")).map_err(text)?;
    let config: Config =
        serde_json::from_slice(&config).map_err(|error| format!("its configuration: {error}"))?;
    Ok(config.image(path, unpacked.join("rootfs")))
}

fn unpack(path: &Path, is_folder: bool, into: &Path) -> Result<(), String> {
    let layout = if is_folder { path.to_owned() } else { into.join("layout") };
    let text = |error: io::Error| error.to_string();
    if !is_folder {
        unpack_archive(path, &layout).map_err(text)?;
    }
    let (config, layers) = contents(&layout)?;
    std::fs::copy(config, into.join("config.json")).map_err(text)?;
    let root = Unpacking::begin(&into.join("rootfs")).map_err(text)?;
    for layer in layers {
        root.apply(open(&layer).map_err(text)?)
            .map_err(|error| format!("layer {}: {error}", layer.display()))?;
    }
    if !is_folder {
        std::fs::remove_dir_all(layout).map_err(text)?;
    }
    Ok(())
}

/// Unpacks an archive of an image: manifests and layers.
fn unpack_archive(path: &Path, into: &Path) -> io::Result<()> {
    for_each_entry(open(path)?, |entry, mut contents| {
        if entry.kind != Kind::File && !matches!(entry.kind, Kind::Symlink(_)) {
            return Ok(());
        }
        let to = within(into, &entry.path)
            .ok_or_else(|| io::Error::other(format!("{} leads out of it", entry.path.display())))?;
        std::fs::create_dir_all(to.parent().unwrap_or(into))?;
        match &entry.kind {
            // Older archives have links from one layer to the file of another.
            Kind::Symlink(link) => {
                let target = entry.path.parent().unwrap_or(Path::new("")).join(link);
                std::os::unix::fs::symlink(resolved(into, &target).ok_or(io::ErrorKind::InvalidData)?, to)?;
            }
            _ => {
                io::copy(&mut contents, &mut File::create(to)?)?;
            }
        }
        Ok(())
    })
}

fn within(folder: &Path, path: &Path) -> Option<PathBuf> {
    let plain = path
        .components()
        .all(|part| matches!(part, std::path::Component::Normal(_) | std::path::Component::CurDir));
    plain.then(|| folder.join(path))
}

/// A path with `..` resolved; `None` if it leads out of the directory.
fn resolved(folder: &Path, path: &Path) -> Option<PathBuf> {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::Normal(name) => clean.push(name),
            std::path::Component::ParentDir => clean.pop().then_some(())?,
            std::path::Component::CurDir => {}
            _ => return None,
        }
    }
    Some(folder.join(clean))
}

/// Opens a file, and decompresses it if it is compressed by gzip.
fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    let mut magic = [0; 4];
    let count = File::open(path)?.take(4).read(&mut magic)?;
    let file = BufReader::with_capacity(64 << 10, File::open(path)?);
    match &magic[..count] {
        [0x1f, 0x8b, ..] => Ok(Box::new(flate2::bufread::MultiGzDecoder::new(file))),
        [0x28, 0xb5, 0x2f, 0xfd] => {
            Err(io::Error::other("layers compressed by zstd are not supported; use gzip"))
        }
        _ => Ok(Box::new(file)),
    }
}

/// The config and the layers of an image in a directory.
fn contents(layout: &Path) -> Result<(PathBuf, Vec<PathBuf>), String> {
    let json = |path: &Path| std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    let inside =
        |name: &str| within(layout, Path::new(name)).ok_or_else(|| format!("{name} leads out of it"));
    if let Ok(text) = std::fs::read(layout.join("manifest.json")) {
        let saved: Vec<Saved> =
            serde_json::from_slice(&text).map_err(|error| format!("manifest.json: {error}"))?;
        let saved = saved.into_iter().next().ok_or("manifest.json names no image")?;
        let layers = saved.layers.iter().map(|layer| inside(layer)).collect::<Result<_, _>>()?;
        return Ok((inside(&saved.config)?, layers));
    }
    let mut index: Index = serde_json::from_slice(&json(&layout.join("index.json"))?)
        .map_err(|error| format!("index.json: {error}"))?;
    // An index may refer to another one, and to images of several platforms.
    for _ in 0..4 {
        let chosen = index.manifests.iter().find(|one| one.matches_platform()).or(index.manifests.first());
        let chosen = chosen.ok_or("index.json names no image")?;
        let text = json(&blob(layout, &chosen.digest)?)?;
        if let Ok(manifest) = serde_json::from_slice::<Manifest>(&text) {
            let layers =
                manifest.layers.iter().map(|layer| blob(layout, &layer.digest)).collect::<Result<_, _>>()?;
            return Ok((blob(layout, &manifest.config.digest)?, layers));
        }
        index = serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", chosen.digest))?;
    }
    Err("index.json is nested too deeply".into())
}

/// A blob by its digest, which is verified.
fn blob(layout: &Path, digest: &str) -> Result<PathBuf, String> {
    let hash = digest.strip_prefix("sha256:").ok_or_else(|| format!("{digest} is not a SHA-256"))?;
    let path = within(&layout.join("blobs/sha256"), Path::new(hash))
        .ok_or_else(|| format!("{digest} leads out of it"))?;
    let found = (|| {
        let (mut file, mut context, mut buffer) =
            (File::open(&path)?, Context::new(&SHA256), vec![0; 64 << 10]);
        loop {
            match file.read(&mut buffer)? {
                0 => return io::Result::Ok(hex(context.finish().as_ref())),
                count => context.update(&buffer[..count]),
            }
        }
    })();
    match found {
        Ok(found) if found == hash => Ok(path),
        Ok(_) => Err(format!("{digest} is damaged: its contents have another digest")),
        Err(error) => Err(format!("{digest}: {error}")),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Saved {
    config: String,
    layers: Vec<String>,
}

#[derive(Deserialize)]
struct Index {
    manifests: Vec<Descriptor>,
}

#[derive(Deserialize)]
struct Manifest {
    config: Descriptor,
    layers: Vec<Descriptor>,
}

#[derive(Deserialize)]
struct Descriptor {
    digest: String,
    platform: Option<Platform>,
}

#[derive(Deserialize)]
struct Platform {
    architecture: String,
    os: String,
}

impl Descriptor {
    fn matches_platform(&self) -> bool {
        let own = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        self.platform.as_ref().is_none_or(|platform| platform.os == "linux" && platform.architecture == own)
    }
}

#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    config: Run,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Run {
    entrypoint: Option<Vec<String>>,
    cmd: Option<Vec<String>>,
    env: Option<Vec<String>>,
    working_dir: Option<String>,
    user: Option<String>,
    stop_signal: Option<String>,
}

impl Config {
    fn image(self, path: &Path, root: PathBuf) -> Image {
        let run = self.config;
        let pairs =
            run.env.unwrap_or_default().into_iter().filter_map(|pair| {
                pair.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()))
            });
        let said = |text: Option<String>| text.filter(|text| !text.is_empty());
        Image {
            id: format!("archive://{}", path.display()),
            entrypoint: run.entrypoint.unwrap_or_default(),
            command: run.cmd.unwrap_or_default(),
            environment: pairs.collect(),
            user: said(run.user).map(|user| user_of(&user, &root)),
            folder: said(run.working_dir).map(PathBuf::from),
            stop_signal: said(run.stop_signal).and_then(|signal| signal_number(&signal)).unwrap_or(15),
            ..Image::of(ImageRoot::FileSystem(root))
        }
    }
}

/// `user` or `user:group`, by number or by name in the image's `/etc/passwd` and `/etc/group`.
fn user_of(text: &str, root: &Path) -> ImageUser {
    let (user, group) = text.split_once(':').map_or((text, None), |(user, group)| (user, Some(group)));
    let listed = |list: &str, name: &str, field: usize| {
        let text = std::fs::read_to_string(root.join(list)).unwrap_or_default();
        let line = text.lines().find(|line| line.split(':').next() == Some(name))?.to_owned();
        line.split(':').nth(field)?.parse().ok()
    };
    let number = user.parse().ok().or_else(|| listed("etc/passwd", user, 2));
    let group = match group {
        Some(group) => group.parse().ok().or_else(|| listed("etc/group", group, 2)),
        None => listed("etc/passwd", user, 3),
    };
    ImageUser { user: number, group, name: user.parse::<u32>().is_err().then(|| user.to_owned()) }
}

impl Image {
    /// An image with this root and an empty config.
    pub(super) fn of(root: ImageRoot) -> Self {
        Self {
            id: String::new(),
            version: None,
            root,
            binds: Vec::new(),
            files: Vec::new(),
            folders: Vec::new(),
            entrypoint: Vec::new(),
            command: Vec::new(),
            environment: Vec::new(),
            user: None,
            users: None,
            groups: None,
            folder: None,
            stop_signal: 15,
        }
    }
}
