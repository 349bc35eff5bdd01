//! Windlass' own test and bench support: a real Kubernetes to compare with, test bodies that run on every target, and
//! measurements by the kernel's own accounting.
//!
//! - [`Reference`] starts a real control plane on loopback and removes every trace of it when dropped.
//! - [`Suite`] runs a test body written once on every [`Environment`] there is, and says which one failed.
//! - [`projects`] says how the projects are built that tests make.
//! - [`Bench`] measures several subjects on the same work in turns, and prints their ratios.

pub mod bench;
pub mod process;
pub mod projects;
pub mod reference;
pub mod suite;

pub use bench::Bench;
pub use process::{Process, Usage};
pub use reference::{Reference, StartError};
pub use suite::{Environment, Suite, Target};
