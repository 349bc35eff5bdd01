//! Volumes: what is in them, and where they are on the machine.

pub(crate) mod atomic_writer;
pub(crate) mod contents;
pub(crate) mod host_path;
pub(crate) mod mounts;
pub(crate) mod provisioner;
pub(crate) mod setup;
