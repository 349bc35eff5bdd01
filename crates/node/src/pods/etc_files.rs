//! A pod's hostname, `/etc/hosts` and `/etc/resolv.conf`. Pure.

use k8s_openapi::api::core::v1::{HostAlias, Pod};

/// The kernel's limit for hostnames.
const MAX_HOSTNAME: usize = 63;
/// The maximum number of name servers, as resolvers read them.
const MAX_NAMESERVERS: usize = 3;
/// The maximum number of search domains.
const MAX_SEARCHES: usize = 32;

/// A pod's hostname, and its domain if it has a subdomain.
pub(crate) fn hostname(pod: &Pod, cluster_domain: &str) -> (String, Option<String>) {
    let spec = pod.spec.as_ref();
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let set = |value: Option<&String>| value.filter(|value| !value.is_empty()).cloned();
    let whole = set(spec.and_then(|spec| spec.hostname_override.as_ref()));
    if let Some(whole) = whole {
        return (whole, None);
    }
    let chosen = set(spec.and_then(|spec| spec.hostname.as_ref())).unwrap_or_else(|| name.to_owned());
    let cut: String = chosen.chars().take(MAX_HOSTNAME).collect();
    let host = if cut.len() < chosen.len() { cut.trim_end_matches(['-', '.']).to_owned() } else { cut };
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let domain = set(spec.and_then(|spec| spec.subdomain.as_ref()))
        .map(|subdomain| format!("{subdomain}.{namespace}.svc.{cluster_domain}"));
    (host, domain)
}

/// The hostname that the kernel reports in the pod: the FQDN with `setHostnameAsFQDN`.
pub(crate) fn uts_hostname(pod: &Pod, host: &str, domain: Option<&str>) -> String {
    let whole = pod.spec.as_ref().and_then(|spec| spec.set_hostname_as_fqdn) == Some(true);
    match domain.filter(|_| whole) {
        Some(domain) => format!("{host}.{domain}"),
        None => host.to_owned(),
    }
}

/// `/etc/hosts` of a pod with an IP of its own.
pub(crate) fn hosts(
    address: Option<&str>,
    host: &str,
    domain: Option<&str>,
    aliases: &[HostAlias],
) -> String {
    let mut text = String::from(
        "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n\
         fe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n",
    );
    if let Some(address) = address {
        match domain {
            Some(domain) => text.push_str(&format!("{address}\t{host}.{domain}\t{host}\n")),
            None => text.push_str(&format!("{address}\t{host}\n")),
        }
    }
    text + &aliased(aliases)
}

/// `/etc/hosts` of a pod on the host network.
pub(crate) fn host_network_hosts(machine: &str, aliases: &[HostAlias]) -> String {
    format!("# Kubernetes-managed hosts file (host network).\n{machine}{}", aliased(aliases))
}

fn aliased(aliases: &[HostAlias]) -> String {
    if aliases.is_empty() {
        return String::new();
    }
    let line = |alias: &HostAlias| {
        format!("{}\t{}\n", alias.ip, alias.hostnames.as_deref().unwrap_or_default().join("\t"))
    };
    let lines: String = aliases.iter().map(line).collect();
    format!("\n# Entries added by HostAliases.\n{lines}")
}

/// A `resolv.conf`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ResolvConf {
    servers: Vec<String>,
    searches: Vec<String>,
    options: Vec<String>,
}

impl ResolvConf {
    /// Parses a `resolv.conf`.
    pub(crate) fn parse(text: &str) -> Self {
        let mut resolver = Self::default();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            match words.next() {
                Some("nameserver") => resolver.servers.extend(words.next().map(str::to_owned)),
                Some("search") => resolver.searches = words.map(str::to_owned).collect(),
                Some("options") => resolver.options = words.map(str::to_owned).collect(),
                _ => {}
            }
        }
        resolver
    }

    /// As text.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        if !self.searches.is_empty() {
            text.push_str(&format!("search {}\n", self.searches.join(" ")));
        }
        for server in &self.servers {
            text.push_str(&format!("nameserver {server}\n"));
        }
        if !self.options.is_empty() {
            text.push_str(&format!("options {}\n", self.options.join(" ")));
        }
        text
    }
}

/// A pod's `resolv.conf`, by its DNS policy and config. `cluster` is the cluster's DNS server, if there is one.
pub(crate) fn resolv_conf(
    pod: &Pod,
    machine: &ResolvConf,
    cluster: Option<&str>,
    cluster_domain: &str,
) -> ResolvConf {
    let spec = pod.spec.as_ref();
    let host_network = spec.and_then(|spec| spec.host_network) == Some(true);
    let policy = match spec.and_then(|spec| spec.dns_policy.as_deref()) {
        Some("None") => "None",
        Some("Default") => "Default",
        Some("ClusterFirstWithHostNet") => "ClusterFirst",
        _ if host_network => "Default",
        _ => "ClusterFirst",
    };
    let mut resolver = match (policy, cluster) {
        ("None", _) => ResolvConf::default(),
        ("ClusterFirst", Some(server)) => {
            let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
            let own = [
                format!("{namespace}.svc.{cluster_domain}"),
                format!("svc.{cluster_domain}"),
                cluster_domain.to_owned(),
            ];
            ResolvConf {
                servers: vec![server.to_owned()],
                searches: own.into_iter().chain(machine.searches.iter().cloned()).collect(),
                options: vec!["ndots:5".to_owned()],
            }
        }
        _ => machine.clone(),
    };
    if let Some(config) = spec.and_then(|spec| spec.dns_config.as_ref()) {
        resolver.servers.extend(config.nameservers.iter().flatten().cloned());
        resolver.searches.extend(config.searches.iter().flatten().cloned());
        for option in config.options.iter().flatten() {
            let name = option.name.clone().unwrap_or_default();
            // Said again, an option is replaced.
            resolver.options.retain(|old| old.split(':').next() != Some(name.as_str()));
            resolver.options.push(match option.value.as_deref() {
                Some(value) if !value.is_empty() => format!("{name}:{value}"),
                _ => name,
            });
        }
    }
    let mut seen = std::collections::HashSet::new();
    resolver.servers.retain(|server| seen.insert(server.clone()));
    seen.clear();
    resolver.searches.retain(|search| seen.insert(search.clone()));
    resolver.servers.truncate(MAX_NAMESERVERS);
    resolver.searches.truncate(MAX_SEARCHES);
    resolver
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(spec: Value) -> Pod {
        let mut whole = json!({"containers": []});
        whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        serde_json::from_value(json!({"metadata": {"name": "web-0", "namespace": "shop"}, "spec": whole}))
            .unwrap()
    }

    #[test]
    fn a_pod_is_called_by_its_name_or_what_it_says() {
        let name = |spec| hostname(&pod(spec), "cluster.local");
        assert_eq!(name(json!({})), ("web-0".into(), None));
        let (host, domain) = name(json!({"hostname": "h", "subdomain": "web"}));
        assert_eq!((host.as_str(), domain.as_deref()), ("h", Some("web.shop.svc.cluster.local")));
        let whole = pod(json!({"setHostnameAsFQDN": true}));
        assert_eq!(uts_hostname(&whole, "h", domain.as_deref()), "h.web.shop.svc.cluster.local");
        let long = format!("{}-{}", "a".repeat(62), "b".repeat(20));
        assert_eq!(name(json!({"hostname": long})).0, "a".repeat(62));
    }

    #[test]
    fn hosts_has_the_pod_and_its_aliases() {
        let aliases: Vec<HostAlias> =
            serde_json::from_value(json!([{"ip": "192.0.2.9", "hostnames": ["a", "b"]}])).unwrap();
        let text = hosts(Some("10.244.0.5"), "web-0", Some("web.shop.svc.cluster.local"), &aliases);
        assert!(text.contains("10.244.0.5\tweb-0.web.shop.svc.cluster.local\tweb-0\n"));
        assert!(text.ends_with("\n# Entries added by HostAliases.\n192.0.2.9\ta\tb\n"));
        assert!(host_network_hosts("127.0.0.1 localhost\n", &[]).ends_with("127.0.0.1 localhost\n"));
    }

    #[test]
    fn the_resolver_follows_the_policy_and_the_config() {
        let machine = ResolvConf::parse("# x\nnameserver 192.0.2.53\nsearch example.com\noptions edns0\n");
        let text = |spec| resolv_conf(&pod(spec), &machine, Some("10.96.0.10"), "cluster.local").text();
        assert_eq!(
            text(json!({})),
            "search shop.svc.cluster.local svc.cluster.local cluster.local example.com\nnameserver 10.96.0.10\noptions ndots:5\n"
        );
        assert_eq!(
            text(json!({"dnsPolicy": "Default"})),
            "search example.com\nnameserver 192.0.2.53\noptions edns0\n"
        );
        assert_eq!(
            text(json!({"dnsPolicy": "ClusterFirst", "hostNetwork": true})),
            text(json!({"dnsPolicy": "Default"}))
        );
        let own = json!({"dnsPolicy": "None", "dnsConfig": {"nameservers": ["1.2.3.4"], "searches": ["a"], "options": [{"name": "ndots", "value": "2"}]}});
        assert_eq!(text(own), "search a\nnameserver 1.2.3.4\noptions ndots:2\n");
        let over = json!({"dnsConfig": {"options": [{"name": "ndots", "value": "1"}]}});
        assert!(text(over).ends_with("options ndots:1\n"));
    }
}
