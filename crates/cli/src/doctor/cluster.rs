//! Checks the cluster of the current context: whether it answers, its version, and what the user is authorized to do.

use crate::connect;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Client;
use kube::api::{Api, PostParams};
use std::path::Path;
use std::time::Duration;
use windlass_clock::Clock;
use windlass_node::doctor::{Finding, Level};

/// The longest that a cluster may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The permissions that commands need: command, group, resource, verb.
const NEEDED: [(&str, &str, &str, &str); 5] = [
    ("install", "apiextensions.k8s.io", "customresourcedefinitions", "patch"),
    ("uninstall", "apiextensions.k8s.io", "customresourcedefinitions", "delete"),
    ("deploy", "apps", "deployments", "patch"),
    ("deploy", "rbac.authorization.k8s.io", "clusterroles", "patch"),
    ("deploy", "", "namespaces", "patch"),
];

/// The API's answer about a permission.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Answer {
    May,
    MayNot,
    /// It cannot be asked.
    Untold(String),
}

pub(super) async fn examine(kubeconfig: Option<&Path>, context: Option<&str>) -> Vec<Finding> {
    let reached = Clock::real().timeout(PATIENCE, connect::to(kubeconfig, context)).await;
    let (client, config) = match reached {
        Ok(Ok(reached)) => reached,
        Ok(Err(error)) => return vec![unreached(&format!("{error:#}"))],
        Err(_) => return vec![unreached("it does not answer")],
    };
    let server = config.cluster_url.to_string();
    let version = client.apiserver_version().await.map(|info| info.git_version).unwrap_or_default();
    let mut answers = Vec::new();
    for (command, group, resource, verb) in NEEDED {
        answers.push((command, resource, verb, asked(&client, group, resource, verb).await));
    }
    vec![reached_finding(&server, &version), permissions(&answers)]
}

async fn asked(client: &Client, group: &str, resource: &str, verb: &str) -> Answer {
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                group: Some(group.to_owned()),
                resource: Some(resource.to_owned()),
                verb: Some(verb.to_owned()),
                ..Default::default()
            }),
            ..Default::default()
        },
        ..Default::default()
    };
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    match Clock::real().timeout(PATIENCE, reviews.create(&PostParams::default(), &review)).await {
        Ok(Ok(review)) if review.status.as_ref().is_some_and(|status| status.allowed) => Answer::May,
        Ok(Ok(_)) => Answer::MayNot,
        // Who may not even ask may do nothing.
        Ok(Err(kube::Error::Api(status))) if matches!(status.code, 401 | 403) => Answer::MayNot,
        Ok(Err(kube::Error::Api(status))) => Answer::Untold(status.message.clone()),
        Ok(Err(error)) => Answer::Untold(error.to_string()),
        Err(_) => Answer::Untold("it does not answer".to_owned()),
    }
}

fn finding(about: &str, level: Level, found: String, remedy: Option<String>) -> Finding {
    Finding { about: about.to_owned(), level, found, remedy }
}

/// No cluster is no problem: one can be had.
fn unreached(why: &str) -> Finding {
    let remedy = "windlass cluster up starts one, or name another: --kubeconfig, --context, KUBECONFIG";
    finding("cluster", Level::Warning, format!("none is reached: {why}"), Some(remedy.to_owned()))
}

fn reached_finding(server: &str, version: &str) -> Finding {
    finding("cluster", Level::Ok, format!("{version} at {server}"), None)
}

/// What the answers mean: pure.
fn permissions(answers: &[(&str, &str, &str, Answer)]) -> Finding {
    let lacking: Vec<String> = answers
        .iter()
        .filter(|(.., answer)| *answer == Answer::MayNot)
        .map(|(command, resource, verb, _)| format!("{verb} {resource} ({command})"))
        .collect();
    if !lacking.is_empty() {
        let remedy = "ask who administers the cluster, or use another context or a cluster of your own: windlass cluster up";
        return finding(
            "permissions",
            Level::Warning,
            format!("you may not {}", lacking.join(", ")),
            Some(remedy.to_owned()),
        );
    }
    let untold = answers.iter().find_map(|(.., answer)| match answer {
        Answer::Untold(why) => Some(why),
        _ => None,
    });
    match untold {
        Some(why) => finding("permissions", Level::Ok, format!("the cluster does not tell: {why}"), None),
        None => finding("permissions", Level::Ok, "you may install and deploy operators".to_owned(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_may_not_is_named_with_the_command_that_needs_it() {
        let may = ("install", "customresourcedefinitions", "patch", Answer::May);
        let may_not = ("deploy", "clusterroles", "patch", Answer::MayNot);
        let untold = ("deploy", "namespaces", "patch", Answer::Untold("not found".to_owned()));
        let found = permissions(&[may.clone(), may_not, untold.clone()]);
        assert_eq!(
            (found.level, found.found.as_str()),
            (Level::Warning, "you may not patch clusterroles (deploy)")
        );
        assert_eq!(permissions(std::slice::from_ref(&may)).level, Level::Ok);
        assert!(permissions(&[may, untold]).found.contains("not found"));
    }
}
