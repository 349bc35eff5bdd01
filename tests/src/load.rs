//! Load for benches: connections over TLS that cost little themselves, so that what is measured is the server.
//!
//! Bodies are ready bytes, and answers are read to their end and thrown away.

mod connection;
mod servers;

pub use connection::{Connection, Events};
pub use servers::{Server, windlass_program};
pub(crate) use servers::{built, cargo};

use futures::future::try_join_all;
use std::time::Duration;
use windlass_clock::Clock;

/// A request to come: its method, path, content type and body.
#[derive(Debug, Clone)]
pub struct Ask {
    /// The method.
    pub method: http::Method,
    /// The path with its query.
    pub path: String,
    /// What the body is, where there is one.
    pub content_type: &'static str,
    /// The body.
    pub body: String,
}

impl Ask {
    /// A read.
    pub fn get(path: impl Into<String>) -> Self {
        Self {
            method: http::Method::GET,
            path: path.into(),
            content_type: "application/json",
            body: String::new(),
        }
    }

    /// A creation from JSON.
    pub fn post(path: impl Into<String>, body: String) -> Self {
        Self { method: http::Method::POST, path: path.into(), content_type: "application/json", body }
    }

    /// A merge patch.
    pub fn merge(path: impl Into<String>, body: String) -> Self {
        let content_type = "application/merge-patch+json";
        Self { method: http::Method::PATCH, path: path.into(), content_type, body }
    }

    /// A server-side apply.
    pub fn apply(path: impl Into<String>, body: String) -> Self {
        Self {
            method: http::Method::PATCH,
            path: path.into(),
            content_type: "application/apply-patch+yaml",
            body,
        }
    }
}

/// Sends the requests of `numbers`, spread over the connections, each connection one at a time; how long all took.
///
/// # Errors
/// The first request that failed.
pub async fn run(
    connections: &mut [Connection],
    numbers: std::ops::Range<usize>,
    ask: impl Fn(usize) -> Ask + Clone + Send + 'static,
) -> anyhow::Result<Duration> {
    let clock = Clock::real();
    let step = connections.len();
    // A task per connection, so that all cores serve the client.
    let mut workers = Vec::with_capacity(step);
    let taken: Vec<Connection> =
        connections.iter_mut().map(Connection::take).collect::<anyhow::Result<_>>()?;
    let begun = clock.moment();
    for (index, mut connection) in taken.into_iter().enumerate() {
        let (ask, numbers) = (ask.clone(), numbers.clone());
        workers.push(tokio::spawn(async move {
            for number in numbers.skip(index).step_by(step) {
                connection.ask(&ask(number)).await?;
            }
            anyhow::Ok(connection)
        }));
    }
    let back = try_join_all(workers).await?;
    let took = clock.moment() - begun;
    for (place, connection) in connections.iter_mut().zip(back) {
        *place = connection?;
    }
    Ok(took)
}
