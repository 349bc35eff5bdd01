//! The keys of an issuer: found by its discovery document, when a token asks for them, and looked for again when none fits.

use crate::client::HttpsClient;
use crate::jwt::{KeySet, Parts};
use http::Uri;
use parking_lot::RwLock;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use windlass_clock::{Clock, Moment};

/// At least this long between two looks: whoever sends tokens chooses how often none fits.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

pub(super) struct Issuer {
    url: String,
    /// Where its discovery document is.
    document: Uri,
    client: HttpsClient,
    /// None until it was found.
    keys: RwLock<Option<Arc<KeySet>>>,
    /// When it was last looked for them, and what came of it; held while somebody looks.
    looked: Mutex<Option<(Moment, Result<(), String>)>>,
}

impl Issuer {
    pub(super) fn new(url: String, document: Uri, client: HttpsClient) -> Self {
        Self { url, document, client, keys: RwLock::default(), looked: Mutex::new(None) }
    }

    /// Whether one of its keys signed a token.
    pub(super) async fn verifies(&self, token: &Parts<'_>) -> Result<bool, String> {
        if self.known()?.verifies(token) {
            return Ok(true);
        }
        self.look().await?;
        Ok(self.known()?.verifies(token))
    }

    /// Looks for its keys, unless they were found before.
    pub(super) async fn find(&self) -> Result<(), String> {
        if self.keys.read().is_some() { Ok(()) } else { self.look().await }
    }

    fn known(&self) -> Result<Arc<KeySet>, String> {
        self.keys.read().clone().ok_or_else(|| "oidc: authenticator not initialized".to_owned())
    }

    async fn look(&self) -> Result<(), String> {
        let mut looked = self.looked.lock().await;
        let now = Clock::real().moment();
        if let Some((last, outcome)) = &*looked
            && now < *last + AGAIN_AFTER
        {
            return outcome.clone();
        }
        let outcome = self.fetch().await;
        if let Err(why) = &outcome {
            tracing::warn!(issuer = self.url, why, "the keys of an issuer of tokens are not found");
        }
        // From now on, not from when it began: an issuer that is slow is not asked all the time.
        *looked = Some((Clock::real().moment(), outcome.clone()));
        outcome
    }

    async fn fetch(&self) -> Result<(), String> {
        #[derive(Deserialize)]
        struct Document {
            issuer: String,
            jwks_uri: String,
        }
        let document: Document = serde_json::from_slice(&self.get(&self.document).await?)
            .map_err(|error| format!("oidc: failed to decode provider discovery object: {error}"))?;
        if document.issuer != self.url {
            return Err(format!(
                "oidc: issuer did not match the issuer returned by provider, expected {:?} got {:?}",
                self.url, document.issuer
            ));
        }
        let keys: Uri =
            document.jwks_uri.parse().map_err(|error| format!("{:?}: {error}", document.jwks_uri))?;
        let keys = KeySet::read(&self.get(&keys).await?)
            .map_err(|error| format!("oidc: failed to decode keys: {error}"))?;
        *self.keys.write() = Some(Arc::new(keys));
        Ok(())
    }

    async fn get(&self, url: &Uri) -> Result<bytes::Bytes, String> {
        let answered = self.client.get(url).await.map_err(|error| error.to_string())?;
        match answered.status.is_success() {
            true => Ok(answered.body),
            false => Err(format!("{}: {}", answered.status, String::from_utf8_lossy(&answered.body).trim())),
        }
    }
}
