//! The default service account of every namespace.

use crate::targets::whole_cluster;
use anyhow::ensure;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use windlass_harness::{Suite, Target};
use windlass_testing::named;

/// All of them.
pub fn behaviours(suite: Suite) -> Suite {
    suite.test("a namespace has a default service account, which is recreated", has_an_account)
}

async fn has_an_account(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let name = format!("{}-more", cluster.namespace());
    cluster.create(named::<Namespace>(&name)).await?;
    let there = cluster.in_namespace(&name);
    let account = there.eventually::<ServiceAccount>("default").exists().await?;
    there.delete::<ServiceAccount>("default").await?;
    let again = there.eventually::<ServiceAccount>("default").exists().await?;
    ensure!(account.metadata.uid != again.metadata.uid, "it is another one");
    Ok(())
}
