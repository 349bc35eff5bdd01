//! What an archive consists of. It goes on when its database is gone.

use crate::api::v1alpha1::{SampleDBArchive, SampleDBArchiveStatus};
use crate::children::archive;
use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt;
use windlass::{Observed, Plan, Reasoned, Refusal, Until};

#[derive(Debug)]
enum Why {
    KeepsOthersOut,
    Encrypts,
    KeepsBackups,
    IsReached,
    TakesBackups,
    PodNotReady,
}

impl Reasoned for Why {
    fn message(&self) -> String {
        let message = match self {
            Self::KeepsOthersOut => "whoever asks has a token that nobody chose",
            Self::Encrypts => "whoever asks verifies whom they talk to",
            Self::KeepsBackups => "a volume for the backups",
            Self::IsReached => "the archive is reached by name",
            Self::TakesBackups => "one pod takes and hands out backups",
            Self::PodNotReady => "the archive's pod is not ready",
        };
        message.to_owned()
    }
}

/// What an archive needs, given what is there. `agent_image` brings its program.
///
/// # Errors
/// When it asks for what its controller does not watch.
pub fn decide(own: &SampleDBArchive, observed: &Observed, agent_image: &str) -> Result<Plan, Refusal> {
    let (secret, token) = archive::secret(own);
    let (authority, generate_authority) = archive::certificate_authority(own);
    let (certificate, generate_certificate) = archive::certificate(own);
    let plan = Plan::new()
        .create_once(secret, token, Why::KeepsOthersOut)
        .create_once(authority, generate_authority, Why::Encrypts)
        .create_once(certificate, generate_certificate, Why::Encrypts)
        .apply(archive::claim(own), Why::KeepsBackups)
        .apply(archive::service(own), Why::IsReached)
        .apply(archive::deployment(own, agent_image), Why::TakesBackups);
    let pod = observed.get::<Deployment>(&archive::name(&own.name_any()))?;
    let ready = pod.and_then(|pod| pod.status.clone()).is_some_and(|status| status.ready_replicas > Some(0));
    let plan = plan.status(SampleDBArchiveStatus { ready, conditions: Vec::new() });
    Ok(if ready { plan } else { plan.wait(Why::PodNotReady, Until::Change) })
}
