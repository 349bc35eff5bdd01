//! The table of options: a name, what it takes, and what it is for.

/// One option.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) name: &'static str,
    pub(super) takes: Takes,
    /// As it is when nobody says otherwise.
    pub(super) default: &'static str,
    pub(super) help: &'static str,
}

/// What an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    /// Nothing, or `true` or `false`.
    Switch,
    /// A value, called so in the help.
    One(&'static str),
    /// Several values: said again, or with commas between.
    Many(&'static str),
}

/// All of them, in the order of the help.
pub(super) const OPTIONS: &[Known] = &[
    Known {
        name: "config",
        takes: Takes::One("FILE"),
        default: "",
        help: "A YAML file with options under these names",
    },
    Known {
        name: "kubeconfig",
        takes: Takes::One("FILE"),
        default: "",
        help: "How to reach the cluster; without it, KUBECONFIG, ~/.kube/config, or the pod's own account",
    },
    Known {
        name: "namespace",
        takes: Takes::Many("NAME"),
        default: "",
        help: "Watch this namespace only; may be said several times; without it, all",
    },
    Known {
        name: "cluster-id",
        takes: Takes::One("ID"),
        default: "local",
        help: "What this cluster is called in keys",
    },
    Known {
        name: "metrics-bind-address",
        takes: Takes::One("ADDRESS"),
        default: "127.0.0.1:8080",
        help: "Where /metrics and /debug are served; :PORT for all interfaces, 0 for nowhere",
    },
    Known {
        name: "health-probe-bind-address",
        takes: Takes::One("ADDRESS"),
        default: "127.0.0.1:8081",
        help: "Where /healthz and /readyz are served; a kubelet needs :PORT",
    },
    Known {
        name: "leader-elect",
        takes: Takes::Switch,
        default: "false",
        help: "Work only while holding a lease: for several replicas",
    },
    Known {
        name: "leader-election-id",
        takes: Takes::One("NAME"),
        default: "",
        help: "The lease's name; without it, that of the program",
    },
    Known {
        name: "leader-election-namespace",
        takes: Takes::One("NAME"),
        default: "",
        help: "The lease's namespace; without it, that of the pod or of the kubeconfig",
    },
    Known {
        name: "leader-election-lease-duration",
        takes: Takes::One("DURATION"),
        default: "15s",
        help: "How long the lease lasts after it was last renewed",
    },
    Known {
        name: "leader-election-renew-deadline",
        takes: Takes::One("DURATION"),
        default: "10s",
        help: "How long a leader that cannot renew goes on",
    },
    Known {
        name: "leader-election-retry-period",
        takes: Takes::One("DURATION"),
        default: "2s",
        help: "How often the lease is renewed or looked at",
    },
    Known {
        name: "rejoin-election",
        takes: Takes::Switch,
        default: "false",
        help: "Stand by when the lease is lost, instead of ending",
    },
    Known {
        name: "concurrency",
        takes: Takes::Many("CONTROLLER=N"),
        default: "",
        help: "How many objects a controller works on at once",
    },
    Known {
        name: "cache-sync-timeout",
        takes: Takes::One("DURATION"),
        default: "2m",
        help: "How long the first lists may take",
    },
    Known {
        name: "graceful-shutdown-timeout",
        takes: Takes::One("DURATION"),
        default: "30s",
        help: "How long reconciles may take to end when it is stopped",
    },
    Known {
        name: "log-format",
        takes: Takes::One("json|human"),
        default: "human",
        help: "How log lines are written",
    },
    Known {
        name: "log-level",
        takes: Takes::One("LEVEL"),
        default: "info",
        help: "error, warn, info, debug or trace; or by part: info,kube=debug",
    },
    Known { name: "output", takes: Takes::One("text|json"), default: "text", help: "How plan and why print" },
];

impl Known {
    pub(super) fn of(name: &str) -> Option<&'static Self> {
        OPTIONS.iter().find(|known| known.name == name)
    }

    /// Its name in the environment.
    pub(super) fn variable(&self) -> String {
        format!("WINDLASS_{}", self.name.to_uppercase().replace('-', "_"))
    }
}
