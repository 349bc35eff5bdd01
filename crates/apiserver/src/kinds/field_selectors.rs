//! Field selectors of built-in kinds: what may be asked for, under which names, and what an object has there.

use crate::status::Status;

/// A field that a selector may ask for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    /// The name that the store keeps it under.
    pub(crate) label: &'static str,
    /// Where it is in the object as it is stored.
    pub(crate) path: &'static [&'static str],
    /// What it is where the object does not say.
    pub(crate) absent: Absent,
}

/// What a field is where an object does not have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absent {
    /// This text: what its type has for nothing.
    Text(&'static str),
    /// What another field is.
    As(&'static [&'static str]),
}

const fn field(label: &'static str, path: &'static [&'static str]) -> Field {
    Field { label, path, absent: Absent::Text("") }
}

const fn field_or(label: &'static str, path: &'static [&'static str], absent: &'static str) -> Field {
    Field { label, path, absent: Absent::Text(absent) }
}

/// How the objects of a kind are selected.
#[derive(Debug)]
pub(crate) struct Selecting {
    group: &'static str,
    plural: &'static str,
    pub(crate) fields: &'static [Field],
    /// Names that selectors use, and the fields they mean. Without any they are those of the fields.
    names: &'static [(&'static str, &'static str)],
    /// May a selector name the namespace?
    namespace: bool,
    /// What is said of other names.
    refusal: Refusal,
}

#[derive(Debug, Clone, Copy)]
enum Refusal {
    Plain,
    /// With the name of the kind behind it.
    OfKind(&'static str),
    /// With the whole name of the kind before it.
    For(&'static str),
}

const KIND: Selecting =
    Selecting { group: "", plural: "", fields: &[], names: &[], namespace: true, refusal: Refusal::Plain };

/// Of Events of either group, as they are stored.
const EVENT: &[Field] = &[
    field("involvedObject.kind", &["involvedObject", "kind"]),
    field("involvedObject.namespace", &["involvedObject", "namespace"]),
    field("involvedObject.name", &["involvedObject", "name"]),
    field("involvedObject.uid", &["involvedObject", "uid"]),
    field("involvedObject.apiVersion", &["involvedObject", "apiVersion"]),
    field("involvedObject.resourceVersion", &["involvedObject", "resourceVersion"]),
    field("involvedObject.fieldPath", &["involvedObject", "fieldPath"]),
    field("reason", &["reason"]),
    field("reportingComponent", &["reportingComponent"]),
    Field { label: "source", path: &["source", "component"], absent: Absent::As(&["reportingComponent"]) },
    field("type", &["type"]),
];

static TABLE: &[Selecting] = &[
    Selecting { plural: "events", fields: EVENT, ..KIND },
    Selecting {
        group: "events.k8s.io",
        plural: "events",
        fields: EVENT,
        names: &[
            ("regarding.kind", "involvedObject.kind"),
            ("regarding.namespace", "involvedObject.namespace"),
            ("regarding.name", "involvedObject.name"),
            ("regarding.uid", "involvedObject.uid"),
            ("regarding.apiVersion", "involvedObject.apiVersion"),
            ("regarding.resourceVersion", "involvedObject.resourceVersion"),
            ("regarding.fieldPath", "involvedObject.fieldPath"),
            ("reason", "reason"),
            ("reportingController", "reportingComponent"),
            ("type", "type"),
        ],
        ..KIND
    },
    Selecting {
        plural: "namespaces",
        fields: &[field("status.phase", &["status", "phase"])],
        namespace: false,
        ..KIND
    },
    Selecting { plural: "secrets", fields: &[field("type", &["type"])], ..KIND },
    Selecting {
        plural: "pods",
        fields: &[
            field("spec.nodeName", &["spec", "nodeName"]),
            field("spec.restartPolicy", &["spec", "restartPolicy"]),
            field("spec.schedulerName", &["spec", "schedulerName"]),
            field("spec.serviceAccountName", &["spec", "serviceAccountName"]),
            field_or("spec.hostNetwork", &["spec", "hostNetwork"], "false"),
            field("status.phase", &["status", "phase"]),
            field("status.podIP", &["status", "podIP"]),
            field("status.nominatedNodeName", &["status", "nominatedNodeName"]),
        ],
        names: &[
            ("spec.nodeName", "spec.nodeName"),
            ("spec.restartPolicy", "spec.restartPolicy"),
            ("spec.schedulerName", "spec.schedulerName"),
            ("spec.serviceAccountName", "spec.serviceAccountName"),
            ("spec.hostNetwork", "spec.hostNetwork"),
            ("status.phase", "status.phase"),
            ("status.podIP", "status.podIP"),
            // Known, and never said of any pod.
            ("status.podIPs", "status.podIPs"),
            ("status.nominatedNodeName", "status.nominatedNodeName"),
            // What clients of old say.
            ("spec.host", "spec.nodeName"),
        ],
        ..KIND
    },
    Selecting {
        plural: "services",
        fields: &[field("spec.clusterIP", &["spec", "clusterIP"]), field("spec.type", &["spec", "type"])],
        ..KIND
    },
    Selecting {
        plural: "nodes",
        fields: &[field_or("spec.unschedulable", &["spec", "unschedulable"], "false")],
        namespace: false,
        ..KIND
    },
    Selecting {
        plural: "replicationcontrollers",
        fields: &[field_or("status.replicas", &["status", "replicas"], "0")],
        ..KIND
    },
    Selecting {
        group: "batch",
        plural: "jobs",
        fields: &[field_or("status.successful", &["status", "succeeded"], "0")],
        refusal: Refusal::OfKind("Job"),
        ..KIND
    },
    Selecting {
        group: "certificates.k8s.io",
        plural: "certificatesigningrequests",
        fields: &[field("spec.signerName", &["spec", "signerName"])],
        namespace: false,
        ..KIND
    },
    Selecting {
        group: "resource.k8s.io",
        plural: "resourceslices",
        fields: &[field("spec.nodeName", &["spec", "nodeName"]), field("spec.driver", &["spec", "driver"])],
        namespace: false,
        refusal: Refusal::For("resource.k8s.io/v1, Kind=ResourceSlice"),
        ..KIND
    },
];

/// How a kind's objects are selected by more than name and namespace, if they are.
pub(crate) fn selecting(group: &str, plural: &str) -> Option<&'static Selecting> {
    TABLE.iter().find(|kind| kind.group == group && kind.plural == plural)
}

impl Selecting {
    /// The name that the store keeps a field under which a selector asks for.
    pub(crate) fn kept_as<'a>(&self, asked: &'a str) -> Result<&'a str, Status> {
        let known = match asked {
            "metadata.name" => Some(asked),
            "metadata.namespace" => self.namespace.then_some(asked),
            _ if self.names.is_empty() => {
                self.fields.iter().any(|field| field.label == asked).then_some(asked)
            }
            _ => self.names.iter().find(|(name, _)| *name == asked).map(|(_, kept)| *kept),
        };
        known.ok_or_else(|| {
            Status::bad_request(match self.refusal {
                Refusal::Plain => format!("field label not supported: {asked}"),
                Refusal::OfKind(kind) => format!("field label {asked:?} not supported for {kind}"),
                Refusal::For(kind) => format!("field label not supported for {kind}: {asked}"),
            })
        })
    }
}
