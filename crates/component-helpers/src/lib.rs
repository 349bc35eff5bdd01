//! What the kubelets and the scheduler have in common, as `k8s.io/component-helpers` has it for Kubernetes: so that neither
//! depends on the other.
//!
//! Two kubelets are built on it: the simulated one (`windlass-cluster`) and the one that runs pods as processes
//! (`windlass-node`).
//!
//! | module | what |
//! |---|---|
//! | [`register`] | create or adopt the Node |
//! | [`node_lease`], [`node_status`] | heartbeats: the node's Lease, and its conditions |
//! | [`status_manager`] | patch a pod's status, and delete a pod whose containers have terminated |
//! | [`pod_conditions`] | a pod's phase and conditions, from its containers' statuses |
//! | [`restart_policy`], [`qos`] | what follows from a pod's spec |
//! | [`admission`] | whether a node admits a pod, by [`resources`], [`host_ports`] and [`node_affinity`] |
//! | [`local_volumes`] | PersistentVolumes that are directories of a node |

pub mod admission;
pub mod host_ports;
pub mod local_volumes;
pub mod node_affinity;
pub mod node_lease;
pub mod node_status;
pub mod pod_conditions;
pub mod qos;
pub mod register;
pub mod resources;
pub mod restart_policy;
pub mod status_manager;
