//! Built-in kinds that the generated controller builds by a typed function, with the pod templates they use.
//!
//! In these texts `VAR` is the object's variable and `TYPE` its type.

use super::owned::{Need, Origin, Owned, Pods};

/// A built-in kind with a function of its own.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) kind: &'static str,
    /// The module of its type in `k8s_openapi::api`.
    pub(super) module: &'static str,
    pub(super) needs: &'static [Need],
    pub(super) pods: Pods,
    /// Why it is made: a name, and a sentence.
    pub(super) why: (&'static str, &'static str),
    /// What is put into the plan.
    pub(super) step: &'static str,
    /// Further types, by module.
    pub(super) imports: &'static [(&'static str, &'static [&'static str])],
    /// The function that makes one.
    pub(super) make: &'static str,
}

const META: &str = "apimachinery::pkg::apis::meta::v1";

/// All of them.
pub(super) const MADE: [Made; 9] = [
    Made {
        kind: "Deployment",
        module: "api::apps::v1",
        needs: &[Need::Replicas, Need::Image],
        pods: Pods::Serve,
        why: ("RunsIt", "its pods run in a Deployment"),
        step: ".apply(deployment(VAR), Why::RunsIt)",
        imports: &[("api::apps::v1", &["DeploymentSpec"]), (META, &["LabelSelector"])],
        make: "fn deployment(VAR: &TYPE) -> Deployment {
    Deployment {
        metadata: metadata(VAR),
        spec: Some(DeploymentSpec {
            replicas: Some(VAR.spec.replicas),
            selector: LabelSelector { match_labels: Some(labels(VAR)), ..Default::default() },
            template: pods(VAR),
            ..Default::default()
        }),
        ..Default::default()
    }
}
",
    },
    Made {
        kind: "StatefulSet",
        module: "api::apps::v1",
        needs: &[Need::Replicas, Need::Image],
        pods: Pods::Serve,
        why: ("RunsItWithNames", "its pods run in a StatefulSet, each under a name of its own"),
        step: ".apply(Apply::new(stateful_set(VAR)).recreate(Propagation::Orphan), Why::RunsItWithNames)",
        imports: &[("api::apps::v1", &["StatefulSetSpec"]), (META, &["LabelSelector"])],
        make: "fn stateful_set(VAR: &TYPE) -> StatefulSet {
    StatefulSet {
        metadata: metadata(VAR),
        spec: Some(StatefulSetSpec {
            replicas: Some(VAR.spec.replicas),
            service_name: Some(VAR.name_any()),
            selector: LabelSelector { match_labels: Some(labels(VAR)), ..Default::default() },
            template: pods(VAR),
            ..Default::default()
        }),
        ..Default::default()
    }
}
",
    },
    Made {
        kind: "DaemonSet",
        module: "api::apps::v1",
        needs: &[Need::Image],
        pods: Pods::Serve,
        why: ("RunsItEverywhere", "a pod of it runs on every node"),
        step: ".apply(daemon_set(VAR), Why::RunsItEverywhere)",
        imports: &[("api::apps::v1", &["DaemonSetSpec"]), (META, &["LabelSelector"])],
        make: "fn daemon_set(VAR: &TYPE) -> DaemonSet {
    DaemonSet {
        metadata: metadata(VAR),
        spec: Some(DaemonSetSpec {
            selector: LabelSelector { match_labels: Some(labels(VAR)), ..Default::default() },
            template: pods(VAR),
            ..Default::default()
        }),
        ..Default::default()
    }
}
",
    },
    Made {
        kind: "Job",
        module: "api::batch::v1",
        needs: &[Need::Image],
        pods: Pods::Finish,
        why: ("DoesItOnce", "a Job does it, and again when what it does is declared otherwise"),
        step: ".apply(Apply::new(job(VAR)).recreate(Propagation::Background), Why::DoesItOnce)",
        imports: &[("api::batch::v1", &["JobSpec"])],
        make: "fn job(VAR: &TYPE) -> Job {
    Job {
        metadata: metadata(VAR),
        spec: Some(JobSpec { backoff_limit: Some(3), template: task(VAR), ..Default::default() }),
        ..Default::default()
    }
}
",
    },
    Made {
        kind: "CronJob",
        module: "api::batch::v1",
        needs: &[Need::Image, Need::Schedule],
        pods: Pods::Finish,
        why: ("DoesItOnTime", "a CronJob does it, whenever it is time"),
        step: ".apply(cron_job(VAR), Why::DoesItOnTime)",
        imports: &[("api::batch::v1", &["CronJobSpec", "JobSpec", "JobTemplateSpec"])],
        make: "fn cron_job(VAR: &TYPE) -> CronJob {
    let job = JobSpec { backoff_limit: Some(3), template: task(VAR), ..Default::default() };
    CronJob {
        metadata: metadata(VAR),
        spec: CronJobSpec {
            schedule: VAR.spec.schedule.clone(),
            concurrency_policy: Some(\"Forbid\".to_owned()),
            job_template: JobTemplateSpec { spec: Some(job), ..Default::default() },
            ..Default::default()
        },
        ..Default::default()
    }
}
",
    },
    Made {
        kind: "Service",
        module: "api::core::v1",
        needs: &[],
        pods: Pods::None,
        why: ("GivesItAName", "clients find its pods by the Service's name"),
        step: ".apply(service(VAR), Why::GivesItAName)",
        imports: &[
            ("api::core::v1", &["ServicePort", "ServiceSpec"]),
            ("apimachinery::pkg::util::intstr", &["IntOrString"]),
        ],
        make: "fn service(VAR: &TYPE) -> Service {
    Service {
        metadata: metadata(VAR),
        spec: Some(ServiceSpec {
            selector: Some(labels(VAR)),
            ports: Some(vec![ServicePort {
                name: Some(\"http\".to_owned()),
                port: 80,
                target_port: Some(IntOrString::String(\"http\".to_owned())),
                ..Default::default()
            }]),
            ..Default::default()
        }),
        ..Default::default()
    }
}
",
    },
    Made {
        kind: "ConfigMap",
        module: "api::core::v1",
        needs: &[Need::Settings],
        pods: Pods::None,
        why: ("ConfiguresIt", "its settings are in a ConfigMap"),
        step: ".apply(config_map(VAR), Why::ConfiguresIt)",
        imports: &[],
        make: "fn config_map(VAR: &TYPE) -> ConfigMap {
    ConfigMap {
        metadata: metadata(VAR),
        data: Some(VAR.spec.settings.clone()),
        ..Default::default()
    }
}
",
    },
    Made {
        kind: "Secret",
        module: "api::core::v1",
        needs: &[],
        pods: Pods::None,
        why: ("SecuresIt", "its password is in a Secret"),
        step: ".create_once(secret(VAR), Generate::new().text(\"/stringData/password\", 32), Why::SecuresIt)",
        imports: &[],
        make: "/// Its password is made up at the moment when it is created, and is in no plan and no log.
fn secret(VAR: &TYPE) -> Secret {
    Secret { metadata: metadata(VAR), ..Default::default() }
}
",
    },
    Made {
        kind: "ServiceAccount",
        module: "api::core::v1",
        needs: &[],
        pods: Pods::None,
        why: ("GivesItAnIdentity", "it acts under an account of its own"),
        step: ".apply(service_account(VAR), Why::GivesItAnIdentity)",
        imports: &[],
        make: "fn service_account(VAR: &TYPE) -> ServiceAccount {
    ServiceAccount { metadata: metadata(VAR), ..Default::default() }
}
",
    },
];

impl Made {
    /// As it is in a project.
    pub(super) fn owned(&self) -> Owned {
        Owned {
            kind: self.kind.to_owned(),
            ty: self.kind.to_owned(),
            from: Origin::BuiltIn(self.module, self.imports),
            needs: self.needs,
            pods: self.pods,
            namespaced: true,
            settles: true,
            why: (self.why.0.to_owned(), self.why.1.to_owned()),
            step: self.step.to_owned(),
            make: self.make.to_owned(),
            as_json: false,
        }
    }
}

/// Types of the pods that run on.
pub(super) const SERVE_IMPORTS: &[(&str, &[&str])] = &[
    (
        "api::core::v1",
        &["Container", "ContainerPort", "PodSpec", "PodTemplateSpec", "PodSecurityContext", "SeccompProfile"],
    ),
    ("api::core::v1", &["Capabilities", "SecurityContext"]),
];

/// Types of a pod that is said as JSON.
pub(super) const ALONE_IMPORTS: &[(&str, &[&str])] = &[(
    "api::core::v1",
    &["Capabilities", "Container", "PodSecurityContext", "SeccompProfile", "SecurityContext"],
)];

/// Types of the pods that end.
pub(super) const FINISH_IMPORTS: &[(&str, &[&str])] = &[
    ("api::core::v1", &["Container", "PodSpec", "PodTemplateSpec", "PodSecurityContext", "SeccompProfile"]),
    ("api::core::v1", &["Capabilities", "SecurityContext"]),
];

/// Pods that run on.
pub(super) const SERVE: &str = "fn pods(VAR: &TYPE) -> PodTemplateSpec {
    let port = ContainerPort { name: Some(\"http\".to_owned()), container_port: 8080, ..Default::default() };
    let container = Container { ports: Some(vec![port]), ..container(VAR) };
    PodTemplateSpec {
        metadata: Some(ObjectMeta { labels: Some(labels(VAR)), ..Default::default() }),
        spec: Some(PodSpec { containers: vec![container], security_context: Some(restricted()), ..Default::default() }),
    }
}
";

/// Pods that end.
pub(super) const FINISH: &str = "fn task(VAR: &TYPE) -> PodTemplateSpec {
    let command = vec![\"echo\".to_owned(), VAR.name_any()];
    let container = Container { command: Some(command), ..container(VAR) };
    PodTemplateSpec {
        spec: Some(PodSpec {
            containers: vec![container],
            restart_policy: Some(\"Never\".to_owned()),
            security_context: Some(restricted()),
            ..Default::default()
        }),
        ..Default::default()
    }
}
";

/// What pods of both sorts have in common.
pub(super) const CONTAINER: &str = "fn container(VAR: &TYPE) -> Container {
    Container {
        name: \"main\".to_owned(),
        image: Some(VAR.spec.image.clone()),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            capabilities: Some(Capabilities { drop: Some(vec![\"ALL\".to_owned()]), ..Default::default() }),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// What namespaces with the strictest level of pod security ask for.
fn restricted() -> PodSecurityContext {
    let profile = SeccompProfile { type_: \"RuntimeDefault\".to_owned(), ..Default::default() };
    PodSecurityContext { run_as_non_root: Some(true), seccomp_profile: Some(profile), ..Default::default() }
}
";

/// The metadata of what lives outside of namespaces, for an owner in one.
pub(super) const GLOBAL: &str = "/// Names outside of namespaces are everybody's: these say whose they are.
fn global(VAR: &TYPE) -> ObjectMeta {
    let name = format!(\"{}-{}\", VAR.namespace().unwrap_or_default(), VAR.name_any());
    ObjectMeta { name: Some(name), labels: Some(labels(VAR)), ..Default::default() }
}
";

/// The same, for an owner outside of namespaces too.
pub(super) const GLOBAL_OF_GLOBAL: &str = "fn global(VAR: &TYPE) -> ObjectMeta {
    ObjectMeta { name: Some(VAR.name_any()), labels: Some(labels(VAR)), ..Default::default() }
}
";
