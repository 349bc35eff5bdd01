//! The names of a kind in the generated code.

use super::owned::{self, Need, Owned, Pods};
use super::project::{Kind, License, Project};
use super::valid_names;
use std::collections::{BTreeMap, BTreeSet};

/// Names that the code of controllers and tests uses: a kind that is called so is written with its module.
const USED: [&str; 36] = [
    "Kind",
    "Value",
    "Why",
    "Plan",
    "Observed",
    "Refusal",
    "Reasoned",
    "Relation",
    "Until",
    "Controller",
    "Generate",
    "Arc",
    "BTreeMap",
    "Page",
    "ObjectMeta",
    "LabelSelector",
    "IntOrString",
    "Container",
    "ContainerPort",
    "PodSpec",
    "PodTemplateSpec",
    "PodSecurityContext",
    "SeccompProfile",
    "Capabilities",
    "SecurityContext",
    "ServicePort",
    "ServiceSpec",
    "JobSpec",
    "CronJobSpec",
    "JobTemplateSpec",
    "DeploymentSpec",
    "StatefulSetSpec",
    "DaemonSetSpec",
    "EndpointSlice",
    "ResourceExt",
    "TestCluster",
];

/// Names of functions and variables there: a variable of that name would hide them.
const LOCAL: [&str; 33] = [
    "global",
    "labels",
    "metadata",
    "decide",
    "controller",
    "measure",
    "metrics",
    "observed",
    "plan",
    "ready",
    "page",
    "container",
    "pods",
    "task",
    "restricted",
    "deployment",
    "stateful_set",
    "daemon_set",
    "job",
    "cron_job",
    "service",
    "config_map",
    "secret",
    "service_account",
    "endpoints",
    "answering",
    "conditions",
    "one",
    "all",
    "windlass",
    "kube",
    "running",
    "family",
];

/// A kind of a project, with its names.
#[derive(Debug, Clone)]
pub(super) struct Naming<'a> {
    pub(super) project: &'a Project,
    pub(super) kind: &'a Kind,
    /// Its module, and the name of its files.
    pub(super) module: String,
    /// Its type, as controllers and tests write it.
    pub(super) ty: String,
    /// A variable that holds one.
    pub(super) var: String,
    /// Its controller, in the cluster.
    pub(super) controller: String,
}

impl<'a> Naming<'a> {
    pub(super) fn new(project: &'a Project, kind: &'a Kind) -> Self {
        let module = valid_names::snake(&kind.kind);
        let is_used =
            USED.contains(&kind.kind.as_str()) || owned::built_in().any(|built_in| built_in == kind.kind);
        let ty = if is_used { format!("{module}::{}", kind.kind) } else { kind.kind.clone() };
        let is_function =
            LOCAL.contains(&module.as_str()) || kind.owns.iter().any(|one| valid_names::snake(one) == module);
        let var = if is_function { format!("the_{module}") } else { module.clone() };
        let lower = kind.kind.to_lowercase();
        let controller = match kind.grouped && !kind.group.is_empty() {
            true => format!("{}-{lower}", kind.group.replace('.', "-")),
            false => lower,
        };
        Self { project, kind, module, ty, var, controller }
    }

    /// The version that is stored, and that controllers are about.
    pub(super) fn version(&self) -> &'a str {
        self.kind.versions.first().map_or("v1", String::as_str)
    }

    pub(super) fn full_group(&self) -> String {
        self.project.full_group(&self.kind.group)
    }

    /// The folders below `src/api` and `src/controller`, where a group has them.
    pub(super) fn group_folder(&self) -> Option<String> {
        let group = if self.kind.group.is_empty() { "root" } else { &self.kind.group };
        self.kind.grouped.then(|| valid_names::module(group))
    }

    /// The module of its types, below `api`.
    pub(super) fn api_module(&self, version: &str) -> String {
        match self.group_folder() {
            Some(group) => format!("{group}::{version}"),
            None => version.to_owned(),
        }
    }

    /// The module of its controllers, below `controller`; empty for that itself.
    pub(super) fn below_controller(&self, module: &str) -> String {
        match self.group_folder() {
            Some(group) => format!("{group}::{module}"),
            None => module.to_owned(),
        }
    }

    /// How its tests and metrics are named.
    pub(super) fn flat(&self) -> String {
        match self.group_folder() {
            // Two underscores in a row would be no name of a crate.
            Some(group) => format!("{}_{}", group.trim_end_matches('_'), self.module),
            None => self.module.clone(),
        }
    }

    /// The crate, as code writes it.
    pub(super) fn krate(&self) -> String {
        self.project.name.replace('-', "_")
    }

    /// How the type comes into scope, with its status if that is used; from `crate` or from the crate's name.
    pub(super) fn import(&self, root: &str, with_status: bool) -> String {
        let Kind { kind, .. } = self.kind;
        let (module, api) = (&self.module, self.api_module(self.version()));
        if self.ty.contains("::") {
            return format!("use {root}::api::{api}::{module};\n");
        }
        match with_status {
            true => format!("use {root}::api::{api}::{module}::{{{kind}, {kind}Status}};\n"),
            false => format!("use {root}::api::{api}::{module}::{kind};\n"),
        }
    }

    pub(super) fn owned(&self) -> Vec<Owned> {
        let find = |kind: &String| owned::find(kind, &self.kind.kind, self.project).ok();
        self.kind.owns.iter().filter_map(find).collect()
    }

    pub(super) fn needs(&self) -> BTreeSet<Need> {
        self.owned().iter().flat_map(|owned| owned.needs).copied().collect()
    }

    /// Whether running it and letting clients find it are two concerns, with a controller for each.
    pub(super) fn has_access(&self) -> bool {
        let owned = self.owned();
        owned.iter().any(|owned| owned.kind == "Service")
            && owned.iter().any(|owned| owned.pods == Pods::Serve)
    }

    /// A function's text with its names.
    pub(super) fn fill(&self, text: &str) -> String {
        text.replace("VAR", &self.var).replace("TYPE", &self.ty)
    }
}

/// The head of every source file.
pub(super) fn header(license: License) -> &'static str {
    match license {
        License::Apache2 => "// SPDX-License-Identifier: Apache-2.0\n\n",
        License::Mit => "// SPDX-License-Identifier: MIT\n\n",
        License::None => "",
    }
}

/// `use k8s_openapi::...` lines for types, by module.
#[derive(Default)]
pub(super) struct Imports(BTreeMap<String, BTreeSet<String>>);

impl Imports {
    pub(super) fn add(&mut self, module: &str, names: &[&str]) {
        self.0.entry(module.to_owned()).or_default().extend(names.iter().map(|name| (*name).to_owned()));
    }

    pub(super) fn add_all(&mut self, all: &[(&str, &[&str])]) {
        all.iter().for_each(|(module, names)| self.add(module, names));
    }

    pub(super) fn text(&self) -> String {
        let line = |(module, names): (&String, &BTreeSet<String>)| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            match names.as_slice() {
                [one] => format!("use k8s_openapi::{module}::{one};\n"),
                names => format!("use k8s_openapi::{module}::{{{}}};\n", names.join(", ")),
            }
        };
        self.0.iter().map(line).collect()
    }
}
