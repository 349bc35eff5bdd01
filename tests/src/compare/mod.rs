//! Two Kubernetes, the same requests, the same answers: random sequences are sent to both and what comes back is compared
//! after a named normalisation ([`normalise`]).

pub mod built_in;
pub mod exchange;
pub mod kinds;
pub mod normalise;
pub mod objects;
pub mod policies;
pub mod quantities;
pub mod random;
pub mod requests;
pub mod schemas;
pub mod writes;
pub mod yaml;

pub use exchange::{Answer, Request, Server};
pub use normalise::Normaliser;
pub use random::Random;

/// Two servers that must not differ.
pub struct Pair {
    /// Ours, or the one under suspicion.
    pub left: Side,
    /// The reference.
    pub right: Side,
}

/// A server with what the normalisation knows about its versions and identities.
pub struct Side {
    /// Where requests go.
    pub server: Server,
    /// What makes its answers comparable.
    pub normaliser: Normaliser,
}

impl Side {
    /// A server about which nothing is known yet.
    pub fn new(server: Server) -> Self {
        Self { server, normaliser: Normaliser::default() }
    }

    /// Sends a request and gives back a comparable answer.
    ///
    /// # Errors
    /// When there was no answer.
    pub async fn ask(&mut self, request: &Request) -> anyhow::Result<Answer> {
        let server = self.server.clone();
        self.ask_through(&server, request).await
    }

    /// Sends a request through another client of the same server.
    ///
    /// # Errors
    /// When there was no answer.
    pub async fn ask_through(&mut self, server: &Server, request: &Request) -> anyhow::Result<Answer> {
        let concrete = self.normaliser.concrete(request);
        if normalise::may_be_newer(request) {
            self.catch_up(request).await?;
        }
        let answer = server.send(&concrete).await?;
        Ok(self.normaliser.answer(request, answer))
    }
}

impl Side {
    /// A read from "any" version may lag behind on the reference; a consistent list first brings its cache up to date.
    ///
    /// # Errors
    /// When there was no answer.
    pub async fn catch_up(&self, request: &Request) -> anyhow::Result<()> {
        // The path is that of a collection, or of an object in one.
        let above = request.path.rsplit_once('/').map_or("/", |(above, _)| above);
        for path in [above, &request.path] {
            self.server.send(&Request::new("GET", path)).await?;
        }
        Ok(())
    }
}

impl Pair {
    /// Sends a request to both.
    ///
    /// # Errors
    /// When one did not answer, or the answers differ: with the request and both answers.
    pub async fn ask(&mut self, request: &Request) -> anyhow::Result<Answer> {
        let (left, right) = (self.left.ask(request).await?, self.right.ask(request).await?);
        anyhow::ensure!(
            left == right,
            "answers differ\n  request: {request}\n  {}: {left}\n  {}: {right}\n  first difference: {}",
            self.left.server.name,
            self.right.server.name,
            first_difference(&left.body, &right.body, "")
        );
        Ok(left)
    }
}

/// Runs a comparison, and once more when it found a difference: the reference answers some reads from caches that lag behind
/// for an instant, so a difference counts when it shows again. One that did not is told.
///
/// # Errors
/// When it differed twice.
pub async fn looked_at_again<T, F, Fut>(what: &str, compare: F) -> anyhow::Result<T>
where
    F: Fn() -> Fut,
    Fut: Future<Output = anyhow::Result<T>>,
{
    match compare().await {
        Ok(same) => Ok(same),
        Err(first) => {
            let again = compare().await;
            if again.is_ok() {
                println!("{what} differed once, and not when looked at again: {first:#}");
            }
            again
        }
    }
}

/// Where two values differ first, for a person to read.
pub fn first_difference(left: &serde_json::Value, right: &serde_json::Value, path: &str) -> String {
    use serde_json::Value;
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            let keys: std::collections::BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            for key in keys {
                let path = format!("{path}.{key}");
                match (left.get(key), right.get(key)) {
                    (Some(left), Some(right)) if left == right => {}
                    (Some(left), Some(right)) => return first_difference(left, right, &path),
                    (Some(left), None) => return format!("{path}: {left} only on the left"),
                    (None, Some(right)) => return format!("{path}: {right} only on the right"),
                    (None, None) => {}
                }
            }
            "none in the bodies".into()
        }
        (Value::Array(left), Value::Array(right)) => {
            for (index, (left, right)) in left.iter().zip(right).enumerate() {
                if left != right {
                    return first_difference(left, right, &format!("{path}[{index}]"));
                }
            }
            if left.len() == right.len() {
                "none in the bodies".into()
            } else {
                format!("{path}: {} items against {}", left.len(), right.len())
            }
        }
        _ if left == right => "none in the bodies".into(),
        _ => format!("{path}: {left} against {right}"),
    }
}
