//! One small process per pod: process 1 of the pod's namespaces.
//!
//! [`Shim::launch`] runs this program again under the hidden subcommand `pod-shim`, which makes the pod's namespaces and, in them,
//! runs it once more as the shim. The shim runs it once more for each container, which makes the container's root and then becomes
//! the container's program. Nothing here forks: each step is a new run of the program, with one thread.
//!
//! That is because a program without unsafe code cannot fork, and because a PID namespace takes in only the children of the
//! process that made it. The stage of a container is told what to do over a socket that is its standard input; that the
//! socket closes without a message means that the container's program runs. To run a program takes milliseconds, so the
//! shim starts the first container's stage before it joins the network.
//!
//! A container has a PID namespace of its own, so that its daemons end with it. If the pod's processes share one, a stage
//! that does nothing (`init/pause.rs`) is its first process.
//!
//! The shim writes its PID and start time before it sets anything up, holds a lock while it lives, and keeps the states of
//! its containers on disk: a kubelet that comes later finds it, or finds that it died.
//!
//! Without root, the pod is in a user namespace with one user, capabilities pass from step to step as ambient ones, and
//! each container has a user namespace in which that user has the number that the container asked for.

mod capabilities;
mod client;
mod init;
mod pod;
mod protocol;
mod running;
mod spec;
mod state_files;
mod user_namespace;

pub use client::{Shim, ShimError, container_states};
pub use running::{Control, Input, Output, Running};
pub use spec::{
    Attachment, Bind, Container, ContainerState, Exec, Identity, ImageFile, Memory, Phase, Privileges,
    Processes, Root, Sandbox, Size, Usage,
};

pub(crate) use capabilities::keep_over_exec;
pub(crate) use init::enter;
pub(crate) use pod::{launch, serve};
