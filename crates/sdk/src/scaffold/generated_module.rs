//! `src/generated.rs`, the one module that the tool maintains: the list of kinds and controllers.

use super::code_names::{Naming, header};
use super::project::Project;
use super::webhooks::{self, WebhookSort};

/// Where it is.
pub(super) const PATH: &str = "src/generated.rs";

/// Its text.
pub(super) fn registry(project: &Project) -> String {
    let kinds: Vec<Naming<'_>> = project.kinds.iter().map(|kind| Naming::new(project, kind)).collect();
    let several = kinds.iter().any(|naming| naming.kind.versions.len() > 1 && !converts(naming));
    let mut uses = String::from(
        "use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;\n",
    );
    if kinds.iter().any(|naming| !converts(naming)) {
        uses += "use kube::CustomResourceExt;\n";
    }
    if several {
        uses += "use kube::core::crd::merge_crds;\n";
    }
    let definitions: String =
        kinds.iter().map(|naming| format!("        {},\n", definition(naming))).collect();
    let definitions = match kinds.is_empty() {
        true => "    Vec::new()\n".to_owned(),
        false => format!("    vec![\n{definitions}    ]\n"),
    };
    let controllers: String = kinds
        .iter()
        .flat_map(|naming| {
            let controllers = controllers(naming).into_iter().map(|module| {
                format!(
                    "        .controller(controller::{}::controller())\n",
                    naming.below_controller(&module)
                )
            });
            let measure = format!(
                "        .measures(controller::{}::measure)\n",
                naming.below_controller(&naming.module)
            );
            controllers.chain([measure]).chain(webhooks_of(naming)).collect::<Vec<_>>()
        })
        .collect();
    let asked =
        kinds.iter().any(|naming| naming.kind.webhooks.iter().any(|sort| *sort != WebhookSort::Conversion));
    let own = match (kinds.is_empty(), asked) {
        (true, _) => "",
        (false, true) => "use crate::{api, controller, webhook};\n",
        (false, false) => "use crate::{api, controller};\n",
    };
    let asked = if asked { "use windlass::webhook::Webhook;\n" } else { "" };
    let (converted, plain): (Vec<&Naming<'_>>, Vec<&Naming<'_>>) =
        kinds.iter().partition(|naming| converts(naming));
    let versions: String = converted.iter().map(|naming| versions_of(naming)).collect();
    let converting: String =
        converted.iter().map(|naming| format!("        .versions({}())\n", versions_name(naming))).collect();
    let crds = match (converted.is_empty(), plain.is_empty()) {
        (true, _) => "        .crds(definitions())\n".to_owned(),
        (false, true) => converting,
        (false, false) => {
            let each: Vec<String> = plain.iter().map(|naming| definition(naming)).collect();
            format!("        .crds([{}])\n{converting}", each.join(", "))
        }
    };
    format!(
        "{}//! The kinds and the controllers of this operator. `windlass create` writes this file anew: change them where they are.

{own}{uses}use windlass::Manager;
{asked}
/// The kinds that it brings.
pub fn definitions() -> Vec<CustomResourceDefinition> {{
{definitions}}}

/// The manager with its kinds, its controllers and its metrics.
pub fn operator(manager: Manager) -> Manager {{
    manager\n{crds}{controllers}}}
{versions}",
        header(project.license)
    )
}

/// Whether webhooks convert between the versions of a kind.
fn converts(naming: &Naming<'_>) -> bool {
    naming.kind.webhooks.contains(&WebhookSort::Conversion)
}

/// The function that has the versions of a kind.
fn versions_name(naming: &Naming<'_>) -> String {
    format!("{}_versions", naming.flat().trim_end_matches('_'))
}

fn versions_of(naming: &Naming<'_>) -> String {
    let hub = webhooks::path_of(naming, naming.version());
    let spokes = naming.kind.versions.iter().skip(1);
    let spokes: String =
        spokes.map(|version| format!(".spoke::<{}>()", webhooks::path_of(naming, version))).collect();
    format!(
        "\n/// All versions of {}.\npub fn {}() -> windlass::webhook::Versions<{hub}> {{\n    \
         windlass::webhook::Versions::hub::<{hub}>(){spokes}\n}}\n",
        naming.kind.kind,
        versions_name(naming)
    )
}

/// The handlers of a kind.
fn webhooks_of(naming: &Naming<'_>) -> Vec<String> {
    let line = |sort: &WebhookSort| {
        let module = webhooks::module(naming, *sort);
        match sort {
            WebhookSort::Defaulting => {
                Some(format!("        .webhook(Webhook::defaulting(webhook::{module}::default))\n"))
            }
            WebhookSort::Validation => {
                Some(format!("        .webhook(Webhook::validating(webhook::{module}::validate))\n"))
            }
            WebhookSort::Conversion => None,
        }
    };
    naming.kind.webhooks.iter().filter_map(line).collect()
}

fn definition(naming: &Naming<'_>) -> String {
    if converts(naming) {
        let why = "the versions of one kind agree in their names and their scope";
        return format!("{}().crd().expect(\"{why}\")", versions_name(naming));
    }
    let of = |version: &String| {
        format!("api::{}::{}::{}::crd()", naming.api_module(version), naming.module, naming.kind.kind)
    };
    match naming.kind.versions.as_slice() {
        [only] => of(only),
        versions => {
            let each: Vec<String> = versions.iter().map(of).collect();
            let why = "the versions of one kind agree in their names and their scope";
            format!("merge_crds(vec![{}], \"{}\").expect(\"{why}\")", each.join(", "), naming.version())
        }
    }
}

/// The modules of a kind's controllers.
pub(super) fn controllers(naming: &Naming<'_>) -> Vec<String> {
    let mut modules = vec![naming.module.clone()];
    if naming.has_access() {
        modules.push(further(naming, "access"));
    }
    modules.extend(naming.kind.concerns.iter().map(|concern| further(naming, concern)));
    modules
}

/// The module of a controller after the first.
pub(super) fn further(naming: &Naming<'_>, concern: &str) -> String {
    format!("{}_{}", naming.module.trim_end_matches('_'), concern.replace('-', "_"))
}
