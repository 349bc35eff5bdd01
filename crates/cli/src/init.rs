//! `windlass init`: a new operator's project.

use crate::library::Library;
use crate::scaffold::{Licence, ProjectFolder, given};
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;
use windlass_sdk::scaffold::{Init, check_domain, check_project_name, init};

const EXAMPLES: &str = "\
Examples:
  windlass init --domain example.com --name memcached-operator
  windlass create api --group cache --version v1alpha1 --kind Memcached --owns Deployment --owns Service
  make test";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The domain that API groups end with; one that you own
    #[arg(long)]
    domain: Option<String>,
    /// The project's name [default: the folder's name]
    #[arg(long)]
    name: Option<String>,
    /// The license of the project's files
    #[arg(long, value_enum, default_value = "apache2")]
    license: Licence,
    /// Put each API into a folder of its group, to have several groups
    #[arg(long)]
    multigroup: bool,
    /// Where the windlass library comes from: a checkout, the URL of a git repository with or without #REVISION, or a version
    /// [default: the checkout that this program was built from, if it is on this machine, or else the version of this program]
    #[arg(long, value_name = "DIR|GIT-URL|VERSION")]
    windlass: Option<String>,
    /// The project's folder
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,
    /// Overwrite existing files, and show a diff of what is lost
    #[arg(long)]
    force: bool,
}

impl Options {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let named = std::path::absolute(&self.folder)?;
        let folder_name =
            named.file_name().and_then(|name| name.to_str()).unwrap_or("operator").to_lowercase();
        let domain = given(
            self.domain.as_ref(),
            "--domain",
            "Which domain do API groups end with",
            None,
            check_domain,
        )?;
        let name = given(
            self.name.as_ref(),
            "--name",
            "What is the project called",
            Some(&folder_name),
            check_project_name,
        )?;
        let library = Library::choose(self.windlass.as_deref())?;
        let asked = Init {
            name,
            domain,
            license: self.license.into(),
            multigroup: self.multigroup,
            source: library.source.clone(),
            lock: library.lock.clone(),
        };
        let code = ProjectFolder::new(&self.folder, self.force).change(|read| init(&asked, read))?;
        if code == ExitCode::SUCCESS {
            println!("using     {}", library.explain());
            println!("next: windlass create api");
        }
        Ok(code)
    }
}
