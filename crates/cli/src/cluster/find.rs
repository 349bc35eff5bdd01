//! Which of the running clusters a subcommand is about. [`SELECTION`] is the order of precedence, and `--help` prints it.

use super::data_dir;
use super::kubeconfig;
use super::process_nodes;
use super::record::{self, Found};
use anyhow::{Context, bail};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The order of precedence, for `--help`.
pub(crate) const SELECTION: &str = "\
Which cluster:
  1. the one in the folder that --data-dir names
  2. the one that the current context of KUBECONFIG belongs to
  3. the only one of yours that runs without --data-dir";

/// The same for a subcommand that can be about several clusters.
pub(crate) const SELECTION_OF_SEVERAL: &str = "\
Which clusters:
  1. the one in the folder that --data-dir names
  2. the one that the current context of KUBECONFIG belongs to
  3. all of yours that run without --data-dir; --all is these, whatever KUBECONFIG is";

/// Selects a running cluster.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Selection {
    /// The folder that the cluster was started with
    #[arg(long, value_name = "DIR")]
    pub(super) data_dir: Option<PathBuf>,
}

impl Selection {
    /// The folders that may be meant whose cluster was killed, and whose pods still run.
    pub(crate) fn killed(&self) -> Vec<PathBuf> {
        let owner = || std::env::var_os("KUBECONFIG").and_then(|files| owner(&files));
        let folders = match (&self.data_dir, owner()) {
            (Some(folder), _) => vec![folder.clone()],
            (None, Some(owner)) => vec![owner.folder],
            (None, None) => data_dir::temporary_folders(),
        };
        killed(folders)
    }

    /// The one cluster that is meant, which must run.
    ///
    /// # Errors
    /// When none or several may be meant; the error names the candidates.
    pub(crate) fn find(&self) -> anyhow::Result<Found> {
        self.find_running().map_err(|error| match self.killed().first() {
            Some(folder) => anyhow::anyhow!(
                "the cluster in {} was killed, and its pods still run; `windlass cluster down --data-dir {}` ends them",
                folder.display(),
                shown(folder)
            ),
            None => error,
        })
    }

    fn find_running(&self) -> anyhow::Result<Found> {
        match self.named()? {
            Named::Running(found) => return Ok(found),
            // Not another one instead: `cluster down`, given twice, would stop a cluster that nobody named.
            Named::Stopped(folder) => {
                let running = record::temporary();
                let others = match running.is_empty() {
                    true => String::new(),
                    false => format!("; --data-dir selects another: {}", candidates(&running)),
                };
                bail!("the cluster of KUBECONFIG, in {}, does not run any more{others}", folder.display())
            }
            Named::None => {}
        }
        let mut running = record::temporary();
        match running.len() {
            0 => bail!(
                "no cluster of yours runs; `windlass cluster up` starts one, and --data-dir selects one that has a folder"
            ),
            1 => Ok(running.remove(0)),
            _ => bail!(
                "several clusters of yours run; say which by KUBECONFIG, or one of {}",
                candidates(&running)
            ),
        }
    }

    /// The clusters that are meant, where none has to run: the named one, or all without a folder of the user's.
    ///
    /// # Errors
    /// When `--data-dir` names one that does not run.
    pub(crate) fn find_all(&self) -> anyhow::Result<Vec<Found>> {
        match self.named()? {
            Named::Running(found) => Ok(vec![found]),
            Named::Stopped(_) | Named::None => Ok(record::temporary()),
        }
    }

    fn named(&self) -> anyhow::Result<Named> {
        if let Some(folder) = &self.data_dir {
            let found = record::at(folder)?;
            return found
                .map(Named::Running)
                .with_context(|| format!("no cluster runs on {}", folder.display()));
        }
        let Some(owner) = std::env::var_os("KUBECONFIG").and_then(|files| owner(&files)) else {
            return Ok(Named::None);
        };
        Ok(match record::at(&owner.folder)? {
            Some(found) if owner.server.is_none_or(|server| server == found.record.server) => {
                Named::Running(found)
            }
            _ => Named::Stopped(owner.folder),
        })
    }
}

/// Those of these folders whose cluster was killed, and whose pods still run.
pub(crate) fn killed(folders: Vec<PathBuf>) -> Vec<PathBuf> {
    let killed = |folder: &PathBuf| !record::is_held(folder) && process_nodes::has_left(folder);
    folders.into_iter().filter(killed).collect()
}

/// What `--data-dir` or `KUBECONFIG` names.
enum Named {
    Running(Found),
    /// A cluster that does not run any more, by its folder.
    Stopped(PathBuf),
    None,
}

/// The cluster that a kubeconfig belongs to, whether it runs or not.
#[derive(Debug, PartialEq, Eq)]
struct Owner {
    folder: PathBuf,
    /// Where it serves; unknown where the file went with its cluster.
    server: Option<String>,
}

/// Whether the current context of a kubeconfig, or else of the user's, is of a cluster that runs on this machine, so that its API server
/// reaches what this machine serves to itself.
pub(crate) fn is_on_this_machine(kubeconfig: Option<&Path>) -> bool {
    let paths = match (kubeconfig, std::env::var_os("KUBECONFIG"), std::env::home_dir()) {
        (Some(path), ..) => vec![path.to_owned()],
        (None, Some(files), _) if !files.is_empty() => std::env::split_paths(&files).collect(),
        (None, _, Some(home)) => vec![home.join(".kube/config")],
        (None, _, None) => return false,
    };
    let Some((folder, server)) = kubeconfig::current_cluster(&paths) else { return false };
    record::at(&folder).is_ok_and(|found| found.is_some_and(|found| found.record.server == server))
}

/// What cluster of ours the current context of `KUBECONFIG` belongs to: none where it is some other Kubernetes.
fn owner(files: &OsStr) -> Option<Owner> {
    let paths: Vec<PathBuf> =
        std::env::split_paths(files).filter(|path| !path.as_os_str().is_empty()).collect();
    if let Some((folder, server)) = kubeconfig::current_cluster(&paths) {
        return Some(Owner { folder, server: Some(server) });
    }
    // The kubeconfig of a temporary cluster is removed with its folder.
    let [path] = paths.as_slice() else { return None };
    let folder = path.parent().filter(|folder| data_dir::is_temporary(folder) && !path.exists())?;
    Some(Owner { folder: folder.to_owned(), server: None })
}

/// Each cluster as an option that selects it.
fn candidates(found: &[Found]) -> String {
    let one = |found: &Found| format!("--data-dir {} ({})", shown(&found.folder), found.record.server);
    found.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn shown(path: &Path) -> String {
    kubeconfig::quoted(&path.display().to_string())
}
