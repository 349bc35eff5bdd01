//! Who may ask a node for anything: callers with a certificate of the cluster or a token, as far as they are allowed to.

use futures::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{HeaderMap, Method};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::api::{Api, PostParams};

/// Those who may do everything.
const MASTERS: &str = "system:masters";

/// Who the API server is to kubelets.
const API_SERVER: &str = "kube-apiserver-kubelet-client";

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The user's name.
    pub user: String,
    /// The groups that the user is in.
    pub groups: Vec<String>,
}

/// What is to be decided about a caller: a verb on one of the subresources of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access<'a> {
    /// Such as `get`.
    pub verb: &'a str,
    /// Such as `proxy`, which exec and logs belong to, or `stats`.
    pub subresource: &'a str,
}

/// Decides about callers. Members of `system:masters` are let in without being asked about.
pub trait Auth: Send + Sync + 'static {
    /// Whom a bearer token stands for; none if it is not believed.
    fn bearer<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Option<Caller>>;

    /// May the caller do this?
    fn allows<'a>(&'a self, caller: &'a Caller, access: Access<'a>) -> BoxFuture<'a, bool>;
}

/// Lets nobody in but the API server of the same cluster, by its certificate, and members of `system:masters`.
#[derive(Debug, Clone, Copy, Default)]
pub struct ApiServerOnly;

impl Auth for ApiServerOnly {
    fn bearer<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Option<Caller>> {
        Box::pin(std::future::ready(None))
    }

    fn allows<'a>(&'a self, caller: &'a Caller, _: Access<'a>) -> BoxFuture<'a, bool> {
        Box::pin(std::future::ready(caller.user == API_SERVER))
    }
}

/// Asks the API about tokens and about what their bearers may, as a kubelet does. What cannot be asked is refused.
#[derive(Clone)]
pub struct WebhookAuth {
    client: kube::Client,
    node: String,
}

impl WebhookAuth {
    /// A auth for the node of that name.
    pub fn new(client: kube::Client, node: impl Into<String>) -> Self {
        Self { client, node: node.into() }
    }

    async fn review_token(&self, token: &str) -> Option<Caller> {
        let spec = TokenReviewSpec { token: token.to_owned(), ..TokenReviewSpec::default() };
        let review = TokenReview { spec, ..TokenReview::default() };
        let reviews: Api<TokenReview> = Api::all(self.client.clone());
        let review = reviews.create(&PostParams::default(), &review).await;
        let status =
            review.inspect_err(|error| tracing::warn!(%error, "a token cannot be reviewed")).ok()?.status?;
        let user = status.user.filter(|_| status.authenticated == Some(true))?;
        Some(Caller { user: user.username?, groups: user.groups.unwrap_or_default() })
    }

    async fn review_access(&self, caller: &Caller, access: Access<'_>) -> bool {
        let resource = ResourceAttributes {
            verb: Some(access.verb.to_owned()),
            version: Some("v1".to_owned()),
            resource: Some("nodes".to_owned()),
            subresource: Some(access.subresource.to_owned()),
            name: Some(self.node.clone()),
            ..ResourceAttributes::default()
        };
        let spec = SubjectAccessReviewSpec {
            user: Some(caller.user.clone()),
            groups: Some(caller.groups.clone()),
            resource_attributes: Some(resource),
            ..SubjectAccessReviewSpec::default()
        };
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        match reviews.create(&PostParams::default(), &review).await {
            Ok(review) => review.status.is_some_and(|status| status.allowed),
            Err(error) => {
                tracing::warn!(%error, "access cannot be reviewed");
                false
            }
        }
    }
}

impl Auth for WebhookAuth {
    fn bearer<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Option<Caller>> {
        Box::pin(self.review_token(token))
    }

    fn allows<'a>(&'a self, caller: &'a Caller, access: Access<'a>) -> BoxFuture<'a, bool> {
        Box::pin(self.review_access(caller, access))
    }
}

impl std::fmt::Debug for WebhookAuth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebhookAuth").field("node", &self.node).finish_non_exhaustive()
    }
}

/// Who a request is from: by the connection's certificate, or by its own token.
pub(super) async fn identify(
    auth: &dyn Auth,
    certificate: Option<&Caller>,
    headers: &HeaderMap,
) -> Option<Caller> {
    if let Some(caller) = certificate {
        return Some(caller.clone());
    }
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.trim().split_once(' ')?;
    match scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty() {
        true => auth.bearer(token.trim()).await,
        false => None,
    }
}

/// May the caller do this to one of the subresources at least?
pub(super) async fn may(auth: &dyn Auth, caller: &Caller, method: &Method, subresources: &[&str]) -> bool {
    if caller.groups.iter().any(|group| group == MASTERS) {
        return true;
    }
    let verb = match *method {
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "get",
    };
    for subresource in subresources {
        if auth.allows(caller, Access { verb, subresource }).await {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_apiserver::{Config, Identity};

    #[tokio::test]
    async fn the_api_is_asked_about_tokens_and_about_what_their_bearers_may() {
        let api = windlass_apiserver::Api::new(Config::default());
        let auth = WebhookAuth::new(kube::Client::new(api.service(Identity::admin()), "default"), "node-1");
        let token = api.credentials().unwrap().admin_token().to_owned();
        let bearing = |token: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
            headers
        };
        let caller = identify(&auth, None, &bearing(&token)).await.unwrap();
        assert_eq!(caller.user, "kubernetes-admin");
        assert_eq!(identify(&auth, None, &bearing("guessed")).await, None);
        assert_eq!(identify(&auth, None, &HeaderMap::new()).await, None);
        let jane = Caller { user: "jane".to_owned(), groups: vec!["system:authenticated".to_owned()] };
        let allowed = auth.allows(&jane, Access { verb: "get", subresource: "stats" }).await;
        assert_eq!(may(&auth, &jane, &Method::GET, &["stats"]).await, allowed);
    }

    #[tokio::test]
    async fn who_is_no_master_is_let_in_by_nobody_else() {
        let caller = |group: &str| Caller { user: "x".to_owned(), groups: vec![group.to_owned()] };
        assert!(may(&ApiServerOnly, &caller(MASTERS), &Method::POST, &["proxy"]).await);
        let api_server = Caller { user: API_SERVER.to_owned(), groups: Vec::new() };
        assert!(may(&ApiServerOnly, &api_server, &Method::GET, &["proxy"]).await);
        assert!(!may(&ApiServerOnly, &caller("system:nodes"), &Method::GET, &["healthz", "proxy"]).await);
        let shown = caller("any");
        assert_eq!(identify(&ApiServerOnly, Some(&shown), &HeaderMap::new()).await, Some(shown));
    }
}
