//! What a pod holds of the machine.

use super::judge::{Held, PodHeld};
use crate::pods::site::Site;
use crate::shim::Shim;
use k8s_openapi::api::core::v1::Pod;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// So many files are counted, and no more: a look must end.
const FILES: u64 = 1_000_000;

/// Asks its shim, and counts what is in its folders.
pub(super) async fn of(site: &Site, pod: &Pod) -> PodHeld {
    let folder = site.folder(pod.metadata.uid.as_deref().unwrap_or_default());
    let mut held = PodHeld::default();
    if let Some(shim) = Shim::find(&folder).await {
        for used in shim.usage().await.unwrap_or_default() {
            let entry = held.containers.entry(used.name).or_default();
            *entry = Held { memory: used.memory_bytes, processes: used.processes.into(), ..*entry };
        }
    }
    let spec = pod.spec.clone().unwrap_or_default();
    let logs = site.logs_of(pod);
    let usual = spec.containers.iter().chain(spec.init_containers.iter().flatten()).map(|one| &one.name);
    let containers: Vec<(String, [PathBuf; 2])> = usual
        .chain(spec.ephemeral_containers.iter().flatten().map(|one| &one.name))
        .map(|name| (name.clone(), [folder.join("containers").join(name), logs.join(name)]))
        .collect();
    let empty = spec.volumes.into_iter().flatten().filter(|volume| volume.empty_dir.is_some());
    let volumes: Vec<(String, PathBuf)> = empty
        .map(|volume| {
            let path = folder.join("volumes").join(&volume.name);
            (volume.name, path)
        })
        .collect();
    let counted = tokio::task::spawn_blocking(move || {
        for (name, folders) in containers {
            let entry = held.containers.entry(name).or_default();
            for folder in folders {
                let (bytes, files) = count(&folder);
                entry.disk += bytes;
                entry.files += files;
            }
        }
        for (name, folder) in volumes {
            held.volumes.insert(name, count(&folder));
        }
        held
    });
    counted.await.unwrap_or_default()
}

/// The bytes that files take on the disk, and how many files there are. Other file systems and what links lead to do not count.
fn count(folder: &Path) -> (u64, u64) {
    let Ok(first) = fs::symlink_metadata(folder) else { return (0, 0) };
    let (mut bytes, mut files) = (0, 0);
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(found) = entry.metadata() else { continue };
            if found.dev() != first.dev() {
                continue;
            }
            // A file of several names is one file.
            let names = if found.is_dir() { 1 } else { found.nlink().max(1) };
            bytes += found.blocks() * 512 / names;
            files += 1;
            if found.is_dir() {
                open.push(entry.path());
            }
            if files >= FILES {
                return (bytes, files);
            }
        }
    }
    (bytes, files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_counts_and_what_links_lead_to_does_not() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("below")).unwrap();
        fs::write(folder.path().join("below/file"), vec![1; 100_000]).unwrap();
        std::os::unix::fs::symlink("/usr", folder.path().join("link")).unwrap();
        let (bytes, files) = count(folder.path());
        assert!((100_000..200_000).contains(&bytes), "{bytes}");
        assert_eq!(files, 3);
        assert_eq!(count(Path::new("/nowhere")), (0, 0));
    }
}
