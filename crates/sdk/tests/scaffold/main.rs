//! New projects, as their authors meet them: on disk, compiled, and tested.

mod edits;
mod folder;
mod project_files;
mod shapes;
