//! Shared parts of the tests across crates: the sample operators, the targets that tests run on, and the
//! comparison of the embedded Kubernetes with the real one, request by request.

pub mod as_protobuf;
pub mod bootstrap_objects;
pub mod catalogue;
pub mod clients;
pub mod compare;
pub mod full_objects;
pub mod kubectl;
pub mod kubernetes_test_objects;
pub mod load;
pub mod minimal_objects;
pub mod mirror;
pub mod operators;
pub mod parity;
pub mod peers;
pub mod proxy;
pub mod sample;
pub mod targets;
pub mod updates;
pub mod waiting;
pub mod well_known;
pub mod workloads;
