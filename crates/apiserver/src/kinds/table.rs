//! The rows.

use super::checks;
use crate::crd;
use serde_json::Value;
use windlass_schema::FieldError;
use windlass_schema::meta::NameRule;

/// How dependents are treated when an object is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dependents {
    /// By finalizers, as the deletion asks.
    Collected,
    /// Not at all.
    Ignored,
}

/// What is special about a kind.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) group: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) name: NameRule,
    pub(crate) dependents: Dependents,
    /// May an update leave the version out?
    pub(crate) unconditional_update: bool,
    /// May an update create what is not there?
    pub(crate) create_on_update: bool,
    /// Does a change of the spec raise the generation?
    pub(crate) generation: bool,
    /// Does the reference keep no cache of it?
    pub(crate) uncached: bool,
    /// Fields that a field selector may name.
    pub(crate) selectable: &'static [(&'static str, &'static [&'static str])],
    /// Fields that only some subresource may change: the subresource that may (empty for the object itself) and the field.
    pub(crate) owned: &'static [(&'static str, &'static str)],
    /// May a new object bring its status?
    pub(crate) brings_status: bool,
    /// Fills in what was left out.
    pub(crate) default: fn(&mut Value),
    /// What creation sets whatever the client sent.
    pub(crate) prepare_create: fn(&mut Value),
    /// What an update sets whatever the client sent; given the object as it was.
    pub(crate) prepare_update: fn(&mut Value, &Value),
    pub(crate) validate: fn(&Value) -> Vec<FieldError>,
    /// Given the object as it was, and the subresource.
    pub(crate) validate_update: fn(&Value, &Value, &str) -> Vec<FieldError>,
    /// Does an update, other than of a subresource, check the whole object again, or only what changed?
    pub(crate) revalidates: bool,
    /// For kinds that go in phases: what the first deletion does beside setting the time.
    pub(crate) first_deletion: Option<fn(&mut Value, &str)>,
    /// Does an update check the metadata's changes a second time?
    pub(crate) repeats_metadata: bool,
}

const PLAIN: Rules = Rules {
    group: "",
    plural: "",
    name: NameRule::Subdomain,
    dependents: Dependents::Collected,
    unconditional_update: true,
    create_on_update: false,
    generation: false,
    uncached: false,
    selectable: &[],
    owned: &[],
    brings_status: false,
    default: |_| {},
    prepare_create: |_| {},
    prepare_update: |_, _| {},
    validate: |_| Vec::new(),
    validate_update: |_, _, _| Vec::new(),
    revalidates: true,
    first_deletion: None,
    repeats_metadata: true,
};

static TABLE: [Rules; 6] = [
    Rules {
        plural: "namespaces",
        name: NameRule::Label,
        selectable: &[("status.phase", &["status", "phase"])],
        owned: &[("finalize", "spec"), ("status", "status")],
        default: checks::default_namespace,
        prepare_create: checks::prepare_namespace,
        first_deletion: Some(checks::terminate_namespace),
        validate: checks::namespace,
        validate_update: checks::namespace_update,
        ..PLAIN
    },
    Rules {
        plural: "configmaps",
        validate: checks::config_map,
        validate_update: |new, old, _| checks::immutable(new, old, &["data", "binaryData"]),
        ..PLAIN
    },
    Rules {
        plural: "secrets",
        selectable: &[("type", &["type"])],
        default: checks::default_secret,
        prepare_update: checks::prepare_secret_update,
        validate: checks::secret,
        validate_update: checks::secret_update,
        ..PLAIN
    },
    Rules {
        plural: "events",
        name: NameRule::PathSegment,
        create_on_update: true,
        uncached: true,
        repeats_metadata: false,
        dependents: Dependents::Ignored,
        selectable: &[
            ("involvedObject.kind", &["involvedObject", "kind"]),
            ("involvedObject.namespace", &["involvedObject", "namespace"]),
            ("involvedObject.name", &["involvedObject", "name"]),
            ("involvedObject.uid", &["involvedObject", "uid"]),
            ("involvedObject.apiVersion", &["involvedObject", "apiVersion"]),
            ("involvedObject.resourceVersion", &["involvedObject", "resourceVersion"]),
            ("involvedObject.fieldPath", &["involvedObject", "fieldPath"]),
            ("reason", &["reason"]),
            ("reportingComponent", &["reportingComponent"]),
            ("source", &["source", "component"]),
            ("type", &["type"]),
        ],
        validate: checks::event,
        validate_update: |new, _, _| checks::event(new),
        revalidates: false,
        ..PLAIN
    },
    Rules {
        group: "coordination.k8s.io",
        plural: "leases",
        create_on_update: true,
        unconditional_update: false,
        prepare_create: checks::prepare_lease,
        prepare_update: |new, _| checks::prepare_lease(new),
        validate: checks::lease,
        validate_update: |new, _, _| checks::lease(new),
        revalidates: false,
        ..PLAIN
    },
    Rules {
        group: "apiextensions.k8s.io",
        plural: "customresourcedefinitions",
        unconditional_update: false,
        generation: true,
        owned: &[("", "spec"), ("status", "status")],
        default: crd::prepare::default,
        prepare_create: crd::prepare::create,
        first_deletion: Some(crd::prepare::terminate),
        prepare_update: crd::prepare::update,
        validate: crd::validate::create,
        validate_update: crd::validate::update,
        revalidates: false,
        ..PLAIN
    },
];

/// The row of a built-in kind: of most, the plain one.
pub(crate) fn rules(group: &str, plural: &str) -> &'static Rules {
    static REST: Rules = PLAIN;
    TABLE.iter().find(|rules| rules.group == group && rules.plural == plural).unwrap_or(&REST)
}

/// The package of a group's Go types, which conversion errors name.
pub(crate) fn package(group: &str) -> &str {
    match group.split('.').next() {
        None | Some("") => "core",
        Some(name) => name,
    }
}
