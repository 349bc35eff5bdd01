//! One small process per pod: process 1 of the pod's namespaces.

mod program;
mod spec;

pub use program::Program;
pub use spec::{Attachment, Bind, Container, ContainerState, Identity, Phase, Root, Sandbox};
