//! The HTTPS server of a node: what the API server asks a kubelet for.

mod backend;
mod stats;

pub use backend::{Backend, ContainerRef, Duplex, Exit, Input, Output, PodRef, Refusal, Size, Streams};
pub use stats::{ContainerStats, Cpu, Memory, NodeStats, PodName, PodStats, Summary};
