//! Which default objects a namespace is missing.

use super::{ACCOUNT, ROOT_CA};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// The description annotation that Kubernetes puts on the ConfigMap.
const DESCRIPTION: (&str, &str) = (
    "kubernetes.io/description",
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service \
     IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.",
);

/// An object that a namespace is missing.
#[derive(Debug, PartialEq)]
pub(super) enum Missing {
    Account(ServiceAccount),
    RootCa(ConfigMap),
    StaleRootCa(ConfigMap),
}

/// What to create in a namespace, unless it is being deleted.
pub(super) fn missing(
    namespace: &Namespace,
    account: Option<&ServiceAccount>,
    map: Option<&ConfigMap>,
    root_ca: Option<&str>,
) -> Vec<Missing> {
    if namespace.metadata.deletion_timestamp.is_some() {
        return Vec::new();
    }
    let mut missing = Vec::new();
    let meta = |name: &str| ObjectMeta {
        name: Some(name.to_owned()),
        namespace: namespace.metadata.name.clone(),
        ..ObjectMeta::default()
    };
    if account.is_none() {
        missing
            .push(Missing::Account(ServiceAccount { metadata: meta(ACCOUNT), ..ServiceAccount::default() }));
    }
    let Some(root_ca) = root_ca else { return missing };
    let data = Some([(ROOT_CA.1.to_owned(), root_ca.to_owned())].into());
    match map {
        None => {
            let annotations = Some([(DESCRIPTION.0.to_owned(), DESCRIPTION.1.to_owned())].into());
            let metadata = ObjectMeta { annotations, ..meta(ROOT_CA.0) };
            missing.push(Missing::RootCa(ConfigMap { metadata, data, ..ConfigMap::default() }));
        }
        Some(map) if map.data != data => {
            missing.push(Missing::StaleRootCa(ConfigMap { data, ..map.clone() }));
        }
        Some(_) => {}
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    fn namespace() -> Namespace {
        let metadata = ObjectMeta { name: Some("shop".into()), ..ObjectMeta::default() };
        Namespace { metadata, ..Namespace::default() }
    }

    #[test]
    fn a_new_namespace_lacks_both_and_a_furnished_one_nothing() {
        let first = missing(&namespace(), None, None, Some("pem"));
        let [Missing::Account(account), Missing::RootCa(map)] = &first[..] else { panic!("{first:?}") };
        assert_eq!(account.metadata.namespace.as_deref(), Some("shop"));
        assert!(missing(&namespace(), Some(account), Some(map), Some("pem")).is_empty());
        assert!(matches!(
            &missing(&namespace(), Some(account), Some(map), Some("new"))[..],
            [Missing::StaleRootCa(_)]
        ));
    }

    #[test]
    fn one_that_goes_gets_nothing_new() {
        let mut terminating = namespace();
        terminating.metadata.deletion_timestamp = Some(Time(jiff::Timestamp::UNIX_EPOCH));
        assert!(missing(&terminating, None, None, Some("pem")).is_empty());
    }
}
