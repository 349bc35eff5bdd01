//! The `windlass` command as its users see it: started as a process, on loopback, and asked by a real client.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod capture_plan_why;
mod certificates;
mod cleanup;
mod cluster_up;
mod connections;
mod crash_recovery;
mod demo;
mod doctor;
mod envtest;
mod generate;
mod helm;
mod http2_floods;
mod idle_clients;
mod image;
mod lifecycle;
mod metrics;
mod node_simulate;
mod pod_boundary;
mod process;
mod process_pods;
mod project;
mod proxy_subresources;
mod redis_cache;
mod sampledb;
mod scaffold;
mod selection;
mod slow_clients;

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
fn exit_codes_are_told_and_written_down() {
    let said = windlass(&["--help"]).output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    let (_, codes) = said.split_once("Exit codes:\n").unwrap();
    let codes: Vec<(&str, &str)> =
        codes.lines().map_while(|line| line.strip_prefix("  ")?.split_once(' ')).collect();
    assert_eq!(codes.iter().map(|(code, _)| *code).collect::<Vec<_>>(), ["0", "1", "2", "3", "130"]);
    let page = include_str!("../../../../docs/commands.md");
    for (code, meaning) in codes {
        let row = format!("| {code} | {} |\n", meaning.trim());
        assert!(page.contains(&row), "docs/commands.md has no {row}");
    }
    // And they are so.
    let nobody = tempfile::tempdir().unwrap();
    let code = |arguments: &[&str]| {
        let mut command = windlass(arguments);
        command.env("XDG_RUNTIME_DIR", nobody.path()).current_dir(nobody.path());
        command.env_remove("WINDLASS_OPERATOR").output().unwrap().status.code()
    };
    assert_eq!(code(&["version"]), Some(0));
    assert_eq!(code(&["generate"]), Some(1));
    assert_eq!(code(&["init", "--domain", "Not A Domain"]), Some(2));
    assert_eq!(code(&["fly"]), Some(2));
    assert_eq!(code(&["cluster", "status"]), Some(3));
}

#[test]
fn help_says_what_each_option_does() {
    let said = windlass(&["cluster", "up", "--help"]).output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    for part in ["--api-only", "--port <PORT>", "--kubeconfig <FILE>", "Examples:"] {
        assert!(said.contains(part), "{said}");
    }
}
