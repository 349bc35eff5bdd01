//! The `windlass` command as its users see it: started as a process, on loopback, and asked by a real client.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod cluster_up;
mod crowds;
mod floods;
mod process;
mod slow;
mod wire;

use process::windlass;

#[test]
fn the_version_names_the_kubernetes_that_is_spoken() {
    let said = windlass(&["version"]).output().unwrap();
    assert!(said.status.success());
    let said = String::from_utf8(said.stdout).unwrap();
    assert!(said.starts_with("windlass ") && said.contains("Kubernetes v1."), "{said}");
}

#[test]
fn help_says_what_each_option_does() {
    let said = windlass(&["cluster", "up", "--help"]).output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    for part in ["--api-only", "--port <PORT>", "--kubeconfig <FILE>", "Examples:"] {
        assert!(said.contains(part), "{said}");
    }
}
