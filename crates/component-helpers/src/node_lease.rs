//! The heartbeat of a node: its Lease in `kube-node-lease`.

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, OwnerReference};
use kube::Client;
use kube::api::{Api, PostParams};
use windlass_clock::Clock;

/// The namespace of node Leases.
const NAMESPACE: &str = "kube-node-lease";
/// How long a Lease is valid without renewal.
const DURATION_SECONDS: i32 = 40;

/// The Lease of a node, renewed by its kubelet.
#[derive(Debug)]
pub struct NodeLease {
    name: String,
    uid: String,
    last: Option<Lease>,
}

impl NodeLease {
    /// The Lease of the node with this name and UID, which owns it.
    pub fn new(name: &str, uid: &str) -> Self {
        Self { name: name.to_owned(), uid: uid.to_owned(), last: None }
    }

    /// Renews the Lease, or creates it. After a failure the next renewal reads it again.
    ///
    /// # Errors
    /// When the API rejects the write or cannot be reached.
    pub async fn renew(&mut self, client: &Client, clock: &Clock) -> Result<(), kube::Error> {
        let leases = Api::<Lease>::namespaced(client.clone(), NAMESPACE);
        let last = match self.last.take() {
            Some(last) => Some(last),
            None => leases.get_opt(&self.name).await?,
        };
        let renewed = match last {
            Some(mut lease) => {
                lease.spec = Some(self.spec(clock.now()));
                leases.replace(&self.name, &PostParams::default(), &lease).await?
            }
            None => leases.create(&PostParams::default(), &self.lease(clock.now())).await?,
        };
        self.last = Some(renewed);
        Ok(())
    }

    fn spec(&self, now: Timestamp) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(self.name.clone()),
            lease_duration_seconds: Some(DURATION_SECONDS),
            renew_time: Some(MicroTime(now)),
            ..LeaseSpec::default()
        }
    }

    fn lease(&self, now: Timestamp) -> Lease {
        let owner = OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Node".to_owned(),
            name: self.name.clone(),
            uid: self.uid.clone(),
            ..OwnerReference::default()
        };
        let metadata = ObjectMeta {
            name: Some(self.name.clone()),
            namespace: Some(NAMESPACE.to_owned()),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        };
        Lease { metadata, spec: Some(self.spec(now)) }
    }
}
