//! Images without a registry: what stands for an image on this machine.
//!
//! An image is looked for, in this order: in the folder of images (an archive, or an unpacked root file system), among the user's own
//! recipes, among the recipes that are built in. A recipe says which programs of this machine to show, and what the official
//! image's entrypoint does. `docs/images.md` says it to users.

mod archive;
mod layers;
mod name;
mod recipe;
mod tar;

pub use name::Name;
pub use recipe::{Recipe, Recipes};

use crate::shim::Bind;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// An image that can be run here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// What it is, exactly: says also where it comes from.
    pub id: String,
    /// What is in it.
    pub root: ImageRoot,
    /// Files of the node that are part of it, to be shown beneath the container's own volumes.
    pub binds: Vec<Bind>,
    /// Folders that it has beside, to be made by [`Image::create_directories`].
    pub folders: Vec<MadeFolder>,
    /// What is run, before what the container adds.
    pub entrypoint: Vec<String>,
    /// What is added where the container adds nothing.
    pub command: Vec<String>,
    /// Its environment.
    pub environment: Vec<(String, String)>,
    /// As whom it runs; none means root, or whoever the node runs as.
    pub user: Option<ImageUser>,
    /// Its list of users, in the format of `/etc/passwd`; none where it is in its root.
    pub users: Option<String>,
    /// Its list of groups, in the format of `/etc/group`; none where it is in its root.
    pub groups: Option<String>,
    /// Where it starts.
    pub folder: Option<PathBuf>,
    /// How it is asked to end: the number of a signal.
    pub stop_signal: i32,
}

/// What is in an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageRoot {
    /// These paths of the machine.
    Shown(Vec<PathBuf>),
    /// An unpacked root file system.
    FileSystem(PathBuf),
}

/// As whom an image runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageUser {
    /// By number; none where the image says a name that it does not list.
    pub user: Option<u32>,
    /// Its group.
    pub group: Option<u32>,
    /// Its name, where the image says a name.
    pub name: Option<String>,
}

/// A folder that an image has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeFolder {
    /// Where.
    pub path: PathBuf,
    /// Who may what.
    pub mode: u32,
    /// Whose it is, where the node is root.
    pub owner: u32,
}

/// No image of this name can be run here. Its text is for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// It is no name of an image.
    #[error("{0:?} is no name of an image")]
    Name(String),
    /// There is nothing that stands for it.
    #[error(
        "image {image} is not known on this machine, which runs programs and pulls nothing: add a recipe for {name:?} to {recipes}, \
         or put its archive or unpacked root file system at {folder} (see docs/images.md)"
    )]
    Recipe {
        /// What was asked for.
        image: String,
        /// The recipe's name.
        name: String,
        /// Where recipes are added.
        recipes: String,
        /// Where an archive is put.
        folder: String,
    },
    /// There is a recipe, and its program is not installed.
    #[error("image {image} stands for the program {program}, which is not installed here: {hint}")]
    Program {
        /// What was asked for.
        image: String,
        /// What is missing.
        program: String,
        /// What to do.
        hint: String,
    },
    /// What stands for it is broken.
    #[error("image {image} cannot be used: {why}")]
    Broken {
        /// What was asked for.
        image: String,
        /// Why.
        why: String,
    },
}

/// All that images can stand for on a node.
#[derive(Debug, Clone)]
pub struct Catalogue {
    images: PathBuf,
    store: PathBuf,
    recipes: PathBuf,
}

impl Catalogue {
    /// A catalogue with the user's folder of images and the user's file of recipes, neither of which need exist, and a folder of the
    /// node in which images are unpacked.
    pub fn new(images: impl Into<PathBuf>, recipes: impl Into<PathBuf>, store: impl Into<PathBuf>) -> Self {
        Self { images: images.into(), recipes: recipes.into(), store: store.into() }
    }

    /// What an image stands for. It reads files, and the first time unpacks archives: not for a thread that must not wait.
    ///
    /// # Errors
    /// Why there is nothing, or nothing that can be run.
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

/// A folder that only holds further images (`images/ghcr.io/me`) is none itself.
fn usable(path: &Path) -> bool {
    path.is_file()
        || ["oci-layout", "bin", "usr", "etc"].iter().any(|part| path.join(part).symlink_metadata().is_ok())
}

impl Image {
    /// Makes the image's folders in the folder that takes the container's writes; call it before its first start.
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
