//! The rows.

use super::{checks, pods, prepare, services};
use crate::crd;
use crate::flow::Operation;
use crate::status::Status;
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
    /// What admission adds to a new object, or why it refuses it.
    pub(crate) admit: fn(&Operation<'_>, &mut Value) -> Result<(), Status>,
    /// What is given out once the object is known to be valid; given the object as it was, if it was.
    pub(crate) allocate: fn(&Operation<'_>, &mut Value, Option<&Value>) -> Result<(), Status>,
    /// What creation sets whatever the client sent.
    pub(crate) prepare_create: fn(&Operation<'_>, &mut Value),
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
    /// Does a deletion answer with what was deleted?
    pub(crate) shows_deleted: bool,
    /// For what needs time to stop: how many seconds, given what was asked for.
    pub(crate) grace: Option<fn(&Value, Option<i64>) -> i64>,
    /// What clients are told with every answer, if the kind is deprecated.
    pub(crate) deprecated: &'static str,
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
    admit: |_, _| Ok(()),
    allocate: |_, _, _| Ok(()),
    prepare_create: |_, _| {},
    prepare_update: |_, _| {},
    validate: |_| Vec::new(),
    validate_update: |_, _, _| Vec::new(),
    revalidates: true,
    first_deletion: None,
    repeats_metadata: true,
    shows_deleted: false,
    grace: None,
    deprecated: "",
};

/// Of Events of either group, as they are stored.
const EVENT_FIELDS: &[(&str, &[&str])] = &[
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
];

static TABLE: &[Rules] = &[
    Rules {
        plural: "namespaces",
        name: NameRule::Label,
        selectable: &[("status.phase", &["status", "phase"])],
        owned: &[("finalize", "spec"), ("status", "status")],
        default: checks::default_namespace,
        prepare_create: |_, namespace| checks::prepare_namespace(namespace),
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
        selectable: EVENT_FIELDS,
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
        prepare_create: |_, lease| checks::prepare_lease(lease),
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
        prepare_create: |_, crd| crd::prepare::create(crd),
        first_deletion: Some(crd::prepare::terminate),
        prepare_update: crd::prepare::update,
        validate: crd::validate::create,
        validate_update: crd::validate::update,
        revalidates: false,
        ..PLAIN
    },
    Rules {
        plural: "pods",
        shows_deleted: true,
        generation: true,
        selectable: &[
            ("spec.nodeName", &["spec", "nodeName"]),
            ("spec.restartPolicy", &["spec", "restartPolicy"]),
            ("spec.schedulerName", &["spec", "schedulerName"]),
            ("spec.serviceAccountName", &["spec", "serviceAccountName"]),
            ("spec.hostNetwork", &["spec", "hostNetwork"]),
            ("status.phase", &["status", "phase"]),
            ("status.podIP", &["status", "podIP"]),
            ("status.nominatedNodeName", &["status", "nominatedNodeName"]),
        ],
        admit: pods::admit,
        grace: Some(pods::grace),
        prepare_create: pods::prepare,
        prepare_update: pods::prepare_update,
        ..PLAIN
    },
    Rules { plural: "podtemplates", shows_deleted: true, generation: true, ..PLAIN },
    Rules {
        plural: "services",
        shows_deleted: true,
        create_on_update: true,
        name: NameRule::Label,
        selectable: &[("spec.clusterIP", &["spec", "clusterIP"]), ("spec.type", &["spec", "type"])],
        allocate: services::allocate,
        prepare_update: services::keep_allocated,
        ..PLAIN
    },
    Rules {
        plural: "endpoints",
        create_on_update: true,
        deprecated: "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
        ..PLAIN
    },
    Rules { plural: "componentstatuses", deprecated: "v1 ComponentStatus is deprecated in v1.19+", ..PLAIN },
    Rules { plural: "limitranges", create_on_update: true, ..PLAIN },
    Rules {
        plural: "nodes",
        selectable: &[("spec.unschedulable", &["spec", "unschedulable"])],
        brings_status: true,
        prepare_create: prepare::node,
        ..PLAIN
    },
    Rules { plural: "persistentvolumeclaims", shows_deleted: true, prepare_create: prepare::claim, ..PLAIN },
    Rules { plural: "persistentvolumes", shows_deleted: true, prepare_create: prepare::volume, ..PLAIN },
    Rules {
        plural: "replicationcontrollers",
        generation: true,
        selectable: &[("status.replicas", &["status", "replicas"])],
        ..PLAIN
    },
    Rules { group: "apps", plural: "deployments", generation: true, ..PLAIN },
    Rules { group: "apps", plural: "statefulsets", generation: true, ..PLAIN },
    Rules {
        group: "apps",
        plural: "replicasets",
        generation: true,
        selectable: &[("status.replicas", &["status", "replicas"])],
        ..PLAIN
    },
    Rules {
        group: "apps",
        plural: "daemonsets",
        generation: true,
        prepare_create: prepare::daemon_set,
        prepare_update: prepare::daemon_set_update,
        ..PLAIN
    },
    Rules {
        group: "batch",
        plural: "jobs",
        generation: true,
        selectable: &[("status.successful", &["status", "successful"])],
        prepare_create: prepare::job,
        ..PLAIN
    },
    Rules { group: "batch", plural: "cronjobs", generation: true, ..PLAIN },
    Rules {
        group: "policy",
        plural: "poddisruptionbudgets",
        generation: true,
        unconditional_update: false,
        ..PLAIN
    },
    Rules { group: "networking.k8s.io", plural: "ingresses", generation: true, ..PLAIN },
    Rules { group: "networking.k8s.io", plural: "ingressclasses", generation: true, ..PLAIN },
    Rules { group: "networking.k8s.io", plural: "networkpolicies", generation: true, ..PLAIN },
    Rules { group: "discovery.k8s.io", plural: "endpointslices", generation: true, ..PLAIN },
    Rules {
        group: "rbac.authorization.k8s.io",
        plural: "roles",
        name: NameRule::PathSegment,
        create_on_update: true,
        ..PLAIN
    },
    Rules {
        group: "rbac.authorization.k8s.io",
        plural: "rolebindings",
        name: NameRule::PathSegment,
        create_on_update: true,
        ..PLAIN
    },
    Rules {
        group: "rbac.authorization.k8s.io",
        plural: "clusterroles",
        name: NameRule::PathSegment,
        create_on_update: true,
        ..PLAIN
    },
    Rules {
        group: "rbac.authorization.k8s.io",
        plural: "clusterrolebindings",
        name: NameRule::PathSegment,
        create_on_update: true,
        ..PLAIN
    },
    Rules {
        group: "node.k8s.io",
        plural: "runtimeclasses",
        create_on_update: true,
        unconditional_update: false,
        ..PLAIN
    },
    Rules {
        group: "storage.k8s.io",
        plural: "csidrivers",
        shows_deleted: true,
        unconditional_update: false,
        ..PLAIN
    },
    Rules {
        group: "storage.k8s.io",
        plural: "csinodes",
        shows_deleted: true,
        unconditional_update: false,
        ..PLAIN
    },
    Rules { group: "storage.k8s.io", plural: "csistoragecapacities", unconditional_update: false, ..PLAIN },
    Rules {
        group: "storage.k8s.io",
        plural: "volumeattachments",
        shows_deleted: true,
        unconditional_update: false,
        ..PLAIN
    },
    Rules {
        group: "storage.k8s.io",
        plural: "volumeattributesclasses",
        shows_deleted: true,
        prepare_create: prepare::attributes_class,
        ..PLAIN
    },
    Rules { group: "scheduling.k8s.io", plural: "priorityclasses", generation: true, ..PLAIN },
    Rules {
        group: "certificates.k8s.io",
        plural: "certificatesigningrequests",
        selectable: &[("spec.signerName", &["spec", "signerName"])],
        prepare_create: prepare::signing_request,
        ..PLAIN
    },
    Rules {
        group: "admissionregistration.k8s.io",
        plural: "mutatingadmissionpolicies",
        generation: true,
        unconditional_update: false,
        ..PLAIN
    },
    Rules {
        group: "admissionregistration.k8s.io",
        plural: "mutatingadmissionpolicybindings",
        generation: true,
        unconditional_update: false,
        ..PLAIN
    },
    Rules {
        group: "admissionregistration.k8s.io",
        plural: "mutatingwebhookconfigurations",
        generation: true,
        unconditional_update: false,
        ..PLAIN
    },
    Rules {
        group: "admissionregistration.k8s.io",
        plural: "validatingadmissionpolicies",
        generation: true,
        unconditional_update: false,
        ..PLAIN
    },
    Rules {
        group: "admissionregistration.k8s.io",
        plural: "validatingadmissionpolicybindings",
        generation: true,
        unconditional_update: false,
        ..PLAIN
    },
    Rules {
        group: "admissionregistration.k8s.io",
        plural: "validatingwebhookconfigurations",
        generation: true,
        unconditional_update: false,
        ..PLAIN
    },
    Rules { group: "flowcontrol.apiserver.k8s.io", plural: "flowschemas", generation: true, ..PLAIN },
    Rules {
        group: "flowcontrol.apiserver.k8s.io",
        plural: "prioritylevelconfigurations",
        generation: true,
        ..PLAIN
    },
    Rules {
        group: "resource.k8s.io",
        plural: "deviceclasses",
        shows_deleted: true,
        generation: true,
        ..PLAIN
    },
    Rules {
        group: "resource.k8s.io",
        plural: "resourceslices",
        shows_deleted: true,
        generation: true,
        ..PLAIN
    },
    Rules { plural: "resourcequotas", shows_deleted: true, ..PLAIN },
    Rules { plural: "serviceaccounts", shows_deleted: true, ..PLAIN },
    Rules { group: "storage.k8s.io", plural: "storageclasses", shows_deleted: true, ..PLAIN },
    Rules { group: "resource.k8s.io", plural: "resourceclaims", shows_deleted: true, ..PLAIN },
    Rules { group: "resource.k8s.io", plural: "resourceclaimtemplates", shows_deleted: true, ..PLAIN },
    Rules {
        group: "events.k8s.io",
        plural: "events",
        name: NameRule::PathSegment,
        create_on_update: true,
        repeats_metadata: false,
        dependents: Dependents::Ignored,
        selectable: EVENT_FIELDS,
        uncached: true,
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
