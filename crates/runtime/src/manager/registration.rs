//! Where an operator that runs on this machine serves `/debug`: it leaves a file, which `why` reads.
//!
//! A file says which cluster the operator works on. It is removed when the operator ends; one that was killed leaves it behind,
//! and the next operator that starts, or whoever finds that nobody answers, removes it.

use super::program;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Nobody runs as many operators on one machine.
const MOST: usize = 100;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Registered {
    program: String,
    /// The host and port of its API server.
    cluster: String,
    debug_address: SocketAddr,
}

/// A file that is there as long as this is.
#[derive(Debug)]
pub(super) struct Registration(PathBuf);

impl Registration {
    /// Says that this process serves `/debug` at this address. That it cannot be said is no reason not to run.
    pub(super) fn write(cluster: &str, debug_address: SocketAddr) -> Option<Self> {
        let folder = folder()?;
        forget_the_dead(&folder);
        let (program, cluster) = (program(), cluster.to_owned());
        let file = folder.join(format!("{program}-{}.json", std::process::id()));
        let text = serde_json::to_vec(&Registered { program, cluster, debug_address }).ok()?;
        let written = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)
            .and_then(|()| OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&file))
            .and_then(|mut open| open.write_all(&text));
        if let Err(error) = written {
            tracing::debug!(%error, file = %file.display(), "`why` will not find this operator by itself");
            return None;
        }
        Some(Self(file))
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
        // Folders in which others have left something stay.
        for folder in self.0.ancestors().skip(1).take(2) {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Removes the files of processes that are gone, where the machine tells which are.
fn forget_the_dead(folder: &Path) {
    let processes = Path::new("/proc");
    if !processes.join("self").exists() {
        return;
    }
    for file in fs::read_dir(folder).into_iter().flatten().flatten().take(MOST).map(|entry| entry.path()) {
        let name = file.file_stem().and_then(|name| name.to_str());
        let process = name.and_then(|name| name.rsplit_once('-')?.1.parse::<u32>().ok());
        if process.is_some_and(|process| !processes.join(process.to_string()).exists()) {
            let _ = fs::remove_file(file);
        }
    }
}

/// An operator of this program that said it runs on a cluster.
pub(super) struct Found {
    pub(super) debug_address: SocketAddr,
    file: PathBuf,
}

impl Found {
    /// Removes what an operator left that does not run any more.
    pub(super) fn forget(&self) {
        let _ = fs::remove_file(&self.file);
    }
}

/// The operators of this program on this machine that work on a cluster.
pub(super) fn registered(cluster: &str) -> Vec<Found> {
    let program = program();
    let files = folder().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let found = files.take(MOST).filter_map(|entry| {
        let file = entry.path();
        let registered: Registered = serde_json::from_slice(&fs::read(&file).ok()?).ok()?;
        let ours = registered.program == program && registered.cluster == cluster;
        ours.then_some(Found { debug_address: registered.debug_address, file })
    });
    found.collect()
}

/// Where only this user's programs write.
fn folder() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let above = absolute("XDG_RUNTIME_DIR").filter(|path| path.is_dir());
    let above = above.or_else(|| absolute("HOME").map(|home| home.join(".cache")))?;
    Some(above.join("windlass/operators"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_killed_operators_left_behind_goes_and_the_living_stay() {
        let above = tempfile::tempdir().unwrap();
        let folder = above.path().join("windlass/operators");
        fs::create_dir_all(&folder).unwrap();
        let living = folder.join(format!("an-operator-{}.json", std::process::id()));
        // No process has a number that large.
        let dead = folder.join(format!("an-operator-{}.json", u32::MAX));
        for file in [&living, &dead] {
            fs::write(file, "{}").unwrap();
        }
        forget_the_dead(&folder);
        assert!(living.exists() && !dead.exists());
        drop(Registration(living.clone()));
        assert!(!living.exists() && !folder.exists() && above.path().exists());
    }
}
