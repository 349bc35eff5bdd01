//! `windlass init`: a new operator's project.

use crate::scaffold::{Ground, Licence, given};
use anyhow::Context;
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use windlass_sdk::scaffold::{Init, Source, check_domain, check_project_name, init};

const EXAMPLES: &str = "\
Examples:
  windlass init --domain example.com --name memcached-operator
  windlass create api --group cache --version v1alpha1 --kind Memcached --owns Deployment --owns Service
  make test";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// What the groups of its kinds end with: a domain that you own
    #[arg(long)]
    domain: Option<String>,
    /// The project's name; without it, that of the folder
    #[arg(long)]
    name: Option<String>,
    /// The licence of its files
    #[arg(long, value_enum, default_value = "apache2")]
    license: Licence,
    /// Put kinds into a folder of their group, so that there can be several groups
    #[arg(long)]
    multigroup: bool,
    /// A checkout of windlass to depend on, instead of a published version
    #[arg(long, value_name = "FOLDER")]
    windlass: Option<PathBuf>,
    /// Where the project goes
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,
    /// Overwrite files that are there, and show what is lost
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
            "Which domain do its groups end with",
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
        let checkout = self.checkout()?;
        let lock =
            checkout.as_ref().and_then(|folder| std::fs::read_to_string(folder.join("Cargo.lock")).ok());
        let source = match &checkout {
            Some(folder) => {
                Source::Folder(folder.to_str().context("the path of windlass is not in UTF-8")?.to_owned())
            }
            None => Source::Published,
        };
        let asked =
            Init { name, domain, license: self.license.into(), multigroup: self.multigroup, source, lock };
        let code = Ground::new(&self.folder, self.force).change(|read| init(&asked, read))?;
        if code == ExitCode::SUCCESS {
            println!("next: windlass create api");
        }
        Ok(code)
    }

    /// The checkout to depend on: the one that is named, or the one that this program was built from, if it is still there.
    fn checkout(&self) -> anyhow::Result<Option<PathBuf>> {
        let is_one = |folder: &Path| folder.join("crates/runtime/Cargo.toml").is_file();
        if let Some(folder) = &self.windlass {
            let whole = folder.canonicalize().with_context(|| folder.display().to_string())?;
            anyhow::ensure!(
                is_one(&whole),
                "{} is no checkout of windlass: it has no crates/runtime",
                folder.display()
            );
            return Ok(Some(whole));
        }
        let built_from = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
        Ok(built_from.filter(|folder| is_one(folder)).map(Path::to_owned))
    }
}
