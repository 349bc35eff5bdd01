//! The files of a kind's controllers: pure decisions, their reasons, and what they make.
//!
//! Two controllers of one kind share its status. Conditions are a map by type, so that each can own some, but the general
//! ones belong to everyone: the first controller writes them, and a further one is `concerned_with` a condition of its own
//! and writes no other.

use super::code_names::{Imports, Naming, header};
use super::owned::{Need, Owned, Pods};
use super::typed_kinds;
use super::valid_names;

/// The kind's first controller: it runs what was declared.
pub(super) fn first(naming: &Naming<'_>) -> String {
    let access = naming.has_access();
    let owned: Vec<Owned> =
        naming.owned().into_iter().filter(|one| !(access && one.kind == "Service")).collect();
    let mut imports = Imports::default();
    let mut uses = naming.import("crate", naming.needs().contains(&Need::Replicas));
    uses += &owned.iter().map(|one| one.imports(&mut imports, "crate")).collect::<String>();
    if !naming.owned().is_empty() {
        imports.add("apimachinery::pkg::apis::meta::v1", &["ObjectMeta"]);
        uses += "use kube::ResourceExt;\nuse std::collections::BTreeMap;\n";
    }
    let generates = owned.iter().any(|one| one.kind == "Secret");
    let mut ours = vec!["Controller", "Plan", "Refusal", "Observed", "metrics"];
    ours.extend((!owned.is_empty()).then_some("Reasoned"));
    ours.extend(generates.then_some("Generate"));
    if owned.iter().any(Owned::recreated) {
        ours.extend(["Apply", "Propagation"]);
    }
    if owned.iter().any(|one| one.as_json) {
        ours.push("Kind");
        uses += "use serde_json::{Value, json};\n";
    }
    ours.sort_unstable();
    uses += &format!("use std::sync::Arc;\nuse windlass::{{{}}};\n", ours.join(", "));
    let kind = &naming.kind.kind;
    let about = match owned.as_slice() {
        [] => format!("A `{kind}` declares what nothing follows from yet: say in `decide` what does."),
        owned => format!("What a `{kind}` comes to: {}.", listed(owned)),
    };
    let mut text = format!("{}//! {about}\n\n{}{uses}\n", header(naming.project.license), imports.text());
    text += &why(&owned);
    text += &controller(naming, None, &owned, "");
    text += &naming.fill(&decide(naming, &owned));
    text += &naming.fill(&measure(naming));
    text += &naming.fill(&makers(naming, &owned));
    text
}

/// The controller that lets clients find what runs.
pub(super) fn access(naming: &Naming<'_>) -> String {
    let service: Vec<Owned> = naming.owned().into_iter().filter(|one| one.kind == "Service").collect();
    let mut imports = Imports::default();
    service.iter().for_each(|one| drop(one.imports(&mut imports, "crate")));
    imports.add("api::discovery::v1", &["EndpointSlice"]);
    let kind = &naming.kind.kind;
    let elsewhere = match naming.kind.namespaced {
        true => "",
        false => ".in_namespace(&VAR.spec.namespace)",
    };
    let more = "        .watches::<EndpointSlice>(endpoints)\n        .concerned_with(\"Reachable\")\n";
    let mut text = format!(
        "{}//! Whether clients reach a `{kind}`: a concern of its own, beside running it. It has a condition of its own, `Reachable`.\n\n{}",
        header(naming.project.license),
        imports.text(),
    );
    text +=
        &format!("use super::{}::{{labels, metadata}};\n{}", naming.module, naming.import("crate", false));
    text += "use kube::ResourceExt;\nuse windlass::{Controller, Observed, Plan, Reasoned, Refusal, Relation, Until};\n\n";
    text += "/// Why this controller does what it does: in events, conditions and logs.
#[derive(Debug)]
enum Why {
    GivesItAName,
    NobodyAnswersYet,
}

impl Reasoned for Why {
    fn message(&self) -> String {
        match self {
            Self::GivesItAName => \"clients find its pods by the Service's name\".to_owned(),
            Self::NobodyAnswersYet => \"none of its pods is ready to answer\".to_owned(),
        }
    }
}

";
    text += &controller(naming, Some("access"), &service, more);
    text += &naming.fill(&format!(
        "/// What lets clients find it, given what is there.
///
/// # Errors
/// When it asks for what its controller does not watch.
pub fn decide(VAR: &TYPE, observed: &Observed) -> Result<Plan, Refusal> {{
    let plan = Plan::new().apply(service(VAR), Why::GivesItAName);
    Ok(match answering(observed)? {{
        0 => plan.wait(Why::NobodyAnswersYet, Until::Change),
        _ => plan,
    }})
}}

/// How many of its pods a client would reach.
fn answering(observed: &Observed) -> Result<usize, Refusal> {{
    let slices = observed.list::<EndpointSlice>()?;
    let endpoints = slices.iter().flat_map(|slice| slice.endpoints.iter().flatten());
    let ready = endpoints.filter(|one| one.conditions.as_ref().and_then(|now| now.ready).unwrap_or(true));
    Ok(ready.count())
}}

/// Where the cluster writes down who answers for its Service.
fn endpoints(VAR: &TYPE) -> Relation {{
    Relation::labelled([(\"kubernetes.io/service-name\", VAR.name_any())]){elsewhere}
}}

{}",
        service.iter().map(|one| one.make.as_str()).collect::<String>(),
    ));
    text
}

/// A further controller, with a concern of its own.
pub(super) fn concern(naming: &Naming<'_>, name: &str) -> String {
    let (kind, condition) = (&naming.kind.kind, valid_names::camel(name));
    let mut text = format!(
        "{}//! A further concern of a `{kind}`: {name}. How it stands is told by the condition `{condition}`.\n\n{}use windlass::{{Controller, Observed, Plan, Refusal}};\n\n",
        header(naming.project.license),
        naming.import("crate", false),
    );
    text += &controller(naming, Some(name), &[], &format!("        .concerned_with(\"{condition}\")\n"));
    text += &naming.fill(
        "/// What this concern needs, given what is there. Pure: no client, no I/O; time is `observed.now()`.
///
/// Return what is to be done, as `Plan::new().apply(object, Why::...)`, and add to the controller by `.owns::<...>()` what
/// it makes, by `.watches::<...>(...)` what it looks at.
///
/// # Errors
/// When it asks for what its controller does not watch.
pub fn decide(_VAR: &TYPE, _observed: &Observed) -> Result<Plan, Refusal> {
    Ok(Plan::new())
}
",
    );
    text
}

/// `Deployment and Service`.
fn listed(owned: &[Owned]) -> String {
    let names: Vec<&str> = owned.iter().map(|one| one.kind.as_str()).collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, before)) => format!("{} and {last}", before.join(", ")),
        None => String::new(),
    }
}

fn why(owned: &[Owned]) -> String {
    if owned.is_empty() {
        return String::new();
    }
    let variants: String = owned.iter().map(|one| format!("    {},\n", one.why.0)).collect();
    let first = |one: &Owned| valid_names::words(&one.why.0).split(' ').next().map(str::to_owned);
    let alike = owned.len() > 2 && owned.iter().all(|one| first(one) == first(&owned[0]));
    let allowed = match alike {
        true => "#[allow(clippy::enum_variant_names, reason = \"they are reasons, and read as such\")]\n",
        false => "",
    };
    let arms: String =
        owned.iter().map(|one| format!("            Self::{} => \"{}\",\n", one.why.0, one.why.1)).collect();
    format!(
        "/// Why this controller does what it does: in events, conditions and logs.
#[derive(Debug)]
{allowed}enum Why {{
{variants}}}

impl Reasoned for Why {{
    fn message(&self) -> String {{
        let message = match self {{
{arms}        }};
        message.to_owned()
    }}
}}

"
    )
}

fn controller(naming: &Naming<'_>, concern: Option<&str>, owned: &[Owned], more: &str) -> String {
    let name = match concern {
        Some(concern) => format!("{}-{concern}", naming.controller),
        None => naming.controller.clone(),
    };
    let relation = |one: &Owned| match naming.kind.namespaced && !one.namespaced {
        true => "owns_anywhere",
        false => "owns",
    };
    let deletes = |one: &Owned| match one.recreated() {
        true => format!("        .deletes::<{}>()\n", one.ty),
        false => String::new(),
    };
    let owns: String = owned
        .iter()
        .map(|one| format!("        .{}::<{}>()\n{}", relation(one), one.ty, deletes(one)))
        .collect();
    format!(
        "/// How it works: which kinds it makes and looks at, and how many objects it turns to at once.
pub fn controller() -> Controller<{}> {{
    Controller::deciding(decide)
        .named(\"{name}\")
{owns}{more}        .concurrency(2)
}}

",
        naming.ty
    )
}

fn decide(naming: &Naming<'_>, owned: &[Owned]) -> String {
    let head = "/// What it needs, given what is there. Pure: no client, no I/O; time is `observed.now()`.
///
/// # Errors
/// When it asks for what its controller does not watch.
";
    if owned.is_empty() {
        return format!(
            "{head}pub fn decide(_VAR: &TYPE, _observed: &Observed) -> Result<Plan, Refusal> {{\n    Ok(Plan::new())\n}}\n\n"
        );
    }
    let steps: String = owned.iter().map(|one| format!("        {}\n", one.step)).collect();
    let replicated = owned.iter().find(|one| one.needs.contains(&Need::Replicas));
    let body = match replicated {
        None => format!("    Ok(Plan::new()\n{steps}        .until_healthy(observed))\n"),
        Some(one) => {
            let status = match naming.ty.contains("::") {
                true => format!("{}::{}Status", naming.module, naming.kind.kind),
                false => format!("{}Status", naming.kind.kind),
            };
            format!(
                "    let plan = Plan::new()\n{steps}        .until_healthy(observed);
    let running = observed.get::<{}>(&VAR.name_any())?;
    let ready = running.and_then(|running| running.status.as_ref()?.ready_replicas).unwrap_or(0);
    Ok(plan.status({status} {{ ready, ..Default::default() }}))
",
                one.kind
            )
        }
    };
    format!("{head}pub fn decide(VAR: &TYPE, observed: &Observed) -> Result<Plan, Refusal> {{\n{body}}}\n\n")
}

/// The gauge by which a kind's objects are counted.
pub(super) fn gauge(naming: &Naming<'_>) -> String {
    let group = naming.group_folder().map(|group| group + "_").unwrap_or_default();
    format!("{}_{group}{}", naming.krate(), naming.kind.plural.replace('-', "_"))
}

fn measure(naming: &Naming<'_>) -> String {
    let gauge = gauge(naming);
    let kind = &naming.kind.kind;
    let end = if naming.owned().is_empty() { "" } else { "\n" };
    format!(
        "/// What dashboards show of all of them: how many are ready, and how many are not.
pub fn measure(all: &[Arc<TYPE>], page: &mut metrics::Page) {{
    let is_ready = |one: &&Arc<TYPE>| {{
        let mut conditions = one.status.iter().flat_map(|status| &status.conditions);
        conditions.any(|condition| condition.type_ == \"Ready\" && condition.status == \"True\")
    }};
    let ready = all.iter().filter(is_ready).count();
    page.family(\"{gauge}\", metrics::Type::Gauge, \"Objects of kind {kind}, by whether they are ready.\")
        .sample(&[(\"ready\", \"true\")], ready as f64)
        .sample(&[(\"ready\", \"false\")], (all.len() - ready) as f64);
}}
{end}"
    )
}

fn makers(naming: &Naming<'_>, owned: &[Owned]) -> String {
    if naming.owned().is_empty() {
        return String::new();
    }
    let namespace = match naming.kind.namespaced {
        true => "",
        false => "        namespace: Some(VAR.spec.namespace.clone()),\n",
    };
    let label = naming.kind.kind.to_lowercase();
    let mut text = format!(
        "/// What everything that belongs to it carries, and is found by.
pub(super) fn labels(VAR: &TYPE) -> BTreeMap<String, String> {{
    BTreeMap::from([
        (\"app.kubernetes.io/name\".to_owned(), \"{label}\".to_owned()),
        (\"app.kubernetes.io/instance\".to_owned(), VAR.name_any()),
    ])
}}

pub(super) fn metadata(VAR: &TYPE) -> ObjectMeta {{
    ObjectMeta {{
        name: Some(VAR.name_any()),
{namespace}        labels: Some(labels(VAR)),
        ..Default::default()
    }}
}}
"
    );
    let has = |pods: Pods| owned.iter().any(|one| one.pods == pods);
    let shared = [(has(Pods::Serve), typed_kinds::SERVE), (has(Pods::Finish), typed_kinds::FINISH)];
    let container = has(Pods::Serve) || has(Pods::Finish) || has(Pods::Alone);
    let global = match naming.kind.namespaced {
        true => typed_kinds::GLOBAL,
        false => typed_kinds::GLOBAL_OF_GLOBAL,
    };
    let outside = owned.iter().any(|one| !one.namespaced);
    let shared = shared.into_iter().chain([(container, typed_kinds::CONTAINER), (outside, global)]);
    let shared = shared.filter(|(wanted, _)| *wanted).map(|(_, text)| text);
    for one in owned.iter().map(|one| one.make.as_str()).chain(shared) {
        text += &format!("\n{one}");
    }
    text
}
