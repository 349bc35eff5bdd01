//! One small process per pod: process 1 of the pod's namespaces.

mod spec;

pub use spec::{Attachment, Bind, Container, ContainerState, Identity, Phase, Root, Sandbox};
