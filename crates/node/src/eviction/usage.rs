//! What a pod uses of the machine.

use super::PodDirectories;
use super::decide::{ContainerUsage, PodUsage};
use crate::file_tree::{self, Next};
use crate::shim::Shim;
use k8s_openapi::api::core::v1::Pod;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The maximum number of files that are counted: a measurement must end.
const MAX_FILES: u64 = 1_000_000;

/// Asks the pod's shim, and counts what is in its directories.
pub(super) async fn of(directories: &PodDirectories, pod: &Pod) -> PodUsage {
    let PodDirectories { root, logs } = directories;
    let mut usage = PodUsage::default();
    if let Some(shim) = Shim::find(root).await {
        for used in shim.usage().await.unwrap_or_default() {
            let entry = usage.containers.entry(used.name).or_default();
            *entry = ContainerUsage { memory: used.memory_bytes, processes: used.processes.into(), ..*entry };
        }
    }
    let spec = pod.spec.clone().unwrap_or_default();
    let usual = spec.containers.iter().chain(spec.init_containers.iter().flatten()).map(|one| &one.name);
    let containers: Vec<(String, [PathBuf; 2])> = usual
        .chain(spec.ephemeral_containers.iter().flatten().map(|one| &one.name))
        .map(|name| (name.clone(), [root.join("containers").join(name), logs.join(name)]))
        .collect();
    let empty = spec.volumes.into_iter().flatten().filter(|volume| volume.empty_dir.is_some());
    let volumes: Vec<(String, PathBuf)> = empty
        .map(|volume| {
            let path = root.join("volumes").join(&volume.name);
            (volume.name, path)
        })
        .collect();
    let counted = tokio::task::spawn_blocking(move || {
        for (name, folders) in containers {
            let entry = usage.containers.entry(name).or_default();
            for folder in folders {
                let (bytes, files) = disk_usage(&folder);
                entry.disk += bytes;
                entry.files += files;
            }
        }
        for (name, folder) in volumes {
            usage.volumes.insert(name, disk_usage(&folder));
        }
        usage
    });
    counted.await.unwrap_or_default()
}

/// The bytes and the number of files in a directory. Other file systems and targets of symbolic links do not count.
fn disk_usage(folder: &Path) -> (u64, u64) {
    let Ok(first) = fs::symlink_metadata(folder) else { return (0, 0) };
    let (mut bytes, mut files) = (0, 0);
    let counted = file_tree::walk(folder, |found| {
        if found.stat.st_dev != first.dev() {
            return Ok(Next::Skip);
        }
        // A file with several hard links is one file.
        let names = if found.is_dir() { 1 } else { u128::from(found.stat.st_nlink).max(1) };
        let own = u128::try_from(found.stat.st_blocks).unwrap_or_default() * 512 / names;
        bytes += u64::try_from(own).unwrap_or_default();
        files += 1;
        Ok(if files >= MAX_FILES { Next::Stop } else { Next::Enter })
    });
    if let Err(error) = counted {
        // The pod may be moving directories about; the next count comes soon.
        tracing::debug!(folder = %folder.display(), "disk usage was counted in part: {error}");
    }
    (bytes, files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_count_and_targets_of_links_do_not() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("below")).unwrap();
        fs::write(folder.path().join("below/file"), vec![1; 100_000]).unwrap();
        std::os::unix::fs::symlink("/usr", folder.path().join("link")).unwrap();
        let (bytes, files) = disk_usage(folder.path());
        assert!((100_000..200_000).contains(&bytes), "{bytes}");
        assert_eq!(files, 3);
        assert_eq!(disk_usage(Path::new("/nowhere")), (0, 0));
    }
}
