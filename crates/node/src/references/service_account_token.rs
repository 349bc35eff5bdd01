//! Service account tokens for projected volumes: requested when a volume needs one, and renewed long before they expire.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{Pod, ServiceAccountTokenProjection};
use kube::Client;
use serde_json::json;
use std::collections::HashMap;
use windlass_clock::Clock;

/// The default lifetime of a token, in seconds.
const DEFAULT_LIFETIME: i64 = 3600;
/// Tokens are renewed after a day at the latest.
const MAX_AGE: SignedDuration = SignedDuration::from_hours(24);
/// The wait before a failed renewal is retried.
const RENEW_RETRY: SignedDuration = SignedDuration::from_secs(30);

/// The tokens of one pod.
#[derive(Default)]
pub(crate) struct Tokens(HashMap<Wanted, Token>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Wanted {
    audience: String,
    seconds: i64,
}

struct Token {
    text: String,
    renew: Timestamp,
}

/// Tokens are secret.
impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tokens({})", self.0.len())
    }
}

fn wanted(projection: &ServiceAccountTokenProjection) -> Wanted {
    let audience = projection.audience.clone().unwrap_or_default();
    Wanted { audience, seconds: projection.expiration_seconds.unwrap_or(DEFAULT_LIFETIME) }
}

/// When a token is renewed: after 80% of its lifetime, or a day.
fn renewal(now: Timestamp, expires: Timestamp) -> Timestamp {
    let life = expires.duration_since(now);
    now.checked_add((life / 5 * 4).min(MAX_AGE)).unwrap_or(now)
}

impl Tokens {
    /// The token for a projection, if it was requested.
    pub(crate) fn get(&self, projection: &ServiceAccountTokenProjection) -> Option<String> {
        self.0.get(&wanted(projection)).map(|token| token.text.clone())
    }

    /// When the next one has to be renewed.
    pub(crate) fn due(&self) -> Option<Timestamp> {
        self.0.values().map(|token| token.renew).min()
    }

    /// Requests the tokens that are missing or due. An error says why a missing one cannot be issued.
    pub(crate) async fn refresh(
        &mut self,
        client: &Client,
        clock: &Clock,
        pod: &Pod,
        projections: &[ServiceAccountTokenProjection],
    ) -> Result<(), String> {
        for projection in projections {
            let wanted = wanted(projection);
            let now = clock.now();
            if self.0.get(&wanted).is_some_and(|token| token.renew > now) {
                continue;
            }
            match request(client, pod, &wanted).await {
                Ok((text, expires)) => {
                    self.0.insert(wanted, Token { text, renew: renewal(now, expires) });
                }
                Err(error) => match self.0.get_mut(&wanted) {
                    // It is still valid for a while.
                    Some(token) => token.renew = now.checked_add(RENEW_RETRY).unwrap_or(now),
                    None => return Err(format!("failed to fetch token: {error}")),
                },
            }
        }
        Ok(())
    }
}

async fn request(client: &Client, pod: &Pod, wanted: &Wanted) -> Result<(String, Timestamp), String> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let account =
        pod.spec.as_ref().and_then(|spec| spec.service_account_name.as_deref()).unwrap_or("default");
    let audiences: Vec<&str> =
        Some(wanted.audience.as_str()).into_iter().filter(|audience| !audience.is_empty()).collect();
    let body = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {
            "audiences": audiences,
            "expirationSeconds": wanted.seconds,
            "boundObjectRef": { "apiVersion": "v1", "kind": "Pod", "name": pod.metadata.name, "uid": pod.metadata.uid },
        },
    });
    let request =
        http::Request::post(format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"))
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(body.to_string().into_bytes())
            .map_err(|error| error.to_string())?;
    let answer = client.request::<TokenRequest>(request).await.map_err(|error| error.to_string())?;
    let status = answer.status.ok_or("the API answered without a token")?;
    let expires = status.expiration_timestamp.ok_or("the API gave a token without an end")?;
    Ok((status.token.ok_or("the API answered without a token")?, expires.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_renewed_after_four_fifths_of_its_life_or_a_day() {
        let at = |seconds: i64| Timestamp::from_second(1_767_225_600 + seconds).unwrap();
        assert_eq!(renewal(at(0), at(3600)), at(2880));
        assert_eq!(renewal(at(0), at(1_000_000)), at(86_400));
        assert_eq!(renewal(at(0), at(-5)), at(-4), "one that is over is renewed at once");
    }

    #[tokio::test]
    async fn a_token_that_is_due_is_renewed() {
        use k8s_openapi::api::core::v1::ServiceAccount;
        use windlass_apiserver::{Api, Config, Identity};
        let start = Timestamp::from_second(1_767_225_600).unwrap();
        let (clock, driver) = Clock::driven(start);
        let api = Api::open(Config { clock: clock.clone(), ..Config::default() }).await.unwrap();
        let client = Client::new(api.service(Identity::admin()), "default");
        let accounts = kube::Api::<ServiceAccount>::default_namespaced(client.clone());
        let account = serde_json::from_value(json!({"metadata": {"name": "default"}})).unwrap();
        accounts.create(&Default::default(), &account).await.unwrap();
        let pods = kube::Api::<Pod>::default_namespaced(client.clone());
        let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        let pod = pods.create(&Default::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
        let wanted = ServiceAccountTokenProjection {
            expiration_seconds: Some(600),
            path: "token".into(),
            ..Default::default()
        };
        let (mut tokens, wanted) = (Tokens::default(), [wanted]);
        let mut seen = Vec::new();
        for passed in [0, 479, 1] {
            driver.advance(std::time::Duration::from_secs(passed));
            tokens.refresh(&client, &clock, &pod, &wanted).await.unwrap();
            seen.push(tokens.get(&wanted[0]).unwrap());
        }
        assert!(seen[0] == seen[1] && seen[1] != seen[2], "after four fifths, and not before");
        assert_eq!(tokens.due(), start.checked_add(SignedDuration::from_secs(960)).ok());
    }
}
