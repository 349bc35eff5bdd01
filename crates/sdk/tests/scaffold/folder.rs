//! A project on disk, changed as the commands do it.

use std::path::{Path, PathBuf};
use windlass_sdk::files::{self, File};
use windlass_sdk::format::format;
use windlass_sdk::scaffold::outcome::{FileOutcome, resolve};
use windlass_sdk::scaffold::{
    Change, Init, License, NewController, NewKind, NewWebhook, Read, ScaffoldError, Source, WebhookSort,
    WriteMode,
};
use windlass_sdk::scaffold::{create_api, create_controller, create_webhook, init};

pub struct Folder {
    pub path: PathBuf,
}

/// This repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the tests run in the repository")
}

impl Folder {
    pub fn change(
        &self,
        decide: impl FnOnce(Read<'_>) -> Result<Change, ScaffoldError>,
    ) -> anyhow::Result<Vec<FileOutcome>> {
        let read = |path: &str| std::fs::read_to_string(self.path.join(path)).ok();
        let mut change = decide(&read)?;
        let ours =
            change.files.iter_mut().filter(|planned| !matches!(planned.mode, WriteMode::InsertLine(_)));
        format(&self.path, &mut ours.map(|planned| &mut planned.file).collect::<Vec<_>>());
        let placed = resolve(change, &read, false)?;
        let written: Vec<File> =
            placed.iter().filter(|one| one.is_written()).map(|one| one.file.clone()).collect();
        files::write(&self.path, &written)?;
        Ok(placed)
    }

    pub fn init(below: &Path, name: &str, license: License, multigroup: bool) -> anyhow::Result<Self> {
        let folder = Self { path: below.join(name) };
        std::fs::create_dir_all(&folder.path)?;
        let asked = Init {
            name: name.to_owned(),
            domain: "example.com".to_owned(),
            license,
            multigroup,
            source: Source::Path(repository().to_string_lossy().into_owned()),
            lock: None,
        };
        folder.change(|read| init(&asked, read))?;
        Ok(folder)
    }

    pub fn api(
        &self,
        group: &str,
        version: &str,
        kind: &str,
        owns: &[&str],
    ) -> anyhow::Result<Vec<FileOutcome>> {
        self.api_of(NewKind {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            owns: owns.iter().map(|kind| (*kind).to_owned()).collect(),
            ..NewKind::default()
        })
    }

    pub fn cluster_api(&self, group: &str, kind: &str, owns: &[&str]) -> anyhow::Result<Vec<FileOutcome>> {
        self.api_of(NewKind {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            namespaced: Some(false),
            owns: owns.iter().map(|kind| (*kind).to_owned()).collect(),
            ..NewKind::default()
        })
    }

    pub fn api_of(&self, asked: NewKind) -> anyhow::Result<Vec<FileOutcome>> {
        self.change(|read| create_api(&asked, read))
    }

    pub fn controller(&self, kind: &str, name: &str) -> anyhow::Result<Vec<FileOutcome>> {
        let asked = NewController { group: None, kind: kind.to_owned(), name: name.to_owned() };
        self.change(|read| create_controller(&asked, read))
    }

    pub fn webhook(&self, kind: &str, sorts: &[WebhookSort]) -> anyhow::Result<Vec<FileOutcome>> {
        let asked = NewWebhook { group: None, kind: kind.to_owned(), sorts: sorts.to_vec() };
        self.change(|read| create_webhook(&asked, read))
    }

    pub fn text(&self, path: &str) -> anyhow::Result<String> {
        Ok(std::fs::read_to_string(self.path.join(path))?)
    }

    /// All paths in it, in order.
    pub fn all(&self) -> anyhow::Result<Vec<String>> {
        let mut found = Vec::new();
        let mut folders = vec![self.path.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder)? {
                let path = entry?.path();
                match path.is_dir() {
                    true => folders.push(path),
                    false => found.push(path.strip_prefix(&self.path)?.to_string_lossy().into_owned()),
                }
            }
        }
        found.sort();
        Ok(found)
    }
}
