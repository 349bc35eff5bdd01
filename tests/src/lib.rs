//! Shared parts of the tests across crates: the sample operator, the grounds they run on, the faults they inject, and the
//! comparison of two Kubernetes request by request.

pub mod as_protobuf;
pub mod campaign;
pub mod clients;
pub mod compare;
pub mod from_the_start;
pub mod full;
pub mod greeting;
pub mod grounds;
pub mod kubectl;
pub mod load;
pub mod minimal;
pub mod own_objects;
pub mod parity;
pub mod peers;
pub mod sabotage;
pub mod sample;
pub mod well_known;
