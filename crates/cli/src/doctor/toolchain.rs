//! Checks the programs that an operator's author needs.

use std::process::{Command, Stdio};
use windlass_node::doctor::{Finding, Level};

/// The oldest Rust that operators are built with; a test compares it with the manifest.
const RUST: (u32, u32) = (1, 92);

/// Asks each of them.
pub(super) fn examine() -> Vec<Finding> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut findings = vec![
        rust("cargo", said(&cargo, &["--version"]).as_deref()),
        rust("rustc", said("rustc", &["--version"]).as_deref()),
        present(
            "C linker",
            &["cc", "gcc", "clang"],
            "install a C compiler: Debian's package gcc",
            Level::Problem,
        ),
        kubectl(said("kubectl", &["version", "--client", "--output", "json"]).as_deref()),
    ];
    findings.push(present(
        "git",
        &["git"],
        "install git, to see what commands change in a project",
        Level::Warning,
    ));
    findings.push(present("make", &["make"], "install make, or use what the Makefile says", Level::Warning));
    findings
}

/// The first line that a program prints, or all of it where that is JSON.
fn said(program: &str, arguments: &[&str]) -> Option<String> {
    let said =
        Command::new(program).args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    said.status.success().then(|| String::from_utf8_lossy(&said.stdout).trim().to_owned())
}

fn finding(about: &str, level: Level, found: impl Into<String>, remedy: Option<&str>) -> Finding {
    Finding { about: about.to_owned(), level, found: found.into(), remedy: remedy.map(str::to_owned) }
}

/// Whether `cargo 1.95.0 (...)` is new enough: pure.
fn rust(program: &str, said: Option<&str>) -> Finding {
    let wanted = format!("{}.{}", RUST.0, RUST.1);
    let Some(said) = said else {
        return finding(program, Level::Problem, "is not there", Some("install Rust: https://rustup.rs"));
    };
    let version = said.split_whitespace().nth(1).unwrap_or_default();
    let mut numbers = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let number = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    match number {
        number if number >= RUST => finding(program, Level::Ok, version, None),
        (0, _) => finding(program, Level::Warning, format!("says {said:?}, which is no version"), None),
        _ => {
            let found = format!("{version} is older than {wanted}, which operators are built with");
            finding(program, Level::Problem, found, Some("rustup update stable"))
        }
    }
}

/// Which kubectl there is: pure. It may be a version older or newer than the server, and works with more.
fn kubectl(said: Option<&str>) -> Finding {
    let remedy = "install kubectl, to look into clusters: https://kubernetes.io/docs/tasks/tools";
    let Some(said) = said else {
        return finding("kubectl", Level::Warning, "is not there", Some(remedy));
    };
    let told = serde_json::from_str::<serde_json::Value>(said).unwrap_or_default();
    match told["clientVersion"]["gitVersion"].as_str() {
        Some(version) => finding("kubectl", Level::Ok, version, None),
        None => finding("kubectl", Level::Warning, "does not tell its version", Some(remedy)),
    }
}

/// Whether one of these programs is on the path.
fn present(about: &str, programs: &[&str], remedy: &str, lacking: Level) -> Finding {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = programs.iter().find_map(|program| {
        std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
    });
    match found {
        Some(file) => finding(about, Level::Ok, file.display().to_string(), None),
        None => finding(about, lacking, "is not there", Some(remedy)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rust_that_is_too_old_is_told_with_the_command_that_mends_it() {
        assert_eq!(rust("cargo", Some("cargo 1.92.0 (abc 2025-12-01)")).level, Level::Ok);
        assert_eq!(rust("rustc", Some("rustc 2.0.0-nightly (abc)")).level, Level::Ok);
        let old = rust("rustc", Some("rustc 1.91.1 (abc)"));
        assert_eq!((old.level, old.remedy.as_deref()), (Level::Problem, Some("rustup update stable")));
        assert!(old.found.contains("1.91.1") && old.found.contains("1.92"), "{old:?}");
        assert!(rust("cargo", None).remedy.unwrap().contains("rustup.rs"));
        assert_eq!(rust("cargo", Some("what?")).level, Level::Warning);
    }

    #[test]
    fn kubectl_is_known_by_its_version() {
        let found = kubectl(Some(r#"{"clientVersion": {"gitVersion": "v1.36.4"}}"#));
        assert_eq!((found.level, found.found.as_str()), (Level::Ok, "v1.36.4"));
        assert_eq!(kubectl(Some("old")).level, Level::Warning);
        assert_eq!(kubectl(None).level, Level::Warning);
    }

    #[test]
    fn the_oldest_rust_is_that_of_the_manifest() {
        assert_eq!(env!("CARGO_PKG_RUST_VERSION"), format!("{}.{}", RUST.0, RUST.1));
    }
}
