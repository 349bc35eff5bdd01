//! The states of containers, kept on disk: they outlive the shim.

use super::spec::ContainerState;
use std::io;
use std::path::Path;

/// Keeps one. The file is replaced whole, so that a reader never sees half of it.
pub fn write(folder: &Path, state: &ContainerState) -> io::Result<()> {
    let folder = folder.join("containers").join(&state.name);
    std::fs::create_dir_all(&folder)?;
    let next = folder.join("state.next");
    std::fs::write(&next, serde_json::to_vec(state)?)?;
    std::fs::rename(next, folder.join(format!("{}.state", state.attempt)))
}

/// All that are kept, by name and attempt.
pub fn read(folder: &Path) -> Vec<ContainerState> {
    let mut states = Vec::new();
    for container in entries(&folder.join("containers")) {
        for file in entries(&container) {
            if file.extension().is_some_and(|extension| extension == "state") {
                states.extend(
                    std::fs::read(file)
                        .ok()
                        .and_then(|text| serde_json::from_slice::<ContainerState>(&text).ok()),
                );
            }
        }
    }
    states.sort_by(|a, b| (&a.name, a.attempt).cmp(&(&b.name, b.attempt)));
    states
}

fn entries(folder: &Path) -> Vec<std::path::PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Forgets one.
pub fn forget(folder: &Path, name: &str, attempt: u32) {
    let _ = std::fs::remove_file(folder.join("containers").join(name).join(format!("{attempt}.state")));
}
