//! Shared parts of the tests across crates: the sample operator, the grounds they run on, and the
//! comparison of two Kubernetes request by request.

pub mod as_protobuf;
pub mod catalogue;
pub mod clients;
pub mod compare;
pub mod from_the_start;
pub mod full;
pub mod grounds;
pub mod kubectl;
pub mod load;
pub mod minimal;
pub mod mirror;
pub mod operators;
pub mod own_objects;
pub mod parity;
pub mod peers;
pub mod proxy;
pub mod sample;
pub mod waiting;
pub mod well_known;
pub mod workloads;
