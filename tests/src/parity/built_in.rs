//! Built-in kinds: special cases of their strategies, found by comparing random objects.

use super::{Behaviour, Script};
use crate::compare::Request;
use crate::compare::exchange::media::{APPLY_PATCH, JSON, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH};

/// A request: method, path with `*` for the script's namespace, media type, body.
type Step = (&'static str, &'static str, &'static str, &'static str);

const SET: &str = "/apis/apps/v1/namespaces/*/statefulsets";
const SERVICES: &str = "/api/v1/namespaces/*/services";
const NEW_SET: &str = r#"{"metadata":{"name":"a"},"spec":{"serviceName":"s","selector":{"matchLabels":{"x":"y"}},"template":{"metadata":{"labels":{"x":"y"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}"#;
const NEW_JOB: &str = r#"{"metadata":{"name":"a"},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}"#;
const JOBS: &str = "/apis/batch/v1/namespaces/*/jobs";
const SCALER: &str = "/apis/autoscaling/v2/namespaces/*/horizontalpodautoscalers";
const NEW_SCALER: &str = r#"{"metadata":{"name":"a"},"spec":{"maxReplicas":3,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"},"metrics":[{"type":"Pods","pods":{"metric":{"name":"m"},"target":{"type":"AverageValue","averageValue":"1k"}}},{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":50}}}],"behavior":{"scaleDown":{"stabilizationWindowSeconds":60}}}}"#;
const NEW_EVENT: &str = r#"{"metadata":{"name":"a"},"eventTime":"2026-01-02T03:04:05.000006Z","reason":"R","action":"A","type":"Normal","reportingController":"e.io/c","reportingInstance":"i","regarding":{"kind":"Pod","namespace":"*"}}"#;

const SCRIPTS: &[(&str, &[Step])] = &[
    (
        "a scale to nothing",
        &[
            ("POST", SET, JSON, NEW_SET),
            (
                "PATCH",
                "/apis/apps/v1/namespaces/*/statefulsets/a/scale",
                MERGE_PATCH,
                r#"{"spec":{"replicas":0}}"#,
            ),
            ("GET", "/apis/apps/v1/namespaces/*/statefulsets/a", "", ""),
        ],
    ),
    (
        "a Service that loses its node port",
        &[
            (
                "POST",
                SERVICES,
                JSON,
                r#"{"metadata":{"name":"a"},"spec":{"type":"LoadBalancer","ports":[{"port":80}]}}"#,
            ),
            ("PATCH", "/api/v1/namespaces/*/services/a", MERGE_PATCH, r#"{"spec":{"type":"ClusterIP"}}"#),
            ("PATCH", "/api/v1/namespaces/*/services/a", MERGE_PATCH, r#"{"spec":{"type":"NodePort"}}"#),
        ],
    ),
    (
        "a new Job is written once more by a patch of nothing",
        &[("POST", JOBS, JSON, NEW_JOB), ("PATCH", "/apis/batch/v1/namespaces/*/jobs/a", MERGE_PATCH, "{}")],
    ),
    (
        "the pods of a deleted Job stay unless told otherwise",
        &[("POST", JOBS, JSON, NEW_JOB), ("DELETE", "/apis/batch/v1/namespaces/*/jobs/a", "", "")],
    ),
    (
        "an autoscaler in its old version",
        &[
            ("POST", SCALER, JSON, NEW_SCALER),
            ("GET", "/apis/autoscaling/v1/namespaces/*/horizontalpodautoscalers/a", "", ""),
            (
                "PATCH",
                "/apis/autoscaling/v1/namespaces/*/horizontalpodautoscalers/a",
                MERGE_PATCH,
                r#"{"spec":{"maxReplicas":5}}"#,
            ),
            ("GET", "/apis/autoscaling/v2/namespaces/*/horizontalpodautoscalers/a", "", ""),
        ],
    ),
    (
        "an Event of the newer group does not change",
        &[
            ("POST", "/apis/events.k8s.io/v1/namespaces/*/events", JSON, NEW_EVENT),
            (
                "PATCH",
                "/apis/events.k8s.io/v1/namespaces/*/events/a",
                MERGE_PATCH,
                r#"{"note":"n","reason":"S"}"#,
            ),
            (
                "PATCH",
                "/api/v1/namespaces/*/events/a",
                MERGE_PATCH,
                r#"{"message":"n","metadata":{"labels":{"l":"1"}}}"#,
            ),
        ],
    ),
    (
        "the status of a Deployment leaves its labels alone",
        &[
            ("POST", "/apis/apps/v1/namespaces/*/deployments", JSON, NEW_SET),
            (
                "PATCH",
                "/apis/apps/v1/namespaces/*/deployments/a/status",
                MERGE_PATCH,
                r#"{"metadata":{"labels":{"l":"1"},"annotations":{"a":"b"}},"status":{"replicas":1}}"#,
            ),
            (
                "PATCH",
                "/apis/apps/v1/namespaces/*/deployments/a",
                MERGE_PATCH,
                r#"{"metadata":{"annotations":{"a":"c"}}}"#,
            ),
        ],
    ),
    (
        "keys of YAML that look like truths",
        &[(
            "PATCH",
            "/api/v1/namespaces/*/configmaps/a?fieldManager=m",
            APPLY_PATCH,
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  n: x\n  \"y\": z\n  2: w\n",
        )],
    ),
    (
        "bytes as a list of numbers",
        &[
            ("POST", "/api/v1/namespaces/*/configmaps", JSON, r#"{"metadata":{"name":"a"}}"#),
            (
                "PATCH",
                "/api/v1/namespaces/*/configmaps/a",
                STRATEGIC_PATCH,
                r#"{"binaryData":{"k":[1,2,300]}}"#,
            ),
        ],
    ),
    (
        "a number that is too large wraps in what is applied",
        &[(
            "PATCH",
            "/apis/apps/v1/namespaces/*/statefulsets/a?fieldManager=m",
            APPLY_PATCH,
            r#"{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"a"},"spec":{"replicas":30000000000,"serviceName":"s","selector":{"matchLabels":{"x":"y"}},"template":{"metadata":{"labels":{"x":"y"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}"#,
        )],
    ),
    (
        "an account's secrets are names",
        &[(
            "POST",
            "/api/v1/namespaces/*/serviceaccounts",
            JSON,
            r#"{"metadata":{"name":"a"},"secrets":[{"name":"s","namespace":"x","kind":"Secret"}]}"#,
        )],
    ),
    (
        "a rehearsal shows what would be stored",
        &[
            (
                "POST",
                "/apis/discovery.k8s.io/v1/namespaces/*/endpointslices",
                JSON,
                r#"{"metadata":{"name":"a"},"addressType":"IPv4","endpoints":[],"ports":[]}"#,
            ),
            (
                "PATCH",
                "/apis/discovery.k8s.io/v1/namespaces/*/endpointslices/a?dryRun=All",
                JSON_PATCH,
                r#"[{"op":"add","path":"/ports","value":[]},{"op":"add","path":"/metadata/labels","value":{"l":"1"}}]"#,
            ),
        ],
    ),
    (
        "applied to what nobody owned",
        &[
            (
                "POST",
                "/apis/rbac.authorization.k8s.io/v1/namespaces/*/roles",
                JSON,
                r#"{"metadata":{"name":"a"}}"#,
            ),
            (
                "PATCH",
                "/apis/rbac.authorization.k8s.io/v1/namespaces/*/roles/a?fieldManager=m",
                APPLY_PATCH,
                r#"{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"a","labels":{"l":"1"}}}"#,
            ),
        ],
    ),
];

pub(super) fn behaviours() -> Vec<Behaviour> {
    let script = |(name, steps): &(&'static str, &'static [Step])| {
        let steps = *steps;
        Behaviour::new(format!("kinds: {name}"), move |mut script: Script| async move {
            for (method, path, media_type, body) in steps {
                let here = |text: &str| text.replace('*', script.namespace());
                let path = here(path);
                let (path, query) = path.split_once('?').unwrap_or((&path, ""));
                let mut request = Request::new(method, path);
                for name in ["fieldManager", "dryRun"] {
                    let value = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
                    if let Some(value) = value {
                        request = request.with(name, value);
                    }
                }
                if !media_type.is_empty() {
                    request = request.raw(media_type, here(body));
                }
                script.send(request).await?;
            }
            Ok(script)
        })
    };
    SCRIPTS.iter().map(script).collect()
}
