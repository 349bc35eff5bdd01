//! Whether a process is alive, and whether it is ready: named checks, and the text that probes and people read.

use std::fmt::Write;

/// A check that an operator adds: fine, or what is wrong in a few words.
pub type Check = Box<dyn Fn() -> Result<(), String> + Send + Sync>;

/// What came of the checks of one probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// Each check by name, in order, with what is wrong.
    pub checks: Vec<(String, Result<(), String>)>,
}

impl Health {
    /// Whether no check failed.
    pub fn is_fine(&self) -> bool {
        self.checks.iter().all(|(_, outcome)| outcome.is_ok())
    }

    /// As Kubernetes' own components print it: `ok`, or one line per check when asked, or when one failed.
    pub fn show(&self, probe: &str, verbose: bool) -> String {
        if self.is_fine() && !verbose {
            return "ok".to_owned();
        }
        let mut text = String::new();
        for (name, outcome) in &self.checks {
            // Writing to a text cannot fail.
            let _ = match outcome {
                Ok(()) => writeln!(text, "[+]{name} ok"),
                Err(why) => writeln!(text, "[-]{name} failed: {}", why.replace('\n', " ")),
            };
        }
        let verdict = if self.is_fine() { "passed" } else { "failed" };
        let _ = writeln!(text, "{probe} check {verdict}");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_check_is_told_without_being_asked() {
        let mut health = Health { checks: vec![("ping".into(), Ok(()))] };
        assert_eq!(health.show("readyz", false), "ok");
        assert_eq!(health.show("readyz", true), "[+]ping ok\nreadyz check passed\n");
        health.checks.push(("cache/pods".into(), Err("no list yet".into())));
        assert_eq!(
            health.show("readyz", false),
            "[+]ping ok\n[-]cache/pods failed: no list yet\nreadyz check failed\n"
        );
    }
}
