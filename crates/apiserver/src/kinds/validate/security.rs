//! Who a container runs as, and what it may.

use super::check::{Check, in_go};
use super::{Object, flag, has, list, part, parts, word};
use serde_json::Value;
use std::collections::BTreeSet;
use windlass_schema::field::{FieldError, Path};

const PROFILES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];

pub(super) fn seccomp(profile: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let kind = word(profile, "type");
    let at = path.child("localhostProfile");
    if kind.is_empty() {
        errors.push(FieldError::required(&path.child("type"), "type is required when seccompProfile is set"));
    } else if !PROFILES.contains(&kind) {
        errors.push(FieldError::not_supported(&path.child("type"), kind, &PROFILES));
    } else if kind == "Localhost" && !has(profile, "localhostProfile") {
        errors.push(FieldError::required(&at, "must be set when seccomp type is Localhost"));
    } else if kind != "Localhost" && has(profile, "localhostProfile") {
        let why = "can only be set when seccomp type is Localhost";
        let shown = in_go(profile, &[("Type", "type"), ("LocalhostProfile", "localhostProfile")]);
        errors.push(FieldError::invalid(&at, "", why).showing(shown));
    }
}

pub(super) fn app_armor(profile: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let at = path.child("localhostProfile");
    match (word(profile, "type"), word(profile, "localhostProfile")) {
        ("Localhost", "") => {
            errors.push(FieldError::required(&at, "must be set when AppArmor type is Localhost"))
        }
        ("", _) => {
            errors.push(FieldError::required(
                &path.child("type"),
                "type is required when appArmorProfile is set",
            ));
        }
        ("RuntimeDefault" | "Unconfined", given) if !given.is_empty() => {
            errors.push(FieldError::invalid(&at, given, "can only be set when AppArmor type is Localhost"));
        }
        _ => {}
    }
}

pub(super) fn container(context: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    if context.get("allowPrivilegeEscalation").and_then(Value::as_bool) != Some(false) {
        return;
    }
    let mut refuse = |why: String| errors.push(FieldError::invalid(path, "", why).showing(shown(context)));
    if flag(context, "privileged") {
        refuse("cannot set `allowPrivilegeEscalation` to false and `privileged` to true".to_owned());
    }
    let added = part(context, "capabilities").map_or(&[][..], |capabilities| list(capabilities, "add"));
    if added.iter().any(|name| name.as_str() == Some("CAP_SYS_ADMIN")) {
        refuse(
            "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN".to_owned(),
        );
    }
}

fn shown(context: &Object) -> String {
    const FIELDS: [(&str, &str); 12] = [
        ("Capabilities", "capabilities"),
        ("Privileged", "privileged"),
        ("SELinuxOptions", "seLinuxOptions"),
        ("WindowsOptions", "windowsOptions"),
        ("RunAsUser", "runAsUser"),
        ("RunAsGroup", "runAsGroup"),
        ("RunAsNonRoot", "runAsNonRoot"),
        ("ReadOnlyRootFilesystem", "readOnlyRootFilesystem"),
        ("AllowPrivilegeEscalation", "allowPrivilegeEscalation"),
        ("ProcMount", "procMount"),
        ("SeccompProfile", "seccompProfile"),
        ("AppArmorProfile", "appArmorProfile"),
    ];
    let shown = FIELDS.iter().map(|(go, field)| {
        let value = match part(context, field) {
            Some(inner) if *field == "capabilities" => in_go(inner, &[("Add", "add"), ("Drop", "drop")]),
            _ => context.get(*field).map_or_else(|| "null".to_owned(), ToString::to_string),
        };
        format!("\"{go}\":{value}")
    });
    format!("{{{}}}", shown.collect::<Vec<_>>().join(","))
}

pub(super) fn pod(context: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    for (index, group) in list(context, "supplementalGroups").iter().enumerate() {
        let path = path.child("supplementalGroups").index(index);
        Check::Range(0, i64::from(i32::MAX)).judge(group, &path, errors);
    }
    let mut taken = BTreeSet::new();
    for (setting, path) in parts(context, "sysctls", path) {
        let name = word(setting, "name");
        let path = path.child("name");
        if name.is_empty() {
            errors.push(FieldError::required(&path, ""));
        } else if !is_sysctl(name) {
            let why = "must have at most 253 characters and match regex \
                       ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
            errors.push(FieldError::invalid(&path, name, why));
        } else if !taken.insert(name) {
            errors.push(FieldError::duplicate(&path, name));
        }
    }
}

fn is_sysctl(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    let edge =
        |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    name.len() <= 253
        && name.split(['.', '/']).all(|step| {
            let bytes = step.as_bytes();
            edge(bytes.first()) && edge(bytes.last()) && bytes.iter().all(|byte| inner(*byte))
        })
}

/// What belongs to the host is not for a pod to set.
pub(super) fn of_host(spec: &Object, path: &Path, errors: &mut Vec<FieldError>) {
    let context = part(spec, "securityContext");
    for (setting, path) in
        context.into_iter().flat_map(|context| parts(context, "sysctls", &path.child("securityContext")))
    {
        let name = word(setting, "name");
        let dotted = name.replace('/', ".");
        for (prefix, host) in [
            ("net.", "hostNetwork"),
            ("kernel.shm", "hostIPC"),
            ("kernel.msg", "hostIPC"),
            ("kernel.sem", "hostIPC"),
            ("fs.mqueue.", "hostIPC"),
        ] {
            if dotted.starts_with(prefix) && flag(spec, host) {
                let why = format!("may not be specified when '{host}' is true");
                errors.push(FieldError::invalid(&path.child("name"), name, why));
            }
        }
    }
    let own_users = spec.get("hostUsers").and_then(Value::as_bool) == Some(false);
    for field in ["containers", "initContainers"] {
        for (container, path) in parts(spec, field, path) {
            let context = part(container, "securityContext");
            if context.is_some_and(|context| word(context, "procMount") == "Unmasked") && !own_users {
                let path = path.child("securityContext").child("procMount");
                errors.push(FieldError::invalid(
                    &path,
                    "Unmasked",
                    "`hostUsers` must be false to use `Unmasked`",
                ));
            }
        }
    }
}
