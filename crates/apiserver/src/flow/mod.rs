//! The request path of a write, one file per step, in the order in which they run:
//!
//! [`authenticate`] -> [`impersonate`] -> [flow control](crate::flow_control) -> [`authorize`] -> [`decode`] + default -> [`managed`] fields -> [`mutating_admission`]
//! (with [`policies`] and [`webhooks`]) -> [`escalation`] -> [`prepare`] -> [`validate`] (with [`policy_params`]) -> [`validating_admission`] (with [`policies`], [`webhooks`] and [`quota`])
//! -> [`encode`] -> [`commit`].
//!
//! [`create`](mod@create) and [`guaranteed_update`](mod@guaranteed_update) run the steps from mutating admission on, and
//! [`delete`](mod@delete) those that a deletion has. Updates and patches run them again inside the retry of the
//! compare-and-swap, on the object as it was read in that attempt, which [`convert`] brings into the version of the request.
//! [`connect_admission`] admits what is stored nowhere and leads to a node. [`crd_lifecycle`] is what follows from a write of a CustomResourceDefinition, and
//! [`api_services`] from one of an APIService.

pub(crate) mod api_services;
pub(crate) mod audit;
pub(crate) mod authenticate;
pub(crate) mod authorize;
pub(crate) mod commit;
pub(crate) mod connect_admission;
pub(crate) mod convert;
pub(crate) mod crd_lifecycle;
pub(crate) mod create;
pub(crate) mod decode;
pub(crate) mod delete;
pub(crate) mod delete_options;
pub(crate) mod encode;
mod escalation;
pub(crate) mod guaranteed_update;
pub(crate) mod impersonate;
pub(crate) mod managed;
pub(crate) mod mutating_admission;
mod policies;
mod policy_params;
pub(crate) mod prepare;
mod quota;
mod token_use;
pub(crate) mod validate;
pub(crate) mod validating_admission;
pub(crate) mod webhooks;
mod websocket_token;
pub(crate) mod yaml;
mod yaml_errors;
