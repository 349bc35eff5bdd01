//! What webhooks need: a Service, the configurations that lead the API server to it, and the rights to fill in whom to trust; or, instead of
//! those rights, a certificate of cert-manager.

use super::{Manifest, Options, labels};
use crate::description::{DescribedWebhooks, OperatorDescription};
use serde_json::{Value, json};

const PORT: u16 = 9443;
/// Where cert-manager's certificate is mounted.
const FOLDER: &str = "/etc/webhook-certificates";
const INJECT: &str = "cert-manager.io/inject-ca-from";

/// The name of the Service, the configurations and the Secret.
fn named(name: &str) -> String {
    format!("{name}-webhooks")
}

pub(super) fn of(name: &str, operator: &OperatorDescription, options: &Options) -> Vec<Manifest> {
    let Some(webhooks) = &operator.webhooks else { return Vec::new() };
    let mut all = vec![
        Manifest::new("webhook/service.yaml", vec![service(name, options), network_policy(name, options)]),
        Manifest::new("webhook/configurations.yaml", configurations(name, webhooks, options)),
    ];
    all.push(match options.cert_manager {
        true => Manifest::new("webhook/certificate.yaml", certificate(name, options)),
        false => Manifest::new("rbac/webhooks.yaml", roles(name, webhooks, options)),
    });
    all
}

/// Adds to a Deployment what serves webhooks.
pub(super) fn serve(deployment: &mut Value, name: &str, operator: &OperatorDescription, options: &Options) {
    if operator.webhooks.is_none() {
        return;
    }
    let pod = &mut deployment["spec"]["template"]["spec"];
    let served = match options.cert_manager {
        true => format!("--webhook-cert-dir={FOLDER}"),
        false => format!("--webhook-service={}", named(name)),
    };
    if options.cert_manager {
        pod["volumes"] = json!([{ "name": "webhooks", "secret": { "secretName": named(name) } }]);
    }
    let container = &mut pod["containers"][0];
    if options.cert_manager {
        container["volumeMounts"] = json!([{ "name": "webhooks", "mountPath": FOLDER, "readOnly": true }]);
    }
    if let Some(arguments) = container["args"].as_array_mut() {
        arguments.push(served.into());
    }
    if let Some(ports) = container["ports"].as_array_mut() {
        ports.push(json!({ "name": "webhooks", "containerPort": PORT }));
    }
    // The API server hears some seconds later than the pod that the pod is about to go.
    container["lifecycle"] = json!({ "preStop": { "sleep": { "seconds": 5 } } });
}

/// Says in the CRDs of an operator who converts them.
pub(super) fn convert(definition: &mut Value, name: &str, operator: &OperatorDescription, options: &Options) {
    let Some(webhooks) = &operator.webhooks else { return };
    let converted = |one: &String| definition["metadata"]["name"] == **one;
    if !webhooks.conversions.iter().any(converted) {
        return;
    }
    let service = json!({ "name": named(name), "namespace": options.namespace, "path": "/convert" });
    definition["spec"]["conversion"] = json!({
        "strategy": "Webhook",
        "webhook": { "clientConfig": { "service": service }, "conversionReviewVersions": ["v1"] },
    });
    if options.cert_manager {
        definition["metadata"]["annotations"][INJECT] = injected(name, options).into();
    }
}

fn injected(name: &str, options: &Options) -> String {
    format!("{}/{}", options.namespace, named(name))
}

fn service(name: &str, options: &Options) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": named(name), "namespace": options.namespace, "labels": labels(name) },
        "spec": {
            "selector": { "app.kubernetes.io/name": name },
            "ports": [{ "name": "webhooks", "port": 443, "targetPort": "webhooks" }],
        },
    })
}

/// An API server comes from outside of the pod network, and so from nowhere that a policy could name.
fn network_policy(name: &str, options: &Options) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": { "name": named(name), "namespace": options.namespace, "labels": labels(name) },
        "spec": {
            "podSelector": { "matchLabels": { "app.kubernetes.io/name": name } },
            "policyTypes": ["Ingress"],
            "ingress": [{ "ports": [{ "port": PORT, "protocol": "TCP" }] }],
        },
    })
}

fn configurations(name: &str, webhooks: &DescribedWebhooks, options: &Options) -> Vec<Value> {
    let both = [("Mutating", &webhooks.mutating), ("Validating", &webhooks.validating)];
    let some = both.into_iter().filter(|(_, all)| !all.is_empty());
    some.map(|(sort, all)| {
        let mut metadata = json!({ "name": named(name), "labels": labels(name) });
        if options.cert_manager {
            metadata["annotations"] = json!({ INJECT: injected(name, options) });
        }
        let led: Vec<Value> = all
            .iter()
            .map(|one| {
                let mut one = one.clone();
                one["clientConfig"]["service"]["name"] = named(name).into();
                one["clientConfig"]["service"]["namespace"] = options.namespace.as_str().into();
                one
            })
            .collect();
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": format!("{sort}WebhookConfiguration"),
            "metadata": metadata, "webhooks": led,
        })
    })
    .collect()
}

/// It shares its certificates with its other replicas, and fills in whom to trust; nothing else, and nowhere else.
fn roles(name: &str, webhooks: &DescribedWebhooks, options: &Options) -> Vec<Value> {
    let own = named(name);
    let secrets = vec![
        json!({ "apiGroups": [""], "resources": ["secrets"], "verbs": ["create"] }),
        json!({
            "apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "patch"],
            "resourceNames": [own, format!("{own}-ca")],
        }),
    ];
    let mut cluster = Vec::new();
    for (resource, all) in [
        ("mutatingwebhookconfigurations", &webhooks.mutating),
        ("validatingwebhookconfigurations", &webhooks.validating),
    ] {
        if !all.is_empty() {
            cluster.push(json!({
                "apiGroups": ["admissionregistration.k8s.io"], "resources": [resource],
                "verbs": ["get", "patch"], "resourceNames": [own],
            }));
        }
    }
    if !webhooks.conversions.is_empty() {
        cluster.push(json!({
            "apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"],
            "verbs": ["get", "patch"], "resourceNames": webhooks.conversions,
        }));
    }
    let mut all = super::rbac::bound(&own, name, Some(&options.namespace), &secrets, options);
    all.extend(super::rbac::bound(&own, name, None, &cluster, options));
    all
}

/// A certificate that signs itself: whoever is to trust it is told by cert-manager's cainjector.
fn certificate(name: &str, options: &Options) -> Vec<Value> {
    let own = named(name);
    let metadata = json!({ "name": own, "namespace": options.namespace, "labels": labels(name) });
    let host = format!("{own}.{}.svc", options.namespace);
    vec![
        json!({
            "apiVersion": "cert-manager.io/v1", "kind": "Issuer", "metadata": metadata,
            "spec": { "selfSigned": {} },
        }),
        json!({
            "apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": metadata,
            "spec": {
                "dnsNames": [host, format!("{host}.cluster.local")],
                "issuerRef": { "kind": "Issuer", "name": own },
                "secretName": own,
            },
        }),
    ]
}

#[cfg(test)]
mod tests {
    use crate::description::OperatorDescription;
    use crate::files::File;
    use crate::generate::{Options, manifests};
    use serde_json::{Value, json};

    fn files(cert_manager: bool) -> Vec<File> {
        let hook = json!({"name": "validate.v1.sites.example.dev", "clientConfig": {"service": {"path": "/validate"}}});
        let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}});
        let definition = json!({"metadata": {"name": "sites.example.dev"}, "spec": {"group": "example.dev", "scope": "Namespaced",
            "names": {"kind": "Site", "plural": "sites"}, "versions": [version]}});
        let described = json!({"name": "shop", "definitions": [definition],
            "webhooks": {"validating": [hook], "mutating": [], "conversions": ["sites.example.dev"]}});
        let operator = OperatorDescription::read(&described.to_string()).unwrap();
        manifests(
            &operator,
            &Options { namespace: "shop-system".into(), image: "shop:1".into(), cert_manager },
        )
    }

    fn text(files: &[File], path: &str) -> String {
        files
            .iter()
            .find(|file| file.path == std::path::Path::new(path))
            .map(|file| file.text.clone())
            .unwrap_or_default()
    }

    fn objects(files: &[File], path: &str) -> Vec<Value> {
        text(files, path).split("\n---\n").map(|one| serde_saphyr::from_str(one).unwrap()).collect()
    }

    #[test]
    fn the_api_server_is_led_to_the_service() {
        let files = files(false);
        let configuration = &objects(&files, "webhook/configurations.yaml")[0];
        assert_eq!(configuration["kind"], "ValidatingWebhookConfiguration");
        let service = json!({"name": "shop-webhooks", "namespace": "shop-system", "path": "/validate"});
        assert_eq!(configuration["webhooks"][0]["clientConfig"], json!({ "service": service }));
        let definition = &objects(&files, "crd/example.dev_sites.yaml")[0];
        assert_eq!(
            definition["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["path"],
            "/convert"
        );
        assert!(text(&files, "manager/deployment.yaml").contains("--webhook-service=shop-webhooks"));
        // Charts do not fill in the files of CRDs: there the operator says who converts.
        assert!(!text(&files, "chart/crds/example.dev_sites.yaml").contains("conversion"));
        assert!(
            text(&files, "chart/templates/configurations.yaml")
                .contains("namespace: {{ .Release.Namespace }}")
        );
    }

    #[test]
    fn it_may_write_what_is_its_own_and_nothing_else() {
        let roles = objects(&files(false), "rbac/webhooks.yaml");
        let rules = |kind: &str| roles.iter().find(|role| role["kind"] == kind).unwrap()["rules"].clone();
        assert_eq!(
            rules("ClusterRole"),
            json!([
                {"apiGroups": ["admissionregistration.k8s.io"], "resources": ["validatingwebhookconfigurations"],
                 "verbs": ["get", "patch"], "resourceNames": ["shop-webhooks"]},
                {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"],
                 "verbs": ["get", "patch"], "resourceNames": ["sites.example.dev"]},
            ])
        );
        assert_eq!(rules("Role")[1]["resourceNames"], json!(["shop-webhooks", "shop-webhooks-ca"]));
    }

    #[test]
    fn with_cert_manager_it_may_write_nothing() {
        let files = files(true);
        assert_eq!(text(&files, "rbac/webhooks.yaml"), "");
        let inject = "cert-manager.io/inject-ca-from: shop-system/shop-webhooks";
        for path in ["webhook/configurations.yaml", "crd/example.dev_sites.yaml"] {
            assert!(text(&files, path).contains(inject), "{path}");
        }
        let deployment = text(&files, "manager/deployment.yaml");
        assert!(deployment.contains("--webhook-cert-dir=/etc/webhook-certificates"), "{deployment}");
        assert_eq!(objects(&files, "webhook/certificate.yaml")[1]["spec"]["secretName"], "shop-webhooks");
    }
}
