//! The command `create webhook`: from options to a [`Change`].

use super::code_names::Naming;
use super::code_names::header;
use super::commands::{declare_module, finish, known_kind, project};
use super::insert::{Inserted, declare};
use super::project::Project;
use super::webhooks::{self, WebhookSort};
use super::{Change, Read, ScaffoldError, WriteMode, valid_names};

const LIB: &str = "src/lib.rs";
const FOLDER: &str = "src/webhook";

/// What `windlass create webhook` was asked for.
#[derive(Debug, Clone, Default)]
pub struct NewWebhook {
    /// The kind's group, where several have one of its name.
    pub group: Option<String>,
    /// The kind that it is about.
    pub kind: String,
    /// What it is for.
    pub sorts: Vec<WebhookSort>,
}

/// Webhooks for a kind.
///
/// # Errors
/// When there is no such kind, nothing was asked for, or there is but one version to convert.
pub fn create_webhook(asked: &NewWebhook, read: Read<'_>) -> Result<Change, ScaffoldError> {
    valid_names::kind(&asked.kind)?;
    if asked.sorts.is_empty() {
        let why = "say what it is for: --defaulting, --validation, --conversion, or several of them";
        return Err(ScaffoldError::Conflict(why.to_owned()));
    }
    let mut project = project(read)?;
    let at = known_kind(&project, &asked.kind, asked.group.as_deref())?;
    let kind = &mut project.kinds[at];
    if asked.sorts.contains(&WebhookSort::Conversion) && kind.versions.len() < 2 {
        return Err(ScaffoldError::Conflict(format!(
            "{} has one version, and so nothing to convert; `windlass create api --kind {} --version ...` makes another",
            kind.kind, kind.kind
        )));
    }
    let new: Vec<WebhookSort> =
        asked.sorts.iter().copied().filter(|sort| !kind.webhooks.contains(sort)).collect();
    kind.webhooks.extend(&new);
    kind.webhooks.sort();
    kind.webhooks.dedup();
    let mut change = Change { again: new.is_empty(), ..Change::default() };
    let naming = Naming::new(&project, &project.kinds[at]);
    declare_folder(&mut change, &project, read);
    for sort in &asked.sorts {
        match sort {
            WebhookSort::Defaulting => file(
                &mut change,
                &naming,
                &webhooks::module(&naming, *sort),
                webhooks::defaulting(&naming),
                read,
            ),
            WebhookSort::Validation => file(
                &mut change,
                &naming,
                &webhooks::module(&naming, *sort),
                webhooks::validation(&naming),
                read,
            ),
            WebhookSort::Conversion => conversions(&mut change, &naming, read),
        }
    }
    let test = format!("tests/{}_webhooks.rs", naming.flat().trim_end_matches('_'));
    // Made with the first of them.
    if change.again || read(&test).is_none() {
        change.push(WriteMode::CreateOnly, test, webhooks::test(&naming));
    }
    finish(&mut change, &project);
    Ok(change)
}

/// The conversions of all versions but the first that have none yet.
pub(super) fn conversions(change: &mut Change, naming: &Naming<'_>, read: Read<'_>) {
    for version in naming.kind.versions.iter().skip(1) {
        let module = webhooks::conversion_module(naming, version);
        // Of an earlier version it is there already, and the author's.
        if change.again || read(&format!("{FOLDER}/{module}.rs")).is_none() {
            file(change, naming, &module, webhooks::conversion(naming, version), read);
        }
    }
}

fn file(change: &mut Change, naming: &Naming<'_>, module: &str, text: String, read: Read<'_>) {
    declare_module(change, naming, FOLDER, module, read);
    change.push(WriteMode::CreateOnly, format!("{FOLDER}/{module}.rs"), text);
}

/// The module that has all webhooks.
fn declare_folder(change: &mut Change, project: &Project, read: Read<'_>) {
    let text = read(LIB).unwrap_or_default();
    match declare(&text, "webhook") {
        Inserted::There => {}
        Inserted::Unreadable => {
            change
                .advice
                .push(format!("add the line `pub mod webhook;` to {LIB}, which cannot be read as Rust"));
        }
        Inserted::Text(text) => change.push(WriteMode::InsertLine("pub mod webhook;".to_owned()), LIB, text),
    }
    if read(&format!("{FOLDER}/mod.rs")).is_none() {
        let about = "//! What the API server asks before it stores what users declare.\n";
        change.push(
            WriteMode::CreateOnly,
            format!("{FOLDER}/mod.rs"),
            format!("{}{about}", header(project.license)),
        );
    }
}
