//! A model of instances, for campaigns in which thousands of servers would have to start: servers are logs of rows in memory,
//! and each agent is the same decisions (`next`, `synchronous`) and the same changes of the Lease (`lease`) around them.
//!
//! - `servers`: the servers and their data; `agent`: the loop of one agent; `instances`: starts and ends agents as pods come and go
//! - `campaign_test`: the operator is killed at every write; `story_test`: model and agent take the same steps

mod agent;
mod campaign_test;
mod instances;
mod servers;
mod story_test;
