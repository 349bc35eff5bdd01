//! What a user of the library can say, each on the embedded API: one file per concept.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod absence;
mod action;
mod claim;
mod concern;
mod deletion;
mod dependents;
mod dynamic;
mod elsewhere;
mod event_once;
mod fact;
mod fields;
mod healthy;
mod indexed;
mod last_change;
mod metadata;
mod pause;
mod reconciles;
mod references;
mod retained;
mod support;
mod verbs;
