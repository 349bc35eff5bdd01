//! Rendering: the engine, the execution of trees, and the functions that they call.

pub(crate) mod engine;
mod exec;
pub mod functions;
