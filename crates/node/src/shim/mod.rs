//! One small process per pod: process 1 of the pod's namespaces.
//!
//! [`Shim::launch`] runs this program again under the hidden subcommand `pod-shim`, which makes the pod's namespaces and, in them,
//! runs it once more as the shim. The shim runs it once more for each container, which makes the container's root and then becomes
//! the container's program. Nothing here forks: each step is a new run of the program, with one thread.

mod client;
mod pod;
mod program;
mod protocol;
mod record;
mod remembered;
mod rights;
mod running;
mod spec;
mod stage;
mod users;
pub(crate) mod wire;

pub use client::{Shim, ShimError, left_behind};
pub use program::Program;
pub use running::{Control, Input, Output, Running};
pub use spec::{
    Attachment, Bind, Container, ContainerState, Exec, Identity, Memory, Phase, Privileges, Processes, Root,
    Sandbox, Size, Usage,
};

pub(crate) use pod::{launch, serve};
pub(crate) use rights::keep_over_exec;
pub(crate) use stage::enter;
