//! Admission plug-ins by their names, and which of them a server leaves out.

use std::fmt;
use std::str::FromStr;

/// An admission plug-in of a stock API server that this one has too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is named as in Kubernetes' documentation, which says what it does")]
pub enum AdmissionPlugin {
    NamespaceLifecycle,
    LimitRanger,
    ServiceAccount,
    NodeRestriction,
    PodSecurity,
    Priority,
    DefaultTolerationSeconds,
    DefaultStorageClass,
    PersistentVolumeClaimResize,
    RuntimeClass,
    CertificateApproval,
    CertificateSigning,
    CertificateSubjectRestriction,
    DefaultIngressClass,
    MutatingAdmissionPolicy,
    MutatingAdmissionWebhook,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionWebhook,
    ResourceQuota,
}

impl AdmissionPlugin {
    /// All of them, in the order in which they are asked: that of the reference, whatever order they are named in.
    pub const ALL: [Self; 19] = [
        Self::NamespaceLifecycle,
        Self::LimitRanger,
        Self::ServiceAccount,
        Self::NodeRestriction,
        Self::PodSecurity,
        Self::Priority,
        Self::DefaultTolerationSeconds,
        Self::DefaultStorageClass,
        Self::PersistentVolumeClaimResize,
        Self::RuntimeClass,
        Self::CertificateApproval,
        Self::CertificateSigning,
        Self::CertificateSubjectRestriction,
        Self::DefaultIngressClass,
        Self::MutatingAdmissionPolicy,
        Self::MutatingAdmissionWebhook,
        Self::ValidatingAdmissionPolicy,
        Self::ValidatingAdmissionWebhook,
        Self::ResourceQuota,
    ];
}

/// Those of a stock API server that this one does not have, or has always.
const OTHERS: [&str; 22] = [
    "AlwaysAdmit",
    "AlwaysDeny",
    "AlwaysPullImages",
    "ClusterTrustBundleAttest",
    "DenyServiceExternalIPs",
    "EventRateLimit",
    "ExtendedResourceToleration",
    "ImagePolicyWebhook",
    "JobValidation",
    "LimitPodHardAntiAffinityTopology",
    "NamespaceAutoProvision",
    "NamespaceExists",
    "NodeDeclaredFeatureValidator",
    "OwnerReferencesPermissionEnforcement",
    "PodGroupProtection",
    "PodGroupWorkloadExists",
    "PodNodeSelector",
    "PodResizeValidator",
    "PodTolerationRestriction",
    "PodTopologyLabels",
    "StorageObjectInUseProtection",
    "TaintNodesByCondition",
];

/// Why a name is not that of an [`AdmissionPlugin`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPlugin {
    /// Kubernetes has such a plug-in, and this server cannot switch it on or off.
    #[error("the admission plug-in {0} cannot be switched on or off here")]
    NotSwitched(String),
    /// There is no such plug-in.
    #[error("there is no admission plug-in {0:?}")]
    Unknown(String),
}

impl FromStr for AdmissionPlugin {
    type Err = InvalidPlugin;

    fn from_str(name: &str) -> Result<Self, InvalidPlugin> {
        match Self::ALL.iter().find(|plugin| plugin.to_string() == name) {
            Some(plugin) => Ok(*plugin),
            None if OTHERS.contains(&name) => Err(InvalidPlugin::NotSwitched(name.to_owned())),
            None => Err(InvalidPlugin::Unknown(name.to_owned())),
        }
    }
}

impl fmt::Display for AdmissionPlugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The plug-ins that a server leaves out.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DisabledPlugins(u32);

impl DisabledPlugins {
    pub(crate) fn contains(self, plugin: AdmissionPlugin) -> bool {
        self.0 & (1 << plugin as u32) != 0
    }
}

impl FromIterator<AdmissionPlugin> for DisabledPlugins {
    fn from_iter<I: IntoIterator<Item = AdmissionPlugin>>(plugins: I) -> Self {
        Self(plugins.into_iter().fold(0, |bits, plugin| bits | (1 << plugin as u32)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_are_known_by_their_names() {
        for plugin in AdmissionPlugin::ALL {
            assert_eq!(plugin.to_string().parse(), Ok(plugin));
        }
        let named = |name: &str| name.parse::<AdmissionPlugin>();
        assert_eq!(named("EventRateLimit"), Err(InvalidPlugin::NotSwitched("EventRateLimit".into())));
        assert_eq!(named("nothing"), Err(InvalidPlugin::Unknown("nothing".into())));
    }

    #[test]
    fn only_what_was_disabled_is() {
        let disabled: DisabledPlugins = [AdmissionPlugin::ServiceAccount].into_iter().collect();
        let left: Vec<_> = AdmissionPlugin::ALL.into_iter().filter(|one| !disabled.contains(*one)).collect();
        assert_eq!(left.len(), AdmissionPlugin::ALL.len() - 1);
        assert!(disabled.contains(AdmissionPlugin::ServiceAccount));
    }
}
