//! The sysctls of a pod, and which of them are allowed. Pure.

use k8s_openapi::api::core::v1::Pod;

/// The reason of a pod that is rejected for a forbidden sysctl.
pub(crate) const FORBIDDEN: &str = "SysctlForbidden";

/// The safe sysctls, and the namespace that each belongs to.
const SAFE: [(&str, &str); 12] = [
    ("kernel.shm_rmid_forced", IPC),
    ("net.ipv4.ip_local_port_range", NET),
    ("net.ipv4.tcp_syncookies", NET),
    ("net.ipv4.ping_group_range", NET),
    ("net.ipv4.ip_unprivileged_port_start", NET),
    ("net.ipv4.ip_local_reserved_ports", NET),
    ("net.ipv4.tcp_keepalive_time", NET),
    ("net.ipv4.tcp_fin_timeout", NET),
    ("net.ipv4.tcp_keepalive_intvl", NET),
    ("net.ipv4.tcp_keepalive_probes", NET),
    ("net.ipv4.tcp_rmem", NET),
    ("net.ipv4.tcp_wmem", NET),
];
const IPC: &str = "IPC";
const NET: &str = "Net";

/// The sysctls of a pod, with dotted names.
pub(crate) fn of(pod: &Pod) -> Vec<(String, String)> {
    let of_pod = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref());
    let all = of_pod.into_iter().flat_map(|of| of.sysctls.iter().flatten());
    all.map(|one| (dotted(&one.name), one.value.clone())).collect()
}

/// Why a pod is rejected, in a kubelet's words; `None` if all its sysctls are allowed.
pub(crate) fn rejected(pod: &Pod, host_network: bool) -> Option<String> {
    let host_ipc = pod.spec.as_ref().and_then(|spec| spec.host_ipc) == Some(true);
    of(pod).into_iter().find_map(|(name, _)| {
        let why = match SAFE.iter().find(|(safe, _)| *safe == name) {
            Some((_, of)) if (*of == IPC && host_ipc) || (*of == NET && host_network) => {
                format!("{name:?} not allowed with host {of} enabled")
            }
            Some(_) => return None,
            None => format!("{name:?} not allowlisted"),
        };
        Some(format!("forbidden sysctl: {why}"))
    })
}

/// A name may have slashes between its parts, and dots in them then: whichever comes first says which it is.
fn dotted(name: &str) -> String {
    match name.find(['.', '/']) {
        Some(at) if name[at..].starts_with('/') => swapped(name),
        _ => name.to_owned(),
    }
}

fn swapped(name: &str) -> String {
    let swap = |c| match c {
        '.' => '/',
        '/' => '.',
        c => c,
    };
    name.chars().map(swap).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(name: &str, host_ipc: bool) -> Pod {
        let secure = json!({"sysctls": [{"name": name, "value": "1"}]});
        let spec = json!({"hostIPC": host_ipc, "securityContext": secure, "containers": []});
        serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap()
    }

    #[test]
    fn names_are_written_either_way() {
        for (written, name) in [
            ("kernel.shm_rmid_forced", "kernel.shm_rmid_forced"),
            ("kernel/shm_rmid_forced", "kernel.shm_rmid_forced"),
            ("net/ipv4/conf/eno2.100/rp_filter", "net.ipv4.conf.eno2/100.rp_filter"),
            ("net.ipv4.conf.eno2/100.rp_filter", "net.ipv4.conf.eno2/100.rp_filter"),
        ] {
            assert_eq!(of(&pod(written, false)), [(name.to_owned(), "1".to_owned())]);
        }
    }

    #[test]
    fn only_what_is_safe_and_the_pods_own_is_allowed() {
        assert_eq!(rejected(&pod("kernel/shm_rmid_forced", false), true), None);
        assert_eq!(rejected(&pod("net.ipv4.tcp_syncookies", true), false), None);
        for (name, why) in [
            ("kernel.msgmax", "forbidden sysctl: \"kernel.msgmax\" not allowlisted"),
            (
                "kernel.shm_rmid_forced",
                "forbidden sysctl: \"kernel.shm_rmid_forced\" not allowed with host IPC enabled",
            ),
            (
                "net.ipv4.tcp_rmem",
                "forbidden sysctl: \"net.ipv4.tcp_rmem\" not allowed with host Net enabled",
            ),
        ] {
            assert_eq!(rejected(&pod(name, true), true).as_deref(), Some(why));
        }
    }
}
