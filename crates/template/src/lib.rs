//! Go's text/template with all of Sprig v3 and Helm's functions, without I/O: text and values in, text out.
//!
//! Everything is bounded: the depth of templates, the steps taken, and the bytes written.

mod go;
mod json;
mod parse;
mod plain;
mod render;
pub mod semver;
mod stack;
mod text;
mod toml;
pub mod value;
pub mod yaml;

pub use plain::{from_json, to_json};
pub use render::engine::{Engine, Error, Limits, Lookup, MissingKey, Options};
pub use render::functions;
pub use stack::on_large_stack;
pub use text::GoStr;
