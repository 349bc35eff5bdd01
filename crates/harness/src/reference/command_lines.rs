//! The command lines of the control plane's programs: pure, so that a test and a reader can see them whole.

use std::path::{Path, PathBuf};

/// What the audit log keeps: one line for each completed request, without bodies; nothing about the server's own
/// housekeeping of health and discovery.
pub(crate) const AUDIT_POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: None
  nonResourceURLs: ['/healthz*', '/livez*', '/readyz*', '/version', '/openapi/*', '/api', '/apis', '/metrics']
- level: Metadata
";

/// The files of one control plane.
pub(crate) struct Paths {
    home: PathBuf,
}

impl Paths {
    pub(crate) fn new(home: &Path) -> Self {
        Self { home: home.to_owned() }
    }

    fn of(&self, name: &str) -> String {
        self.home.join(name).display().to_string()
    }
}

fn flags<const N: usize>(pairs: [(&str, String); N]) -> Vec<String> {
    pairs.into_iter().map(|(name, value)| format!("--{name}={value}")).collect()
}

pub(crate) fn etcd(paths: &Paths, client: u16, peer: u16, durable: bool) -> Vec<String> {
    let (client, peer) = (format!("https://127.0.0.1:{client}"), format!("https://127.0.0.1:{peer}"));
    let mut arguments = flags([
        ("name", "reference".into()),
        ("data-dir", paths.of("etcd")),
        ("listen-client-urls", client.clone()),
        ("advertise-client-urls", client),
        ("listen-peer-urls", peer.clone()),
        ("initial-advertise-peer-urls", peer.clone()),
        ("initial-cluster", format!("reference={peer}")),
        ("client-cert-auth", "true".into()),
        ("trusted-ca-file", paths.of("pki/ca.crt")),
        ("cert-file", paths.of("pki/server.crt")),
        ("key-file", paths.of("pki/server.key")),
        ("peer-client-cert-auth", "true".into()),
        ("peer-trusted-ca-file", paths.of("pki/ca.crt")),
        ("peer-cert-file", paths.of("pki/server.crt")),
        ("peer-key-file", paths.of("pki/server.key")),
    ]);
    if !durable {
        arguments.push("--unsafe-no-fsync".into());
    }
    arguments
}

pub(crate) fn kube_apiserver(paths: &Paths, port: u16, etcd: u16, audit: bool) -> Vec<String> {
    let mut arguments = flags([
        ("bind-address", "127.0.0.1".into()),
        ("secure-port", port.to_string()),
        // What the default/kubernetes Service leads to. Loopback is refused there, and no test connects to it: an
        // address reserved for documentation lets it start on a machine with no network at all.
        ("advertise-address", "192.0.2.1".into()),
        ("etcd-servers", format!("https://127.0.0.1:{etcd}")),
        ("etcd-cafile", paths.of("pki/ca.crt")),
        ("etcd-certfile", paths.of("pki/server.crt")),
        ("etcd-keyfile", paths.of("pki/server.key")),
        ("tls-cert-file", paths.of("pki/server.crt")),
        ("tls-private-key-file", paths.of("pki/server.key")),
        ("client-ca-file", paths.of("pki/ca.crt")),
        ("kubelet-client-certificate", paths.of("pki/kubelet-client.crt")),
        ("kubelet-client-key", paths.of("pki/kubelet-client.key")),
        ("authorization-mode", "Node,RBAC".into()),
        ("enable-admission-plugins", "NodeRestriction".into()),
        ("requestheader-client-ca-file", paths.of("pki/proxy-ca.crt")),
        ("requestheader-allowed-names", "front-proxy-client".into()),
        ("requestheader-username-headers", "X-Remote-User".into()),
        ("requestheader-group-headers", "X-Remote-Group".into()),
        ("requestheader-extra-headers-prefix", "X-Remote-Extra-".into()),
        ("proxy-client-cert-file", paths.of("pki/proxy-client.crt")),
        ("proxy-client-key-file", paths.of("pki/proxy-client.key")),
        ("enable-aggregator-routing", "true".into()),
        // As nearly every cluster has it.
        ("allow-privileged", "true".into()),
        ("service-account-issuer", "https://kubernetes.default.svc".into()),
        ("service-account-key-file", paths.of("pki/accounts.pub")),
        ("service-account-signing-key-file", paths.of("pki/accounts.key")),
        ("service-cluster-ip-range", "10.96.0.0/16".into()),
    ]);
    if audit {
        arguments.extend(flags([
            ("audit-policy-file", paths.of("audit-policy.yaml")),
            ("audit-log-path", paths.of("audit.log")),
        ]));
    }
    arguments
}

/// Requests per second that the controllers may send; their default of 20 would measure the throttle.
const REQUESTS_PER_SECOND: u32 = 2000;

pub(crate) fn kube_controller_manager(paths: &Paths, port: u16) -> Vec<String> {
    let mut arguments = client(paths, port);
    arguments.extend(flags([
        ("use-service-account-credentials", "true".into()),
        ("service-account-private-key-file", paths.of("pki/accounts.key")),
        ("root-ca-file", paths.of("pki/ca.crt")),
        ("cluster-signing-cert-file", paths.of("pki/ca.crt")),
        ("cluster-signing-key-file", paths.of("pki/ca.key")),
    ]));
    arguments
}

pub(crate) fn kube_scheduler(paths: &Paths, port: u16) -> Vec<String> {
    client(paths, port)
}

/// What the controller manager and the scheduler have in common.
fn client(paths: &Paths, port: u16) -> Vec<String> {
    flags([
        ("kubeconfig", paths.of("kubeconfig")),
        ("authentication-kubeconfig", paths.of("kubeconfig")),
        ("authorization-kubeconfig", paths.of("kubeconfig")),
        ("bind-address", "127.0.0.1".into()),
        ("secure-port", port.to_string()),
        ("leader-elect", "false".into()),
        ("kube-api-qps", REQUESTS_PER_SECOND.to_string()),
        ("kube-api-burst", (2 * REQUESTS_PER_SECOND).to_string()),
    ])
}
