//! Whether this machine can run what a program of tests needs. Where it cannot, tests say so in one line and are skipped: they would
//! tell of the machine, not of the code.

use windlass_node::Program;
use windlass_node::doctor::{self, Level};

/// Why pods cannot run as processes here, or an image cannot that all of the tests use. None where all is well, and where the
/// machine cannot be examined: then the tests fail, and say more.
pub fn reason(images: &[&str]) -> Option<String> {
    let findings = Program::current().and_then(|program| doctor::examine(&program)).ok()?;
    let image = |about: &str| about.strip_prefix("image ").is_some_and(|name| images.contains(&name));
    let lacking = findings.into_iter().find(|finding| match finding.level {
        Level::Ok => false,
        Level::Warning => image(&finding.about),
        Level::Problem => true,
    })?;
    let remedy = lacking.remedy.map_or_else(String::new, |remedy| format!("; {remedy}"));
    Some(format!("skipped: {}: {}{remedy}", lacking.about, lacking.found))
}
