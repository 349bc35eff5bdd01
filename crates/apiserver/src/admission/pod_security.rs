//! PodSecurity: enforces the Pod Security Standards that the labels of a namespace ask for.

use super::forbidden;
use crate::object::text;
use crate::operation::Operation;
use crate::status::Status;
use serde_json::Value;
use std::collections::BTreeSet;
use windlass_store::Key;

/// What is wrong with a pod at some level: in a word or two, and in detail.
type Violation = (&'static str, String);

/// A level and its version, as a label of the namespace says; privileged ones ask for nothing.
fn level(operation: &Operation<'_>, mode: &str) -> Option<(bool, String)> {
    let namespace = operation.api.store.get(&Key::new("namespaces", "", operation.namespace.as_str()))?;
    let label = |name: &str| {
        namespace.label(&format!("pod-security.kubernetes.io/{name}")).unwrap_or_default().to_owned()
    };
    let level = label(mode);
    let version = match label(&format!("{mode}-version")) {
        version if version.is_empty() => "latest".to_owned(),
        version => version,
    };
    matches!(level.as_str(), "baseline" | "restricted")
        .then(|| (level == "restricted", format!("{level}:{version}")))
}

fn described(violations: &[Violation]) -> String {
    let part = |(reason, detail): &Violation| match detail.as_str() {
        "" => (*reason).to_owned(),
        detail => format!("{reason} ({detail})"),
    };
    violations.iter().map(part).collect::<Vec<_>>().join(", ")
}

/// Where the kinds that make pods keep what they make them from.
const TEMPLATES: [&str; 3] =
    ["/spec/template/spec", "/spec/jobTemplate/spec/template/spec", "/template/spec"];

/// Judges a new pod, and warns about what would make pods that could not be: it may be as it is, but its pods could be refused.
pub(super) fn validate(operation: &Operation<'_>, object: &Value, old: Option<&Value>) -> Result<(), Status> {
    if operation.resource.plural == "pods" {
        return if old.is_none() { validate_pod(operation, object) } else { Ok(()) };
    }
    if operation.subresource.is_empty() {
        let specs = TEMPLATES.iter().filter_map(|place| object.pointer(place));
        specs.for_each(|spec| warn(operation, spec));
    }
    Ok(())
}

/// Refuses a pod that its namespace does not allow, or warns about it.
fn validate_pod(operation: &Operation<'_>, pod: &Value) -> Result<(), Status> {
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    if let Some((restricted, name)) = level(operation, "enforce") {
        let found = violations(restricted, spec);
        if !found.is_empty() {
            let why = format!("violates PodSecurity {name:?}: {}", described(&found));
            return Err(forbidden(operation, pod, &why));
        }
    }
    warn(operation, spec);
    Ok(())
}

/// Warns about pods that could not be, or should not.
fn warn(operation: &Operation<'_>, spec: &Value) {
    if let Some((restricted, name)) = level(operation, "warn") {
        let found = violations(restricted, spec);
        if !found.is_empty() {
            operation.warn(vec![format!("would violate PodSecurity {name:?}: {}", described(&found))]);
        }
    }
}

fn items<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    value.get(field).and_then(Value::as_array).into_iter().flatten()
}

fn containers(spec: &Value) -> impl Iterator<Item = &Value> {
    ["initContainers", "containers", "ephemeralContainers"].into_iter().flat_map(|field| items(spec, field))
}

fn context<'a>(owner: &'a Value, field: &str) -> Option<&'a Value> {
    owner.get("securityContext").and_then(|context| context.get(field)).filter(|value| !value.is_null())
}

fn quoted<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> String {
    names.into_iter().map(|name| format!("\"{}\"", name.as_ref())).collect::<Vec<_>>().join(", ")
}

fn several<'a>(one: &'a str, more: &'a str, count: usize) -> &'a str {
    if count == 1 { one } else { more }
}

/// `container "a"` or `containers "a", "b"`.
fn named(names: &[&str]) -> String {
    format!("{} {}", several("container", "containers", names.len()), quoted(names))
}

fn names(spec: &Value, wanted: impl Fn(&Value) -> bool) -> Vec<&str> {
    containers(spec)
        .filter(|container| wanted(container))
        .map(|container| text(container, &["name"]))
        .collect()
}

fn violations(restricted: bool, spec: &Value) -> Vec<Violation> {
    let mut found: Vec<Option<Violation>> = Vec::new();
    if !restricted {
        found.push(added_capabilities(spec));
    }
    found.push(host_namespaces(spec));
    if !restricted {
        found.push(host_paths(spec));
    }
    found.extend([host_ports(spec), probes(spec), privileged(spec)]);
    found.push(proc_mount(spec));
    if !restricted {
        found.push(seccomp(spec, false));
    }
    found.push(sysctls(spec));
    if restricted {
        found.extend([
            escalation(spec),
            restricted_capabilities(spec),
            volumes(spec),
            non_root(spec),
            root_user(spec),
            seccomp(spec, true),
        ]);
    }
    found.into_iter().flatten().collect()
}

fn capabilities(container: &Value, side: &str) -> BTreeSet<String> {
    let list = context(container, "capabilities").and_then(|capabilities| capabilities.get(side));
    list.and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect()
}

fn adds_beside(spec: &Value, allowed: &[&str]) -> Option<(String, String)> {
    let beside = |container: &Value| -> BTreeSet<String> {
        capabilities(container, "add").into_iter().filter(|name| !allowed.contains(&name.as_str())).collect()
    };
    let bad = names(spec, |container| !beside(container).is_empty());
    let all: BTreeSet<String> = containers(spec).flat_map(beside).collect();
    (!bad.is_empty()).then(|| (named(&bad), quoted(&all)))
}

fn added_capabilities(spec: &Value) -> Option<Violation> {
    const DEFAULT: [&str; 13] = [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ];
    let (bad, added) = adds_beside(spec, &DEFAULT)?;
    Some((
        "non-default capabilities",
        format!("{bad} must not include {added} in securityContext.capabilities.add"),
    ))
}

fn restricted_capabilities(spec: &Value) -> Option<Violation> {
    let missing = names(spec, |container| !capabilities(container, "drop").contains("ALL"));
    let mut details = Vec::new();
    if !missing.is_empty() {
        details.push(format!("{} must set securityContext.capabilities.drop=[\"ALL\"]", named(&missing)));
    }
    if let Some((bad, added)) = adds_beside(spec, &["NET_BIND_SERVICE"]) {
        details.push(format!("{bad} must not include {added} in securityContext.capabilities.add"));
    }
    (!details.is_empty()).then(|| ("unrestricted capabilities", details.join("; ")))
}

fn host_namespaces(spec: &Value) -> Option<Violation> {
    let shared = ["hostNetwork", "hostPID", "hostIPC"]
        .into_iter()
        .filter(|field| spec.get(*field) == Some(&true.into()));
    let shared: Vec<String> = shared.map(|field| format!("{field}=true")).collect();
    (!shared.is_empty()).then(|| ("host namespaces", shared.join(", ")))
}

fn host_paths(spec: &Value) -> Option<Violation> {
    let bad: Vec<&str> = items(spec, "volumes")
        .filter(|volume| volume.get("hostPath").is_some_and(|path| !path.is_null()))
        .map(|volume| text(volume, &["name"]))
        .collect();
    let what = several("volume", "volumes", bad.len());
    (!bad.is_empty()).then(|| ("hostPath volumes", format!("{what} {}", quoted(&bad))))
}

fn host_ports(spec: &Value) -> Option<Violation> {
    let ports = |container: &Value| -> Vec<i64> {
        items(container, "ports")
            .filter_map(|port| port.get("hostPort")?.as_i64())
            .filter(|port| *port != 0)
            .collect()
    };
    let bad = names(spec, |container| !ports(container).is_empty());
    let all: BTreeSet<String> = containers(spec).flat_map(ports).map(|port| port.to_string()).collect();
    let all: Vec<String> = all.into_iter().collect();
    let detail = || {
        let (uses, what) = (several("uses", "use", bad.len()), several("hostPort", "hostPorts", all.len()));
        format!("{} {uses} {what} {}", named(&bad), all.join(", "))
    };
    (!bad.is_empty()).then(|| ("hostPort", detail()))
}

fn probes(spec: &Value) -> Option<Violation> {
    let hosts = |container: &Value| -> BTreeSet<String> {
        let direct = ["livenessProbe", "readinessProbe", "startupProbe"].map(|probe| container.get(probe));
        let hooks =
            ["postStart", "preStop"].map(|hook| container.get("lifecycle").and_then(|hooks| hooks.get(hook)));
        let all = direct.into_iter().chain(hooks).flatten();
        all.flat_map(|probe| ["httpGet", "tcpSocket"].map(|kind| text(probe, &[kind, "host"]).to_owned()))
            .filter(|host| !host.is_empty() && host != "127.0.0.1" && host != "::1")
            .collect()
    };
    let bad = names(spec, |container| !hosts(container).is_empty());
    let all: BTreeSet<String> = containers(spec).flat_map(hosts).collect();
    let detail = || {
        let uses = several("uses", "use", bad.len());
        let what = several("probe or lifecycle host", "probe or lifecycle hosts", all.len());
        format!("{} {uses} {what} {}", named(&bad), quoted(&all))
    };
    (!bad.is_empty()).then(|| ("probe or lifecycle host", detail()))
}

fn privileged(spec: &Value) -> Option<Violation> {
    let bad = names(spec, |container| context(container, "privileged") == Some(&true.into()));
    (!bad.is_empty())
        .then(|| ("privileged", format!("{} must not set securityContext.privileged=true", named(&bad))))
}

fn proc_mount(spec: &Value) -> Option<Violation> {
    let mount =
        |container: &Value| context(container, "procMount").and_then(Value::as_str).map(str::to_owned);
    let bad = names(spec, |container| mount(container).is_some_and(|mount| mount != "Default"));
    let all: BTreeSet<String> =
        containers(spec).filter_map(mount).filter(|mount| mount != "Default").collect();
    let detail = || format!("{} must not set securityContext.procMount to {}", named(&bad), quoted(&all));
    (!bad.is_empty()).then(|| ("procMount", detail()))
}

fn sysctls(spec: &Value) -> Option<Violation> {
    const SAFE: [&str; 12] = [
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_wmem",
    ];
    let given = spec.get("securityContext").into_iter().flat_map(|context| items(context, "sysctls"));
    let bad: Vec<&str> =
        given.map(|setting| text(setting, &["name"])).filter(|name| !SAFE.contains(name)).collect();
    (!bad.is_empty()).then(|| ("forbidden sysctls", bad.join(", ")))
}

fn seccomp(spec: &Value, restricted: bool) -> Option<Violation> {
    let profile = |owner: &Value| {
        let kind = context(owner, "seccompProfile").map(|profile| text(profile, &["type"]).to_owned());
        kind.filter(|kind| !kind.is_empty())
    };
    let is_bad = |kind: &String| !matches!(kind.as_str(), "RuntimeDefault" | "Localhost");
    let own = profile(spec);
    let bad = names(spec, |container| profile(container).as_ref().is_some_and(is_bad));
    let mut values: BTreeSet<String> = containers(spec).filter_map(profile).filter(is_bad).collect();
    let mut setters = Vec::new();
    if let Some(kind) = own.clone().filter(is_bad) {
        setters.push("pod".to_owned());
        values.insert(kind);
    }
    if !bad.is_empty() {
        setters.push(named(&bad));
    }
    if !setters.is_empty() {
        let detail = format!(
            "{} must not set securityContext.seccompProfile.type to {}",
            setters.join(" and "),
            quoted(&values)
        );
        return Some(("seccompProfile", detail));
    }
    let silent = names(spec, |container| profile(container).is_none());
    let detail = || {
        format!(
            "pod or {} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"",
            named(&silent)
        )
    };
    (restricted && own.is_none() && !silent.is_empty()).then(|| ("seccompProfile", detail()))
}

fn escalation(spec: &Value) -> Option<Violation> {
    let bad = names(spec, |container| context(container, "allowPrivilegeEscalation") != Some(&false.into()));
    let detail = || format!("{} must set securityContext.allowPrivilegeEscalation=false", named(&bad));
    (!bad.is_empty()).then(|| ("allowPrivilegeEscalation != false", detail()))
}

fn volumes(spec: &Value) -> Option<Violation> {
    const ALLOWED: [&str; 9] = [
        "name",
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ];
    let kind = |volume: &Value| -> Option<String> {
        volume.as_object()?.keys().find(|field| !ALLOWED.contains(&field.as_str())).cloned()
    };
    let bad: Vec<&str> = items(spec, "volumes")
        .filter(|volume| kind(volume).is_some())
        .map(|volume| text(volume, &["name"]))
        .collect();
    let kinds: BTreeSet<String> = items(spec, "volumes").filter_map(kind).collect();
    let detail = || {
        let (what, uses) = (several("volume", "volumes", bad.len()), several("uses", "use", bad.len()));
        let types = several("restricted volume type", "restricted volume types", kinds.len());
        format!("{what} {} {uses} {types} {}", quoted(&bad), quoted(&kinds))
    };
    (!bad.is_empty()).then(|| ("restricted volume types", detail()))
}

fn non_root(spec: &Value) -> Option<Violation> {
    let says = |owner: &Value| context(owner, "runAsNonRoot").and_then(Value::as_bool);
    let own = says(spec);
    let bad = names(spec, |container| says(container) == Some(false));
    let mut setters = Vec::new();
    if own == Some(false) {
        setters.push("pod".to_owned());
    }
    if !bad.is_empty() {
        setters.push(named(&bad));
    }
    const REASON: &str = "runAsNonRoot != true";
    if !setters.is_empty() {
        return Some((
            REASON,
            format!("{} must not set securityContext.runAsNonRoot=false", setters.join(" and ")),
        ));
    }
    let silent = names(spec, |container| says(container).is_none());
    (own.is_none() && !silent.is_empty())
        .then(|| (REASON, format!("pod or {} must set securityContext.runAsNonRoot=true", named(&silent))))
}

fn root_user(spec: &Value) -> Option<Violation> {
    let is_root = |owner: &Value| context(owner, "runAsUser").and_then(Value::as_i64) == Some(0);
    let bad = names(spec, is_root);
    let mut setters = Vec::new();
    if is_root(spec) {
        setters.push("pod".to_owned());
    }
    if !bad.is_empty() {
        setters.push(named(&bad));
    }
    (!setters.is_empty())
        .then(|| ("runAsUser=0", format!("{} must not set runAsUser=0", setters.join(" and "))))
}
