//! The order of the crates: as `members` in Cargo.toml lists them, from the ground up, and as ARCHITECTURE.md states it.

use super::Package;
use anyhow::Context;
use std::path::Path;

pub(super) fn out_of_order(root: &Path, packages: &[Package]) -> anyhow::Result<Vec<String>> {
    let read = |name: &str| {
        std::fs::read_to_string(root.join(name)).with_context(|| format!("{name} cannot be read"))
    };
    let members = members(&read("Cargo.toml")?);
    let mut wrong = stated_otherwise(&members, &read("ARCHITECTURE.md")?);
    let place = |name: &str| {
        let package = packages.iter().find(|package| package.name == name)?;
        let folder = package.folder.strip_prefix(root).ok()?.to_str()?;
        members.iter().position(|member| member == folder)
    };
    for package in packages {
        for dependency in &package.depends_on {
            if place(dependency) >= place(&package.name) {
                wrong.push(format!(
                    "{} depends on {dependency}, which Cargo.toml does not list before it",
                    package.name
                ));
            }
        }
    }
    Ok(wrong)
}

/// The folders that `members` lists.
fn members(manifest: &str) -> Vec<String> {
    let lines = manifest.lines().skip_while(|line| !line.starts_with("members")).skip(1);
    let lines = lines.take_while(|line| !line.starts_with(']'));
    lines.filter_map(|line| Some(line.split('"').nth(1)?.to_owned())).collect()
}

/// The crates of ARCHITECTURE.md's table, whose rows begin with a folder, are those of the workspace, in its order.
fn stated_otherwise(members: &[String], architecture: &str) -> Vec<String> {
    let rows = architecture.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let stated: Vec<&str> = rows.filter(|folder| members.iter().any(|member| member == folder)).collect();
    if stated == members {
        return Vec::new();
    }
    vec![format!(
        "ARCHITECTURE.md lists the crates as\n      {}\n    and Cargo.toml as\n      {}",
        stated.join(", "),
        members.join(", ")
    )]
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str =
        "[workspace]\nmembers = [\n    \"crates/a\",\n    \"crates/b\", # above a\n]\n[other]\n";

    #[test]
    fn members_are_listed_in_their_order() {
        assert_eq!(members(MANIFEST), ["crates/a", "crates/b"]);
    }

    #[test]
    fn a_table_in_another_order_or_with_a_crate_less_is_told() {
        let members = members(MANIFEST);
        assert!(
            stated_otherwise(&members, "| `crates/a` | x |\n| `crates/b` | y |\n| `other` |\n").is_empty()
        );
        assert_eq!(stated_otherwise(&members, "| `crates/b` | y |\n| `crates/a` | x |\n").len(), 1);
        assert_eq!(stated_otherwise(&members, "| `crates/a` | x |\n").len(), 1);
    }
}
