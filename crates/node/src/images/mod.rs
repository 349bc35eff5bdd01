//! Images without a registry: an image name refers to something on this machine.
//!
//! It is looked up in this order: in the image directory (an archive, or an unpacked root file system), in the user's recipes, in the
//! built-in recipes. A recipe says which programs of this machine make up the image, and does what the official image's entrypoint
//! does. `docs/images.md` is for users.

mod archive;
mod layers;
mod name;
mod recipe;
mod tar;

pub use name::Name;
pub use recipe::{Recipe, Recipes};

use crate::shim::{Bind, ImageFile};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// An image that can be run on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Its ID, which also says where it comes from.
    pub id: String,
    /// The version that it prints, if its recipe says how.
    pub version: Option<String>,
    /// Its root file system.
    pub root: ImageRoot,
    /// Files of the machine that are part of it, mounted before the container's volumes.
    pub binds: Vec<Bind>,
    /// Files that are written to its root file system.
    pub files: Vec<ImageFile>,
    /// Further directories, created by [`Image::create_directories`].
    pub folders: Vec<MadeFolder>,
    /// Its entrypoint.
    pub entrypoint: Vec<String>,
    /// Its default command.
    pub command: Vec<String>,
    /// Its environment.
    pub environment: Vec<(String, String)>,
    /// Its user; `None` is root, or the kubelet's user.
    pub user: Option<ImageUser>,
    /// Its `/etc/passwd`; `None` if it is in its root file system.
    pub users: Option<String>,
    /// Its `/etc/group`; `None` if it is in its root file system.
    pub groups: Option<String>,
    /// Its working directory.
    pub folder: Option<PathBuf>,
    /// Its stop signal.
    pub stop_signal: i32,
}

/// The root file system of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageRoot {
    /// These paths of the machine.
    Shown(Vec<PathBuf>),
    /// An unpacked root file system.
    FileSystem(PathBuf),
}

/// The user of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageUser {
    /// The UID; `None` for a name that is not in the image's `/etc/passwd`.
    pub user: Option<u32>,
    /// The GID.
    pub group: Option<u32>,
    /// The name, if the image has one.
    pub name: Option<String>,
}

/// A directory of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeFolder {
    /// Its path.
    pub path: PathBuf,
    /// Its mode.
    pub mode: u32,
    /// Its owner, if the kubelet is root.
    pub owner: u32,
}

/// An image cannot be run on this machine. The text is for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// The image name is invalid.
    #[error("invalid image name {0:?}")]
    Name(String),
    /// There is neither a recipe nor an archive.
    #[error(
        "image {image} not found: this node runs programs of its machine and pulls nothing; add a recipe for {name:?} to {recipes}, \
         or put its archive or unpacked root file system at {folder} (see docs/images.md)"
    )]
    Recipe {
        /// The image.
        image: String,
        /// The recipe's name.
        name: String,
        /// The user's file of recipes.
        recipes: String,
        /// The path for an archive.
        folder: String,
    },
    /// The program of a recipe is not installed.
    #[error("image {image} needs the program {program}, which is not installed: {hint}")]
    Program {
        /// The image.
        image: String,
        /// The program.
        program: String,
        /// What to do.
        hint: String,
    },
    /// Another version than the tag's is installed.
    #[error("image {image} is not there: its version is not installed, {there} is: {hint}")]
    Version {
        /// The image.
        image: String,
        /// Which is.
        there: String,
        /// What to do.
        hint: String,
    },
    /// The archive or the recipe is invalid.
    #[error("image {image} cannot be used: {why}")]
    Broken {
        /// The image.
        image: String,
        /// Why.
        why: String,
    },
}

/// The images of a node.
#[derive(Debug, Clone)]
pub struct Catalogue {
    images: PathBuf,
    store: PathBuf,
    recipes: PathBuf,
}

impl Catalogue {
    /// A catalogue of the user's image directory and file of recipes, neither of which need exist, and a directory of the node in
    /// which images are unpacked.
    pub fn new(images: impl Into<PathBuf>, recipes: impl Into<PathBuf>, store: impl Into<PathBuf>) -> Self {
        Self { images: images.into(), recipes: recipes.into(), store: store.into() }
    }

    /// Finds an image. It blocks: it reads files, and unpacks archives the first time.
    ///
    /// # Errors
    /// [`ImageError`] says why the image cannot be run.
    pub fn resolve(&self, image: &str) -> Result<Image, ImageError> {
        let name = Name::parse(image).ok_or_else(|| ImageError::Name(image.to_owned()))?;
        let broken = |why: String| ImageError::Broken { image: image.to_owned(), why };
        if let Some(found) = self.in_folder(&name) {
            return archive::image(&found, &self.store).map_err(broken);
        }
        let own = self.own_recipes().map_err(broken)?;
        let key = name.familiar();
        let recipe =
            own.get(&key).or_else(|| recipe::built_in().get(&key)).ok_or_else(|| ImageError::Recipe {
                image: image.to_owned(),
                name: key.clone(),
                recipes: self.recipes.display().to_string(),
                folder: self.images.join(&key).display().to_string(),
            })?;
        recipe.image(image, &name, &self.store)
    }

    fn own_recipes(&self) -> Result<BTreeMap<String, Recipe>, String> {
        match std::fs::read_to_string(&self.recipes) {
            Ok(text) => Recipes::read(&text).map_err(|why| format!("{}: {why}", self.recipes.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeMap::new()),
            Err(error) => Err(format!("{}: {error}", self.recipes.display())),
        }
    }

    fn in_folder(&self, name: &Name) -> Option<PathBuf> {
        let exact = format!("{}:{}", name.familiar(), name.tag());
        let endings = ["", ".tar", ".tar.gz", ".tgz"];
        let candidates = [exact, name.familiar()]
            .into_iter()
            .flat_map(|stem| endings.map(|ending| format!("{stem}{ending}")));
        candidates.map(|candidate| self.images.join(candidate)).find(|path| usable(path))
    }
}

/// A directory that only contains other images (`images/ghcr.io/me`) is none itself.
fn usable(path: &Path) -> bool {
    path.is_file()
        || ["oci-layout", "bin", "usr", "etc"].iter().any(|part| path.join(part).symlink_metadata().is_ok())
}

impl Image {
    /// Creates the image's directories in the writable layer of a container, before its first start.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn create_directories(&self, writable: &Path) -> std::io::Result<()> {
        for folder in &self.folders {
            let path = writable.join(folder.path.strip_prefix("/").unwrap_or(&folder.path));
            std::fs::create_dir_all(&path)?;
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(folder.mode))?;
            // Only root can give a folder away; to everyone else it is their own, as all users are one.
            let _ = std::os::unix::fs::chown(&path, Some(folder.owner), Some(folder.owner));
        }
        Ok(())
    }
}
