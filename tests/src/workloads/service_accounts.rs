//! The default service account of every namespace.

use crate::targets::whole_cluster;
use anyhow::ensure;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, TokenReviewStatus};
use k8s_openapi::api::core::v1::{Namespace, Secret, ServiceAccount};
use kube::Api;
use serde_json::json;
use windlass_harness::{Suite, Target};
use windlass_testing::{TestCluster, named, object};

/// All of them.
pub fn behaviours(suite: Suite) -> Suite {
    suite
        .test("a namespace has a default service account, which is recreated", has_an_account)
        .test("a secret is filled with a token of its service account", has_a_token)
        .test("a token holds while it is in its secret", holds_while_it_is_there)
        .test("a secret goes with its service account", goes_with_its_account)
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

/// A service account with a secret for its token, and the secret once it has one.
async fn with_a_token(cluster: &TestCluster) -> anyhow::Result<Secret> {
    cluster.create(named::<ServiceAccount>("robot")).await?;
    let annotations = json!({"kubernetes.io/service-account.name": "robot"});
    let kind = "kubernetes.io/service-account-token";
    cluster
        .create(object::<Secret>("robot", json!({"metadata": {"annotations": annotations}, "type": kind})))
        .await?;
    let wait = cluster.eventually::<Secret>("robot");
    wait.is("filled", |secret| secret.data.as_ref().is_some_and(|data| data.contains_key("token"))).await
}

async fn review(cluster: &TestCluster, token: &str) -> anyhow::Result<TokenReviewStatus> {
    let spec = TokenReviewSpec { token: token.to_owned(), ..TokenReviewSpec::default() };
    let review = TokenReview { spec, ..TokenReview::default() };
    let reviews: Api<TokenReview> = Api::all(cluster.client());
    Ok(reviews.create(&Default::default(), &review).await?.status.unwrap_or_default())
}

async fn has_a_token(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let secret = with_a_token(&cluster).await?;
    let account = cluster.get::<ServiceAccount>("robot").await?;
    let uid = account.metadata.uid.unwrap_or_default();
    let annotations = secret.metadata.annotations.unwrap_or_default();
    ensure!(annotations.get("kubernetes.io/service-account.uid") == Some(&uid), "{annotations:?}");
    let data = secret.data.unwrap_or_default();
    let namespace = cluster.namespace();
    ensure!(data.get("namespace").is_some_and(|text| text.0 == namespace.as_bytes()), "{:?}", data.keys());
    let token = String::from_utf8(data["token"].0.clone())?;
    let status = review(&cluster, &token).await?;
    let user = status.user.unwrap_or_default();
    ensure!(status.authenticated == Some(true) && user.uid == Some(uid), "{user:?} {:?}", status.error);
    ensure!(user.username == Some(format!("system:serviceaccount:{namespace}:robot")), "{user:?}");
    ensure!(user.extra.is_none(), "{user:?}");
    Ok(())
}

/// Waits until a token is refused: the reference reads Secrets from a cache, and remembers for seconds what it believed.
async fn is_refused(cluster: &TestCluster, token: &str, why: &str) -> anyhow::Result<()> {
    let refused = |status: &TokenReviewStatus| status.error.as_deref() == Some(why);
    cluster.until(&format!("the token is refused: {why}"), || review(cluster, token), refused).await?;
    Ok(())
}

async fn holds_while_it_is_there(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let secret = with_a_token(&cluster).await?;
    let token = String::from_utf8(secret.data.unwrap_or_default()["token"].0.clone())?;
    cluster.patch::<Secret>("robot", json!({"data": {"token": "eA=="}})).await?;
    is_refused(&cluster, &token, "[invalid bearer token, Token does not match server's copy]").await?;
    cluster.delete::<Secret>("robot").await?;
    is_refused(&cluster, &token, "[invalid bearer token, Token has been invalidated]").await
}

async fn goes_with_its_account(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    with_a_token(&cluster).await?;
    cluster.delete::<ServiceAccount>("robot").await?;
    cluster.eventually::<Secret>("robot").is_deleted().await
}
