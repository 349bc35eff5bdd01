//! Ephemeral containers, as containers like others. Pure.

use k8s_openapi::api::core::v1::{Container, EphemeralContainer, Pod, PodSpec};

/// The ephemeral containers of a pod, as containers like others.
pub(crate) fn containers(spec: &PodSpec) -> impl Iterator<Item = Container> + use<'_> {
    spec.ephemeral_containers.iter().flatten().map(container)
}

/// As a container like others: ephemeral containers have no probes, hooks, ports, resources and restarts.
pub(crate) fn container(of: &EphemeralContainer) -> Container {
    let of = of.clone();
    Container {
        args: of.args,
        command: of.command,
        env: of.env,
        env_from: of.env_from,
        image: of.image,
        image_pull_policy: of.image_pull_policy,
        name: of.name,
        security_context: of.security_context,
        stdin: of.stdin,
        stdin_once: of.stdin_once,
        termination_message_path: of.termination_message_path,
        termination_message_policy: of.termination_message_policy,
        tty: of.tty,
        volume_devices: of.volume_devices,
        volume_mounts: of.volume_mounts,
        working_dir: of.working_dir,
        ..Container::default()
    }
}

/// The ephemeral container of this name.
pub(crate) fn named<'p>(pod: &'p Pod, name: &str) -> Option<&'p EphemeralContainer> {
    let all = pod.spec.iter().flat_map(|spec| spec.ephemeral_containers.iter().flatten());
    all.into_iter().find(|one| one.name == name)
}
