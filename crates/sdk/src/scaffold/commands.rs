//! The commands `init`, `create api`, `create controller` and `edit`: from options to a [`Change`].

use super::code_names::{Naming, header};
use super::insert::{Inserted, declare};
use super::project::{Kind, License, PATH as PROJECT, Project};
use super::project_files::Source;
use super::webhooks::WebhookSort;
use super::{Change, Read, ScaffoldError, WriteMode};
use super::{
    api_types, controllers, create_webhook, generated_module, owned, project_files, test_files, valid_names,
};
use std::collections::BTreeSet;

/// What `windlass init` was asked for.
#[derive(Debug, Clone)]
pub struct Init {
    /// The project's name.
    pub name: String,
    /// What all groups end with.
    pub domain: String,
    /// The licence of its files.
    pub license: License,
    /// Whether kinds go into a folder of their group.
    pub multigroup: bool,
    /// Where the library comes from.
    pub source: Source,
    /// The versions of crates that the library was tested with, as a `Cargo.lock`.
    pub lock: Option<String>,
}

/// A new project.
///
/// # Errors
/// When a name cannot be, or another project is there.
pub fn init(asked: &Init, read: Read<'_>) -> Result<Change, ScaffoldError> {
    valid_names::project(&asked.name)?;
    valid_names::domain(&asked.domain)?;
    let mut project = Project::new(&asked.name, &asked.domain, asked.license, asked.multigroup);
    let mut change = Change::default();
    if let Some(there) = read(PROJECT) {
        let there = Project::read(&there)?;
        project.kinds = there.kinds.clone();
        if there != project {
            let why = "this folder has a project of another name, domain, licence or layout; `windlass edit` changes it";
            return Err(ScaffoldError::Conflict(why.to_owned()));
        }
        change.again = true;
    }
    for file in project_files::files(&project, &asked.source) {
        // Those that list modules have grown since: not even force makes them new again.
        let lists_modules = file.path.ends_with("mod.rs");
        if change.again && lists_modules && file.path.to_str().and_then(read).is_some() {
            continue;
        }
        change.push(WriteMode::CreateOnly, file.path, file.text);
    }
    if let (Some(lock), false) = (&asked.lock, change.again) {
        change.push(WriteMode::CreateOnly, "Cargo.lock", lock.clone());
    }
    finish(&mut change, &project);
    Ok(change)
}

/// What `windlass create api` was asked for.
#[derive(Debug, Clone, Default)]
pub struct NewKind {
    /// Its group, without the domain.
    pub group: String,
    /// Its version.
    pub version: String,
    /// Its CamelCase name.
    pub kind: String,
    /// Its name in paths, if not the usual plural.
    pub plural: Option<String>,
    /// Whether its objects live in namespaces; unless said otherwise they do.
    pub namespaced: Option<bool>,
    /// The kinds that its controllers make: built-in ones, or others of the project.
    pub owns: Vec<String>,
}

/// A new kind, or a new version of one, with its controllers.
///
/// # Errors
/// When a name cannot be, or does not fit to the project.
pub fn create_api(asked: &NewKind, read: Read<'_>) -> Result<Change, ScaffoldError> {
    valid_names::kind(&asked.kind)?;
    valid_names::group(&asked.group)?;
    valid_names::version(&asked.version)?;
    let mut project = project(read)?;
    let mut owns: Vec<String> = Vec::new();
    for kind in &asked.owns {
        owned::find(kind, &asked.kind, &project)?;
        if !owns.contains(kind) {
            owns.push(kind.clone());
        }
    }
    let plural = asked.plural.clone().unwrap_or_else(|| super::plural(&asked.kind.to_lowercase()));
    valid_names::plural(&plural)?;
    let same = |kind: &Kind| kind.kind == asked.kind && kind.group == asked.group;
    let Some(at) = project.kinds.iter().position(same) else {
        return new_kind(project, asked, plural, owns, read);
    };
    let there = &project.kinds[at];
    let other =
        |what: &str| ScaffoldError::Conflict(format!("{} is there already, with another {what}", asked.kind));
    if asked.plural.is_some() && there.plural != plural {
        return Err(other("plural"));
    }
    if asked.namespaced.is_some_and(|namespaced| namespaced != there.namespaced) {
        return Err(other("scope; a kind's scope cannot change"));
    }
    if !owns.is_empty() && there.owns != owns {
        return Err(other("list of kinds that it owns; add .owns::<...>() to its controller instead"));
    }
    if there.versions.contains(&asked.version) {
        let mut change = Change { again: true, ..Change::default() };
        kind_files(&mut change, &Naming::new(&project, there), &asked.version, read);
        finish(&mut change, &project);
        return Ok(change);
    }
    project.kinds[at].versions.push(asked.version.clone());
    let mut change = Change::default();
    let naming = Naming::new(&project, &project.kinds[at]);
    new_version(&mut change, &naming, &asked.version, read);
    if naming.kind.webhooks.contains(&WebhookSort::Conversion) {
        create_webhook::conversions(&mut change, &naming, read);
    }
    finish(&mut change, &project);
    Ok(change)
}

fn new_kind(
    mut project: Project,
    asked: &NewKind,
    plural: String,
    owns: Vec<String>,
    read: Read<'_>,
) -> Result<Change, ScaffoldError> {
    let elsewhere = project.kinds.iter().find(|kind| kind.group != asked.group);
    if let (false, Some(other)) = (project.multigroup, elsewhere) {
        let group = |group: &str| project.full_group(group);
        return Err(ScaffoldError::Conflict(format!(
            "the project's kinds are in group {}, and {} would be in {}; `windlass edit --multigroup true` makes room for several groups",
            group(&other.group),
            asked.kind,
            group(&asked.group),
        )));
    }
    let clash = project.kinds.iter().find(|kind| kind.group == asked.group && kind.plural == plural);
    if let Some(other) = clash {
        return Err(ScaffoldError::Conflict(format!(
            "{} of that group has the plural {plural} already; give {} another with --plural",
            other.kind, asked.kind
        )));
    }
    project.kinds.push(Kind {
        group: asked.group.clone(),
        kind: asked.kind.clone(),
        plural,
        namespaced: asked.namespaced.unwrap_or(true),
        grouped: project.multigroup,
        versions: vec![asked.version.clone()],
        owns,
        concerns: Vec::new(),
        webhooks: Vec::new(),
    });
    check_modules(&project)?;
    let mut change = Change::default();
    if let Some(kind) = project.kinds.last() {
        kind_files(&mut change, &Naming::new(&project, kind), &asked.version, read);
    }
    finish(&mut change, &project);
    Ok(change)
}

/// What `windlass create controller` was asked for.
#[derive(Debug, Clone, Default)]
pub struct NewController {
    /// The kind's group, where several have one of its name.
    pub group: Option<String>,
    /// The kind that it is about.
    pub kind: String,
    /// What it is concerned with.
    pub name: String,
}

/// A further controller for a kind.
///
/// # Errors
/// When there is no such kind, or the name cannot be.
pub fn create_controller(asked: &NewController, read: Read<'_>) -> Result<Change, ScaffoldError> {
    valid_names::kind(&asked.kind)?;
    valid_names::concern(&asked.name)?;
    let mut project = project(read)?;
    let at = known_kind(&project, &asked.kind, asked.group.as_deref())?;
    let mut change = Change { again: project.kinds[at].concerns.contains(&asked.name), ..Change::default() };
    if !change.again {
        project.kinds[at].concerns.push(asked.name.clone());
        check_modules(&project)?;
    }
    let naming = Naming::new(&project, &project.kinds[at]);
    let module = generated_module::further(&naming, &asked.name);
    controller_file(&mut change, &naming, &module, controllers::concern(&naming, &asked.name), read);
    let path = format!("tests/{}_{}.rs", naming.flat().trim_end_matches('_'), asked.name.replace('-', "_"));
    change.push(WriteMode::CreateOnly, path, test_files::of_concern(&naming, &asked.name));
    finish(&mut change, &project);
    Ok(change)
}

/// The place of the kind of a name, and of a group where several have one.
pub(super) fn known_kind(project: &Project, name: &str, group: Option<&str>) -> Result<usize, ScaffoldError> {
    let fits = |kind: &Kind| kind.kind == name && group.is_none_or(|group| group == kind.group);
    let found: Vec<usize> = (0..project.kinds.len()).filter(|at| fits(&project.kinds[*at])).collect();
    match found.as_slice() {
        [at] => Ok(*at),
        [] => {
            let known: Vec<&str> = project.kinds.iter().map(|kind| kind.kind.as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Err(ScaffoldError::Conflict(format!(
                "there is no kind {name} here (there are: {known}); `windlass create api` makes one"
            )))
        }
        _ => {
            Err(ScaffoldError::Conflict(format!("several groups have a kind {name}; say which with --group")))
        }
    }
}

/// What `windlass edit` was asked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Edit {
    /// Whether kinds that come go into a folder of their group.
    pub multigroup: Option<bool>,
    /// The licence of files that come.
    pub license: Option<License>,
}

/// Another layout or licence for what comes; what is there stays where and as it is.
///
/// # Errors
/// When there is no project, or its kinds need the layout that it has.
pub fn edit(asked: &Edit, read: Read<'_>) -> Result<Change, ScaffoldError> {
    let mut project = project(read)?;
    if let Some(multigroup) = asked.multigroup {
        let groups: BTreeSet<&str> = project.kinds.iter().map(|kind| kind.group.as_str()).collect();
        if !multigroup && groups.len() > 1 {
            return Err(ScaffoldError::Conflict(format!(
                "the project's kinds are in {} groups, which need it",
                groups.len()
            )));
        }
        project.multigroup = multigroup;
    }
    project.license = asked.license.unwrap_or(project.license);
    let mut change = Change { again: true, ..Change::default() };
    if project.multigroup && project.kinds.iter().any(|kind| !kind.grouped) {
        change.advice.push(
            "the kinds that there are stay where they are; new ones go into a folder of their group"
                .to_owned(),
        );
    }
    finish(&mut change, &project);
    Ok(change)
}

pub(super) fn project(read: Read<'_>) -> Result<Project, ScaffoldError> {
    Project::read(&read(PROJECT).ok_or(ScaffoldError::NoProject)?)
}

/// No two controllers may have one module, nor a group that of a controller.
fn check_modules(project: &Project) -> Result<(), ScaffoldError> {
    let mut modules = BTreeSet::new();
    let mut folders = BTreeSet::new();
    for kind in &project.kinds {
        let naming = Naming::new(project, kind);
        folders.extend(naming.group_folder());
        for module in generated_module::controllers(&naming) {
            let module = naming.below_controller(&module);
            if !modules.insert(module.clone()) {
                return Err(ScaffoldError::Conflict(format!(
                    "src/controller has a module {module} already; choose another name"
                )));
            }
        }
    }
    match modules.intersection(&folders).next() {
        Some(both) => Err(ScaffoldError::Conflict(format!(
            "a kind's module is named {both}, and a group's would be; choose another name"
        ))),
        None => Ok(()),
    }
}

fn kind_files(change: &mut Change, naming: &Naming<'_>, version: &str, read: Read<'_>) {
    // The first version's file is made from the project, a further one from that of the first.
    if version != naming.version() {
        return new_version(change, naming, version, read);
    }
    types_file(change, naming, version, api_types::types(naming, version), read);
    controller_file(change, naming, &naming.module, controllers::first(naming), read);
    if naming.has_access() {
        controller_file(
            change,
            naming,
            &generated_module::further(naming, "access"),
            controllers::access(naming),
            read,
        );
    }
    change.push(WriteMode::CreateOnly, format!("tests/{}.rs", naming.flat()), test_files::of_kind(naming));
}

fn new_version(change: &mut Change, naming: &Naming<'_>, version: &str, read: Read<'_>) {
    let stored = naming.version();
    let path = |version: &str| {
        format!("src/api/{}/{}.rs", naming.api_module(version).replace("::", "/"), naming.module)
    };
    let copied = read(&path(stored)).and_then(|text| api_types::copied(&text, stored, version));
    types_file(change, naming, version, copied.unwrap_or_else(|| api_types::types(naming, version)), read);
    change.advice.push(format!(
        "{version} begins as a copy of {stored}, which stays the version that is stored and that the controllers are about"
    ));
}

fn types_file(change: &mut Change, naming: &Naming<'_>, version: &str, text: String, read: Read<'_>) {
    let mut folder = "src/api".to_owned();
    for module in naming.api_module(version).split("::") {
        let about = match module == version {
            true => format!("`{}/{version}`.", naming.full_group()),
            false => format!("`{}`, by version.", naming.full_group()),
        };
        declare_module(change, naming, &folder, module, read);
        folder = format!("{folder}/{module}");
        if module_file(change, &folder, read).is_none() {
            change.push(
                WriteMode::CreateOnly,
                format!("{folder}/mod.rs"),
                format!("{}//! {about}\n", header(naming.project.license)),
            );
        }
    }
    declare_module(change, naming, &folder, &naming.module, read);
    change.push(WriteMode::CreateOnly, format!("{folder}/{}.rs", naming.module), text);
}

fn controller_file(change: &mut Change, naming: &Naming<'_>, module: &str, text: String, read: Read<'_>) {
    let mut folder = "src/controller".to_owned();
    if let Some(group) = naming.group_folder() {
        declare_module(change, naming, &folder, &group, read);
        folder = format!("{folder}/{group}");
        if module_file(change, &folder, read).is_none() {
            let about = format!("What follows from the kinds of `{}`.", naming.full_group());
            change.push(
                WriteMode::CreateOnly,
                format!("{folder}/mod.rs"),
                format!("{}//! {about}\n", header(naming.project.license)),
            );
        }
    }
    declare_module(change, naming, &folder, module, read);
    change.push(WriteMode::CreateOnly, format!("{folder}/{module}.rs"), text);
}

/// The file of a module that has others below it, and its text as it will be: `api/mod.rs`, or `api.rs`.
fn module_file(change: &mut Change, folder: &str, read: Read<'_>) -> Option<(String, String)> {
    [format!("{folder}/mod.rs"), format!("{folder}.rs")].into_iter().find_map(|path| {
        let text = change.planned(&path).map(|planned| planned.file.text.clone()).or_else(|| read(&path))?;
        Some((path, text))
    })
}

pub(super) fn declare_module(
    change: &mut Change,
    naming: &Naming<'_>,
    folder: &str,
    module: &str,
    read: Read<'_>,
) {
    let line = format!("pub mod {module};");
    let (path, text) = module_file(change, folder, read)
        .unwrap_or_else(|| (format!("{folder}/mod.rs"), header(naming.project.license).to_owned()));
    match declare(&text, module) {
        Inserted::There => {}
        Inserted::Unreadable => {
            change.advice.push(format!("add the line `{line}` to {path}, which cannot be read as Rust"));
        }
        Inserted::Text(text) => match change.planned(&path) {
            Some(planned) => {
                planned.file.text = text;
                if let WriteMode::InsertLine(lines) = &mut planned.mode {
                    *lines += &format!(" {line}");
                }
            }
            None if read(&path).is_some() => change.push(WriteMode::InsertLine(line), path, text),
            None => change.push(WriteMode::CreateOnly, path, text),
        },
    }
}

pub(super) fn finish(change: &mut Change, project: &Project) {
    change.push(WriteMode::Regenerate, generated_module::PATH, generated_module::registry(project));
    change.push(WriteMode::Regenerate, PROJECT, project.text());
}
