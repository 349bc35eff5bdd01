//! The columns of the built-in kinds: one row per kind. Kinds without one show their name and when they were made.

use super::cells::Cell::{Bool, Count, Number, Of, Text, Time};
use super::cells::{AGE, Column, NAME};
use super::{network, others, pods, storage, workloads};

struct Printer {
    group: &'static str,
    plural: &'static str,
    columns: &'static [Column],
}

const fn printer(group: &'static str, plural: &'static str, columns: &'static [Column]) -> Printer {
    Printer { group, plural, columns }
}

const PLAIN: &[Column] = &[NAME, Column::date("Created At", Time("/metadata/creationTimestamp"))];

const CONTAINERS: Column = Column::text("Containers", Of(workloads::containers)).wide();
const IMAGES: Column = Column::text("Images", Of(workloads::images)).wide();
const SELECTOR: Column = Column::text("Selector", Of(workloads::selector)).wide();

const REPLICAS: &[Column] = &[
    NAME,
    Column::integer("Desired", Number("/spec/replicas")),
    Column::integer("Current", Number("/status/replicas")),
    Column::integer("Ready", Number("/status/readyReplicas")),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

const EVENTS: &[Column] = &[
    Column::text("Last Seen", Of(others::event_last_seen)),
    Column::text("Type", Text("/type", "")),
    Column::text("Reason", Text("/reason", "")),
    Column::text("Object", Of(others::event_object)),
    Column::text("Subobject", Of(others::event_part)).wide(),
    Column::text("Source", Of(others::event_source)).wide(),
    Column::text("Message", Of(others::event_message)),
    Column::text("First Seen", Of(others::event_first_seen)).wide(),
    Column::text("Count", Of(others::event_count)).wide(),
    NAME.wide(),
];

const BINDING: &[Column] = &[
    NAME,
    Column::text("Role", Of(others::role)),
    AGE,
    Column::text("Users", Of(|object, _| others::subjects(object, "User"))).wide(),
    Column::text("Groups", Of(|object, _| others::subjects(object, "Group"))).wide(),
    Column::text("ServiceAccounts", Of(|object, _| others::subjects(object, "ServiceAccount"))).wide(),
];

const SCALE: &[Column] = &[
    Column::text("Name", Text("/metadata/name", "")),
    Column::integer("Desired", Number("/spec/replicas")),
    Column::integer("Available", Number("/status/replicas")),
    AGE,
];

const AUTOSCALER: &[Column] = &[
    NAME,
    Column::text("Reference", Of(others::scale_target)),
    Column::text("Targets", Of(others::metrics)),
    Column::text("MinPods", Text("/spec/minReplicas", "<unset>")),
    Column::text("MaxPods", Number("/spec/maxReplicas")),
    Column::text("Replicas", Number("/status/currentReplicas")),
    AGE,
];

const WEBHOOKS: &[Column] = &[NAME, Column::integer("Webhooks", Count(&["/webhooks"])), AGE];

const POLICY_BINDING: &[Column] = &[
    NAME,
    Column::text("PolicyName", Text("/spec/policyName", "")),
    Column::text("ParamRef", Of(others::parameter)),
    AGE,
];

static PRINTERS: &[Printer] = &[
    printer("", "namespaces", &[NAME, Column::text("Status", Text("/status/phase", "")), AGE]),
    printer("", "configmaps", &[NAME, Column::text("Data", Count(&["/data", "/binaryData"])), AGE]),
    printer(
        "",
        "secrets",
        &[NAME, Column::text("Type", Text("/type", "")), Column::text("Data", Count(&["/data"])), AGE],
    ),
    printer("", "serviceaccounts", &[NAME, AGE]),
    printer("", "events", EVENTS),
    printer("events.k8s.io", "events", EVENTS),
    printer(
        "",
        "pods",
        &[
            NAME,
            Column::text("Ready", Of(pods::ready)),
            Column::text("Status", Of(pods::status)),
            Column::text("Restarts", Of(pods::restarts)),
            AGE,
            Column::text("IP", Text("/status/podIPs/0/ip", "<none>")).wide(),
            Column::text("Node", Text("/spec/nodeName", "<none>")).wide(),
            Column::text("Nominated Node", Text("/status/nominatedNodeName", "<none>")).wide(),
            Column::text("Readiness Gates", Of(pods::readiness_gates)).wide(),
        ],
    ),
    printer(
        "",
        "podtemplates",
        &[
            NAME,
            Column::text("Containers", Of(workloads::containers)),
            Column::text("Images", Of(workloads::images)),
            Column::text("Pod Labels", Of(workloads::pod_labels)),
        ],
    ),
    printer("", "replicationcontrollers", REPLICAS),
    printer("apps", "replicasets", REPLICAS),
    printer(
        "apps",
        "deployments",
        &[
            NAME,
            Column::text("Ready", Of(workloads::ready)),
            Column::text("Up-to-date", Number("/status/updatedReplicas")),
            Column::text("Available", Number("/status/availableReplicas")),
            AGE,
            CONTAINERS,
            IMAGES,
            Column::text("Selector", Of(workloads::deployment_selector)).wide(),
        ],
    ),
    printer(
        "apps",
        "statefulsets",
        &[NAME, Column::text("Ready", Of(workloads::ready)), AGE, CONTAINERS, IMAGES],
    ),
    printer(
        "apps",
        "daemonsets",
        &[
            NAME,
            Column::integer("Desired", Number("/status/desiredNumberScheduled")),
            Column::integer("Current", Number("/status/currentNumberScheduled")),
            Column::integer("Ready", Number("/status/numberReady")),
            Column::integer("Up-to-date", Number("/status/updatedNumberScheduled")),
            Column::integer("Available", Number("/status/numberAvailable")),
            Column::text("Node Selector", Of(workloads::node_selector)),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ],
    ),
    printer(
        "apps",
        "controllerrevisions",
        &[
            NAME,
            Column::text("Controller", Of(workloads::controller)),
            Column::text("Revision", Number("/revision")),
            AGE,
        ],
    ),
    printer(
        "batch",
        "jobs",
        &[
            NAME,
            Column::text("Status", Of(workloads::job_status)),
            Column::text("Completions", Of(workloads::completions)),
            Column::text("Duration", Of(workloads::duration)),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ],
    ),
    printer(
        "batch",
        "cronjobs",
        &[
            NAME,
            Column::text("Schedule", Text("/spec/schedule", "")),
            Column::text("Timezone", Text("/spec/timeZone", "<none>")),
            Column::boolean("Suspend", Of(workloads::suspended)),
            Column::integer("Active", Count(&["/status/active"])),
            Column::text("Last Schedule", Of(workloads::last_schedule)),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ],
    ),
    printer(
        "",
        "services",
        &[
            NAME,
            Column::text("Type", Text("/spec/type", "")),
            Column::text("Cluster-IP", Text("/spec/clusterIPs/0", "<none>")),
            Column::text("External-IP", Of(network::external)),
            Column::text("Port(s)", Of(network::service_ports)),
            AGE,
            Column::text("Selector", Of(network::service_selector)).wide(),
        ],
    ),
    printer("", "endpoints", &[NAME, Column::text("Endpoints", Of(network::endpoints)), AGE]),
    printer(
        "discovery.k8s.io",
        "endpointslices",
        &[
            NAME,
            Column::text("AddressType", Text("/addressType", "")),
            Column::text("Ports", Of(network::slice_ports)),
            Column::text("Endpoints", Of(network::slice_endpoints)),
            AGE,
        ],
    ),
    printer(
        "networking.k8s.io",
        "ingresses",
        &[
            NAME,
            Column::text("Class", Text("/spec/ingressClassName", "<none>")),
            Column::text("Hosts", Of(network::hosts)),
            Column::text("Address", Of(network::balancer)),
            Column::text("Ports", Of(network::ingress_ports)),
            AGE,
        ],
    ),
    printer(
        "networking.k8s.io",
        "ingressclasses",
        &[
            Column::text("Name", Of(network::ingress_class_name)).named(),
            Column::text("Controller", Text("/spec/controller", "")),
            Column::text("Parameters", Of(network::ingress_class_parameters)),
            AGE,
        ],
    ),
    printer(
        "networking.k8s.io",
        "networkpolicies",
        &[NAME, Column::text("Pod-Selector", Of(network::policy_selector)), AGE],
    ),
    printer("networking.k8s.io", "servicecidrs", &[NAME, Column::text("CIDRs", Of(network::ranges)), AGE]),
    printer(
        "",
        "nodes",
        &[
            NAME,
            Column::text("Status", Of(others::node_status)),
            Column::text("Roles", Of(others::node_roles)),
            AGE,
            Column::text("Version", Text("/status/nodeInfo/kubeletVersion", "")),
            Column::text("Internal-IP", Of(|object, _| others::address(object, "InternalIP"))).wide(),
            Column::text("External-IP", Of(|object, _| others::address(object, "ExternalIP"))).wide(),
            Column::text("OS-Image", Text("/status/nodeInfo/osImage", "<unknown>")).wide(),
            Column::text("Kernel-Version", Of(others::kernel)).wide(),
            Column::text("Container-Runtime", Text("/status/nodeInfo/containerRuntimeVersion", "<unknown>"))
                .wide(),
        ],
    ),
    printer(
        "",
        "persistentvolumes",
        &[
            NAME,
            Column::text("Capacity", Text("/spec/capacity/storage", "0")),
            Column::text("Access Modes", Of(storage::volume_modes)),
            Column::text("Reclaim Policy", Text("/spec/persistentVolumeReclaimPolicy", "")),
            Column::text("Status", Of(storage::phase)),
            Column::text("Claim", Of(storage::claim)),
            Column::text("StorageClass", Of(storage::class)),
            Column::text("VolumeAttributesClass", Text("/spec/volumeAttributesClassName", "<unset>")),
            Column::text("Reason", Text("/status/reason", "")),
            AGE,
            Column::text("VolumeMode", Text("/spec/volumeMode", "<unset>")).wide(),
        ],
    ),
    printer(
        "",
        "persistentvolumeclaims",
        &[
            NAME,
            Column::text("Status", Of(storage::phase)),
            Column::text("Volume", Text("/spec/volumeName", "")),
            Column::text("Capacity", Of(storage::claimed)),
            Column::text("Access Modes", Of(storage::claim_modes)),
            Column::text("StorageClass", Of(storage::class)),
            Column::text("VolumeAttributesClass", Text("/spec/volumeAttributesClassName", "<unset>")),
            AGE,
            Column::text("VolumeMode", Text("/spec/volumeMode", "<unset>")).wide(),
        ],
    ),
    printer(
        "storage.k8s.io",
        "storageclasses",
        &[
            Column::text("Name", Of(storage::class_name)).named(),
            Column::text("Provisioner", Text("/provisioner", "")),
            Column::text("ReclaimPolicy", Text("/reclaimPolicy", "Delete")),
            Column::text("VolumeBindingMode", Text("/volumeBindingMode", "Immediate")),
            Column::text("AllowVolumeExpansion", Bool("/allowVolumeExpansion", false)),
            AGE,
        ],
    ),
    printer(
        "storage.k8s.io",
        "volumeattributesclasses",
        &[
            Column::text("Name", Of(storage::class_name)).named(),
            Column::text("DriverName", Text("/driverName", "")),
            AGE,
        ],
    ),
    printer(
        "storage.k8s.io",
        "csidrivers",
        &[
            NAME,
            Column::boolean("AttachRequired", Bool("/spec/attachRequired", true)),
            Column::boolean("PodInfoOnMount", Bool("/spec/podInfoOnMount", false)),
            Column::boolean("StorageCapacity", Bool("/spec/storageCapacity", false)),
            Column::text("TokenRequests", Of(storage::audiences)),
            Column::boolean("RequiresRepublish", Bool("/spec/requiresRepublish", false)),
            Column::text("Modes", Of(storage::lifecycle_modes)),
            AGE,
        ],
    ),
    printer(
        "storage.k8s.io",
        "csinodes",
        &[NAME, Column::integer("Drivers", Count(&["/spec/drivers"])), AGE],
    ),
    printer(
        "storage.k8s.io",
        "volumeattachments",
        &[
            NAME,
            Column::text("Attacher", Text("/spec/attacher", "")).named(),
            Column::text("PV", Text("/spec/source/persistentVolumeName", "")),
            Column::text("Node", Text("/spec/nodeName", "")),
            Column::boolean("Attached", Bool("/status/attached", false)),
            AGE,
        ],
    ),
    printer(
        "policy",
        "poddisruptionbudgets",
        &[
            NAME,
            Column::text("Min Available", Text("/spec/minAvailable", "N/A")),
            Column::text("Max Unavailable", Text("/spec/maxUnavailable", "N/A")),
            Column::integer("Allowed Disruptions", Number("/status/disruptionsAllowed")),
            AGE,
        ],
    ),
    printer("autoscaling", "scale", SCALE),
    printer("autoscaling", "horizontalpodautoscalers", AUTOSCALER),
    printer(
        "",
        "resourcequotas",
        &[
            NAME,
            Column::text("Request", Of(|object, _| others::quota(object, false))),
            Column::text("Limit", Of(|object, _| others::quota(object, true))),
            AGE,
        ],
    ),
    printer("rbac.authorization.k8s.io", "rolebindings", BINDING),
    printer("rbac.authorization.k8s.io", "clusterrolebindings", BINDING),
    printer(
        "coordination.k8s.io",
        "leases",
        &[NAME, Column::text("Holder", Text("/spec/holderIdentity", "")), AGE],
    ),
    printer(
        "scheduling.k8s.io",
        "priorityclasses",
        &[
            NAME,
            Column::integer("Value", Number("/value")),
            Column::boolean("Global-Default", Bool("/globalDefault", false)),
            AGE,
            Column::text("PreemptionPolicy", Text("/preemptionPolicy", "")),
        ],
    ),
    printer("node.k8s.io", "runtimeclasses", &[NAME, Column::text("Handler", Text("/handler", "")), AGE]),
    printer(
        "certificates.k8s.io",
        "certificatesigningrequests",
        &[
            NAME,
            AGE,
            Column::text("SignerName", Text("/spec/signerName", "<none>")),
            Column::text("Requestor", Text("/spec/username", "")),
            Column::text("RequestedDuration", Of(others::requested_duration)),
            Column::text("Condition", Of(others::request_state)),
        ],
    ),
    printer("admissionregistration.k8s.io", "mutatingwebhookconfigurations", WEBHOOKS),
    printer("admissionregistration.k8s.io", "validatingwebhookconfigurations", WEBHOOKS),
    printer(
        "admissionregistration.k8s.io",
        "validatingadmissionpolicies",
        &[
            NAME,
            Column::integer("Validations", Count(&["/spec/validations"])),
            Column::text("ParamKind", Of(others::parameter_kind)),
            AGE,
        ],
    ),
    printer(
        "admissionregistration.k8s.io",
        "mutatingadmissionpolicies",
        &[
            NAME,
            Column::integer("Mutations", Count(&["/spec/mutations"])),
            Column::text("ParamKind", Of(others::parameter_kind)),
            AGE,
        ],
    ),
    printer("admissionregistration.k8s.io", "validatingadmissionpolicybindings", POLICY_BINDING),
    printer("admissionregistration.k8s.io", "mutatingadmissionpolicybindings", POLICY_BINDING),
    printer(
        "apiregistration.k8s.io",
        "apiservices",
        &[
            NAME,
            Column::text("Service", Of(others::service)),
            Column::text("Available", Of(others::available)),
            AGE,
        ],
    ),
    printer(
        "flowcontrol.apiserver.k8s.io",
        "flowschemas",
        &[
            NAME,
            Column::text("PriorityLevel", Text("/spec/priorityLevelConfiguration/name", "")),
            Column::text("MatchingPrecedence", Number("/spec/matchingPrecedence")),
            Column::text("DistinguisherMethod", Text("/spec/distinguisherMethod/type", "<none>")),
            AGE,
            Column::text("MissingPL", Of(others::dangling)),
        ],
    ),
    printer(
        "flowcontrol.apiserver.k8s.io",
        "prioritylevelconfigurations",
        &[
            NAME,
            Column::text("Type", Text("/spec/type", "")),
            Column::text(
                "NominalConcurrencyShares",
                Of(|o, _| others::limited(o, "nominalConcurrencyShares")),
            ),
            Column::text("Queues", Of(|o, _| others::limited(o, "limitResponse/queuing/queues"))),
            Column::text("HandSize", Of(|o, _| others::limited(o, "limitResponse/queuing/handSize"))),
            Column::text(
                "QueueLengthLimit",
                Of(|o, _| others::limited(o, "limitResponse/queuing/queueLengthLimit")),
            ),
            AGE,
        ],
    ),
    printer("resource.k8s.io", "deviceclasses", &[NAME, AGE]),
    printer(
        "resource.k8s.io",
        "resourceclaims",
        &[NAME, Column::text("State", Of(others::claim_state)), AGE],
    ),
    printer("resource.k8s.io", "resourceclaimtemplates", &[NAME, AGE]),
    printer(
        "resource.k8s.io",
        "resourceslices",
        &[
            NAME,
            Column::text("Node", Text("/spec/nodeName", "")),
            Column::text("Driver", Text("/spec/driver", "")),
            Column::text("Pool", Text("/spec/pool/name", "")),
            AGE,
        ],
    ),
];

/// The columns of a built-in kind.
pub(super) fn columns(group: &str, plural: &str) -> &'static [Column] {
    PRINTERS
        .iter()
        .find(|printer| printer.group == group && printer.plural == plural)
        .map_or(PLAIN, |printer| printer.columns)
}
