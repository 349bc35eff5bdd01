//! A node that runs pods as processes: what a kubelet is to the API and to kubectl, without containers.

pub mod logs;
pub mod server;
