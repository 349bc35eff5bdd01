//! The rules of the built-in kinds, a row each; what has none is plain.

use super::rules::{Dependents, Fixed, Kept, Raised, Rechecks, Rules};
use super::{
    certificates, checks, conditions, events, go_format, pod_update, pods, prepare, services, tls_secrets,
    validate, warnings, workloads,
};
use crate::crd;
use windlass_schema::meta::NameRule;

const IMMUTABLE: &str = "field is immutable";
const SELECTOR: Fixed = Fixed::Shown(IMMUTABLE, go_format::selector);
const ROLE: Fixed = Fixed::Shown("cannot change roleRef", go_format::role);
const FIXED: Fixed = Fixed::Invalid(IMMUTABLE);
const FIXED_TEXT: Fixed = Fixed::InvalidText(IMMUTABLE);

const NOTHING: Rechecks = Rechecks { whole: 0, changes: 0 };
const CHANGES: Rechecks = Rechecks { whole: 0, changes: 1 };
const WHOLE: Rechecks = Rechecks { whole: 1, changes: 0 };
const WHOLE_TWICE: Rechecks = Rechecks { whole: 2, changes: 0 };
const BOTH: Rechecks = Rechecks { whole: 1, changes: 1 };

/// Most kinds.
pub(super) const PLAIN: Rules = Rules {
    group: "",
    plural: "",
    name: NameRule::Subdomain,
    dependents: Dependents::Collected,
    unconditional_update: true,
    create_on_update: false,
    generation: false,
    raised: Raised::ByContent,
    raised_by_dropped: false,
    status_keeps: Kept::Fields(&[]),
    resets: &[],
    unsettled: |_| None,
    warn: |_, _| Vec::new(),
    uncached: false,
    owned: &[],
    brings_status: false,
    default: |_| {},
    allocate: |_, _, _| Ok(()),
    prepare_create: |_, _| {},
    prepare_update: |_, _| {},
    prepare_status: |_, _, _| {},
    validate: |_| Vec::new(),
    validate_update: |_, _, _| Vec::new(),
    fixed: &[],
    revalidates: true,
    unchecked: &[],
    validates_twice: false,
    first_deletion: None,
    rechecks: BOTH,
    status_rechecks: CHANGES,
    qualified_finalizers: true,
    deletion_warning: "",
    shows_deleted: false,
    grace: None,
    deprecated: "",
};

/// What both kinds of flow control have.
const FLOW_CONTROL: Rules = Rules {
    group: "flowcontrol.apiserver.k8s.io",
    validate_update: |new, _, sub| match sub {
        "status" => conditions::of_unique_types(new),
        _ => Vec::new(),
    },
    status_rechecks: NOTHING,
    rechecks: WHOLE,
    status_keeps: Kept::Everything,
    generation: true,
    ..PLAIN
};

pub(super) static RULES: &[Rules] = &[
    Rules {
        plural: "namespaces",
        name: NameRule::Label,
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
        warn: tls_secrets::warnings,
        default: checks::default_secret,
        prepare_update: checks::prepare_secret_update,
        validate: checks::secret,
        validate_update: checks::secret_update,
        ..PLAIN
    },
    Rules {
        plural: "events",
        rechecks: NOTHING,
        qualified_finalizers: false,
        name: NameRule::PathSegment,
        create_on_update: true,
        uncached: true,
        dependents: Dependents::Ignored,
        validate: events::core,
        validate_update: |new, _, _| events::core(new),
        revalidates: false,
        ..PLAIN
    },
    Rules {
        group: "coordination.k8s.io",
        plural: "leases",
        qualified_finalizers: false,
        rechecks: CHANGES,
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
        qualified_finalizers: false,
        rechecks: CHANGES,
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
        status_keeps: Kept::Fields(&["ownerReferences", "deletionTimestamp"]),
        warn: warnings::pod,
        validate: workloads::pod,
        validate_update: pod_update::update,
        revalidates: false,
        shows_deleted: true,
        generation: true,
        default: pods::addresses,
        grace: Some(pods::grace),
        prepare_create: pods::prepare,
        prepare_update: pods::prepare_update,
        ..PLAIN
    },
    Rules {
        plural: "podtemplates",
        warn: warnings::pod_template,
        rechecks: CHANGES,
        shows_deleted: true,
        generation: true,
        ..PLAIN
    },
    Rules {
        plural: "services",
        rechecks: CHANGES,
        warn: |new, _| warnings::service(new),
        validate_update: workloads::service_update,
        revalidates: false,
        shows_deleted: true,
        create_on_update: true,
        name: NameRule::Label,
        allocate: services::allocate,
        prepare_update: services::prepare_update,
        ..PLAIN
    },
    Rules {
        plural: "endpoints",
        create_on_update: true,
        deprecated: "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
        ..PLAIN
    },
    Rules { plural: "componentstatuses", deprecated: "v1 ComponentStatus is deprecated in v1.19+", ..PLAIN },
    Rules { plural: "limitranges", rechecks: WHOLE, create_on_update: true, ..PLAIN },
    Rules {
        plural: "nodes",
        validate_update: |new, old, _| validate::node_update(new, old),
        brings_status: true,
        default: prepare::node_addresses,
        prepare_create: prepare::node,
        ..PLAIN
    },
    Rules {
        plural: "persistentvolumeclaims",
        unsettled: prepare::unsettled_claim,
        shows_deleted: true,
        prepare_create: prepare::claim,
        prepare_update: |new, _| prepare::claim_source(new),
        validate_update: |new, old, sub| {
            if sub.is_empty() { validate::claim_update(new, old) } else { Vec::new() }
        },
        warn: |new, _| warnings::claim(new),
        ..PLAIN
    },
    Rules {
        plural: "persistentvolumes",
        rechecks: WHOLE_TWICE,
        validates_twice: true,
        prepare_status: prepare::volume_status,
        shows_deleted: true,
        prepare_create: prepare::volume,
        validate_update: |new, old, sub| {
            if sub.is_empty() { validate::volume_update(new, old) } else { Vec::new() }
        },
        warn: |new, _| warnings::volume(new),
        ..PLAIN
    },
    Rules {
        plural: "replicationcontrollers",
        rechecks: CHANGES,
        dependents: Dependents::Orphaned,
        validate: workloads::replication_controller,
        validate_update: workloads::replication_controller_update,
        warn: warnings::controller,
        generation: true,
        ..PLAIN
    },
    Rules {
        group: "apps",
        plural: "deployments",
        rechecks: CHANGES,
        raised: Raised::ByContentOr("annotations"),
        status_keeps: Kept::Fields(&["labels"]),
        warn: warnings::template,
        validate: workloads::deployment,
        validate_update: workloads::deployment_update,
        revalidates: false,
        fixed: &[("spec.selector", SELECTOR)],
        generation: true,
        ..PLAIN
    },
    Rules {
        group: "apps",
        plural: "statefulsets",
        rechecks: CHANGES,
        warn: warnings::template,
        validate: workloads::stateful_set,
        unchecked: &["spec.volumeClaimTemplates", "spec.serviceName"],
        validate_update: workloads::stateful_set_update,
        revalidates: false,
        generation: true,
        ..PLAIN
    },
    Rules {
        group: "apps",
        plural: "replicasets",
        rechecks: CHANGES,
        warn: warnings::template,
        validate: workloads::replica_set,
        validate_update: workloads::replica_set_update,
        revalidates: false,
        fixed: &[("spec.selector", SELECTOR)],
        generation: true,
        ..PLAIN
    },
    Rules {
        group: "apps",
        plural: "daemonsets",
        rechecks: CHANGES,
        warn: warnings::template,
        validate: workloads::daemon_set,
        validate_update: workloads::daemon_set_update,
        revalidates: false,
        fixed: &[("spec.selector", SELECTOR)],
        generation: true,
        prepare_create: prepare::daemon_set,
        prepare_update: prepare::daemon_set_update,
        ..PLAIN
    },
    Rules {
        group: "batch",
        plural: "jobs",
        deletion_warning: "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background \
                           to remove them or set propagationPolicy=Orphan to suppress this warning",
        dependents: Dependents::Orphaned,
        unsettled: prepare::unsettled_job,
        warn: warnings::template,
        validate: workloads::job,
        validate_update: workloads::job_update,
        revalidates: false,
        validates_twice: true,
        fixed: &[
            ("spec.selector", SELECTOR),
            ("spec.template", Fixed::Mostly(workloads::job_template)),
            ("spec.completionMode", FIXED),
            ("spec.podFailurePolicy", FIXED),
            ("spec.backoffLimitPerIndex", FIXED),
            ("spec.managedBy", FIXED),
            ("spec.successPolicy", FIXED),
        ],
        generation: true,
        prepare_create: prepare::job,
        ..PLAIN
    },
    Rules {
        group: "batch",
        plural: "cronjobs",
        status_rechecks: NOTHING,
        rechecks: CHANGES,
        warn: warnings::cron_job,
        validate: workloads::cron_job,
        validate_update: |new, _, sub| if sub == "status" { Vec::new() } else { workloads::cron_job(new) },
        revalidates: false,
        generation: true,
        ..PLAIN
    },
    Rules {
        group: "policy",
        plural: "poddisruptionbudgets",
        validate_update: |new, _, sub| if sub == "status" { conditions::common(new) } else { Vec::new() },
        qualified_finalizers: false,
        status_rechecks: NOTHING,
        rechecks: NOTHING,
        generation: true,
        unconditional_update: false,
        ..PLAIN
    },
    Rules { group: "networking.k8s.io", plural: "ingresses", generation: true, ..PLAIN },
    Rules {
        group: "networking.k8s.io",
        plural: "ingressclasses",
        fixed: &[("spec.controller", FIXED_TEXT)],
        generation: true,
        ..PLAIN
    },
    Rules {
        group: "networking.k8s.io",
        plural: "networkpolicies",
        rechecks: CHANGES,
        generation: true,
        ..PLAIN
    },
    Rules {
        group: "discovery.k8s.io",
        plural: "endpointslices",
        rechecks: WHOLE,
        raised: Raised::ByContentOr("labels"),
        raised_by_dropped: true,
        warn: warnings::endpoint_slice,
        fixed: &[("addressType", FIXED_TEXT)],
        generation: true,
        ..PLAIN
    },
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
        fixed: &[("roleRef", ROLE)],
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
        fixed: &[("roleRef", ROLE)],
        name: NameRule::PathSegment,
        create_on_update: true,
        ..PLAIN
    },
    Rules {
        group: "node.k8s.io",
        plural: "runtimeclasses",
        qualified_finalizers: false,
        fixed: &[("handler", FIXED_TEXT)],
        create_on_update: true,
        unconditional_update: false,
        ..PLAIN
    },
    Rules {
        group: "storage.k8s.io",
        plural: "csidrivers",
        rechecks: CHANGES,
        validate_update: |new, old, _| validate::driver_update(new, old),
        generation: true,
        raised: Raised::Later,
        shows_deleted: true,
        unconditional_update: false,
        ..PLAIN
    },
    Rules {
        group: "storage.k8s.io",
        plural: "csinodes",
        rechecks: WHOLE,
        validate_update: |new, old, _| validate::csi_node_update(new, old),
        shows_deleted: true,
        unconditional_update: false,
        ..PLAIN
    },
    Rules {
        group: "storage.k8s.io",
        plural: "csistoragecapacities",
        fixed: &[("nodeTopology", FIXED), ("storageClassName", FIXED_TEXT)],
        unconditional_update: false,
        ..PLAIN
    },
    Rules {
        group: "storage.k8s.io",
        plural: "volumeattachments",
        status_rechecks: NOTHING,
        rechecks: WHOLE,
        status_keeps: Kept::All,
        fixed: &[("spec", Fixed::Shown(IMMUTABLE, go_format::attachment))],
        shows_deleted: true,
        unconditional_update: false,
        ..PLAIN
    },
    Rules {
        group: "storage.k8s.io",
        plural: "volumeattributesclasses",
        fixed: &[
            ("driverName", Fixed::Forbidden("updates to driverName are forbidden.")),
            ("parameters", Fixed::Forbidden("updates to parameters are forbidden.")),
        ],
        shows_deleted: true,
        prepare_create: prepare::attributes_class,
        ..PLAIN
    },
    Rules {
        group: "scheduling.k8s.io",
        plural: "priorityclasses",
        rechecks: CHANGES,
        raised: Raised::Never,
        fixed: &[
            ("value", Fixed::Forbidden("may not be changed in an update.")),
            ("preemptionPolicy", FIXED),
        ],
        generation: true,
        ..PLAIN
    },
    Rules {
        group: "certificates.k8s.io",
        plural: "certificatesigningrequests",
        status_rechecks: BOTH,
        name: NameRule::PathSegment,
        resets: certificates::RESETS,
        prepare_create: certificates::prepare_create,
        prepare_update: prepare::keep_spec,
        prepare_status: certificates::prepare_status,
        validate: certificates::validate,
        validate_update: certificates::validate_update,
        ..PLAIN
    },
    Rules {
        group: "admissionregistration.k8s.io",
        plural: "mutatingadmissionpolicies",
        qualified_finalizers: false,
        rechecks: WHOLE,
        generation: true,
        unconditional_update: false,
        ..PLAIN
    },
    Rules {
        group: "admissionregistration.k8s.io",
        plural: "mutatingadmissionpolicybindings",
        qualified_finalizers: false,
        rechecks: WHOLE,
        generation: true,
        unconditional_update: false,
        ..PLAIN
    },
    Rules {
        group: "admissionregistration.k8s.io",
        plural: "mutatingwebhookconfigurations",
        qualified_finalizers: false,
        rechecks: WHOLE,
        generation: true,
        unconditional_update: false,
        ..PLAIN
    },
    Rules {
        group: "admissionregistration.k8s.io",
        plural: "validatingadmissionpolicies",
        validate_update: |new, _, sub| if sub == "status" { conditions::common(new) } else { Vec::new() },
        qualified_finalizers: false,
        status_rechecks: NOTHING,
        rechecks: WHOLE,
        status_keeps: Kept::All,
        generation: true,
        unconditional_update: false,
        ..PLAIN
    },
    Rules {
        group: "admissionregistration.k8s.io",
        plural: "validatingadmissionpolicybindings",
        qualified_finalizers: false,
        rechecks: WHOLE,
        generation: true,
        unconditional_update: false,
        ..PLAIN
    },
    Rules {
        group: "admissionregistration.k8s.io",
        plural: "validatingwebhookconfigurations",
        qualified_finalizers: false,
        rechecks: WHOLE,
        generation: true,
        unconditional_update: false,
        ..PLAIN
    },
    Rules { plural: "flowschemas", ..FLOW_CONTROL },
    Rules { plural: "prioritylevelconfigurations", ..FLOW_CONTROL },
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
        rechecks: CHANGES,
        raised_by_dropped: true,
        fixed: &[("spec.driver", FIXED_TEXT), ("spec.nodeName", FIXED), ("spec.pool.name", FIXED_TEXT)],
        shows_deleted: true,
        generation: true,
        ..PLAIN
    },
    Rules {
        plural: "resourcequotas",
        rechecks: CHANGES,
        shows_deleted: true,
        warn: warnings::quota,
        validate_update: validate::quota_update,
        ..PLAIN
    },
    Rules {
        plural: "serviceaccounts",
        shows_deleted: true,
        prepare_create: |_, account| prepare::service_account(account),
        prepare_update: |new, _| prepare::service_account(new),
        ..PLAIN
    },
    Rules {
        group: "networking.k8s.io",
        plural: "servicecidrs",
        rechecks: CHANGES,
        status_keeps: Kept::All,
        validate_update: |new, old, _| validate::networks_update(new, old),
        unchecked: &["spec.cidrs"],
        ..PLAIN
    },
    Rules {
        group: "networking.k8s.io",
        plural: "ipaddresses",
        name: NameRule::Address,
        fixed: &[("spec.parentRef", Fixed::Shown(IMMUTABLE, go_format::parent))],
        ..PLAIN
    },
    Rules {
        group: "storage.k8s.io",
        plural: "storageclasses",
        fixed: &[
            ("parameters", FIXED),
            ("provisioner", FIXED_TEXT),
            ("reclaimPolicy", FIXED),
            ("volumeBindingMode", FIXED),
        ],
        shows_deleted: true,
        ..PLAIN
    },
    Rules {
        group: "resource.k8s.io",
        plural: "resourceclaims",
        status_keeps: Kept::All,
        fixed: &[("spec", FIXED)],
        shows_deleted: true,
        ..PLAIN
    },
    Rules {
        group: "resource.k8s.io",
        plural: "resourceclaimtemplates",
        fixed: &[("spec", FIXED)],
        shows_deleted: true,
        ..PLAIN
    },
    Rules {
        group: "events.k8s.io",
        plural: "events",
        rechecks: CHANGES,
        name: NameRule::PathSegment,
        create_on_update: true,
        dependents: Dependents::Ignored,
        validate: events::create,
        validate_update: |new, old, _| events::update(new, old),
        uncached: true,
        revalidates: false,
        ..PLAIN
    },
    Rules { group: "autoscaling", plural: "horizontalpodautoscalers", rechecks: CHANGES, ..PLAIN },
    Rules {
        group: "apiregistration.k8s.io",
        plural: "apiservices",
        qualified_finalizers: false,
        status_keeps: Kept::Fields(&["labels", "annotations", "finalizers", "ownerReferences"]),
        resets: &[("status", &[&["spec"], &["metadata"]])],
        unconditional_update: false,
        validate_update: |new, _, sub| match sub {
            "status" => conditions::of_known_status(new, ["True", "False", "Unknown"]),
            _ => Vec::new(),
        },
        ..PLAIN
    },
    Rules {
        group: "apps",
        plural: "controllerrevisions",
        unchecked: &["data"],
        fixed: &[("data", FIXED)],
        ..PLAIN
    },
];
