//! `windlass install` and `uninstall`: an operator's CRDs, and nothing else of it.

use super::{Target, instances, listed, refuse_breaks};
use crate::apply::{Objects, title};
use anyhow::bail;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub(crate) struct Install {
    #[command(flatten)]
    target: Target,

    /// Apply changes of CRDs that break stored custom resources
    #[arg(long)]
    force: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Uninstall {
    #[command(flatten)]
    target: Target,

    /// Delete the custom resources too
    #[arg(long)]
    force: bool,
}

impl Install {
    pub(crate) async fn run(&self) -> anyhow::Result<ExitCode> {
        let operator = self.target.described()?;
        if operator.definitions.is_empty() {
            bail!("{} has no CRDs", operator.name);
        }
        let client = self.target.client().await?;
        if !self.force {
            refuse_breaks(&client, &operator).await?;
        }
        let mut objects = Objects::of(client);
        for definition in &operator.definitions {
            let became = objects.apply(definition).await?;
            println!("{:<9} {}", became.in_words(), title(definition));
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Uninstall {
    pub(crate) async fn run(&self) -> anyhow::Result<ExitCode> {
        let operator = self.target.described()?;
        let client = self.target.client().await?;
        let found = instances(&client, &operator.kinds()).await?;
        if !found.is_empty() && !self.force {
            let names = listed(found.iter().map(|one| one.title.clone()));
            bail!(
                "{} custom resources would be deleted with their CRDs (--force deletes them):{names}",
                found.len()
            );
        }
        let mut objects = Objects::of(client);
        for definition in &operator.definitions {
            let was_there = objects.delete(definition).await?;
            println!("{:<9} {}", if was_there { "deleted" } else { "absent" }, title(definition));
        }
        Ok(ExitCode::SUCCESS)
    }
}
