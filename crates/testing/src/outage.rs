//! An outage of the API.

use crate::cluster::TestCluster;
use crate::faults::{Act, Pattern, RuleId, Which};

/// The API is unreachable, for everyone or for one user, until this is dropped: no request arrives, and every watch is closed.
///
/// ```
/// use windlass_testing::{Outage, TestCluster, config_map};
/// # #[tokio::main]
/// # async fn main() {
/// let cluster = TestCluster::api_only();
/// let outage = Outage::for_everyone(&cluster);
/// assert!(cluster.create(config_map("a")).await.is_err());
/// drop(outage);
/// assert!(cluster.create(config_map("a")).await.is_ok());
/// # }
/// ```
#[derive(Debug)]
pub struct Outage {
    cluster: TestCluster,
    rule: RuleId,
}

impl Outage {
    /// For everyone.
    pub fn for_everyone(cluster: &TestCluster) -> Self {
        Self::of(cluster, Pattern::any())
    }

    /// For the user of this name: `operator` is who [`TestCluster::run`] runs.
    pub fn for_user(cluster: &TestCluster, user: &str) -> Self {
        Self::of(cluster, Pattern::any().user(user))
    }

    fn of(cluster: &TestCluster, requests: Pattern) -> Self {
        let faults = cluster.faults();
        let rule = faults.add(requests.clone().then(Which::Every, Act::LoseRequest));
        faults.drop_watches(&requests.verbs(&["watch"]));
        Self { cluster: cluster.clone(), rule }
    }
}

impl Drop for Outage {
    fn drop(&mut self) {
        self.cluster.faults().remove(self.rule);
    }
}
