//! `src/generated.rs`, the one module that the tool maintains: the list of kinds and controllers.

use super::code_names::{Naming, header};
use super::project::Project;

/// Where it is.
pub(super) const PATH: &str = "src/generated.rs";

/// Its text.
pub(super) fn registry(project: &Project) -> String {
    let kinds: Vec<Naming<'_>> = project.kinds.iter().map(|kind| Naming::new(project, kind)).collect();
    let several = project.kinds.iter().any(|kind| kind.versions.len() > 1);
    let mut uses = String::from(
        "use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;\n",
    );
    if !kinds.is_empty() {
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
            controllers.chain([measure]).collect::<Vec<_>>()
        })
        .collect();
    let own = match kinds.is_empty() {
        true => "",
        false => "use crate::{api, controller};\n",
    };
    format!(
        "{}//! The kinds and the controllers of this operator. `windlass create` writes this file anew: change them where they are.

{own}{uses}use windlass::Manager;

/// The kinds that it brings.
pub fn definitions() -> Vec<CustomResourceDefinition> {{
{definitions}}}

/// The manager with its kinds, its controllers and its metrics.
pub fn operator(manager: Manager) -> Manager {{
    manager\n        .crds(definitions())\n{controllers}}}
",
        header(project.license)
    )
}

fn definition(naming: &Naming<'_>) -> String {
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
