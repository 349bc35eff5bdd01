//! The capacity of this machine, and its system information.

use k8s_openapi::api::core::v1::NodeSystemInfo;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use windlass_component_helpers::register::architecture;

/// The default maximum number of pods, as a kubelet's.
const MAX_PODS: &str = "110";

/// The capacity of the machine: CPUs, memory, and the file system of this directory.
pub(super) fn capacity(folder: &Path) -> BTreeMap<String, Quantity> {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let memory = memory(&fs::read_to_string("/proc/meminfo").unwrap_or_default());
    let disk = nix::sys::statvfs::statvfs(folder)
        .map_or(0, |found| u128::from(found.blocks()) * u128::from(found.fragment_size()) / 1024);
    [
        ("cpu", processors.to_string()),
        ("memory", format!("{memory}Ki")),
        ("ephemeral-storage", format!("{disk}Ki")),
        ("pods", MAX_PODS.to_owned()),
    ]
    .into_iter()
    .map(|(name, amount)| (name.to_owned(), Quantity(amount)))
    .collect()
}

/// In KiB.
fn memory(meminfo: &str) -> u64 {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// The system information of the machine.
pub(super) fn info(version: &str) -> NodeSystemInfo {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let release = read("/etc/os-release");
    let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME=")).unwrap_or("Linux");
    let machine = read("/etc/machine-id");
    NodeSystemInfo {
        architecture: architecture().to_owned(),
        operating_system: "linux".to_owned(),
        os_image: name.trim_matches('"').to_owned(),
        kernel_version: read("/proc/sys/kernel/osrelease"),
        boot_id: read("/proc/sys/kernel/random/boot_id"),
        system_uuid: machine.clone(),
        machine_id: machine,
        container_runtime_version: format!("windlass://{}", env!("CARGO_PKG_VERSION")),
        kubelet_version: version.to_owned(),
        ..NodeSystemInfo::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_capacity_is_read_from_the_machine() {
        assert_eq!(memory("MemFree: 1 kB\nMemTotal:       16314384 kB\n"), 16_314_384);
        let capacity = capacity(Path::new("/"));
        assert!(capacity["cpu"].0.parse::<u32>().unwrap() > 0);
        assert_ne!((capacity["memory"].0.as_str(), capacity["ephemeral-storage"].0.as_str()), ("0Ki", "0Ki"));
    }
}
