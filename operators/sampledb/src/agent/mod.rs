//! The agent: the first process of each instance's container, in place of the image's own entrypoint.
//!
//! It makes or copies the data, runs the server, and holds the right to be primary. Nobody commands it: it follows the
//! database's Lease and its own SampleDBInstance, and answers in the latter's status.
//!
//! - `watchdog`: ends everything when the agent does not say in time that its server may run on
//! - `next`: what to do next (pure); `synchronous`: who acknowledges commits (pure); `config`: configuration files (pure)
//! - `run`: the loop around them; `lease_steps`, `data_steps`, `restore`, `configuration`, `tls`: what it does; `primary`: what a primary does all
//!   the time; `renewal`: renews the Lease
//! - `upgrade`: what the Jobs of an upgrade do
//! - `server`, `sql`, `programs`, `data`: the server, its processes and its data
//! - `kubernetes`: the Lease and the instance; `lease`: what is changed about the former; `probe`: answers to the kubelet
//! - `metrics`: what Prometheus is told; `settings`: what the pod tells it; `command_line`: what its binary does

mod command_line;
mod config;
mod configuration;
mod data;
mod data_steps;
mod kubernetes;
mod lease;
mod lease_steps;
pub mod metrics;
#[cfg(test)]
mod model;
mod next;
mod primary;
mod probe;
#[cfg(test)]
mod protocol_test;
mod renewal;
mod restore;
mod run;
mod server;
mod sql;
mod synchronous;
mod tls;
mod upgrade;
mod watchdog;

pub use command_line::main;
pub use probe::{Question, ask};
pub use run::{AgentError, run};
