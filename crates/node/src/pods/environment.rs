//! A container's environment: Service variables, `envFrom`, then `env`; later ones take precedence. Pure.

use crate::references::downward_api::{NodeFields, field, resource};
use crate::references::expand::expand;
use crate::references::objects::Objects;
use k8s_openapi::api::core::v1::{Container, EnvVarSource, Pod, Service};
use std::collections::BTreeMap;

/// What a container's environment is made of, besides its own `env`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sources<'a> {
    /// ConfigMaps and Secrets of the pod's namespace.
    pub(crate) objects: &'a Objects,
    /// The Service variables.
    pub(crate) services: &'a BTreeMap<String, String>,
    /// What the downward API shows of the node.
    pub(crate) node: &'a NodeFields,
    /// The image's environment.
    pub(crate) image: &'a [(String, String)],
}

/// The environment of a container. An error says what is missing, in a kubelet's words.
pub(crate) fn environment(
    pod: &Pod,
    container: &Container,
    sources: &Sources<'_>,
) -> Result<BTreeMap<String, String>, String> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let mut own: BTreeMap<String, String> = BTreeMap::new();
    for from in container.env_from.iter().flatten() {
        let prefix = from.prefix.as_deref().unwrap_or_default();
        let mut put = |key: &str, value: String| drop(own.insert(format!("{prefix}{key}"), value));
        if let Some(reference) = &from.config_map_ref {
            match sources.objects.config_map(&reference.name, reference.optional)? {
                Some(map) => {
                    map.data.iter().flatten().for_each(|(key, value)| put(key, value.clone()));
                }
                None => continue,
            }
        }
        if let Some(reference) = &from.secret_ref {
            match sources.objects.secret(&reference.name, reference.optional)? {
                Some(secret) => {
                    secret.data.iter().flatten().for_each(|(key, value)| put(key, text(&value.0)));
                }
                None => continue,
            }
        }
    }
    for variable in container.env.iter().flatten() {
        let value = match (variable.value.as_deref().unwrap_or_default(), &variable.value_from) {
            ("", Some(from)) => match value_from(pod, container, namespace, from, sources)? {
                Some(value) => value,
                None => continue,
            },
            (written, _) => expand(written, |name| {
                own.get(name).or_else(|| sources.services.get(name)).map(String::as_str)
            }),
        };
        own.insert(variable.name.clone(), value);
    }
    let mut whole: BTreeMap<String, String> = sources.image.iter().cloned().collect();
    whole.extend(sources.services.clone());
    whole.extend(own);
    Ok(whole)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn value_from(
    pod: &Pod,
    container: &Container,
    namespace: &str,
    from: &EnvVarSource,
    sources: &Sources<'_>,
) -> Result<Option<String>, String> {
    if let Some(reference) = &from.field_ref {
        return field(pod, sources.node, &reference.field_path).map(Some);
    }
    if let Some(reference) = &from.resource_field_ref {
        return resource(pod, Some(container), reference, sources.node).map(Some);
    }
    if let Some(reference) = &from.config_map_key_ref {
        let (name, key) = (&reference.name, &reference.key);
        let Some(map) = sources.objects.config_map(name, reference.optional)? else { return Ok(None) };
        let value = map.data.as_ref().and_then(|data| data.get(key));
        return match value {
            None if reference.optional != Some(true) => {
                Err(format!("couldn't find key {key} in ConfigMap {namespace}/{name}"))
            }
            value => Ok(value.cloned()),
        };
    }
    if let Some(reference) = &from.secret_key_ref {
        let (name, key) = (&reference.name, &reference.key);
        let Some(secret) = sources.objects.secret(name, reference.optional)? else { return Ok(None) };
        let value = secret.data.as_ref().and_then(|data| data.get(key));
        return match value {
            None if reference.optional != Some(true) => {
                Err(format!("couldn't find key {key} in Secret {namespace}/{name}"))
            }
            value => Ok(value.map(|value| text(&value.0))),
        };
    }
    Err("a variable's value comes from something that this node does not know".to_owned())
}

/// The variables for the Services of the pod's namespace, and always for `kubernetes.default`.
pub(crate) fn services<'a>(
    all: impl Iterator<Item = &'a Service>,
    namespace: &str,
    links: bool,
) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    for service in all {
        let (name, within) = (service.metadata.name.as_deref(), service.metadata.namespace.as_deref());
        let master = (within, name) == (Some("default"), Some("kubernetes"));
        // One's own namespace has the word where the name is the same.
        let visible = if within == Some(namespace) { links || master } else { master };
        let shadowed =
            master && within != Some(namespace) && variables.contains_key("KUBERNETES_SERVICE_HOST");
        if visible && !shadowed {
            service_variables(service, &mut variables);
        }
    }
    variables
}

fn service_variables(service: &Service, variables: &mut BTreeMap<String, String>) {
    let Some(spec) = &service.spec else { return };
    let address = spec.cluster_ip.as_deref().unwrap_or_default();
    let ports = spec.ports.as_deref().unwrap_or_default();
    let Some(first) = ports.first().filter(|_| !matches!(address, "" | "None")) else { return };
    let shout = |name: &str| name.replace('-', "_").to_uppercase();
    let prefix = shout(service.metadata.name.as_deref().unwrap_or_default());
    let mut put = |name: String, value: String| drop(variables.insert(name, value));
    put(format!("{prefix}_SERVICE_HOST"), address.to_owned());
    put(format!("{prefix}_SERVICE_PORT"), first.port.to_string());
    for (index, port) in ports.iter().enumerate() {
        if let Some(name) = port.name.as_deref().filter(|name| !name.is_empty()) {
            put(format!("{prefix}_SERVICE_PORT_{}", shout(name)), port.port.to_string());
        }
        let protocol = port.protocol.as_deref().unwrap_or("TCP");
        let at = format!("{}://{address}:{}", protocol.to_lowercase(), port.port);
        if index == 0 {
            put(format!("{prefix}_PORT"), at.clone());
        }
        let one = format!("{prefix}_PORT_{}_{}", port.port, protocol.to_uppercase());
        put(format!("{one}_PROTO"), protocol.to_lowercase());
        put(format!("{one}_PORT"), port.port.to_string());
        put(format!("{one}_ADDR"), address.to_owned());
        put(one, at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn objects() -> Objects {
        let mut objects = Objects::default();
        let map = json!({"data": {"A": "1", "B": "2"}});
        objects.config_maps.insert("m".into(), std::sync::Arc::new(serde_json::from_value(map).unwrap()));
        let secret = json!({"data": {"P": "cHc="}});
        objects.secrets.insert("s".into(), std::sync::Arc::new(serde_json::from_value(secret).unwrap()));
        objects
    }

    fn made(container: Value) -> Result<BTreeMap<String, String>, String> {
        let container: Container = serde_json::from_value(container).unwrap();
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "ns"}, "spec": {"containers": [container]},
        }))
        .unwrap();
        let services = [("WEB_SERVICE_HOST".to_owned(), "10.96.0.7".to_owned())].into();
        let image = [("PATH".to_owned(), "/bin".to_owned()), ("A".to_owned(), "image".to_owned())];
        let node = NodeFields::default();
        let sources = Sources { objects: &objects(), services: &services, node: &node, image: &image };
        environment(&pod, &container, &sources)
    }

    #[test]
    fn later_words_win_and_see_earlier_ones() {
        let env = made(json!({"name": "c",
        "envFrom": [{"configMapRef": {"name": "m"}}, {"prefix": "X_", "secretRef": {"name": "s"}},
            {"configMapRef": {"name": "absent", "optional": true}}],
        "env": [
            {"name": "B", "value": "own"},
            {"name": "ALL", "value": "$(A) $(B) $(X_P) $(WEB_SERVICE_HOST) $(LATER)"},
            {"name": "LATER", "value": "x"},
            {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "P", "valueFrom": {"secretKeyRef": {"name": "s", "key": "P"}}},
            {"name": "NOT", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "z", "optional": true}}},
        ]}))
        .unwrap();
        assert_eq!(env["ALL"], "1 own pw 10.96.0.7 $(LATER)");
        assert_eq!((env["A"].as_str(), env["PATH"].as_str(), env["NAME"].as_str()), ("1", "/bin", "p"));
        assert_eq!((env["P"].as_str(), env.contains_key("NOT")), ("pw", false));
    }

    #[test]
    fn what_is_missing_is_named() {
        let lacks = |env: Value| made(json!({"name": "c", "env": [env]})).unwrap_err();
        let key = json!({"name": "V", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "z"}}});
        assert_eq!(lacks(key), "couldn't find key z in ConfigMap ns/m");
        let object = json!({"name": "V", "valueFrom": {"secretKeyRef": {"name": "gone", "key": "z"}}});
        assert_eq!(lacks(object), "secret \"gone\" not found");
    }

    #[test]
    fn services_of_the_namespace_are_told_and_the_api_always() {
        let service = |namespace: &str, name: &str, address: &str| -> Service {
            serde_json::from_value(json!({
                "metadata": {"name": name, "namespace": namespace},
                "spec": {"clusterIP": address, "ports": [{"name": "http", "port": 80}, {"name": "dns-udp", "port": 53, "protocol": "UDP"}]},
            }))
            .unwrap()
        };
        let all = [
            service("default", "kubernetes", "10.96.0.1"),
            service("ns", "my-web", "10.96.0.9"),
            service("ns", "headless", "None"),
            service("other", "far", "10.96.0.10"),
        ];
        let visible = services(all.iter(), "ns", true);
        assert_eq!(visible["KUBERNETES_SERVICE_HOST"], "10.96.0.1");
        assert_eq!(visible["MY_WEB_SERVICE_PORT_DNS_UDP"], "53");
        assert_eq!(visible["MY_WEB_PORT_53_UDP"], "udp://10.96.0.9:53");
        assert_eq!(visible["MY_WEB_PORT"], "tcp://10.96.0.9:80");
        assert!(!visible.keys().any(|name| name.starts_with("FAR") || name.starts_with("HEADLESS")));
        let visible = services(all.iter(), "ns", false);
        assert!(visible.contains_key("KUBERNETES_PORT_80_TCP_ADDR") && !visible.contains_key("MY_WEB_PORT"));
    }
}
