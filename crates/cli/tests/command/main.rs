//! The `windlass` command as its users see it: started as a process, on loopback, and asked by a real client.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod cluster_up;
mod crowds;
mod demo;
mod floods;
mod generate;
mod killed;
mod leftovers;
mod lifecycle;
mod node_simulate;
mod process;
mod project;
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
fn an_operators_binary_is_asked_what_windlass_is_asked() {
    // A program that says what it is told.
    let said =
        windlass(&["why", "--operator", "/bin/echo", "Vault", "shop/v", "-o", "json"]).output().unwrap();
    assert_eq!(String::from_utf8(said.stdout).unwrap(), "why Vault shop/v -o json\n");
    let said = windlass(&["plan", "--operator", "/bin/false"]).output().unwrap();
    assert_eq!(said.status.code(), Some(1));
    let empty = tempfile::tempdir().unwrap();
    let mut nowhere = windlass(&["describe"]);
    let said = nowhere.env_remove("WINDLASS_OPERATOR").current_dir(empty.path()).output().unwrap();
    assert!(String::from_utf8(said.stderr).unwrap().contains("--operator"));
}

#[test]
fn help_says_what_each_option_does() {
    let said = windlass(&["cluster", "up", "--help"]).output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    for part in ["--api-only", "--port <PORT>", "--kubeconfig <FILE>", "Examples:"] {
        assert!(said.contains(part), "{said}");
    }
}
