//! Operators of different shapes, each with a life, for the crash campaign: what a campaign must know of them.
//!
//! - [`plain`]: children and a status
//! - [`elected`]: a claim, and an action that follows from it
//! - [`teams`]: an object outside namespaces with children in several
//! - [`reports`]: references to objects of others
//! - [`crate::sample`]: waits for another, and undoes in order when it goes

pub mod cron;
pub mod elected;
pub mod plain;
pub mod reports;
pub mod teams;

use windlass::Reasoned;

/// Why these operators do what they do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It is part of what was declared.
    IsDeclared,
    /// Someone has to lead.
    SomeoneLeads,
    /// Who leads must know it.
    KnowsThatItLeads,
    /// Who leads does not know it yet.
    WaitsForTheLeader,
}

impl Reasoned for Why {}
