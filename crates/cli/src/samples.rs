//! The samples of an operator: whether an API server takes them, and which of them their author wrote.

use crate::apply::{self, Objects};
use anyhow::Context;
use kube::Client;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use windlass_apiserver::{Api, Config, Identity};
use windlass_sdk::files::File;
use windlass_sdk::generate::is_generated;

/// What is to be in `samples/`.
#[derive(Debug)]
pub(crate) struct Samples {
    folder: PathBuf,
    /// Those that an author wrote, by their paths below the folder: they are checked, and not overwritten.
    pub(crate) of_the_author: BTreeSet<PathBuf>,
}

impl Samples {
    /// Finds which of the samples on disk are an author's.
    pub(crate) fn read(folder: &Path, wanted: &[File]) -> anyhow::Result<Self> {
        let mut of_the_author = BTreeSet::new();
        for file in wanted.iter().filter(|file| file.path.starts_with("samples")) {
            let path = folder.join(&file.path);
            match std::fs::read_to_string(&path) {
                Ok(there) if !is_generated(&there) => drop(of_the_author.insert(file.path.clone())),
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
            }
        }
        Ok(Self { folder: folder.to_owned(), of_the_author })
    }

    /// Applies the definitions and every sample to an API server in this process, which is dropped then.
    pub(crate) fn check(&self, wanted: &[File]) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let api = Api::new(Config::default());
            let mut cluster = Objects::of(Client::new(api.service(Identity::admin()), "default"));
            for file in wanted.iter().filter(|file| file.path.starts_with("crd")) {
                for definition in apply::read(&file.text)? {
                    cluster.apply(&definition).await?;
                }
            }
            for file in wanted.iter().filter(|file| file.path.starts_with("samples")) {
                self.check_file(&mut cluster, file).await?;
            }
            Ok(())
        })
    }

    async fn check_file(&self, cluster: &mut Objects, file: &File) -> anyhow::Result<()> {
        let path = self.folder.join(&file.path);
        let (text, advice) = match self.of_the_author.contains(&file.path) {
            true => (std::fs::read_to_string(&path)?, "correct it"),
            false => (
                file.text.clone(),
                "give its fields an `example` in the schema, or write the file yourself: it is kept if it does not begin \
                 with the line that says it is generated",
            ),
        };
        let objects = apply::read(&text).with_context(|| path.display().to_string())?;
        for object in &objects {
            cluster
                .apply(object)
                .await
                .with_context(|| format!("{} is not valid: {advice}", path.display()))?;
        }
        Ok(())
    }
}
