//! One small process per pod: process 1 of the pod's namespaces.
//!
//! [`Shim::launch`] runs this program again under the hidden subcommand `pod-shim`, which makes the pod's namespaces and, in them,
//! runs it once more as the shim. The shim runs it once more for each container, which makes the container's root and then becomes
//! the container's program. Nothing here forks: each step is a new run of the program, with one thread.

mod capabilities;
mod client;
mod init;
mod pid_file;
mod pod;
mod protocol;
mod running;
mod spec;
mod state_files;
mod user_namespace;

pub use client::{Shim, ShimError, container_states};
pub use running::{Control, Input, Output, Running};
pub use spec::{
    Attachment, Bind, Container, ContainerState, Exec, Identity, Memory, Phase, Privileges, Processes, Root,
    Sandbox, Size, Usage,
};

pub(crate) use capabilities::keep_over_exec;
pub(crate) use init::enter;
pub(crate) use pod::{launch, serve};
