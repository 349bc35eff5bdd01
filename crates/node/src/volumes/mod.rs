//! Volumes: what is in them, and where they are on the machine.

pub(crate) mod atomic;
pub(crate) mod contents;
pub(crate) mod host;
pub(crate) mod local;
pub(crate) mod mounts;
pub(crate) mod prepare;
