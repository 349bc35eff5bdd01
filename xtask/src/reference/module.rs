//! The Go module that builds the reference: Kubernetes as a dependency, its staging modules replaced by their
//! published versions. Pure text to text.

use anyhow::{Context, bail};

/// The packages whose programs make a reference, with the name that each program gets.
pub(crate) const REFERENCE: [(&str, &str); 5] = [
    ("go.etcd.io/etcd/server/v3", "etcd"),
    ("k8s.io/kubernetes/cmd/kube-apiserver", "kube-apiserver"),
    ("k8s.io/kubernetes/cmd/kube-controller-manager", "kube-controller-manager"),
    ("k8s.io/kubernetes/cmd/kube-scheduler", "kube-scheduler"),
    ("k8s.io/kubernetes/cmd/kubectl", "kubectl"),
];

/// Kubernetes' own tests of a cluster, what runs them, and the program that their pods run.
pub(crate) const CONFORMANCE: [(&str, &str); 3] = [
    ("k8s.io/kubernetes/test/e2e", "e2e.test"),
    ("github.com/onsi/ginkgo/v2/ginkgo", "ginkgo"),
    ("k8s.io/kubernetes/test/images/agnhost", "agnhost"),
];

/// The `go.mod` that builds Kubernetes `version` outside its own tree, given Kubernetes' own `go.mod`. There, staging
/// modules are replaced by folders that the published module lacks; the same modules are published as v0.MINOR.PATCH.
pub(crate) fn go_mod(version: &str, kubernetes_go_mod: &str) -> anyhow::Result<String> {
    let staging_version =
        version.strip_prefix("1.").with_context(|| format!("{version} is not a 1.x version"))?;
    let word_after = |prefix: &str| {
        kubernetes_go_mod
            .lines()
            .find_map(|line| line.trim().strip_prefix(prefix))
            .and_then(|rest| rest.split_whitespace().next())
    };
    let go = word_after("go ").context("Kubernetes' go.mod names no Go version")?;
    let etcd = word_after("go.etcd.io/etcd/server/v3 ").context("Kubernetes' go.mod pins no etcd server")?;
    let staging: Vec<&str> = kubernetes_go_mod
        .lines()
        .filter_map(|line| line.trim().split_once(" => ./staging/"))
        .map(|(module, _)| module.trim_start_matches("replace ").trim())
        .collect();
    if staging.is_empty() {
        bail!("Kubernetes' go.mod replaces no staging module; its layout must have changed");
    }
    let mut text = format!(
        "module windlass/reference\n\ngo {go}\n\nrequire (\n\tk8s.io/kubernetes v{version}\n\tgo.etcd.io/etcd/server/v3 {etcd}\n)\n\nreplace (\n"
    );
    for module in staging {
        text.push_str(&format!("\t{module} => {module} v0.{staging_version}\n"));
    }
    text.push_str(")\n");
    Ok(text)
}

/// Linker flags that stamp the version. Unstamped programs report `v0.0.0-master`, which clients cannot parse as theirs.
pub(crate) fn linker_flags(version: &str) -> String {
    let mut parts = version.split('.');
    let (major, minor) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let mut flags = String::from("-s -w");
    for package in ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"] {
        for (name, value) in [
            ("gitVersion", format!("v{version}")),
            ("gitMajor", major.to_owned()),
            ("gitMinor", minor.to_owned()),
            ("gitTreeState", "clean".to_owned()),
        ] {
            flags.push_str(&format!(" -X {package}.{name}={value}"));
        }
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    const KUBERNETES: &str = "\
module k8s.io/kubernetes

go 1.26.0

require (
\tgo.etcd.io/etcd/client/v3 v3.6.8
\tgo.etcd.io/etcd/server/v3 v3.6.8 // indirect
)

replace (
\tk8s.io/api => ./staging/src/k8s.io/api
\tk8s.io/kubectl => ./staging/src/k8s.io/kubectl
)
";

    #[test]
    fn staging_modules_are_replaced_by_their_published_versions() {
        let text = go_mod("1.36.4", KUBERNETES).unwrap();
        assert!(
            text.contains("\nk8s.io/kubernetes v1.36.4\n") || text.contains("\tk8s.io/kubernetes v1.36.4\n")
        );
        assert!(text.contains("\tgo.etcd.io/etcd/server/v3 v3.6.8\n"));
        assert!(text.contains("\tk8s.io/api => k8s.io/api v0.36.4\n"));
        assert!(text.contains("\tk8s.io/kubectl => k8s.io/kubectl v0.36.4\n"));
        assert!(text.contains("\ngo 1.26.0\n"));
    }

    #[test]
    fn a_layout_that_changed_is_an_error_and_not_a_broken_build() {
        assert!(go_mod("1.36.4", "module k8s.io/kubernetes\n").is_err());
        assert!(go_mod("2.0.0", KUBERNETES).is_err());
    }

    #[test]
    fn the_version_is_stamped_where_both_servers_and_clients_read_it() {
        let flags = linker_flags("1.36.4");
        assert!(flags.contains("-X k8s.io/component-base/version.gitVersion=v1.36.4"));
        assert!(flags.contains("-X k8s.io/client-go/pkg/version.gitMinor=36"));
    }
}
