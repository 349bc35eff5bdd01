//! What a namespace lacks.

use super::{ACCOUNT, ROOT_CA};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// Says in the map what it is for, as every cluster does.
const DESCRIPTION: (&str, &str) = (
    "kubernetes.io/description",
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service \
     IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.",
);

/// One thing that a namespace lacks.
#[derive(Debug, PartialEq)]
pub(super) enum Lacks {
    Account(ServiceAccount),
    RootCa(ConfigMap),
    OtherRootCa(ConfigMap),
}

/// What is to be made in a namespace, unless it is on its way out.
pub(super) fn lacks(
    namespace: &Namespace,
    account: Option<&ServiceAccount>,
    map: Option<&ConfigMap>,
    root_ca: Option<&str>,
) -> Vec<Lacks> {
    if namespace.metadata.deletion_timestamp.is_some() {
        return Vec::new();
    }
    let mut lacks = Vec::new();
    let meta = |name: &str| ObjectMeta {
        name: Some(name.to_owned()),
        namespace: namespace.metadata.name.clone(),
        ..ObjectMeta::default()
    };
    if account.is_none() {
        lacks.push(Lacks::Account(ServiceAccount { metadata: meta(ACCOUNT), ..ServiceAccount::default() }));
    }
    let Some(root_ca) = root_ca else { return lacks };
    let data = Some([(ROOT_CA.1.to_owned(), root_ca.to_owned())].into());
    match map {
        None => {
            let annotations = Some([(DESCRIPTION.0.to_owned(), DESCRIPTION.1.to_owned())].into());
            let metadata = ObjectMeta { annotations, ..meta(ROOT_CA.0) };
            lacks.push(Lacks::RootCa(ConfigMap { metadata, data, ..ConfigMap::default() }));
        }
        Some(map) if map.data != data => {
            lacks.push(Lacks::OtherRootCa(ConfigMap { data, ..map.clone() }));
        }
        Some(_) => {}
    }
    lacks
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
        let first = lacks(&namespace(), None, None, Some("pem"));
        let [Lacks::Account(account), Lacks::RootCa(map)] = &first[..] else { panic!("{first:?}") };
        assert_eq!(account.metadata.namespace.as_deref(), Some("shop"));
        assert!(lacks(&namespace(), Some(account), Some(map), Some("pem")).is_empty());
        assert!(matches!(
            &lacks(&namespace(), Some(account), Some(map), Some("new"))[..],
            [Lacks::OtherRootCa(_)]
        ));
    }

    #[test]
    fn one_that_goes_gets_nothing_new() {
        let mut going = namespace();
        going.metadata.deletion_timestamp = Some(Time(jiff::Timestamp::UNIX_EPOCH));
        assert!(lacks(&going, None, None, Some("pem")).is_empty());
    }
}
