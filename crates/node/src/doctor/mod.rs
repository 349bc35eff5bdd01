//! Whether this machine can run pods as processes, and what to change where it cannot.
//!
//! Settings tell only half: whether a kernel, a security module and whatever this program runs in allow something is known by
//! trying. So a process of its own tries everything that pods need ([`run_checks`], a hidden subcommand) and leaves nothing behind;
//! [`examine`] reads what came of it together with the machine's settings, and says what it means.

mod checks;
mod diagnosis;
mod machine;

pub use checks::run_checks;

use crate::program::Program;
use serde::Serialize;

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub about: String,
    /// How it is.
    pub level: Level,
    /// What was found.
    pub found: String,
    /// What to do about it, where something is to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// As it should be.
    Ok,
    /// Some pods will not run, or not as well.
    Warning,
    /// No pod will run.
    Problem,
}

/// Looks at everything, and tries it.
///
/// # Errors
/// The program cannot be run again to try.
pub fn examine(program: &Program) -> std::io::Result<Vec<Finding>> {
    Ok(diagnosis::diagnose(&machine::look(), &checks::of(program)?))
}

/// Whether pods can run at all.
pub fn can(findings: &[Finding]) -> bool {
    findings.iter().all(|finding| finding.level < Level::Problem)
}
