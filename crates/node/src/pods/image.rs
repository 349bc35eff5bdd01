//! What a node needs to know of an image, and whom it asks.

use super::identity::ImageUser;
use std::path::PathBuf;

/// Whoever knows what images are.
pub trait Images: Send + Sync {
    /// The image of this name.
    ///
    /// # Errors
    /// What to tell the user: why it is not there, and what to do.
    fn find(&self, image: &str) -> Result<Image, String>;
}

/// An image that is here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// What it is, exactly.
    pub id: String,
    /// What is run, before what the container adds.
    pub entrypoint: Vec<String>,
    /// What is added where the container adds nothing.
    pub arguments: Vec<String>,
    /// What its programs find in their environment.
    pub environment: Vec<(String, String)>,
    /// Where it starts.
    pub folder: Option<PathBuf>,
    /// As whom it runs.
    pub user: ImageUser,
    /// Its user's home.
    pub home: Option<String>,
    /// What is in it.
    pub root: Root,
}

/// What is in an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Root {
    /// These paths of the machine.
    Shown(Vec<PathBuf>),
    /// An unpacked file system.
    FileSystem(PathBuf),
}
