//! `windlass create api`, `controller` and `webhook`: APIs, controllers and webhooks for a project.

use crate::scaffold::{ProjectFolder, given, is_asked};
use anyhow::Context;
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use windlass_sdk::scaffold::{
    self, NewController, NewKind, NewWebhook, PROJECT, Project, WebhookSort, check_controller_name,
    check_group, check_kind, check_version,
};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Add an API: a kind, or another version of one, with its controllers and tests
    Api(Api),
    /// Add another controller for a kind
    Controller(Controller),
    /// Add webhooks for a kind: defaults, validation, conversion between its versions
    Webhook(Webhook),
}

impl Command {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Api(api) => api.run(),
            Self::Controller(controller) => controller.run(),
            Self::Webhook(webhook) => webhook.run(),
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  windlass create api --group cache --version v1alpha1 --kind Memcached --owns Deployment --owns Service
  windlass create api --group cache --version v1 --kind Memcached          # another version of it
  windlass create api --group fleet --version v1 --kind Region --cluster";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Api {
    /// The API group, without the project's domain; empty for the domain alone
    #[arg(long)]
    group: Option<String>,
    /// The API version, such as v1alpha1
    #[arg(long)]
    version: Option<String>,
    /// The kind, in CamelCase
    #[arg(long)]
    kind: Option<String>,
    /// The plural resource name [default: the English plural]
    #[arg(long)]
    plural: Option<String>,
    /// The resource is namespaced (default)
    #[arg(long, conflicts_with = "cluster")]
    namespaced: bool,
    /// The resource is cluster-scoped
    #[arg(long)]
    cluster: bool,
    /// A kind that the controller creates and owns, built-in or of this project; repeatable, or comma-separated
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    owns: Vec<String>,
    /// The project's folder
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,
    /// Overwrite existing files, and show a diff of what is lost
    #[arg(long)]
    force: bool,
}

impl Api {
    fn run(&self) -> anyhow::Result<ExitCode> {
        // Before anything is asked: without a project the answers would be in vain.
        let usual = Usual::of(&self.folder)?;
        let group = given(
            self.group.as_ref(),
            "--group",
            "Which group is it in",
            usual.group.as_deref(),
            check_group,
        )?;
        let version = given(
            self.version.as_ref(),
            "--version",
            "Which version is it",
            usual.version.as_deref(),
            check_version,
        )?;
        let kind = given(self.kind.as_ref(), "--kind", "What is the kind called", None, check_kind)?;
        let asked = NewKind {
            group,
            version,
            kind,
            plural: self.plural.clone(),
            namespaced: (self.namespaced || self.cluster).then_some(self.namespaced),
            owns: self.owns(&usual.kinds)?,
        };
        let code =
            ProjectFolder::new(&self.folder, self.force).change(|read| scaffold::create_api(&asked, read))?;
        if code == ExitCode::SUCCESS {
            println!("next: make test, then make manifests");
        }
        Ok(code)
    }

    fn owns(&self, own: &[String]) -> anyhow::Result<Vec<String>> {
        if !self.owns.is_empty() || !is_asked() {
            return Ok(self.owns.clone());
        }
        let known: Vec<String> =
            scaffold::ownable().into_iter().map(str::to_owned).chain(own.iter().cloned()).collect();
        let question = "Which kinds does it make, with commas";
        let answer = given(None, "--owns", question, Some("none"), |answer| {
            let unknown = parts(answer).find(|part| !known.iter().any(|kind| kind == part));
            let refused = |_| {
                scaffold::ScaffoldError::Conflict(format!("they are none, or of these: {}", known.join(", ")))
            };
            unknown.map(refused).map_or(Ok(()), Err)
        })?;
        Ok(parts(&answer).map(str::to_owned).collect())
    }
}

fn parts(answer: &str) -> impl Iterator<Item = &str> {
    answer.split(',').map(str::trim).filter(|part| !part.is_empty() && *part != "none")
}

/// The default group: that of the kinds of the project.
struct Usual {
    group: Option<String>,
    version: Option<String>,
    /// The kinds of the project.
    kinds: Vec<String>,
}

impl Usual {
    fn of(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join(PROJECT);
        let text = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(scaffold::ScaffoldError::NoProject.into());
            }
            text => text.with_context(|| path.display().to_string())?,
        };
        let project = Project::read(&text)?;
        let last = project.kinds.last();
        let group = last.filter(|_| !project.multigroup).map(|kind| kind.group.clone());
        let kinds = project.kinds.iter().map(|kind| kind.kind.clone()).collect();
        Ok(Self { group, version: is_asked().then(|| "v1alpha1".to_owned()), kinds })
    }
}

#[derive(Debug, Args)]
pub(crate) struct Controller {
    /// The kind that it reconciles
    #[arg(long)]
    kind: Option<String>,
    /// The kind's API group, if several groups have a kind of this name
    #[arg(long)]
    group: Option<String>,
    /// The controller's name, in a word such as backup
    #[arg(long)]
    name: Option<String>,
    /// The project's folder
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,
    /// Overwrite existing files, and show a diff of what is lost
    #[arg(long)]
    force: bool,
}

impl Controller {
    fn run(&self) -> anyhow::Result<ExitCode> {
        Usual::of(&self.folder)?;
        let kind = given(self.kind.as_ref(), "--kind", "Which kind is it about", None, check_kind)?;
        let name =
            given(self.name.as_ref(), "--name", "What is it concerned with", None, check_controller_name)?;
        let asked = NewController { group: self.group.clone(), kind, name };
        ProjectFolder::new(&self.folder, self.force).change(|read| scaffold::create_controller(&asked, read))
    }
}

#[derive(Debug, Args)]
pub(crate) struct Webhook {
    /// The kind that is asked about
    #[arg(long)]
    kind: Option<String>,
    /// The kind's API group, if several groups have a kind of this name
    #[arg(long)]
    group: Option<String>,
    /// Set defaults that the schema cannot say
    #[arg(long)]
    defaulting: bool,
    /// Validate what the schema cannot say
    #[arg(long)]
    validation: bool,
    /// Convert between the versions of the kind
    #[arg(long)]
    conversion: bool,
    /// The project's folder
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,
    /// Overwrite existing files, and show a diff of what is lost
    #[arg(long)]
    force: bool,
}

impl Webhook {
    fn run(&self) -> anyhow::Result<ExitCode> {
        Usual::of(&self.folder)?;
        let kind = given(self.kind.as_ref(), "--kind", "Which kind is it about", None, check_kind)?;
        let sorts = [
            (self.defaulting, WebhookSort::Defaulting),
            (self.validation, WebhookSort::Validation),
            (self.conversion, WebhookSort::Conversion),
        ];
        let sorts = sorts.into_iter().filter_map(|(asked, sort)| asked.then_some(sort)).collect();
        let asked = NewWebhook { group: self.group.clone(), kind, sorts };
        let folder = ProjectFolder::new(&self.folder, self.force);
        let code = folder.change(|read| scaffold::create_webhook(&asked, read))?;
        if code == ExitCode::SUCCESS {
            println!("next: make test, then make manifests");
        }
        Ok(code)
    }
}
