//! New projects, as their authors meet them: on disk, compiled, and tested.

mod around;
mod edits;
mod folder;
mod shapes;
