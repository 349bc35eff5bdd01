//! The kinds that a controller can own from the start, each with a function that makes one: built-in kinds, of which some have a
//! function of their own here and the others are in `kinds`, and the kinds of the project itself.
//!
//! In these texts `VAR` is the object's variable and `TYPE` its type.

use super::code_names::{Imports, Naming};
use super::project::{Kind, Project};
use super::typed_kinds::{ALONE_IMPORTS, FINISH_IMPORTS, MADE, SERVE_IMPORTS};
use super::{ScaffoldError, json_kinds, valid_names};

/// A field of the spec that a kind of child asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Need {
    Replicas,
    Image,
    Schedule,
    Settings,
}

/// How pods come to be with it, if they do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pods {
    None,
    /// They run on and on.
    Serve,
    /// They end.
    Finish,
    /// It is one.
    Alone,
}

/// A kind of child, as it is in the texts of a project.
#[derive(Debug)]
pub(super) struct Owned {
    pub(super) kind: String,
    /// Its type, as controllers and tests write it.
    pub(super) ty: String,
    pub(super) from: Origin,
    pub(super) needs: &'static [Need],
    pub(super) pods: Pods,
    /// Whether its objects live in namespaces.
    pub(super) namespaced: bool,
    /// Whether it becomes healthy without anything that a controller does not make.
    pub(super) settles: bool,
    /// Why it is made: a name, and a sentence.
    pub(super) why: (String, String),
    /// What is put into the plan.
    pub(super) step: String,
    /// The function that makes one.
    pub(super) make: String,
    /// Whether that says what it is like as JSON.
    pub(super) as_json: bool,
}

/// Where its type comes from.
#[derive(Debug)]
pub(super) enum Origin {
    /// From a module of `k8s_openapi`, with further types.
    BuiltIn(&'static str, &'static [(&'static str, &'static [&'static str])]),
    /// From the project itself, by these lines for a `use` below a root.
    Own(Vec<(&'static str, String)>),
}

impl Owned {
    /// Whether it is deleted and created anew where it cannot be changed: a StatefulSet's claims, what a Job does.
    pub(super) fn recreated(&self) -> bool {
        self.step.contains(".recreate(")
    }

    /// What its function and the plan need in scope; what the project itself has is imported by lines below `root`.
    pub(super) fn imports(&self, imports: &mut Imports, root: &str) -> String {
        match &self.from {
            Origin::BuiltIn(module, more) => {
                imports.add(module, &[&self.kind]);
                imports.add_all(more);
                match self.pods {
                    Pods::Serve => imports.add_all(SERVE_IMPORTS),
                    Pods::Finish => imports.add_all(FINISH_IMPORTS),
                    Pods::Alone => imports.add_all(ALONE_IMPORTS),
                    Pods::None => {}
                }
                String::new()
            }
            Origin::Own(_) => self.import(imports, root),
        }
    }

    /// What it takes to name its type.
    pub(super) fn import(&self, imports: &mut Imports, root: &str) -> String {
        match &self.from {
            Origin::BuiltIn(module, _) => {
                imports.add(module, &[&self.kind]);
                String::new()
            }
            Origin::Own(lines) => {
                lines.iter().filter(|(below, _)| *below == root).map(|(_, line)| line.as_str()).collect()
            }
        }
    }

    /// What the one of an object `sample` in `default` is called.
    pub(super) fn name_of_sample(&self, owner: &Kind) -> &'static str {
        if self.namespaced || !owner.namespaced { "sample" } else { "default-sample" }
    }
}

/// A kind whose objects are said as JSON.
fn as_json(kind: &str, ty: String, namespaced: bool, why: &str, fields: &str) -> Owned {
    let function = valid_names::snake(kind);
    let metadata = if namespaced { "metadata" } else { "global" };
    let reason = valid_names::camel(&why.replace(' ', "-"));
    Owned {
        kind: kind.to_owned(),
        from: Origin::Own(Vec::new()),
        needs: &[],
        pods: Pods::None,
        namespaced,
        settles: true,
        why: (reason.clone(), format!("its {kind} {why}")),
        step: format!(".apply_of(Kind::of::<{ty}>(), {function}(VAR), Why::{reason})"),
        make: format!(
            "/// What is said of it here is kept so; what is left out is up to others, or has its default.
fn {function}(VAR: &TYPE) -> Value {{
    json!({{\"metadata\": {metadata}(VAR), {fields}}})
}}
"
        ),
        ty,
        as_json: true,
    }
}

/// The names of all built-in kinds that can be owned.
pub(super) fn built_in() -> impl Iterator<Item = &'static str> {
    MADE.iter().map(|made| made.kind).chain(json_kinds::ALL.iter().map(|row| row.kind))
}

/// The kind of that name, for an owner of this name: a built-in one, or one of the project's own.
pub(super) fn find(kind: &str, owner: &str, project: &Project) -> Result<Owned, ScaffoldError> {
    if let Some(made) = MADE.iter().find(|made| made.kind == kind) {
        return Ok(made.owned());
    }
    if let Some(row) = json_kinds::ALL.iter().find(|row| row.kind == kind) {
        let owned = as_json(kind, kind.to_owned(), row.namespaced, row.why, &row.body());
        let from = Origin::BuiltIn(row.module, &[]);
        return Ok(Owned { from, needs: row.needs, pods: row.pods, settles: row.settles, ..owned });
    }
    let refused =
        |why: String| ScaffoldError::InvalidName { what: "kind to own", name: kind.to_owned(), why };
    if let Some((_, module)) = json_kinds::OTHERS.iter().find(|(other, _)| *other == kind) {
        return Err(refused(format!(
            "none is made from the start; add .owns::<k8s_openapi::{module}::{kind}>() to the controller, and say in decide what one is like"
        )));
    }
    let own: Vec<&Kind> = project.kinds.iter().filter(|one| one.kind == kind).collect();
    match own.as_slice() {
        _ if kind == owner => Err(refused("a kind does not own itself".to_owned())),
        [one] => {
            let naming = Naming::new(project, one);
            let lines =
                [("crate", naming.import("crate", false)), (TESTS, naming.import(&naming.krate(), false))];
            let why = format!("serves as its {}", valid_names::words(kind));
            let owned = as_json(kind, naming.ty.clone(), one.namespaced, &why, "\"spec\": {}");
            Ok(Owned { from: Origin::Own(lines.into()), ..owned })
        }
        [] => {
            let mut known: Vec<&str> = built_in().collect();
            known.extend(project.kinds.iter().map(|one| one.kind.as_str()));
            Err(refused(format!(
                "these can be made from the start: {}. Others you add by .owns::<...>() in the controller",
                known.join(", ")
            )))
        }
        _ => Err(refused("several groups have one; add .owns::<...>() to the controller".to_owned())),
    }
}

/// The root below which tests import.
pub(super) const TESTS: &str = "tests";
