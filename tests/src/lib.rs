//! Shared parts of the tests across crates: the sample operator, the grounds they run on, the faults they inject, and the
//! comparison of two Kubernetes request by request.

pub mod campaign;
pub mod compare;
pub mod grounds;
pub mod minimal;
pub mod parity;
pub mod sabotage;
pub mod sample;
pub mod well_known;
